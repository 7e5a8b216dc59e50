/* early_test.c - messages that come before their communicator is made here: they wait for it, in order. */
#include "mock_job.h"
#include "base/err.h"
#include "pt2pt/early.h"
#include "pt2pt/lost.h"

#include <stdlib.h>
#include <string.h>

static struct comm *world;
static struct peer *from;
static uint64_t ctx;

static void open_job(void)
{
    world = job_open(NULL);
    from = job_peer();
    ctx = comm_fresh_ctx();
}

static struct comm *make_comm(void)
{
    struct comm *c = NULL;
    assert_int_equal(comm_new(ctx, rankmap_ref(world->map), NULL, world, &c), 0);
    return c;
}

static void send_eager(uint64_t context, int tag, int value)
{
    from->credit -= eager_cost(sizeof value);
    assert_int_equal(from->ep.am_short(&from->ep, AM_EAGER, context, env_pack(0, tag), &value, sizeof value), 0);
}

/* A send as on the communicator that is not there; of more than a little it is offered. */
static void start_send(struct request *r, uint64_t context, int tag, const void *data, int64_t n, enum pt_mode mode)
{
    *r = (struct request){0};
    pt_prepare(r, REQ_SEND, world, PT_USER, data, n, type_of(MPI_BYTE), 0, tag, mode);
    r->ctx = context;
    lane_enter(world->lane);
    pt_send_start(r);
    lane_leave(world->lane);
}

#define LARGE (1 << 20)

/* All kinds, with tags that any receive matches in the order of arrival. */
static void all_kinds_come_in_order(void **state)
{
    static char large[LARGE], room[LARGE];
    struct request offered, synchronous;
    struct request_result res;
    int value = 0;
    (void)state;
    open_job();
    memset(large, 7, sizeof large);
    send_eager(ctx, 1, 11);
    start_send(&synchronous, ctx, 2, "abc", 3, PT_SYNC);
    start_send(&offered, ctx, 3, large, LARGE, PT_STANDARD);
    send_eager(ctx, 4, 44);
    job_settle();
    assert_int_equal(early_contexts, 1);
    assert_int_equal(from->stored, 2 * eager_cost(sizeof value) + eager_cost(3));
    assert_false(request_is_complete(&synchronous) || request_is_complete(&offered));
    struct comm *c = make_comm();
    assert_int_equal(early_contexts, 0);
    assert_int_equal(match_unexpected_count(&c->pt->match[PT_USER]), 4);
    for (int tag = 1; tag <= 4; tag++) {
        assert_int_equal(pt_recv(c, room, LARGE, type_of(MPI_BYTE), 0, MPI_ANY_TAG, &res), 0);
        assert_int_equal(res.tag, tag);
        assert_int_equal(res.bytes, tag == 3 ? LARGE : tag == 2 ? 3 : (int64_t)sizeof value);
        if (tag == 1 || tag == 4) assert_memory_equal(room, (&(int){11 * tag}), sizeof value);
        if (tag == 3) assert_memory_equal(room, large, LARGE);
    }
    assert_int_equal(pt_wait(&synchronous), 0);
    assert_int_equal(pt_wait(&offered), 0);
    comm_unref(c);
    job_close();
}

/* A message for one communicator does not go to another one, nor to its other half. */
static void each_context_has_its_own(void **state)
{
    struct comm *c[3];
    uint64_t first = 0;
    (void)state;
    open_job();
    for (int i = 0; i < 3; i++) {
        if (i) ctx = comm_fresh_ctx();
        else first = ctx;
        for (int n = 0; n <= i; n++) send_eager(ctx, 1, 0);
        send_eager(ctx | CTX_COLL, 1, 0);
    }
    job_settle();
    assert_int_equal(early_contexts, 3);
    for (int i = 2; i >= 0; i--) {
        ctx = first + 2 * (uint64_t)i;
        c[i] = make_comm();
        assert_int_equal(early_contexts, i);
        assert_int_equal(match_unexpected_count(&c[i]->pt->match[PT_USER]), i + 1);
        assert_int_equal(match_unexpected_count(&c[i]->pt->match[PT_COLL]), 1);
    }
    for (int i = 0; i < 3; i++) comm_unref(c[i]);
    assert_int_equal(from->stored, 0);
    job_abandon();
}

/* MPI_Cancel of a send whose receiver has not made the communicator yet. */
static void a_sender_takes_its_message_back(void **state)
{
    static char large[LARGE];
    (void)state;
    for (int synchronous = 0; synchronous < 2; synchronous++) {
        struct request r;
        open_job();
        start_send(&r, ctx, 1, large, synchronous ? 8 : LARGE, synchronous ? PT_SYNC : PT_STANDARD);
        send_eager(ctx, 1, 5);
        job_settle();
        assert_int_equal(pt_cancel(&r), 0);
        assert_int_equal(pt_wait(&r), 0);
        assert_true(r.result.cancelled);
        struct comm *c = make_comm();
        assert_int_equal(match_unexpected_count(&c->pt->match[PT_USER]), 1); /* the other one */
        comm_unref(c);
        assert_int_equal(from->stored, 0);
        job_abandon();
    }
}

