/* lanes_test.c - several lanes: which one a communicator is in, and what concerns all of them. */
#include "mock_job.h"
#include "base/err.h"
#include "base/var.h"
#include "obj/hints.h"
#include "pt2pt/bsend.h"
#include "pt2pt/early.h"
#include "pt2pt/lost.h"
#include "pt2pt/pending.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static struct comm *world;

/* N lanes, 0: as many as there are by default. */
static struct peer *open_lanes(const char *n, const struct mock_script *script)
{
    if (n) setenv("TERN_LANES", n, 1);
    world = job_open(script);
    return job_peer();
}

static struct comm *make(void)
{
    struct comm *c = NULL;
    assert_int_equal(comm_new(comm_fresh_ctx(), rankmap_ref(world->map), NULL, world, &c), 0);
    return c;
}

static struct comm *make_hinted(const char *value) { return job_comm_in(world, value); }

/* Two in lanes that are neither the first nor the same. */
static void make_two(struct comm **a, struct comm **b)
{
    *a = make_hinted("1");
    *b = make_hinted("2");
    assert_int_equal((*a)->lane->number, 1);
    assert_int_equal((*b)->lane->number, 2);
}

static bool are_drained(void)
{
    struct lane *l;
    bool all = true;
    for (uint32_t i = 0; (l = lanes_at(i)); i++) all &= progress_drained(&l->steps);
    return all;
}

/* ---- the choice ---- */

static void there_is_one_lane_by_default(void **state)
{
    (void)state;
    open_lanes(NULL, NULL);
    for (int i = 0; i < 8; i++) {
        struct comm *c = i % 2 ? make() : make_hinted("3");
        assert_ptr_equal(c->lane, lanes_first());
        comm_unref(c);
    }
    assert_false(lanes_are_several());
    job_close();
}

static void contexts_are_dealt_out(void **state)
{
    struct comm *c[8];
    int in[4] = {0};
    (void)state;
    open_lanes("4", NULL);
    assert_ptr_equal(world->lane, lanes_first());
    assert_ptr_equal(comm_self()->lane, lanes_first());
    assert_false(lanes_are_several()); /* the others are made when they are chosen */
    for (int i = 0; i < 8; i++) {
        c[i] = make();
        assert_true(c[i]->lane->number < 4);
        in[c[i]->lane->number]++;
        assert_ptr_equal(lanes_of_id((uint64_t)1 << 32 | c[i]->lane->number << IDS_BITS), c[i]->lane);
    }
    for (int i = 0; i < 4; i++) assert_int_equal(in[i], 2);
    assert_ptr_equal(lanes_of_id((uint64_t)1 << 32 | 40u << IDS_BITS), lanes_first()); /* there is none */
    for (int i = 0; i < 8; i++) comm_unref(c[i]);
    job_close();
}

static void numbers_that_cannot_be_are_refused(void **state)
{
    static const char *const bad[] = {"0", "65", "-1", "4x", "", "many", "99999999999999999999"};
    (void)state;
    assert_int_equal(var_open(), 0);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        assert_int_equal(var_set(VAR_LANES, bad[i]), 0);
        assert_int_equal(lanes_open(false), TERN_ERR_ARG);
        assert_non_null(strstr(err_words(), "TERN_LANES"));
        assert_non_null(strstr(err_words(), "1 to 64"));
        lanes_close();
    }
    var_close();
}

static void a_hint_goes_before_the_context(void **state)
{
    (void)state;
    open_lanes("4", NULL);
    struct comm *three = make_hinted("3"), *wraps = make_hinted("6"), *shared = make_hinted("shared");
    assert_int_equal(three->lane->number, 3);
    assert_int_equal(wraps->lane->number, 2);
    assert_ptr_equal(shared->lane, lanes_first());
    struct comm *own = make_hinted("own"), *next = make_hinted("own");
    assert_int_equal(own->lane->number, 1); /* the first lane has had two, 2 and 3 one each */
    assert_ptr_not_equal(next->lane, own->lane);
    struct comm *none = make_hinted("64"); /* no lane, so it is ignored */
    assert_null(info_get(none->info, "tern_lane"));
    assert_string_equal(info_get(three->info, "tern_lane"), "3");
    struct comm *all[] = {three, wraps, shared, own, next, none};
    for (size_t i = 0; i < ARRAY_LEN(all); i++) comm_unref(all[i]);
    job_close();
}

