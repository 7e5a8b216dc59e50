/* cursor_test.c - packing, unpacking and listing at any byte position, against the byte-by-byte model. */
#include "reference.h"
#include "type/cursor.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

/* `count` elements of a type in memory with random contents, and their packed form by the model. */
struct field {
    struct type *t;
    struct ref r;
    int64_t count;
    size_t bytes, packed;
    char *mem, *buf, *expect;
};

static void field_open(struct field *f, struct type *t, int64_t count)
{
    int64_t first;
    f->t = t;
    f->count = count;
    f->bytes = (size_t)type_span(t, count, &first);
    f->packed = (size_t)(count * t->size);
    f->mem = malloc(f->bytes + 1);
    f->expect = malloc(f->packed + 1);
    assert_non_null(f->mem);
    assert_non_null(f->expect);
    f->buf = (char *)((uintptr_t)f->mem - (uintptr_t)first);
    random_fill(f->mem, f->bytes);
    ref_pack(&f->r, count, f->buf, f->expect);
}

#define SPAN_MAX ((int64_t)64 << 20) /* resized within resized, a type may span more than there is memory */

static void field_random(struct field *f)
{
    int64_t first, count = random_int(0, 3);
    struct type *t = random_type((int)random_int(1, 5), 1000, &f->r);
    if (type_span(t, count, &first) > SPAN_MAX) {
        type_unref(t);
        ref_close(&f->r);
        field_random(f);
        return;
    }
    if (random_int(0, 7)) assert_int_equal(type_commit(t), 0);
    field_open(f, t, count);
}

static void field_close(struct field *f)
{
    type_unref(f->t);
    ref_close(&f->r);
    free(f->mem);
    free(f->expect);
}

static size_t random_piece(size_t total)
{
    return (size_t)(random_u64() & 1 ? random_int(1, 40) : random_int(1, (int64_t)total + 1));
}

static void check_pack(struct field *f)
{
    struct type_cursor c;
    char *out = malloc(f->packed + 1); /* exactly as large as may be written: sanitizers see the rest */
    size_t done = 0;
    type_cursor_init(&c, f->t, f->count, f->buf);
    while (done < f->packed) {
        size_t want = random_piece(f->packed), got = type_pack(&c, out + done, want);
        assert_int_equal(got, min_size(want, f->packed - done));
        done += got;
    }
    assert_int_equal(type_pack(&c, out, 5), 0);
    assert_memory_equal(out, f->expect, f->packed);
    for (int i = 0; i < 4; i++) { /* and from anywhere */
        size_t at = (size_t)random_int(0, (int64_t)f->packed), n = random_piece(f->packed);
        type_cursor_seek(&c, at);
        n = type_pack(&c, out, min_size(n, f->packed - at));
        assert_memory_equal(out, f->expect + at, n);
        assert_int_equal(type_cursor_left(&c), f->packed - at - n);
    }
    free(out);
}

static void check_unpack(struct field *f)
{
    struct type_cursor c;
    char *model = malloc(f->bytes + 1), *in = malloc(f->packed + 1);
    size_t done = 0;
    memcpy(model, f->mem, f->bytes);
    random_fill(in, f->packed);
    ref_unpack(&f->r, f->count, model + (f->buf - f->mem), in);
    type_cursor_init(&c, f->t, f->count, f->buf);
    while (done < f->packed) {
        size_t n = random_piece(f->packed), got = type_unpack(&c, in + done, min_size(n, f->packed - done));
        assert_int_equal(got, min_size(n, f->packed - done));
        done += got;
    }
    assert_memory_equal(f->mem, model, f->bytes);
    free(model);
    free(in);
}

static void check_iov(struct field *f)
{
    struct type_cursor c;
    struct iovec iov[20];
    char *out = malloc(f->packed + 1);
    size_t done = 0;
    ref_pack(&f->r, f->count, f->buf, f->expect);
    type_cursor_init(&c, f->t, f->count, f->buf);
    while (done < f->packed) {
        int room = (int)random_int(1, 20), n = room;
        size_t max = random_piece(f->packed), sum = 0, got = type_iov(&c, iov, &n, max);
        assert_in_range(n, 1, room);
        for (int i = 0; i < n; i++) {
            if (i > 0) assert_ptr_not_equal((char *)iov[i - 1].iov_base + iov[i - 1].iov_len, iov[i].iov_base);
            memcpy(out + done + sum, iov[i].iov_base, iov[i].iov_len);
            sum += iov[i].iov_len;
        }
        assert_int_equal(sum, got);
        assert_true(got <= max);
        if (n < room) assert_int_equal(got, min_size(max, f->packed - done)); /* nothing but the limits ends it */
        done += got;
    }
    int n = 1;
    assert_int_equal(type_iov(&c, iov, &n, 100), 0);
    assert_int_equal(n, 0);
    assert_memory_equal(out, f->expect, f->packed);
    free(out);
}

