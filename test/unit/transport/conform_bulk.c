/*
 * conform_bulk.c - bulk transfers (tp_ops.bulk_send): every size, either side first, many at once, among messages, other
 * lengths, and the end of the peer. Wires that have none pass without them.
 */
#include "conform.h"
#include "base/clock.h"
#include "base/err.h"
#include "transport/mock/mock.h"
#include "transport/wires.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MANY = 200, LONG = 5000001 };

static uint64_t came, wrong;

static unsigned char pattern(uint64_t n, size_t i) { return (unsigned char)((n * 193 + i) * 0x9e3779b1u >> 12); }

static void take(struct peer *from, uint64_t h0, uint64_t h1, const void *data, size_t n)
{
    (void)data;
    wrong += from != conform_other() || h0 != came || h1 != n;
    came++;
}

/* *has: whether the wire has bulk transfers; the case is over without. */
static bool open_wire(bool *has)
{
    came = wrong = 0;
    PARTY_CHECK(party_takes(take, NULL));
    PARTY_CHECK(party_open(conform_wire->name));
    PARTY_CHECK(conform_other() != NULL);
    *has = conform_other()->ep.caps & TP_CAP_BULK;
    return true;
}

/* ---- one side of a transfer ---- */

struct side {
    struct tp_op op;
    uint64_t tag;
    unsigned char *at;
    size_t n;
    int rc, ends; /* how, and how often it was told */
    char words[100];
};

static void done(struct tp_op *op, int rc)
{
    struct side *s = container_of(op, struct side, op);
    s->rc = rc;
    s->ends++;
    snprintf(s->words, sizeof s->words, "%s", rc ? err_words() : "");
}

static struct side *new_side(uint64_t tag, size_t n)
{
    struct side *s = calloc(1, sizeof *s);
    unsigned char *at = malloc(n + 16);
    if (!s || !at) abort();
    memset(at, 0xee, n + 16);
    *s = (struct side){.op.done = done, .tag = tag, .at = at, .n = n};
    return s;
}

/* What this process sends by a tag; both know it. */
static struct side *new_send(uint64_t tag, size_t n)
{
    struct side *s = new_side(tag, n);
    for (size_t i = 0; i < n; i++) s->at[i] = pattern(tag, i);
    return s;
}

static void free_side(struct side *s)
{
    free(s->at);
    free(s);
}

/* One attempt: true if it has begun, or ended. */
static bool try_side(struct side *s, bool sends)
{
    struct tp_ep *ep = &conform_other()->ep;
    int rc = sends ? ep->ops->bulk_send(ep, s->tag, s->at, s->n, &s->op) : ep->ops->bulk_recv(ep, s->tag, s->at, s->n, &s->op);
    if (rc == TERN_AGAIN) return false;
    if (rc == TERN_DONE) s->ends++;
    if (rc < 0) wrong++;
    return true;
}

static void begin(struct side *s, bool sends)
{
    while (!try_side(s, sends)) wires_progress(64);
}

/* Looks until it has ended; 30 s at most. */
static bool await(struct side *s)
{
    uint64_t end = clock_ns() + 30000000000u;
    while (!s->ends && clock_ns() < end) party_look();
    PARTY_CHECK(s->ends == 1);
    return true;
}

/* It has come whole, and nothing behind it. */
static bool check_received(const struct side *s)
{
    PARTY_CHECK(s->ends == 1 && s->rc == 0);
    for (size_t i = 0; i < s->n; i++) PARTY_CHECK(s->at[i] == pattern(s->tag, i));
    for (size_t i = s->n; i < s->n + 16; i++) PARTY_CHECK(s->at[i] == 0xee);
    return true;
}

/* ---- cases ---- */

bool bulk_flag_and_members(void)
{
    bool has;
    PARTY_CHECK(open_wire(&has));
    const struct tp_ops *o = conform_other()->ep.ops;
    PARTY_CHECK(has == (o->bulk_send != NULL) && has == (o->bulk_recv != NULL));
    PARTY_CHECK(has == (o->cost.bulk_min > 0));
    return true;
}

