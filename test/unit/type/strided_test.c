/* strided_test.c - the copy loops against moving one block after the other in packed order. */
#include "reference.h"
#include "type/strided.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Where the blocks lie, in packed order, and memory around them that must not change. */
struct model {
    int64_t n, lo, hi, bytes;
    int64_t *offs;
    size_t *lens;
    char *mem, *base, *packed, *expect;
};

static void model_open(struct model *m, int64_t room)
{
    *m = (struct model){.lo = INT64_MAX, .hi = INT64_MIN};
    m->offs = malloc((size_t)room * sizeof *m->offs);
    m->lens = malloc((size_t)room * sizeof *m->lens);
}

static void model_add(struct model *m, int64_t off, size_t len)
{
    m->offs[m->n] = off;
    m->lens[m->n++] = len;
    m->bytes += (int64_t)len;
    if (off < m->lo) m->lo = off;
    if (off + (int64_t)len > m->hi) m->hi = off + (int64_t)len;
}

/* Exactly the memory that may be touched, so that sanitizers see what is beyond; at any alignment. */
static void model_seal(struct model *m)
{
    int64_t shift = random_int(0, 15);
    m->mem = malloc((size_t)(m->hi - m->lo + shift));
    m->base = (char *)((uintptr_t)m->mem + (uintptr_t)shift - (uintptr_t)m->lo);
    m->packed = malloc((size_t)m->bytes);
    m->expect = malloc((size_t)m->bytes);
    random_fill(m->mem, (size_t)(m->hi - m->lo + shift));
    char *to = m->expect;
    for (int64_t i = 0; i < m->n; to += m->lens[i++]) memcpy(to, m->base + m->offs[i], m->lens[i]);
}

static void check_packed(const struct model *m, const char *end)
{
    assert_ptr_equal(end, m->packed + m->bytes);
    assert_memory_equal(m->packed, m->expect, (size_t)m->bytes);
}

/* To be called before unpacking: other data in `packed`; returns what memory is to be then. */
static char *model_unpacked(struct model *m)
{
    size_t n = (size_t)(m->hi - m->lo);
    char *after = malloc(n);
    const char *from = m->packed;
    random_fill(m->packed, (size_t)m->bytes);
    memcpy(after, m->base + m->lo, n);
    for (int64_t i = 0; i < m->n; from += m->lens[i++]) memcpy(after + (m->offs[i] - m->lo), from, m->lens[i]);
    return after;
}

static void check_unpacked(struct model *m, const char *end, char *after)
{
    assert_ptr_equal(end, m->packed + m->bytes);
    assert_memory_equal(m->base + m->lo, after, (size_t)(m->hi - m->lo));
    free(after);
    free(m->mem);
    free(m->packed);
    free(m->expect);
    free(m->offs);
    free(m->lens);
}

static void check_grid(const struct grid *g)
{
    struct model m;
    model_open(&m, g->n * g->rows);
    for (int64_t k = 0; k < g->rows; k++)
        for (int64_t i = 0; i < g->n; i++) model_add(&m, k * g->row_step + i * g->step, g->block);
    model_seal(&m);
    check_packed(&m, grid_pack(m.packed, m.base, g));
    char *after = model_unpacked(&m);
    check_unpacked(&m, grid_unpack(m.packed, m.base, g), after);
}

static int64_t any_sign(int64_t step) { return random_u64() & 1 ? step : -step; }

static void rows_of_every_block_size(void **state)
{
    (void)state;
    for (size_t block = 1; block <= 140; block++)
        for (int64_t n = 1; n <= 9; n++) {
            int64_t step = any_sign((int64_t)block + random_int(0, 20));
            check_grid(&(struct grid){block, n, step, 1, 0});
            check_grid(
                &(struct grid){block, n, step, random_int(2, 150), any_sign(n * llabs(step) + random_int(0, 9))});
        }
}