/* The lane never changes, so the hint is not taken any more, nor said to be in use. */
static void a_hint_for_one_that_is_made_is_ignored(void **state)
{
    (void)state;
    open_lanes("4", NULL);
    struct comm *c = make();
    struct lane *l = c->lane;
    struct info *hints = info_new();
    assert_int_equal(info_set(hints, "tern_lane", l->number ? "shared" : "1"), 0);
    assert_int_equal(comm_hints_set(c, hints), 0);
    assert_ptr_equal(c->lane, l);
    assert_null(info_get(c->info, "tern_lane"));
    info_free(hints);
    comm_unref(c);
    job_close();
}

static void an_intercommunicator_and_its_group_are_in_one_lane(void **state)
{
    (void)state;
    open_lanes("4", NULL);
    for (int i = 0; i < 8; i++) {
        struct comm *c = NULL;
        uint64_t ctx = comm_fresh_ctx(), within;
        for (int k = 0; k <= i % 3; k++) within = comm_fresh_ctx();
        assert_int_equal(comm_new_inter(ctx, within, rankmap_ref(world->map), rankmap_ref(world->map), world, &c), 0);
        assert_int_equal(c->within->ctx, within);
        assert_int_equal(c->within->lane->number, (within >> 1) % 4);
        assert_ptr_equal(c->lane, c->within->lane);
        assert_null(c->within->around);
        comm_unref(c);
    }
    job_close();
}

/* Another thread may enter the lane of the first of the two before the second is made, but not the one that the maker is in. */
static void an_intercommunicator_that_is_made_in_a_lane_is_in_that_lane(void **state)
{
    struct comm *c = NULL;
    uint64_t ctx, within;
    (void)state;
    setenv("TERN_LANES", "4", 1);
    world = job_open_threaded();
    struct comm *parent = make_hinted("1");
    ctx = comm_fresh_ctx();
    do within = comm_fresh_ctx();
    while ((within >> 1) % 4 != 3);
    lane_enter(parent->lane);
    assert_int_equal(comm_new_inter(ctx, within, rankmap_ref(world->map), rankmap_ref(world->map), world, &c), 0);
    lane_leave(parent->lane);
    assert_ptr_equal(c->within->lane, parent->lane);
    assert_ptr_equal(c->lane, parent->lane);
    comm_unref(c);
    comm_unref(parent);
    job_close();
}

/* What comes before the communicator waits for it, and goes to its lane. */
static void an_early_message_goes_to_the_lane_of_its_communicator(void **state)
{
    struct peer *from = open_lanes("4", NULL);
    uint64_t ctx;
    int value = 17, got = 0;
    struct comm *c = NULL;
    struct request_result res;
    (void)state;
    do ctx = comm_fresh_ctx();
    while ((ctx >> 1) % 4 != 3);
    from->credit -= eager_cost(sizeof value);
    assert_int_equal(from->ep.am_short(&from->ep, AM_EAGER, ctx, env_pack(0, 5), &value, sizeof value), 0);
    job_settle();
    assert_int_equal(early_contexts, 1);
    assert_int_equal(comm_new(ctx, rankmap_ref(world->map), NULL, world, &c), 0);
    assert_int_equal(c->lane->number, 3);
    assert_int_equal(early_contexts, 0);
    assert_int_equal(c->lane->pool.bodies, 1);
    assert_int_equal(lanes_first()->pool.bodies, 0);
    assert_int_equal(pt_recv(c, &got, sizeof got, type_of(MPI_BYTE), 0, 5, &res), 0);
    assert_int_equal(got, 17);
    comm_unref(c);
    job_close();
}

