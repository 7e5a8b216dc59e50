/* stream_test.c - large messages in fragments: types with gaps on either side, small rings, refusals, failures. */
#include "mock_job.h"
#include "base/err.h"

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
    (void)state;
    script.seed = random_open();
    script.caps = TP_CAP_BCOPY;
    for (uint32_t percent = 10; percent < 100; percent += 20) {
        script.again_percent = percent;
        struct comm *c = job_open(&script);
        transfer(c, true, true, 3);
        transfer(c, false, false, 4);
        assert_true(mock_count.refused > 0);
        job_close();
    }
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
    while (mock_count.sent[AM_FRAG] < 5) lane_progress(&lane0);
    mock_script.fail_send = 1;
    assert_int_equal(pt_wait(s), TERN_ERR_PEER);
    assert_string_equal(err_words(), "mock: sending fails");
    assert_int_equal(lane0.large, 0);
    assert_int_equal(pt_wait(r), TERN_ERR_PEER); /* and the receive: who sent to it is lost */
    pt_release(r);
    pt_release(s);
    job_abandon();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(every_pair_of_layouts, job_clean),
        cmocka_unit_test_teardown(offer_turned_down, job_clean),
        cmocka_unit_test_teardown(small_rings, job_clean),
        cmocka_unit_test_teardown(refusals, job_clean),
        cmocka_unit_test_teardown(shorter_receive, job_clean),
        cmocka_unit_test_teardown(failing_wire_ends_the_send, job_clean),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
