/*
 * emulate_test.c - operations on remote memory by messages: what a peer may not send ends the connection with it and
 * touches nothing, operations are bounded, and the wire's flush comes behind that of messages.
 *
 * The peer is this process itself, by the mock transport: what the test sends by hand comes back as the peer's.
 */
#include "party.h"
#include "base/err.h"
#include "transport/progress.h"
#include "transport/emulate/emulate.h"
#include "transport/mock/mock.h"
#include "transport/peer.h"
#include "transport/wires.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

enum { ROOM = 256, GUARD = 64 };
static _Alignas(8) unsigned char memory[GUARD + ROOM + GUARD];

static struct peer *peer;
static struct remote_mem *mem, *read_only, *old;
static uint64_t id, id_read, id_old;
static struct remote_key *key;
static int losses, ends, last_rc;
static char why[300];

static void lost(struct peer *p, int code)
{
    losses += p == peer && code == TERN_ERR_PEER;
    snprintf(why, sizeof why, "%s", err_words());
}

static void count_end(struct tp_op *op, int rc)
{
    (void)op;
    ends++;
    last_rc = rc;
}

static bool open_mock(void)
{
    unsigned char packed[REMOTE_KEY_MAX];
    mock_script.room = 100000;
    PARTY_CHECK(party_open("mock"));
    PARTY_CHECK((peer = peer_get(0)) != NULL);
    tp_lost = lost;
    memset(memory, 0x5a, sizeof memory);
    PARTY_CHECK(!remote_reg(memory, 8, REMOTE_READ, &old));
    id_old = old->id;
    remote_dereg(old);
    PARTY_CHECK(!remote_reg(memory + GUARD, ROOM, REMOTE_READ | REMOTE_WRITE | REMOTE_ATOMIC, &mem));
    PARTY_CHECK(!remote_reg(memory + GUARD, ROOM, REMOTE_READ, &read_only));
    id = mem->id;
    id_read = read_only->id;
    PARTY_CHECK(id != id_old && (uint32_t)id == (uint32_t)id_old); /* the slot is used again, the id is not */
    int n = remote_key_pack(mem, packed, sizeof packed);
    PARTY_CHECK(n > 0 && !remote_key_open(peer, packed, (size_t)n, &key));
    return true;
}

static void progress(void)
{
    for (int i = 0; i < 20; i++) wires_progress(64);
}

static bool untouched(void)
{
    for (size_t i = 0; i < sizeof memory; i++) PARTY_CHECK(memory[i] == 0x5a);
    return true;
}

/* ---- what a peer may not send ---- */

enum whose { ALL, READ, OLD, NEVER, NEXT, SLOT, ZERO };

static uint64_t id_of(enum whose w)
{
    const uint64_t ids[] = {id, id_read, id_old, (uint64_t)1 << 32 | 77, id + ((uint64_t)1 << 32), (uint32_t)id, 0};
    return ids[w];
}

