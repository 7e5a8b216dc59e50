/*
 * waits_test.c - threads that wait: no wake-up is lost in the four hand-shakes of waits.h, and each thread is woken alone.
 *
 * The hand-shakes are run many times, by two threads that begin each round together. A wake-up that was lost shows in a
 * sleep of LOST_NS.
 */
#include "mock_job.h"
#include "base/clock.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#define LOST_NS UINT64_C(5000000000)
#define ROUNDS  50000

/* A wait gets up by itself after half a second: a thread that was not told in time. */
#define SOON_NS UINT64_C(450000000)

/* ---- rounds of two threads ---- */

static _Atomic uint32_t here[2];

/* Both threads have come to round n. Then one of them is late by a few looks, each time by another number. */
static void meet(int who, uint32_t n)
{
    atomic_store(&here[who], n);
    for (uint32_t i = 0; atomic_load(&here[1 - who]) < n; i++)
        if (i % 64 == 63) sched_yield();
    for (uint32_t i = 0; i < (who ? n % 61 : n % 53); i++) cpu_relax();
}

static pthread_t begin_other(void *(*run)(void *))
{
    pthread_t t;
    atomic_store(&here[0], 0);
    atomic_store(&here[1], 0);
    assert_int_equal(pthread_create(&t, NULL, run, NULL), 0);
    return t;
}

/* ---- 1: a request ends while a thread goes to sleep for it ---- */

static struct request awaited;

static void reset(struct request *r) { atomic_store(&r->complete, 0); }

static void end_in_lane(struct request *r)
{
    lane_enter(lanes_first());
    waits_finish(r);
    lane_leave(lanes_first());
}

static bool mark_in_lane(struct request *r, const struct waiter *w)
{
    lane_enter(lanes_first());
    bool over = waits_mark(r, w);
    lane_leave(lanes_first());
    return over;
}

static void *end_requests(void *none)
{
    for (uint32_t n = 1; n <= ROUNDS; n++) {
        meet(1, n);
        end_in_lane(&awaited);
    }
    return none;
}

static void the_end_of_a_request_wakes_the_thread_that_marked_it(void **state)
{
    struct waiter *w = waits_mine();
    uint32_t slept = 0;
    (void)state;
    job_open_threaded();
    pthread_t t = begin_other(end_requests);
    for (uint32_t n = 1; n <= ROUNDS; n++) {
        uint64_t begin = clock_ns();
        reset(&awaited);
        atomic_store(&w->state, 0);
        meet(0, n);
        while (!mark_in_lane(&awaited, w)) {
            waits_sleep(w, LOST_NS);
            assert_true(clock_ns() - begin < LOST_NS);
            slept++;
        }
        assert_true(request_is_complete(&awaited));
        assert_int_equal(atomic_load(&waits.sleepers), 0);
    }
    pthread_join(t, NULL);
    assert_true(slept > 0);
    job_close();
}

/* ---- 2: the listener leaves while a thread goes to sleep ---- */

static void *listen_in_turn(void *none)
{
    for (uint32_t n = 1; n <= ROUNDS; n++) {
        while (!waits_listen()) sched_yield();
        meet(1, 2 * n - 1);
        while (n == 1 && atomic_load(&waits.listened) < WAITS_SLEEPER) sched_yield(); /* once the sleeper was there before, surely */
        waits_leave();
        meet(1, 2 * n);
    }
    return none;
}

static void a_listener_that_leaves_calls_a_sleeper(void **state)
{
    struct waiter *w = waits_mine();
    uint32_t called = 0;
    (void)state;
    job_open_threaded();
    pthread_t t = begin_other(listen_in_turn);
    for (uint32_t n = 1; n <= ROUNDS; n++) {
        meet(0, 2 * n - 1);
        uint64_t begin = clock_ns();
        atomic_store(&w->state, 0);
        while (!waits_listen()) {
            if (!waits_enrol(w)) continue;
            waits_sleep(w, LOST_NS);
            if (waits_withdraw(w) & WAITER_CALLED) called++;
            assert_true(clock_ns() - begin < LOST_NS);
        }
        waits_leave();
        meet(0, 2 * n);
    }
    pthread_join(t, NULL);
    assert_true(called > 0);
    assert_int_equal(atomic_load(&waits.listened), 0);
    assert_true(list_empty(&waits.asleep));
    job_close();
}