/* By default at least four. */
static void threads_have_several_lanes(void **state)
{
    static const char *const asked[] = {NULL, "auto", "1", "3", "4"};
    static const uint32_t number[] = {3, 3, 0, 0, 3};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(asked); i++) {
        if (asked[i]) setenv("TERN_LANES", asked[i], 1);
        world = job_open_threaded();
        struct comm *c = make_hinted("3");
        assert_int_equal(c->lane->number, number[i]);
        comm_unref(c);
        job_close();
    }
}

/* Another thread has the lane that is chosen, and this one is in a lane already. */
static void a_thread_in_a_lane_waits_for_no_other(void **state)
{
    (void)state;
    setenv("TERN_LANES", "4", 1);
    world = job_open_threaded();
    struct comm *three = make_hinted("3");
    assert_null(lane_here());
    lane_enter(lanes_first());
    assert_ptr_equal(lane_here(), lanes_first());
    assert_true(lock_try(&three->lane->lock)); /* by nobody that the lane knows */
    struct comm *c = make_hinted("3");
    assert_ptr_equal(c->lane, lanes_first());
    assert_true(lock_give(&three->lane->lock));
    struct comm *free = make_hinted("3");
    assert_ptr_equal(free->lane, three->lane);
    lane_leave(lanes_first());
    assert_null(lane_here());
    struct comm *all[] = {three, c, free};
    for (size_t i = 0; i < ARRAY_LEN(all); i++) comm_unref(all[i]);
    job_close();
}

/* ---- operations that wait for room ---- */

struct probe {
    struct pending pending;
    struct lane *lane;
    int attempts, ended;
    bool goes;
};

static bool attempt_probe(struct lane *l, struct peer *p, struct pending *op)
{
    struct probe *q = container_of(op, struct probe, pending);
    assert_ptr_equal(l, q->lane);
    assert_ptr_equal(p, job_peer());
    q->attempts++;
    return q->goes;
}

static void end_probe(struct lane *l, struct peer *p, struct pending *op)
{
    assert_ptr_equal(l, container_of(op, struct probe, pending)->lane);
    assert_non_null(p->lost);
    container_of(op, struct probe, pending)->ended++;
}

static void probe_anew(struct lane *l, uint32_t index, struct pending *op) { (void)l, (void)index, (void)op; }

static const struct pending_ops probing = {.attempt = attempt_probe, .end = end_probe, .anew = probe_anew};

static void park(struct probe *q, struct comm *c, struct peer *p)
{
    *q = (struct probe){.lane = c->lane};
    assert_int_equal(pending_park(c->lane, p, &q->pending, &probing), 0);
}

