/*
 * lost_test.c - the loss of a peer at every point of every protocol: whatever is under way ends, with its data or with
 * TERN_ERR_PEER and the words of the loss; nothing hangs, nothing stays behind, and later operations fail at once.
 */
#include "base/err.h"
#include "mock_job.h"
#include "pt2pt/lost.h"
#include "transport/remote.h"
#include "transport/wire_lock.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MESSAGES = 14, LONGEST = 400000 };

static struct message {
    int64_t bytes;
    enum pt_mode mode;
    bool gaps_out, gaps_in, posted, any, cancel;
} message[MESSAGES] = {
    {.bytes = 8, .posted = true},
    {.bytes = 8, .mode = PT_SYNC},
    {.bytes = 3000, .posted = true, .any = true},
    {.bytes = 3000, .mode = PT_SYNC, .posted = true},
    {.bytes = LONGEST, .posted = true},
    {.bytes = LONGEST},
    {.bytes = LONGEST, .gaps_out = true, .posted = true},
    {.bytes = LONGEST, .gaps_in = true, .any = true},
    {.bytes = 100000, .mode = PT_SYNC, .posted = true, .any = true},
    {.bytes = 20000, .cancel = true},
    {.bytes = 20, .mode = PT_SYNC, .cancel = true},
    {.bytes = 20000, .gaps_in = true, .gaps_out = true, .posted = true},
    {.bytes = 0, .mode = PT_SYNC},
    {.bytes = 5000, .posted = true, .any = true},
};

static struct request *out_req[MESSAGES], *in_req[MESSAGES];
static char *out[MESSAGES], *in[MESSAGES];
static struct type *gaps;

static void post(struct comm *c, int i)
{
    const struct message *m = &message[i];
    assert_int_equal(pt_irecv(c, in[i], m->gaps_in ? m->bytes / 2 : m->bytes, m->gaps_in ? gaps : type_of(MPI_BYTE),
                              m->any ? MPI_ANY_SOURCE : 0, i, &in_req[i]),
                     0);
}

static void start(struct comm *c, int i)
{
    const struct message *m = &message[i];
    fill(out[i], 2 * (size_t)m->bytes, (uint64_t)i);
    memset(in[i], 0, 2 * (size_t)m->bytes);
    if (m->posted) post(c, i);
    assert_int_equal(pt_isend(c, out[i], m->gaps_out ? m->bytes / 2 : m->bytes, m->gaps_out ? gaps : type_of(MPI_BYTE),
                              0, i, m->mode, &out_req[i]),
                     0);
    if (m->cancel) pt_cancel(out_req[i]);
}

static void check_data(int i)
{
    const struct message *m = &message[i];
    if (!m->gaps_in && !m->gaps_out && memcmp(in[i], out[i], (size_t)m->bytes)) fail_msg("message %d", i);
    for (size_t k = 0; k < (size_t)m->bytes && (m->gaps_in || m->gaps_out); k++)
        if (in[i][gaps_place(k, m->gaps_in)] != out[i][gaps_place(k, m->gaps_out)]) fail_msg("message %d, byte %zu", i, k);
}

static void check_end(struct request *r)
{
    assert_true(request_is_complete(r));
    err_clear();
    int rc = pt_wait(r);
    if (!rc) return;
    assert_int_equal(rc, TERN_ERR_PEER);
    assert_string_equal(err_words(), "mock: the peer is gone");
}

