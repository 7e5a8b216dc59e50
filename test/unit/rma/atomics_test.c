/*
 * atomics_test.c - how atomic operations are stopped, explored: in every order, nobody changes an element by an atomic operation
 * while another one changes many without, nobody waits for ever, and one that dies in between does not keep the others out.
 *
 * The barrier in all processes (membarrier) is nothing here: the explorer's processes see each operation at once.
 */
#include "explore.h"

#include <sched.h>
#include <time.h>
#include <unistd.h>

#define cpu_relax explore_pause
#define sched_yield explore_pause
#define nanosleep(time, left) ((void)(time), explore_pause())
#define syscall(number, command, flags, cpu) ((void)(command), 0)
#include "rma/win_lock.c"
#include "rma/atomics.c"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <string.h>

enum { SEATS = 3 };

static struct win_exposure exposure;
static _Atomic uint64_t seats[SEATS], busy[SEATS];
static int single, many; /* who are changing elements */

static void wake(void *arg, uint32_t seat) { (void)arg, (void)seat; }
static bool is_dead(void *arg, uint32_t seat)
{
    (void)arg;
    return (int)seat == explore_dead();
}
static const struct win_lock_ops ops = {.wake = wake, .is_dead = is_dead};
static struct win_locking by(uint32_t seat) { return (struct win_locking){&exposure.accumulate, seats, SEATS, seat, &ops, NULL}; }

static void begin(void)
{
    memset(&exposure, 0, sizeof exposure);
    memset((void *)(uintptr_t)seats, 0, sizeof seats);
    memset((void *)(uintptr_t)busy, 0, sizeof busy);
    single = many = 0;
}

/* One element at a time: several may be at it. The mortal one is not counted, as it may be dead. */
static void change_one(bool counted)
{
    single += counted;
    assert_true(!many);
    explore_step();
    assert_true(!many);
    single -= counted;
}

static void change_many(bool counted)
{
    many += counted;
    assert_true(!single && many <= 1);
    explore_step();
    assert_true(!single && many <= 1);
    many -= counted;
}

static void take(const struct win_locking *l)
{
    if (!win_lock_try_exclusive(l) && !win_lock_request(l, WIN_LOCK_EXCLUSIVE)) {
        while (!win_lock_is_granted(l)) explore_pause();
        win_lock_granted(l);
    }
}

/* As near.c does it: by an atomic operation, or with the lock, and then it is always the last of so many in turn. */
static void one(uint32_t seat)
{
    struct win_locking l = by(seat);
    bool counted = (int)seat != 0 || explore_dead() != 0;
    if (atomics_enter(&exposure, &busy[seat])) {
        change_one(counted);
        atomics_leave(&busy[seat]);
        return;
    }
    take(&l);
    change_one(counted); /* by an atomic operation all the same */
    exposure.few = ATOMICS_FEW - 1;
    atomics_note_few(&exposure);
    win_lock_give_exclusive(&l);
}

static void all(uint32_t seat, bool counted)
{
    struct win_locking l = by(seat);
    take(&l);
    atomics_stop(&exposure, busy, &l);
    change_many(counted);
    win_lock_give_exclusive(&l);
}

static void one_0(void) { one(0); }
static void one_1(void) { one(1), one(1); }
static void all_1(void) { all(1, true); }
static void all_2(void) { all(2, true); }

static void nothing_is_left(void)
{
    assert_int_equal(__atomic_load_n(&exposure.accumulate.word, __ATOMIC_RELAXED), 0);
    assert_int_not_equal(__atomic_load_n(&exposure.stopped, __ATOMIC_RELAXED), ATOMICS_STOPPING);
    for (int i = 0; i < SEATS; i++)
        if (i != explore_dead()) assert_int_equal(__atomic_load_n(&busy[i], __ATOMIC_RELAXED), 0);
}

