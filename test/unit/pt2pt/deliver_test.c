/*
 * deliver_test.c - messages for a lane that another thread is in: the inbox, its order, losses, and communicators that
 * are made meanwhile.
 */
#include "mock_job.h"
#include "base/err.h"
#include "pt2pt/deliver.h"
#include "pt2pt/dispatch.h"
#include "pt2pt/early.h"
#include "pt2pt/lost.h"
#include "pt2pt/protocol.h"
#include "transport/wire_lock.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct comm *world;

/* A job whose transport is shared by threads from the start. */
static void open_shared(const struct mock_script *script)
{
    world = job_open_threaded();
    if (script) mock_script = *script;
    assert_true(wires_threaded);
}

/* ---- a thread that holds the lane ---- */

static struct holder {
    pthread_t thread;
    _Atomic bool inside, leave;
} holder;

static void *hold(void *none)
{
    (void)none;
    lane_enter(lanes_first());
    holder.inside = true;
    while (!holder.leave) usleep(100);
    lane_leave(lanes_first());
    return NULL;
}

static void begin_hold(void)
{
    holder.inside = holder.leave = false;
    assert_int_equal(pthread_create(&holder.thread, NULL, hold, NULL), 0);
    while (!holder.inside) usleep(100);
}

static void end_hold(void)
{
    holder.leave = true;
    pthread_join(holder.thread, NULL);
}

/* ---- mail ---- */

enum { POSTERS = 4, MAILS = 2000 };

static struct numbered {
    struct mail mail;
    int poster, number;
} mails[POSTERS][MAILS];

static int opened[POSTERS];
static pthread_t opener;

static void open_numbered(struct lane *l, struct mail *m)
{
    struct numbered *n = container_of(m, struct numbered, mail);
    assert_true(lane_is_mine(l));
    assert_int_equal(n->number, opened[n->poster]);
    opened[n->poster]++;
    opener = pthread_self();
}

static void *post_all(void *arg)
{
    struct numbered *n = arg;
    for (int i = 0; i < MAILS; i++) lane_post(lanes_first(), &n[i].mail);
    return NULL;
}

static void write_mails(void)
{
    for (int p = 0; p < POSTERS; p++) {
        opened[p] = 0;
        for (int i = 0; i < MAILS; i++) mails[p][i] = (struct numbered){.mail.open = open_numbered, .poster = p, .number = i};
    }
}

static void mail_to_a_free_lane_is_opened_by_who_posts_it(void **state)
{
    (void)state;
    open_shared(NULL);
    write_mails();
    lane_post(lanes_first(), &mails[0][0].mail);
    assert_int_equal(opened[0], 1);
    assert_true(pthread_equal(opener, pthread_self()));
    assert_false(lock_is_held(&lanes_first()->lock));
    job_close();
}

static void mail_to_a_held_lane_is_opened_by_who_leaves_it(void **state)
{
    (void)state;
    open_shared(NULL);
    write_mails();
    begin_hold();
    post_all(mails[1]);
    assert_int_equal(opened[1], 0);
    end_hold();
    assert_int_equal(opened[1], MAILS);
    assert_false(pthread_equal(opener, pthread_self()));
    job_close();
}

/* Each poster's in order, whoever opens it, while other threads come and go. */
static void mail_of_several_threads_is_opened_once_and_in_order(void **state)
{
    pthread_t t[POSTERS];
    (void)state;
    open_shared(NULL);
    write_mails();
    for (int p = 0; p < POSTERS; p++) assert_int_equal(pthread_create(&t[p], NULL, post_all, mails[p]), 0);
    for (int i = 0; i < 200; i++) {
        lane_enter(lanes_first());
        if (i % 50 == 0) usleep(500);
        lane_leave(lanes_first());
    }
    for (int p = 0; p < POSTERS; p++) pthread_join(t[p], NULL);
    for (int p = 0; p < POSTERS; p++) assert_int_equal(opened[p], MAILS);
    job_close();
}

/* ---- messages ---- */

enum { MESSAGES = 40 };

