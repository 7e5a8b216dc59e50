/*
 * origin.c - operations on the memory of a peer by messages: starting, sending, and the answers (side.h).
 *
 * The channel keeps the order and the owner answers in order, so an answer belongs to the first operation that awaits
 * one. Any other answer breaks the protocol.
 */
#include "base/err.h"
#include "proc/jobs.h"
#include "transport/amo.h"
#include "transport/emulate/side.h"
#include "transport/endpoint.h"

#include <stdio.h>
#include <string.h>

/* The place of the operation is free, and may be used again. */
static void retire(struct emulate_state *s, struct asked *a)
{
    a->kind = KIND_NONE;
    while (s->first != s->unsent && asked_at(s, s->first)->kind == KIND_NONE) s->first++;
}

void emulate_finish(struct emulate_state *s, struct asked *a, int rc)
{
    struct tp_op *op = a->done;
    retire(s, a);
    op->done(op, rc);
}

/* ---- sending ---- */

/* The transport has failed: all operations end in its words. If it has the place of a get's data, it may write there until it is
 * told that the peer is given up. */
static TERN_COLD void fail(struct emulate_state *s)
{
    char words[400];
    snprintf(words, sizeof words, "%s", err_words());
    if (s->getting)
        emulate_give_up(s, words);
    else
        emulate_end_all(s, words);
}

static int send_put(struct emulate_state *s, struct asked *a)
{
    while (a->moved < a->bytes) {
        uint64_t head = emulate_word(EMULATE_PUT, 0, 1, a->offset + a->moved);
        size_t n;
        int rc = emulate_send(s, &s->puts, AM_REMOTE, a->id, head, a->local + a->moved, a->bytes - a->moved, a, &n);
        if (s->broken) return TERN_AGAIN;
        if (rc) return rc;
        a->moved += n;
    }
    s->unflushed = true;
    s->unsent++;
    if (!a->fragments) emulate_finish(s, a, 0);
    return 0;
}

static int send_amo(struct emulate_state *s, enum emulate_kind kind, uint64_t id, uint64_t offset,
                    const struct remote_amo *amo)
{
    struct tp_ep *ep = &s->peer->ep;
    uint64_t operands[2] = {amo->operand, amo->compare};
    return ep->am_short(ep, AM_REMOTE, id, emulate_word(kind, amo->op, amo->width, offset), operands, sizeof operands);
}

/* Requests that are answered. The answer may come before the call returns. */
static int send_request(struct emulate_state *s, const struct asked *a)
{
    struct tp_ep *ep = &s->peer->ep;
    struct remote_amo amo = {a->op, a->width, a->operand, a->compare};
    switch (a->kind) {
    case EMULATE_AMO:
        return send_amo(s, EMULATE_AMO, a->id, a->offset, &amo);
    case EMULATE_GET:
        return ep->am_short(ep, AM_REMOTE, a->id, emulate_word(EMULATE_GET, 0, 1, a->offset), &a->bytes,
                            sizeof a->bytes);
    default:
        return ep->am_short(ep, AM_REMOTE, 0, emulate_word(EMULATE_FLUSH, 0, 1, 0), NULL, 0);
    }
}

/* Sends the next operation. */
static int send_next(struct emulate_state *s)
{
    struct asked *a = asked_at(s, s->unsent);
    if (a->kind == EMULATE_PUT) return send_put(s, a);
    bool unflushed = s->unflushed;
    if (a->kind == EMULATE_FLUSH) s->unflushed = false;
    s->unsent++;
    int rc = send_request(s, a);
    if (!rc) peer_look_again(s->peer);
    if (rc && !s->broken) {
        s->unsent--;
        s->unflushed = unflushed;
    }
    return rc;
}

int emulate_send_waiting(struct emulate_state *s)
{
    int n = 0, rc = 0;
    if (s->sending) return 0;
    s->sending = true;
    for (; !s->broken && s->unsent != s->end && !(rc = send_next(s)); n++) continue;
    s->sending = false;
    if (rc && rc != TERN_AGAIN && !s->broken) fail(s);
    return n;
}

/* ---- starting ---- */

/* Nothing waits, so that a message may go straight out. */
static bool is_open(const struct emulate_state *s) { return s->unsent == s->end && !s->sending; }

static int start(struct emulate_state *s, const struct asked *a)
{
    if (s->end - s->first == EMULATE_DEPTH) return TERN_AGAIN;
    *asked_at(s, s->end++) = *a;
    emulate_send_waiting(s);
    emulate_note_waiting(s);
    return 0;
}

static int open_state(struct peer *p, struct emulate_state **s)
{
    *s = emulate_state_of(p);
    if (!*s) return TERN_ERR_NOMEM;
    return likely(!(*s)->broken && !p->lost) ? 0 : emulate_gone(p);
}

int emulate_put(struct remote_key *k, uint64_t offset, const void *local, size_t n, struct tp_op *op)
{
    struct emulate_state *s;
    int rc = open_state(k->peer, &s);
    if (rc) return rc;
    struct tp_ep *ep = &k->peer->ep;
    if (is_open(s) && n <= emulate_most(k->peer)) {
        rc = ep->am_short(ep, AM_REMOTE, k->id, emulate_word(EMULATE_PUT, 0, 1, offset), local, n);
        s->unflushed |= !rc;
        return rc ? rc : TERN_DONE;
    }
    struct asked a = {
        .kind = EMULATE_PUT, .local = (char *)(uintptr_t)local, .id = k->id, .offset = offset, .bytes = n, .done = op};
    return start(s, &a);
}