/* Each lane has an order of its own; the short way is closed at once, and opened by the last lane. */
static void two_lanes_wait_for_one_peer(void **state)
{
    struct peer *p = open_lanes("4", NULL);
    struct comm *a, *b;
    struct probe of_a, of_b;
    int value = 5, got[3] = {0};
    (void)state;
    make_two(&a, &b);
    job_end(job_isend(world, &value, sizeof value, 1, PT_STANDARD), 0); /* opens the short way */
    assert_true(p->short_max > 0);
    park(&of_a, a, p);
    assert_int_equal(p->short_max, -1);
    assert_int_equal(p->waiting, 1);
    park(&of_b, b, p);
    assert_int_equal(p->waiting, 2);
    assert_true(pending_is_clear(lanes_first(), p));
    assert_false(pending_is_clear(a->lane, p));
    struct request *behind_a = job_isend(a, &value, sizeof value, 1, PT_STANDARD);
    struct request *behind_b = job_isend(b, &value, sizeof value, 1, PT_STANDARD);
    struct request *free = job_isend(world, &value, sizeof value, 2, PT_STANDARD);
    assert_false(request_is_complete(behind_a) || request_is_complete(behind_b));
    assert_true(request_is_complete(free));
    assert_int_equal(p->short_max, -1); /* the send by the long way has not opened it */
    of_a.goes = true;
    job_settle();
    assert_true(request_is_complete(behind_a));
    assert_false(request_is_complete(behind_b));
    assert_true(of_b.attempts > 5); /* a turn in the first lane attempts what waits in others */
    assert_int_equal(p->waiting, 1);
    assert_int_equal(p->short_max, -1);
    assert_false(pending_withdraw(a->lane, p, &of_b.pending));
    assert_true(pending_withdraw(b->lane, p, &of_b.pending));
    job_settle();
    assert_true(request_is_complete(behind_b));
    assert_int_equal(p->waiting, 0);
    assert_true(p->short_max > 0);
    struct comm *all[] = {a, b, world};
    for (int i = 0; i < 3; i++) job_end(job_irecv(all[i], &got[i], sizeof got[i], 1), 0); /* that of the world came first */
    job_end(job_irecv(world, &got[2], sizeof got[2], 2), 0);
    for (int i = 0; i < 3; i++) assert_int_equal(got[i], 5);
    job_end(behind_a, 0);
    job_end(behind_b, 0);
    job_end(free, 0);
    comm_unref(a);
    comm_unref(b);
    job_close();
}

/* That all is over is said behind what any lane has to send. */
static void who_asks_is_told_behind_what_waits_in_all_lanes(void **state)
{
    struct peer *p = open_lanes("4", NULL);
    struct comm *a, *b;
    struct probe of_a, of_b;
    (void)state;
    make_two(&a, &b);
    park(&of_a, a, p);
    park(&of_b, b, p);
    p->flags |= PEER_ASKS;
    pt_finalize_begin(true);
    job_settle();
    assert_int_equal(mock_count.sent[AM_OVER], 0);
    of_a.goes = true;
    job_settle();
    assert_int_equal(mock_count.sent[AM_OVER], 0);
    of_b.goes = true;
    job_settle();
    assert_int_equal(mock_count.sent[AM_OVER], 1);
    assert_false(p->flags & PEER_ASKS);
    pt_finalize_end();
    comm_unref(a);
    comm_unref(b);
    job_close();
}

/* ---- what concerns all lanes ---- */

static void a_lost_peer_ends_what_waits_in_all_lanes(void **state)
{
    struct peer *p = open_lanes("4", NULL);
    struct comm *a, *b, *later;
    struct probe of_a, of_b;
    int value = 1, room[2];
    (void)state;
    make_two(&a, &b);
    park(&of_a, a, p);
    park(&of_b, b, p);
    struct request *sent = job_isend(b, &value, sizeof value, 1, PT_STANDARD);
    struct request *from_a = job_irecv(a, &room[0], sizeof room[0], 1), *from_b = job_irecv(b, &room[1], sizeof room[1], 2);
    tp_lost(p, err_set(TERN_ERR_PEER, "it went"));
    assert_false(list_empty(&losses.list));
    job_settle();
    assert_true(list_empty(&losses.list));
    assert_int_equal(of_a.ended, 1);
    assert_int_equal(of_b.ended, 1);
    assert_int_equal(p->waiting, 0);
    assert_int_equal(p->short_max, -1);
    job_end(sent, TERN_ERR_PEER);
    job_end(from_a, TERN_ERR_PEER);
    job_end(from_b, TERN_ERR_PEER);
    later = make_hinted("3");
    assert_int_equal(later->lane->losses_seen, losses.number);
    assert_int_equal(later->pt->lost == p, 1);
    job_abandon();
}

enum { LARGE = 1 << 20 };

static bool both_complete(void *arg)
{
    struct request **r = arg;
    return request_is_complete(r[0]) && request_is_complete(r[1]);
}