/* What is taken from a wire while another thread naps in the lane is handled when that leaves, in order. */
static void messages_wait_for_a_lane_that_is_held(void **state)
{
    static uint64_t in[MESSAGES], out[MESSAGES];
    struct request *s[MESSAGES], *r[MESSAGES];
    (void)state;
    open_shared(NULL);
    for (uint64_t i = 0; i < MESSAGES; i++) {
        out[i] = 1000 + i;
        s[i] = job_isend(world, &out[i], sizeof out[i], 7, PT_STANDARD);
    }
    for (int i = 0; i < MESSAGES; i++)
        assert_int_equal(pt_irecv(world, &in[i], sizeof in[i], type_of(MPI_BYTE), MPI_ANY_SOURCE, MPI_ANY_TAG, &r[i]), 0);
    begin_hold();
    while (mock_count.delivered < MESSAGES) lanes_turn(LANES_BUDGET);
    assert_false(inbox_is_empty(&lanes_first()->inbox));
    for (int i = 0; i < MESSAGES; i++) assert_false(request_is_complete(r[i]));
    end_hold();
    for (uint64_t i = 0; i < MESSAGES; i++) {
        assert_true(request_is_complete(r[i]));
        assert_int_equal(in[i], out[i]);
        job_end(r[i], 0);
        job_end(s[i], 0);
    }
    job_close();
}

/* A message of a layer above, long or short, that is for a communicator. */
enum { AM_ABOVE = TP_AM_TESTS, LONG = 5000 };
static size_t heard[2];
static int hears;
static void hear(struct lane *l, struct pt_comm *pt, struct peer *from, uint64_t h0, uint64_t h1, const void *data, size_t n)
{
    (void)pt, (void)from, (void)h0, (void)h1, (void)data;
    assert_true(lane_is_mine(l) && hears < 2);
    heard[hears++] = n;
}
static const struct pt_kind above = {AM_ABOVE, PT_BY_CONTEXT, hear};
static void on_above(struct peer *from, uint64_t h0, uint64_t h1, const void *data, size_t n) { dispatch(&above, from, h0, h1, data, n); }

/* One that came in parts is not overtaken by the next, when both wait for the lane. */
static void a_long_message_is_handled_before_the_next(void **state)
{
    static const struct tp_am am = {AM_ABOVE, "of a layer above", on_above, NULL, false, 0};
    static struct {
        struct pt_long head;
        char data[LONG];
    } whole;
    (void)state;
    assert_int_equal(tp_am_register(&am, 1), 0);
    open_shared(NULL);
    whole.head = (struct pt_long){.h0 = world->ctx, .id = AM_ABOVE};
    hears = 0;
    begin_hold();
    tp_handlers[AM_PART](job_peer(), sizeof whole.head + LONG, 0, &whole, 3000);
    tp_handlers[AM_PART](job_peer(), sizeof whole.head + LONG, 3000, (char *)&whole + 3000, sizeof whole.head + LONG - 3000);
    tp_handlers[AM_ABOVE](job_peer(), world->ctx, 0, &whole, 8);
    assert_int_equal(hears, 0);
    end_hold();
    assert_int_equal(hears, 2);
    assert_int_equal(heard[0], LONG);
    assert_int_equal(heard[1], 8);
    job_close();
    tp_am_unregister(&am, 1);
}

/* A look at a wire takes the lane once: all its messages are handled in it. */
static void a_batch_is_handled_at_once_in_a_free_lane(void **state)
{
    static uint64_t in[MESSAGES];
    struct request *s[MESSAGES], *r[MESSAGES];
    (void)state;
    open_shared(NULL);
    for (int i = 0; i < MESSAGES; i++) {
        r[i] = job_irecv(world, &in[i], sizeof in[i], i);
        s[i] = job_isend(world, &in[0], 0, i, PT_STANDARD);
    }
    lanes_turn(LANES_BUDGET);
    assert_false(lock_is_held(&lanes_first()->lock));
    for (int i = 0; i < MESSAGES; i++) {
        assert_true(request_is_complete(r[i]));
        job_end(r[i], 0);
        job_end(s[i], 0);
    }
    job_close();
}

