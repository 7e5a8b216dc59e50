/* stream_test.c - large messages in fragments: types with gaps on either side, small rings, refusals, failures. */
#include "../mock_job.h"
#include "base/err.h"
#include "pt2pt/lost.h"

#include <stdlib.h>
#include <string.h>

enum { INTS = 20000 };
static int out[2 * INTS], in[2 * INTS];

/* Every second int: INTS of them. */
static struct type *gaps(void)
{
    struct type *t = NULL;
    assert_int_equal(type_vector(INTS, 1, 2, TYPE_ELEMENTS, type_of(MPI_INT), &t), 0);
    assert_int_equal(type_commit(t), 0);
    return t;
}

/* Sends INTS ints and receives them, with gaps or without on each side. */
static void transfer(struct comm *c, bool gaps_out, bool gaps_in, int seed)
{
    struct type *t = gaps();
    struct request *s = NULL, *r = NULL;
    for (int i = 0; i < 2 * INTS; i++) out[i] = seed + i, in[i] = -1;
    assert_int_equal(pt_isend(c, out, gaps_out ? 1 : INTS, gaps_out ? t : type_of(MPI_INT), 0, 1, PT_STANDARD, &s), 0);
    assert_int_equal(pt_irecv(c, in, gaps_in ? 1 : INTS, gaps_in ? t : type_of(MPI_INT), 0, 1, &r), 0);
    assert_int_equal(pt_wait(r), 0);
    assert_int_equal(pt_wait(s), 0);
    assert_int_equal(r->result.bytes, INTS * sizeof(int));
    for (int i = 0; i < INTS; i++) {
        int sent = seed + (gaps_out ? 2 * i : i);
        if (in[gaps_in ? 2 * i : i] != sent) fail_msg("element %d: %d, not %d", i, in[gaps_in ? 2 * i : i], sent);
        if (gaps_in) assert_int_equal(in[2 * i + 1], -1);
    }
    pt_release(r);
    pt_release(s);
    type_unref(t);
}

static void every_pair_of_layouts(void **state)
{
    struct mock_script script = MOCK_SCRIPT;
    (void)state;
    for (int bcopy = 0; bcopy < 2; bcopy++) {
        script.caps = bcopy ? TP_CAP_BCOPY : 0;
        struct comm *c = job_open(&script);
        for (int pair = 0; pair < 4; pair++) transfer(c, pair & 1, pair & 2, 100 * pair);
        assert_int_equal(mock_count.sent[AM_CTS], 4);
        job_close();
    }
}

/* An offer whose receiver has gaps is turned down and sent in fragments; the descriptor comes back. */
static void offer_turned_down(void **state)
{
    struct comm *c = job_open(NULL);
    (void)state;
    for (int i = 0; i < 100; i++) transfer(c, false, true, i);
    uint64_t off;
    assert_non_null(peer_shared_alloc(sizeof(struct pt_offer), &off));
    assert_true(off < 4 * sizeof(struct pt_offer));
    assert_int_equal(mock_count.copies, 0);
    job_close();
}

/* Fragments of every size, also such that cut elements. */
static void small_rings(void **state)
{
    static const uint32_t sizes[] = {64, 66, 100, 1002, 4096, 40000};
    struct mock_script script = MOCK_SCRIPT;
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        script.max_short = sizes[i];
        script.caps = i % 2 ? TP_CAP_BCOPY : 0;
        script.room = 2;
        struct comm *c = job_open(&script);
        transfer(c, true, true, 1);
        transfer(c, true, false, 2);
        job_close();
    }
}

static void refusals(void **state)
{
    struct mock_script script = MOCK_SCRIPT;
    uint64_t refused = 0;
    (void)state;
    script.seed = random_open();
    script.caps = TP_CAP_BCOPY;
    for (uint32_t percent = 10; percent < 100; percent += 20) {
        script.again_percent = percent;
        struct comm *c = job_open(&script);
        transfer(c, true, true, 3);
        transfer(c, false, false, 4);
        refused += mock_count.refused;
        job_close();
    }
    assert_true(refused > 0); /* not at each percentage: one time in ten may not come */
}