/* A large message needs turns of its lane. */
static void a_wait_in_one_lane_drives_the_others(void **state)
{
    static char data[LARGE], room[LARGE];
    struct comm *a, *b;
    (void)state;
    open_lanes("4", NULL);
    make_two(&a, &b);
    fill(data, LARGE, 1);
    struct request *r[2] = {job_irecv(b, room, LARGE, 1), job_isend(b, data, LARGE, 1, PT_STANDARD)};
    assert_false(both_complete(r));
    lane_enter(a->lane);
    lane_wait(a->lane, both_complete, r, NULL);
    lane_leave(a->lane);
    assert_true(filled(room, LARGE, 1));
    job_end(r[0], 0);
    job_end(r[1], 0);
    comm_unref(a);
    comm_unref(b);
    job_close();
}

static void requests_of_several_lanes_are_waited_for_together(void **state)
{
    static char data[LARGE], room[3][LARGE];
    struct comm *c[3];
    struct request *r[6];
    (void)state;
    open_lanes("4", NULL);
    make_two(&c[0], &c[1]);
    c[2] = world;
    fill(data, LARGE, 2);
    for (int i = 0; i < 3; i++) r[i] = job_irecv(c[i], room[i], LARGE, i);
    for (int i = 0; i < 3; i++) r[3 + i] = job_isend(c[i], data, LARGE, i, i == 1 ? PT_SYNC : PT_STANDARD);
    pt_wait_many(6, r, true);
    for (int i = 0; i < 6; i++) job_end(r[i], 0);
    for (int i = 0; i < 3; i++) assert_true(filled(room[i], LARGE, 2));
    comm_unref(c[0]);
    comm_unref(c[1]);
    job_close();
}

/* A process does not leave before all lanes are done. */
static void the_drain_asks_all_lanes(void **state)
{
    struct peer *p = open_lanes("4", NULL);
    struct comm *a, *b;
    struct probe q;
    (void)state;
    make_two(&a, &b);
    assert_true(are_drained());
    park(&q, b, p);
    assert_false(are_drained());
    assert_true(lanes_wait_for_room());
    assert_true(lanes_idle());
    q.goes = true;
    pt_drain();
    assert_true(are_drained() && q.attempts);
    comm_unref(a);
    comm_unref(b);
    job_close();
}

/* ---- threads ---- */

static void open_lanes_of_threads(void)
{
    setenv("TERN_LANES", "4", 1);
    world = job_open_threaded();
}

static bool ended_in_first;
static void note_lane(struct request *r)
{
    (void)r;
    ended_in_first = lane_is_mine(lanes_first());
}

/* A flush is a request of MPI_COMM_SELF. It was ended in the lane of the message that it waited for last, beside a thread that may
 * have been in its own. */
static void a_flush_ends_in_its_own_lane(void **state)
{
    static char buffer[8192];
    struct comm *a, *b;
    struct probe of_a;
    struct request *f;
    int value = 7, got = 0;
    void *detached;
    int64_t size;
    (void)state;
    open_lanes_of_threads();
    make_two(&a, &b);
    assert_int_equal(bsend_attach(bsend_process(), buffer, sizeof buffer), 0);
    lane_enter(a->lane);
    park(&of_a, a, job_peer());
    lane_leave(a->lane);
    assert_int_equal(bsend_send(a, &value, 1, type_of(MPI_INT), 0, 1), 0);
    assert_int_equal(bsend_iflush(bsend_process(), &f), 0);
    f->done = note_lane;
    pt_progress_once(NULL);
    assert_false(request_is_complete(f));
    of_a.goes = true;
    for (int i = 0; i < 1000 && !request_is_complete(f); i++) pt_progress_once(NULL);
    assert_true(request_is_complete(f) && ended_in_first);
    job_end(f, 0);
    job_end(job_irecv(a, &got, sizeof got, 1), 0);
    assert_int_equal(got, 7);
    assert_int_equal(bsend_detach(bsend_process(), &detached, &size), 0);
    comm_unref(a);
    comm_unref(b);
    job_close();
}

