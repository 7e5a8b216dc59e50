/* offer_test.c - large messages by offers: both sides copy, failures end the transfer, descriptors are not reused early. */
#include "../mock_job.h"
#include "base/err.h"
#include "transport/arena.h"

#include <stdlib.h>
#include <string.h>

enum { BYTES = 300000 };
static char out[BYTES], in[BYTES + 1];

static struct request *offer(struct comm *c, size_t n, uint64_t seed)
{
    fill(out, n, seed);
    return job_isend(c, out, (int64_t)n, 1, PT_STANDARD);
}

static struct request *accept_into(struct comm *c, size_t room)
{
    memset(in, 0, sizeof in);
    return job_irecv(c, in, (int64_t)room, 1);
}

/* The data is copied once, in chunks, and no fragment is sent. */
static void one_copy(void **state)
{
    setenv("TERN_CHUNK_CMA", "64K", 1);
    struct comm *c = job_open(NULL);
    (void)state;
    for (int expected = 0; expected < 2; expected++) {
        struct request *r = expected ? accept_into(c, BYTES) : NULL, *s = offer(c, BYTES, 5);
        job_settle();
        if (!expected) {
            assert_false(request_is_complete(s));
            r = accept_into(c, BYTES);
        }
        job_end(s, 0);
        job_end(r, 0);
        assert_true(filled(in, BYTES, 5));
    }
    assert_int_equal(mock_count.copies, 2 * ((BYTES + 65535) / 65536));
    assert_int_equal(mock_count.sent[AM_FRAG], 0);
    assert_int_equal(mock_count.sent[AM_RTS], 2);
    job_close();
}

/* Either side alone can bring the transfer to its end: who is not in the library is not needed (PRO-21, GOAL-37). */
static void one_side_suffices(void **state)
{
    setenv("TERN_CHUNK_CMA", "64K", 1);
    struct comm *c = job_open(NULL);
    (void)state;
    for (int sender = 0; sender < 2; sender++) {
        struct request *r = accept_into(c, BYTES), *s = offer(c, BYTES, 6);
        while (!r->xfer) assert_true(wires_progress(64) >= 0); /* matched, nothing copied */
        while (!request_is_complete(sender ? s : r)) assert_true((sender ? pt_outgoing_step(s) : pt_incoming_step(r)) > 0);
        assert_true(filled(in, BYTES, 6));
        job_end(s, 0);
        job_end(r, 0);
    }
    job_close();
}

static void shorter_receive(void **state)
{
    struct comm *c = job_open(NULL);
    (void)state;
    static const size_t rooms[] = {0, 1, 100, 4096, BYTES - 1};
    for (size_t i = 0; i < ARRAY_LEN(rooms); i++) {
        struct request *s = offer(c, BYTES, 7), *r = accept_into(c, rooms[i]);
        assert_int_equal(pt_wait(r), TERN_ERR_TRUNCATE);
        assert_int_equal(r->result.bytes, rooms[i]);
        assert_true(filled(in, rooms[i], 7));
        assert_int_equal(in[rooms[i]], 0);
        job_end(s, 0);
        pt_release(r);
    }
    assert_int_equal(mock_count.sent[AM_FRAG], 0);
    job_close();
}

/* Without the capabilities the same messages go in fragments. */
static void without_capabilities(void **state)
{
    static const uint32_t lacks[] = {TP_CAP_GETPUT, TP_CAP_MAP, TP_CAP_GETPUT | TP_CAP_MAP | TP_CAP_BCOPY};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(lacks); i++) {
        struct mock_script script = MOCK_SCRIPT;
        script.caps &= ~(lacks[i] | TP_CAP_BULK);
        struct comm *c = job_open(&script);
        struct request *s = offer(c, BYTES, 8), *r = accept_into(c, BYTES);
        job_end(r, 0);
        job_end(s, 0);
        assert_true(filled(in, BYTES, 8));
        assert_int_equal(mock_count.copies, 0);
        assert_true(mock_count.sent[AM_FRAG] > 1);
        job_close();
    }
}