/* What the peer had sent whole comes to its receives, and only then are the others ended. */
static void messages_posted_before_a_loss_come_before_it(void **state)
{
    static uint64_t in[MESSAGES + 1], out[MESSAGES];
    struct request *s[MESSAGES], *r[MESSAGES + 1];
    (void)state;
    open_shared(NULL);
    for (uint64_t i = 0; i < MESSAGES; i++) {
        out[i] = i + 1;
        s[i] = job_isend(world, &out[i], sizeof out[i], 7, PT_STANDARD);
    }
    for (int i = 0; i <= MESSAGES; i++) r[i] = job_irecv(world, &in[i], sizeof in[i], 7);
    begin_hold();
    while (mock_count.delivered < MESSAGES) lanes_turn(LANES_BUDGET);
    tp_lost(job_peer(), err_set(TERN_ERR_PEER, "it went"));
    assert_false(request_is_complete(r[0]));
    end_hold();
    while (lanes_turn(LANES_BUDGET)) continue;
    for (uint64_t i = 0; i < MESSAGES; i++) {
        job_end(r[i], 0);
        job_end(s[i], 0);
        assert_int_equal(in[i], i + 1);
    }
    job_end(r[MESSAGES], TERN_ERR_PEER);
    assert_true(lost_is_over(job_peer()) && lost_is_known(lanes_first(), job_peer()));
    job_abandon();
}

/* ---- all kinds of messages, with threads that nap, poll and send ---- */

static _Atomic bool enough;
static _Atomic long naps, turns;

static void *nap_inside(void *none)
{
    (void)none;
    for (; !enough; naps++) {
        lane_enter(lanes_first());
        usleep(50);
        lane_leave(lanes_first());
        usleep(20);
    }
    return NULL;
}

static void *poll_outside(void *none)
{
    (void)none;
    for (; !enough; turns++) lanes_turn(8);
    return NULL;
}

enum { LONGEST = 40000, ROUNDS = 400, WINDOW = 4 };

/* Messages of one source and any tag come in the order in which they were sent, whatever their size and way. */
static void exchange(uint64_t *seed)
{
    static char in[WINDOW][LONGEST], out[WINDOW][LONGEST];
    static const int64_t sizes[] = {0, 8, 200, 3000, 8000, LONGEST};
    for (int round = 0; round < ROUNDS; round++) {
        struct request *s[WINDOW], *r[WINDOW];
        int64_t n[WINDOW];
        bool first = random_next(seed) % 2;
        for (int i = 0; i < WINDOW; i++) n[i] = sizes[random_next(seed) % ARRAY_LEN(sizes)];
        for (int part = 0; part < 2; part++)
            for (int i = 0; i < WINDOW; i++) {
                if ((part == 0) == first) {
                    assert_int_equal(pt_irecv(world, in[i], LONGEST, type_of(MPI_BYTE), MPI_ANY_SOURCE, MPI_ANY_TAG, &r[i]), 0);
                } else {
                    fill(out[i], (size_t)n[i], (uint64_t)(round * WINDOW + i));
                    s[i] = job_isend(world, out[i], n[i], i, random_next(seed) % 4 ? PT_STANDARD : PT_SYNC);
                }
            }
        for (int i = 0; i < WINDOW; i++) {
            assert_int_equal(pt_wait(r[i]), 0);
            assert_int_equal(r[i]->result.tag, i);
            assert_int_equal(r[i]->result.bytes, n[i]);
            assert_true(filled(in[i], (size_t)n[i], (uint64_t)(round * WINDOW + i)));
            pt_release(r[i]);
            job_end(s[i], 0);
        }
    }
}

static void run_exchange(const struct mock_script *script, uint32_t busy_every)
{
    pthread_t t[3];
    uint64_t seed = random_open();
    open_shared(script);
    deliver_busy_every = busy_every;
    enough = false;
    naps = turns = 0;
    assert_int_equal(pthread_create(&t[0], NULL, nap_inside, NULL), 0);
    for (int i = 1; i < 3; i++) assert_int_equal(pthread_create(&t[i], NULL, poll_outside, NULL), 0);
    exchange(&seed);
    enough = true;
    for (int i = 0; i < 3; i++) pthread_join(t[i], NULL);
    assert_true(naps > 0 && turns > 0);
    job_settle();
    deliver_busy_every = 0;
    job_close();
}

static void all_kinds_come_in_order_to_a_lane_that_naps(void **state)
{
    (void)state;
    run_exchange(NULL, 0);
}

static void so_they_do_when_every_third_lane_counts_as_held(void **state)
{
    (void)state;
    run_exchange(NULL, 3);
}