/* The receiver wants less than there is: no more than that is sent. */
static void shorter_receive(void **state)
{
    struct mock_script script = MOCK_SCRIPT;
    struct request *s = NULL, *r = NULL;
    script.caps = 0;
    struct comm *c = job_open(&script);
    (void)state;
    for (int i = 0; i < INTS; i++) out[i] = i, in[i] = -1;
    assert_int_equal(pt_isend(c, out, INTS, type_of(MPI_INT), 0, 1, PT_STANDARD, &s), 0);
    assert_int_equal(pt_irecv(c, in, 5000, type_of(MPI_INT), 0, 1, &r), 0);
    assert_int_equal(pt_wait(r), TERN_ERR_TRUNCATE);
    assert_int_equal(pt_wait(s), 0);
    for (int i = 0; i < 5000; i++) assert_int_equal(in[i], i);
    assert_int_equal(in[5000], -1);
    assert_int_equal(mock_count.sent[AM_FRAG], (5000 * 4 + 4095) / 4096);
    pt_release(r);
    pt_release(s);
    job_close();
}

/* The answer to an offer of nothing is the end of the send, also when the receiver leaves right behind it. */
static void nothing_to_send_and_the_receiver_leaves(void **state)
{
    struct request *s = NULL, *r = NULL;
    struct mock_script script = MOCK_SCRIPT;
    (void)state;
    setenv("TERN_EAGER_CREDIT", "0", 1);
    script.caps = TP_CAP_ZCOPY;
    script.deliver = 1;
    struct comm *c = job_open(&script);
    assert_int_equal(pt_isend(c, out, 0, type_of(MPI_INT), 0, 1, PT_STANDARD, &s), 0);
    assert_int_equal(pt_irecv(c, in, 0, type_of(MPI_INT), 0, 1, &r), 0);
    while (!mock_count.sent[AM_CTS]) lane_progress(lanes_first());
    assert_int_equal(wires_progress(1), 1);
    err_set(TERN_ERR_PEER, "rank 0 has left the job");
    pt_leave(job_peer());
    assert_int_equal(pt_wait(r), 0);
    assert_int_equal(pt_wait(s), 0);
    pt_release(r);
    pt_release(s);
    job_abandon();
}

static void failing_wire_ends_the_send(void **state)
{
    struct mock_script script = MOCK_SCRIPT;
    struct request *s = NULL, *r = NULL;
    (void)state;
    script.caps = 0;
    script.error = TERN_ERR_PEER;
    script.deliver = 1;
    script.room = 3;
    struct comm *c = job_open(&script);
    assert_int_equal(pt_isend(c, out, INTS, type_of(MPI_INT), 0, 1, PT_STANDARD, &s), 0);
    assert_int_equal(pt_irecv(c, in, INTS, type_of(MPI_INT), 0, 1, &r), 0);
    while (mock_count.sent[AM_FRAG] < 5) lane_progress(lanes_first());
    mock_script.fail_send = 1;
    assert_int_equal(pt_wait(s), TERN_ERR_PEER);
    assert_string_equal(err_words(), "mock: sending fails");
    assert_true(list_empty(&lanes_first()->steps.active));
    assert_int_equal(pt_wait(r), TERN_ERR_PEER); /* and the receive: who sent to it is lost */
    pt_release(r);
    pt_release(s);
    job_abandon();
}

/* ---- from where the data lies, to where it belongs ---- */

enum { BIG = 5 << 20 };

