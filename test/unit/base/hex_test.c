/* hex_test.c - bytes become digits and bytes again; what is no digit, or ends early, is refused. */
#include "base/hex.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void there_and_back(void **state)
{
    uint8_t bytes[256], again[256];
    char text[513], want[3];
    (void)state;
    for (int i = 0; i < 256; i++) bytes[i] = (uint8_t)i;
    for (size_t n = 0; n <= 256; n += 128) {
        assert_ptr_equal(hex_put(text, bytes, n), text + 2 * n);
        assert_int_equal(strlen(text), 2 * n);
        assert_true(hex_get(text, again, n) && !memcmp(again, bytes, n));
    }
    for (int i = 0; i < 256; i++) {
        snprintf(want, sizeof want, "%02x", (unsigned)i);
        assert_memory_equal(text + 2 * i, want, 2);
    }
}

static void no_digits(void **state)
{
    static const char *const cases[] = {"", "1", "12", "123", "g234", "1g34", "12/4", "123:", "12`4", "AB12", "12 4", "-123"};
    uint8_t bytes[2];
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *exact = strdup(cases[i]); /* reading behind it is found by the address sanitizer */
        assert_false(hex_get(exact, bytes, 2));
        free(exact);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(there_and_back), cmocka_unit_test(no_digits)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