/* After a loss: no operation is left, and none can be started. */
static void check_lost(struct comm *c)
{
    struct request_result res;
    char byte = 0;
    bool found = false;
    struct request *r = NULL;
    assert_true(list_empty(&lanes_first()->pending) && list_empty(&lanes_first()->rndv.incoming.requests) && list_empty(&lanes_first()->rndv.outgoing.requests));
    assert_true(list_empty(&lanes_first()->rndv.streams.requests) && list_empty(&losses.list));
    assert_true(list_empty(&lanes_first()->rndv.bulks.requests) && !lanes_first()->rndv.bulks_under_way);
    assert_true(list_empty(&lanes_first()->steps.active));
    assert_int_equal(lanes_first()->ids.used, 0);
    assert_int_equal(match_posted_count(&c->pt->match[PT_USER]), 0);
    assert_int_equal(pt_send(c, &byte, 1, type_of(MPI_BYTE), 0, 99, PT_STANDARD), TERN_ERR_PEER);
    assert_string_equal(err_words(), "mock: the peer is gone");
    assert_int_equal(pt_recv(c, &byte, 1, type_of(MPI_BYTE), 0, 99, &res), TERN_ERR_PEER);
    assert_int_equal(pt_probe(c, 0, 99, true, &found, &res), TERN_ERR_PEER);
    assert_false(found);
    assert_int_equal(pt_isend(c, &byte, 1, type_of(MPI_BYTE), 0, 99, PT_SYNC, &r), TERN_ERR_PEER);
    assert_null(r);
    err_clear(); /* the words of an operation of all members, in a thread that has none */
    pt_recall_member(c);
    assert_int_equal(err_code(), TERN_ERR_PEER);
    assert_string_equal(err_words(), "mock: the peer is gone");
}

static struct request *ended[2 * MESSAGES];

static bool runs_through(const struct mock_script *script, uint32_t when)
{
    struct comm *c = job_open(script);
    gaps = gaps_type();
    mock_script.lose = when;
    for (int i = 0; i < MESSAGES; i++) start(c, i);
    for (int i = 0; i < 3 * MESSAGES; i++) lane_progress(lanes_first());
    for (int i = 0; i < MESSAGES; i++)
        if (!message[i].posted) post(c, i);
    job_settle();
    for (int i = 0; i < MESSAGES; i++) { /* whose message was cancelled, or that may wait for others */
        bool may_wait = message[i].cancel || (losses.count && message[i].any && !message[i].posted);
        if (may_wait && !request_is_complete(in_req[i])) pt_cancel(in_req[i]);
    }
    for (int i = 0; i < MESSAGES; i++) {
        ended[2 * i] = in_req[i];
        ended[2 * i + 1] = out_req[i];
    }
    pt_wait_many(2 * MESSAGES, ended, true);
    bool lost = losses.count;
    for (int i = 0; i < MESSAGES; i++) {
        check_end(out_req[i]);
        check_end(in_req[i]);
        if (!in_req[i]->result.error && !in_req[i]->result.cancelled) check_data(i);
        pt_release(out_req[i]);
        pt_release(in_req[i]);
    }
    if (lost) check_lost(c);
    type_unref(gaps);
    if (lost)
        job_abandon();
    else
        job_close();
    return !lost;
}

static void open_buffers(void)
{
    for (int i = 0; i < MESSAGES; i++) {
        out[i] = malloc(2 * (size_t)message[i].bytes + 1);
        in[i] = malloc(2 * (size_t)message[i].bytes + 1);
        assert_true(out[i] && in[i]);
    }
}

static void close_buffers(void)
{
    for (int i = 0; i < MESSAGES; i++) {
        free(out[i]);
        free(in[i]);
    }
}

static void at_every_point(void **state)
{
    static const uint32_t caps[] = {TP_CAP_BCOPY | TP_CAP_ZCOPY, TP_CAP_BCOPY | TP_CAP_GETPUT | TP_CAP_MAP, TP_CAP_BCOPY | TP_CAP_BULK, 0};
    (void)state;
    open_buffers();
    for (unsigned kind = 0; kind < 4 * ARRAY_LEN(caps); kind++) {
        struct mock_script script = MOCK_SCRIPT;
        script.caps = caps[kind / 4];
        script.max_short = 64 << 10; /* few fragments: few points */
        script.room = 5;
        script.deliver = 1 + kind % 3;
        script.done_late = kind & 1;
        script.done_after_lost = kind & 2;
        script.sink_min = kind & 1 ? 1000 : 0;
        script.bulk_at_once = kind & 2;
        uint32_t when = 1;
        while (!runs_through(&script, when)) when++;
        printf("# kind %u: %u points\n", kind, when - 1);
        assert_true(when > 20);
    }
    close_buffers();
}

