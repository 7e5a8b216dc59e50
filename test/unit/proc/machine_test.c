/* machine_test.c - machines that are made up by TERN_MACHINE, the real one, and none. */
#include "proc/machine.h"
#include "base/err.h"
#include "base/var.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SMALL "pack:2 numa:1 l3:2 core:2 pu:1" /* 8 cpus, 4 L3 caches */

/* Begins anew with this description and list of cpus. */
static void machine(const char *description, const char *cpus)
{
    machine_close();
    var_close();
    setenv("TERN_MACHINE", description, 1);
    setenv("TERN_MACHINE_CPUS", cpus, 1);
    assert_int_equal(var_open(), 0);
}

static int with_module(void **state)
{
    char dir[4096];
    const char *top = getenv("top_builddir");
    (void)state;
    snprintf(dir, sizeof dir, "%s/lib/tern", top ? top : ".");
    setenv("TERN_MODULE_DIR", dir, 1);
    machine("", "");
    return 0;
}

static void need_hwloc(void)
{
    if (machine_open() != TERN_ERR_NOT_FOUND) return;
    print_message("# the library was built without hwloc\n");
    skip();
}

static void counts_are_those_of_the_description(void **state)
{
    static const int want[MACHINE_LEVELS] = {2, 2, 4, 0, 0, 8, 8};
    (void)state;
    need_hwloc();
    machine(SMALL, "");
    for (int i = 0; i < MACHINE_LEVELS; i++) assert_int_equal(machine_count(i), want[i]);
}

static void a_place_has_what_its_cpus_share(void **state)
{
    static const struct {
        const char *cpus;
        int32_t at[MACHINE_LEVELS];
    } cases[] = {
        {"", {0, 0, 0, -1, -1, 0, 0}},        {"5", {1, 1, 2, -1, -1, 5, 5}},
        {"7,1", {1, 1, 3, -1, -1, 7, 7}},     {"2-3", {0, 0, 1, -1, -1, -1, -1}},
        {"4-7,0", {1, 1, -1, -1, -1, -1, -1}}, {"0-7", {-1, -1, -1, -1, -1, -1, -1}},
    };
    struct machine_place p;
    (void)state;
    need_hwloc();
    for (size_t c = 0; c < ARRAY_LEN(cases); c++) {
        machine(SMALL, cases[c].cpus);
        assert_int_equal(machine_open(), 0);
        machine_place(&p);
        assert_int_equal(p.node, 0);
        assert_memory_equal(p.at, cases[c].at, sizeof p.at);
    }
}

static void nonsense_is_named(void **state)
{
    static const char *const lists[] = {"x", "8", "3-1", "1-", "-1", "1;2", ","};
    struct machine_place p;
    (void)state;
    need_hwloc();
    machine("pack:two", "");
    assert_int_equal(machine_open(), TERN_ERR_ARG);
    assert_non_null(strstr(err_words(), "TERN_MACHINE=pack:two"));
    assert_int_equal(machine_open(), TERN_ERR_ARG); /* also when asked again */
    for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
        machine(SMALL, lists[i]);
        assert_int_equal(machine_open(), TERN_ERR_ARG);
        assert_non_null(strstr(err_words(), "TERN_MACHINE_CPUS="));
        assert_int_equal(machine_count(MACHINE_PU), 0);
        machine_place(&p);
        assert_int_equal(p.at[MACHINE_PU], -1);
    }
}

static void without_the_module_all_is_unknown(void **state)
{
    struct machine_place p;
    (void)state;
    machine(SMALL, "");
    setenv("TERN_MODULE_DIR", "/nowhere", 1);
    assert_int_equal(machine_open(), TERN_ERR_NOT_FOUND);
    machine_place(&p);
    for (int i = 0; i < MACHINE_LEVELS; i++) {
        assert_int_equal(machine_count(i), 0);
        assert_int_equal(p.at[i], -1);
    }
}

/* The affinity mask may change between two questions. */
static void the_real_place_follows_the_mask(void **state)
{
    struct machine_place p;
    cpu_set_t before, one;
    int cpu = 0;
    (void)state;
    need_hwloc();
    assert_true(machine_count(MACHINE_PU) >= 1);
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    while (!CPU_ISSET(cpu, &before)) cpu++;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    machine_place(&p);
    assert_int_equal(sched_setaffinity(0, sizeof before, &before), 0);
    assert_true(p.at[MACHINE_PU] >= 0 && p.at[MACHINE_PU] < machine_count(MACHINE_PU));
    assert_true(p.at[MACHINE_CORE] >= 0);
    machine_place(&p);
    assert_true(CPU_COUNT(&before) > 1 ? p.at[MACHINE_PU] == -1 : p.at[MACHINE_PU] >= 0);
}

static void *ask(void *arg)
{
    struct machine_place p;
    machine_place(&p);
    *(int *)arg = machine_count(MACHINE_L3) * 100 + p.at[MACHINE_L3];
    return NULL;
}

static void threads_may_be_the_first_to_ask_together(void **state)
{
    pthread_t threads[4];
    int got[4];
    (void)state;
    need_hwloc();
    machine(SMALL, "6");
    for (int i = 0; i < 4; i++) assert_int_equal(pthread_create(&threads[i], NULL, ask, &got[i]), 0);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < 4; i++) assert_int_equal(got[i], 403);
}

static void distance_counts_the_levels_that_differ(void **state)
{
    struct machine_place a = {0, {0, 0, 0, -1, -1, 0, 0}}, b = a;
    (void)state;
    assert_int_equal(machine_distance(&a, &b), 0);
    b.at[MACHINE_PU] = 1;
    assert_int_equal(machine_distance(&a, &b), 1);
    b.at[MACHINE_CORE] = b.at[MACHINE_L3] = 1;
    assert_int_equal(machine_distance(&a, &b), 3);
    b.at[MACHINE_CORE] = -1; /* unknown counts as shared */
    assert_int_equal(machine_distance(&a, &b), 2);
    b.node = 1;
    assert_int_equal(machine_distance(&a, &b), MACHINE_LEVELS + 1);
    assert_int_equal(machine_distance(&b, &a), MACHINE_LEVELS + 1);
}

static int end(void **state)
{
    (void)state;
    machine_close();
    var_close();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(counts_are_those_of_the_description, with_module, end),
        cmocka_unit_test_setup_teardown(a_place_has_what_its_cpus_share, with_module, end),
        cmocka_unit_test_setup_teardown(nonsense_is_named, with_module, end),
        cmocka_unit_test_setup_teardown(without_the_module_all_is_unknown, with_module, end),
        cmocka_unit_test_setup_teardown(the_real_place_follows_the_mask, with_module, end),
        cmocka_unit_test_setup_teardown(threads_may_be_the_first_to_ask_together, with_module, end),
        cmocka_unit_test_setup_teardown(distance_counts_the_levels_that_differ, with_module, end),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