static void random_types_move_as_their_typemap(void **state)
{
    (void)state;
    for (int64_t i = test_count(10000); i > 0; i--) {
        struct field f;
        field_random(&f);
        check_pack(&f);
        check_unpack(&f);
        check_iov(&f);
        field_close(&f);
    }
}

/* Each block size has a loop of its own; all sizes, strides and cuts around blocks. */
static void every_block_size_of_vectors(void **state)
{
    (void)state;
    for (int64_t len = 1; len <= 140; len++) {
        struct field f;
        struct type *t;
        int64_t n = random_int(2, 90), stride = len + random_int(1, 20);
        struct ref byte;
        ref_basic(&byte, MPI_BYTE);
        ref_open(&f.r);
        for (int64_t i = 0; i < n; i++) ref_add_n(&f.r, i * stride, len, &byte);
        assert_int_equal(type_vector(n, len, stride, TYPE_BYTES, type_of(MPI_BYTE), &t), 0);
        assert_int_equal(type_commit(t), 0);
        field_open(&f, t, random_int(1, 3));
        check_pack(&f);
        check_unpack(&f);
        check_iov(&f);
        field_close(&f);
        ref_close(&byte);
    }
}

static void every_block_size_of_indexed_blocks(void **state)
{
    (void)state;
    for (int64_t len = 1; len <= 80; len++) {
        int64_t displs[100];
        struct field f;
        struct type *t;
        struct ref byte;
        ref_basic(&byte, MPI_BYTE);
        ref_open(&f.r);
        for (int i = 0; i < 100; i++) {
            displs[i] = (99 - i) * 90 + random_int(0, 5);
            ref_add_n(&f.r, displs[i], len, &byte);
        }
        assert_int_equal(type_indexed_block(100, len, displs, TYPE_BYTES, type_of(MPI_BYTE), &t), 0);
        assert_int_equal(type_commit(t), 0);
        field_open(&f, t, 2);
        check_pack(&f);
        check_unpack(&f);
        field_close(&f);
        ref_close(&byte);
    }
}

/* A contiguous type with a gap in front: the run starts at true_lb. */
static void contiguous_data_behind_the_origin(void **state)
{
    (void)state;
    struct type *t;
    struct type_cursor c;
    int64_t len = 4, displ = 3;
    int data[16], out[8];
    for (int i = 0; i < 16; i++) data[i] = 100 + i;
    assert_int_equal(type_indexed(1, &len, &displ, TYPE_ELEMENTS, type_of(MPI_INT), &t), 0);
    assert_int_equal(type_commit(t), 0);
    assert_true(t->contig);
    type_cursor_init(&c, t, 2, data);
    assert_int_equal(type_pack(&c, out, sizeof out), 32);
    for (int i = 0; i < 8; i++) assert_int_equal(out[i], 103 + i);
    type_unref(t);
}

static void copying_across_types_keeps_order(void **state)
{
    (void)state;
    struct type *rows, *columns;
    int from[6] = {1, 2, 3, 4, 5, 6}, to[12] = {0};
    assert_int_equal(type_vector(3, 1, 2, TYPE_ELEMENTS, type_of(MPI_INT), &rows), 0);
    assert_int_equal(type_contiguous(3, type_of(MPI_INT), &columns), 0);
    assert_int_equal(type_copy_across(to, 1, rows, from, 1, columns), 12);
    assert_int_equal(to[0], 1);
    assert_int_equal(to[1], 0);
    assert_int_equal(to[2], 2);
    assert_int_equal(to[4], 3);
    assert_int_equal(type_copy_across(to, 1, columns, from, 2, rows), 12);
    assert_int_equal(to[1], 3);
    type_unref(rows);
    type_unref(columns);
}

static void copying_does_not_touch_gaps(void **state)
{
    (void)state;
    for (int64_t i = test_count(10000) / 10 + 1; i > 0; i--) {
        struct field f;
        field_random(&f);
        char *mem = malloc(f.bytes + 1), *model = malloc(f.bytes + 1);
        random_fill(mem, f.bytes);
        memcpy(model, mem, f.bytes);
        ref_unpack(&f.r, f.count, model + (f.buf - f.mem), f.expect);
        type_copy(mem + (f.buf - f.mem), f.buf, f.count, f.t);
        assert_memory_equal(mem, model, f.bytes);
        free(mem);
        free(model);
        field_close(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_block_size_of_vectors),       cmocka_unit_test(every_block_size_of_indexed_blocks),
        cmocka_unit_test(contiguous_data_behind_the_origin), cmocka_unit_test(copying_across_types_keeps_order),
        cmocka_unit_test(copying_does_not_touch_gaps),       cmocka_unit_test(random_types_move_as_their_typemap),
    };
    if (type_open()) return 1;
    random_open();
    cmocka_set_message_output(CM_OUTPUT_TAP);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    type_close();
    handle_close();
    return failed;
}
