/* schedule_test.c - the hosts that spawned jobs get, by each policy. */
#include "mpiexec/schedule.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static struct host h[] = {{.name = (char *)(uintptr_t) "a", .slots = 2}, {.name = (char *)(uintptr_t) "b", .slots = 2}, {.name = (char *)(uintptr_t) "c", .slots = 4}};
static const struct hosts hosts = {h, 3};

/* One process of the first job is on a, or none anywhere. */
static void begin(int on_a)
{
    const int on[3] = {on_a, 0, 0};
    schedule_open(&hosts, on, on_a ? 0 : 2);
}

static void expect(enum schedule_policy p, int n, struct schedule_load *load, const char *places)
{
    char *list = schedule_place(p, n, load);
    assert_string_equal(list, places);
    free(list);
}

static void round_robin_goes_on(void **state)
{
    struct schedule_load load[3] = {0};
    int most = 0, least = 100, on[3] = {0};
    (void)state;
    begin(1);
    expect(SCHEDULE_ROUND_ROBIN, 1, &load[0], "b:1");
    expect(SCHEDULE_ROUND_ROBIN, 4, &load[1], "c:2,a:1,b:1");
    expect(SCHEDULE_ROUND_ROBIN, 1, &load[2], "a:1");
    for (int i = 0; i < 3; i++) schedule_release(&load[i]);
    begin(0); /* k jobs of one process on n hosts: the numbers differ by one at most */
    for (int i = 0; i < 100; i++) {
        struct schedule_load one = {0};
        free(schedule_place(SCHEDULE_ROUND_ROBIN, 1, &one));
        for (int k = 0; k < 3; k++) on[k] += one.on[k];
        free(one.on);
    }
    for (int k = 0; k < 3; k++) {
        most = on[k] > most ? on[k] : most;
        least = on[k] < least ? on[k] : least;
    }
    assert_true(most - least <= 1);
}

static void restart_overloads_the_first(void **state)
{
    (void)state;
    begin(0);
    for (int i = 0; i < 5; i++) {
        struct schedule_load one = {0};
        expect(SCHEDULE_RESTART, 1, &one, "a:1");
        free(one.on);
    }
}

static void load_looks_at_slots(void **state)
{
    struct schedule_load first = {0}, second = {0}, third = {0};
    (void)state;
    begin(1); /* a 1 of 2, b 0 of 2, c 0 of 4 */
    expect(SCHEDULE_LOAD, 3, &first, "c:2,b:1");
    expect(SCHEDULE_LOAD, 1, &second, "c:1");
    schedule_release(&first); /* a 1 of 2, b 0 of 2, c 1 of 4: another one makes 1 of 2 of both */
    expect(SCHEDULE_LOAD, 2, &third, "b:1,c:1");
    schedule_release(&second);
    schedule_release(&third);
    assert_null(third.on);
}

static void packed_fills_slots(void **state)
{
    struct schedule_load first = {0}, second = {0};
    (void)state;
    begin(1);
    expect(SCHEDULE_PACKED, 5, &first, "a:1,b:2,c:2");
    expect(SCHEDULE_PACKED, 4, &second, "c:3,a:1"); /* the last one where it is the freest: none is refused */
    schedule_release(&first);
    schedule_release(&second);
}

static void spread_is_even(void **state)
{
    struct schedule_load first = {0}, second = {0};
    (void)state;
    begin(1);
    expect(SCHEDULE_SPREAD, 2, &first, "b:1,c:1");
    expect(SCHEDULE_SPREAD, 7, &second, "a:3,b:2,c:2");
    schedule_release(&first);
    schedule_release(&second);
}

static void other_maps_turn_the_list(void **state)
{
    (void)state;
    begin(1);
    char *list = schedule_hosts(2);
    assert_string_equal(list, "b:2,c:4,a:2");
    free(list);
    list = schedule_hosts(1);
    assert_string_equal(list, "a:2,b:2,c:4");
    free(list);
}

static void policies_have_names(void **state)
{
    enum schedule_policy p = SCHEDULE_LOAD;
    (void)state;
    assert_true(schedule_policy_of("spread", &p));
    assert_int_equal(p, SCHEDULE_SPREAD);
    assert_true(schedule_policy_of("round_robin", &p));
    assert_int_equal(p, SCHEDULE_ROUND_ROBIN);
    assert_false(schedule_policy_of("best", &p));
    assert_false(schedule_policy_of("", &p));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(round_robin_goes_on), cmocka_unit_test(restart_overloads_the_first), cmocka_unit_test(load_looks_at_slots),
        cmocka_unit_test(packed_fills_slots),  cmocka_unit_test(spread_is_even),              cmocka_unit_test(other_maps_turn_the_list),
        cmocka_unit_test(policies_have_names)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
