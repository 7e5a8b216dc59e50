/*
 * lock_test.c - the lock keeps others out, lets everybody in after a while, and tells the holder what was left for it. A
 * lost wake-up is a sleep without end: the alarm then ends the test.
 */
#include "base/lock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

enum { THREADS = 16, ROUNDS = 20000 };

static struct lock lock;
static long plain; /* under the lock */

static void start(pthread_t *t, int n, void *(*run)(void *))
{
    for (int i = 0; i < n; i++) assert_int_equal(pthread_create(&t[i], NULL, run, NULL), 0);
}

static void join(pthread_t *t, int n)
{
    for (int i = 0; i < n; i++) assert_int_equal(pthread_join(t[i], NULL), 0);
}

/* ---- one at a time ---- */

static void *count_up(void *arg)
{
    for (int i = 0; i < ROUNDS; i++) {
        if (i % 3 || !lock_try(&lock)) lock_take(&lock);
        long before = plain;
        if (i % 64 == 0) sched_yield(); /* with the lock */
        plain = before + 1;
        lock_give(&lock);
    }
    return arg;
}

static void threads_keep_out_of_each_others_way(void **state)
{
    (void)state;
    pthread_t t[THREADS];
    for (int spin = 0; spin < 2; spin++) {
        lock_looks = spin ? 64 : 0;
        plain = 0;
        lock = (struct lock)LOCK_INIT;
        start(t, THREADS, count_up);
        join(t, THREADS);
        assert_int_equal(plain, (long)THREADS * ROUNDS);
        assert_int_equal(atomic_load(&lock.word), 0); /* no bit, and nobody counted as asleep, is left */
        assert_true(lock.waits > 0 && lock.waited_ns > 0);
    }
}

static void *try_once(void *got)
{
    *(bool *)got = lock_try(&lock);
    return NULL;
}

static void a_held_lock_is_not_taken_by_a_try(void **state)
{
    (void)state;
    pthread_t t;
    bool got = true;
    lock = (struct lock)LOCK_INIT;
    assert_true(lock_try(&lock));
    assert_true(lock_is_held(&lock));
    assert_false(lock_is_wanted(&lock));
    pthread_create(&t, NULL, try_once, &got);
    pthread_join(t, NULL);
    assert_false(got);
    assert_true(lock_give(&lock));
    assert_false(lock_is_held(&lock));
    pthread_create(&t, NULL, try_once, &got);
    pthread_join(t, NULL);
    assert_true(got);
}

/* ---- nobody waits for ever ---- */

static _Atomic int came;

static void *come_once(void *arg)
{
    lock_take(&lock);
    atomic_fetch_add(&came, 1);
    lock_give(&lock);
    return arg;
}

/* A thread that takes the lock again at once wins all races, as a sleeper has to get up first. */
static void a_thread_that_always_comes_back_lets_sleepers_have_their_turn(void **state)
{
    (void)state;
    pthread_t t[4];
    lock = (struct lock)LOCK_INIT;
    atomic_store(&came, 0);
    lock_looks = 0;
    lock_take(&lock);
    start(t, 4, come_once);
    while (!lock_is_wanted(&lock)) sched_yield();
    while (atomic_load(&came) < 4) {
        lock_give(&lock);
        lock_take(&lock);
    }
    lock_give(&lock);
    join(t, 4);
    assert_int_equal(atomic_load(&lock.word), 0);
}

/* ---- mail ---- */

static _Atomic long left;
static long found;

/* With the lock. */
static void see_to_it(void)
{
    do found += atomic_exchange(&left, 0);
    while (!lock_give(&lock));
}

static void *leave(void *arg)
{
    for (int i = 0; i < ROUNDS; i++) {
        atomic_fetch_add(&left, 1);
        if (lock_note(&lock)) see_to_it();
    }
    return arg;
}

static void *hold(void *arg)
{
    for (int i = 0; i < ROUNDS; i++) {
        lock_take(&lock);
        if (i % 64 == 0) sched_yield();
        while (!lock_give(&lock)) found += atomic_exchange(&left, 0);
    }
    return arg;
}

static void what_is_left_for_the_holder_is_found_before_the_lock_is_free(void **state)
{
    (void)state;
    pthread_t givers[4], holders[4];
    lock = (struct lock)LOCK_INIT;
    atomic_store(&left, 0);
    found = 0;
    start(givers, 4, leave);
    start(holders, 4, hold);
    join(givers, 4);
    join(holders, 4);
    assert_int_equal(found, 4L * ROUNDS);
    assert_int_equal(atomic_load(&left), 0);
    assert_int_equal(atomic_load(&lock.word), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_keep_out_of_each_others_way),
        cmocka_unit_test(a_held_lock_is_not_taken_by_a_try),
        cmocka_unit_test(a_thread_that_always_comes_back_lets_sleepers_have_their_turn),
        cmocka_unit_test(what_is_left_for_the_holder_is_found_before_the_lock_is_free),
    };
    alarm(120);
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
