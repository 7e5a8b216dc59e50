/* envelope_test.c - what get_envelope and get_contents tell of each constructor (tables of 5.1.13). */
#include "base/err.h"
#include "reference.h"
#include "type/envelope.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* Contents as the standard lists them. */
struct expected {
    int combiner;
    int64_t ints, addresses, counts, types;
    int i[16];
    MPI_Aint a[8];
    MPI_Count c[16];
    MPI_Datatype d[4];
};

static void assert_contents(struct type *t, const struct expected *x)
{
    struct type_envelope e;
    int i[16] = {0};
    MPI_Aint a[8] = {0};
    MPI_Count c[16] = {0};
    MPI_Datatype d[4] = {0};
    type_get_envelope(t, &e);
    assert_int_equal(e.combiner, x->combiner);
    assert_int_equal(e.ints, x->ints);
    assert_int_equal(e.addresses, x->addresses);
    assert_int_equal(e.counts, x->counts);
    assert_int_equal(e.types, x->types);
    assert_int_equal(type_contents(t, i, a, c, d), 0);
    assert_memory_equal(i, x->i, sizeof i);
    assert_memory_equal(a, x->a, sizeof a);
    assert_memory_equal(c, x->c, sizeof c);
    assert_memory_equal(d, x->d, sizeof d);
    for (int64_t k = 0; k < e.types; k++) type_unref(type_of(d[k])); /* the references that were handed out */
}

/* `small` is what the int function made; `large` what its _c twin records for the same arguments. */
static void check(struct type *t, const struct expected *small, const struct expected *large)
{
    assert_contents(t, small);
    if (large) {
        type_set_large(t);
        assert_contents(t, large);
    }
    type_unref(t);
}

static void predefined_types_have_no_contents(void **state)
{
    (void)state;
    struct type_envelope e;
    type_get_envelope(type_of(MPI_FLOAT), &e);
    assert_int_equal(e.combiner, MPI_COMBINER_NAMED);
    assert_int_equal(e.ints + e.addresses + e.counts + e.types, 0);
    assert_int_equal(type_contents(type_of(MPI_FLOAT), NULL, NULL, NULL, NULL), TERN_ERR_TYPE);
    assert_non_null(strstr(err_words(), "MPI_FLOAT"));
}

static void contiguous_and_vectors(void **state)
{
    (void)state;
    struct type *t, *in = type_of(MPI_INT);
    assert_int_equal(type_contiguous(3, in, &t), 0);
    check(t, &(struct expected){MPI_COMBINER_CONTIGUOUS, 1, 0, 0, 1, .i = {3}, .d = {MPI_INT}},
          &(struct expected){MPI_COMBINER_CONTIGUOUS, 0, 0, 1, 1, .c = {3}, .d = {MPI_INT}});
    assert_int_equal(type_vector(3, 2, -5, TYPE_ELEMENTS, in, &t), 0);
    check(t, &(struct expected){MPI_COMBINER_VECTOR, 3, 0, 0, 1, .i = {3, 2, -5}, .d = {MPI_INT}},
          &(struct expected){MPI_COMBINER_VECTOR, 0, 0, 3, 1, .c = {3, 2, -5}, .d = {MPI_INT}});
    assert_int_equal(type_vector(3, 2, 40, TYPE_BYTES, in, &t), 0);
    check(t, &(struct expected){MPI_COMBINER_HVECTOR, 2, 1, 0, 1, .i = {3, 2}, .a = {40}, .d = {MPI_INT}},
          &(struct expected){MPI_COMBINER_HVECTOR, 0, 0, 3, 1, .c = {3, 2, 40}, .d = {MPI_INT}});
    assert_int_equal(type_dup(in, &t), 0);
    check(t, &(struct expected){MPI_COMBINER_DUP, 0, 0, 0, 1, .d = {MPI_INT}}, NULL);
    assert_int_equal(type_resized(in, -4, 16, &t), 0);
    check(t, &(struct expected){MPI_COMBINER_RESIZED, 0, 2, 0, 1, .a = {-4, 16}, .d = {MPI_INT}},
          &(struct expected){MPI_COMBINER_RESIZED, 0, 0, 2, 1, .c = {-4, 16}, .d = {MPI_INT}});
}

