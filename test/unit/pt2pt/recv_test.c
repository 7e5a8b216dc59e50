/* recv_test.c - a receive meets a message, whichever comes first; truncation; many unexpected messages. */
#include "mock_job.h"
#include "base/err.h"

#include <stdlib.h>
#include <string.h>

static char out[1 << 16], in[1 << 16];

static void send_bytes(struct comm *c, size_t n, int tag, uint64_t seed)
{
    fill(out, n, seed);
    assert_int_equal(pt_send(c, out, (int64_t)n, type_of(MPI_BYTE), 0, tag, PT_STANDARD), 0);
}

static void receive_first(void **state)
{
    static const size_t sizes[] = {0, 1, 8, 9, 4000};
    struct comm *c = job_open(NULL);
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        struct request *r = NULL;
        memset(in, 0xee, sizeof in);
        assert_int_equal(pt_irecv(c, in, 5000, type_of(MPI_BYTE), MPI_ANY_SOURCE, MPI_ANY_TAG, &r), 0);
        send_bytes(c, sizes[i], 40 + (int)i, i);
        assert_false(request_is_complete(r)); /* the message is delivered by progress only */
        assert_int_equal(pt_wait(r), 0);
        assert_int_equal(r->result.bytes, sizes[i]);
        assert_int_equal(r->result.source, 0);
        assert_int_equal(r->result.tag, 40 + (int)i);
        assert_true(filled(in, sizes[i], i));
        assert_int_equal((unsigned char)in[sizes[i]], 0xee);
        pt_release(r);
    }
    assert_int_equal(lanes_first()->pool.peak, 0); /* nothing was unexpected */
    job_close();
}

/* A message longer than the buffer is an error of the receive, and fills the buffer, no more (MPI-5.0 3.2.4). */
static void truncated(bool expected, size_t n, size_t room)
{
    struct comm *c = job_open(NULL);
    struct request *r = NULL, *s = NULL;
    memset(in, 0xee, sizeof in);
    fill(out, n, 3);
    if (expected) r = job_irecv(c, in, (int64_t)room, 1);
    s = job_isend(c, out, (int64_t)n, 1, PT_STANDARD);
    job_settle();
    if (!expected) r = job_irecv(c, in, (int64_t)room, 1);
    assert_int_equal(pt_wait(r), TERN_ERR_TRUNCATE);
    assert_int_equal(r->result.bytes, room);
    assert_true(filled(in, room, 3));
    assert_int_equal((unsigned char)in[room], 0xee);
    assert_int_equal(pt_wait(s), 0); /* the sender did nothing wrong */
    pt_release(r);
    pt_release(s);
    job_close();
}

static void too_long_messages_are_cut(void **state)
{
    (void)state;
    for (int expected = 0; expected < 2; expected++) {
        truncated(expected, 100, 99);
        truncated(expected, 8, 0);
        truncated(expected, 50000, 49999);
        truncated(expected, 50000, 10);
        truncated(expected, 50000, 0);
    }
}

/* Messages between two processes in one context are not overtaken, whatever way each goes (MPI-5.0 3.5). */
static void order_over_sizes(void **state)
{
    enum { N = 60 };
    struct comm *c = job_open(NULL);
    struct request *s[N];
    (void)state;
    char *buf = malloc(N * 10000);
    assert_non_null(buf);
    for (int i = 0; i < N; i++) {
        size_t n = (size_t)(i * 37 % 7) * 1500;
        fill(buf + i * 10000, n, (uint64_t)i);
        s[i] = job_isend(c, buf + i * 10000, (int64_t)n, i % 2, PT_STANDARD);
    }
    for (int i = 0; i < N; i++) {
        struct request_result res;
        assert_int_equal(pt_recv(c, in, 10000, type_of(MPI_BYTE), 0, MPI_ANY_TAG, &res), 0);
        assert_int_equal(res.tag, i % 2);
        assert_int_equal(res.bytes, (size_t)(i * 37 % 7) * 1500);
        assert_true(filled(in, (size_t)res.bytes, (uint64_t)i));
    }
    for (int i = 0; i < N; i++) {
        job_end(s[i], 0);
    }
    free(buf);
    job_close();
}