static const struct bad {
    const char *what; /* of the words */
    unsigned message;
    enum whose whose;
    uint64_t h1;
    size_t n;
    uint64_t first; /* word of the payload */
} bad[] = {
#define HEAD(kind, op, width, offset)                                                                                  \
    ((uint64_t)(kind) << 60 | (uint64_t)(op) << 56 | (uint64_t)(width) << 54 | (offset))
    {"never registered", AM_REMOTE, NEVER, HEAD(EMULATE_PUT, 0, 0, 0), 8, 0},
    {"never registered", AM_REMOTE, NEXT, HEAD(EMULATE_PUT, 0, 0, 0), 8, 0},
    {"never registered", AM_REMOTE, SLOT, HEAD(EMULATE_PUT, 0, 0, 0), 8, 0},
    {"never registered", AM_REMOTE, ZERO, HEAD(EMULATE_GET, 0, 0, 0), 8, 8},
    {"outside", AM_REMOTE, ALL, HEAD(EMULATE_PUT, 0, 0, ROOM - 7), 8, 0},
    {"outside", AM_REMOTE, ALL, HEAD(EMULATE_PUT, 0, 0, ROOM), 1, 0},
    {"outside", AM_REMOTE, ALL, HEAD(EMULATE_PUT, 0, 0, ((uint64_t)1 << 48) - 1), 8, 0},
    {"outside", AM_REMOTE, ALL, HEAD(EMULATE_PUT, 0, 0, 0), ROOM + 1, 0},
    {"outside", AM_REMOTE, ALL, HEAD(EMULATE_GET, 0, 0, 1), 8, ROOM},
    {"outside", AM_REMOTE, ALL, HEAD(EMULATE_GET, 0, 0, 1), 8, UINT64_MAX},
    {"outside", AM_REMOTE, ALL, HEAD(EMULATE_AMO, 0, 3, ROOM), 16, 0},
    {"outside", AM_REMOTE, ALL, HEAD(EMULATE_AMO_SILENT, 0, 3, ROOM - 4), 16, 0},
    {"not allowed", AM_REMOTE, READ, HEAD(EMULATE_PUT, 0, 0, 0), 8, 0},
    {"not allowed", AM_REMOTE, READ, HEAD(EMULATE_AMO, 0, 3, 0), 16, 0},
    {"not aligned", AM_REMOTE, ALL, HEAD(EMULATE_AMO, 0, 3, 4), 16, 0},
    {"not aligned", AM_REMOTE, ALL, HEAD(EMULATE_AMO_SILENT, 0, 1, 1), 16, 0},
    {"atomic operation that there is not", AM_REMOTE, ALL, HEAD(EMULATE_AMO, REMOTE_OPS, 3, 0), 16, 0},
    {"atomic operation that there is not", AM_REMOTE, ALL, HEAD(EMULATE_AMO, 0, 3, 0), 8, 0},
    {"atomic operation that there is not", AM_REMOTE, ALL, HEAD(EMULATE_AMO_SILENT, 0, 3, 0), 24, 0},
    {"nothing to put", AM_REMOTE, ALL, HEAD(EMULATE_PUT, 0, 0, 0), 0, 0},
    {"nothing to get", AM_REMOTE, ALL, HEAD(EMULATE_GET, 0, 0, 0), 8, 0},
    {"nothing to get", AM_REMOTE, ALL, HEAD(EMULATE_GET, 0, 0, 0), 7, 8},
    {"flush with something", AM_REMOTE, ALL, HEAD(EMULATE_FLUSH, 0, 0, 0), 0, 0},
    {"flush with something", AM_REMOTE, ZERO, HEAD(EMULATE_FLUSH, 0, 0, 1), 0, 0},
    {"flush with something", AM_REMOTE, ZERO, HEAD(EMULATE_FLUSH, 0, 0, 0), 1, 0},
    {"bits", AM_REMOTE, ALL, HEAD(EMULATE_PUT, 0, 0, (uint64_t)1 << 48), 8, 0},
    {"bits", AM_REMOTE, ALL, HEAD(EMULATE_PUT, 0, 0, (uint64_t)1 << 53), 8, 0},
    {"no kind", AM_REMOTE, ALL, HEAD(EMULATE_PUT, 1, 0, 0), 8, 0},
    {"no kind", AM_REMOTE, ALL, HEAD(EMULATE_GET, 0, 1, 0), 8, 8},
    {"no kind", AM_REMOTE, ALL, HEAD(0, 0, 0, 0), 8, 0},
    {"no kind", AM_REMOTE, ALL, HEAD(EMULATE_REFUSED, 0, 0, 0), 0, 0},
    {"no kind", AM_REMOTE, ALL, HEAD(15, 0, 0, 0), 8, 0},
    {"nothing that was asked", AM_REMOTE_BACK, ZERO, HEAD(EMULATE_GET, 0, 0, 0), 8, 0},
    {"nothing that was asked", AM_REMOTE_BACK, ZERO, HEAD(EMULATE_AMO, 0, 0, 0), 0, 0},
    {"nothing that was asked", AM_REMOTE_BACK, ZERO, HEAD(EMULATE_FLUSH, 0, 0, 0), 0, 0},
    {"nothing that was asked", AM_REMOTE_BACK, ZERO, HEAD(EMULATE_REFUSED, 0, 0, 0), 0, 0},
};
static const struct bad *now;

static bool send_bad(void)
{
    uint64_t payload[(ROOM + 8) / 8] = {now->first};
    PARTY_CHECK(open_mock());
    PARTY_CHECK(!peer->ep.am_short(&peer->ep, now->message, id_of(now->whose), now->h1, payload, now->n));
    progress();
    PARTY_CHECK(losses == 1 && mock_count.severed == 1);
    PARTY_CHECK(strstr(why, now->what));
    PARTY_CHECK(untouched());
    struct tp_op op = {.done = count_end};
    PARTY_CHECK(remote_put(key, 0, payload, 8, &op) == TERN_ERR_PEER && remote_flush(peer, &op) == TERN_ERR_PEER);
    PARTY_CHECK(!ends);
    return true;
}

static void what_cannot_be_ends_the_connection(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        now = &bad[i];
        if (!party_run(1, send_bad)) fail_msg("message %zu: %s", i, now->what);
    }
}