static long all_orders(void (*a)(void), void (*b)(void), void (*c)(void))
{
    struct explore e = {.n = 3, .begin = begin, .run = {a, b, c}, .end = nothing_is_left, .mortal = -1, .switches = 2};
    return explore(&e);
}

static void one_changes_many_alone(void **state)
{
    (void)state;
    assert_true(all_orders(one_0, one_1, all_2) > 1000);
    assert_true(all_orders(one_0, all_1, all_2) > 1000);
}

/* ---- a process dies ---- */

/* Process 2 hears of it, and changes many. Who has died is in no operation, though its word says so. */
static void heir(void)
{
    struct win_locking l = by(2);
    win_lock_forget(&l, (uint32_t)explore_dead());
    all(2, true);
}

static void mortal_one(void)
{
    if (atomics_enter(&exposure, &busy[0])) {
        explore_step();
        atomics_leave(&busy[0]);
    }
}

static void mortal_all(void) { all(0, false); }

static void the_dead_keep_nobody_out(void **state)
{
    (void)state;
    struct explore e = {.n = 3, .begin = begin, .run = {mortal_one, one_1, heir}, .end = nothing_is_left, .mortal = 0, .switches = 2};
    assert_true(explore(&e) > 1000);
    e.run[0] = mortal_all;
    assert_true(explore(&e) > 1000);
}

/* ---- when ---- */

static void they_go_on_after_few_in_turn(void **state)
{
    (void)state;
    begin();
    struct win_locking l = by(0);
    for (int round = 0; round < 3; round++) {
        atomics_stop(&exposure, busy, &l);
        for (int i = 0; i < ATOMICS_FEW - 1; i++) atomics_note_few(&exposure);
        assert_int_equal(exposure.stopped, ATOMICS_STOPPED); /* many again: the count begins anew */
    }
    atomics_stop(&exposure, busy, &l);
    for (int i = 0; i < ATOMICS_FEW; i++) {
        assert_false(atomics_enter(&exposure, &busy[1]));
        atomics_note_few(&exposure);
    }
    assert_true(atomics_enter(&exposure, &busy[1]));
    atomics_leave(&busy[1]);
}

/* One that died while it stopped them: they are not, and the next one with the lock goes on at once. */
static void a_stop_that_was_broken_off_is_none(void **state)
{
    (void)state;
    uint64_t unstopped = 0;
    begin();
    exposure.stopped = ATOMICS_STOPPING;
    assert_false(atomics_are_many(&exposure, ATOMICS_MANY, &unstopped));
    atomics_note_few(&exposure);
    assert_int_equal(exposure.stopped, ATOMICS_GO);
}

static void many_are_many_at_once_or_in_all(void **state)
{
    (void)state;
    uint64_t unstopped = 0;
    struct win_locking l = by(0);
    begin();
    assert_true(atomics_are_many(&exposure, ATOMICS_STOP_FROM, &unstopped));
    unstopped = 0;
    for (int i = 0; i < 1000; i++) assert_false(atomics_are_many(&exposure, ATOMICS_MANY - 1, &unstopped));
    for (int i = 1; i < ATOMICS_STOP_FROM / ATOMICS_MANY; i++) assert_false(atomics_are_many(&exposure, ATOMICS_MANY, &unstopped));
    assert_true(atomics_are_many(&exposure, ATOMICS_MANY, &unstopped));
    unstopped = 0;
    atomics_stop(&exposure, busy, &l);
    assert_true(atomics_are_many(&exposure, ATOMICS_MANY, &unstopped));
    assert_false(atomics_are_many(&exposure, ATOMICS_MANY - 1, &unstopped));
    assert_int_equal(unstopped, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_changes_many_alone),
        cmocka_unit_test(the_dead_keep_nobody_out),
        cmocka_unit_test(they_go_on_after_few_in_turn),
        cmocka_unit_test(a_stop_that_was_broken_off_is_none),
        cmocka_unit_test(many_are_many_at_once_or_in_all),
    };
    if (!explore_works()) return 0;
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
