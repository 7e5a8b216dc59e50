/*
 * emulate.c - operations on remote memory by messages (emulate.h draws them).
 *
 * At the origin, operations of a peer lie in a ring, in the order of their starts:
 *
 *     asked   | finished ... | first: awaits its answer ... | unsent: waits for room ... | end
 *
 * The channel keeps the order and the owner answers in order, so an answer belongs to the first operation that awaits
 * one, and anything else is no message of this library. At the owner, answers that find no room lie in another ring,
 * `owed`. Both have EMULATE_DEPTH places: who asks for more than that breaks the rules.
 *
 * Everything that comes is checked here: ids, ranges, rights, lengths, and that an answer was asked for. What cannot
 * have been sent by this library ends the connection. A request for memory that was registered and is not any more is a
 * mistake of the program's, and is refused.
 *
 * A handler, and op->done, may be called while a message is sent (transports that deliver at once), so an
 * operation is in its state before its message is sent, and is not looked at afterwards.
 */
#include "transport/emulate.h"
#include "base/err.h"
#include "transport/amo.h"
#include "transport/peer.h"
#include "transport/progress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KIND_NONE = 0, FLUSH_REFUSED = 1 };

#define OFFSET_BITS 48
#define ZERO_BITS ((uint64_t)0x3f << OFFSET_BITS)

struct asked {
    uint32_t kind; /* enum emulate_kind; KIND_NONE: finished */
    uint32_t width;
    enum remote_op op;
    char *local; /* data of a put, place for that of a get or the result of an amo */
    uint64_t id, offset, bytes;
    uint64_t moved; /* sent of a put, come of a get */
    uint64_t operand, compare;
    struct tp_op *done;
};

struct owed {
    uint32_t kind;
    uint64_t value;             /* h0 of the answer, or of a get: the bytes sent already */
    uint64_t id, offset, bytes; /* of a get */
};

/* What this process has to do with one peer, as origin and as owner. */
struct emulate_state {
    struct peer *peer;
    struct progress_retry waits;                       /* for room */
    bool broken;                                       /* it broke the rules, or is lost */
    bool unflushed;                                    /* puts and silent amos went out since the last flush */
    bool refused;                                      /* one of the peer's was, since its last flush */
    bool sending, answering;                           /* of these two no second call while one is under way */
    uint32_t first, unsent, end, owed_first, owed_end; /* running numbers */
    struct asked asked[EMULATE_DEPTH];
    struct owed owed[EMULATE_DEPTH];
};

static int retry(struct progress_retry *);

static struct emulate_state *state_of(struct peer *p)
{
    struct emulate_state *s = p->emulate;
    if (likely(s != NULL)) return s;
    s = calloc(1, sizeof *s);
    if (!s) {
        err_set(TERN_ERR_NOMEM, "no memory for operations on the memory of rank %u", p->index);
        return NULL;
    }
    s->peer = p;
    list_init(&s->waits.link);
    s->waits.retry = retry;
    p->emulate = s;
    return s;
}

/* The same for a handler: a peer of which nothing can be kept is lost. */
static struct emulate_state *state_of_sender(struct peer *p)
{
    struct emulate_state *s = state_of(p);
    if (likely(s != NULL)) return s;
    if (tp_lost) tp_lost(p, TERN_ERR_NOMEM);
    return NULL;
}

static struct asked *asked_at(struct emulate_state *s, uint32_t i) { return &s->asked[i % EMULATE_DEPTH]; }
static struct owed *owed_at(struct emulate_state *s, uint32_t i) { return &s->owed[i % EMULATE_DEPTH]; }

/* Data that goes with one message: two of them find room in a ring. */
static size_t most_of(const struct peer *p) { return p->ep.max_short / 2; }

/* ---- ends ---- */

/* The place of the operation is free, and may be used again. */
static void retire(struct emulate_state *s, struct asked *a)
{
    a->kind = KIND_NONE;
    while (s->first != s->unsent && asked_at(s, s->first)->kind == KIND_NONE) s->first++;
}

/* The operation is over. `done` may start others. */
static void finish(struct emulate_state *s, struct asked *a, int rc)
{
    struct tp_op *op = a->done;
    retire(s, a);
    op->done(op, rc);
}

static int gone(const struct peer *p)
{
    if (p->lost) return err_set(TERN_ERR_PEER, "%s", p->lost);
    return err_set(TERN_ERR_PEER, "the way to rank %u of the job is closed", p->index);
}

