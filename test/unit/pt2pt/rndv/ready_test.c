/*
 * ready_test.c - early receivers inside a node, step by step: this process is the receiver, and the test plays the sender, which takes
 * what receives have left (PRO-18, PRO-19, PRO-23 to PRO-26; mock.h). ready_sender_test.c has the other side.
 */
#include "ready_job.h"
#include "transport/arena.h"

enum { CHUNK = 64 << 10, CHUNKS = 5, SMALL = 100 };

/* A receive of this process has been announced: where its transfer is. */
static uint64_t announced(int tag)
{
    uint64_t at;
    struct mock_message m = job_sent(&at, sizeof at);
    assert_int_equal(m.id, AM_READY);
    assert_true(m.h0 == world->ctx && m.h1 == env_pack(0, tag) && m.n == sizeof at);
    assert_int_equal(life_at(at), TRANSFER_OPEN);
    return at;
}

static struct request *post(int i, int64_t room, int tag) { return job_irecv(world, in[i], room, tag); }

static struct request *post_announced(int i, int64_t room, int tag, uint64_t *at)
{
    struct request *r = post(i, room, tag);
    *at = announced(tag);
    return r;
}

static void says_rts(int tag, size_t n, uint64_t offer)
{
    struct pt_rts rts = {7, n, offer};
    tp_handlers[AM_RTS](other, world->ctx, env_pack(0, tag), &rts, sizeof rts);
}

static void sends_small(int tag) { tp_handlers[AM_EAGER](other, world->ctx, env_pack(0, tag), "small", 6); }

/* False: the receiver was faster. */
static bool takes(uint64_t at, size_t n, uint64_t seed)
{
    struct pt_offer *o = transfer_at(at);
    if (!transfer_take(&o->transfer)) return false;
    fill(out[0], n, seed);
    o->transfer.chunk = transfer_chunk(n, CHUNK);
    transfer_say(&o->transfer, TRANSFER_FROM, OFFER_NUMBER, out[0], 0, n);
    return true;
}

static unsigned copies(uint64_t at) { return transfer_go_on(&transfer_at(at)->transfer, TRANSFER_FROM, &other->ep); }
static void looks_no_more(uint64_t at) { transfer_close(&transfer_at(at)->transfer); }

/* The receive ends with a message of n bytes, or is cut off. */
static void gets(struct request *r, int i, size_t n, uint64_t seed, int code)
{
    job_settle();
    assert_true(request_is_complete(r));
    assert_true(r->result.source == 0 && (size_t)r->result.bytes == n && !r->result.cancelled);
    assert_true(filled(in[i], n, seed));
    assert_int_equal(in[i][n], 0);
    job_end(r, code);
}

/* The receiver has asked for fragments: they come. */
static void comes_in_fragments(struct request *r)
{
    struct pt_cts cts;
    assert_int_equal(job_sent(&cts, sizeof cts).id, AM_CTS);
    for (size_t at = 0; at < cts.bytes; at += SMALL) tp_handlers[AM_FRAG](other, cts.recv, at, out[1] + at, SMALL);
    assert_true(request_is_complete(r));
    job_end(r, 0);
}

/* The message comes as if nothing had been announced. */
static void comes_late(struct request *r, int tag)
{
    says_rts(tag, BYTES, 0);
    comes_in_fragments(r);
}

/* Either side copies chunks; the memory is the receiver's again when both are through. */
static void a_sender_takes_what_a_receive_has_left(void **state)
{
    (void)state;
    open_job();
    for (unsigned sender = 0; sender <= CHUNKS; sender++) {
        uint64_t at, next;
        struct request *r = post_announced(0, BYTES, TAG, &at);
        assert_true(takes(at, BYTES, sender));
        for (unsigned i = 0; i < sender; i++) assert_int_equal(copies(at), TRANSFER_MOVED | (i == CHUNKS - 1 ? TRANSFER_ENDED : 0));
        job_settle();
        assert_false(request_is_complete(r)); /* the message has not come */
        says_rts(TAG, BYTES, at | RTS_READY);
        gets(r, 0, BYTES, sender, 0);
        job_cancel(post_announced(1, BYTES, TAG, &next));
        assert_true(next != at); /* the sender may still look there */
        looks_no_more(at);
        looks_no_more(next);
    }
    assert_int_equal(mock_count.sent[AM_CTS], 0);
    job_close();
}

