/*
 * sleep_test.c - doorbells and gates: nobody sleeps over a message, with either side paying for the barrier, between
 * threads and between processes. A lost wake-up is a sleep without end: the alarm then ends the test.
 */
#include "base/clock.h"
#include "base/sleep.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <errno.h>
#include <signal.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROUNDS = 20000 };
#define MILLISECOND ((uint64_t)1000000)
#define LONG_NS (100 * 1000 * MILLISECOND) /* of sleeps that something ends: longer than the alarm allows for all */

/* Two sides in turn: each waits for the other's number by the doorbell alone. */
struct table {
    struct side {
        struct bell bell;
        _Atomic uint32_t work TERN_ALIGNED(CACHE_LINE);
    } side[2];
};

/* Waits for `want` in the side's work word. */
static void await(struct side *own, uint32_t want)
{
    while (atomic_load_explicit(&own->work, memory_order_acquire) != want) {
        uint32_t ticket = bell_announce(&own->bell);
        bool there = atomic_load_explicit(&own->work, memory_order_acquire) == want;
        if (!there && bell_has_socket(&own->bell))
            bell_poll(&own->bell, ticket, NULL, 0, LONG_NS);
        else if (!there)
            bell_wait(&own->bell, ticket, NULL, LONG_NS);
        if (there || bell_has_socket(&own->bell)) bell_stay(&own->bell);
    }
}

static void give(struct side *other, uint32_t value)
{
    atomic_store_explicit(&other->work, value, memory_order_release);
    bell_check(&other->bell, atomic_load_explicit(&other->bell.fenced, memory_order_relaxed));
}

static void play(struct table *t, int who)
{
    for (uint32_t i = 1; i <= ROUNDS; i++) {
        if (who == 0) give(&t->side[1], i);
        await(&t->side[who], i);
        if (who == 1) give(&t->side[0], i);
    }
}

static void *play_second(void *t)
{
    play(t, 1);
    return NULL;
}

static void between_threads(bool fenced)
{
    struct table *t = aligned_alloc(CACHE_LINE, sizeof *t);
    pthread_t thread;
    assert_non_null(t);
    for (int i = 0; i < 2; i++) {
        t->side[i] = (struct side){.work = 0};
        bell_open(&t->side[i].bell, fenced);
    }
    assert_int_equal(pthread_create(&thread, NULL, play_second, t), 0);
    play(t, 0);
    pthread_join(thread, NULL);
    assert_int_equal(atomic_load(&t->side[0].work), ROUNDS);
    free(t);
}

static void threads_with_fences(void **state)
{
    (void)state;
    between_threads(true);
}

static void need_membarrier(void)
{
    if (sleep_membarrier_open()) return;
    print_message("# this system has no membarrier\n");
    skip();
}

static void threads_with_membarrier(void **state)
{
    (void)state;
    need_membarrier();
    between_threads(false);
}

/* `sockets` of the two sleep in poll. */
static void between_processes(bool fenced, int sockets)
{
    struct table *t = mmap(NULL, sizeof *t, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int status = -1;
    assert_true(t != MAP_FAILED);
    for (int i = 0; i < 2; i++) bell_open(&t->side[i].bell, fenced);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        if (!fenced) sleep_membarrier_open();
        if (sockets > 1 && bell_open_socket(&t->side[1].bell)) _exit(1);
        play(t, 1);
        _exit(0);
    }
    if (sockets) assert_int_equal(bell_open_socket(&t->side[0].bell), 0);
    play(t, 0);
    bell_close(&t->side[0].bell);
    assert_false(bell_has_socket(&t->side[0].bell));
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    munmap(t, sizeof *t);
}

static void processes_with_fences(void **state)
{
    (void)state;
    between_processes(true, 0);
}

static void processes_with_membarrier(void **state)
{
    (void)state;
    need_membarrier();
    between_processes(false, 0);
}

