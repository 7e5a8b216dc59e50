/* f90_test.c - types for selected kinds: chosen by precision and range, made once (MPI-5.0 section 19.1.9). */
#include "base/err.h"
#include "reference.h"
#include "type/f90.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static struct type *made(int combiner, int p, int r)
{
    struct type *t = NULL;
    assert_int_equal(type_f90(combiner, p, r, &t), 0);
    return t;
}

static void the_smallest_kind_that_suffices(void **state)
{
    (void)state;
    const int real = MPI_COMBINER_F90_REAL, cplx = MPI_COMBINER_F90_COMPLEX, integer = MPI_COMBINER_F90_INTEGER;
    assert_int_equal(made(real, 6, 37)->size, 4);
    assert_int_equal(made(real, 7, MPI_UNDEFINED)->size, 8);
    assert_int_equal(made(real, MPI_UNDEFINED, 38)->size, 8);
    assert_int_equal(made(real, 16, 308)->size, 16);
    assert_int_equal(made(cplx, 6, 37)->size, 8);
    assert_int_equal(made(cplx, 15, 307)->kind, KIND_C64);
    for (int r = 0; r <= 18; r++) {
        int64_t most = 1; /* 10^r - 1 must fit */
        for (int i = 0; i < r; i++) most *= 10;
        int64_t size = made(integer, MPI_UNDEFINED, r)->size;
        assert_true(size == 8 || most - 1 < (int64_t)1 << (8 * size - 1));
        assert_true(size == 1 || most - 1 >= (int64_t)1 << (4 * size - 1));
    }
}

static void equal_arguments_give_one_type(void **state)
{
    (void)state;
    struct type *t = made(MPI_COMBINER_F90_REAL, 10, 20);
    assert_ptr_equal(t, made(MPI_COMBINER_F90_REAL, 10, 20));
    assert_ptr_not_equal(t, made(MPI_COMBINER_F90_REAL, 10, 21));
    assert_ptr_not_equal(t, made(MPI_COMBINER_F90_COMPLEX, 10, 20));
    assert_true(t->predefined && t->committed);
    assert_ptr_equal(type_of(type_handle(t)), t);
}

static void what_no_kind_has_is_an_error(void **state)
{
    (void)state;
    struct type *t;
    assert_int_equal(type_f90(MPI_COMBINER_F90_REAL, 34, 1, &t), TERN_ERR_ARG);
    assert_int_equal(type_f90(MPI_COMBINER_F90_INTEGER, MPI_UNDEFINED, 39, &t), TERN_ERR_ARG);
    assert_int_equal(type_f90(MPI_COMBINER_F90_REAL, MPI_UNDEFINED, MPI_UNDEFINED, &t), TERN_ERR_ARG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_smallest_kind_that_suffices),
        cmocka_unit_test(equal_arguments_give_one_type),
        cmocka_unit_test(what_no_kind_has_is_an_error),
    };
    if (type_open()) return 1;
    cmocka_set_message_output(CM_OUTPUT_TAP);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    type_close();
    handle_close();
    return failed;
}