/* With refusals everywhere the same messages arrive. */
static void refusals_everywhere(void **state)
{
    uint64_t seed = random_open();
    (void)state;
    open_buffers();
    for (int i = 0; i < 60; i++) {
        struct mock_script script = MOCK_SCRIPT;
        script.caps = TP_CAP_BCOPY | TP_CAP_ZCOPY | (i % 2 ? TP_CAP_BULK : 0);
        script.room = 1 + (uint32_t)(random_next(&seed) % 8);
        script.done_late = random_next(&seed) % 2;
        script.again_percent = (uint32_t)(random_next(&seed) % 90);
        script.sink_min = random_next(&seed) % 2 ? 100 : 0;
        script.seed = random_next(&seed);
        assert_true(runs_through(&script, 0));
    }
    close_buffers();
}

/* What had come whole can be received after the loss; an offer cannot. */
static void complete_messages_stay(void **state)
{
    struct mock_script script = MOCK_SCRIPT;
    struct request_result res;
    static char big[30000];
    char text[8];
    script.caps = 0;
    struct comm *c = job_open(&script);
    struct request *s = NULL, *q = NULL;
    (void)state;
    assert_int_equal(pt_send(c, "whole", 6, type_of(MPI_BYTE), 0, 1, PT_STANDARD), 0);
    assert_int_equal(pt_isend(c, "sync", 5, type_of(MPI_BYTE), 0, 2, PT_SYNC, &q), 0);
    assert_int_equal(pt_isend(c, big, sizeof big, type_of(MPI_BYTE), 0, 3, PT_STANDARD, &s), 0);
    job_settle();
    err_set(TERN_ERR_PEER, "mock: the peer is gone");
    tp_lost(job_peer(), TERN_ERR_PEER);
    job_settle();
    assert_int_equal(pt_wait(s), TERN_ERR_PEER);
    assert_int_equal(pt_wait(q), TERN_ERR_PEER);
    assert_int_equal(pt_recv(c, text, 8, type_of(MPI_BYTE), 0, 1, &res), 0);
    assert_string_equal(text, "whole");
    assert_int_equal(pt_recv(c, text, 8, type_of(MPI_BYTE), 0, 2, &res), 0);
    assert_string_equal(text, "sync");
    assert_int_equal(pt_recv(c, big, sizeof big, type_of(MPI_BYTE), 0, 3, &res), TERN_ERR_PEER);
    pt_release(s);
    pt_release(q);
    assert_int_equal(lanes_first()->pool.bodies, 0);
    job_abandon();
}

/* A receive from any source may wait for the lost one: it fails on each communicator that has that one, unless its message is
 * there. */
/* An operation may fail between the loss and the turn that ends what hangs on it. */
static void words_are_known_at_once(void **state)
{
    struct comm *c = job_open(NULL);
    (void)state;
    err_set(TERN_ERR_PEER, "mock: the peer is gone");
    tp_lost(job_peer(), TERN_ERR_PEER);
    err_clear();
    pt_recall_member(c);
    assert_int_equal(err_code(), TERN_ERR_PEER);
    assert_string_equal(err_words(), "mock: the peer is gone");
    lane_progress(lanes_first());
    check_lost(c);
    job_close();
}

static void any_source_fails(void **state)
{
    struct comm *c = job_open(NULL), *d = NULL;
    struct request *posted = NULL, *later = NULL;
    struct request_result res;
    char byte = 0;
    bool found;
    (void)state;
    assert_int_equal(comm_new(comm_fresh_ctx(), rankmap_ref(c->map), NULL, c, &d), 0);
    job_peer();
    assert_int_equal(pt_irecv(c, &byte, 1, type_of(MPI_BYTE), MPI_ANY_SOURCE, 2, &posted), 0);
    assert_int_equal(pt_send(c, &byte, 1, type_of(MPI_BYTE), 0, 1, PT_STANDARD), 0);
    job_settle();
    err_set(TERN_ERR_PEER, "mock: the peer is gone");
    tp_lost(job_peer(), TERN_ERR_PEER);
    assert_int_equal(pt_wait(posted), TERN_ERR_PEER);
    pt_release(posted);
    assert_int_equal(pt_recv(c, &byte, 1, type_of(MPI_BYTE), MPI_ANY_SOURCE, 1, &res), 0); /* it had come whole */
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pt_irecv(c, &byte, 1, type_of(MPI_BYTE), MPI_ANY_SOURCE, MPI_ANY_TAG, &later), 0);
        assert_int_equal(pt_wait(later), TERN_ERR_PEER);
        pt_release(later);
        assert_int_equal(pt_probe(d, MPI_ANY_SOURCE, 1, i == 0, &found, &res), TERN_ERR_PEER);
    }
    comm_unref(d);
    assert_int_equal(comm_new(comm_fresh_ctx(), rankmap_ref(c->map), NULL, c, &d), 0); /* and on one made since */
    assert_int_equal(pt_recv(d, &byte, 1, type_of(MPI_BYTE), MPI_ANY_SOURCE, 1, &res), TERN_ERR_PEER);
    comm_unref(d);
    job_abandon();
}

