/*
 * send_threads_test.c - threads that send at the same time, without a lock where they can: each thread's messages come in the
 * order in which it sent them, all of them once, whether they went straight out, waited for room or were offered for want of
 * credit. In the end the credit adds up (job_close).
 */
#include "base/err.h"
#include "mock_job.h"
#include "transport/wire_lock.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Under the thread sanitizer a message takes much longer. */
#ifdef __SANITIZE_THREAD__
enum { EACH = 1500 };
#else
enum { EACH = 30000 };
#endif
enum { THREADS = 4, OPEN = 6, LONGEST = 3000 };

static struct comm *world;
static uint64_t seed;

struct text {
    uint64_t thread, number;
    unsigned char rest[LONGEST];
};

struct sender {
    pthread_t id;
    uint64_t thread, bad;
    struct text text[OPEN];
    struct request *open[OPEN]; /* NULL: none */
};

static size_t write_text(struct text *t, uint64_t thread, uint64_t number, size_t n)
{
    t->thread = thread;
    t->number = number;
    fill(t->rest, n, thread + 100 * number);
    return offsetof(struct text, rest) + n;
}

static void finish(struct sender *s, int i)
{
    if (!s->open[i]) return;
    s->bad += pt_wait(s->open[i]) != 0;
    pt_release(s->open[i]);
    s->open[i] = NULL;
}

/* Blocking and nonblocking sends, small and less small, with up to OPEN of them under way. */
static void *send_all(void *arg)
{
    struct sender *s = arg;
    uint64_t state = seed + s->thread;
    for (uint64_t number = 0; number < EACH; number++) {
        uint64_t r = random_next(&state);
        int i = (int)(number % OPEN);
        finish(s, i);
        size_t n = write_text(&s->text[i], s->thread, number, r % 16 ? (r >> 8) % 24 : (r >> 8) % LONGEST);
        int rc = r >> 4 & 1 ? pt_send(world, &s->text[i], (int64_t)n, type_of(MPI_BYTE), 0, (int)s->thread, PT_STANDARD)
                            : pt_isend(world, &s->text[i], (int64_t)n, type_of(MPI_BYTE), 0, (int)s->thread,
                                       r % 32 == 7 ? PT_SYNC : PT_STANDARD, &s->open[i]);
        s->bad += rc != 0;
    }
    for (int i = 0; i < OPEN; i++) finish(s, i);
    return NULL;
}

static struct sender sender[THREADS];

/* The next message, whoever has sent it: the next one of its sender's. */
static void take_one(uint64_t came[THREADS])
{
    static struct text t;
    struct request_result res;
    assert_int_equal(pt_recv(world, &t, sizeof t, type_of(MPI_BYTE), 0, MPI_ANY_TAG, &res), 0);
    assert_true(t.thread < THREADS && (int)t.thread == res.tag);
    if (t.number != came[t.thread])
        fail_msg("message %llu of thread %llu comes where %llu should", (unsigned long long)t.number, (unsigned long long)t.thread,
                 (unsigned long long)came[t.thread]);
    came[t.thread]++;
    assert_true(filled(t.rest, (size_t)res.bytes - offsetof(struct text, rest), t.thread + 100 * t.number));
}

/* `few`: credit for so few messages that it runs out. */
static void run(uint32_t room, uint32_t again_percent, bool few)
{
    uint64_t came[THREADS] = {0};
    setenv("TERN_EAGER_CREDIT", few ? "4096" : "65536", 1);
    world = job_open_threaded();
    mock_script.room = room;
    mock_script.again_percent = again_percent;
    mock_script.seed = seed;
    alarm(120);
    memset(sender, 0, sizeof sender);
    for (uint64_t i = 0; i < THREADS; i++) {
        sender[i].thread = i;
        assert_int_equal(pthread_create(&sender[i].id, NULL, send_all, &sender[i]), 0);
    }
    for (int n = 0; n < THREADS * EACH; n++) take_one(came);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(sender[i].id, NULL), 0);
        assert_true(!sender[i].bad && came[i] == EACH);
    }
    mock_script.again_percent = 0;
    job_settle();
    assert_true(mock_count.refused > 0); /* operations have waited, */
    assert_true(mock_count.sent[AM_CREDIT] > 0 && (mock_count.sent[AM_RTS] > 0 || !few)); /* credit has run out, and come back, */
    assert_true(mock_count.sent[AM_EAGER] > (uint64_t)EACH / 10); /* and other messages have gone without an offer */
    assert_true(job_peer()->short_max > 0);
    job_close();
}

static void each_threads_messages_are_in_order(void **state)
{
    (void)state;
    seed = random_open();
    run(64, 10, true);
    run(3, 0, false);
    run(8, 50, true);
}

/* ---- the way is closed while an operation waits ---- */

static int send_straight(int value)
{
    return pt_send_short(&value, sizeof value, type_of(MPI_BYTE), 0, 5, world);
}

