/* wait_test.c - waiting ends when it should: by a message, by another thread, by a gate; and costs nothing meanwhile. */
#include "mock_job.h"
#include "base/clock.h"
#include "base/sleep.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define MS   1000000u
#define MOST 50000u /* the longest time that is polled, ns */

static uint64_t cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000 * MS + (uint64_t)t.tv_nsec;
}

static struct comm *world;

/* The job, with sleeps at once (TERN_SPIN=never) or after the usual polling. */
static void open_job(bool never)
{
    if (never) setenv("TERN_SPIN", "never", 1);
    else unsetenv("TERN_SPIN");
    world = job_open_threaded();
}

static void *send_later(void *tag)
{
    int value = 5;
    usleep(50000);
    pt_send(world, &value, 1, type_of(MPI_INT), 0, (int)(intptr_t)tag, PT_STANDARD);
    return NULL;
}

/* A receive that waits sleeps: it is woken by the message, and has used next to no time of a core. */
static void sleeper_is_woken_by_a_message(void **state)
{
    (void)state;
    for (int never = 0; never < 2; never++) {
        pthread_t t;
        int value = 0;
        struct request_result res;
        open_job(never);
        uint64_t cpu = cpu_ns();
        assert_int_equal(pthread_create(&t, NULL, send_later, (void *)1), 0);
        assert_int_equal(pt_recv(world, &value, 1, type_of(MPI_INT), 0, 1, &res), 0);
        cpu = cpu_ns() - cpu;
        assert_int_equal(value, 5);
        pthread_join(t, NULL);
        assert_true(cpu < 25 * MS); /* of 50 ms of waiting */
        job_close();
    }
}

static void *receive(void *tag)
{
    int value = 0;
    struct request_result res;
    pt_recv(world, &value, 1, type_of(MPI_INT), 0, (int)(intptr_t)tag, &res);
    return value == 5 ? tag : NULL;
}

/* Several threads sleep; each message wakes whom it is for. */
static void threads_are_woken(void **state)
{
    enum { N = 4, ROUNDS = 200 };
    (void)state;
    for (int never = 0; never < 2; never++) {
        open_job(never);
        for (int round = 0; round < ROUNDS; round++) {
            pthread_t t[N];
            int value = 5;
            for (intptr_t i = 0; i < N; i++) assert_int_equal(pthread_create(&t[i], NULL, receive, (void *)(i + 1)), 0);
            if (round % 10 == 0) usleep(2000);
            for (int i = N; i > 0; i--) assert_int_equal(pt_send(world, &value, 1, type_of(MPI_INT), 0, i, PT_STANDARD), 0);
            for (int i = 0; i < N; i++) {
                void *got = NULL;
                pthread_join(t[i], &got);
                assert_non_null(got);
            }
        }
        job_close();
    }
}

static bool at_once(void *calls) { return ++*(int *)calls > 3; }

/* Until a thread sleeps in the lane. */
static void await_sleeper(void)
{
    for (bool asleep = false; !asleep; usleep(1000)) {
        lane_enter(lanes_first());
        asleep = waits.sleepers == 1;
        lane_leave(lanes_first());
    }
}

/* Until the thread that listens sleeps, and has said so to other processes. */
static void await_listener(void)
{
    while (!waits_at_bell() || atomic_load(&wires_bell()->asleep) != BELL_FUTEX) usleep(100);
}

/* Regression: a thread that found its work just before it would sleep withdrew the announcement that another thread
 * slept by; that one was not woken any more. */
static void announcement_stands_while_another_sleeps(void **state)
{
    pthread_t t;
    void *got = NULL;
    int value = 5, calls = 0;
    (void)state;
    open_job(true);
    assert_int_equal(pthread_create(&t, NULL, receive, (void *)1), 0);
    await_listener();
    usleep(5000);
    lane_enter(lanes_first());
    lane_wait(lanes_first(), at_once, &calls, NULL);
    lane_leave(lanes_first());
    await_listener();
    assert_int_equal(pt_send(world, &value, 1, type_of(MPI_INT), 0, 1, PT_STANDARD), 0);
    pthread_join(t, &got);
    assert_non_null(got);
    job_close();
}

struct taker {
    int calls, at;
};

/* As the ready of a matched probe: what it has found is gone when it is asked again. */
static bool take_at(void *taker)
{
    struct taker *t = taker;
    bell_ring(wires_bell()); /* so that no sleep lasts */
    return ++t->calls == t->at;
}

/* Regression: a wait asked once more after its ready had said true just before a sleep, and lost what that had taken.
 */
static void ready_is_not_asked_again(void **state)
{
    (void)state;
    open_job(true);
    for (int at = 1; at <= 300; at++) {
        struct taker t = {.at = at};
        lane_enter(lanes_first());
        lane_wait(lanes_first(), take_at, &t, NULL);
        lane_leave(lanes_first());
        assert_int_equal(t.calls, at);
    }
    job_close();
}