/* Sizes around those of packets, in both directions at once; the receiver is first, or the sender. */
bool bulk_sizes(void)
{
    static const size_t sizes[] = {0, 1, 3, 63, 64, 65, 4095, 8191, 8192, 8193, 16384, 70001, 262144, 1000003, LONG};
    bool has;
    PARTY_CHECK(open_wire(&has));
    for (int order = 0; order < 2 && has; order++)
        for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
            uint64_t tag = (uint64_t)order << 60 | (i + 1) << 32 | 5;
            struct side *out = new_send(tag, sizes[i]), *in = new_side(tag, sizes[i]);
            conform_meet();
            if (order) begin(out, true);
            else begin(in, false);
            for (int k = 0; k < 20; k++) wires_progress(64); /* what can go ahead does */
            conform_meet();
            if (order) begin(in, false);
            else begin(out, true);
            PARTY_CHECK(await(out) && out->rc == 0);
            memset(out->at, 0x11, out->n); /* it is ours again */
            PARTY_CHECK(await(in) && check_received(in));
            free_side(out);
            free_side(in);
        }
    PARTY_CHECK(!wrong);
    conform_meet();
    return true;
}

/* Many at once, begun by each side in an order of its own, among messages that have their order. */
bool bulk_many(void)
{
    struct side *side[2][MANY];
    uint64_t begun[2][MANY] = {{0}}, state = conform_seed + party_rank, sizes = conform_seed, sent = 0, left = 2 * MANY;
    bool has;
    PARTY_CHECK(open_wire(&has));
    if (!has) return true;
    for (uint64_t i = 0; i < MANY; i++) {
        uint64_t r = party_random(&sizes); /* the same at both sides */
        size_t n = (r >> 8) % (r % 8 ? 30000 : 400000);
        side[0][i] = new_side(r | 1, n);
        side[1][i] = new_send(r | 1, n);
    }
    uint64_t end = clock_ns() + 40000000000u;
    while ((left || sent < 500) && clock_ns() < end) {
        uint64_t r = party_random(&state), which = r % 2, i = (r >> 1) % MANY;
        if (!begun[which][i] && try_side(side[which][i], which)) begun[which][i] = 1, left--;
        if (left < MANY / 4) /* the last ones are hard to meet by chance */
            for (uint64_t k = 0; k < 2 * MANY; k++)
                if (!begun[k % 2][k / 2] && try_side(side[k % 2][k / 2], k % 2)) begun[k % 2][k / 2] = 1, left--;
        struct peer *p = conform_other();
        size_t n = (size_t)(r >> 40) % 64;
        if (sent < 500 && !p->ep.am_short(&p->ep, AM_NUMBER, sent, n, side[0], n)) sent++;
        if (r % 3 == 0) wires_progress(8);
    }
    PARTY_CHECK(!left && sent == 500);
    for (int i = 0; i < MANY; i++) PARTY_CHECK(await(side[0][i]) && await(side[1][i]) && side[1][i]->rc == 0 && check_received(side[0][i]));
    PARTY_AWAIT(came == 500);
    PARTY_CHECK(!wrong);
    for (int i = 0; i < 2 * MANY; i++) free_side(side[i % 2][i / 2]);
    conform_meet();
    return true;
}

/* Who comes second ends both, if the wire can do so. */
bool bulk_at_once(void)
{
    mock_script.bulk_at_once = true;
    return bulk_sizes() && (conform_wire->processes > 1 || !(conform_other()->ep.caps & TP_CAP_BULK) || mock_count.bulk > 0);
}

/* A transfer of another length is the receiver's error, in words, and writes nothing behind the memory; the way stays. */
bool bulk_of_another_length(void)
{
    static const struct {
        size_t out, in;
    } lengths[] = {{100, 200}, {200, 100}, {0, 1}, {1, 0}, {50000, 70000}, {70000, 50000}};
    bool has;
    PARTY_CHECK(open_wire(&has));
    for (size_t i = 0; i < ARRAY_LEN(lengths) && has; i++) {
        struct side *out = new_send(i + 1, lengths[i].out), *in = new_side(i + 1, lengths[i].in);
        if (i % 2) begin(in, false);
        begin(out, true);
        if (!(i % 2)) begin(in, false);
        PARTY_CHECK(await(out) && await(in));
        PARTY_CHECK(in->rc == TERN_ERR_PEER && strstr(in->words, conform_wire->name) && strstr(in->words, "bulk"));
        for (size_t k = in->n; k < in->n + 16; k++) PARTY_CHECK(in->at[k] == 0xee);
        conform_meet();
        free_side(out);
        free_side(in);
    }
    if (has) {
        struct side *out = new_send(99, 3000), *in = new_side(99, 3000);
        begin(in, false);
        begin(out, true);
        PARTY_CHECK(await(out) && await(in) && out->rc == 0 && check_received(in));
        free_side(out);
        free_side(in);
    }
    PARTY_CHECK(!wrong);
    conform_meet();
    return true;
}

