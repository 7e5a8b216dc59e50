/*
 * quiet_test.c - after the wait no other thread is in the middle of something that it began before; threads that sleep, or
 * have ended, are not waited for.
 */
#include "base/quiet.h"
#include "base/compiler.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 4, ROUNDS = 20, SLEEPERS = 200 };

static _Atomic bool switched, over;
static _Atomic int ready;

/* What a thread does while it has not seen the switch: a word that is 1 for the time of some hundred instructions. */
static struct {
    TERN_ALIGNED(CACHE_LINE) _Atomic int inside;
    _Atomic long done;
} work[THREADS];

static void *works(void *arg)
{
    int i = (int)(intptr_t)arg;
    ready++;
    while (!atomic_load_explicit(&over, memory_order_relaxed)) {
        if (atomic_load_explicit(&switched, memory_order_relaxed)) continue;
        atomic_store_explicit(&work[i].inside, 1, memory_order_relaxed);
        for (int j = 0; j < 100; j++) atomic_signal_fence(memory_order_seq_cst);
        atomic_store_explicit(&work[i].done, atomic_load_explicit(&work[i].done, memory_order_relaxed) + 1, memory_order_relaxed);
        atomic_store_explicit(&work[i].inside, 0, memory_order_relaxed);
    }
    return NULL;
}

static void nothing_is_under_way_after_it(void **state)
{
    pthread_t t[THREADS];
    struct quiet *q;
    (void)state;
    for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&t[i], NULL, works, (void *)(intptr_t)i), 0);
    while (ready < THREADS) usleep(100);
    for (int round = 0; round < ROUNDS; round++) {
        long before = 0, after = 0;
        usleep(1000);
        assert_int_equal(quiet_open(&q), 0);
        atomic_store(&switched, true);
        quiet_await(q);
        for (int i = 0; i < THREADS; i++) {
            assert_int_equal(work[i].inside, 0);
            before += work[i].done;
        }
        usleep(1000);
        for (int i = 0; i < THREADS; i++) after += work[i].done;
        assert_true(before > 0);
        assert_int_equal(after, before); /* nor does any thread begin with it again */
        quiet_close(q);
        atomic_store(&switched, false);
    }
    over = true;
    for (int i = 0; i < THREADS; i++) pthread_join(t[i], NULL);
}

static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;
static void *sleeps(void *arg)
{
    pthread_mutex_lock(&held);
    pthread_mutex_unlock(&held);
    return arg;
}

static void await_once(void)
{
    struct quiet *q;
    assert_int_equal(quiet_open(&q), 0);
    quiet_await(q);
    quiet_close(q);
}

/* More than are looked at at a time. The alarm ends a wait without end. */
static void sleepers_are_not_waited_for(void **state)
{
    static pthread_t t[SLEEPERS];
    (void)state;
    alarm(60);
    pthread_mutex_lock(&held);
    for (int i = 0; i < SLEEPERS; i++) assert_int_equal(pthread_create(&t[i], NULL, sleeps, NULL), 0);
    await_once();
    pthread_mutex_unlock(&held);
    for (int i = 0; i < SLEEPERS; i++) pthread_join(t[i], NULL);
    alarm(0);
}

/* The state of the process's first thread: Z when it has ended. */
static char first_state(void)
{
    char state = 'Z';
    FILE *f = fopen("/proc/self/stat", "r");
    if (!f || fscanf(f, "%*d (%*[^)]) %c", &state) != 1) _exit(3);
    fclose(f);
    return state;
}

static void *awaits(void *arg)
{
    struct quiet *q;
    while (first_state() != 'Z') usleep(1000);
    if (quiet_open(&q)) _exit(1);
    quiet_await(q);
    _exit(7);
    return arg;
}

/* The first thread of a process is listed when it has ended, as long as others go on. */
static void ended_threads_are_not_waited_for(void **state)
{
    int status = -1;
    (void)state;
    pid_t child = fork();
    if (!child) {
        pthread_t t;
        alarm(20);
        if (pthread_create(&t, NULL, awaits, NULL)) _exit(2);
        pthread_exit(NULL);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_under_way_after_it),
        cmocka_unit_test(sleepers_are_not_waited_for),
        cmocka_unit_test(ended_threads_are_not_waited_for),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