/* Payloads that go to where they belong before their handler is called, and sends that are over later. */
static void so_they_do_over_a_stream(void **state)
{
    struct mock_script script = MOCK_SCRIPT;
    (void)state;
    script.caps = TP_CAP_ZCOPY;
    script.sink_min = 64;
    script.done_late = true;
    setenv("TERN_CHUNK_STREAM", "4096", 1);
    run_exchange(&script, 2);
    assert_true(mock_count.sunk > 0);
}

/* Transfers of the wire's own, which end by its progress. */
static void so_they_do_in_bulk(void **state)
{
    struct mock_script script = MOCK_SCRIPT;
    (void)state;
    script.caps = TP_CAP_BULK;
    run_exchange(&script, 2);
    assert_true(mock_count.bulk > 0);
}

/* ---- communicators that are made while messages come for them ---- */

enum { CONTEXTS = 300, EARLY = 50, FIRST_CONTEXT = 1000 };
static _Atomic int coming; /* the context that messages are coming for */
static pthread_barrier_t both;

static void *send_early(void *none)
{
    (void)none;
    for (int c = 0; c < CONTEXTS; c++) {
        pthread_barrier_wait(&both);
        for (int i = 0; i < EARLY; i++) {
            tp_handlers[AM_EAGER](job_peer(), FIRST_CONTEXT + 2 * (uint64_t)c, env_pack(0, i), &i, sizeof i);
            coming = i;
        }
        pthread_barrier_wait(&both);
    }
    return NULL;
}

/* The communicator comes before, between or behind them: each is there once, and in order. */
static void messages_and_their_communicator_come_at_the_same_time(void **state)
{
    pthread_t t;
    uint64_t seed = random_open();
    int early = 0;
    (void)state;
    open_shared(NULL);
    job_peer();
    pthread_barrier_init(&both, NULL, 2);
    assert_int_equal(pthread_create(&t, NULL, send_early, NULL), 0);
    for (int c = 0; c < CONTEXTS; c++) {
        struct lane *l = lanes_first();
        int when = (int)(random_next(&seed) % EARLY);
        coming = -1;
        pthread_barrier_wait(&both);
        while (coming < when) cpu_relax();
        early += early_contexts > 0;
        lane_enter(l);
        struct pt_comm *pt = context_add(l, world, FIRST_CONTEXT + 2 * (uint64_t)c);
        lane_drain(l);
        lane_leave(l);
        pthread_barrier_wait(&both);
        lane_enter(l);
        for (int i = 0; i < EARLY; i++) {
            struct match_body *b = match_take(&pt->match[PT_USER], MATCH_ANY_SOURCE, MATCH_ANY_TAG);
            assert_non_null(b);
            assert_int_equal(b->tag, i);
            pt_drop_body(l, b);
        }
        assert_null(match_take(&pt->match[PT_USER], MATCH_ANY_SOURCE, MATCH_ANY_TAG));
        context_drop(pt);
        lane_leave(l);
    }
    pthread_join(t, NULL);
    pthread_barrier_destroy(&both);
    assert_true(early > 0);
    assert_int_equal(early_contexts, 0);
    job_close();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(mail_to_a_free_lane_is_opened_by_who_posts_it, job_clean),
        cmocka_unit_test_teardown(mail_to_a_held_lane_is_opened_by_who_leaves_it, job_clean),
        cmocka_unit_test_teardown(mail_of_several_threads_is_opened_once_and_in_order, job_clean),
        cmocka_unit_test_teardown(messages_wait_for_a_lane_that_is_held, job_clean),
        cmocka_unit_test_teardown(a_long_message_is_handled_before_the_next, job_clean),
        cmocka_unit_test_teardown(a_batch_is_handled_at_once_in_a_free_lane, job_clean),
        cmocka_unit_test_teardown(messages_posted_before_a_loss_come_before_it, job_clean),
        cmocka_unit_test_teardown(all_kinds_come_in_order_to_a_lane_that_naps, job_clean),
        cmocka_unit_test_teardown(so_they_do_when_every_third_lane_counts_as_held, job_clean),
        cmocka_unit_test_teardown(so_they_do_over_a_stream, job_clean),
        cmocka_unit_test_teardown(so_they_do_in_bulk, job_clean),
        cmocka_unit_test_teardown(messages_and_their_communicator_come_at_the_same_time, job_clean),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