/* As when a matrix is packed by its columns: long rows, whose blocks lie between those of other rows. */
static void interleaved_rows_of_every_block_size(void **state)
{
    (void)state;
    for (size_t block = 1; block <= 70; block++) {
        int64_t rows = random_int(2, 20), near = (int64_t)block + random_int(0, 8);
        int64_t n = random_int(1, 200), step = rows * near + random_int(0, 100);
        check_grid(&(struct grid){block, n, any_sign(step), rows, any_sign(near)});
    }
}

/* A type that the standard forbids for receiving; still it is settled what comes of it. */
static void of_overlapping_blocks_the_last_remains(void **state)
{
    (void)state;
    for (int i = 0; i < 2000; i++)
        check_grid(&(struct grid){(size_t)random_int(1, 40), random_int(1, 180), random_int(-80, 80), random_int(1, 20),
                                  random_int(-80, 80)});
}

/* n blocks in a stretch of memory, gaps between them; returns the bytes that they take.  */
static int64_t scatter(int64_t *offs, size_t *lens, int64_t n)
{
    int64_t at = 0;
    for (int64_t i = 0; i < n; i++) {
        offs[i] = at;
        at += (int64_t)lens[i] + random_int(0, 10);
    }
    return at;
}

static void check_scattered(size_t block, int64_t n, int64_t times, int64_t closer)
{
    struct model m;
    int64_t offs[40];
    size_t lens[40];
    for (int64_t i = 0; i < n; i++) lens[i] = block;
    int64_t stride = any_sign(scatter(offs, lens, n) - closer);
    if (n > 2 && random_u64() & 1) {
        int64_t first = offs[0];
        offs[0] = offs[n - 1];
        offs[n - 1] = first;
    }
    struct scattered s = {block, offs, n, times, stride};
    model_open(&m, n * times);
    for (int64_t k = 0; k < times; k++)
        for (int64_t i = 0; i < n; i++) model_add(&m, k * stride + offs[i], block);
    model_seal(&m);
    check_packed(&m, scattered_pack(m.packed, m.base, &s));
    char *after = model_unpacked(&m);
    check_unpacked(&m, scattered_unpack(m.packed, m.base, &s), after);
}

static void repeated_blocks_of_every_size(void **state)
{
    (void)state;
    for (size_t block = 1; block <= 140; block++)
        for (int64_t n = 1; n <= 40; n += 3)
            check_scattered(block, n, random_int(1, 60), random_u64() % 8 ? 0 : random_int(0, (int64_t)block));
}

static void check_pieces(int64_t n, int64_t longest, int64_t times, int64_t closer)
{
    struct model m;
    int64_t offs[40], at = random_int(0, 1000); /* not the first piece of a list */
    size_t lens[40];
    struct layout_piece p[41];
    for (int64_t i = 0; i < n; i++) lens[i] = (size_t)random_int(1, longest);
    int64_t stride = any_sign(scatter(offs, lens, n) - closer);
    for (int64_t i = 0; i < n; at += (int64_t)lens[i++]) p[i] = (struct layout_piece){offs[i], at};
    p[n] = (struct layout_piece){.at = at};
    struct pieces s = {p, n, times, stride};
    model_open(&m, n * times);
    for (int64_t k = 0; k < times; k++)
        for (int64_t i = 0; i < n; i++) model_add(&m, k * stride + offs[i], lens[i]);
    model_seal(&m);
    check_packed(&m, pieces_pack(m.packed, m.base, &s));
    char *after = model_unpacked(&m);
    check_unpacked(&m, pieces_unpack(m.packed, m.base, &s), after);
}

static void repeated_structs(void **state)
{
    (void)state;
    for (int64_t n = 1; n <= 40; n++)
        for (int64_t longest = 1; longest <= 300; longest += longest / 2 + 1)
            check_pieces(n, longest, random_int(1, 100), random_u64() % 8 ? 0 : random_int(0, longest));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_of_every_block_size),
        cmocka_unit_test(interleaved_rows_of_every_block_size),
        cmocka_unit_test(of_overlapping_blocks_the_last_remains),
        cmocka_unit_test(repeated_blocks_of_every_size),
        cmocka_unit_test(repeated_structs),
    };
    random_open();
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