static void processes_with_a_socket(void **state)
{
    (void)state;
    between_processes(true, 1);
}

static void processes_with_sockets(void **state)
{
    (void)state;
    between_processes(true, 2);
}

/* A descriptor ends a sleep too, and a byte left in the socket is gone when the sleep is over. */
static void descriptors_end_a_poll(void **state)
{
    (void)state;
    struct bell bell = {0};
    int ends[2];
    char byte;
    assert_int_equal(pipe(ends), 0);
    bell_open(&bell, true);
    assert_int_equal(bell_open_socket(&bell), 0);
    assert_int_equal(write(ends[1], "x", 1), 1);
    uint64_t start = clock_ns();
    bell_poll(&bell, bell_announce(&bell), ends, 1, LONG_NS);
    assert_int_equal(atomic_load(&bell.asleep), BELL_SOCKET);
    bell_check(&bell, true);
    bell_stay(&bell);
    assert_int_equal(recv(bell.socket, &byte, 1, 0), -1);
    assert_int_equal(read(ends[0], &byte, 1), 1);
    assert_true(clock_ns() - start < 900 * MILLISECOND); /* not by the time-out of a second */
    bell_close(&bell);
    close(ends[0]);
    close(ends[1]);
}

/* The owner's end may close while somebody rings: a signal would end the one who rings. */
static void ringing_the_dead_is_no_signal(void **state)
{
    (void)state;
    struct bell *b = mmap(NULL, sizeof *b, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int status = -1, ends[2];
    char byte;
    assert_true(b != MAP_FAILED);
    assert_int_equal(pipe(ends), 0);
    bell_open(b, true);
    pid_t owner = fork();
    assert_true(owner >= 0);
    if (owner == 0) { /* as one that is just closing its socket */
        if (bell_open_socket(b)) _exit(1);
        bell_announce(b);
        close(b->socket);
        if (write(ends[1], "x", 1) != 1) _exit(1);
        pause();
    }
    assert_int_equal(read(ends[0], &byte, 1), 1);
    bell_check(b, true);
    assert_int_equal(atomic_load(&b->asleep), BELL_AWAKE);
    kill(owner, SIGKILL);
    while (waitpid(owner, &status, 0) < 0 && errno == EINTR) continue;
    munmap(b, sizeof *b);
    close(ends[0]);
    close(ends[1]);
}

/* Who sleeps in poll is counted apart, and left to the opener. */
static void gate_tells_of_pollers(void **state)
{
    (void)state;
    struct gate g = {0};
    assert_false(gate_check(&g, true));
    atomic_fetch_add(&g.sleepers, 1);
    assert_false(gate_check(&g, true));
    atomic_fetch_add(&g.sleepers, GATE_POLLER);
    assert_true(gate_check(&g, true));
    assert_int_equal(atomic_load(&g.ring), 2);
}

/* Many sleep at one gate, each with a bell of its own; one opens it, and waits until all have passed. */
enum { SLEEPERS = 5, OPENINGS = 2000 };

struct hall {
    struct gate gate;
    bool fenced;
    _Atomic uint32_t open TERN_ALIGNED(CACHE_LINE);   /* number of openings */
    _Atomic uint32_t passed TERN_ALIGNED(CACHE_LINE); /* by all sleepers together */
};

static void pass(struct hall *h, struct bell *bell, uint32_t want)
{
    while (atomic_load_explicit(&h->open, memory_order_acquire) < want) {
        struct sleep_words words = {0};
        uint32_t counted = gate_enter(&h->gate, bell, 0, &words);
        uint32_t ticket = bell_announce(bell);
        if (atomic_load_explicit(&h->open, memory_order_acquire) >= want)
            bell_stay(bell);
        else
            bell_wait(bell, ticket, &words, counted == GATE_POLLER ? MILLISECOND : LONG_NS); /* nobody rings here */
        gate_leave(&h->gate, counted);
    }
}

static void *sleeper(void *arg)
{
    struct hall *h = arg;
    struct bell bell;
    bell_open(&bell, h->fenced);
    for (uint32_t i = 1; i <= OPENINGS; i++) {
        pass(h, &bell, i);
        atomic_fetch_add_explicit(&h->passed, 1, memory_order_release);
    }
    return NULL;
}

static void gate_wakes_all(bool fenced)
{
    static struct hall h;
    pthread_t thread[SLEEPERS];
    h = (struct hall){.fenced = fenced};
    for (int i = 0; i < SLEEPERS; i++) assert_int_equal(pthread_create(&thread[i], NULL, sleeper, &h), 0);
    for (uint32_t i = 1; i <= OPENINGS; i++) {
        atomic_store_explicit(&h.open, i, memory_order_release);
        gate_check(&h.gate, fenced);
        while (atomic_load_explicit(&h.passed, memory_order_acquire) < i * SLEEPERS) sched_yield();
    }
    for (int i = 0; i < SLEEPERS; i++) pthread_join(thread[i], NULL);
    assert_int_equal(atomic_load(&h.gate.sleepers), 0);
}

static void gate_with_fences(void **state)
{
    (void)state;
    gate_wakes_all(true);
}

static void gate_with_membarrier(void **state)
{
    (void)state;
    need_membarrier();
    gate_wakes_all(false);
}

/* A ring between announcement and sleep is not slept over. */
static void ring_after_the_announcement_counts(void **state)
{
    struct bell bell = {0};
    (void)state;
    bell_open(&bell, true);
    uint32_t ticket = bell_announce(&bell);
    assert_int_equal(atomic_load(&bell.asleep), 1);
    bell_check(&bell, true);
    bell_wait(&bell, ticket, NULL, LONG_NS);
    assert_int_equal(atomic_load(&bell.asleep), 0);
}

static void word_that_changed_is_not_slept_on(void **state)
{
    _Atomic uint32_t word = 1;
    struct bell bell = {0};
    (void)state;
    bell_open(&bell, true);
    struct sleep_words words = {.n = 1, .at[0] = {&word, 0}};
    bell_wait(&bell, bell_announce(&bell), &words, LONG_NS);
    futex_sleep(&word, 0, 0);
    assert_int_equal(atomic_load(&bell.asleep), 1); /* others may sleep by it: bell_stay ends it */
    bell_stay(&bell);
    assert_int_equal(atomic_load(&bell.asleep), 0);
}

static void timeout_ends_a_sleep(void **state)
{
    _Atomic uint32_t word = 0;
    (void)state;
    uint64_t start = clock_ns();
    while (clock_ns() - start < 5 * MILLISECOND) futex_sleep(&word, 0, 5 * MILLISECOND); /* may return early */
    assert_int_equal(atomic_load(&word), 0);
}

/* ---- announcements with a fence only, for a helper ---- */

/* So many, or fewer where the two are seldom on a core at once: a busy machine makes a meeting take a thousand times
 * longer. */
enum { MEETINGS = 400000, MEETINGS_LEAST = 1000 };
#define MEETINGS_NS (700 * MILLISECOND)

/* At each meeting one side announces a helper's sleep and looks, the other one publishes and looks at the announcement.
 */
static struct meeting {
    TERN_ALIGNED(CACHE_LINE) struct bell bell;
    TERN_ALIGNED(CACHE_LINE) _Atomic uint32_t work;
    TERN_ALIGNED(CACHE_LINE) _Atomic uint32_t here[2];
    _Atomic bool stop; /* by the first side, before the second half of the last meeting */
    bool again;
} meeting;

/* Both go on as nearly at once as can be; now and then one lets the other have the core. */
static void meet(int who, uint32_t round)
{
    atomic_store(&meeting.here[who], round);
    for (int i = 1; atomic_load(&meeting.here[!who]) < round; i++)
        if (i % 1024 == 0) sched_yield();
}

static void *publish(void *none)
{
    for (uint32_t i = 1; !atomic_load(&meeting.stop); i++) {
        meet(1, 2 * i);
        for (uint32_t k = i % 16; k; k--) cpu_relax();
        atomic_store_explicit(&meeting.work, i, memory_order_release);
        if (meeting.again) bell_check_again(&meeting.bell);
        else if (atomic_load_explicit(&meeting.bell.asleep, memory_order_relaxed)) bell_ring(&meeting.bell); /* without the fence */
        meet(1, 2 * i + 1);
    }
    return none;
}

/* How often neither saw the other: the message would be slept over. */
static int missed(bool again, uint32_t *meetings)
{
    int n = 0;
    pthread_t other;
    uint64_t end = clock_ns() + MEETINGS_NS;
    meeting = (struct meeting){.again = again};
    bell_open(&meeting.bell, false);
    bell_set_helped(&meeting.bell, true);
    assert_int_equal(pthread_create(&other, NULL, publish, NULL), 0);
    for (uint32_t i = 1; !atomic_load(&meeting.stop); i++) {
        meet(0, 2 * i);
        for (uint32_t k = i / 16 % 16; k; k--) cpu_relax();
        bell_announce_helper(&meeting.bell);
        bool seen = atomic_load_explicit(&meeting.work, memory_order_acquire) == i;
        atomic_store(&meeting.stop, i == MEETINGS || (i >= MEETINGS_LEAST && clock_ns() > end));
        *meetings = i;
        meet(0, 2 * i + 1);
        n += !seen && atomic_load(&meeting.bell.asleep);
        bell_stay(&meeting.bell);
    }
    pthread_join(other, NULL);
    return n;
}

static void second_look_misses_nothing(void **state)
{
    (void)state;
    need_membarrier();
    uint32_t meetings = 0;
    int once = missed(false, &meetings);
    print_message("# of %u announcements with a fence only, %d are missed by who looks without one\n", meetings, once);
    assert_int_equal(missed(true, &meetings), 0);
    assert_true(meetings >= MEETINGS_LEAST);
}

/* A message that only a thread would wait for wakes no helper, nor takes its announcement away. */
static void helper_is_woken_by_those_who_mean_it(void **state)
{
    struct bell bell = {0};
    (void)state;
    bell_open(&bell, true);
    bell_set_helped(&bell, true);
    bell_announce_helper(&bell);
    bell_check(&bell, true);
    assert_int_equal(atomic_load(&bell.asleep), BELL_HELPER);
    assert_int_equal(atomic_load(&bell.ring), 0);
    bell_check_again(&bell);
    assert_int_equal(atomic_load(&bell.asleep), BELL_AWAKE);
    assert_int_equal(atomic_load(&bell.ring), 1);
    (void)bell_announce(&bell);
    bell_check(&bell, true);
    assert_int_equal(atomic_load(&bell.asleep), BELL_AWAKE);
    assert_int_equal(atomic_load(&bell.ring), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_with_fences),
        cmocka_unit_test(threads_with_membarrier),
        cmocka_unit_test(processes_with_fences),
        cmocka_unit_test(processes_with_membarrier),
        cmocka_unit_test(processes_with_a_socket),
        cmocka_unit_test(processes_with_sockets),
        cmocka_unit_test(descriptors_end_a_poll),
        cmocka_unit_test(gate_tells_of_pollers),
        cmocka_unit_test(ringing_the_dead_is_no_signal),
        cmocka_unit_test(gate_with_fences),
        cmocka_unit_test(gate_with_membarrier),
        cmocka_unit_test(ring_after_the_announcement_counts),
        cmocka_unit_test(word_that_changed_is_not_slept_on),
        cmocka_unit_test(timeout_ends_a_sleep),
        cmocka_unit_test(second_look_misses_nothing),
        cmocka_unit_test(helper_is_woken_by_those_who_mean_it),
    };
    alarm(120);
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