static void the_short_way_is_closed_while_an_operation_waits(void **state)
{
    int value, in;
    struct request_result res;
    (void)state;
    world = job_open_threaded();
    value = 0;
    assert_int_equal(pt_send(world, &value, sizeof value, type_of(MPI_BYTE), 0, 5, PT_STANDARD), 0); /* connects */
    int64_t credit = job_peer()->credit;
    assert_true(job_peer()->short_max > 0);
    mock_script.room = 2;
    assert_int_equal(send_straight(1), 0);
    assert_int_equal(send_straight(2), TERN_AGAIN); /* the caller gives the credit back */
    counter_add(&job_peer()->credit, eager_cost(sizeof value));
    value = 2;
    struct request *r = job_isend(world, &value, sizeof value, 5, PT_STANDARD);
    assert_false(request_is_complete(r));
    assert_int_equal(job_peer()->short_max, -1);
    uint64_t sent = mock_count.sent[AM_EAGER];
    assert_int_equal(send_straight(3), PT_LONG_WAY);
    assert_true(mock_count.sent[AM_EAGER] == sent && job_peer()->credit == credit - 2 * eager_cost(sizeof value));
    job_settle();
    assert_true(request_is_complete(r) && job_peer()->short_max > 0);
    assert_int_equal(send_straight(3), 0);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(pt_recv(world, &in, sizeof in, type_of(MPI_BYTE), 0, 5, &res), 0);
        assert_int_equal(in, i);
    }
    job_end(r, 0);
    job_close();
}

/* ---- a sleeper is told ---- */

static void *sleep_for_one(void *number)
{
    struct request_result res;
    pt_recv(world, number, sizeof(int), type_of(MPI_BYTE), 0, 5, &res);
    return NULL;
}

static void await_sleeper(void)
{
    for (bool asleep = false; !asleep; sched_yield()) {
        lane_enter(world->lane);
        asleep = waits.sleepers;
        lane_leave(world->lane);
    }
}

static void set_room(uint32_t room)
{
    assert_int_equal(wire_take(0, WIRE_CALL), 0);
    mock_script.room = room;
    wire_give(0, WIRE_CALL);
}

/* A thread that sleeps goes on with what another one has parked, who does not call again: it is rung for. It would get up to doubt
 * its wait, but not before half a second. */
static void a_sleeper_sends_what_another_thread_has_parked(void **state)
{
    pthread_t t;
    int value = 7, in = 0;
    (void)state;
    setenv("TERN_SPIN", "never", 1);
    world = job_open_threaded();
    set_room(0);
    assert_int_equal(pthread_create(&t, NULL, sleep_for_one, &in), 0);
    await_sleeper();
    uint32_t rung = atomic_load(&wires_bell()->ring);
    struct request *r = job_isend(world, &value, sizeof value, 5, PT_STANDARD);
    assert_false(request_is_complete(r));
    assert_true(atomic_load(&wires_bell()->ring) != rung);
    set_room(64);
    assert_int_equal(pthread_join(t, NULL), 0);
    assert_int_equal(in, 7);
    assert_true(request_is_complete(r));
    job_end(r, 0);
    job_close();
}

/* A helper of a process with one thread uses the transports as that thread does: sends without a lock go the long way then. */
static void one_thread_finds_no_shared_peers(void **state)
{
    int value = 1;
    (void)state;
    world = job_open(NULL);
    assert_int_equal(pt_send(world, &value, sizeof value, type_of(MPI_BYTE), 0, 5, PT_STANDARD), 0);
    assert_int_equal(send_straight(2), 0);
    assert_int_equal(peer_short_prepare(), 0);
    peer_short_open(false); /* as lane_leave_and_let_helper_in does */
    assert_true(job_peer()->short_max > 0);
    assert_int_equal(send_straight(3), PT_LONG_WAY);
    peer_short_open(true);
    assert_int_equal(send_straight(3), 0);
    job_settle();
    for (int i = 1; i < 4; i++) {
        struct request_result res;
        assert_int_equal(pt_recv(world, &value, sizeof value, type_of(MPI_BYTE), 0, 5, &res), 0);
        assert_int_equal(value, i);
    }
    job_close();
}

/* Credit is what messages cost, whoever takes it: it never falls below 0 for good, nor comes to more than there was. */
static _Atomic long taken;

static void *take_credit(void *arg)
{
    struct peer *p = arg;
    for (int i = 0; i < 20000; i++) {
        if (!credit_take(p, 36)) continue;
        atomic_fetch_add(&taken, 1);
        if (i % 3) continue;
        credit_return(p, 36);
        atomic_fetch_sub(&taken, 1);
    }
    return NULL;
}

static void credit_adds_up(void **state)
{
    pthread_t t[THREADS];
    (void)state;
    world = job_open_threaded();
    struct peer *p = job_peer();
    int64_t before = p->credit;
    p->credit = 10000 * 100 + 99;
    atomic_store(&taken, 0);
    for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&t[i], NULL, take_credit, p), 0);
    for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_join(t[i], NULL), 0);
    assert_int_equal(p->credit, 99);
    assert_int_equal(atomic_load(&taken), 10000);
    p->credit = before;
    job_close();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(each_threads_messages_are_in_order, job_clean),
        cmocka_unit_test_teardown(the_short_way_is_closed_while_an_operation_waits, job_clean),
        cmocka_unit_test_teardown(a_sleeper_sends_what_another_thread_has_parked, job_clean),
        cmocka_unit_test_teardown(one_thread_finds_no_shared_peers, job_clean),
        cmocka_unit_test_teardown(credit_adds_up, job_clean),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
