/* info_env_test.c - the facts of the process's start as an info object. */
#include "obj/info_env.h"
#include "base/err.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

static void arguments_are_those_given(void **state)
{
    char a[] = "prog", b[] = "one", c[] = "two words";
    char *argv[] = {a, b, c, NULL};
    struct info *i = info_new_env(3, argv);
    (void)state;
    assert_string_equal(info_get(i, "command"), "prog");
    assert_string_equal(info_get(i, "argv"), "one two words");
    info_free(i);
    i = info_new_env(9, argv); /* ends where the array does */
    assert_string_equal(info_get(i, "argv"), "one two words");
    info_free(i);
}

static void without_arguments_the_system_is_asked(void **state)
{
    struct info *i = info_new_env(0, NULL);
    (void)state;
    assert_non_null(strstr(info_get(i, "command"), "info_env_test"));
    assert_null(info_get(i, "argv"));
    assert_string_equal(info_get(i, "maxprocs"), "1"); /* no launcher */
    assert_non_null(info_get(i, "host"));
    assert_non_null(info_get(i, "arch"));
    assert_int_equal(info_get(i, "wdir")[0], '/');
    info_free(i);
}

static void values_are_cut_at_the_limit(void **state)
{
    char a[] = "prog", b[3000];
    char *argv[] = {a, b, a, NULL};
    (void)state;
    memset(b, 'b', sizeof b - 1);
    b[sizeof b - 1] = 0;
    struct info *i = info_new_env(3, argv);
    assert_int_equal(strlen(info_get(i, "argv")), MPI_MAX_INFO_VAL - 1);
    info_free(i);
}

static void the_predefined_object_is_one(void **state)
{
    struct info *env = info_env();
    (void)state;
    assert_ptr_equal(info_of(MPI_INFO_ENV), env);
    assert_ptr_equal(info_env(), env);
    assert_ptr_equal(info_handle(env), MPI_INFO_ENV);
    assert_non_null(info_get(env, "host"));
}

static void the_launcher_tells_the_size(void **state)
{
    (void)state;
    setenv("TERN_JOB_RANK", "3", 1);
    setenv("PMI_SIZE", "17", 1);
    struct info *i = info_new_env(0, NULL);
    unsetenv("TERN_JOB_RANK");
    unsetenv("PMI_SIZE");
    assert_string_equal(info_get(i, "maxprocs"), "17");
    info_free(i);
}

int main(void)
{
    unsetenv("TERN_JOB_RANK");
    unsetenv("PMIX_NAMESPACE");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arguments_are_those_given),
        cmocka_unit_test(without_arguments_the_system_is_asked),
        cmocka_unit_test(values_are_cut_at_the_limit),
        cmocka_unit_test(the_predefined_object_is_one),
        cmocka_unit_test(the_launcher_tells_the_size),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