/* Ends all operations in these words; those that are started meanwhile, by `done`, are refused. */
static void end_all(struct emulate_state *s, const char *why)
{
    char words[400];
    snprintf(words, sizeof words, "%s", why);
    s->broken = true;
    s->unsent = s->end;
    s->owed_first = s->owed_end;
    progress_await_no_more(&s->waits);
    while (s->first != s->end) finish(s, asked_at(s, s->first), err_set(TERN_ERR_PEER, "%s", words));
}

void emulate_lost(struct peer *p)
{
    if (p->emulate) end_all(p->emulate, p->lost ? p->lost : err_words());
}

void emulate_forget(struct peer *p)
{
    struct emulate_state *s = p->emulate;
    if (s) progress_await_no_more(&s->waits);
    free(s);
    p->emulate = NULL;
}

/* From here on there is nothing more between the peer and us, for the reason in `words`. */
static TERN_COLD void give_up(struct emulate_state *s, const char *words)
{
    struct peer *p = s->peer;
    if (s->broken) return;
    s->broken = true;
    if (p->ep.ops && p->ep.ops->sever) p->ep.ops->sever(&p->ep);
    end_all(s, words);
    if (tp_lost) tp_lost(p, err_set(TERN_ERR_PEER, "%s", words));
}

/* The peer has sent what cannot be. */
static TERN_COLD void violation(struct emulate_state *s, const char *what)
{
    char words[300];
    snprintf(words, sizeof words, "rank %u of the job sent a message about memory that cannot be (%s); it is given up",
             s->peer->index, what);
    give_up(s, words);
}

/* ---- the origin: sending ---- */

