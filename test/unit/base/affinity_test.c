/* affinity_test.c - masks of processes, on systems of any size: the system's answer is simulated. */
#include "base/affinity.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <errno.h>
#include <sched.h>
#include <string.h>

static size_t system_bytes; /* shorter sets are refused */
static int first[2], last[2]; /* cpus of processes 0 and 1; there is no other one */

int __wrap_sched_getaffinity(pid_t, size_t, cpu_set_t *);

int __wrap_sched_getaffinity(pid_t pid, size_t n, cpu_set_t *set)
{
    errno = pid > 1 ? ESRCH : EINVAL;
    if (pid > 1 || n < system_bytes) return -1;
    memset(set, 0, n);
    for (int i = first[pid]; i <= last[pid]; i++) CPU_SET_S((size_t)i, n, set);
    return 0;
}

static void set_cpus(int pid, int from, int to)
{
    first[pid] = from;
    last[pid] = to;
}

static void cpus_are_counted(void **state)
{
    (void)state;
    system_bytes = 8;
    set_cpus(0, 3, 5);
    assert_int_equal(affinity_count(0), 3);
    assert_int_equal(affinity_count(2), 0);
    system_bytes = 1000; /* 8000 cpus */
    set_cpus(0, 1000, 7999);
    assert_int_equal(affinity_count(0), 7000);
    system_bytes = (size_t)1 << 30;
    assert_int_equal(affinity_count(0), 0);
}

static void a_mask_lies_within_another_one(void **state)
{
    static const struct {
        int from, to;
        bool within; /* cpus 10 to 5000 */
    } table[] = {{10, 5000, true}, {12, 12, true}, {5000, 5000, true}, {9, 20, false}, {5001, 5001, false}, {0, 6000, false}};
    (void)state;
    system_bytes = 1000;
    set_cpus(1, 10, 5000);
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        set_cpus(0, table[i].from, table[i].to);
        assert_int_equal(affinity_is_within(0, 1), table[i].within);
    }
    assert_false(affinity_is_within(0, 2));
    assert_false(affinity_is_within(2, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cpus_are_counted),
        cmocka_unit_test(a_mask_lies_within_another_one),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
