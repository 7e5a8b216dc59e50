/* build_test.c - every constructor against the plain typemap, and its refusals (chapter 5 of MPI-5.0). */
#include "base/err.h"
#include "reference.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void assert_facts(const struct type *t, const struct ref *r)
{
    int64_t lo, hi;
    ref_true(r, &lo, &hi);
    assert_int_equal(t->size, ref_size(r));
    assert_int_equal(t->elements, r->n);
    assert_int_equal(t->lb, r->lb);
    assert_int_equal(t->extent, ref_extent(r));
    assert_int_equal(t->true_lb, lo);
    assert_int_equal(t->true_extent, hi - lo);
}

static void contiguous_of_pairs_keeps_the_gaps(void **state)
{
    (void)state;
    struct type *t;
    struct ref pair, r;
    ref_basic(&pair, MPI_SHORT_INT);
    ref_open(&r);
    ref_add_n(&r, 0, 5, &pair);
    ref_seal(&r);
    assert_int_equal(type_contiguous(5, type_of(MPI_SHORT_INT), &t), 0);
    assert_facts(t, &r);
    assert_false(t->contig);
    assert_int_equal(t->size, 30);
    type_unref(t);
    ref_close(&r);
    ref_close(&pair);
}

static void vector_with_touching_blocks_is_contiguous(void **state)
{
    (void)state;
    struct type *t;
    assert_int_equal(type_vector(4, 3, 3, TYPE_ELEMENTS, type_of(MPI_DOUBLE), &t), 0);
    assert_int_equal(type_commit(t), 0);
    assert_true(t->contig);
    assert_int_equal(type_blocks(t), 1);
    type_unref(t);
    assert_int_equal(type_vector(4, 1, 16, TYPE_BYTES, type_of(MPI_DOUBLE), &t), 0);
    assert_int_equal(type_commit(t), 0);
    assert_false(t->contig);
    assert_int_equal(t->extent, 3 * 16 + 8);
    assert_int_equal(type_blocks(t), 4);
    type_unref(t);
}

static void struct_extent_has_the_padding_of_c(void **state)
{
    (void)state;
    struct particle {
        double x[3];
        char tag;
    };
    int64_t lens[] = {3, 1}, displs[] = {offsetof(struct particle, x), offsetof(struct particle, tag)};
    struct type *members[] = {type_of(MPI_DOUBLE), type_of(MPI_CHAR)}, *t;
    assert_int_equal(type_struct(2, lens, displs, members, &t), 0);
    assert_int_equal(t->extent, sizeof(struct particle));
    assert_int_equal(t->size, 25);
    assert_int_equal(t->true_extent, 25);
    assert_null(t->basic);
    type_unref(t);
}

/* 5.1.6: a bound set by resized wins over those of other members. */
static void resized_bounds_are_sticky(void **state)
{
    (void)state;
    struct type *wide, *t, *members[2];
    int64_t lens[] = {1, 1}, displs[] = {0, 40};
    assert_int_equal(type_resized(type_of(MPI_INT), -8, 20, &wide), 0);
    members[0] = wide;
    members[1] = type_of(MPI_INT);
    assert_int_equal(type_struct(2, lens, displs, members, &t), 0);
    assert_int_equal(t->lb, -8);
    assert_int_equal(t->extent, 20);
    assert_int_equal(t->true_lb, 0);
    assert_int_equal(t->true_extent, 44);
    type_unref(t);
    type_unref(wide);
}

static void struct_of_nothing_is_empty(void **state)
{
    (void)state;
    struct type *t;
    assert_int_equal(type_struct(0, NULL, NULL, NULL, &t), 0);
    assert_int_equal(type_commit(t), 0);
    assert_int_equal(t->size, 0);
    assert_int_equal(t->extent, 0);
    assert_int_equal(type_blocks(t), 0);
    type_unref(t);
}

static void parts_outlive_their_handles(void **state)
{
    (void)state;
    struct type *inner, *outer;
    assert_int_equal(type_vector(3, 1, 2, TYPE_ELEMENTS, type_of(MPI_INT), &inner), 0);
    MPI_Datatype h = type_handle(inner);
    assert_int_equal(type_contiguous(2, inner, &outer), 0);
    type_unref(inner);
    assert_ptr_equal(type_of(h), inner);
    assert_int_equal(outer->parts[0].type->size, 12);
    type_unref(outer);
    assert_null(type_of(h));
}

/* Freeing the end of a very long chain must not use stack for each link. */
static void long_chain_of_dups_is_freed(void **state)
{
    (void)state;
    struct type *t = type_of(MPI_INT);
    for (int i = 0; i < 200000; i++) {
        struct type *next;
        assert_int_equal(type_dup(t, &next), 0);
        type_unref(t);
        t = next;
    }
    assert_true(t->committed);
    assert_int_equal(t->size, 4);
    type_unref(t);
}

