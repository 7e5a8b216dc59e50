/*
 * bulk_test.c - large messages by the wire's own protocol: what goes by it and what does not, refusals, lengths that
 * differ, a wire that will not.
 */
#include "../mock_job.h"
#include "base/err.h"
#include "pt2pt/lost.h"

#include <stdlib.h>
#include <string.h>

enum { BYTES = 200000 };
static char out[2 * BYTES], in[2 * BYTES];

static struct mock_script bulk_script(void)
{
    struct mock_script s = MOCK_SCRIPT;
    s.caps = TP_CAP_BCOPY | TP_CAP_BULK | TP_CAP_ZCOPY;
    return s;
}

static struct request *isend(struct comm *c, int64_t n, int tag)
{
    fill(out, (size_t)n, (uint64_t)tag);
    return job_isend(c, out, n, tag, PT_STANDARD);
}

static struct request *irecv(struct comm *c, int64_t n, int tag)
{
    memset(in, 0x77, sizeof in);
    return job_irecv(c, in, n, tag);
}

static void one_message(struct comm *c, int64_t n, int tag)
{
    struct request *s = isend(c, n, tag), *r = irecv(c, n, tag);
    job_end(s, 0);
    job_end(r, 0);
    assert_true(filled(in, (size_t)n, (uint64_t)tag));
    assert_int_equal(in[n], 0x77);
}

/* One transfer for each message that is too long to go without asking, and no fragment. */
static void every_length(void **state)
{
    static const int64_t sizes[] = {8193, 8194, 10001, 32768, 32769, 99999, BYTES};
    struct mock_script script = bulk_script();
    (void)state;
    for (int at_once = 0; at_once < 2; at_once++) {
        script.bulk_at_once = at_once;
        struct comm *c = job_open(&script);
        for (size_t i = 0; i < ARRAY_LEN(sizes); i++) one_message(c, sizes[i], (int)i + 1);
        assert_int_equal(mock_count.bulk, ARRAY_LEN(sizes));
        assert_int_equal(mock_count.sent[AM_FRAG], 0);
        assert_int_equal(mock_count.sent[AM_CTS], ARRAY_LEN(sizes));
        one_message(c, 100, 9);
        assert_int_equal(mock_count.bulk, ARRAY_LEN(sizes));
        job_close();
    }
}

/* A side with gaps is packed, or unpacked, fragment by fragment. */
static void gaps_go_in_fragments(void **state)
{
    struct mock_script script = bulk_script();
    struct comm *c = job_open(&script);
    struct type *gaps = gaps_type();
    (void)state;
    for (int pair = 0; pair < 4; pair++) {
        struct request *s = NULL, *r = NULL;
        bool gaps_out = pair & 1, gaps_in = pair & 2;
        uint64_t bulks = mock_count.bulk, fragments = mock_count.sent[AM_FRAG];
        fill(out, sizeof out, 5);
        memset(in, 0x77, sizeof in);
        assert_int_equal(pt_isend(c, out, gaps_out ? BYTES / 2 : BYTES, gaps_out ? gaps : type_of(MPI_BYTE), 0, 1, PT_SYNC, &s), 0);
        assert_int_equal(pt_irecv(c, in, gaps_in ? BYTES / 2 : BYTES, gaps_in ? gaps : type_of(MPI_BYTE), 0, 1, &r), 0);
        job_end(s, 0);
        job_end(r, 0);
        for (size_t k = 0; k < BYTES; k++)
            if (in[gaps_place(k, gaps_in)] != out[gaps_place(k, gaps_out)]) fail_msg("pair %d, byte %zu", pair, k);
        assert_int_equal(mock_count.bulk - bulks, pair == 0);
        assert_int_equal(mock_count.sent[AM_FRAG] > fragments, pair != 0);
    }
    type_unref(gaps);
    job_close();
}

/* TERN_BULK=off, at whatever side, and a receive of nothing. */
static void not_by_bulk(void **state)
{
    struct mock_script script = bulk_script();
    (void)state;
    setenv("TERN_BULK", "off", 1);
    struct comm *c = job_open(&script);
    one_message(c, BYTES, 1);
    job_close();
    unsetenv("TERN_BULK");
    c = job_open(&script);
    job_end(isend(c, 4, 1), 0); /* the first message: the row is made */
    job_end(irecv(c, 4, 1), 0);
    struct request *s = isend(c, BYTES, 2);
    job_settle();
    job_peer()->ways &= 1; /* as if the receiver had switched it off */
    job_end(irecv(c, BYTES, 2), 0);
    job_end(s, 0);
    assert_true(filled(in, BYTES, 2));
    job_close();
    c = job_open(&script);
    s = isend(c, BYTES, 3);
    job_end(irecv(c, 0, 3), TERN_ERR_TRUNCATE);
    job_end(s, 0);
    assert_int_equal(mock_count.bulk, 0);
    job_close();
}

