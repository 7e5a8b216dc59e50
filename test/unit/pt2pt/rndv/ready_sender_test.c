/*
 * ready_sender_test.c - the sender's side of early receivers inside a node, step by step: the test plays the receiver, which announces
 * its receives (ready_test.c).
 */
#include "ready_job.h"

static void says_ready_at(int tag, uint64_t at, size_t n)
{
    tp_handlers[AM_READY](other, world->ctx, env_pack(1, tag), &at, n);
}

/* A receive into in[i] has been posted there: where its transfer is. */
static uint64_t announces(int i, int64_t room, int tag)
{
    uint64_t at;
    struct pt_offer *o = peer_shared_alloc(sizeof *o, &at);
    assert_non_null(o);
    memset(in[i], 0, sizeof in[i]);
    transfer_say(&o->transfer, TRANSFER_TO, OFFER_NUMBER, in[i], 0, (uint64_t)room);
    says_ready_at(tag, at, sizeof at);
    return at;
}

static bool withdraws(uint64_t at) { return transfer_withdraw(&transfer_at(at)->transfer); }

/* A receive of this process, which is cancelled. */
static void announce_own(void)
{
    uint64_t at;
    struct request *r = job_irecv(world, in[MOST], BYTES, TAG);
    assert_int_equal(job_sent(&at, sizeof at).id, AM_READY);
    job_cancel(r);
}

static struct request *start(int i, int64_t n, int tag)
{
    fill(out[i], BYTES, (uint64_t)i + 1);
    return job_isend(world, out[i], n, tag, PT_STANDARD);
}

static void send_small(int tag)
{
    struct mock_message m;
    char text[8];
    assert_int_equal(pt_send(world, "small", 6, type_of(MPI_BYTE), 0, tag, PT_STANDARD), 0);
    m = job_sent(text, sizeof text);
    assert_true(m.id == AM_EAGER && m.n == 6);
}

/* A send has said where its data are: in which transfer. */
static uint64_t offered(int tag, int64_t n)
{
    struct pt_rts rts;
    struct mock_message m = job_sent(&rts, sizeof rts);
    assert_true(m.id == AM_RTS && m.h0 == world->ctx && m.h1 == env_pack(1, tag) && rts.bytes == (uint64_t)n);
    return rts.offer;
}

/* The send ends, and message i is where the receive wanted it. */
static void sent_to(struct request *s, int i, uint64_t at, int into, size_t n)
{
    job_settle();
    assert_true(request_is_complete(s));
    job_end(s, 0);
    assert_true(filled(in[into], n, (uint64_t)i + 1));
    assert_int_equal(in[into][n], 0);
    assert_int_equal(life_at(at), TRANSFER_CLOSED);
}

/* The receiver computes on: the sender copies all, and both are through. */
static void a_send_takes_the_transfer_of_a_receive(void **state)
{
    (void)state;
    open_job();
    static const int64_t room[] = {BYTES, BYTES, BYTES - 1000}, bytes[] = {BYTES, BYTES - 1000, BYTES};
    for (size_t i = 0; i < ARRAY_LEN(room); i++) {
        uint64_t at = announces(0, room[i], TAG);
        struct request *s = start(0, bytes[i], TAG);
        assert_int_equal(offered(TAG, bytes[i]), at | RTS_READY);
        assert_int_equal(life_at(at), TRANSFER_TAKEN);
        assert_false(withdraws(at));
        sent_to(s, 0, at, 0, (size_t)min_int64(room[i], bytes[i]));
        mock_script.handled++;
    }
    job_sent_nothing();
    job_close();
}