/* Contexts are apart: the collective half, and other communicators, do not see users' messages. */
static void contexts_are_apart(void **state)
{
    struct comm *c = job_open(NULL), *d = NULL;
    struct request r = {.flags = 0};
    struct request_result res;
    bool found;
    (void)state;
    assert_int_equal(comm_new(comm_fresh_ctx(), rankmap_ref(c->map), NULL, c, &d), 0);
    send_bytes(c, 10, 1, 1);
    send_bytes(d, 20, 1, 2);
    job_settle();
    pt_prepare(&r, REQ_RECV, c, PT_COLL, in, 100, type_of(MPI_BYTE), 0, 1, PT_STANDARD);
    pt_recv_start(&r);
    job_settle();
    assert_false(request_is_complete(&r));
    assert_int_equal(pt_recv(d, in, 100, type_of(MPI_BYTE), 0, 1, &res), 0);
    assert_int_equal(res.bytes, 20);
    assert_int_equal(pt_probe(d, MPI_ANY_SOURCE, MPI_ANY_TAG, false, &found, &res), 0);
    assert_false(found);
    assert_int_equal(pt_recv(c, in, 100, type_of(MPI_BYTE), 0, 1, &res), 0);
    assert_int_equal(res.bytes, 10);
    pt_cancel_locked(&r);
    assert_true(request_is_complete(&r));
    comm_unref(d);
    job_close();
}

static void nobody_is_a_source(void **state)
{
    struct comm *c = job_open(NULL);
    struct request_result res;
    struct request *r = NULL;
    (void)state;
    assert_int_equal(pt_recv(c, in, 8, type_of(MPI_BYTE), MPI_PROC_NULL, 1, &res), 0);
    assert_int_equal(res.source, MPI_PROC_NULL);
    assert_int_equal(res.tag, MPI_ANY_TAG);
    assert_int_equal(res.bytes, 0);
    assert_int_equal(pt_irecv(c, in, 8, type_of(MPI_BYTE), MPI_PROC_NULL, 1, &r), 0);
    assert_true(request_is_complete(r));
    assert_int_equal(r->result.source, MPI_PROC_NULL);
    pt_release(r);
    job_close();
}

/* A large message that nobody has asked for yet stays where the transport has it, as far as that can hold it, and is
 * received from there; a small one is copied. */
static void unexpected_messages_stay_where_they_are(void **state)
{
    enum { MESSAGES = 8, HELD = 3, BYTES = 6000 };
    static char sent[MESSAGES][BYTES], got[BYTES];
    struct mock_script script = MOCK_SCRIPT;
    (void)state;
    script.keep = HELD;
    setenv("TERN_EAGER_SHM", "7000", 1);
    struct comm *c = job_open(&script);
    struct request_result result;
    struct request *r;
    for (int round = 0; round < 2; round++) {
        uint64_t before = mock_count.kept;
        for (int i = 0; i < MESSAGES; i++) {
            fill(sent[i], BYTES, (uint64_t)i);
            r = job_isend(c, sent[i], i % 2 ? BYTES : 200, i, PT_STANDARD);
            job_end(r, 0);
            job_settle();
        }
        assert_int_equal(mock_count.kept - before, HELD);
        for (int i = MESSAGES - 1; i >= 0; i--) {
            size_t n = i % 2 ? BYTES : 200;
            memset(got, 0, sizeof got);
            assert_int_equal(pt_recv(c, got, BYTES, type_of(MPI_BYTE), 0, i, &result), 0);
            assert_true(!memcmp(got, sent[i], n) && (n == BYTES || !got[n]));
        }
    }
    assert_int_equal(lanes_first()->pool.used, 0);
    job_close();
}

/* Unexpected messages are taken in the order of sending, by tag, from any depth, and their memory comes back. */
static void deep_unexpected_queue(void **state)
{
    enum { N = 3000 };
    struct comm *c = job_open(NULL);
    (void)state;
    for (int i = 0; i < N; i++) {
        send_bytes(c, 4, i, (uint64_t)i);
        job_settle();
    }
    assert_int_equal(lanes_first()->pool.bodies, N);
    for (int i = N; i-- > 0;) {
        struct request_result res;
        assert_int_equal(pt_recv(c, in, 4, type_of(MPI_BYTE), 0, i, &res), 0);
        assert_true(filled(in, 4, (uint64_t)i));
    }
    assert_int_equal(lanes_first()->pool.bodies, 0);
    job_close();
}

/* ---- sinks: the header of a message is there before its payload ---- */

