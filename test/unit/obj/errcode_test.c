/* errcode_test.c - users' error classes and codes: numbers are never reused, what depends on what, strings; threads. */
#include "obj/errcode.h"
#include "base/err.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <mpi.h>
#include <pthread.h>
#include <string.h>

static int close_codes(void **state)
{
    (void)state;
    errcode_close();
    return 0;
}

static void numbers_grow(void **state)
{
    (void)state;
    int last = *errcode_last(), n;
    assert_int_equal(last, MPI_ERR_LASTCODE);
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(i % 3 ? errcode_add(MPI_ERR_TAG, &n) : errcode_add_class(&n), 0);
        assert_true(n > last);
        assert_int_equal(*errcode_last(), n);
        last = n;
        if (i % 2) assert_int_equal(i % 3 ? errcode_remove(n) : errcode_remove_class(n), 0);
        assert_int_equal(*errcode_last(), n); /* it does not go back */
    }
}

static void a_class_with_codes_stays(void **state)
{
    int class, code, found = 0;
    (void)state;
    assert_int_equal(errcode_add_class(&class), 0);
    assert_int_equal(errcode_add(class, &code), 0);
    assert_true(errcode_class(code, &found));
    assert_int_equal(found, class);
    assert_int_equal(errcode_remove_class(class), TERN_ERR_ARG);
    assert_non_null(strstr(err_words(), "still has 1 error code,"));
    assert_int_equal(errcode_remove(code), 0);
    assert_false(errcode_class(code, &found));
    assert_int_equal(errcode_remove(code), TERN_ERR_ARG);
    assert_int_equal(errcode_remove_class(class), 0);
    assert_int_equal(errcode_add(class, &code), TERN_ERR_ARG);
    assert_int_equal(errcode_remove_class(MPI_ERR_TAG), TERN_ERR_ARG);
    assert_non_null(strstr(err_words(), "of the library"));
}

static void a_code_with_a_string_stays(void **state)
{
    int code;
    (void)state;
    assert_int_equal(errcode_add(MPI_ERR_TAG, &code), 0);
    assert_int_equal(errcode_set_string(code, "words"), 0);
    assert_int_equal(errcode_remove(code), TERN_ERR_ARG);
    assert_non_null(strstr(err_words(), "still has a string"));
    assert_int_equal(errcode_remove_string(code), 0);
    assert_int_equal(errcode_remove(code), 0);
}

static void strings(void **state)
{
    int class;
    char buf[8];
    (void)state;
    assert_int_equal(errcode_add_class(&class), 0);
    assert_true(errcode_string(class, buf, sizeof buf));
    assert_string_equal(buf, "");
    assert_int_equal(errcode_remove_string(class), TERN_ERR_ARG);
    assert_int_equal(errcode_set_string(class, "a longer one"), 0);
    assert_true(errcode_string(class, buf, sizeof buf));
    assert_string_equal(buf, "a longe"); /* cut, with its zero */
    assert_int_equal(errcode_remove_string(class), 0);
    assert_int_equal(errcode_remove_string(class), TERN_ERR_ARG);
    assert_int_equal(errcode_set_string(MPI_ERR_TAG, "no"), TERN_ERR_ARG);
    assert_false(errcode_string(class + 1, buf, sizeof buf));
}

enum { THREADS = 4, EACH = 500 };

static void *add_many(void *arg)
{
    int *code = arg, class;
    errcode_add_class(&class);
    for (int i = 0; i < EACH; i++) errcode_add(class, &code[i]);
    return NULL;
}

static void threads_get_different_numbers(void **state)
{
    static int code[THREADS][EACH];
    static bool seen[THREADS * (EACH + 1)];
    pthread_t t[THREADS];
    (void)state;
    memset(seen, 0, sizeof seen);
    for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&t[i], NULL, add_many, code[i]), 0);
    for (int i = 0; i < THREADS; i++) pthread_join(t[i], NULL);
    for (int i = 0; i < THREADS * EACH; i++) {
        int n = code[i / EACH][i % EACH] - MPI_ERR_LASTCODE - 1;
        assert_in_range(n, 0, THREADS * (EACH + 1) - 1);
        assert_false(seen[n]);
        seen[n] = true;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(numbers_grow, close_codes),
        cmocka_unit_test_teardown(a_class_with_codes_stays, close_codes),
        cmocka_unit_test_teardown(a_code_with_a_string_stays, close_codes),
        cmocka_unit_test_teardown(strings, close_codes),
        cmocka_unit_test_teardown(threads_get_different_numbers, close_codes),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