static void *probe(void *tag)
{
    struct request_result res = {0};
    bool found = false;
    pt_probe(world, 0, (int)(intptr_t)tag, true, &found, &res);
    return found && res.bytes == sizeof(int) ? tag : NULL;
}

/* Regression: a message that another thread took from the wire did not wake a thread asleep in a probe. */
static void prober_is_woken_by_what_another_thread_reads(void **state)
{
    pthread_t t;
    void *got = NULL;
    int value = 5;
    struct request_result res;
    (void)state;
    open_job(true);
    assert_int_equal(pthread_create(&t, NULL, probe, (void *)1), 0);
    await_listener();
    lane_enter(lanes_first());
    uint32_t rings = atomic_load(&wires_bell()->ring);
    job_peer()->credit -= eager_cost(sizeof value); /* it is this process that sends */
    tp_handlers[AM_EAGER](job_peer(), world->ctx, env_pack(0, 1), &value, sizeof value);
    lane_leave(lanes_first());
    assert_int_not_equal(atomic_load(&wires_bell()->ring), rings);
    pthread_join(t, &got);
    assert_non_null(got);
    assert_int_equal(pt_recv(world, &value, 1, type_of(MPI_INT), 0, 1, &res), 0);
    job_close();
}

static struct gate gate;
static _Atomic int opened;

static void *open_later(void *none)
{
    usleep(20000);
    atomic_store_explicit(&opened, 1, memory_order_release);
    gate_check(&gate, true);
    return none;
}

static bool is_opened(void *none)
{
    (void)none;
    return atomic_load_explicit(&opened, memory_order_acquire);
}

static void gate_ends_a_wait(void **state)
{
    (void)state;
    for (int never = 0; never < 2; never++) {
        pthread_t t;
        open_job(never);
        atomic_store(&opened, 0);
        assert_int_equal(pthread_create(&t, NULL, open_later, NULL), 0);
        lane_enter(lanes_first());
        lane_wait(lanes_first(), is_opened, NULL, &gate);
        lane_leave(lanes_first());
        pthread_join(t, NULL);
        assert_int_equal(atomic_load(&gate.sleepers), 0);
        job_close();
    }
}

/* The polling time after `n` waits of one kind. */
static uint64_t after(int n, uint64_t spin, uint64_t waited, bool slept)
{
    while (n--) spin = wait_learn(spin, MOST, waited, slept);
    return spin;
}

/* The polling time learnt: short waits make it grow to what pays, long ones let it shrink, and it has its bounds. */
static void polling_is_learnt(void **state)
{
    (void)state;
    assert_in_range(after(100, 0, 5000, false), 10000, 11000); /* ended by polling: near twice the wait */
    assert_int_equal(after(1, 20000, 5000, false), 20000);     /* ... and never less for it */
    assert_true(after(1, 0, 5000, true) > 0);                  /* a short sleep: polling longer would have paid */
    assert_int_equal(after(20, 0, 5000, true), MOST);
    assert_in_range(after(10, MOST, 50 * MS, true), MOST / 20, MOST / 15); /* long ones: a quarter less for each */
    assert_true(after(100, MOST, 50 * MS, true) < 10);
    assert_int_equal(after(1, MOST, UINT64_MAX / 4, false), MOST);
    assert_int_equal(wait_learn(7, 0, 5000, true), 7); /* TERN_SPIN=never and always: nothing is learnt */
    assert_int_equal(wait_learn(UINT64_MAX, UINT64_MAX, 50 * MS, true), UINT64_MAX);
}

static void *send_to_sleeper(void *none)
{
    int value = 5;
    await_sleeper();
    usleep((unsigned)(waits.spin_max_ns / 500)); /* twice as long as polling pays */
    pt_send(world, &value, 1, type_of(MPI_INT), 0, 1, PT_STANDARD);
    return none;
}

/* A wait that slept long has taught the lane that. */
static void a_long_sleep_teaches(void **state)
{
    pthread_t t;
    int value;
    struct request_result res;
    (void)state;
    open_job(false);
    assert_in_range(waits.spin_max_ns, 1, 100 * MS);
    waits.spin_ns = waits.spin_max_ns;
    assert_int_equal(pthread_create(&t, NULL, send_to_sleeper, NULL), 0);
    assert_int_equal(pt_recv(world, &value, 1, type_of(MPI_INT), 0, 1, &res), 0);
    pthread_join(t, NULL);
    assert_true(waits.spin_ns < waits.spin_max_ns);
    job_close();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(sleeper_is_woken_by_a_message, job_clean),
        cmocka_unit_test_teardown(threads_are_woken, job_clean),
        cmocka_unit_test_teardown(announcement_stands_while_another_sleeps, job_clean),
        cmocka_unit_test_teardown(ready_is_not_asked_again, job_clean),
        cmocka_unit_test_teardown(prober_is_woken_by_what_another_thread_reads, job_clean),
        cmocka_unit_test_teardown(gate_ends_a_wait, job_clean),
        cmocka_unit_test(polling_is_learnt),
        cmocka_unit_test_teardown(a_long_sleep_teaches, job_clean),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