/* One exchange decides. */
static void a_cancelled_receive_withdraws_unless_it_is_taken(void **state)
{
    uint64_t at;
    (void)state;
    open_job();
    job_cancel(post_announced(0, BYTES, TAG, &at));
    assert_int_equal(life_at(at), TRANSFER_WITHDRAWN);
    assert_false(takes(at, BYTES, 1));
    struct request *r = post_announced(0, BYTES, TAG, &at);
    assert_true(takes(at, BYTES, 2));
    assert_int_equal(pt_cancel(r), 0);
    assert_false(request_is_complete(r));
    says_rts(TAG, BYTES, at | RTS_READY);
    gets(r, 0, BYTES, 2, 0);
    job_close();
}

static void a_transfer_that_is_given_back_can_be_taken_again(void **state)
{
    uint64_t at;
    (void)state;
    open_job();
    struct request *r = post_announced(0, BYTES, TAG, &at);
    assert_true(takes(at, SMALL, 1));
    ready_give_back(transfer_at(at));
    assert_true(takes(at, BYTES, 2));
    says_rts(TAG, BYTES, at | RTS_READY);
    gets(r, 0, BYTES, 2, 0);
    job_close();
}

/* The sender keeps four of a process; one more is announced when it looks at one of them no more. */
static void at_most_four_are_out(void **state)
{
    uint64_t at[MOST], more;
    struct request *r[MOST], *late;
    (void)state;
    open_job();
    for (int i = 0; i < MOST; i++) r[i] = post_announced(i, BYTES, i, &at[i]);
    late = post(MOST, BYTES, MOST);
    job_sent_nothing();
    comes_late(late, MOST);
    for (int i = MOST - 1; i >= 0; i--) {
        assert_true(takes(at[i], BYTES, (uint64_t)i));
        says_rts(i, BYTES, at[i] | RTS_READY);
        gets(r[i], i, BYTES, (uint64_t)i, 0);
    }
    late = post(MOST, BYTES, MOST);
    job_sent_nothing();
    comes_late(late, MOST);
    for (int i = 0; i < MOST; i++) looks_no_more(at[i]);
    job_cancel(post_announced(0, BYTES, TAG, &more));
    job_close();
}

/* Longer than the receive: that is cut off; shorter: the rest is untouched (PRO-30). */
static void rooms_and_messages_of_other_lengths(void **state)
{
    uint64_t at;
    (void)state;
    open_job();
    struct request *r = post_announced(0, BYTES - 1000, TAG, &at);
    assert_true(takes(at, BYTES, 1));
    says_rts(TAG, BYTES, at | RTS_READY);
    gets(r, 0, BYTES - 1000, 1, TERN_ERR_TRUNCATE);
    r = post_announced(1, BYTES, TAG, &at);
    assert_true(takes(at, BYTES - 1000, 2));
    says_rts(TAG, BYTES - 1000, at | RTS_READY);
    gets(r, 1, BYTES - 1000, 2, 0);
    job_close();
}

/* It is not certain which message is theirs, or where it comes from; or the data are not for one copy. Nor are those behind them for
 * the same messages. */
static void receives_that_are_not_announced(void **state)
{
    (void)state;
    setenv("TERN_EAGER_SHM", "100K", 1);
    open_job();
    struct type *gaps = gaps_type(), *bytes = type_of(MPI_BYTE);
    const struct {
        struct type *type;
        int64_t count;
        int source, tag;
    } kinds[] = {{bytes, BYTES, MPI_ANY_SOURCE, TAG}, {bytes, BYTES, 0, MPI_ANY_TAG}, {bytes, BYTES, MPI_ANY_SOURCE, MPI_ANY_TAG},
                 {gaps, BYTES / 4, 0, TAG},           {bytes, SMALL, 0, TAG},
                 {bytes, 90000, 0, TAG}}; /* eager to this peer, and not to others */
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        struct request *r, *behind;
        assert_int_equal(pt_irecv(world, in[0], kinds[i].count, kinds[i].type, kinds[i].source, kinds[i].tag, &r), 0);
        behind = post(1, BYTES, TAG);
        job_sent_nothing();
        job_cancel(behind);
        job_cancel(r);
    }
    uint64_t at;
    struct request *r = post(0, SMALL, TAG + 1), *behind = post_announced(1, BYTES, TAG, &at); /* for other messages */
    job_cancel(behind);
    job_cancel(r);
    type_unref(gaps);
    job_close();
}

static void early_receivers_can_be_turned_off(void **state)
{
    (void)state;
    setenv("TERN_EARLY_RECEIVERS", "0", 1);
    open_job();
    struct request *r = post(0, BYTES, TAG);
    job_sent_nothing();
    comes_late(r, TAG);
    job_close();
}

/* A probe does not find the message of a receive that is announced. The next one it finds, and while MPI_Mprobe has an offer, whose
 * sender does not know of that, no receive is announced. */