static struct comm *open_stream(void)
{
    struct mock_script script = MOCK_SCRIPT;
    script.caps = TP_CAP_BCOPY;
    script.sink_min = 100;
    return job_open(&script);
}

static struct request *posted(struct comm *c, void *buf, int64_t n, int tag)
{
    struct request *r = NULL;
    assert_int_equal(pt_irecv(c, buf, n, type_of(MPI_BYTE), MPI_ANY_SOURCE, tag, &r), 0);
    return r;
}

static void ended_with(struct request *r, int64_t n, uint64_t seed)
{
    assert_int_equal(pt_wait(r), 0);
    assert_int_equal(r->result.bytes, n);
    assert_true(filled(r->buf, (size_t)n, seed));
    pt_release(r);
}

static void payloads_land_in_posted_buffers(void **state)
{
    static char a[2000], b[2000];
    struct comm *c = open_stream();
    (void)state;
    struct request *r = posted(c, a, sizeof a, 1), *q = posted(c, b, sizeof b, 2);
    send_bytes(c, 50, 1, 4); /* short: not asked for */
    send_bytes(c, 1000, 2, 5);
    ended_with(r, 50, 4);
    ended_with(q, 1000, 5);
    assert_int_equal(mock_count.sinks, 1);
    assert_int_equal(mock_count.sunk, 1);
    r = posted(c, a, 900, 1); /* too short: not into it */
    send_bytes(c, 1000, 1, 6);
    assert_int_equal(pt_wait(r), TERN_ERR_TRUNCATE);
    assert_true(filled(a, 900, 6));
    pt_release(r);
    assert_int_equal(mock_count.sunk, 1);
    job_close();
}

/* A receive that the header was matched to is no more for another message, nor can it be cancelled. */
static void matched_by_the_header(void **state)
{
    static char a[2000], b[2000];
    struct comm *c = open_stream();
    (void)state;
    struct request *r = posted(c, a, sizeof a, MPI_ANY_TAG);
    send_bytes(c, 1500, 1, 1);
    assert_int_equal(wires_progress(1), 1); /* the header */
    assert_ptr_equal(job_peer()->arriving, r);
    pt_cancel(r);
    assert_false(request_is_complete(r));
    struct request *q = posted(c, b, sizeof b, MPI_ANY_TAG);
    send_bytes(c, 1600, 1, 2);
    ended_with(q, 1600, 2);
    ended_with(r, 1500, 1);
    job_close();
}

/* A receive posted between header and payload takes the message, in the order of posting. */
static void posted_after_the_header(void **state)
{
    static char a[2000], b[2000];
    struct comm *c = open_stream();
    (void)state;
    send_bytes(c, 1500, 1, 1);
    send_bytes(c, 1600, 1, 2);
    assert_int_equal(wires_progress(1), 1);
    assert_null(job_peer()->arriving);
    struct request *r = posted(c, a, sizeof a, 1), *q = posted(c, b, sizeof b, 1);
    ended_with(r, 1500, 1);
    ended_with(q, 1600, 2);
    job_close();
}

static void lost_between_header_and_payload(void **state)
{
    static char a[2000];
    struct comm *c = open_stream();
    (void)state;
    struct request *r = posted(c, a, sizeof a, 1);
    send_bytes(c, 1500, 1, 1);
    assert_int_equal(wires_progress(1), 1);
    mock_script.lose = 1;
    assert_int_equal(pt_wait(r), TERN_ERR_PEER);
    assert_string_equal(err_words(), "mock: the peer is gone");
    assert_null(job_peer()->arriving);
    pt_release(r);
    job_abandon();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(receive_first, job_clean),
        cmocka_unit_test_teardown(too_long_messages_are_cut, job_clean),
        cmocka_unit_test_teardown(order_over_sizes, job_clean),
        cmocka_unit_test_teardown(contexts_are_apart, job_clean),
        cmocka_unit_test_teardown(nobody_is_a_source, job_clean),
        cmocka_unit_test_teardown(deep_unexpected_queue, job_clean),
        cmocka_unit_test_teardown(unexpected_messages_stay_where_they_are, job_clean),
        cmocka_unit_test_teardown(payloads_land_in_posted_buffers, job_clean),
        cmocka_unit_test_teardown(matched_by_the_header, job_clean),
        cmocka_unit_test_teardown(posted_after_the_header, job_clean),
        cmocka_unit_test_teardown(lost_between_header_and_payload, job_clean),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