static void shorter_receive(void **state)
{
    struct mock_script script = bulk_script();
    struct comm *c = job_open(&script);
    (void)state;
    struct request *s = isend(c, BYTES, 1), *r = irecv(c, 12345, 1);
    job_end(s, 0);
    assert_int_equal(pt_wait(r), TERN_ERR_TRUNCATE);
    assert_non_null(strstr(err_words(), "longer than the receive buffer of 12345 bytes"));
    assert_int_equal(r->result.bytes, 12345);
    pt_release(r);
    assert_true(filled(in, 12345, 1));
    assert_int_equal(in[12345], 0x77);
    assert_int_equal(mock_count.bulk, 1);
    one_message(c, BYTES, 2); /* the peer is as before */
    job_close();
}

/* The wire has no room now and then: for the receive, for the send, or for the answer between them. */
static void refusals(void **state)
{
    struct mock_script script = bulk_script();
    (void)state;
    uint64_t refused = 0;
    script.seed = random_open();
    for (uint32_t percent = 10; percent < 100; percent += 20) {
        script.again_percent = percent;
        script.bulk_at_once = percent % 40 == 10;
        script.deliver = percent % 3;
        struct comm *c = job_open(&script);
        for (int i = 1; i < 20; i++) one_message(c, 10000 * i, i);
        assert_int_equal(mock_count.bulk, 19);
        refused += mock_count.refused;
        job_close();
    }
    assert_true(refused > 100);
}

/* More at a time than the wire takes; and sends that the program has let go are over before the process leaves. */
static void many_and_let_go(void **state)
{
    enum { MANY = 300, EACH = 40000 };
    struct mock_script script = bulk_script();
    static struct request *r[MANY];
    char *from = malloc(EACH), *to = malloc((size_t)MANY * EACH);
    assert_true(from && to);
    fill(from, EACH, 3);
    script.room = 20;
    struct comm *c = job_open(&script);
    (void)state;
    for (int i = 0; i < MANY; i++) {
        r[i] = job_irecv(c, to + (size_t)i * EACH, EACH, i);
        pt_release(job_isend(c, from, EACH, i, PT_STANDARD));
    }
    pt_drain();
    assert_true(list_empty(&lanes_first()->rndv.bulks.requests) && !lanes_first()->rndv.bulks_under_way);
    for (int i = 0; i < MANY; i++) {
        job_end(r[i], 0);
        assert_true(filled(to + (size_t)i * EACH, EACH, 3));
    }
    assert_int_equal(mock_count.bulk, MANY);
    free(from);
    free(to);
    job_close();
}

static uint64_t asked_for;

static void ask_for_others(struct peer *from, uint64_t h0, uint64_t h1, const void *data, size_t n)
{
    struct pt_cts cts;
    assert_int_equal(n, sizeof cts);
    memcpy(&cts, data, sizeof cts);
    cts.bytes = asked_for;
    pt_on_cts(from, h0, h1, &cts, sizeof cts);
}

/* The sender is asked for other bytes than the receive has: the wire finds out, and the peer is given up. */
static void lengths_that_differ(void **state)
{
    struct mock_script script = bulk_script();
    (void)state;
    for (int longer = 0; longer < 2; longer++) {
        struct comm *c = job_open(&script);
        struct request *r = irecv(c, longer ? 50000 : 99999, 1), *s = isend(c, 99999, 1);
        asked_for = longer ? 99999 : 50000;
        tp_handlers[AM_CTS] = ask_for_others;
        assert_int_equal(pt_wait(r), TERN_ERR_PEER);
        assert_non_null(strstr(err_words(), "bulk transfer"));
        assert_int_equal(in[longer ? 50000 : 99999], 0x77);
        pt_release(r);
        pt_wait(s); /* it may have ended well */
        pt_release(s);
        assert_non_null(job_peer()->lost);
        job_settle();
        assert_int_equal(lanes_first()->ids.used, 0);
        assert_true(list_empty(&lanes_first()->steps.active) && !lanes_first()->rndv.bulks_under_way);
        job_abandon();
    }
}

/* A wire that will not: fragments, as long as the sender has not been told otherwise; else the end of the peer. */
static void wire_will_not(void **state)
{
    struct mock_script script = bulk_script();
    script.no_bulk = true;
    struct comm *c = job_open(&script);
    (void)state;
    one_message(c, BYTES, 1);
    assert_true(mock_count.sent[AM_FRAG] > 0 && !mock_count.bulk);
    mock_script.no_bulk = false;
    struct request *r = irecv(c, BYTES, 2), *s = isend(c, BYTES, 2);
    while (!r->id) wires_progress(1);
    mock_script.no_bulk = true;
    job_end(s, TERN_ERR_PEER);
    assert_string_equal(err_words(), "mock: no bulk transfers");
    job_end(r, TERN_ERR_PEER);
    assert_int_equal(lanes_first()->ids.used, 0);
    job_abandon();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(every_length, job_clean),
        cmocka_unit_test_teardown(gaps_go_in_fragments, job_clean),
        cmocka_unit_test_teardown(not_by_bulk, job_clean),
        cmocka_unit_test_teardown(shorter_receive, job_clean),
        cmocka_unit_test_teardown(refusals, job_clean),
        cmocka_unit_test_teardown(many_and_let_go, job_clean),
        cmocka_unit_test_teardown(lengths_that_differ, job_clean),
        cmocka_unit_test_teardown(wire_will_not, job_clean),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