static void probes(void **state)
{
    struct request_result res;
    struct pt_message *m = NULL;
    bool found = true;
    uint64_t at;
    (void)state;
    open_job();
    struct request *r = post_announced(0, BYTES, TAG, &at);
    assert_true(takes(at, BYTES, 1));
    for (int come = 0; come < 2; come++) {
        assert_int_equal(pt_probe(world, 0, TAG, false, &found, &res), 0);
        assert_false(found);
        assert_int_equal(pt_mprobe(world, 0, TAG, false, &found, &m, &res), 0);
        assert_false(found);
        if (!come) says_rts(TAG, BYTES, at | RTS_READY);
    }
    gets(r, 0, BYTES, 1, 0);
    says_rts(TAG, BYTES, 0);
    assert_int_equal(pt_mprobe(world, 0, TAG, false, &found, &m, &res), 0);
    assert_true(found && res.bytes == BYTES);
    job_cancel(post(1, BYTES, TAG));
    job_sent_nothing();
    assert_int_equal(pt_imrecv(m, in[0], BYTES, type_of(MPI_BYTE), &r), 0);
    comes_in_fragments(r);
    job_cancel(post_announced(1, BYTES, TAG, &at));
    job_close();
}

/* PRO-23, PRO-24: the first message is the first receive's, whatever has been announced. */
static void a_small_message_overtakes_nothing(void **state)
{
    uint64_t at[2];
    (void)state;
    open_job();
    struct request *first = post_announced(0, BYTES, TAG, &at[0]), *second = post_announced(1, BYTES, TAG, &at[1]);
    sends_small(TAG);
    assert_true(request_is_complete(first) && !request_is_complete(second));
    assert_string_equal(in[0], "small");
    assert_int_equal(life_at(at[0]), TRANSFER_WITHDRAWN);
    assert_int_equal(life_at(at[1]), TRANSFER_OPEN);
    assert_false(takes(at[0], BYTES, 1));
    assert_true(takes(at[1], BYTES, 2));
    says_rts(TAG, BYTES, at[1] | RTS_READY);
    gets(second, 1, BYTES, 2, 0);
    job_end(first, 0);
    job_close();
}

/* The offer of a message and the announcement have crossed: if the sender has not taken the transfer, the offer counts; if it has, the
 * transfer does. */
static void an_offer_meets_a_receive_that_is_announced(void **state)
{
    uint64_t at, offer;
    (void)state;
    open_job();
    struct request *r = post_announced(0, BYTES, TAG, &at);
    comes_late(r, TAG);
    assert_int_equal(life_at(at), TRANSFER_WITHDRAWN);
    r = post_announced(0, BYTES, TAG, &at);
    struct pt_offer *o = peer_shared_alloc(sizeof *o, &offer);
    assert_non_null(o);
    fill(out[0], BYTES, 2);
    o->transfer.chunk = CHUNK;
    transfer_say(&o->transfer, TRANSFER_FROM, OFFER_NUMBER, out[0], 0, BYTES);
    says_rts(TAG, BYTES, offer);
    assert_int_equal(life_at(at), TRANSFER_WITHDRAWN);
    gets(r, 0, BYTES, 2, 0);
    assert_int_equal(life_at(offer), TRANSFER_CLOSED);
    r = post_announced(0, BYTES, TAG, &at);
    assert_true(takes(at, BYTES, 3));
    says_rts(TAG, BYTES, 0);
    job_sent_nothing();
    gets(r, 0, BYTES, 3, 0);
    job_close();
}

static void a_late_receive_is_not_announced(void **state)
{
    (void)state;
    open_job();
    says_rts(TAG, BYTES, 0);
    comes_in_fragments(post(0, BYTES, TAG));
    assert_int_equal(mock_count.sent[AM_READY], 0);
    job_close();
}

/* Messages that name a transfer which is not that of their receive. */
static void a_message_for_another_receive_is_a_violation(void **state)
{
    uint64_t at[2] = {CACHE_LINE};
    (void)state;
    for (int known = 0; known < 3; known++) {
        open_job();
        struct request *r = known ? post_announced(0, BYTES, TAG, &at[0]) : post(0, SMALL, TAG);
        struct request *second = known == 2 ? post_announced(1, BYTES, TAG, &at[1]) : NULL;
        if (second) assert_true(takes(at[1], BYTES, 1));
        says_rts(TAG, BYTES, (second ? at[1] : known ? at[0] + CACHE_LINE : at[0]) | RTS_READY);
        job_settle();
        assert_non_null(other->lost);
        assert_non_null(strstr(other->lost, "a large message for a receive that is not ready for it"));
        job_end(r, TERN_ERR_PEER);
        if (second) job_end(second, TERN_ERR_PEER);
        job_abandon();
    }
}

