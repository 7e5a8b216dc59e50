/*
 * say_test.c - messages of layers above, of any size: whole, once, and in order with each other and with sends, whatever
 * the transport takes at a time and refuses.
 */
#include "mock_job.h"
#include "base/err.h"
#include "pt2pt/pending.h"

#include <stdlib.h>
#include <string.h>

enum { AM_TEXT = TP_AM_TESTS, AM_COUNTDOWN, MARKS = 64 };

static const size_t sizes[] = {0,    1,    31,   32,   33,   40,    41,    63,     64,     65,
                               8167, 8168, 8169, 8191, 8192, 8193,  70000, 100000, PT_MESSAGE_LARGEST - 1, PT_MESSAGE_LARGEST};
enum { N = ARRAY_LEN(sizes) };

/* What happened, in order: message k as k, the end of receive k as MARKS + k. */
static unsigned happened[2 * MARKS], count;

static void hear(struct peer *from, uint64_t h0, uint64_t h1, const void *data, size_t n)
{
    assert_ptr_equal(from, job_peer());
    assert_true(h0 < N);
    assert_int_equal(n, sizes[h0]);
    assert_int_equal(h1, ~h0);
    assert_int_equal((uintptr_t)data % 8, 0);
    assert_true(filled(data, n, h0));
    happened[count++] = (unsigned)h0;
}

static void received(struct request *r) { happened[count++] = MARKS + (unsigned)r->tag; }

static const struct tp_am text = {AM_TEXT, "text", hear, NULL, false, 0};

static struct comm *open_with(uint32_t max_short, uint32_t room, uint32_t again_percent, uint64_t seed)
{
    struct mock_script script = MOCK_SCRIPT;
    script.max_short = max_short;
    script.room = room;
    script.again_percent = again_percent;
    script.seed = seed;
    count = 0;
    return job_open(&script);
}

static char data[PT_MESSAGE_LARGEST + 1];

static int say(uint64_t k)
{
    fill(data, sizes[k], k);
    int rc = pt_message(0, AM_TEXT, k, ~k, data, sizes[k]);
    memset(data, 0, sizes[k]); /* it has been copied */
    return rc;
}

/* A message, a send, a message, ...: all come in that order. */
static void exchange(uint32_t max_short, uint32_t room, uint32_t again_percent, uint64_t seed)
{
    struct comm *c = open_with(max_short, room, again_percent, seed);
    struct request *in[N], *out[N];
    int value[N], got[N];
    for (int k = 0; k < (int)N; k++) {
        in[k] = job_irecv(c, &got[k], sizeof got[k], k);
        in[k]->done = received;
    }
    for (int k = 0; k < (int)N; k++) {
        value[k] = 100 * k;
        assert_int_equal(say((uint64_t)k), 0);
        out[k] = job_isend(c, &value[k], sizeof value[k], k, PT_STANDARD);
    }
    for (int i = 0; i < 1000 && count < 2 * N; i++) job_settle(); /* which takes many refusals for the end */
    assert_int_equal(count, 2 * N);
    for (unsigned k = 0; k < N; k++) {
        assert_int_equal(happened[2 * k], k);
        assert_int_equal(happened[2 * k + 1], MARKS + k);
        assert_int_equal(got[k], 100 * (int)k);
        job_end(in[k], 0);
        job_end(out[k], 0);
    }
    assert_null(job_peer()->gather);
    assert_int_equal(mock_count.sent[AM_PART] > 0, max_short < PT_MESSAGE_LARGEST);
    job_close();
}

static void messages_of_any_size_keep_their_order(void **state)
{
    static const uint32_t shorts[] = {64, 8192, 70000, PT_MESSAGE_LARGEST};
    uint64_t seed = random_open();
    (void)state;
    assert_int_equal(tp_am_register(&text, 1), 0);
    for (size_t i = 0; i < ARRAY_LEN(shorts); i++)
        for (uint32_t room = 1; room <= 4096; room *= 16)
            for (uint32_t again = 0; again <= 60; again += 30) exchange(shorts[i], room, again, random_next(&seed));
}

static void too_long_a_message_is_refused(void **state)
{
    (void)state;
    open_with(8192, 64, 0, 0);
    assert_int_equal(pt_message(0, AM_TEXT, 0, 0, data, PT_MESSAGE_LARGEST + 1), TERN_ERR_ARG);
    assert_non_null(strstr(err_words(), "1048577 bytes"));
    assert_int_equal(mock_count.sent[AM_PART], 0);
    job_close();
}

/* ---- handlers that send ---- */

static uint64_t counted;

static void count_down(struct peer *from, uint64_t h0, uint64_t h1, const void *in, size_t n)
{
    assert_int_equal(h0, counted);
    assert_int_equal(n, h1);
    assert_true(filled(in, n, h0));
    if (!counted) return;
    counted--;
    size_t next = counted * 7919 % 30000;
    fill(data, next, counted);
    assert_int_equal(pt_message(from->index, AM_COUNTDOWN, counted, next, data, next), 0);
}

static const struct tp_am countdown = {AM_COUNTDOWN, "countdown", count_down, NULL, false, 0};

/* The handler of a long message sends the next one, which may go to this process at once. */
static void a_handler_sends_the_next_message(void **state)
{
    (void)state;
    assert_int_equal(tp_am_register(&countdown, 1), 0);
    open_with(1000, 5, 30, random_open());
    counted = 300;
    fill(data, 20000, counted);
    assert_int_equal(pt_message(0, AM_COUNTDOWN, counted, 20000, data, 20000), 0);
    for (int i = 0; i < 1000 && counted; i++) job_settle();
    assert_int_equal(counted, 0);
    job_close();
}