/* ---- 3: the listener is told something when it goes to sleep by the bell ---- */

static void *end_requests_slowly(void *none)
{
    for (uint32_t n = 1; n <= ROUNDS; n++) {
        meet(1, n);
        for (uint32_t i = 0; i < n * 7 % 2000; i++) cpu_relax(); /* as long as it takes to announce a sleep */
        end_in_lane(&awaited);
    }
    return none;
}

static void a_listener_that_goes_to_sleep_hears_of_the_end(void **state)
{
    uint64_t longest = 0;
    (void)state;
    setenv("TERN_SPIN", "never", 1);
    job_open_threaded();
    pthread_t t = begin_other(end_requests_slowly);
    for (uint32_t n = 1; n <= ROUNDS; n++) {
        reset(&awaited);
        meet(0, n);
        uint64_t begin = clock_ns();
        assert_int_equal(pt_wait(&awaited), 0);
        if (clock_ns() - begin > longest) longest = clock_ns() - begin;
    }
    pthread_join(t, NULL);
    assert_true(longest < SOON_NS);
    job_close();
}

/* ---- 4: a step is turned on when the listener goes to sleep ---- */

static int end_awaited(struct step *s)
{
    step_off(s);
    waits_finish(&awaited);
    return 1;
}

static const struct step_ops ops = {.name = "the end of a request", .poll = end_awaited};
static struct step step = {.ops = &ops};

static void *turn_steps_on(void *none)
{
    for (uint32_t n = 1; n <= ROUNDS; n++) {
        struct lane *l = lanes_first();
        meet(1, n);
        for (uint32_t i = 0; i < n * 7 % 2000; i++) cpu_relax();
        lane_enter(l);
        step_on(&l->steps, &step);
        lane_leave(l);
    }
    return none;
}

static void a_listener_that_goes_to_sleep_hears_of_a_step(void **state)
{
    uint64_t longest = 0;
    (void)state;
    setenv("TERN_SPIN", "never", 1);
    job_open_threaded();
    pthread_t t = begin_other(turn_steps_on);
    for (uint32_t n = 1; n <= ROUNDS; n++) {
        reset(&awaited);
        meet(0, n);
        uint64_t begin = clock_ns();
        assert_int_equal(pt_wait(&awaited), 0);
        if (clock_ns() - begin > longest) longest = clock_ns() - begin;
    }
    pthread_join(t, NULL);
    assert_true(longest < SOON_NS);
    job_close();
}

/* ---- each alone ---- */

enum { THREADS = 8, MESSAGES = 400 };

static struct comm *world;
static _Atomic int taken;

/* One way to wait for the next message with a tag, and take it. */
static void by_recv(int tag, int *value)
{
    struct request_result res;
    if (pt_recv(world, value, 1, type_of(MPI_INT), 0, tag, &res)) abort();
}

static void by_probe(int tag, int *value)
{
    struct request_result res;
    bool found = false;
    if (pt_probe(world, 0, tag, true, &found, &res) || !found || res.bytes != sizeof(int)) abort();
    by_recv(tag, value);
}

static void by_mprobe(int tag, int *value)
{
    struct request_result res;
    struct pt_message *m;
    struct request *r;
    bool found = false;
    (void)tag; /* all wait for the same one */
    if (pt_mprobe(world, 0, 1, true, &found, &m, &res) || !found) abort();
    if (pt_imrecv(m, value, 1, type_of(MPI_INT), &r) || pt_wait(r)) abort();
    pt_release(r);
}

/* The last of several requests ends last. */
static void by_waitall(int tag, int *value)
{
    struct request *r[4];
    int more[3];
    for (int i = 0; i < 3; i++)
        if (pt_irecv(world, &more[i], 1, type_of(MPI_INT), 0, tag + 100 * (i + 1), &r[i])) abort();
    if (pt_irecv(world, value, 1, type_of(MPI_INT), 0, tag, &r[3])) abort();
    pt_wait_many(4, r, true);
    for (int i = 0; i < 4; i++) pt_release(r[i]);
}

