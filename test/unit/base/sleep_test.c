/*
 * sleep_test.c - doorbells: nobody sleeps over a message, with either side paying for the barrier, between threads
 * and between processes; timeouts end a sleep.
 */
#include "base/clock.h"
#include "base/sleep.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROUNDS = 20000 };
#define SECOND ((uint64_t)1000000000)

/* Two sides in turn: each waits for the other's number by the doorbell alone. */
struct table {
    struct side {
        struct bell bell;
        _Atomic uint32_t work TERN_ALIGNED(CACHE_LINE);
    } side[2];
};

/* Waits for `want` in the side's work word; false when ten seconds did not bring it. */
static bool await(struct side *own, uint32_t want)
{
    uint64_t end = clock_ns() + 10 * SECOND;
    while (atomic_load_explicit(&own->work, memory_order_acquire) != want) {
        uint32_t ticket = bell_announce(&own->bell);
        if (atomic_load_explicit(&own->work, memory_order_acquire) == want) {
            bell_stay(&own->bell);
            break;
        }
        /* A lost wake-up shows as a sleep of the whole ten seconds. */
        bell_wait(&own->bell, ticket, NULL, 0, 10 * SECOND);
        if (clock_ns() > end) return false;
    }
    return true;
}

static void give(struct side *other, uint32_t value)
{
    atomic_store_explicit(&other->work, value, memory_order_release);
    bell_check(&other->bell, atomic_load_explicit(&other->bell.fenced, memory_order_relaxed));
}

static bool play(struct table *t, int who)
{
    for (uint32_t i = 1; i <= ROUNDS; i++) {
        if (who == 0) give(&t->side[1], i);
        if (!await(&t->side[who], i)) return false;
        if (who == 1) give(&t->side[0], i);
    }
    return true;
}

static void *play_second(void *t) { return play(t, 1) ? t : NULL; }

static void between_threads(bool fenced)
{
    struct table *t = aligned_alloc(CACHE_LINE, sizeof *t);
    pthread_t thread;
    void *good = NULL;
    assert_non_null(t);
    for (int i = 0; i < 2; i++) {
        t->side[i] = (struct side){.work = 0};
        bell_open(&t->side[i].bell, fenced);
    }
    assert_int_equal(pthread_create(&thread, NULL, play_second, t), 0);
    assert_true(play(t, 0));
    pthread_join(thread, &good);
    assert_non_null(good);
    free(t);
}

static void threads_with_fences(void **state)
{
    (void)state;
    between_threads(true);
}

static void threads_with_membarrier(void **state)
{
    (void)state;
    if (!sleep_membarrier_open()) skip();
    between_threads(false);
}

static void between_processes(bool fenced)
{
    struct table *t = mmap(NULL, sizeof *t, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int status = -1;
    assert_true(t != MAP_FAILED);
    for (int i = 0; i < 2; i++) bell_open(&t->side[i].bell, fenced);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        if (!fenced) sleep_membarrier_open();
        _exit(play(t, 1) ? 0 : 1);
    }
    bool good = play(t, 0);
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
    assert_true(good);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    munmap(t, sizeof *t);
}

static void processes_with_fences(void **state)
{
    (void)state;
    between_processes(true);
}

static void processes_with_membarrier(void **state)
{
    (void)state;
    if (!sleep_membarrier_open()) skip();
    between_processes(false);
}

static void timeout_ends_a_sleep(void **state)
{
    struct bell bell = {0};
    (void)state;
    bell_open(&bell, true);
    uint64_t start = clock_ns();
    while (clock_ns() - start < 5 * SECOND / 1000) { /* spurious returns are allowed */
        uint32_t ticket = bell_announce(&bell);
        bell_wait(&bell, ticket, NULL, 0, 5 * SECOND / 1000);
        assert_int_equal(atomic_load(&bell.asleep), 0);
    }
    assert_true(clock_ns() - start < 5 * SECOND);
}

/* A ring between announcement and sleep is not slept over. */
static void ring_after_the_announcement_counts(void **state)
{
    struct bell bell = {0};
    (void)state;
    bell_open(&bell, true);
    uint64_t start = clock_ns();
    uint32_t ticket = bell_announce(&bell);
    bell_check(&bell, true);
    bell_wait(&bell, ticket, NULL, 0, 5 * SECOND);
    assert_true(clock_ns() - start < 2 * SECOND);
}

static void word_that_changed_is_not_slept_on(void **state)
{
    _Atomic uint32_t word = 1;
    struct bell bell = {0};
    (void)state;
    bell_open(&bell, true);
    uint64_t start = clock_ns();
    bell_wait(&bell, bell_announce(&bell), &word, 0, 5 * SECOND);
    futex_sleep(&word, 0, 5 * SECOND);
    assert_true(clock_ns() - start < 2 * SECOND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_with_fences),
        cmocka_unit_test(threads_with_membarrier),
        cmocka_unit_test(processes_with_fences),
        cmocka_unit_test(processes_with_membarrier),
        cmocka_unit_test(timeout_ends_a_sleep),
        cmocka_unit_test(ring_after_the_announcement_counts),
        cmocka_unit_test(word_that_changed_is_not_slept_on),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
