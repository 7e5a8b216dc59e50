/* text_test.c - what is printed into a text is all there, however long, and a text without memory for it is none. */
#include "base/text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static bool refuse;

FILE *__real_open_memstream(char **text, size_t *n);
FILE *__wrap_open_memstream(char **text, size_t *n);
FILE *__wrap_open_memstream(char **text, size_t *n) { return refuse ? NULL : __real_open_memstream(text, n); }

static void count_to(FILE *f, const void *what)
{
    for (int i = 0; i < *(const int *)what; i++) fprintf(f, "%d\n", i);
}

static void all_is_there(void **state)
{
    static const struct {
        int n;
        size_t length;
    } cases[] = {{0, 0}, {3, 6}, {100000, 10 * 2 + 90 * 3 + 900 * 4 + 9000 * 5 + 90000 * 6}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *text = text_of(count_to, &cases[i].n), *at = text;
        assert_non_null(text);
        assert_int_equal(strlen(text), cases[i].length);
        for (int k = 0; k < cases[i].n; k++) assert_int_equal(strtol(at, &at, 10), k);
        free(text);
    }
}

static void no_memory_no_text(void **state)
{
    int n = 3;
    (void)state;
    refuse = true;
    assert_null(text_of(count_to, &n));
    refuse = false;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_is_there), cmocka_unit_test(no_memory_no_text)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
