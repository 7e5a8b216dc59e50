/*
 * owner.c - the requests of a peer for memory of this process, by messages (side.h).
 *
 * Ids, ranges, access rights and lengths of all requests are checked here. A request that this library cannot have sent
 * breaks the protocol, and ends the connection. A request for memory that has been deregistered is a mistake of the
 * program's, and is refused.
 */
#include "base/err.h"
#include "proc/jobs.h"
#include "transport/amo.h"
#include "transport/emulate/side.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Data of puts to memory that is not registered any more: nobody reads it. Made at first use. */
static char *waste;

/* What is wrong with a request for [offset, offset + n) of the memory `id`; NULL: nothing, and *at is where that is, or NULL
 * if it is not registered any more. */
static const char *look_up(uint64_t id, uint64_t offset, uint64_t n, uint32_t access, char **at)
{
    const struct remote_mem *m = remote_find(id);
    *at = NULL;
    if (!m) return remote_was(id) ? NULL : "memory that was never registered";
    if (offset > m->bytes || n > m->bytes - offset) return "a place outside of the memory";
    if ((m->access & access) != access) return "what is not allowed with the memory";
    *at = m->base + offset;
    return NULL;
}

/* As look_up. False, and the peer given up, if something is wrong. */
static bool look_up_for(struct emulate_state *s, uint64_t id, uint64_t offset, uint64_t n, uint32_t access, char **at)
{
    const char *wrong = look_up(id, offset, n, access, at);
    if (wrong) emulate_violation(s, wrong);
    return !wrong;
}

static int send_back(struct peer *p, enum emulate_kind kind, uint64_t h0)
{
    return p->ep.am_short(&p->ep, AM_REMOTE_BACK, h0, (uint64_t)kind << 60, NULL, 0);
}

/* Data of a get, until there is no room. Between two messages the memory may go. */
static int answer_get(struct emulate_state *s, struct owed *o)
{
    while (o->value < o->bytes) {
        size_t n;
        const struct remote_mem *m = remote_find(o->id);
        if (!m) return send_back(s->peer, EMULATE_REFUSED, 0);
        const char *from = m->base + o->offset + o->value;
        int rc = emulate_send(s, &s->answers, AM_REMOTE_BACK, o->value, (uint64_t)EMULATE_GET << 60, from,
                              o->bytes - o->value, NULL, &n);
        if (s->broken) return TERN_AGAIN;
        if (rc) return rc;
        o->value += n;
    }
    return 0;
}

/* What the transport cannot send any more nobody will receive: the end of the peer is the transport's to tell. */
int emulate_answer_waiting(struct emulate_state *s)
{
    int n = 0;
    if (s->answering) return 0;
    s->answering = true;
    for (; !s->broken && s->owed_first != s->owed_end; s->owed_first++, n++) {
        struct owed *o = owed_at(s, s->owed_first);
        int rc = o->kind == EMULATE_GET ? answer_get(s, o) : send_back(s->peer, o->kind, o->value);
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
        emulate_violation(s, "more than may be asked for at once");
        return;
    }
    if (unlikely(!peer_is_connected(s->peer)) && !peer_connect(s->peer->index)) {
        char words[300];
        snprintf(words, sizeof words, "%s cannot be answered: %s", jobs_long_words(s->peer->index), err_words());
        emulate_give_up(s, words);
        return;
    }
    *owed_at(s, s->owed_end++) = *o;
    emulate_answer_waiting(s);
    emulate_note_waiting(s);
}

static void on_put(struct emulate_state *s, uint64_t id, uint64_t offset, const void *data, size_t n)
{
    char *at;
    if (!n) {
        emulate_violation(s, "nothing to put");
        return;
    }
    if (!look_up_for(s, id, offset, n, REMOTE_WRITE, &at)) return;
    if (at && at != data) memcpy(at, data, n);
    s->refused |= !at;
}

