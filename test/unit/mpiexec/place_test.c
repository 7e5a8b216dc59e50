/* place_test.c - mapping and binding on machines that hwloc makes up. */
#include "mpiexec/cpulist.h"
#include "mpiexec/place.h"
#include "mpiexec/placeopt.h"
#include "mpiexec/words.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* 2 sockets, each with 2 L3 caches of 3 cores of 2 threads: cores 0-11, cpus 0-23, cpus 2c and 2c+1 on core c. */
#define MACHINE "package:2 l3:2 core:3 pu:2"

static const char *placed(struct place_spec *, const char *machine, const char *bind, const char *map, int threads,
                          int n);

/* What the ranks are bound to, as "0-1 2-3 ..."; "-" = not bound. */
static const char *bound(const char *machine, const char *bind, const char *map, int threads, int n)
{
    struct place_spec p = {0};
    return placed(&p, machine, bind, map, threads, n);
}

/* The same with other options in `p`. */
static const char *placed(struct place_spec *spec, const char *machine, const char *bind, const char *map, int threads,
                          int n)
{
    static char words[1024];
    struct place_spec p = *spec;
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

static const char *ranked(const char *by, const char *map, int n)
{
    struct place_spec p = {0};
    assert_int_equal(placeopt_rank(&p, by), 0);
    return placed(&p, MACHINE, "core", map, 0, n);
}

static void numbers_by_unit(void **state)
{
    (void)state;
    assert_string_equal(ranked("slot", "core", 3), "0-1 2-3 4-5");
    assert_string_equal(ranked("socket", "core", 8), "0-1 12-13 2-3 14-15 4-5 6-7 8-9 10-11");
    assert_string_equal(ranked("l3cache", "core", 7), "0-1 6-7 12-13 2-3 8-9 4-5 10-11");
    assert_string_equal(ranked("socket:FILL", "socket", 4), "0-1 2-3 12-13 14-15");
    assert_string_equal(ranked("socket", "ppr:2:socket", 4), "0-1 12-13 2-3 14-15");
}

static void hardware_threads_as_cores(void **state)
{
    (void)state;
    assert_string_equal(bound(MACHINE, "hwthread", "slot:HWTCPUS", 0, 2), "0 1");
    assert_string_equal(bound(MACHINE, NULL, "slot:PE=3:HWTCPUS", 0, 2), "0-2 3-5");
    assert_string_equal(bound(MACHINE, NULL, ":PE=2", 0, 2), "0-3 4-7"); /* modifiers alone */
    struct place_spec p = {.hwthreads = true};
    assert_string_equal(placed(&p, MACHINE, "core", NULL, 0, 3), "0-1 0-1 2-3");
}

static void sets_of_cores(void **state)
{
    (void)state;
    struct place_spec p = {.cpu_set = "4,1-2"};
    assert_string_equal(placed(&p, MACHINE, "cpu-list:ordered", NULL, 0, 4), "8-9 2-3 4-5 8-9");
    p.hwthreads = true;
    assert_string_equal(placed(&p, MACHINE, "cpu-list", NULL, 0, 3), "4 1 2");
}

static void ranks_share_what_the_set_leaves(void **state)
{
    hwloc_topology_t t;
    (void)state;
    setenv("HWLOC_SYNTHETIC", MACHINE, 1);
    struct place_spec p = {.cpu_set = "4,1-2"};
    for (int each = 0; each < 2; each++) {
        p.cpu_each = each;
        assert_int_equal(place_topology(&p, &t), 0);
        assert_int_equal(place_set_cpus(t, &p), 6);
        hwloc_topology_destroy(t);
    }
    p.cpu_set = NULL;
    assert_int_equal(place_topology(&p, &t), 0);
    assert_int_equal(place_set_cpus(t, &p), 0);
    hwloc_topology_destroy(t);
    unsetenv("HWLOC_SYNTHETIC");
}

static void slots_of_a_rank_file(void **state)
{
    static const struct {
        const char *slots, *cpus;
    } table[] = {{"0", "0-1"},
                 {"1,3-4", "2-3,6-9"},
                 {"0:1", "2-3"},
                 {"1:0-1,3", "12-15,18-19"},
                 {"1:*", "12-23"},
                 {"*:0", "0-1,12-13"},
                 {"0:0;1:5", "0-1,22-23"},
                 {"2;1:0", "4-5,12-13"},
                 {"2:0", NULL},
                 {"0:6", NULL},
                 {"12", NULL},
                 {"", NULL},
                 {"0:", NULL},
                 {":0", NULL},
                 {"0;", NULL},
                 {"3-1", NULL},
                 {"0,", NULL},
                 {"0-", NULL},
                 {"0 1", NULL},
                 {"0-1:0", NULL}};
    const struct place_spec p = {0};
    hwloc_topology_t t;
    (void)state;
    hwloc_topology_init(&t);
    hwloc_topology_set_synthetic(t, MACHINE);
    hwloc_topology_load(t);
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        struct place place;
        char cpus[64];
        int rc = place_slots(t, &p, table[i].slots, &place);
        if (rc != (table[i].cpus ? 0 : EXIT_USAGE)) fail_msg("slot=%s: %d", table[i].slots, rc);
        hwloc_bitmap_list_snprintf(cpus, sizeof cpus, place.cpus);
        if (!rc) assert_string_equal(cpus, table[i].cpus);
        hwloc_bitmap_free(place.cpus);
    }
    hwloc_topology_destroy(t);
}