static int32_t refs_of(const struct comm *c) { return atomic_load(&c->h.refs); }

/* Each receive has a reference to its communicator; many are taken at once, and none is left when the user lets it go. */
static void references_taken_ahead_are_given_back(void **state)
{
    struct request *r[3];
    int room[3];
    (void)state;
    open_lanes_of_threads();
    uint32_t contexts = contexts_count();
    struct comm *c = make();
    for (int i = 0; i < 2; i++) r[i] = job_irecv(c, &room[i], sizeof room[i], 1);
    assert_true(refs_of(c) > 3);
    pt_let_go(c);
    assert_int_equal(refs_of(c), 3);
    r[2] = job_irecv(c, &room[2], sizeof room[2], 1);
    pt_let_go(c);
    assert_int_equal(refs_of(c), 4);
    comm_unref(c);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(contexts_count(), contexts + 1);
        assert_int_equal(pt_cancel(r[i]), 0);
        job_end(r[i], 0);
    }
    assert_int_equal(contexts_count(), contexts);
    job_close();
}

static void *let_go(void *c)
{
    comm_unref(c);
    return NULL;
}

/* The same context again, in another lane: what a thread remembers of it is not used any more. */
static void a_context_that_comes_again_is_looked_up_anew(void **state)
{
    static const char *const lanes[] = {"1", "2"};
    uint64_t ctx = comm_meeting_ctx(12345);
    (void)state;
    open_lanes_of_threads();
    for (int i = 0; i < 4; i++) {
        struct comm *c = NULL;
        struct info *hints = info_new();
        int got = -1;
        pthread_t t;
        assert_int_equal(info_set(hints, "tern_lane", lanes[i % 2]), 0);
        assert_int_equal(comm_reserve(rankmap_ref(world->map), NULL, world, &c), 0);
        assert_int_equal(comm_hints_set(c, hints), 0);
        assert_int_equal(comm_found(c, ctx), 0);
        info_free(hints);
        assert_int_equal(c->lane->number, 1 + i % 2);
        job_end(job_isend(c, &i, sizeof i, 1, PT_STANDARD), 0);
        while (!c->lane->pool.bodies) pt_progress_once(NULL);
        struct request_result result;
        assert_int_equal(pt_recv(c, &got, sizeof got, type_of(MPI_BYTE), 0, 1, &result), 0);
        assert_int_equal(got, i);
        assert_int_equal(pthread_create(&t, NULL, let_go, c), 0);
        pthread_join(t, NULL);
    }
    job_close();
}

#define TEST(name) cmocka_unit_test_teardown(name, job_clean)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(there_is_one_lane_by_default),
        TEST(contexts_are_dealt_out),
        TEST(numbers_that_cannot_be_are_refused),
        TEST(a_hint_goes_before_the_context),
        TEST(a_hint_for_one_that_is_made_is_ignored),
        TEST(an_intercommunicator_and_its_group_are_in_one_lane),
        TEST(an_intercommunicator_that_is_made_in_a_lane_is_in_that_lane),
        TEST(an_early_message_goes_to_the_lane_of_its_communicator),
        TEST(threads_have_several_lanes),
        TEST(a_thread_in_a_lane_waits_for_no_other),
        TEST(two_lanes_wait_for_one_peer),
        TEST(who_asks_is_told_behind_what_waits_in_all_lanes),
        TEST(a_lost_peer_ends_what_waits_in_all_lanes),
        TEST(a_wait_in_one_lane_drives_the_others),
        TEST(requests_of_several_lanes_are_waited_for_together),
        TEST(the_drain_asks_all_lanes),
        TEST(a_flush_ends_in_its_own_lane),
        TEST(references_taken_ahead_are_given_back),
        TEST(a_context_that_comes_again_is_looked_up_anew),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