/* Collectives: receives fail, and who sends to one that has failed is let go. */
static void collectives_fail_rather_than_hang(void **state)
{
    struct mock_script script = MOCK_SCRIPT;
    static char big[30000];
    struct request r = {0}, s = {0}, late = {0};
    (void)state;
    script.sever_counts = true; /* the peer is also the other member, who lives */
    struct comm *c = job_open(&script);
    struct peer *p = job_peer();
    pt_prepare(&s, REQ_SEND, c, PT_COLL, big, sizeof big, type_of(MPI_BYTE), 0, 7, PT_STANDARD);
    pt_prepare(&r, REQ_RECV, c, PT_COLL, big, 1, type_of(MPI_BYTE), 0, 8, PT_STANDARD);
    pt_recv_start(&r);
    pt_send_start(&s);
    job_settle();
    err_set(TERN_ERR_PEER, "mock: the peer is gone");
    tp_lost(p, TERN_ERR_PEER);
    job_settle();
    assert_int_equal(pt_wait(&r), TERN_ERR_PEER);
    assert_int_equal(pt_wait(&s), TERN_ERR_PEER);
    assert_int_equal(lanes_first()->pool.bodies, 0); /* the offer was swallowed */
    pt_prepare(&late, REQ_RECV, c, PT_COLL, big, 1, type_of(MPI_BYTE), 0, 9, PT_STANDARD);
    pt_recv_start(&late);
    assert_int_equal(pt_wait(&late), TERN_ERR_PEER);
    pt_lost_close(); /* as if another member had been lost, and this one lives */
    pt_prepare(&s, REQ_SEND, c, PT_COLL, big, sizeof big, type_of(MPI_BYTE), 0, 10, PT_STANDARD);
    pt_send_start(&s);
    assert_int_equal(pt_wait(&s), 0); /* nobody will receive it: it is let go all the same */
    job_settle();
    assert_int_equal(lanes_first()->pool.bodies, 0);
    for (int first = 0; first < 2; first++) { /* a message between two that live goes on, whichever side comes first */
        char three[] = "for", here[4] = "";
        pt_prepare(&s, REQ_SEND, c, PT_COLL, three, 4, type_of(MPI_BYTE), 0, PT_FOR_TWO | first, PT_STANDARD);
        pt_prepare(&r, REQ_RECV, c, PT_COLL, here, 4, type_of(MPI_BYTE), 0, PT_FOR_TWO | first, PT_STANDARD);
        if (first) pt_recv_start(&r);
        pt_send_start(&s);
        job_settle();
        if (!first) pt_recv_start(&r);
        assert_int_equal(pt_wait(&s), 0);
        assert_int_equal(pt_wait(&r), 0);
        assert_string_equal(here, "for");
    }
    assert_int_equal(lanes_first()->ids.used, 0);
    job_abandon();
}

/* However a peer is lost, nothing that is coming in from it may still be written to memory that is the user's again. */
static void who_is_lost_is_cut_off(void **state)
{
    struct mock_script script = MOCK_SCRIPT;
    (void)state;
    script.sever_counts = true;
    job_open(&script);
    err_set(TERN_ERR_NOMEM, "no memory to answer");
    pt_lose(job_peer());
    assert_int_equal(mock_count.severed, 1);
    pt_lose(job_peer());
    assert_int_equal(mock_count.severed, 1);
    job_abandon();
}

static _Atomic int sign;

