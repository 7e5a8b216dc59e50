/* type_test.c - the predefined types and the facts about types. */
#include "base/err.h"
#include "reference.h"
#include "type/type.h"

#include <complex.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <wchar.h>

#include <cmocka.h>

/* mpi_abi: with bit 6 of a handle set, bits 5:3 are the logarithm of the size. */
static void sized_handles_tell_their_size(void **state)
{
    (void)state;
    int found = 0;
    for (uintptr_t h = 0x200; h < 0x300; h++) {
        struct type *t = type_of((MPI_Datatype)h);
        if (!t) continue;
        found++;
        assert_ptr_equal(type_handle(t), (void *)h);
        assert_true(t->predefined && t->committed);
        if ((h & 0x40) && t->size >= 0) assert_int_equal(t->size, 1 << ((h >> 3) & 7));
    }
    assert_int_equal(found, 70); /* all of the interface but MPI_DATATYPE_NULL, and the two aliases */
    assert_null(type_of(MPI_DATATYPE_NULL));
    assert_null(type_of((MPI_Datatype)MPI_SUM));
    assert_null(type_of((MPI_Datatype)0x23f));
}

static void sizes_are_those_of_c(void **state)
{
    (void)state;
    assert_int_equal(type_of(MPI_LONG)->size, sizeof(long));
    assert_int_equal(type_of(MPI_WCHAR)->size, sizeof(wchar_t));
    assert_int_equal(type_of(MPI_C_LONG_DOUBLE_COMPLEX)->size, sizeof(long double complex));
    assert_int_equal(type_of(MPI_LONG_DOUBLE)->extent, sizeof(long double));
    assert_int_equal(type_of(MPI_PACKED)->size, 1);
    assert_int_equal(type_of(MPI_COUNT)->size, 8);
    assert_int_equal(type_of(MPI_AINT)->size, sizeof(void *));
    assert_true(type_of(MPI_INT)->contig);
    assert_true(type_of(MPI_2INT)->contig);
    assert_int_equal(type_blocks(type_of(MPI_SHORT_INT)), 2);
}

static void pairs_have_the_gaps_of_c(void **state)
{
    (void)state;
    const struct type *t = type_of(MPI_LONG_DOUBLE_INT);
    struct c {
        long double v;
        int i;
    };
    assert_int_equal(t->size, sizeof(long double) + sizeof(int));
    assert_int_equal(t->extent, sizeof(struct c));
    assert_int_equal(t->true_extent, offsetof(struct c, i) + sizeof(int));
    assert_false(t->contig);
    t = type_of(MPI_SHORT_INT);
    assert_int_equal(t->size, 6);
    assert_int_equal(t->extent, 8);
    assert_int_equal(t->true_extent, 8);
}

static void names(void **state)
{
    (void)state;
    struct type *t;
    assert_string_equal(type_name(type_of(MPI_DOUBLE)), "MPI_DOUBLE");
    assert_string_equal(type_name(type_of(MPI_LONG_LONG_INT)), "MPI_LONG_LONG_INT"); /* one value with two names */
    assert_int_equal(type_dup(type_of(MPI_DOUBLE), &t), 0);
    assert_string_equal(type_name(t), "");
    assert_int_equal(type_set_name(t, "row"), 0);
    assert_int_equal(type_set_name(t, "column"), 0);
    assert_string_equal(type_name(t), "column");
    type_unref(t);
}

static void span_covers_all_elements(void **state)
{
    (void)state;
    struct type *t, *backwards;
    int64_t first;
    assert_int_equal(type_resized(type_of(MPI_INT), 0, -12, &backwards), 0);
    assert_int_equal(type_span(type_of(MPI_INT), 5, &first), 20);
    assert_int_equal(first, 0);
    assert_int_equal(type_span(type_of(MPI_INT), 0, &first), 0);
    assert_int_equal(type_span(backwards, 3, &first), 28);
    assert_int_equal(first, -24);
    assert_int_equal(type_vector(3, 1, -2, TYPE_ELEMENTS, type_of(MPI_INT), &t), 0);
    assert_int_equal(type_span(t, 1, &first), 20);
    assert_int_equal(first, -16);
    type_unref(t);
    type_unref(backwards);
}

