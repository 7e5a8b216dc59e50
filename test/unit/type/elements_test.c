/* elements_test.c - counting whole and basic elements of a number of bytes (3.2.5 and 5.1.11). */
#include "reference.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void whole_elements(void **state)
{
    (void)state;
    struct type *t, *empty;
    assert_int_equal(type_contiguous(3, type_of(MPI_INT), &t), 0);
    assert_int_equal(type_contiguous(0, type_of(MPI_INT), &empty), 0);
    assert_int_equal(type_count_whole(t, 0), 0);
    assert_int_equal(type_count_whole(t, 24), 2);
    assert_int_equal(type_count_whole(t, 20), MPI_UNDEFINED);
    assert_int_equal(type_count_elements(t, 20), 5);
    assert_int_equal(type_count_elements(t, 21), MPI_UNDEFINED);
    assert_int_equal(type_count_whole(empty, 0), 0);
    assert_int_equal(type_count_whole(empty, 4), MPI_UNDEFINED);
    assert_int_equal(type_count_elements(empty, 4), MPI_UNDEFINED);
    type_unref(t);
    type_unref(empty);
}

static void halves_of_pairs_count_separately(void **state)
{
    (void)state;
    const struct type *t = type_of(MPI_DOUBLE_INT);
    assert_int_equal(type_count_elements(t, 12), 2);
    assert_int_equal(type_count_elements(t, 20), 3);
    assert_int_equal(type_count_elements(t, 22), MPI_UNDEFINED);
}

static void random_types_count_as_their_typemap(void **state)
{
    (void)state;
    for (int64_t i = test_count(10000) / 5 + 1; i > 0; i--) {
        struct ref r;
        struct type *t = random_type((int)random_int(1, 5), 1000, &r);
        int64_t at = 0, turns = random_int(0, 2), base = turns * t->size;
        for (int64_t k = 0; k < r.n; k++) {
            int64_t inside = random_int(1, r.items[k].size);
            assert_int_equal(type_bytes_of_elements(t, turns * r.n + k), base + at);
            assert_int_equal(type_count_elements(t, base + at), turns * r.n + k);
            if (inside < r.items[k].size) assert_int_equal(type_count_elements(t, base + at + inside), MPI_UNDEFINED);
            at += r.items[k].size;
        }
        type_unref(t);
        ref_close(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_elements),
        cmocka_unit_test(halves_of_pairs_count_separately),
        cmocka_unit_test(random_types_count_as_their_typemap),
    };
    if (type_open()) return 1;
    random_open();
    cmocka_set_message_output(CM_OUTPUT_TAP);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    type_close();
    handle_close();
    return failed;
}
