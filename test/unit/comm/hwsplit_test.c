/* hwsplit_test.c - names, colors and the level that divides, over several nodes. */
#include "comm/hwsplit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>

/* A process on a cpu of a node with 2 packages of 2 L3 caches of 2 cores. */
static struct machine_place on(int node, int cpu)
{
    return (struct machine_place){node, {cpu / 4, cpu / 4, cpu / 2, -1, -1, cpu, cpu}};
}

static const struct machine_place unbound = {0, {-1, -1, -1, -1, -1, -1, -1}}, absent = {-1, {-1, -1, -1, -1, -1, -1, -1}};

static int divides(const struct machine_place *p, int n) { return hw_dividing_level(p, n, NULL, 0, sizeof *p); }

static void names_go_both_ways(void **state)
{
    char name[HW_NAME];
    (void)state;
    for (int level = HW_NODE; level < MACHINE_LEVELS; level++) assert_int_equal(hw_level(hw_name(level, name)), level);
    assert_int_equal(hw_level("NUMANode"), MACHINE_NUMA);
    assert_int_equal(hw_level("HWLOC://package"), MACHINE_PACKAGE);
    assert_int_equal(hw_level("machine"), HW_NODE);
    assert_int_equal(hw_level("hwloc://"), HW_NONE);
    assert_int_equal(hw_level("hwloc://hwloc://PU"), HW_NONE);
    assert_int_equal(hw_level("Socket "), HW_NONE);
}

static void colors_tell_instances_apart(void **state)
{
    struct machine_place a = on(0, 2), b = on(0, 3), c = on(1, 2);
    (void)state;
    assert_true(hw_color(&a, MACHINE_L3) >= 0);
    assert_true(hw_color(&a, MACHINE_L3) == hw_color(&b, MACHINE_L3));
    assert_true(hw_color(&a, MACHINE_CORE) != hw_color(&b, MACHINE_CORE));
    assert_true(hw_color(&a, MACHINE_L3) != hw_color(&c, MACHINE_L3)); /* index 1 on another node */
    assert_true(hw_color(&a, HW_NODE) == hw_color(&unbound, HW_NODE));
    assert_true(hw_color(&a, HW_NODE) != hw_color(&c, HW_NODE));
    assert_true(hw_color(&unbound, MACHINE_PU) == -1);
    assert_true(hw_color(&absent, HW_NODE) == -1);
}

static void the_widest_level_divides(void **state)
{
    struct machine_place nodes[] = {on(0, 0), on(0, 7), on(1, 0)}, packages[] = {on(3, 0), on(3, 4)}, caches[] = {on(0, 4), on(0, 6)},
                         cores[] = {on(0, 4), on(0, 5)}, same[] = {on(0, 4), on(0, 4)};
    (void)state;
    assert_int_equal(divides(nodes, 3), HW_NODE);
    assert_int_equal(divides(packages, 2), MACHINE_PACKAGE);
    assert_int_equal(divides(caches, 2), MACHINE_L3);
    assert_int_equal(divides(cores, 2), MACHINE_CORE);
    assert_int_equal(divides(same, 2), HW_NONE);
    assert_int_equal(divides(same, 1), HW_NONE);
}

static void who_is_nowhere_divides_too(void **state)
{
    struct machine_place one[] = {on(0, 0), on(0, 1), unbound}, none[] = {unbound, unbound}, left[] = {on(0, 0), absent, on(0, 1)};
    (void)state;
    assert_int_equal(divides(one, 3), MACHINE_PACKAGE); /* two of three are in one package and no other */
    assert_int_equal(divides(none, 2), HW_NONE);
    assert_int_equal(divides(left, 3), MACHINE_CORE); /* who takes no part does not count */
}

static void two_groups_count_together(void **state)
{
    struct machine_place here[] = {on(0, 0), on(0, 1)}, there[] = {on(0, 2)}, far[] = {on(1, 0)};
    (void)state;
    assert_int_equal(hw_dividing_level(here, 2, there, 1, sizeof here[0]), MACHINE_L3);
    assert_int_equal(hw_dividing_level(here, 2, far, 1, sizeof here[0]), HW_NODE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_go_both_ways),         cmocka_unit_test(colors_tell_instances_apart),
        cmocka_unit_test(the_widest_level_divides),   cmocka_unit_test(who_is_nowhere_divides_too),
        cmocka_unit_test(two_groups_count_together),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