/* An operation is under way, and another answer comes than the one it awaits. */
static const struct answer {
    enum { ASK_GET, ASK_AMO, ASK_FLUSH } ask;
    uint64_t h0, h1;
    size_t n;
} answers[] = {
    {ASK_GET, 0, HEAD(EMULATE_AMO, 0, 0, 0), 0},     {ASK_GET, 0, HEAD(EMULATE_FLUSH, 0, 0, 0), 0},
    {ASK_GET, 8, HEAD(EMULATE_GET, 0, 0, 0), 8},     {ASK_GET, 0, HEAD(EMULATE_GET, 0, 0, 0), 65},
    {ASK_GET, 0, HEAD(EMULATE_GET, 0, 0, 0), 0},     {ASK_GET, 0, HEAD(EMULATE_GET, 0, 0, 1), 8},
    {ASK_GET, 1, HEAD(EMULATE_REFUSED, 0, 0, 0), 0}, {ASK_AMO, 0, HEAD(EMULATE_GET, 0, 0, 0), 8},
    {ASK_AMO, 0, HEAD(EMULATE_AMO, 0, 0, 0), 8},     {ASK_AMO, 0, HEAD(EMULATE_AMO, 1, 0, 0), 0},
    {ASK_FLUSH, 2, HEAD(EMULATE_FLUSH, 0, 0, 0), 0}, {ASK_FLUSH, 0, HEAD(EMULATE_REFUSED, 0, 0, 0), 0},
    {ASK_FLUSH, 0, HEAD(EMULATE_FLUSH, 0, 0, 0), 1},
};
static const struct answer *wrong;

static bool answer_wrongly(void)
{
    static unsigned char buffer[GUARD + 64 + GUARD];
    struct tp_op op = {.done = count_end};
    struct remote_amo add = {REMOTE_ADD, 8, 1, 0};
    PARTY_CHECK(open_mock());
    memset(buffer, 0x5a, sizeof buffer);
    unsigned char more[65] = {0};
    PARTY_CHECK(remote_put(key, 0, memory, 8, &op) == TERN_DONE); /* for there to be something to flush */
    progress();
    /* first: so that the answer of the owner, which is right, comes behind it */
    PARTY_CHECK(!peer->ep.am_short(&peer->ep, AM_REMOTE_BACK, wrong->h0, wrong->h1, more, wrong->n));
    if (wrong->ask == ASK_GET) PARTY_CHECK(remote_get(key, 0, buffer + GUARD, 64, &op) == 0);
    if (wrong->ask == ASK_AMO) PARTY_CHECK(remote_amo(key, 0, &add, buffer + GUARD, &op) == 0);
    if (wrong->ask == ASK_FLUSH) PARTY_CHECK(remote_flush(peer, &op) == 0);
    progress();
    PARTY_CHECK(losses == 1 && strstr(why, "nothing that was asked for"));
    PARTY_CHECK(ends == 1 && last_rc == TERN_ERR_PEER);
    for (size_t i = 0; i < sizeof buffer; i++) PARTY_CHECK(buffer[i] == 0x5a);
    return true;
}

static void wrong_answers_end_the_connection(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(answers); i++) {
        wrong = &answers[i];
        if (!party_run(1, answer_wrongly)) fail_msg("answer %zu", i);
    }
}

/* ---- bounds ---- */

/* So many operations may be under way; the next is refused until one has ended. */
static bool fill(void)
{
    static uint64_t results[EMULATE_DEPTH + 1];
    static struct tp_op ops[EMULATE_DEPTH + 1];
    struct remote_amo add = {REMOTE_ADD, 8, 1, 0};
    PARTY_CHECK(open_mock());
    memset(memory, 0, sizeof memory);
    for (int i = 0; i <= EMULATE_DEPTH; i++) {
        ops[i].done = count_end;
        PARTY_CHECK(remote_amo(key, 8, &add, &results[i], &ops[i]) == (i < EMULATE_DEPTH ? 0 : TERN_AGAIN));
    }
    progress();
    PARTY_CHECK(ends == EMULATE_DEPTH && !last_rc && !losses);
    PARTY_CHECK(remote_amo(key, 8, &add, &results[EMULATE_DEPTH], &ops[EMULATE_DEPTH]) == 0);
    progress();
    for (uint64_t i = 0; i <= EMULATE_DEPTH; i++) PARTY_CHECK(results[i] == i);
    return true;
}