int emulate_get(struct remote_key *k, uint64_t offset, void *local, size_t n, struct tp_op *op)
{
    struct emulate_state *s;
    int rc = open_state(k->peer, &s);
    struct asked a = {.kind = EMULATE_GET, .local = local, .id = k->id, .offset = offset, .bytes = n, .done = op};
    return rc ? rc : start(s, &a);
}

/* Nobody waits for the result. */
static int silent_amo(struct emulate_state *s, const struct remote_key *k, uint64_t offset,
                      const struct remote_amo *amo)
{
    int rc = is_open(s) ? send_amo(s, EMULATE_AMO_SILENT, k->id, offset, amo) : TERN_AGAIN;
    s->unflushed |= !rc;
    return rc ? rc : TERN_DONE;
}

int emulate_amo(struct remote_key *k, uint64_t offset, const struct remote_amo *amo, void *result, struct tp_op *op)
{
    struct emulate_state *s;
    int rc = open_state(k->peer, &s);
    if (rc) return rc;
    if (!result) return silent_amo(s, k, offset, amo);
    struct asked a = {.kind = EMULATE_AMO,
                      .width = amo->width,
                      .op = amo->op,
                      .local = result,
                      .id = k->id,
                      .offset = offset,
                      .operand = amo->operand,
                      .compare = amo->compare,
                      .done = op};
    return start(s, &a);
}

int emulate_flush(struct peer *p, struct tp_op *op)
{
    struct emulate_state *s = p->emulate;
    if (p->lost || (s && s->broken)) return emulate_gone(p);
    if (!s || (!s->unflushed && s->first == s->end)) return TERN_DONE;
    struct asked a = {.kind = EMULATE_FLUSH, .done = op};
    return start(s, &a);
}

/* ---- answers ---- */

static int not_registered(const struct peer *p)
{
    return err_set(TERN_ERR_NOT_FOUND, "the memory of %s is not registered any more", jobs_long_words(p->index));
}

/* The transport may have puts and amos of its own to flush. */
static void finish_flush(struct emulate_state *s, struct asked *a, bool refused)
{
    const struct tp_remote *wire = s->peer->ep.ops->remote;
    if (refused || !wire || !wire->flush) {
        emulate_finish(s, a, refused ? not_registered(s->peer) : 0);
        return;
    }
    struct tp_op *op = a->done;
    int rc = wire_enter(&s->peer->ep, 0); /* the answer has come by this wire: not refused */
    if (!rc) {
        rc = wire->flush(&s->peer->ep, op);
        wire_leave(&s->peer->ep, 0);
    }
    if (rc)
        emulate_finish(s, a, rc == TERN_DONE ? 0 : rc);
    else
        retire(s, a); /* the transport calls op->done */
}

/* The operation that the next answer belongs to; NULL: none awaits one. Puts may be there that are still under way. */
static struct asked *first_awaiting(struct emulate_state *s)
{
    for (uint32_t i = s->first; i != s->unsent; i++) {
        struct asked *a = asked_at(s, i);
        if (a->kind != KIND_NONE && a->kind != EMULATE_PUT) return a;
    }
    return NULL;
}

/* Where n bytes for this place of the get's data go, NULL: they are not the next ones. */
static char *place_of(const struct asked *a, uint64_t place, size_t n)
{
    return n && place == a->moved && n <= a->bytes - a->moved ? a->local + place : NULL;
}

static bool on_data(struct emulate_state *s, struct asked *a, uint64_t place, const void *data, size_t n)
{
    char *to = place_of(a, place, n);
    if (!to) return false;
    if (to != data) memcpy(to, data, n);
    a->moved += n;
    if (a->moved == a->bytes) emulate_finish(s, a, 0);
    return true;
}

static bool take_answer(struct emulate_state *s, uint32_t kind, uint64_t h0, const void *data, size_t n)
{
    struct asked *a = first_awaiting(s);
    if (!a) return false;
    if (kind == EMULATE_GET && a->kind == EMULATE_GET) return on_data(s, a, h0, data, n);
    if (n) return false;
    if (kind == EMULATE_AMO && a->kind == EMULATE_AMO) {
        amo_store(a->local, h0, a->width);
        emulate_finish(s, a, 0);
        return true;
    }
    if (kind == EMULATE_FLUSH && a->kind == EMULATE_FLUSH && h0 <= FLUSH_REFUSED) {
        finish_flush(s, a, h0 == FLUSH_REFUSED);
        return true;
    }
    if (kind != EMULATE_REFUSED || a->kind == EMULATE_FLUSH || h0) return false;
    emulate_finish(s, a, not_registered(s->peer));
    return true;
}

void emulate_on_back(struct peer *from, uint64_t h0, uint64_t h1, const void *data, size_t n)
{
    struct emulate_state *s = emulate_state_of_sender(from);
    if (!s || s->broken) return;
    s->getting = false;
    bool good = !(h1 << 4) && take_answer(s, (uint32_t)(h1 >> 60), h0, data, n);
    if (!good) emulate_violation(s, "an answer to nothing that was asked for");
}

void *emulate_back_sink(struct peer *from, uint64_t h0, uint64_t h1, size_t n)
{
    struct emulate_state *s = from->emulate;
    struct asked *a = s && !s->broken ? first_awaiting(s) : NULL;
    bool is_data = a && a->kind == EMULATE_GET && h1 == (uint64_t)EMULATE_GET << 60;
    char *to = is_data ? place_of(a, h0, n) : NULL;
    if (to) s->getting = true;
    return to;
}
