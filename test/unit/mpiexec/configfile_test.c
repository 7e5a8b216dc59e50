/* configfile_test.c - words, quotes and comments of a configuration file's line. */
#include "mpiexec/configfile.h"
#include "mpiexec/options.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Not called here; the file that is tested refers to it. */
int options_parse(struct spec *s, int argc, char **argv)
{
    (void)s, (void)argc, (void)argv;
    abort();
}

/* The words of a line with '|' between; "!" when a quote is open. */
static const char *split(const char *line)
{
    static char all[256];
    struct strv words = {0};
    all[0] = 0;
    bool closed = configfile_split(line, &words);
    for (int i = 0; i < words.n; i++) {
        snprintf(all + strlen(all), sizeof all - strlen(all), "%s%s", i ? "|" : "", words.v[i]);
        free(words.v[i]);
    }
    strv_free(&words);
    return closed ? all : "!";
}

static void words(void **state)
{
    (void)state;
    assert_string_equal(split(""), "");
    assert_string_equal(split(" \t\r\n"), "");
    assert_string_equal(split("-n 2  prog\targ\n"), "-n|2|prog|arg");
    assert_string_equal(split("# nothing"), "");
    assert_string_equal(split("a b # c"), "a|b");
    assert_string_equal(split("a b#c"), "a|b#c");
}

static void quotes(void **state)
{
    (void)state;
    assert_string_equal(split("'a b' \"c d\""), "a b|c d");
    assert_string_equal(split("a'b c'd"), "ab cd");
    assert_string_equal(split("'' x"), "|x");
    assert_string_equal(split("\"it's\" 'say \"x\"'"), "it's|say \"x\"");
    assert_string_equal(split("a\\ b \\' \\\\"), "a b|'|\\");
    assert_string_equal(split("'a\\b' \"a\\\"b\""), "a\\b|a\"b");
    assert_string_equal(split("'# x' \\#"), "# x|#");
    assert_string_equal(split("a 'b"), "!");
    assert_string_equal(split("a \"b\\\""), "!");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(words), cmocka_unit_test(quotes)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