/* A peer that asks for more than that at once, without taking answers, is given up. */
static bool ask_too_much(void)
{
    uint64_t bytes = 8;
    PARTY_CHECK(open_mock());
    for (int i = 0; i <= EMULATE_DEPTH; i++)
        PARTY_CHECK(!peer->ep.am_short(&peer->ep, AM_REMOTE, id, HEAD(EMULATE_GET, 0, 0, 0), &bytes, sizeof bytes));
    mock_script.room = 0; /* no answer goes out */
    for (int i = 0; i < EMULATE_DEPTH; i++) wires_progress(1);
    PARTY_CHECK(!losses && !wires_idle(false) && !wires_drained());
    wires_progress(1);
    PARTY_CHECK(losses == 1 && strstr(why, "more than may be asked for"));
    return true;
}

static void operations_are_bounded(void **state)
{
    (void)state;
    assert_true(party_run(1, fill));
    assert_true(party_run(1, ask_too_much));
}

/* ---- memory that goes in the middle, and words ---- */

static bool goes_in_the_middle(void)
{
    static unsigned char big[100000], here[100000];
    struct remote_mem *m;
    struct remote_key *k;
    unsigned char packed[REMOTE_KEY_MAX];
    struct tp_op op = {.done = count_end};
    PARTY_CHECK(open_mock());
    mock_script.room = 4; /* the answer goes out in many turns */
    PARTY_CHECK(!remote_reg(big, sizeof big, REMOTE_READ, &m));
    PARTY_CHECK(!remote_key_open(peer, packed, (size_t)remote_key_pack(m, packed, sizeof packed), &k));
    PARTY_CHECK(!remote_get(k, 0, here, sizeof here, &op));
    for (int i = 0; i < 3; i++) wires_progress(1);
    PARTY_CHECK(!ends);
    remote_dereg(m);
    progress();
    PARTY_CHECK(ends == 1 && last_rc == TERN_ERR_NOT_FOUND && strstr(err_words(), "rank 0") && !losses);
    remote_key_close(k);
    return true;
}

static void gets_end_when_the_memory_goes(void **state)
{
    (void)state;
    assert_true(party_run(1, goes_in_the_middle));
}

/* ---- data from where it lies to where it goes ---- */

static unsigned char far[100000], near[100000];
static struct remote_mem *far_mem;
static struct remote_key *far_key;

/* By a wire that reads to where data belongs, and says late that it has been sent. */
static bool open_stream(void)
{
    unsigned char packed[REMOTE_KEY_MAX];
    mock_script.caps |= TP_CAP_ZCOPY;
    mock_script.sink_min = 1000;
    mock_script.done_late = true;
    PARTY_CHECK(open_mock());
    memset(far, 1, sizeof far);
    memset(near, 2, sizeof near);
    PARTY_CHECK(!remote_reg(far, sizeof far, REMOTE_READ | REMOTE_WRITE, &far_mem));
    PARTY_CHECK(!remote_key_open(peer, packed, (size_t)remote_key_pack(far_mem, packed, sizeof packed), &far_key));
    return true;
}

/* One message each, and no copy: half of the data is in its place before the message has come. */
static bool in_place(void)
{
    struct tp_op op = {.done = count_end};
    PARTY_CHECK(open_stream());
    for (int i = 0; i < 2; i++) {
        unsigned message = i ? AM_REMOTE_BACK : AM_REMOTE;
        uint64_t sent = mock_count.sent[message];
        ends = 0;
        memset(i ? near : far, 3, sizeof near);
        PARTY_CHECK(!(i ? remote_get(far_key, 0, near, sizeof near, &op) : remote_put(far_key, 0, near, sizeof near, &op)));
        if (i) wires_progress(1); /* the request; the answer is sent */
        wires_progress(1);
        PARTY_CHECK(mock_count.sent[message] == sent + 1 && mock_count.sunk == (uint64_t)i + 1);
        PARTY_CHECK((i ? near : far)[0] == 2 && (i ? near : far)[sizeof near - 1] == 3 && !ends);
        progress();
        PARTY_CHECK(ends == 1 && !last_rc && !losses);
        PARTY_CHECK(!memcmp(near, far, sizeof near) && near[0] == 2);
    }
    remote_key_close(far_key);
    remote_dereg(far_mem);
    return true;
}

static void data_goes_from_where_it_lies_to_where_it_belongs(void **state)
{
    (void)state;
    assert_true(party_run(1, in_place));
}

/* What comes in has no place any more, and cannot be stopped otherwise. */
static bool goes_under_a_put(void)
{
    struct tp_op op = {.done = count_end};
    PARTY_CHECK(open_stream());
    PARTY_CHECK(!remote_put(far_key, 0, near, sizeof near, &op));
    wires_progress(1);
    PARTY_CHECK(mock_count.sunk == 1 && far[0] == 2 && !losses);
    remote_dereg(far_mem);
    memset(far, 4, sizeof far);
    PARTY_CHECK(losses == 1 && mock_count.severed == 1 && strstr(why, "deregistered while rank 0"));
    progress();
    PARTY_CHECK(losses == 1 && ends == 1 && last_rc == TERN_ERR_PEER);
    for (size_t i = 0; i < sizeof far; i++) PARTY_CHECK(far[i] == 4);
    return true;
}