static void indexed_families(void **state)
{
    (void)state;
    const int64_t lens[] = {1, 2}, displs[] = {8, -4};
    struct type *t, *in = type_of(MPI_INT);
    assert_int_equal(type_indexed(2, lens, displs, TYPE_ELEMENTS, in, &t), 0);
    check(t, &(struct expected){MPI_COMBINER_INDEXED, 5, 0, 0, 1, .i = {2, 1, 2, 8, -4}, .d = {MPI_INT}},
          &(struct expected){MPI_COMBINER_INDEXED, 0, 0, 5, 1, .c = {2, 1, 2, 8, -4}, .d = {MPI_INT}});
    assert_int_equal(type_indexed(2, lens, displs, TYPE_BYTES, in, &t), 0);
    check(t, &(struct expected){MPI_COMBINER_HINDEXED, 3, 2, 0, 1, .i = {2, 1, 2}, .a = {8, -4}, .d = {MPI_INT}},
          &(struct expected){MPI_COMBINER_HINDEXED, 0, 0, 5, 1, .c = {2, 1, 2, 8, -4}, .d = {MPI_INT}});
    assert_int_equal(type_indexed_block(2, 7, displs, TYPE_ELEMENTS, in, &t), 0);
    check(t, &(struct expected){MPI_COMBINER_INDEXED_BLOCK, 4, 0, 0, 1, .i = {2, 7, 8, -4}, .d = {MPI_INT}},
          &(struct expected){MPI_COMBINER_INDEXED_BLOCK, 0, 0, 4, 1, .c = {2, 7, 8, -4}, .d = {MPI_INT}});
    assert_int_equal(type_indexed_block(2, 7, displs, TYPE_BYTES, in, &t), 0);
    check(t, &(struct expected){MPI_COMBINER_HINDEXED_BLOCK, 2, 2, 0, 1, .i = {2, 7}, .a = {8, -4}, .d = {MPI_INT}},
          &(struct expected){MPI_COMBINER_HINDEXED_BLOCK, 0, 0, 4, 1, .c = {2, 7, 8, -4}, .d = {MPI_INT}});
}

static void structs_keep_empty_members(void **state)
{
    (void)state;
    const int64_t lens[] = {1, 0}, displs[] = {8, -4};
    struct type *members[] = {type_of(MPI_INT), type_of(MPI_CHAR)}, *t;
    assert_int_equal(type_struct(2, lens, displs, members, &t), 0);
    check(t,
          &(struct expected){MPI_COMBINER_STRUCT, 3, 2, 0, 2, .i = {2, 1, 0}, .a = {8, -4}, .d = {MPI_INT, MPI_CHAR}},
          &(struct expected){MPI_COMBINER_STRUCT, 0, 0, 5, 2, .c = {2, 1, 0, 8, -4}, .d = {MPI_INT, MPI_CHAR}});
}

static void arrays(void **state)
{
    (void)state;
    const int64_t sizes[] = {4, 5}, subs[] = {2, 3}, starts[] = {1, 2};
    const int distribs[] = {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC}, dargs[] = {MPI_DISTRIBUTE_DFLT_DARG, 2};
    const int psizes[] = {2, 3};
    struct type *t, *in = type_of(MPI_INT);
    assert_int_equal(type_subarray(2, sizes, subs, starts, MPI_ORDER_C, in, &t), 0);
    check(
        t,
        &(struct expected){MPI_COMBINER_SUBARRAY, 8, 0, 0, 1, .i = {2, 4, 5, 2, 3, 1, 2, MPI_ORDER_C}, .d = {MPI_INT}},
        &(struct expected){MPI_COMBINER_SUBARRAY, 2, 0, 6, 1, .i = {2, MPI_ORDER_C}, .c = {4, 5, 2, 3, 1, 2},
                           .d = {MPI_INT}});
    assert_int_equal(type_darray(6, 4, 2, sizes, distribs, dargs, psizes, MPI_ORDER_FORTRAN, in, &t), 0);
    check(t,
          &(struct expected){MPI_COMBINER_DARRAY, 12, 0, 0, 1,
                             .i = {6, 4, 2, 4, 5, MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_DFLT_DARG,
                                   2, 2, 3, MPI_ORDER_FORTRAN},
                             .d = {MPI_INT}},
          &(struct expected){MPI_COMBINER_DARRAY, 10, 0, 2, 1,
                             .i = {6, 4, 2, MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_DFLT_DARG, 2, 2,
                                   3, MPI_ORDER_FORTRAN},
                             .c = {4, 5}, .d = {MPI_INT}});
}

/* 5.1.13: datatypes handed out are the caller's to free, and stay usable after the outer type is gone. */
static void derived_parts_get_a_reference(void **state)
{
    (void)state;
    struct type *inner, *outer;
    MPI_Datatype d;
    int n;
    assert_int_equal(type_contiguous(3, type_of(MPI_INT), &inner), 0);
    MPI_Datatype h = type_handle(inner);
    assert_int_equal(type_contiguous(2, inner, &outer), 0);
    type_unref(inner);
    assert_int_equal(type_contents(outer, &n, NULL, NULL, &d), 0);
    assert_ptr_equal(d, h);
    type_unref(outer);
    assert_ptr_equal(type_of(d), inner);
    assert_int_equal(inner->size, 12);
    type_unref(inner);
    assert_null(type_of(d));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(predefined_types_have_no_contents),
        cmocka_unit_test(contiguous_and_vectors),
        cmocka_unit_test(indexed_families),
        cmocka_unit_test(structs_keep_empty_members),
        cmocka_unit_test(arrays),
        cmocka_unit_test(derived_parts_get_a_reference),
    };
    if (type_open()) return 1;
    cmocka_set_message_output(CM_OUTPUT_TAP);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    type_close();
    handle_close();
    return failed;
}