/* The one message, or another that never comes. */
static void by_waitany(int tag, int *value)
{
    struct request *r[2];
    int never;
    if (pt_irecv(world, &never, 1, type_of(MPI_INT), 0, tag + 1000, &r[0])) abort();
    if (pt_irecv(world, value, 1, type_of(MPI_INT), 0, tag, &r[1])) abort();
    pt_wait_many(2, r, false);
    if (pt_cancel(r[0]) || pt_wait(r[0]) || pt_wait(r[1])) abort();
    pt_release(r[0]);
    pt_release(r[1]);
}

struct taker {
    pthread_t id;
    int tag, count;
    void (*take)(int tag, int *value);
};

static void *take_messages(void *taker)
{
    struct taker *t = taker;
    for (int value = 0; value >= 0; t->count += value > 0) {
        t->take(t->tag, &value);
        atomic_fetch_add(&taken, 1);
    }
    return NULL;
}

static void await_all_asleep(int n)
{
    while (atomic_load(&waits.sleepers) != (uint32_t)n || !waits_at_bell()) usleep(20);
}

static void send(int value, int tag) { assert_int_equal(pt_send(world, &value, 1, type_of(MPI_INT), 0, tag, PT_STANDARD), 0); }

/* Eight threads sleep, each for its own messages. The listener tells one thread at a time, and calls at most one when its own
 * wait is over. So two are woken for a message at the most, and not all eight. */
static void each_is_woken_alone_by(void (*take)(int, int *), int messages_a_round)
{
    struct taker t[THREADS];
    setenv("TERN_SPIN", "never", 1);
    world = job_open_threaded();
    atomic_store(&taken, 0);
    for (int i = 0; i < THREADS; i++) {
        t[i] = (struct taker){.tag = i + 1, .take = take};
        assert_int_equal(pthread_create(&t[i].id, NULL, take_messages, &t[i]), 0);
    }
    await_all_asleep(THREADS);
    uint32_t woken = atomic_load(&waits.woken);
    for (int n = 0; n < MESSAGES; n++) {
        int tag = take == by_mprobe ? 1 : 1 + n * 5 % THREADS;
        await_all_asleep(THREADS);
        for (int i = messages_a_round - 1; i > 0; i--) send(1, tag + 100 * i);
        send(1, tag);
        while (atomic_load(&taken) <= n) usleep(20);
    }
    await_all_asleep(THREADS);
    woken = atomic_load(&waits.woken) - woken;
    for (int i = 0; i < THREADS; i++) {
        int tag = take == by_mprobe ? 1 : i + 1;
        for (int k = messages_a_round - 1; k > 0; k--) send(-1, tag + 100 * k);
        send(-1, tag);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(t[i].id, NULL);
        assert_in_range(t[i].count, MESSAGES / THREADS - (take == by_mprobe ? MESSAGES / THREADS / 4 : 0),
                        MESSAGES / THREADS + (take == by_mprobe ? MESSAGES / THREADS / 4 : 0));
    }
    print_message("# %u wake-ups for %d messages\n", woken, MESSAGES);
    assert_in_range(woken, MESSAGES / 4, 2 * MESSAGES + THREADS);
    job_close();
}

static void receivers_are_woken_alone(void **state)
{
    (void)state;
    each_is_woken_alone_by(by_recv, 1);
}

static void probers_are_woken_alone(void **state)
{
    (void)state;
    each_is_woken_alone_by(by_probe, 1);
}

static void takers_are_woken_in_turn(void **state)
{
    (void)state;
    each_is_woken_alone_by(by_mprobe, 1);
}

static void threads_are_woken_at_the_last_of_their_requests(void **state)
{
    (void)state;
    each_is_woken_alone_by(by_waitall, 4);
}

static void threads_are_woken_by_one_of_their_requests(void **state)
{
    (void)state;
    each_is_woken_alone_by(by_waitany, 1);
}

/* ---- waiters ---- */

static void *wait_for_awaited(void *none) { return pt_wait(&awaited) ? &awaited : none; }