static void memory_that_goes_under_a_put_is_not_written(void **state)
{
    (void)state;
    assert_true(party_run(1, goes_under_a_put));
}

/* Nobody has the memory of such a put: its data is read all the same, so that the connection lives on. */
static bool put_too_late(void)
{
    struct tp_op op = {.done = count_end};
    PARTY_CHECK(open_stream());
    far_key->live = NULL; /* as where only the owner knows */
    remote_dereg(far_mem);
    PARTY_CHECK(!remote_put(far_key, 0, near, sizeof near, &op));
    progress();
    PARTY_CHECK(ends == 1 && !last_rc && mock_count.sunk == 1);
    PARTY_CHECK(!remote_flush(peer, &op));
    progress();
    PARTY_CHECK(ends == 2 && last_rc == TERN_ERR_NOT_FOUND && !losses);
    for (size_t i = 0; i < sizeof far; i++) PARTY_CHECK(far[i] == 1);
    return true;
}

static void puts_to_memory_that_has_gone_are_read_and_refused(void **state)
{
    (void)state;
    assert_true(party_run(1, put_too_late));
}

static int ends_when_lost;
static void lost_and_told(struct peer *p, int code)
{
    lost(p, code);
    progress_peer_end(&progress_process, p);
    ends_when_lost = ends;
}

/* The memory of a put is not given back while the wire still has it. */
static bool lost_under_way(void)
{
    struct tp_op op = {.done = count_end};
    PARTY_CHECK(open_stream());
    tp_lost = lost_and_told;
    mock_script.done_after_lost = true;
    mock_script.lose = 1;
    PARTY_CHECK(!remote_put(far_key, 0, near, sizeof near, &op));
    progress();
    PARTY_CHECK(losses == 1 && !ends_when_lost && ends == 1 && last_rc == TERN_ERR_PEER);
    return true;
}

static void a_lost_put_ends_when_the_wire_has_given_its_memory_back(void **state)
{
    (void)state;
    assert_true(party_run(1, lost_under_way));
}

/* ---- flush of both ways ---- */

static struct tp_op *flushed_by_wire;
static bool flush_later;
static int wire_flush(struct tp_ep *ep, struct tp_op *op)
{
    (void)ep;
    flushed_by_wire = op;
    return flush_later ? 0 : TERN_DONE;
}

/* The wire's own puts and amos are flushed behind the messages, and only if both have been is the flush complete. */
static bool flush_both(void)
{
    static const struct tp_remote remote = {.flush = wire_flush};
    struct tp_ops ops = tp_mock;
    struct tp_op op = {.done = count_end};
    PARTY_CHECK(open_mock());
    ops.remote = &remote;
    peer->ep.ops = &ops;
    PARTY_CHECK(remote_flush(peer, &op) == TERN_DONE && flushed_by_wire == &op); /* no messages to flush */
    for (int i = 0; i < 2; i++) {
        flush_later = i;
        flushed_by_wire = NULL;
        ends = 0;
        PARTY_CHECK(remote_put(key, 0, memory, 8, &op) == TERN_DONE);
        PARTY_CHECK(remote_flush(peer, &op) == 0 && !flushed_by_wire);
        progress();
        PARTY_CHECK(flushed_by_wire == &op && ends == !i);
    }
    op.done(&op, 0);
    PARTY_CHECK(ends == 1);
    peer->ep.ops = &tp_mock;
    return true;
}

static void a_flush_is_of_messages_and_of_the_wire(void **state)
{
    (void)state;
    assert_true(party_run(1, flush_both));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_cannot_be_ends_the_connection),
        cmocka_unit_test(wrong_answers_end_the_connection),
        cmocka_unit_test(operations_are_bounded),
        cmocka_unit_test(gets_end_when_the_memory_goes),
        cmocka_unit_test(data_goes_from_where_it_lies_to_where_it_belongs),
        cmocka_unit_test(memory_that_goes_under_a_put_is_not_written),
        cmocka_unit_test(puts_to_memory_that_has_gone_are_read_and_refused),
        cmocka_unit_test(a_lost_put_ends_when_the_wire_has_given_its_memory_back),
        cmocka_unit_test(a_flush_is_of_messages_and_of_the_wire),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