/* Sends BIG bytes; the script has TP_CAP_ZCOPY. */
static void transfer_in_place(const struct mock_script *script)
{
    struct comm *c = job_open(script);
    char *from = malloc(BIG), *to = calloc(1, BIG);
    assert_true(from && to);
    fill(from, BIG, 9);
    struct request *s = job_isend(c, from, BIG, 1, PT_STANDARD), *r = job_irecv(c, to, BIG, 1);
    job_end(s, 0);
    memset(from, 0, BIG); /* it may change now */
    job_end(r, 0);
    assert_true(filled(to, BIG, 9));
    free(from);
    free(to);
}

/* 256K, 256K, and twice as much whenever both are gone, up to TERN_CHUNK_STREAM. */
static void fragments_grow(void **state)
{
    struct mock_script script = MOCK_SCRIPT;
    (void)state;
    script.caps = TP_CAP_BCOPY | TP_CAP_ZCOPY;
    transfer_in_place(&script);
    assert_int_equal(mock_count.sent[AM_FRAG], 2 + 2 + 4); /* .5M, 1M, 3.5M */
    assert_int_equal(mock_count.sunk, 0); /* no transport asked */
    job_close();
    setenv("TERN_CHUNK_STREAM", "64K", 1);
    transfer_in_place(&script);
    assert_int_equal(mock_count.sent[AM_FRAG], BIG / (64 << 10));
    job_close();
}

/* The wire still reads the memory: the send is not over, and no more than two fragments are under way. */
static void two_fragments_under_way(void **state)
{
    struct mock_script script = MOCK_SCRIPT;
    static char to[BIG], from[BIG];
    (void)state;
    script.caps = TP_CAP_BCOPY | TP_CAP_ZCOPY;
    script.done_late = true;
    script.deliver = 1;
    struct comm *c = job_open(&script);
    fill(from, BIG, 7);
    struct request *r = job_irecv(c, to, BIG, 1), *s = job_isend(c, from, BIG, 1, PT_STANDARD);
    while (!request_is_complete(s)) {
        uint64_t arrived = mock_count.delivered < 2 ? 0 : mock_count.delivered - 2; /* RTS and CTS came before */
        assert_in_range(mock_count.sent[AM_FRAG] - arrived, 0, 2);
        assert_false(request_is_complete(r));
        lane_progress(lanes_first());
    }
    assert_true(mock_count.delivered > 2 + BIG / (1 << 20));
    job_end(r, 0);
    assert_true(filled(to, BIG, 7));
    pt_release(s);
    job_close();
}

static void into_the_users_buffer(void **state)
{
    struct mock_script script = MOCK_SCRIPT;
    (void)state;
    script.caps = TP_CAP_BCOPY | TP_CAP_ZCOPY;
    script.sink_min = 1000;
    script.done_late = true;
    transfer_in_place(&script);
    assert_true(mock_count.sinks > 4);
    assert_int_equal(mock_count.sunk, mock_count.sinks);
    job_close();
}

static void refused_in_place(void **state)
{
    struct mock_script script = MOCK_SCRIPT;
    (void)state;
    script.seed = random_open();
    script.caps = TP_CAP_ZCOPY;
    script.sink_min = 1000;
    for (uint32_t percent = 10; percent < 100; percent += 20) {
        script.again_percent = percent;
        script.done_late = percent % 40 == 10;
        transfer_in_place(&script);
        job_close();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(every_pair_of_layouts, job_clean),
        cmocka_unit_test_teardown(offer_turned_down, job_clean),
        cmocka_unit_test_teardown(small_rings, job_clean),
        cmocka_unit_test_teardown(refusals, job_clean),
        cmocka_unit_test_teardown(shorter_receive, job_clean),
        cmocka_unit_test_teardown(nothing_to_send_and_the_receiver_leaves, job_clean),
        cmocka_unit_test_teardown(failing_wire_ends_the_send, job_clean),
        cmocka_unit_test_teardown(fragments_grow, job_clean),
        cmocka_unit_test_teardown(two_fragments_under_way, job_clean),
        cmocka_unit_test_teardown(into_the_users_buffer, job_clean),
        cmocka_unit_test_teardown(refused_in_place, job_clean),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