/* The peer dies, or a buffer is not there: both sides get the error, at whichever copy it happens. */
static void failing_copies_end_the_transfer(void **state)
{
    setenv("TERN_CHUNK_CMA", "64K", 1);
    (void)state;
    for (uint32_t at = 1; at <= 5; at++) {
        struct mock_script script = MOCK_SCRIPT;
        script.error = TERN_ERR_PEER;
        script.fail_copy = at;
        struct comm *c = job_open(&script);
        struct request *s = offer(c, BYTES, 9), *r = accept_into(c, BYTES);
        job_end(r, TERN_ERR_PEER);
        job_end(s, TERN_ERR_PEER);
        assert_string_equal(err_words(), "mock: copying fails");
        assert_int_equal(mock_count.copies, at); /* the rest was not tried */
        job_close();
    }
}

/* The system begins to refuse the copying in the middle of a message: it arrives all the same. */
static void refused_copies_fall_back_to_fragments(void **state)
{
    setenv("TERN_CHUNK_CMA", "64K", 1);
    (void)state;
    for (uint32_t at = 1; at <= 5; at++) {
        struct mock_script script = MOCK_SCRIPT;
        script.error = TERN_ERR_UNSUPPORTED;
        script.fail_copy = at;
        struct comm *c = job_open(&script);
        struct request *s = offer(c, BYTES, 10), *r = accept_into(c, BYTES);
        job_end(r, 0);
        job_end(s, 0);
        assert_true(filled(in, BYTES, 10));
        assert_true(mock_count.sent[AM_FRAG] > 1);
        s = offer(c, BYTES, 11), r = accept_into(c, BYTES);
        job_end(r, 0);
        job_end(s, 0);
        assert_true(filled(in, BYTES, 11));
        assert_int_equal(mock_count.copies, at);
        job_close();
    }
}

/* Regression: the sender copied the last chunk, and its next message used the descriptor again before the receiver had
 * looked: the receive never ended. */
static void descriptor_is_kept_until_the_receiver_looked(void **state)
{
    struct comm *c = job_open(NULL);
    (void)state;
    struct request *r = accept_into(c, BYTES), *s = offer(c, BYTES, 12);
    while (!r->xfer) assert_true(wires_progress(64) >= 0);
    struct pt_offer *first = s->xfer;
    while (!request_is_complete(s)) pt_outgoing_step(s); /* by the sender alone; the receiver has not seen it */
    pt_release(s);
    struct request *next = offer(c, BYTES, 12);
    assert_ptr_not_equal(next->xfer, first);
    job_end(r, 0);
    assert_true(filled(in, BYTES, 12));
    r = accept_into(c, BYTES);
    job_end(next, 0);
    job_end(r, 0);
    for (int i = 0; i < 10; i++) { /* and used again afterwards: memory does not grow */
        s = offer(c, BYTES, 13), r = accept_into(c, BYTES);
        assert_true((char *)s->xfer < (char *)first + 4 * sizeof *first);
        job_end(r, 0);
        job_end(s, 0);
    }
    job_close();
}

/* The shared heap is used up: messages go in fragments. */
static void no_descriptor_left(void **state)
{
    struct comm *c = job_open(NULL);
    uint64_t off;
    (void)state;
    while (peer_shared_alloc(sizeof(struct pt_offer), &off)) continue;
    struct request *s = offer(c, BYTES, 14), *r = accept_into(c, BYTES);
    job_end(r, 0);
    job_end(s, 0);
    assert_true(filled(in, BYTES, 14));
    assert_true(mock_count.sent[AM_FRAG] > 1);
    job_close();
}

