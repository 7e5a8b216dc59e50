/* var_test.c - variables: defaults, the environment, suffixes, and values that are refused in words. */
#include "base/var.h"
#include "base/err.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int clean(void **state)
{
    (void)state;
    var_close();
    for (int id = 0; id < VAR_COUNT; id++) unsetenv(var_table[id].name);
    return 0;
}

/* Every default in the table is a value of its kind, and every row says what it means. */
static void defaults_parse(void **state)
{
    (void)state;
    assert_int_equal(var_open(), 0);
    for (int id = 0; id < VAR_COUNT; id++) {
        assert_false(var_is_set((enum var_id)id));
        assert_memory_equal(var_table[id].name, "TERN_", 5);
        assert_true(strlen(var_table[id].meaning) > 10);
        for (int other = 0; other < id; other++) assert_string_not_equal(var_table[id].name, var_table[other].name);
    }
    assert_string_equal(var_text(VAR_SPIN), "auto");
    assert_int_equal(var_int(VAR_SPIN), 0);
}

static void environment_comes_before_defaults(void **state)
{
    (void)state;
    setenv("TERN_SPIN", "always", 1);
    setenv("TERN_SPIN_MAX", "77", 1);
    setenv("TERN_COPY_NT", "3M", 1);
    setenv("TERN_TRANSPORTS", "self,tcp", 1);
    setenv("TERN_CMA", "", 1); /* empty is not set */
    assert_int_equal(var_open(), 0);
    assert_int_equal(var_int(VAR_SPIN), 2);
    assert_int_equal(var_int(VAR_SPIN_MAX), 77);
    assert_int_equal(var_int(VAR_COPY_NT), 3 << 20);
    assert_string_equal(var_text(VAR_TRANSPORTS), "self,tcp");
    assert_true(var_is_set(VAR_SPIN));
    assert_false(var_is_set(VAR_CMA));
    assert_string_equal(var_text(VAR_CMA), "auto");
}

/* As with getenv: names are compared whole, and an entry without a value is none. */
static void the_first_of_two_entries_counts(void **state)
{
    char *own[] = {"TERN_SPIN_MAX", "TERN_SPIN_MAXIMUM=3", "TERN_SPIN=always", "TERN_SPIN_MAX=5", "TERN_SPIN_MAX=6", NULL};
    char **before = environ;
    (void)state;
    environ = own;
    int rc = var_open();
    environ = before;
    assert_int_equal(rc, 0);
    assert_int_equal(var_int(VAR_SPIN_MAX), 5);
    assert_string_equal(var_text(VAR_SPIN), "always");
    assert_false(var_is_set(VAR_CMA));
}

static void var_open_reads_once(void **state)
{
    (void)state;
    setenv("TERN_SPIN_MAX", "1", 1);
    assert_int_equal(var_open(), 0);
    setenv("TERN_SPIN_MAX", "2", 1);
    assert_int_equal(var_open(), 0);
    assert_int_equal(var_int(VAR_SPIN_MAX), 1);
}

static void sizes_have_suffixes(void **state)
{
    static const struct { const char *text; int64_t value; } good[] = {
        {"0", 0}, {"4096", 4096}, {"0x10", 16}, {"1k", 1 << 10}, {"2K", 2 << 10}, {"3m", 3 << 20}, {"4G", (int64_t)4 << 30}};
    (void)state;
    assert_int_equal(var_open(), 0);
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        assert_int_equal(var_set(VAR_COPY_NT, good[i].text), 0);
        assert_int_equal(var_int(VAR_COPY_NT), good[i].value);
    }
}

static void refused(enum var_id id, const char *text)
{
    assert_int_equal(var_open(), 0);
    int64_t before = var_int(id);
    err_clear();
    assert_int_equal(var_set(id, text), TERN_ERR_ARG);
    assert_int_equal(var_int(id), before);
    assert_non_null(strstr(err_words(), var_table[id].name));
    assert_non_null(strstr(err_words(), text));
}

static void nonsense_is_refused_in_words(void **state)
{
    static const char *const sizes[] = {"x", "1q", "1KB", "-1", "9999999999G", "99999999999999999999", "1 "};
    static const char *const choices[] = {"perhaps", "aut", "auto|never", "autox", "|"};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) refused(VAR_COPY_NT, sizes[i]);
    for (size_t i = 0; i < ARRAY_LEN(choices); i++) refused(VAR_SPIN, choices[i]);
    refused(VAR_SPIN_MAX, "1K"); /* a number that is no size has no suffix */
    refused(VAR_SPIN_MAX, "ten");
}

static void words_are_one_or_several(void **state)
{
    static const char *const wrong[] = {"tipes", "types,", ",rma", "types,,rma", "off,rma", "types, rma", "types|rma"};
    (void)state;
    assert_int_equal(var_open(), 0);
    assert_string_equal(var_text(VAR_CHECK), "off");
    assert_false(var_has(VAR_CHECK, "types") || var_has(VAR_CHECK, "rma"));
    assert_int_equal(var_set(VAR_CHECK, "rma"), 0);
    assert_false(var_has(VAR_CHECK, "types"));
    assert_true(var_has(VAR_CHECK, "rma"));
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) refused(VAR_CHECK, wrong[i]);
    assert_int_equal(var_set(VAR_CHECK, "rma,types"), 0);
    assert_true(var_has(VAR_CHECK, "types") && var_has(VAR_CHECK, "rma"));
    assert_int_equal(var_set(VAR_CHECK, "off"), 0);
    assert_false(var_has(VAR_CHECK, "types") || var_has(VAR_CHECK, "rma") || var_has(VAR_CHECK, "nonsense"));
}

static void bad_environment_fails_var_open(void **state)
{
    (void)state;
    setenv("TERN_SPIN_MAX", "ten", 1);
    assert_int_equal(var_open(), TERN_ERR_ARG);
    assert_non_null(strstr(err_words(), "TERN_SPIN_MAX"));
    assert_non_null(strstr(err_words(), "ten"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(defaults_parse, clean, clean),
        cmocka_unit_test_setup_teardown(environment_comes_before_defaults, clean, clean),
        cmocka_unit_test_setup_teardown(the_first_of_two_entries_counts, clean, clean),
        cmocka_unit_test_setup_teardown(var_open_reads_once, clean, clean),
        cmocka_unit_test_setup_teardown(sizes_have_suffixes, clean, clean),
        cmocka_unit_test_setup_teardown(nonsense_is_refused_in_words, clean, clean),
        cmocka_unit_test_setup_teardown(words_are_one_or_several, clean, clean),
        cmocka_unit_test_setup_teardown(bad_environment_fails_var_open, clean, clean),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