static void bad_arguments_are_refused(void **state)
{
    (void)state;
    struct type *t = NULL, *in = type_of(MPI_INT), *lacking = NULL;
    int64_t lens[] = {1, -1}, displs[] = {0, 8}, big[] = {INT64_MAX / 8, INT64_MAX / 4};
    int64_t sizes[] = {4}, subs[] = {3}, starts[] = {2};
    struct type *members[] = {in, in};
    assert_int_equal(type_contiguous(-1, in, &t), TERN_ERR_COUNT);
    assert_int_equal(type_vector(2, -3, 1, TYPE_ELEMENTS, in, &t), TERN_ERR_COUNT);
    assert_int_equal(type_indexed(2, lens, displs, TYPE_BYTES, in, &t), TERN_ERR_COUNT);
    assert_non_null(strstr(err_words(), "-1"));
    assert_int_equal(type_struct(2, lens, displs, members, &t), TERN_ERR_COUNT);
    assert_int_equal(type_contiguous(INT64_MAX / 2, in, &t), TERN_ERR_COUNT);
    assert_int_equal(type_vector(3, 1, INT64_MAX / 2, TYPE_BYTES, in, &t), TERN_ERR_COUNT);
    assert_int_equal(type_indexed_block(2, 1, big, TYPE_ELEMENTS, in, &t), TERN_ERR_COUNT);
    assert_int_equal(type_resized(in, INT64_MAX, 10, &t), TERN_ERR_COUNT);
    assert_int_equal(type_subarray(1, sizes, subs, starts, MPI_ORDER_C, in, &t), TERN_ERR_ARG);
    assert_int_equal(type_subarray(1, sizes, subs, starts, 3, in, &t), TERN_ERR_ARG);
    assert_int_equal(type_subarray(0, sizes, subs, starts, MPI_ORDER_C, in, &t), TERN_ERR_ARG);
    for (uintptr_t h = 0x200; h < 0x300 && !lacking; h++)
        if (type_of((MPI_Datatype)h) && type_of((MPI_Datatype)h)->size == MPI_UNDEFINED)
            lacking = type_of((MPI_Datatype)h);
    if (lacking) assert_int_equal(type_contiguous(1, lacking, &t), TERN_ERR_TYPE);
    assert_null(t);
}

/* Nesting that cannot be simplified away ends in an error, not in a stack overflow. */
static void bottomless_nesting_is_refused(void **state)
{
    (void)state;
    struct type *t = type_of(MPI_INT), *next;
    int rc = 0, level = 0;
    for (; level < 5000; level++) {
        int64_t lens[] = {1, 1, 1}, displs[] = {0, 3 + t->extent, 1 + 3 * t->extent / 2 + 64};
        struct type *members[] = {t, type_of(MPI_CHAR), type_of(MPI_SHORT)};
        rc = type_struct(3, lens, displs, members, &next);
        if (rc) break;
        type_unref(t);
        t = next;
        if (t->extent > INT64_MAX / 8) { /* keep the size small, the nesting deep */
            assert_int_equal(type_resized(t, 0, 8, &next), 0);
            type_unref(t);
            t = next;
        }
    }
    assert_int_equal(rc, TERN_ERR_ARG);
    assert_non_null(strstr(err_words(), "nested"));
    type_unref(t);
}

static void random_types_have_the_facts_of_their_typemap(void **state)
{
    (void)state;
    for (int64_t i = test_count(10000); i > 0; i--) {
        struct ref r;
        struct type *t = random_type((int)random_int(1, 5), 2000, &r);
        assert_facts(t, &r);
        assert_int_equal(type_commit(t), 0);
        assert_facts(t, &r);
        type_unref(t);
        ref_close(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(contiguous_of_pairs_keeps_the_gaps),
        cmocka_unit_test(vector_with_touching_blocks_is_contiguous),
        cmocka_unit_test(struct_extent_has_the_padding_of_c),
        cmocka_unit_test(resized_bounds_are_sticky),
        cmocka_unit_test(struct_of_nothing_is_empty),
        cmocka_unit_test(parts_outlive_their_handles),
        cmocka_unit_test(long_chain_of_dups_is_freed),
        cmocka_unit_test(bad_arguments_are_refused),
        cmocka_unit_test(bottomless_nesting_is_refused),
        cmocka_unit_test(random_types_have_the_facts_of_their_typemap),
    };
    if (type_open()) return 1;
    random_open();
    cmocka_set_message_output(CM_OUTPUT_TAP);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    type_close();
    handle_close();
    return failed;
}