/* Many at once, in both orders of ending. */
static void many_transfers(void **state)
{
    enum { N = 64, EACH = 40000 };
    struct comm *c = job_open(NULL);
    struct request *s[N], *r[N];
    char *from = malloc(N * EACH), *to = calloc(N, EACH);
    (void)state;
    assert_true(from && to);
    for (int round = 0; round < 4; round++) {
        for (int i = 0; i < N; i++) {
            fill(from + i * EACH, EACH, (uint64_t)(i + round));
            s[i] = job_isend(c, from + i * EACH, EACH, i, PT_STANDARD);
        }
        for (int i = N; i-- > 0;)
            r[i] = job_irecv(c, to + i * EACH, EACH, i);
        pt_wait_many(N, s, true);
        pt_wait_many(N, r, true);
        for (int i = 0; i < N; i++) {
            job_end(s[i], 0);
            job_end(r[i], 0);
            assert_true(filled(to + i * EACH, EACH, (uint64_t)(i + round)));
        }
    }
    free(from);
    free(to);
    job_close();
}

/* Buffers in the arena are copied without the system, whichever of the two lies there and whether or not the system would
 * copy; if the arena cannot be mapped after all, the message comes another way. */
static void an_arena_is_copied_through_its_mapping(void **state)
{
    static struct arena_note told;
    (void)state;
    arena_publish(&told);
    char *block[2] = {arena_alloc(BYTES, 64), arena_alloc(BYTES, 64)};
    assert_true(block[0] && block[1]);
    for (int way = 0; way < 16; way++) {
        bool from_there = way & 1, to_there = way & 2, by_system = way & 4, unmapped = way & 8;
        struct mock_script script = MOCK_SCRIPT;
        script.caps = TP_CAP_BCOPY | TP_CAP_MAP | TP_CAP_ARENA | (by_system ? TP_CAP_GETPUT : 0);
        script.no_arena = unmapped;
        mock_count = (struct mock_count){0};
        struct comm *c = job_open(&script);
        char *from = from_there ? block[0] : out, *to = to_there ? block[1] : in;
        fill(from, BYTES, (uint64_t)way);
        memset(to, 0, BYTES);
        struct request *s = job_isend(c, from, BYTES, 1, PT_STANDARD), *r = job_irecv(c, to, BYTES, 1);
        job_end(s, 0);
        job_end(r, 0);
        assert_true(filled(to, BYTES, (uint64_t)way));
        bool mapped = (from_there || to_there) && !unmapped;
        assert_int_equal(mock_count.arena_maps > 0, from_there || to_there);
        if (!by_system) assert_int_equal(mock_count.sent[AM_FRAG] > 0, !mapped);
        if (by_system) assert_int_equal(mock_count.sent[AM_FRAG], 0);
        if (from_there && to_there && mapped) assert_int_equal(mock_count.copies, 0);
        job_close();
    }
    assert_int_equal(arena_free(block[0]), ARENA_FREED);
    assert_int_equal(arena_free(block[1]), ARENA_FREED);
    arena_publish(NULL);
}

/* A freed send that nobody has received: MPI_Finalize ends its communicator, and progress is still made behind that. */
static void an_offer_does_not_outlive_its_communicator(void **state)
{
    struct comm *c = job_open(NULL);
    struct lane *l = c->lane;
    (void)state;
    struct request *s = offer(c, BYTES, 5);
    job_settle();
    assert_false(request_is_complete(s) || list_empty(&l->rndv.outgoing.requests));
    comm_drop_left();
    assert_true(list_empty(&l->rndv.outgoing.requests));
    assert_int_equal(l->ids.used, 0);
    job_settle();
    job_abandon();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(one_copy, job_clean),
        cmocka_unit_test_teardown(one_side_suffices, job_clean),
        cmocka_unit_test_teardown(shorter_receive, job_clean),
        cmocka_unit_test_teardown(without_capabilities, job_clean),
        cmocka_unit_test_teardown(failing_copies_end_the_transfer, job_clean),
        cmocka_unit_test_teardown(refused_copies_fall_back_to_fragments, job_clean),
        cmocka_unit_test_teardown(descriptor_is_kept_until_the_receiver_looked, job_clean),
        cmocka_unit_test_teardown(no_descriptor_left, job_clean),
        cmocka_unit_test_teardown(many_transfers, job_clean),
        cmocka_unit_test_teardown(an_arena_is_copied_through_its_mapping, job_clean),
        cmocka_unit_test_teardown(an_offer_does_not_outlive_its_communicator, job_clean),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