/* ---- the end of the peer ---- */

static uint64_t losses, leaves;
static void note_loss(struct peer *p, int code)
{
    (void)p, (void)code;
    losses++;
}

static void note_leave(struct peer *p)
{
    (void)p;
    leaves++;
}

static bool ended_by_the_loss(struct side *s)
{
    int rc = s->rc;
    PARTY_CHECK(s->ends == 1 && rc == TERN_ERR_PEER && *s->words);
    free_side(s);
    return true;
}

/* The other dies with one transfer of each kind begun here, one announced by it, and one that it was in the middle of. */
bool bulk_sudden_death(void)
{
    bool has;
    PARTY_CHECK(open_wire(&has));
    if (!has || conform_wire->processes == 1) return true;
    tp_lost = note_loss;
    struct side *out = new_send(1, 50000), *in = new_side(2, 50000);
    struct side *half_out = new_send(3, LONG), *half_in = new_side(4, LONG);
    if (party_rank) {
        struct side *theirs = new_side(3, LONG), *ours = new_send(4, LONG), *announced = new_send(7, 1000);
        begin(theirs, false);
        begin(ours, true);
        begin(announced, true);
        party_meet();
        for (int i = 0; i < 60; i++) wires_progress(1);
        _exit(0);
    }
    begin(out, true);
    begin(in, false);
    begin(half_out, true);
    begin(half_in, false);
    party_meet();
    PARTY_AWAIT(losses);
    PARTY_AWAIT(out->ends && in->ends && half_out->ends && half_in->ends);
    PARTY_CHECK(ended_by_the_loss(out) && ended_by_the_loss(in) && ended_by_the_loss(half_out) && ended_by_the_loss(half_in));
    struct tp_ep *ep = &conform_other()->ep;
    struct side *later = new_send(9, 100);
    PARTY_CHECK(ep->ops->bulk_send(ep, 9, later->at, 100, &later->op) == TERN_ERR_PEER && *err_words() && !later->ends);
    PARTY_CHECK(ep->ops->bulk_recv(ep, 9, later->at, 100, &later->op) == TERN_ERR_PEER && !later->ends);
    free_side(later);
    PARTY_CHECK(losses == 1 && !wrong);
    exit(0);
}

/* What the sender has ended well comes, also when the sender leaves at once; what it has not begun ends. */
bool bulk_then_leave(void)
{
    bool has;
    PARTY_CHECK(open_wire(&has));
    if (!has || conform_wire->processes == 1) return true;
    tp_left = note_leave;
    tp_lost = note_loss;
    if (party_rank) {
        struct side *out = new_send(1, LONG);
        begin(out, true);
        PARTY_CHECK(await(out) && out->rc == 0);
        while (!wires_drained()) wires_progress(64);
        peers_close();
        free_side(out);
        exit(0);
    }
    struct side *in = new_side(1, LONG), *never = new_side(2, 10);
    begin(in, false);
    begin(never, false);
    PARTY_CHECK(await(in) && check_received(in));
    PARTY_AWAIT(never->ends);
    PARTY_CHECK(never->rc == TERN_ERR_PEER && leaves == 1 && !losses && !wrong);
    free_side(in);
    free_side(never);
    exit(0);
}

/* The peer is given up here: what the wire works on ends, by progress, and tp_lost says nothing. */
bool bulk_severed(void)
{
    bool has;
    PARTY_CHECK(open_wire(&has));
    if (!has || !conform_other()->ep.ops->sever) return true;
    tp_lost = note_loss;
    if (party_rank) {
        struct side *theirs = new_side(1, LONG);
        begin(theirs, false);
        PARTY_AWAIT(losses);
        PARTY_AWAIT(theirs->ends);
        PARTY_CHECK(ended_by_the_loss(theirs));
        exit(0);
    }
    struct side *out = new_send(1, LONG), *in = new_side(2, 10);
    begin(out, true);
    begin(in, false);
    for (int i = 0; i < 20; i++) wires_progress(64);
    conform_other()->ep.ops->sever(&conform_other()->ep);
    PARTY_CHECK(!out->ends && !in->ends);
    PARTY_AWAIT(out->ends && in->ends);
    PARTY_CHECK(ended_by_the_loss(out) && ended_by_the_loss(in) && !losses);
    exit(0);
}