/* As long as the receiver may find a message before it for the receive (PRO-24). The kinds that no receive takes do not count. */
static void a_send_takes_nothing_while_messages_are_not_handled(void **state)
{
    uint64_t at[2];
    (void)state;
    open_job();
    for (int i = 0; i < 2; i++) at[i] = announces(i, BYTES, TAG);
    announce_own(); /* a message that is no receive's */
    for (int i = 0; i < 2; i++) { /* the first of these is another one */
        struct request *s = start(i, BYTES, TAG);
        assert_int_equal(offered(TAG, BYTES), at[i] | RTS_READY);
        sent_to(s, i, at[i], i, BYTES);
    }
    send_small(TAG);
    announce_own(); /* behind a message that counts */
    at[0] = announces(0, BYTES, TAG);
    struct request *s = start(0, BYTES, TAG);
    assert_int_equal(offered(TAG, BYTES) & RTS_READY, 0);
    job_settle();
    assert_false(request_is_complete(s));
    assert_int_equal(life_at(at[0]), TRANSFER_OPEN);
    assert_false(ready_waits()); /* it asks to be woken, and looks again */
    assert_true(ready_waits());
    assert_int_equal(mock_count.awaits_handled, 2);
    mock_script.handled = other->ep.ops->sent(&other->ep) - 1; /* all but the offer */
    assert_false(ready_waits());
    uint64_t nudges = mock_count.nudges;
    assert_true(ready_look());
    assert_int_equal(life_at(at[0]), TRANSFER_TAKEN); /* in place of the offer */
    assert_int_equal(mock_count.nudges, nudges + 1);
    sent_to(s, 0, at[0], 0, BYTES);
    job_sent_nothing();
    job_close();
}

/* Two offers and two receives of one envelope, in their order, each only when all before it has been handled. */
static void offers_are_replaced_in_order(void **state)
{
    uint64_t at[2];
    struct request *s[2];
    (void)state;
    open_job();
    send_small(TAG + 1);
    for (int i = 0; i < 2; i++) {
        s[i] = start(i, BYTES, TAG);
        assert_int_equal(offered(TAG, BYTES) & RTS_READY, 0);
    }
    for (int i = 0; i < 2; i++) at[i] = announces(i, BYTES, TAG);
    job_settle();
    assert_true(life_at(at[0]) == TRANSFER_OPEN && life_at(at[1]) == TRANSFER_OPEN);
    mock_script.handled = 1;
    sent_to(s[0], 0, at[0], 0, BYTES);
    assert_int_equal(life_at(at[1]), TRANSFER_OPEN);
    mock_script.handled = 2;
    sent_to(s[1], 1, at[1], 1, BYTES);
    job_close();
}

/* The receiver has handled all that was before the offers when its announcements come, or when the sender looks at them. */
static void offers_are_replaced_at_once(void **state)
{
    (void)state;
    for (int before = 0; before < 2; before++) {
        uint64_t at[2];
        struct request *s[2];
        open_job();
        send_small(TAG + 2);
        for (int i = 0; i < 2; i++) {
            s[i] = start(i, BYTES, TAG + i);
            assert_int_equal(offered(TAG + i, BYTES) & RTS_READY, 0);
        }
        if (before) mock_script.handled = 2;
        for (int i = 0; i < 2; i++) at[i] = announces(i, BYTES, TAG + i);
        if (!before) mock_script.handled = 2;
        if (!before) assert_true(ready_look());
        for (int i = 0; i < 2; i++) assert_int_equal(life_at(at[i]), TRANSFER_TAKEN);
        for (int i = 0; i < 2; i++) sent_to(s[i], i, at[i], i, BYTES);
        job_close();
    }
}

/* The receiver of an offer, which has withdrawn what its receive had left. */
static void meets(uint64_t offer, int i, struct request *s)
{
    struct transfer *t = &transfer_at(offer)->transfer;
    transfer_say(t, TRANSFER_TO, OFFER_NUMBER, in[i], 0, BYTES);
    job_settle();
    assert_true(request_is_complete(s));
    transfer_close(t);
    job_end(s, 0);
}

/* A transfer is withdrawn when its receive meets a message. That may be one that was offered before this was seen, so it is not given
 * the next receive's transfer. */
static void an_offer_that_may_have_been_met_is_not_replaced(void **state)
{
    uint64_t at[2], offer;
    (void)state;
    open_job();
    send_small(TAG + 1);
    struct request *s = start(0, BYTES, TAG);
    offer = offered(TAG, BYTES);
    for (int i = 0; i < 2; i++) at[i] = announces(i, BYTES, TAG);
    assert_true(withdraws(at[0]));
    mock_script.handled = 1;
    job_settle();
    assert_int_equal(life_at(at[0]), TRANSFER_CLOSED);
    assert_int_equal(life_at(at[1]), TRANSFER_OPEN);
    meets(offer, 0, s);
    mock_script.handled = 2;
    s = start(1, BYTES, TAG);
    assert_int_equal(offered(TAG, BYTES), at[1] | RTS_READY);
    sent_to(s, 1, at[1], 1, BYTES);
    job_close();
}