static void slots_are_checked_without_a_machine(void **state)
{
    static const char *const good[] = {"0", "1,3-4", "99:0", "*:*", "0:0-3;1:5", "1:*;2"},
                             *const bad[] = {"", "a", "0:", ":0", "0;", "3-1", "0,", "0-1:0", "*", "0:0:0", "1:*,2"};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(good); i++)
        if (!cpulist_is_slots(good[i])) fail_msg("%s is refused", good[i]);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        if (cpulist_is_slots(bad[i])) fail_msg("%s is taken", bad[i]);
    assert_true(cpulist_is_list("0,2-3") && cpulist_is_list("7"));
    assert_false(cpulist_is_list("") || cpulist_is_list("0,") || cpulist_is_list("1:0") || cpulist_is_list("2-1"));
}

/* Once the numbers of such a list were counted beyond what an int holds. */
static void list_of_more_numbers_than_an_int_counts_is_refused(void **state)
{
    static const char range[] = ",0-1048575";
    enum { RANGES = 4097 }; /* of 2^20 numbers each: 2^32 and more */
    char *list = xcalloc(RANGES, sizeof range);
    hwloc_bitmap_t set = hwloc_bitmap_alloc();
    hwloc_topology_t t;
    (void)state;
    for (int i = 0; i < RANGES; i++) strcpy(list + (size_t)i * (sizeof range - 1), range);
    hwloc_topology_init(&t);
    hwloc_topology_set_synthetic(t, MACHINE);
    hwloc_topology_load(t);
    assert_true(cpulist_is_list(range + 1));
    assert_false(cpulist_is_list(list + 1));
    assert_true(cpulist_nth(t, false, range + 1, 1, set));
    assert_false(cpulist_nth(t, false, list + 1, 1, set));
    hwloc_topology_destroy(t);
    hwloc_bitmap_free(set);
    free(list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cores_in_order),
        cmocka_unit_test(more_ranks_than_cores_start_over),
        cmocka_unit_test(threads_get_cores),
        cmocka_unit_test(units_in_turn),
        cmocka_unit_test(some_ranks_of_each_unit),
        cmocka_unit_test(whole_units),
        cmocka_unit_test(lists_of_the_user),
        cmocka_unit_test(machines_without_the_unit),
        cmocka_unit_test(the_unit_around_is_found),
        cmocka_unit_test(numbers_by_unit),
        cmocka_unit_test(hardware_threads_as_cores),
        cmocka_unit_test(sets_of_cores),
        cmocka_unit_test(ranks_share_what_the_set_leaves),
        cmocka_unit_test(slots_of_a_rank_file),
        cmocka_unit_test(slots_are_checked_without_a_machine),
        cmocka_unit_test(list_of_more_numbers_than_an_int_counts_is_refused),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
