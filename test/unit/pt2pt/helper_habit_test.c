/*
 * helper_habit_test.c - whether a thread stays away is told from what it did at the same place before, and learnt anew when it
 * changes.
 */
#include "pt2pt/helper_habit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

enum { BACK, AWAY };

/* Leaves and comes back as said; returns what was expected. */
static bool leave(int how)
{
    bool stays = habit_leaves();
    if (habit.left_ns) habit_returns_at(habit.left_ns + HABIT_AWAY_NS - (how == BACK)); /* just long enough, or not */
    return stays;
}

static void nothing_known_is_away(void **state)
{
    (void)state;
    habit_open();
    for (unsigned i = 0; i < 2 * HABIT_PLACES; i++) assert_true(leave(AWAY));
}

/* Irecv, Isend, compute, Waitall: from the second round on only the last place is away. */
static void each_place_is_known(void **state)
{
    (void)state;
    habit_open();
    for (int round = 0; round < 10; round++) {
        bool first = leave(BACK), second = leave(AWAY);
        assert_int_equal(first, round == 0);
        assert_true(second);
        habit_waits();
    }
}

/* A deep window comes back each time, as far as all its places have been seen. */
static void windows_come_back(void **state)
{
    (void)state;
    habit_open();
    for (int round = 0; round < 3; round++) {
        int expected_away = 0;
        for (int i = 0; i < 200; i++) expected_away += leave(BACK);
        assert_int_equal(expected_away, round == 0 ? HABIT_PLACES : 0);
        habit_waits();
    }
}

/* A thread that computes now, and has not before, is found after a few times, in whatever place it does so: also where a loop
 * leaves as often as the thread is timed. */
static void changes_are_learnt(void **state)
{
    (void)state;
    for (unsigned place = 1; place <= 12; place++) {
        unsigned rounds = 0;
        habit_open();
        for (int i = 0; i < 3; i++, habit_waits())
            for (unsigned k = 1; k <= place; k++) (void)leave(BACK);
        for (bool found = false; !found; rounds++, habit_waits())
            for (unsigned k = 1; k <= place; k++) found = leave(k == place ? AWAY : BACK);
        assert_in_range(rounds, 2, (place <= HABIT_DEEP ? HABIT_TIMED : HABIT_TIMED_DEEP) + 1);
    }
}

/* The same where no call ever waits, as the helper has done all before: behind the computing the places begin anew. */
static void places_begin_anew_behind_computing(void **state)
{
    (void)state;
    habit_open();
    for (int round = 0; round < 100; round++) {
        bool first = leave(BACK), second = leave(AWAY);
        assert_int_equal(first, round == 0);
        assert_true(second);
        assert_int_equal(habit.place, 0);
    }
}

/* A send that the caller does all of by itself leaves nothing in the background: it is left there when it is to be timed. */
static void sends_are_left_when_timed(void **state)
{
    unsigned left = 0;
    (void)state;
    habit_open();
    (void)leave(BACK);
    habit_waits();
    for (unsigned i = 0; i < 10 * HABIT_TIMED; i++) {
        if (!habit_leaves_it()) continue;
        left++;
        assert_false(leave(BACK));
        habit_waits();
    }
    assert_int_equal(left, 10);
}

/* The helper has found it away, though that was not timed. */
static void helper_finds_it_away(void **state)
{
    (void)state;
    habit_open();
    (void)leave(BACK);
    habit_waits();
    assert_false(habit_leaves());
    habit_stayed();
    habit_returns();
    habit_waits();
    assert_true(habit_would_stay());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_known_is_away),     cmocka_unit_test(each_place_is_known), cmocka_unit_test(windows_come_back),
        cmocka_unit_test(places_begin_anew_behind_computing),
        cmocka_unit_test(changes_are_learnt),        cmocka_unit_test(sends_are_left_when_timed),
        cmocka_unit_test(helper_finds_it_away),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