/* The receive has met another message, or was cancelled: the sender is not too late to see that, lets go of the transfer, and offers. */
static void a_withdrawn_transfer_is_let_go(void **state)
{
    (void)state;
    open_job();
    uint64_t at = announces(0, BYTES, TAG), offer;
    assert_true(withdraws(at));
    struct request *s = start(0, BYTES, TAG);
    offer = offered(TAG, BYTES);
    assert_int_equal(offer & RTS_READY, 0);
    assert_int_equal(life_at(at), TRANSFER_CLOSED);
    meets(offer, 0, s);
    job_close();
}

/* The RTS finds no room, now or at all: the transfer is open again. */
static void a_transfer_is_given_back_without_room(void **state)
{
    (void)state;
    open_job();
    uint64_t at = announces(0, BYTES, TAG);
    mock_script.room = 0;
    struct request *s = start(0, BYTES, TAG);
    assert_int_equal(life_at(at), TRANSFER_OPEN);
    mock_script.room = 64;
    sent_to(s, 0, at, 0, BYTES); /* in place of the offer, which goes out first */
    assert_int_equal(offered(TAG, BYTES) & RTS_READY, 0);
    job_close();
}

/* Another tag, another context; no data, or not in one piece. */
static void sends_that_take_nothing(void **state)
{
    struct request *s;
    struct comm *c = NULL;
    (void)state;
    setenv("TERN_EAGER_CREDIT", "0", 1); /* a message without data is offered as well */
    open_job();
    struct type *gaps = gaps_type();
    assert_int_equal(comm_new(comm_fresh_ctx(), rankmap_ref(world->map), NULL, world, &c), 0);
    struct request *before = start(0, 0, TAG);
    uint64_t at = announces(0, BYTES, TAG);
    assert_int_equal(job_offered_in_vain(before) & RTS_READY, 0);
    assert_int_equal(job_offered_in_vain(start(0, BYTES, TAG + 1)) & RTS_READY, 0);
    assert_int_equal(job_offered_in_vain(job_isend(c, out[0], BYTES, TAG, PT_STANDARD)) & RTS_READY, 0);
    assert_int_equal(job_offered_in_vain(start(0, 0, TAG)) & RTS_READY, 0);
    assert_int_equal(pt_isend(world, out[0], BYTES / 4, gaps, 0, TAG, PT_STANDARD, &s), 0);
    assert_int_equal(job_offered_in_vain(s) & RTS_READY, 0);
    assert_int_equal(life_at(at), TRANSFER_OPEN);
    comm_unref(c);
    type_unref(gaps);
    job_close();
}

/* What waits for room is before it, though it has not been sent. */
static void a_send_does_not_overtake_what_waits(void **state)
{
    struct pt_rts rts;
    char text[8];
    (void)state;
    open_job();
    uint64_t at = announces(0, BYTES, TAG);
    mock_script.room = 0;
    struct request *small = job_isend(world, "small", 6, TAG, PT_STANDARD);
    mock_script.room = 64;
    struct request *s = start(0, BYTES, TAG);
    job_settle();
    assert_int_equal(life_at(at), TRANSFER_OPEN);
    assert_int_equal(job_sent(text, sizeof text).id, AM_EAGER);
    assert_int_equal(job_sent(&rts, sizeof rts).id, AM_RTS);
    mock_script.handled = 1;
    sent_to(s, 0, at, 0, BYTES);
    job_end(small, 0);
    job_close();
}

