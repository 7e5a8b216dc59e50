/* soft_test.c - sets of numbers of processes: what a plain search of all members finds. */
#include "dpm/soft.h"
#include "base/err.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static void finds(const char *set, int most, int expected)
{
    int n = 0;
    assert_int_equal(soft_largest(set, most, &n), 0);
    assert_int_equal(n, expected);
}

static void examples(void **state)
{
    (void)state;
    finds("4", 4, 4);
    finds("0:8", 3, 3);
    finds("1:8:2,16", 15, 7);
    finds("1:8:2,16", 16, 16);
    finds("16,1:8:2", 20, 16);
    finds("8:1:-3", 7, 5);
    finds("8:1:-3", 8, 8);
    finds("-3:2", 9, 2);
}

static void refusals(void **state)
{
    static const char *const bad[] = {"", "x", "1,", ",1", "1:", "1:2:", "1:2:0", "1:2:3:4", "1 2", "5:9", "9:5", "0", "-4:-1", "99999999999999999999"};
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        int n = 77;
        assert_int_equal(soft_largest(bad[i], 4, &n), TERN_ERR_INFO);
        assert_int_equal(n, 77);
    }
}

/* All small triplets against their members one by one. */
static void all_small(void **state)
{
    (void)state;
    for (int a = -3; a < 9; a++)
        for (int b = -3; b < 9; b++)
            for (int s = -4; s < 5; s++)
                for (int most = 1; most < 9 && s; most++) {
                    char set[40];
                    int best = 0, n = 0;
                    for (int i = a; s > 0 ? i <= b : i >= b; i += s)
                        if (i > best && i <= most) best = i;
                    snprintf(set, sizeof set, "%d:%d:%d", a, b, s);
                    assert_int_equal(soft_largest(set, most, &n), best ? 0 : TERN_ERR_INFO);
                    assert_int_equal(n, best);
                }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(examples), cmocka_unit_test(refusals), cmocka_unit_test(all_small)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
