/* logical_test.c - values of Fortran's LOGICAL count once and are what the logical operators read and write (20.4 of MPI-5.0). */
#include "base/var.h"
#include "type/logical.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static const int32_t yes = -1, no = 7, other = 3; /* what is not .FALSE. is true */

static void told_once_and_for_one_size(void **state)
{
    (void)state;
    int32_t t = 0, f = 0, in[2] = {5, 0}, out[2] = {1, 1};
    assert_false(logical_get(4, &t, &f));
    assert_int_equal(op_apply(op_of(MPI_LAND), in, out, 2, type_of(MPI_LOGICAL)), 0);
    assert_true(out[0] == 1 && out[1] == 0); /* untold: as C */
    assert_true(logical_set(4, &yes, &no));
    assert_false(logical_set(4, &no, &yes));
    assert_false(logical_set(8, "12345678", "87654321"));
    assert_true(logical_get(4, &t, &f));
    assert_true(t == yes && f == no);
    assert_false(logical_get(8, &t, &f));
}

static void operators_use_them(void **state)
{
    (void)state;
    const int32_t a[] = {yes, yes, no, no, other}, b[] = {yes, no, yes, no, yes};
    const struct {
        MPI_Op op;
        int32_t want[5];
    } row[] = {{MPI_LAND, {yes, no, no, no, yes}}, {MPI_LOR, {yes, yes, yes, no, yes}}, {MPI_LXOR, {no, yes, yes, no, no}}};
    for (size_t i = 0; i < ARRAY_LEN(row); i++) {
        int32_t out[5];
        assert_int_equal(op_apply3(op_of(row[i].op), a, b, out, 5, type_of(MPI_LOGICAL)), 0);
        assert_memory_equal(out, row[i].want, sizeof out);
        assert_int_equal(op_apply3(op_of(row[i].op), a, b, out, 5, type_of(MPI_LOGICAL4)), 0);
        assert_memory_equal(out, row[i].want, sizeof out);
    }
}

static void others_are_left_alone(void **state)
{
    (void)state;
    int32_t in = 5, out = 7;
    int64_t in8 = 5, out8 = 7;
    _Bool t = true, f = false;
    op_apply(op_of(MPI_LAND), &in, &out, 1, type_of(MPI_INT));
    assert_int_equal(out, 1);
    op_apply(op_of(MPI_LAND), &in8, &out8, 1, type_of(MPI_LOGICAL8));
    assert_int_equal(out8, 1);
    op_apply(op_of(MPI_LOR), &t, &f, 1, type_of(MPI_C_BOOL));
    assert_true(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(told_once_and_for_one_size),
        cmocka_unit_test(operators_use_them),
        cmocka_unit_test(others_are_left_alone),
    };
    if (var_open() || type_open() || op_open()) return 1;
    cmocka_set_message_output(CM_OUTPUT_TAP);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    op_close();
    type_close();
    var_close();
    handle_close();
    return failed;
}