/* Where what has been handled is not known, an offer it is. */
static void without_knowledge_nothing_is_taken(void **state)
{
    (void)state;
    open_job();
    uint64_t at = announces(0, BYTES, TAG);
    struct request *s = start(0, BYTES, TAG);
    assert_int_equal(offered(TAG, BYTES), at | RTS_READY);
    sent_to(s, 0, at, 0, BYTES);
    mock_script.handled = UINT64_MAX;
    for (int before = 1; before >= 0; before--) { /* the announcement, or the offer */
        if (before) at = announces(0, BYTES, TAG + before);
        s = start(0, BYTES, TAG + before);
        if (!before) at = announces(0, BYTES, TAG);
        assert_int_equal(life_at(at), TRANSFER_OPEN);
        meets(offered(TAG + before, BYTES), 0, s);
    }
    job_close();
}

/* Where the system does not copy, the receiver's memory has to lie in an arena. */
static void memory_that_the_sender_cannot_reach(void **state)
{
    (void)state;
    open_job_with(TP_CAP_BCOPY | TP_CAP_MAP | TP_CAP_ARENA);
    uint64_t at = announces(0, BYTES, TAG);
    assert_int_equal(job_offered_in_vain(start(0, BYTES, TAG)) & RTS_READY, 0);
    assert_int_equal(life_at(at), TRANSFER_OPEN);
    job_close();
}

/* More than the sender keeps, or what cannot be: the receiver is given up. */
static void announcements_that_cannot_be(void **state)
{
    (void)state;
    for (int what = 0; what < 5; what++) {
        open_job();
        for (int i = 0; what == 0 && i < MOST; i++) announces(i, BYTES, i);
        assert_null(other->lost);
        if (what == 0) announces(MOST, BYTES, MOST);
        if (what == 1) says_ready_at(TAG, CACHE_LINE + 8, 8);
        if (what == 2) says_ready_at(TAG, CACHE_LINE, 4);
        if (what == 3) says_ready_at(-TAG, CACHE_LINE, 8);
        if (what == 4) tp_handlers[AM_READY](other, world->ctx | CTX_COLL, env_pack(1, TAG), &(uint64_t){CACHE_LINE}, 8);
        assert_non_null(other->lost);
        assert_non_null(strstr(other->lost, "a receive that is announced"));
        job_abandon();
    }
}

/* The receiver dies while a transfer is out, taken, or half copied: the send ends. */
static void a_lost_receiver_ends_the_send(void **state)
{
    (void)state;
    for (int turns = -1; turns < 3; turns++) {
        open_job();
        uint64_t at = announces(0, BYTES, TAG);
        if (turns < 0) send_small(TAG);
        struct request *s = start(0, BYTES, TAG);
        for (int i = 0; i < turns; i++) lane_progress(lanes_first());
        assert_true(!request_is_complete(s));
        if (turns >= 0) assert_int_equal(atomic_load(&transfer_at(at)->transfer.done), turns);
        job_lose_peer();
        mock_script.handled = 1;
        job_settle();
        assert_int_equal(life_at(at), turns < 0 ? TRANSFER_OPEN : TRANSFER_TAKEN);
        job_end(s, TERN_ERR_PEER);
        job_abandon();
    }
}

static void hear_without_memory(void)
{
    no_memory = true;
    says_ready_at(TAG, CACHE_LINE, 8);
}

/* An announcement cannot be dropped, and nobody can be told. */
static void without_memory_for_an_announcement_the_job_ends(void **state)
{
    (void)state;
    open_job();
    job_dies(hear_without_memory, "no memory for what a receiver announces");
    job_close();
}

#define TEST(x) cmocka_unit_test_teardown(x, job_clean)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_send_takes_the_transfer_of_a_receive),
        TEST(a_send_takes_nothing_while_messages_are_not_handled),
        TEST(offers_are_replaced_in_order),
        TEST(offers_are_replaced_at_once),
        TEST(an_offer_that_may_have_been_met_is_not_replaced),
        TEST(a_withdrawn_transfer_is_let_go),
        TEST(a_transfer_is_given_back_without_room),
        TEST(sends_that_take_nothing),
        TEST(a_send_does_not_overtake_what_waits),
        TEST(without_knowledge_nothing_is_taken),
        TEST(memory_that_the_sender_cannot_reach),
        TEST(announcements_that_cannot_be),
        TEST(a_lost_receiver_ends_the_send),
        TEST(without_memory_for_an_announcement_the_job_ends),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