static int send_put(struct emulate_state *s, struct asked *a)
{
    struct tp_ep *ep = &s->peer->ep;
    while (a->moved < a->bytes) {
        size_t n = min_size(most_of(s->peer), a->bytes - a->moved);
        uint64_t at = a->moved;
        int rc = ep->am_short(ep, AM_REMOTE, a->id, emulate_word(EMULATE_PUT, 0, 1, a->offset + at), a->local + at, n);
        if (rc) return rc;
        if (s->broken) return TERN_AGAIN;
        a->moved = at + n;
    }
    s->unflushed = true;
    s->unsent++;
    finish(s, a, 0);
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

/* Sends what there is room for; how many operations. When the wire fails, all operations end in its words. */
static int send_waiting(struct emulate_state *s)
{
    int n = 0, rc = 0;
    if (s->sending) return 0;
    s->sending = true;
    for (; !s->broken && s->unsent != s->end && !(rc = send_next(s)); n++) continue;
    s->sending = false;
    if (rc && rc != TERN_AGAIN && !s->broken) end_all(s, err_words());
    return n;
}

static void note_waiting(struct emulate_state *s)
{
    bool waits = !s->broken && (s->unsent != s->end || s->owed_first != s->owed_end);
    if (waits)
        progress_await(&s->waits);
    else
        progress_await_no_more(&s->waits);
}

/* ---- the origin: starting ---- */

/* Nothing waits, so that a message may go straight out. */
static bool is_open(const struct emulate_state *s) { return s->unsent == s->end && !s->sending; }

static int start(struct emulate_state *s, const struct asked *a)
{
    if (s->end - s->first == EMULATE_DEPTH) return TERN_AGAIN;
    *asked_at(s, s->end++) = *a;
    send_waiting(s);
    note_waiting(s);
    return 0;
}

static int open_state(struct peer *p, struct emulate_state **s)
{
    *s = state_of(p);
    if (!*s) return TERN_ERR_NOMEM;
    return likely(!(*s)->broken && !p->lost) ? 0 : gone(p);
}

int emulate_put(struct remote_key *k, uint64_t offset, const void *local, size_t n, struct tp_op *op)
{
    struct emulate_state *s;
    int rc = open_state(k->peer, &s);
    if (rc) return rc;
    struct tp_ep *ep = &k->peer->ep;
    if (is_open(s) && n <= most_of(k->peer)) {
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
    if (p->lost || (s && s->broken)) return gone(p);
    if (!s || (!s->unflushed && s->first == s->end)) return TERN_DONE;
    struct asked a = {.kind = EMULATE_FLUSH, .done = op};
    return start(s, &a);
}

/* ---- the owner ---- */

/* The registered memory [offset, offset + n) of `id`, *at; NULL there if it is not registered any more. False, and the
 * peer given up, if it never was so or the peer has no right to it. */
static bool look_up(struct emulate_state *s, uint64_t id, uint64_t offset, uint64_t n, uint32_t access, char **at)
{
    struct remote_mem *m = remote_find(id);
    *at = NULL;
    if (!m) {
        if (remote_was(id)) return true;
        violation(s, "memory that was never registered");
        return false;
    }
    if (offset > m->bytes || n > m->bytes - offset) {
        violation(s, "a place outside of the memory");
        return false;
    }
    if ((m->access & access) != access) {
        violation(s, "what is not allowed with the memory");
        return false;
    }
    *at = m->base + offset;
    return true;
}

static int send_back(struct peer *p, enum emulate_kind kind, uint64_t h0, const void *data, size_t n)
{
    return p->ep.am_short(&p->ep, AM_REMOTE_BACK, h0, (uint64_t)kind << 60, data, n);
}

/* Data of a get, until there is no room. Between two messages the memory may go. */
static int answer_get(struct emulate_state *s, struct owed *o)
{
    while (o->value < o->bytes) {
        size_t n = min_size(most_of(s->peer), o->bytes - o->value);
        const struct remote_mem *m = remote_find(o->id);
        if (!m) return send_back(s->peer, EMULATE_REFUSED, 0, NULL, 0);
        int rc = send_back(s->peer, EMULATE_GET, o->value, m->base + o->offset + o->value, n);
        if (rc) return rc;
        o->value += n;
    }
    return 0;
}

/* What the wire cannot send any more nobody will receive: the end of the peer is the wire's to tell. */
static int answer_waiting(struct emulate_state *s)
{
    int n = 0;
    if (s->answering) return 0;
    s->answering = true;
    for (; !s->broken && s->owed_first != s->owed_end; s->owed_first++, n++) {
        struct owed *o = owed_at(s, s->owed_first);
        int rc = o->kind == EMULATE_GET ? answer_get(s, o) : send_back(s->peer, o->kind, o->value, NULL, 0);
        if (rc == TERN_AGAIN) break;
        if (s->broken) break;
    }
    s->answering = false;
    if (n) peer_look_again(s->peer);
    return n;
}

static void answer(struct emulate_state *s, const struct owed *o)
{
    if (s->owed_end - s->owed_first == EMULATE_DEPTH) {
        violation(s, "more than may be asked for at once");
        return;
    }
    if (unlikely(!s->peer->ep.ops) && !peer_connect(s->peer->index)) {
        char words[300];
        snprintf(words, sizeof words, "rank %u of the job cannot be answered: %s", s->peer->index, err_words());
        give_up(s, words);
        return;
    }
    *owed_at(s, s->owed_end++) = *o;
    answer_waiting(s);
    note_waiting(s);
}

static void on_put(struct emulate_state *s, uint64_t id, uint64_t offset, const void *data, size_t n)
{
    char *at;
    if (!n) {
        violation(s, "nothing to put");
        return;
    }
    if (!look_up(s, id, offset, n, REMOTE_WRITE, &at)) return;
    if (at)
        memcpy(at, data, n);
    else
        s->refused = true;
}

static void on_get(struct emulate_state *s, uint64_t id, uint64_t offset, const void *data, size_t n)
{
    char *at;
    uint64_t bytes = 0;
    if (n == sizeof bytes) memcpy(&bytes, data, n);
    if (!bytes) {
        violation(s, "nothing to get");
        return;
    }
    if (!look_up(s, id, offset, bytes, REMOTE_READ, &at)) return;
    struct owed o = {.kind = at ? EMULATE_GET : EMULATE_REFUSED, .id = id, .offset = offset, .bytes = bytes};
    answer(s, &o);
}

static void on_amo(struct emulate_state *s, bool silent, uint64_t id, uint64_t offset, struct remote_amo *amo,
                   const void *data, size_t n)
{
    char *at;
    if (n != 2 * sizeof amo->operand || amo->op >= REMOTE_OPS) {
        violation(s, "an atomic operation that there is not");
        return;
    }
    if (!look_up(s, id, offset, amo->width, REMOTE_ATOMIC, &at)) return;
    if ((uintptr_t)at % amo->width) {
        violation(s, "an atomic operation at a place that is not aligned");
        return;
    }
    memcpy(&amo->operand, data, sizeof amo->operand);
    memcpy(&amo->compare, (const char *)data + sizeof amo->operand, sizeof amo->compare);
    uint64_t value = at ? amo_do(at, amo) : 0;
    if (silent) {
        s->refused |= !at;
        return;
    }
    struct owed o = {.kind = at ? EMULATE_AMO : EMULATE_REFUSED, .value = value};
    answer(s, &o);
}

static void on_flush(struct emulate_state *s, uint64_t h0, uint64_t rest, size_t n)
{
    if (h0 || rest || n) {
        violation(s, "a flush with something in it");
        return;
    }
    struct owed o = {.kind = EMULATE_FLUSH, .value = s->refused ? FLUSH_REFUSED : 0};
    s->refused = false;
    answer(s, &o);
}

static void on_request(struct peer *from, uint64_t h0, uint64_t h1, const void *data, size_t n)
{
    struct emulate_state *s = state_of_sender(from);
    uint64_t offset = h1 & (((uint64_t)1 << OFFSET_BITS) - 1);
    struct remote_amo amo = {.op = (enum remote_op)(h1 >> 56 & 15), .width = 1u << (h1 >> 54 & 3)};
    uint32_t kind = (uint32_t)(h1 >> 60);
    if (!s || s->broken) return;
    bool plain = !amo.op && amo.width == 1;
    if (h1 & ZERO_BITS)
        violation(s, "bits that mean nothing");
    else if (kind == EMULATE_PUT && plain)
        on_put(s, h0, offset, data, n);
    else if (kind == EMULATE_GET && plain)
        on_get(s, h0, offset, data, n);
    else if (kind == EMULATE_AMO || kind == EMULATE_AMO_SILENT)
        on_amo(s, kind == EMULATE_AMO_SILENT, h0, offset, &amo, data, n);
    else if (kind == EMULATE_FLUSH && plain)
        on_flush(s, h0, offset, n);
    else
        violation(s, "no kind of operation");
}

/* ---- the origin: answers ---- */

static int not_registered(const struct peer *p)
{
    return err_set(TERN_ERR_NOT_FOUND, "the memory of rank %u of the job is not registered any more", p->index);
}

/* The wire may have puts and amos of its own to flush. */
static void finish_flush(struct emulate_state *s, struct asked *a, bool refused)
{
    const struct tp_remote *wire = s->peer->ep.ops->remote;
    if (refused || !wire || !wire->flush) {
        finish(s, a, refused ? not_registered(s->peer) : 0);
        return;
    }
    struct tp_op *op = a->done;
    int rc = wire->flush(&s->peer->ep, op);
    if (rc)
        finish(s, a, rc == TERN_DONE ? 0 : rc);
    else
        retire(s, a); /* the wire calls op->done */
}

static bool on_data(struct emulate_state *s, struct asked *a, uint64_t place, const void *data, size_t n)
{
    if (!n || place != a->moved || n > a->bytes - a->moved) return false;
    memcpy(a->local + a->moved, data, n);
    a->moved += n;
    if (a->moved == a->bytes) finish(s, a, 0);
    return true;
}

static bool take_answer(struct emulate_state *s, uint32_t kind, uint64_t h0, const void *data, size_t n)
{
    if (s->first == s->unsent) return false;
    struct asked *a = asked_at(s, s->first); /* what is finished before it is retired */
    if (kind == EMULATE_GET && a->kind == EMULATE_GET) return on_data(s, a, h0, data, n);
    if (n) return false;
    if (kind == EMULATE_AMO && a->kind == EMULATE_AMO) {
        amo_store(a->local, h0, a->width);
        finish(s, a, 0);
        return true;
    }
    if (kind == EMULATE_FLUSH && a->kind == EMULATE_FLUSH && h0 <= FLUSH_REFUSED) {
        finish_flush(s, a, h0 == FLUSH_REFUSED);
        return true;
    }
    if (kind != EMULATE_REFUSED || a->kind == EMULATE_FLUSH || h0) return false;
    finish(s, a, not_registered(s->peer));
    return true;
}

static void on_back(struct peer *from, uint64_t h0, uint64_t h1, const void *data, size_t n)
{
    struct emulate_state *s = state_of_sender(from);
    if (!s || s->broken) return;
    bool good = !(h1 << 4) && take_answer(s, (uint32_t)(h1 >> 60), h0, data, n);
    if (!good) violation(s, "an answer to nothing that was asked for");
}

/* ---- life ---- */

static const struct tp_am messages[] = {
    {.id = AM_REMOTE, .name = "remote memory", .handler = on_request},
    {.id = AM_REMOTE_BACK, .name = "answer of remote memory", .handler = on_back},
};

int emulate_open(void) { return tp_am_register(messages, ARRAY_LEN(messages)); }

void emulate_close(void) { tp_am_unregister(messages, ARRAY_LEN(messages)); }

static int retry(struct progress_retry *r)
{
    struct emulate_state *s = container_of(r, struct emulate_state, waits);
    int n = answer_waiting(s) + send_waiting(s);
    note_waiting(s);
    return n;
}