/* ---- the end of the peer ---- */

/* What waits for a peer that is lost ends with it, and so does what has come of a long message. */
static void a_lost_peer_ends_what_waits(void **state)
{
    (void)state;
    assert_int_equal(tp_am_register(&text, 1), 0);
    struct comm *c = open_with(8192, 3, 0, 0);
    struct peer *p = job_peer();
    int value = 1;
    for (uint64_t k = 15; k < N; k++) assert_int_equal(say(k), 0);
    struct request *s = job_isend(c, &value, sizeof value, 1, PT_STANDARD);
    assert_true(p->waiting);
    wires_progress(1);
    assert_non_null(p->gather);
    tp_lost(p, err_set(TERN_ERR_PEER, "it went"));
    job_settle();
    assert_false(p->waiting);
    assert_null(p->gather);
    assert_true(list_empty(&p->first.ops) && list_empty(&lanes_first()->pending));
    assert_int_equal(count, 0);
    job_end(s, TERN_ERR_PEER);
    assert_int_equal(say(1), TERN_ERR_PEER);
    assert_non_null(strstr(err_words(), "it went"));
    job_abandon();
}

/* A wire that fails in the middle of a long message, at once or when it has waited, is the end of the peer, and not a
 * message that is cut off. */
static void a_failing_wire_cuts_nothing_off(void **state)
{
    static const int codes[] = {TERN_ERR_PEER, TERN_ERR_NOMEM};
    (void)state;
    assert_int_equal(tp_am_register(&text, 1), 0);
    for (size_t i = 0; i < ARRAY_LEN(codes); i++)
        for (int waiting = 0; waiting < 2; waiting++) {
            open_with(8192, waiting ? 0 : 64, 0, 0);
            struct peer *p = job_peer();
            mock_script.error = codes[i];
            mock_script.fail_send = waiting ? 0 : 3;
            assert_int_equal(say(N - 3), waiting ? 0 : TERN_ERR_PEER);
            if (waiting) {
                mock_script.room = 64;
                mock_script.fail_send = 3;
            }
            job_settle();
            assert_non_null(p->lost);
            assert_false(p->waiting);
            assert_null(p->gather);
            assert_int_equal(count, 0);
            job_abandon();
        }
}

/* ---- operations of others that wait ---- */

struct probe {
    struct pending pending;
    int attempts, left, ended;
};

static bool attempt_probe(struct lane *l, struct peer *p, struct pending *op)
{
    struct probe *q = container_of(op, struct probe, pending);
    assert_ptr_equal(l, lanes_first());
    assert_ptr_equal(p, job_peer());
    q->attempts++;
    return !q->left--;
}

static void end_probe(struct lane *l, struct peer *p, struct pending *op)
{
    (void)l;
    assert_non_null(p->lost);
    container_of(op, struct probe, pending)->ended++;
}

static void probe_anew(struct lane *l, uint32_t index, struct pending *op) { (void)l, (void)index, (void)op; }

static const struct pending_ops probing = {.attempt = attempt_probe, .end = end_probe, .anew = probe_anew};

/* Any operation can wait: it is attempted until it is out of the way, sends behind it wait, and it can be taken back. */
static void any_operation_can_wait(void **state)
{
    struct comm *c = open_with(8192, 64, 0, 0);
    struct peer *p = job_peer();
    struct probe first = {.left = 3}, second = {.left = 1000000};
    int value = 5;
    (void)state;
    assert_int_equal(pending_park(lanes_first(), p, &first.pending, &probing), 0);
    assert_int_equal(pending_park(lanes_first(), p, &second.pending, &probing), 0);
    struct request *s = job_isend(c, &value, sizeof value, 1, PT_STANDARD);
    assert_false(request_is_complete(s));
    assert_int_equal(p->short_max, -1);
    for (int i = 0; i < 10; i++) lane_progress(lanes_first());
    assert_int_equal(first.attempts, 4);
    assert_true(second.attempts > 5);
    assert_false(request_is_complete(s));
    assert_false(pending_withdraw(lanes_first(), p, &first.pending));
    assert_true(pending_withdraw(lanes_first(), p, &second.pending));
    assert_false(pending_withdraw(lanes_first(), p, &second.pending));
    lane_progress(lanes_first());
    assert_true(request_is_complete(s));
    assert_false(p->waiting);
    assert_true(p->short_max > 0);
    job_end(s, 0);
    second.left = 1000000;
    assert_int_equal(pending_park(lanes_first(), p, &second.pending, &probing), 0);
    tp_lost(p, err_set(TERN_ERR_PEER, "it went"));
    job_settle();
    assert_int_equal(second.ended, 1);
    assert_int_equal(first.ended, 0);
    job_abandon();
}

/* A teardown function. */
static int clean(void **state)
{
    job_clean(state);
    tp_am_unregister(&text, 1);
    tp_am_unregister(&countdown, 1);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(messages_of_any_size_keep_their_order, clean),
        cmocka_unit_test_teardown(too_long_a_message_is_refused, clean),
        cmocka_unit_test_teardown(a_handler_sends_the_next_message, clean),
        cmocka_unit_test_teardown(a_lost_peer_ends_what_waits, clean),
        cmocka_unit_test_teardown(a_failing_wire_cuts_nothing_off, clean),
        cmocka_unit_test_teardown(any_operation_can_wait, clean),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