/* Of collectives on a communicator that is gone here: the senders are answered. What two processes say goes on. */
static void what_nobody_will_receive_is_swallowed(void **state)
{
    static char large[LARGE];
    struct request offered, synchronous, kept;
    (void)state;
    open_job();
    start_send(&offered, ctx | CTX_COLL, 1, large, LARGE, PT_STANDARD);
    start_send(&synchronous, ctx | CTX_COLL, 1, large, 8, PT_SYNC);
    start_send(&kept, ctx | CTX_COLL, PT_FOR_TWO, large, 8, PT_SYNC);
    send_eager(ctx | CTX_COLL, 1, 0);
    job_settle();
    lane_enter(world->lane);
    early_swallow(world->lane, ctx);
    lane_leave(world->lane);
    assert_int_equal(pt_wait(&offered), 0);
    assert_int_equal(pt_wait(&synchronous), 0);
    job_settle();
    assert_false(request_is_complete(&kept));
    assert_int_equal(from->stored, eager_cost(8));
    assert_int_equal(pt_cancel(&kept), 0);
    assert_int_equal(pt_wait(&kept), 0);
    job_close();
}

/* The header of a message may have met its receive when a communicator is made: that receive is not for an early one. */
static void an_early_message_leaves_the_receive_that_another_has_met(void **state)
{
    struct request other = {0};
    (void)state;
    open_job();
    send_eager(ctx, 1, 5);
    job_settle();
    from->arriving = &other;
    struct comm *c = make_comm();
    assert_ptr_equal(from->arriving, &other);
    from->arriving = NULL;
    assert_int_equal(match_unexpected_count(&c->pt->match[PT_USER]), 1);
    comm_unref(c);
    job_abandon();
}

/* What has come whole can be received when its sender is lost. */
static void a_lost_sender_does_not_take_it_away(void **state)
{
    struct request_result res;
    int value = 0;
    (void)state;
    open_job();
    send_eager(ctx, 1, 5);
    job_settle();
    lane_enter(world->lane);
    err_set(TERN_ERR_PEER, "the other one is gone");
    pt_lose(from);
    lane_leave(world->lane);
    job_settle();
    tp_handlers[AM_EAGER](from, ctx, env_pack(0, 1), "late", 4); /* is dropped */
    struct comm *c = make_comm();
    assert_int_equal(match_unexpected_count(&c->pt->match[PT_USER]), 1);
    assert_int_equal(pt_recv(c, &value, 1, type_of(MPI_INT), 0, 1, &res), 0);
    assert_int_equal(value, 5);
    comm_unref(c);
    job_abandon();
}

/* The end of the layer, and of a connection between jobs: synchronous and offered messages go with that. */
static void what_is_left_is_dropped(void **state)
{
    struct pt_rts rts = {1, LARGE, 0};
    (void)state;
    open_job();
    tp_handlers[AM_EAGER](from, ctx, env_pack(0, 1), "x", 1);
    tp_handlers[AM_EAGER_SYNC](from, ctx, env_pack(0, 1), "12345678x", 9);
    tp_handlers[AM_RTS](from, ctx, env_pack(0, 1), &rts, sizeof rts);
    assert_int_equal(from->stored, 2 * eager_cost(1));
    early_drop_offers(from);
    assert_int_equal(from->stored, eager_cost(1));
    assert_int_equal(early_contexts, 1);
    early_close();
    assert_int_equal(from->stored, 0);
    assert_int_equal(early_contexts, 0);
    job_abandon();
}

/* TERN_CHECK=types: the types are compared with those that came with the message. */
static void an_early_message_keeps_its_signature(void **state)
{
    struct request first, second;
    struct request_result res;
    int value = 7;
    float other = 0;
    (void)state;
    setenv("TERN_CHECK", "types", 1);
    open_job();
    unsetenv("TERN_CHECK");
    assert_true(pt_checking);
    for (int i = 0; i < 2; i++) {
        struct request *r = i ? &second : &first;
        *r = (struct request){0};
        pt_prepare(r, REQ_SEND, world, PT_USER, &value, 1, type_of(i ? MPI_FLOAT : MPI_INT), 0, i, PT_STANDARD);
        r->ctx = ctx;
        lane_enter(world->lane);
        pt_send_start(r);
        lane_leave(world->lane);
        job_settle();
    }
    assert_int_equal(early_contexts, 1);
    struct comm *c = make_comm();
    assert_int_equal(pt_recv(c, &other, 1, type_of(MPI_FLOAT), 0, 0, &res), TERN_ERR_TYPE);
    assert_int_equal(pt_recv(c, &other, 1, type_of(MPI_FLOAT), 0, 1, &res), 0);
    comm_unref(c);
    job_close();
}

/* A transport that closes may still deliver. */
static void after_the_end_nothing_is_kept(void **state)
{
    struct peer late = {0};
    (void)state;
    open_job();
    job_abandon();
    pt_on_eager(&late, ctx, env_pack(0, 1), "x", 1);
    assert_int_equal(early_contexts, 0);
    assert_int_equal(late.stored, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(all_kinds_come_in_order, job_clean),
        cmocka_unit_test_teardown(each_context_has_its_own, job_clean),
        cmocka_unit_test_teardown(a_sender_takes_its_message_back, job_clean),
        cmocka_unit_test_teardown(what_nobody_will_receive_is_swallowed, job_clean),
        cmocka_unit_test_teardown(an_early_message_leaves_the_receive_that_another_has_met, job_clean),
        cmocka_unit_test_teardown(a_lost_sender_does_not_take_it_away, job_clean),
        cmocka_unit_test_teardown(what_is_left_is_dropped, job_clean),
        cmocka_unit_test_teardown(an_early_message_keeps_its_signature, job_clean),
        cmocka_unit_test_teardown(after_the_end_nothing_is_kept, job_clean),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
