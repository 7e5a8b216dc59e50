/* lane_test.c - contexts, control messages that wait, the lists of large transfers. */
#include "mock_job.h"
#include "base/err.h"
#include "pt2pt/say.h"

#include <string.h>

static void contexts_are_found_again(void **state)
{
    enum { N = 2000 };
    static struct pt_comm *at[N];
    struct comm *world = job_open(NULL);
    uint32_t count = contexts_count();
    (void)state;
    for (uint64_t i = 0; i < N; i++) {
        at[i] = context_add(lanes_first(), world, 1000 + 2 * i);
        assert_non_null(at[i]);
        assert_int_equal(at[i]->ctx, 1000 + 2 * i);
    }
    for (uint64_t i = N; i-- > 0;) {
        assert_ptr_equal(context_of(1000 + 2 * i), at[i]);
        assert_ptr_equal(context_of((1000 + 2 * i) | CTX_COLL), at[i]); /* both halves */
    }
    assert_int_equal(contexts_count(), count + N);
    for (int i = 0; i < N; i++) context_drop(at[i]);
    assert_int_equal(contexts_count(), count);
    assert_null(context_of(1000));
    job_close();
}

/* Answers that find no room are sent later, behind what waits already and in order. */
static void control_messages_wait_in_order(void **state)
{
    struct mock_script script = MOCK_SCRIPT;
    script.room = 0;
    job_open(&script);
    struct peer *p = job_peer();
    int64_t credit = p->credit;
    (void)state;
    p->credit -= 99 * 100 / 2; /* was taken before */
    for (uint64_t i = 0; i < 100; i++) lane_say(lanes_first(), p, AM_CREDIT, i, 0, NULL, 0);
    assert_true(p->waiting);
    job_settle();
    assert_int_equal(p->credit, credit - 99 * 100 / 2);
    mock_script.room = 7;
    mock_script.again_every = 3;
    job_settle();
    assert_false(p->waiting);
    assert_int_equal(mock_count.sent[AM_CREDIT], 100);
    assert_int_equal(p->credit, credit);
    job_close();
}

/* ---- messages of a layer above ---- */

enum { SMALL = 32 };
static uint64_t heard;

static void hear(struct peer *from, uint64_t h0, uint64_t h1, const void *data, size_t n)
{
    assert_ptr_equal(from, job_peer());
    assert_int_equal(h0, heard);
    assert_int_equal(h1, 5 * h0);
    assert_int_equal(n, h0 % (SMALL + 1));
    for (size_t i = 0; i < n; i++) assert_int_equal(((const char *)data)[i], (char)(h0 + i));
    heard++;
}

/* A layer above registers an id, and its messages come to it, in order, also those that found no room at once. */
static void a_layer_above_has_messages_of_its_own(void **state)
{
    static const struct tp_am own = {TP_AM_MAX - 1, "greeting", hear, NULL, false, 0};
    struct mock_script script = MOCK_SCRIPT;
    char data[SMALL];
    script.room = 20;
    (void)state;
    heard = 0;
    assert_int_equal(tp_am_register(&own, 1), 0);
    job_open(&script);
    for (uint64_t k = 0; k < 100; k++) {
        size_t n = k % (SMALL + 1);
        for (size_t i = 0; i < n; i++) data[i] = (char)(k + i);
        assert_int_equal(pt_message(0, own.id, k, 5 * k, data, n), 0);
    }
    assert_int_equal(heard, 0);
    assert_int_equal(mock_count.sent[own.id], 20);
    job_settle();
    assert_int_equal(heard, 100);
    assert_int_equal(mock_count.sent[own.id], 100);
    tp_lost(job_peer(), err_set(TERN_ERR_PEER, "it went"));
    assert_int_equal(pt_message(0, own.id, 100, 0, NULL, 0), TERN_ERR_PEER);
    assert_non_null(strstr(err_words(), "it went"));
    job_settle();
    assert_int_equal(heard, 100);
    job_abandon();
    tp_am_unregister(&own, 1);
}

/* ---- operations that other operations' ends start, move and end ---- */

static struct comm *world;
static struct request *chain[8];
static char out[30000], in[8][30000];
static int ended;

/* The end of a transfer posts the next receive, which turns down an offer that waits in the list being walked. */
static void receive_next(struct request *r)
{
    (void)r;
    int i = ++ended;
    if (i < 8) {
        struct type *t = NULL;
        assert_int_equal(type_vector(15000, 1, 1, TYPE_ELEMENTS, type_of(MPI_BYTE), &t), 0);
        assert_int_equal(type_commit(t), 0);
        assert_int_equal(pt_irecv(world, in[i], i % 2 ? 30000 : 2, i % 2 ? type_of(MPI_BYTE) : t, 0, i, &chain[i]), 0);
        type_unref(t);
        if (!request_is_complete(chain[i])) chain[i]->done = receive_next;
        else receive_next(chain[i]);
    }
}

static void ends_that_start_others(void **state)
{
    struct request *s[8];
    (void)state;
    ended = 0;
    world = job_open(NULL);
    fill(out, sizeof out, 3);
    for (int i = 0; i < 8; i++)
        s[i] = job_isend(world, out, sizeof out, i, PT_STANDARD);
    job_settle();
    chain[0] = job_irecv(world, in[0], sizeof out, 0);
    chain[0]->done = receive_next;
    pt_wait_many(8, s, true);
    job_settle();
    assert_int_equal(ended, 8);
    for (int i = 0; i < 8; i++) {
        assert_int_equal(pt_wait(chain[i]), 0);
        assert_true(filled(in[i], sizeof out, 3));
        pt_release(chain[i]);
        pt_release(s[i]);
    }
    job_close();
}

static void idle_means_idle(void **state)
{
    struct comm *c = job_open(NULL);
    struct request *s = NULL, *r = NULL;
    int value = 1;
    (void)state;
    assert_true(lane_idle());
    r = job_irecv(c, in[0], 30000, 1);
    assert_true(lane_idle()); /* a receive is not work */
    s = job_isend(c, out, 30000, 1, PT_STANDARD);
    assert_false(lane_idle()); /* a message to deliver */
    wires_progress(1);
    assert_false(lane_idle()); /* chunks to copy */
    job_settle();
    assert_true(request_is_complete(r) && request_is_complete(s));
    assert_true(lane_idle());
    pt_release(r);
    pt_release(s);
    mock_script.room = 0;
    s = job_isend(c, &value, 4, 1, PT_STANDARD);
    assert_false(lane_idle()); /* a message that waits for room */
    pt_cancel(s);
    pt_release(s);
    job_settle();
    job_close();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(contexts_are_found_again, job_clean),
        cmocka_unit_test_teardown(control_messages_wait_in_order, job_clean),
        cmocka_unit_test_teardown(a_layer_above_has_messages_of_its_own, job_clean),
        cmocka_unit_test_teardown(ends_that_start_others, job_clean),
        cmocka_unit_test_teardown(idle_means_idle, job_clean),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
