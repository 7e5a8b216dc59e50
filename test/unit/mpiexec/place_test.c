/* place_test.c - mapping and binding on machines that hwloc makes up. */
#include "mpiexec/place.h"
#include "mpiexec/placeopt.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* 2 sockets, each with 2 L3 caches of 3 cores of 2 threads: cores 0-11, cpus 0-23, cpus 2c and 2c+1 on core c. */
#define MACHINE "package:2 l3:2 core:3 pu:2"

/* What the ranks are bound to, as "0-1 2-3 ..."; "-" = not bound. */
static const char *bound(const char *machine, const char *bind, const char *map, int threads, int n)
{
    static char words[1024];
    struct place_spec p = {0};
    struct place places[64];
    hwloc_topology_t t;
    int ppn = 0;
    if (bind) assert_int_equal(placeopt_bind(&p, bind), 0);
    if (map) assert_int_equal(placeopt_map(&p, map, &ppn), 0);
    hwloc_topology_init(&t);
    assert_int_equal(hwloc_topology_set_synthetic(t, machine), 0);
    assert_int_equal(hwloc_topology_load(t), 0);
    assert_int_equal(place_ranks(t, &p, threads, places, n), 0);
    words[0] = 0;
    for (int i = 0; i < n; i++) {
        char one[64] = "-";
        if (places[i].cpus) {
            hwloc_bitmap_list_snprintf(one, sizeof one, places[i].cpus);
            assert_int_equal(places[i].count, hwloc_bitmap_weight(places[i].cpus));
            hwloc_bitmap_free(places[i].cpus);
        } else {
            assert_int_equal(places[i].count, 0);
        }
        snprintf(words + strlen(words), sizeof words - strlen(words), "%s%s", i ? " " : "", one);
    }
    hwloc_topology_destroy(t);
    return words;
}

static void cores_in_order(void **state)
{
    (void)state;
    assert_string_equal(bound(MACHINE, "core", NULL, 0, 4), "0-1 2-3 4-5 6-7");
    assert_string_equal(bound(MACHINE, "core", "core", 0, 2), "0-1 2-3");
    assert_string_equal(bound(MACHINE, "hwthread", NULL, 0, 3), "0 1 2");
    assert_string_equal(bound(MACHINE, "none", NULL, 0, 2), "- -");
}

static void more_ranks_than_cores_start_over(void **state)
{
    (void)state;
    assert_string_equal(bound("core:2 pu:1", "core", NULL, 0, 5), "0 1 0 1 0");
}

static void threads_get_cores(void **state)
{
    (void)state;
    assert_string_equal(bound(MACHINE, "core", NULL, 3, 3), "0-5 6-11 12-17"); /* OMP_NUM_THREADS=3 */
    assert_string_equal(bound(MACHINE, "core", "slot:PE=2", 3, 2), "0-3 4-7"); /* said, so it counts more */
    assert_string_equal(bound(MACHINE, NULL, "slot:PE=2", 0, 2), "0-3 4-7");   /* PE binds */
    assert_string_equal(bound("core:4 pu:1", "core", NULL, 3, 2), "0-2 0-2");  /* does not fit twice: over again */
    assert_string_equal(bound("core:2 pu:1", "core", NULL, 8, 1), "0-1");      /* not more than there are */
}

static void units_in_turn(void **state)
{
    (void)state;
    assert_string_equal(bound(MACHINE, "core", "socket", 0, 4), "0-1 12-13 2-3 14-15");
    assert_string_equal(bound(MACHINE, "core", "l3cache", 0, 5), "0-1 6-7 12-13 18-19 2-3");
    assert_string_equal(bound(MACHINE, NULL, "socket", 0, 2), "0-11 12-23"); /* bound to what it is mapped by */
    assert_string_equal(bound(MACHINE, NULL, "node", 0, 2), "- -");
}

static void some_ranks_of_each_unit(void **state)
{
    (void)state;
    assert_string_equal(bound(MACHINE, "core", "ppr:2:socket", 0, 4), "0-1 2-3 12-13 14-15");
    assert_string_equal(bound(MACHINE, "core", "ppr:1:l3cache:PE=2", 0, 4), "0-3 6-9 12-15 18-21");
}

static void whole_units(void **state)
{
    (void)state;
    assert_string_equal(bound(MACHINE, "socket", NULL, 0, 2), "0-11 0-11");
    assert_string_equal(bound(MACHINE, "socket", "socket", 0, 2), "0-11 12-23");
    assert_string_equal(bound(MACHINE, "l3cache:2", "socket", 0, 2), "0-11 12-23");
    assert_string_equal(bound(MACHINE, "core:2", NULL, 0, 2), "0-3 4-7");
}

static void lists_of_the_user(void **state)
{
    (void)state;
    assert_string_equal(bound(MACHINE, "user:3,1+5,8-10", NULL, 0, 4), "3 1,5 8-10 3");
}

static void machines_without_the_unit(void **state)
{
    (void)state;
    assert_string_equal(bound("core:2 pu:1", "l3cache", "l3cache", 0, 2), "0-1 0-1");
    assert_string_equal(bound("core:2 pu:1", "socket", NULL, 0, 1), "0-1");
}

static void the_unit_around_is_found(void **state)
{
    (void)state;
    struct place_spec p = {.bind = UNIT_CORE, .bind_said = true, .map = UNIT_L3};
    struct place places[2];
    hwloc_topology_t t;
    char words[128];
    hwloc_topology_init(&t);
    hwloc_topology_set_synthetic(t, MACHINE);
    hwloc_topology_load(t);
    assert_int_equal(place_ranks(t, &p, 0, places, 2), 0);
    assert_int_equal(places[0].l3, 0);
    assert_int_equal(places[1].l3, 1);
    assert_int_equal(places[1].numa, 0);
    place_words(t, &places[1], words, sizeof words);
    assert_non_null(strstr(words, "is bound to cpus 6-7, core 3"));
    for (int i = 0; i < 2; i++) hwloc_bitmap_free(places[i].cpus);
    hwloc_topology_destroy(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cores_in_order),           cmocka_unit_test(more_ranks_than_cores_start_over),
        cmocka_unit_test(threads_get_cores),        cmocka_unit_test(units_in_turn),
        cmocka_unit_test(some_ranks_of_each_unit),  cmocka_unit_test(whole_units),
        cmocka_unit_test(lists_of_the_user),        cmocka_unit_test(machines_without_the_unit),
        cmocka_unit_test(the_unit_around_is_found),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