/* What commit is for: small loops are written out, large regular ones stay compact. */
static void commit_chooses_the_form(void **state)
{
    (void)state;
    struct type *pairs, *rows, *cube;
    int64_t size[] = {100, 100, 100}, sub[] = {50, 50, 50}, start[] = {1, 2, 3};
    assert_int_equal(type_contiguous(10, type_of(MPI_SHORT_INT), &pairs), 0);
    assert_int_equal(type_commit(pairs), 0);
    assert_int_equal(type_blocks(pairs), 11); /* the int of each touches the short of the next */
    assert_int_equal(type_subarray(3, size, sub, start, MPI_ORDER_C, type_of(MPI_DOUBLE), &cube), 0);
    assert_int_equal(type_commit(cube), 0);
    assert_int_equal(type_blocks(cube), 2500);
    assert_true(cube->committed);
    assert_int_equal(type_commit(cube), 0);
    assert_int_equal(type_contiguous(7, type_of(MPI_DOUBLE), &rows), 0);
    assert_false(rows->committed);
    assert_false(rows->contig); /* a send looks at this only: what is not committed is none of its short way */
    assert_int_equal(type_commit(rows), 0);
    assert_true(rows->contig);
    type_unref(pairs);
    type_unref(rows);
    type_unref(cube);
}

static void takes(const struct type *t, int64_t most)
{
    assert_true(type_takes(t, 0) && type_takes(t, 1) && type_takes(t, most));
    assert_false(type_takes(t, -1) || type_takes(t, INT64_MIN));
    if (most < INT64_MAX) assert_false(type_takes(t, most + 1));
}

/* No more than fits 63 bits: of data, of extents in both directions, from the lower bound on; one element always does. */
static void counts_have_a_limit(void **state)
{
    (void)state;
    struct type *t;
    int64_t lens[] = {1}, far[] = {INT64_MAX - 7};
    takes(type_of(MPI_BYTE), INT64_MAX - 1);
    takes(type_of(MPI_INT), (INT64_MAX - 4) / 4);
    assert_int_equal(type_contiguous(3, type_of(MPI_INT), &t), 0);
    assert_false(type_takes(t, 0)); /* not committed */
    assert_int_equal(type_commit(t), 0);
    takes(t, (INT64_MAX - 12) / 12);
    type_unref(t);
    assert_int_equal(type_resized(type_of(MPI_INT), 0, -((int64_t)1 << 40), &t), 0);
    assert_int_equal(type_commit(t), 0);
    takes(t, (INT64_MAX - 4) >> 40);
    type_unref(t);
    assert_int_equal(type_indexed(1, lens, far, TYPE_BYTES, type_of(MPI_INT), &t), 0);
    assert_int_equal(type_commit(t), 0);
    takes(t, 1);
    type_unref(t);
    assert_int_equal(type_contiguous(0, type_of(MPI_INT), &t), 0);
    assert_int_equal(type_commit(t), 0);
    takes(t, INT64_MAX);
    type_unref(t);
}

static void lacking_types_are_found_but_unusable(void **state)
{
    (void)state;
    for (uintptr_t h = 0x200; h < 0x300; h++) {
        struct type *t = type_of((MPI_Datatype)h), *dup = NULL;
        if (!t || t->size >= 0) continue;
        assert_int_equal(t->size, MPI_UNDEFINED);
        assert_int_equal(type_dup(t, &dup), TERN_ERR_TYPE);
        assert_non_null(strstr(err_words(), type_name(t)));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sized_handles_tell_their_size),
        cmocka_unit_test(sizes_are_those_of_c),
        cmocka_unit_test(pairs_have_the_gaps_of_c),
        cmocka_unit_test(names),
        cmocka_unit_test(span_covers_all_elements),
        cmocka_unit_test(commit_chooses_the_form),
        cmocka_unit_test(counts_have_a_limit),
        cmocka_unit_test(lacking_types_are_found_but_unusable),
    };
    if (type_open()) return 1;
    cmocka_set_message_output(CM_OUTPUT_TAP);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    type_close();
    handle_close();
    return failed;
}