/* Is in the wire of the peer from sign 1 to sign 2. */
static void *use_the_wire(void *arg)
{
    (void)arg;
    if (wire_take(0, WIRE_CALL)) return NULL;
    atomic_store(&sign, 1);
    while (atomic_load(&sign) != 2) sched_yield();
    wire_give(0, WIRE_CALL);
    return NULL;
}

/* A handler of one wire loses a peer of another, which a thread is in: the next turn cuts it off, before it ends a receive. */
static void a_loss_in_a_busy_wire_is_told_later(void **state)
{
    struct comm *c = job_open_threaded();
    char byte = 0;
    pthread_t t;
    (void)state;
    struct peer *p = job_peer();
    struct request *r = job_irecv(c, &byte, 1, 3);
    assert_ptr_equal(p->ep.dom, wires_at(0)->dom);
    atomic_store(&sign, 0);
    assert_int_equal(pthread_create(&t, NULL, use_the_wire, NULL), 0);
    while (atomic_load(&sign) != 1) sched_yield();
    lane_enter(c->lane);
    assert_int_equal(wire_take(1, WIRE_POLL), 0);
    err_set(TERN_ERR_PEER, "mock: the peer is gone");
    pt_lose(p);
    wire_give(1, WIRE_POLL);
    assert_true(mock_count.severed == 0 && p->flags & PEER_UNCUT && !request_is_complete(r));
    atomic_store(&sign, 2);
    assert_int_equal(pthread_join(t, NULL), 0);
    lane_progress(c->lane);
    assert_true(mock_count.severed == 1 && !(p->flags & PEER_UNCUT) && request_is_complete(r));
    lane_leave(c->lane);
    job_end(r, TERN_ERR_PEER);
    job_abandon();
}

static int two_domains(void **state)
{
    (void)state;
    return setenv("TERN_MOCK_DOMAINS", "2", 1);
}

static int one_domain(void **state)
{
    unsetenv("TERN_MOCK_DOMAINS");
    return job_clean(state);
}

static int memory_ends, memory_code;

static void note_end(struct tp_op *op, int rc)
{
    (void)op;
    memory_ends++;
    memory_code = rc;
}

/* Operations on the memory of a lost peer end in the words of the loss, and later ones do not start. */
static void operations_on_memory_end(void **state)
{
    static char there[100000], here[100000];
    struct mock_script script = MOCK_SCRIPT;
    struct remote_mem *m;
    struct remote_key *k;
    char packed[REMOTE_KEY_MAX];
    struct tp_op op = {.done = note_end};
    (void)state;
    script.room = 4;
    job_open(&script);
    assert_int_equal(remote_reg(there, sizeof there, REMOTE_READ | REMOTE_WRITE, &m), 0);
    int n = remote_key_pack(m, packed, sizeof packed);
    assert_true(n > 0);
    assert_int_equal(remote_key_open(job_peer(), packed, (size_t)n, &k), 0);
    assert_int_equal(remote_get(k, 0, here, sizeof here, &op), 0);
    mock_script.lose = 3;
    job_settle();
    assert_int_equal(memory_ends, 1);
    assert_int_equal(memory_code, TERN_ERR_PEER);
    assert_non_null(strstr(err_words(), "mock: the peer is gone"));
    err_clear();
    assert_int_equal(remote_put(k, 0, here, 8, &op), TERN_ERR_PEER);
    assert_non_null(strstr(err_words(), "mock: the peer is gone"));
    assert_int_equal(remote_flush(job_peer(), &op), TERN_ERR_PEER);
    assert_int_equal(memory_ends, 1);
    remote_key_close(k);
    job_abandon();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(at_every_point, job_clean),
        cmocka_unit_test_teardown(refusals_everywhere, job_clean),
        cmocka_unit_test_teardown(complete_messages_stay, job_clean),
        cmocka_unit_test_teardown(any_source_fails, job_clean),
        cmocka_unit_test_teardown(words_are_known_at_once, job_clean),
        cmocka_unit_test_teardown(collectives_fail_rather_than_hang, job_clean),
        cmocka_unit_test_teardown(who_is_lost_is_cut_off, job_clean),
        cmocka_unit_test_setup_teardown(a_loss_in_a_busy_wire_is_told_later, two_domains, one_domain),
        cmocka_unit_test_teardown(operations_on_memory_end, job_clean),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
