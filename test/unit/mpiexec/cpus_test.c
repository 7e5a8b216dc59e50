/* cpus_test.c - cgroup quotas, on directories made up for it. */
#include "mpiexec/cpus.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char root[] = "/tmp/tern-cpus-XXXXXX";

static void make(const char *path, const char *text)
{
    char full[256];
    snprintf(full, sizeof full, "%s/%s", root, path);
    if (!text) {
        assert_int_equal(mkdir(full, 0700), 0);
        return;
    }
    FILE *f = fopen(full, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static int quota(const char *self)
{
    char path[256];
    make("self", self);
    snprintf(path, sizeof path, "%s/self", root);
    return cpus_cgroup_quota(path, root);
}

static void version_2(void **state)
{
    (void)state;
    assert_int_equal(quota("0::/\n"), 0);
    assert_int_equal(quota("0::/a\n"), 3);      /* 2.5 cpus, rounded up */
    assert_int_equal(quota("0::/a/wide\n"), 3); /* the parent's counts too */
    assert_int_equal(quota("0::/a/narrow\n"), 1);
    assert_int_equal(quota("0::/a/free\n"), 3);     /* "max" */
    assert_int_equal(quota("0::/a/unseen/b\n"), 3); /* not visible: what is above it counts */
}

static void version_1(void **state)
{
    (void)state;
    assert_int_equal(quota("3:cpuset:/\n2:cpu,cpuacct:/job\n"), 2);
    assert_int_equal(quota("3:cpuset:/job\n"), 0);
    assert_int_equal(quota("2:cpuacct:/job\n"), 0);
    assert_int_equal(quota("2:cpu:/\n"), 0); /* -1 */
    assert_int_equal(quota("2:cpu:/job\n0::/a/narrow\n"), 1);
}

static void nonsense(void **state)
{
    (void)state;
    assert_int_equal(quota(""), 0);
    assert_int_equal(quota("::\n:\nxx\n0:\n"), 0);
    assert_int_equal(cpus_cgroup_quota("/no/such/file", root), 0);
    assert_true(cpus_usable() >= 1);
    assert_true(cpus_usable() <= sysconf(_SC_NPROCESSORS_CONF));
}

static int set_up(void **state)
{
    (void)state;
    if (!mkdtemp(root)) return -1;
    make("a", NULL);
    make("a/cpu.max", "250000 100000\n");
    make("a/wide", NULL);
    make("a/wide/cpu.max", "800000 100000\n");
    make("a/narrow", NULL);
    make("a/narrow/cpu.max", "5000 100000\n");
    make("a/free", NULL);
    make("a/free/cpu.max", "max 100000\n");
    make("cpu", NULL);
    make("cpu/cpu.cfs_quota_us", "-1\n");
    make("cpu/cpu.cfs_period_us", "100000\n");
    make("cpu/job", NULL);
    make("cpu/job/cpu.cfs_quota_us", "200000\n");
    make("cpu/job/cpu.cfs_period_us", "100000\n");
    return 0;
}

static int tear_down(void **state)
{
    char command[64];
    (void)state;
    snprintf(command, sizeof command, "rm -r %s", root);
    return system(command);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(version_2), cmocka_unit_test(version_1),
                                       cmocka_unit_test(nonsense)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