/* Two threads that wait for the same request, which no program may do, but MPI_Comm_disconnect: both are told. */
static void both_threads_that_marked_a_request_are_told(void **state)
{
    (void)state;
    setenv("TERN_SPIN", "never", 1);
    job_open_threaded();
    for (int n = 0; n < 500; n++) {
        pthread_t t[2];
        void *failed;
        reset(&awaited);
        for (int i = 0; i < 2; i++) assert_int_equal(pthread_create(&t[i], NULL, wait_for_awaited, NULL), 0);
        if (n % 4) await_all_asleep(2);
        uint64_t begin = clock_ns();
        end_in_lane(&awaited);
        for (int i = 0; i < 2; i++) {
            pthread_join(t[i], &failed);
            assert_null(failed);
        }
        assert_true(clock_ns() - begin < SOON_NS);
    }
    job_close();
}

static void *number(void *number_p)
{
    *(uint32_t *)number_p = waits_mine()->number;
    return NULL;
}

/* Threads come and go: the next one has the memory of one that has ended. */
static void the_memory_of_threads_that_ended_is_used_again(void **state)
{
    (void)state;
    for (int i = 0; i < 1000; i++) {
        pthread_t t;
        uint32_t n = UINT32_MAX;
        assert_int_equal(pthread_create(&t, NULL, number, &n), 0);
        pthread_join(t, NULL);
        assert_in_range(n, 0, 64);
        assert_int_not_equal(n, waits_mine()->number);
    }
}

enum { CROWD = 64 }; /* more threads than have ended before, whose waiters are used first */
static pthread_key_t late_key;
static pthread_barrier_t crowd_is_there;
static uint32_t late_number, crowd_numbers[CROWD]; /* of a thread that ends, and of those that run meanwhile */
static int late_rounds;

static void *number_in_a_crowd(void *number_p)
{
    number(number_p);
    pthread_barrier_wait(&crowd_is_there);
    return NULL;
}

/* In the second round the waiter of the ending thread has been given back. */
static void wait_while_ending(void *any)
{
    pthread_t t[CROWD];
    if (!late_rounds++) {
        pthread_setspecific(late_key, any);
        return;
    }
    late_number = waits_mine()->number;
    for (int i = 0; i < CROWD; i++) pthread_create(&t[i], NULL, number_in_a_crowd, &crowd_numbers[i]);
    for (int i = 0; i < CROWD; i++) pthread_join(t[i], NULL);
}

static void *wait_and_end(void *none)
{
    (void)waits_mine();
    pthread_setspecific(late_key, &late_number);
    return none;
}

/* Destructors of the program's may wait when the thread's waiter has been given back. */
static void a_thread_that_waits_while_it_ends_has_a_waiter_of_its_own(void **state)
{
    pthread_t t;
    (void)state;
    (void)waits_mine(); /* its key is older than ours: at the end of a thread it comes first */
    assert_int_equal(pthread_key_create(&late_key, wait_while_ending), 0);
    assert_int_equal(pthread_barrier_init(&crowd_is_there, NULL, CROWD), 0);
    assert_int_equal(pthread_create(&t, NULL, wait_and_end, NULL), 0);
    pthread_join(t, NULL);
    assert_int_equal(late_rounds, 2);
    for (int i = 0; i < CROWD; i++) assert_int_not_equal(late_number, crowd_numbers[i]);
    pthread_barrier_destroy(&crowd_is_there);
    pthread_key_delete(late_key);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(the_end_of_a_request_wakes_the_thread_that_marked_it, job_clean),
        cmocka_unit_test_teardown(a_listener_that_leaves_calls_a_sleeper, job_clean),
        cmocka_unit_test_teardown(a_listener_that_goes_to_sleep_hears_of_the_end, job_clean),
        cmocka_unit_test_teardown(a_listener_that_goes_to_sleep_hears_of_a_step, job_clean),
        cmocka_unit_test_teardown(receivers_are_woken_alone, job_clean),
        cmocka_unit_test_teardown(probers_are_woken_alone, job_clean),
        cmocka_unit_test_teardown(takers_are_woken_in_turn, job_clean),
        cmocka_unit_test_teardown(threads_are_woken_at_the_last_of_their_requests, job_clean),
        cmocka_unit_test_teardown(threads_are_woken_by_one_of_their_requests, job_clean),
        cmocka_unit_test_teardown(both_threads_that_marked_a_request_are_told, job_clean),
        cmocka_unit_test_teardown(the_memory_of_threads_that_ended_is_used_again, job_clean),
        cmocka_unit_test_teardown(a_thread_that_waits_while_it_ends_has_a_waiter_of_its_own, job_clean),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
