/*
 * win_lock_test.c - the lock of a target, explored: in every order of the operations of its processes no two hold it that
 * must not, nobody waits for ever, and nothing of it is left at the end; also when a process dies anywhere within.
 */
#include "explore.h"

#include <sched.h>
#include <time.h>

/* One who finds the guard taken looks again when another process has done something. */
#define cpu_relax explore_pause
#define sched_yield explore_pause
#define nanosleep(time, left) ((void)(time), explore_pause())
#include "rma/win_lock.c"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <string.h>

enum { SEATS = 3 };

static struct win_lock lock;
static _Atomic uint64_t seats[SEATS];
static int shared, exclusive; /* holders */
static int woken[SEATS];

static void wake(void *arg, uint32_t seat)
{
    (void)arg;
    woken[seat]++;
}

static bool is_dead(void *arg, uint32_t seat)
{
    (void)arg;
    return (int)seat == explore_dead();
}

static const struct win_lock_ops ops = {.wake = wake, .is_dead = is_dead};

static struct win_locking by(uint32_t seat) { return (struct win_locking){&lock, seats, SEATS, seat, &ops, NULL}; }

static void begin(void)
{
    memset(&lock, 0, sizeof lock);
    memset((void *)(uintptr_t)seats, 0, sizeof seats);
    memset(woken, 0, sizeof woken);
    shared = exclusive = 0;
}

static bool try(const struct win_locking *l, enum win_lock_mode mode)
{
    return mode == WIN_LOCK_EXCLUSIVE ? win_lock_try_exclusive(l) : win_lock_try_shared(l);
}

static void take(const struct win_locking *l, enum win_lock_mode mode)
{
    if (try(l, mode) || win_lock_request(l, mode)) return;
    while (!win_lock_is_granted(l)) explore_pause();
    win_lock_granted(l);
}

static void give(const struct win_locking *l, enum win_lock_mode mode)
{
    if (mode == WIN_LOCK_EXCLUSIVE) win_lock_give_exclusive(l);
    else win_lock_give_shared(l);
}

/* What is held by a process that died while it was counted here is not: the counts are of the live. */
static void hold(enum win_lock_mode mode)
{
    int *mine = mode == WIN_LOCK_EXCLUSIVE ? &exclusive : &shared;
    ++*mine;
    assert_true(exclusive <= 1 && !(exclusive && shared));
    explore_step(); /* others may come in between */
    assert_true(exclusive <= 1 && !(exclusive && shared));
    --*mine;
}

static void lock_once(uint32_t seat, enum win_lock_mode mode)
{
    struct win_locking l = by(seat);
    take(&l, mode);
    hold(mode);
    give(&l, mode);
}

static void shared_0(void) { lock_once(0, WIN_LOCK_SHARED); }
static void shared_1(void) { lock_once(1, WIN_LOCK_SHARED); }
static void exclusive_0(void) { lock_once(0, WIN_LOCK_EXCLUSIVE); }
static void exclusive_1(void) { lock_once(1, WIN_LOCK_EXCLUSIVE); }
static void exclusive_2(void) { lock_once(2, WIN_LOCK_EXCLUSIVE); }

/* Nothing is held or queued, and the guard is free. */
static void is_as_new(void)
{
    assert_int_equal(__atomic_load_n(&lock.word, __ATOMIC_RELAXED), 0);
    assert_int_equal(__atomic_load_n(&lock.guard, __ATOMIC_RELAXED), 0);
    for (int i = 0; i < SEATS; i++)
        if (i != explore_dead()) assert_int_equal(__atomic_load_n(&seats[i], __ATOMIC_RELAXED), SEAT_FREE);
}

static long all_orders(void (*a)(void), void (*b)(void), void (*c)(void), int switches)
{
    struct explore e = {.n = 3, .begin = begin, .run = {a, b, c}, .end = is_as_new, .mortal = -1, .switches = switches};
    return explore(&e);
}

static void holders_exclude_each_other(void **state)
{
    (void)state;
    assert_true(all_orders(exclusive_0, exclusive_1, exclusive_2, 2) > 1000);
    assert_true(all_orders(shared_0, exclusive_1, exclusive_2, 2) > 1000);
    assert_true(all_orders(shared_0, shared_1, exclusive_2, 2) > 1000);
}

/* Withdraws its request unless it is granted at once. */
static void impatient_1(void)
{
    struct win_locking l = by(1);
    if (win_lock_request(&l, WIN_LOCK_EXCLUSIVE)) {
        hold(WIN_LOCK_EXCLUSIVE);
        win_lock_give_exclusive(&l);
    } else {
        win_lock_withdraw(&l, WIN_LOCK_EXCLUSIVE);
    }
}

static void impatient_shared_1(void)
{
    struct win_locking l = by(1);
    if (win_lock_request(&l, WIN_LOCK_SHARED)) {
        hold(WIN_LOCK_SHARED);
        win_lock_give_shared(&l);
    } else {
        win_lock_withdraw(&l, WIN_LOCK_SHARED);
    }
}

static void a_request_can_be_withdrawn(void **state)
{
    (void)state;
    assert_true(all_orders(exclusive_0, impatient_1, exclusive_2, 2) > 1000);
    assert_true(all_orders(shared_0, impatient_shared_1, exclusive_2, 2) > 1000);
}

/* ---- a process dies ---- */

/* The third process hears that another one has died. */
static void heir(void)
{
    struct win_locking l = by(2);
    win_lock_forget(&l, (uint32_t)explore_dead());
}

/* The mortal one is not counted while it holds: it may be dead. The others must not hold with it, which they see by the word. */
static void mortal_lock(enum win_lock_mode mode)
{
    struct win_locking l = by(0);
    take(&l, mode);
    explore_step();
    give(&l, mode);
}
static void mortal_shared(void) { mortal_lock(WIN_LOCK_SHARED); }
static void mortal_exclusive(void) { mortal_lock(WIN_LOCK_EXCLUSIVE); }

static void survivor(enum win_lock_mode mode)
{
    struct win_locking l = by(1);
    take(&l, mode);
    give(&l, mode);
    take(&l, mode);
    give(&l, mode);
}
static void survivor_shared(void) { survivor(WIN_LOCK_SHARED); }
static void survivor_exclusive(void) { survivor(WIN_LOCK_EXCLUSIVE); }

static long all_deaths(void (*mortal)(void), void (*other)(void), int switches)
{
    struct explore e = {.n = 3, .begin = begin, .run = {mortal, other, heir}, .end = is_as_new, .mortal = 0, .switches = switches};
    return explore(&e);
}

static void locks_of_the_dead_do_not_stay(void **state)
{
    (void)state;
    assert_true(all_deaths(mortal_exclusive, survivor_exclusive, 2) > 1000);
    assert_true(all_deaths(mortal_exclusive, survivor_shared, 2) > 1000);
    assert_true(all_deaths(mortal_shared, survivor_exclusive, 2) > 1000);
    assert_true(all_deaths(mortal_shared, survivor_shared, 2) > 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(holders_exclude_each_other),
        cmocka_unit_test(a_request_can_be_withdrawn),
        cmocka_unit_test(locks_of_the_dead_do_not_stay),
    };
    if (!explore_works()) return 0;
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