static void on_get(struct emulate_state *s, uint64_t id, uint64_t offset, const void *data, size_t n)
{
    char *at;
    uint64_t bytes = 0;
    if (n == sizeof bytes) memcpy(&bytes, data, n);
    if (!bytes) {
        emulate_violation(s, "nothing to get");
        return;
    }
    if (!look_up_for(s, id, offset, bytes, REMOTE_READ, &at)) return;
    struct owed o = {.kind = at ? EMULATE_GET : EMULATE_REFUSED, .id = id, .offset = offset, .bytes = bytes};
    answer(s, &o);
}

static void on_amo(struct emulate_state *s, bool silent, uint64_t id, uint64_t offset, struct remote_amo *amo,
                   const void *data, size_t n)
{
    char *at;
    if (n != 2 * sizeof amo->operand || amo->op >= REMOTE_OPS) {
        emulate_violation(s, "an atomic operation that there is not");
        return;
    }
    if (!look_up_for(s, id, offset, amo->width, REMOTE_ATOMIC, &at)) return;
    if ((uintptr_t)at % amo->width) {
        emulate_violation(s, "an atomic operation at a place that is not aligned");
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
        emulate_violation(s, "a flush with something in it");
        return;
    }
    struct owed o = {.kind = EMULATE_FLUSH, .value = s->refused ? FLUSH_REFUSED : 0};
    s->refused = false;
    answer(s, &o);
}

/* The parts of h1. */
struct request_head {
    uint32_t kind;
    bool zero;  /* what must be 0 is */
    bool plain; /* and so is what only an amo has */
    uint64_t offset;
    struct remote_amo amo;
};

static struct request_head head_of(uint64_t h1)
{
    struct remote_amo amo = {.op = (enum remote_op)(h1 >> 56 & 15), .width = 1u << (h1 >> 54 & 3)};
    return (struct request_head){.kind = (uint32_t)(h1 >> 60),
                                 .zero = !(h1 & ZERO_BITS),
                                 .plain = !amo.op && amo.width == 1,
                                 .offset = h1 & OFFSET_MASK,
                                 .amo = amo};
}

void emulate_on_request(struct peer *from, uint64_t h0, uint64_t h1, const void *data, size_t n)
{
    struct emulate_state *s = emulate_state_of_sender(from);
    struct request_head h = head_of(h1);
    if (!s || s->broken) return;
    s->putting = 0;
    if (!h.zero)
        emulate_violation(s, "bits that mean nothing");
    else if (h.kind == EMULATE_PUT && h.plain)
        on_put(s, h0, h.offset, data, n);
    else if (h.kind == EMULATE_GET && h.plain)
        on_get(s, h0, h.offset, data, n);
    else if (h.kind == EMULATE_AMO || h.kind == EMULATE_AMO_SILENT)
        on_amo(s, h.kind == EMULATE_AMO_SILENT, h0, h.offset, &h.amo, data, n);
    else if (h.kind == EMULATE_FLUSH && h.plain)
        on_flush(s, h0, h.offset, n);
    else
        emulate_violation(s, "no kind of operation");
}

/* The handler judges what is wrong, if the transport can bring the message to it without a place. */
void *emulate_request_sink(struct peer *from, uint64_t h0, uint64_t h1, size_t n)
{
    struct emulate_state *s = emulate_state_of(from);
    struct request_head h = head_of(h1);
    char *at;
    if (!s || s->broken || h.kind != EMULATE_PUT || !h.plain || !h.zero || n > EMULATE_FRAGMENT_MAX) return NULL;
    if (look_up(h0, h.offset, n, REMOTE_WRITE, &at)) return NULL;
    if (!at && !waste) waste = malloc(EMULATE_FRAGMENT_MAX);
    if (!at) return waste;
    s->putting = h0;
    return at;
}

void emulate_deregistered(uint64_t id)
{
    char words[200];
    list_each(l, next, &emulate_sides) {
        struct emulate_state *s = container_of(l, struct emulate_state, in_all);
        if (s->putting != id) continue;
        snprintf(words, sizeof words, "memory was deregistered while %s put data there; it is given up",
                 jobs_long_words(s->peer->index));
        emulate_give_up(s, words);
    }
}

void emulate_owner_close(void)
{
    free(waste);
    waste = NULL;
}