/* The sender dies, or is given up, at each point: the receive ends, and no chunk can be claimed any more. */
static void a_lost_sender_ends_the_receive(void **state)
{
    enum { LEFT, TAKEN, HALF_COPIED, HALF_COPIED_AND_MET, POINTS };
    (void)state;
    for (int point = LEFT; point < POINTS; point++) {
        uint64_t at;
        open_job();
        struct request *r = post_announced(0, BYTES, TAG, &at);
        if (point >= TAKEN) assert_true(takes(at, BYTES, 1));
        for (int i = 0; point >= HALF_COPIED && i < 2; i++) assert_int_equal(copies(at), TRANSFER_MOVED);
        if (point == HALF_COPIED_AND_MET) says_rts(TAG, BYTES, at | RTS_READY);
        job_lose_peer();
        assert_true(request_is_complete(r));
        assert_false(takes(at, BYTES, 2));
        if (point >= TAKEN) assert_int_equal(copies(at), 0);
        job_end(r, TERN_ERR_PEER);
        job_abandon();
    }
}

/* In the shared segment, in the process, in the wire: the receive waits for its message as ever. */
static void without_memory_or_room_nothing_is_announced(void **state)
{
    uint64_t first, off, at;
    (void)state;
    for (int lack = 0; lack < 3; lack++) {
        open_job();
        assert_non_null(peer_shared_alloc(sizeof(struct pt_offer), &first));
        peer_shared_free(shared_at(first), sizeof(struct pt_offer));
        if (lack == 1) mock_script.room = 0;
        if (lack == 2)
            while (peer_shared_alloc(sizeof(struct pt_offer), &off)) continue;
        no_memory = lack == 0;
        struct request *r = post(0, BYTES, TAG);
        no_memory = false;
        mock_script.room = 64;
        job_sent_nothing();
        if (lack == 1) { /* nothing is left of it */
            struct request *next = post_announced(1, BYTES, TAG + 1, &at);
            assert_int_equal(at, first);
            job_cancel(next);
        }
        comes_late(r, TAG);
        job_close();
    }
}

/* Where the system does not copy, only memory in an arena is announced. */
static void memory_that_the_sender_cannot_reach(void **state)
{
    static struct arena_note told;
    (void)state;
    arena_publish(&told);
    char *block = arena_alloc(BYTES, 64);
    assert_non_null(block);
    open_job_with(TP_CAP_BCOPY | TP_CAP_MAP | TP_CAP_ARENA);
    job_cancel(post(0, BYTES, TAG));
    job_sent_nothing();
    struct request *r = job_irecv(world, block, BYTES, TAG);
    assert_true(transfer_at(announced(TAG))->transfer.end[TRANSFER_TO].place == arena_place(block, BYTES));
    job_cancel(r);
    job_close();
    assert_int_equal(arena_free(block), ARENA_FREED);
    arena_publish(NULL);
}

/* Threads are about to share the transports. */
static void open_transfers_are_withdrawn_before_threads_share(void **state)
{
    uint64_t at[2];
    (void)state;
    open_job();
    struct request *left = post_announced(0, BYTES, TAG, &at[0]), *taken = post_announced(1, BYTES, TAG + 1, &at[1]);
    assert_true(takes(at[1], BYTES, 1));
    ready_end(world->pt);
    assert_int_equal(life_at(at[0]), TRANSFER_WITHDRAWN);
    says_rts(TAG + 1, BYTES, at[1] | RTS_READY);
    gets(taken, 1, BYTES, 1, 0);
    comes_late(left, TAG);
    job_close();
}

#define TEST(x) cmocka_unit_test_teardown(x, job_clean)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_sender_takes_what_a_receive_has_left),
        TEST(a_cancelled_receive_withdraws_unless_it_is_taken),
        TEST(a_transfer_that_is_given_back_can_be_taken_again),
        TEST(at_most_four_are_out),
        TEST(rooms_and_messages_of_other_lengths),
        TEST(receives_that_are_not_announced),
        TEST(early_receivers_can_be_turned_off),
        TEST(probes),
        TEST(a_small_message_overtakes_nothing),
        TEST(an_offer_meets_a_receive_that_is_announced),
        TEST(a_late_receive_is_not_announced),
        TEST(a_message_for_another_receive_is_a_violation),
        TEST(a_lost_sender_ends_the_receive),
        TEST(without_memory_or_room_nothing_is_announced),
        TEST(memory_that_the_sender_cannot_reach),
        TEST(open_transfers_are_withdrawn_before_threads_share),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
