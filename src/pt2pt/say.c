/*
 * say.c - see say.h, and pt_message in api.h.
 *
 * A message that is longer than what the transport takes goes in parts, which the receiver puts together (gather.c).
 */
#include "pt2pt/say.h"
#include "base/err.h"
#include "pt2pt/api.h"
#include "pt2pt/lanes.h"
#include "pt2pt/lost.h"
#include "pt2pt/pending.h"
#include "pt2pt/protocol.h"

#include <stdlib.h>
#include <string.h>

/* A message that waits for room. */
struct said {
    struct pending pending;
    uint32_t n;        /* bytes of data */
    uint32_t in_parts; /* bytes of head and data that are out in parts */
    struct pt_long head;
    char data[];
};
static_assert(offsetof(struct said, data) == offsetof(struct said, head) + sizeof(struct pt_long), "as on the wire");

static struct said *said_of(struct pending *op) { return container_of(op, struct said, pending); }

/* NULL with words when memory is out. */
static struct said *said_new(unsigned id, uint64_t h0, uint64_t h1, const void *data, size_t n)
{
    struct said *s = malloc(sizeof *s + n);
    if (!s) {
        err_set(TERN_ERR_NOMEM, "no memory to keep a message of %zu bytes until it can be sent", n);
        return NULL;
    }
    *s = (struct said){.n = (uint32_t)n, .head = {.h0 = h0, .h1 = h1, .id = id}};
    if (n) memcpy(s->data, data, n);
    return s;
}

static int send_parts(struct peer *p, struct said *s)
{
    uint32_t bytes = (uint32_t)sizeof s->head + s->n, most = p->ep.max_short / 2;
    const char *from = (const char *)s + offsetof(struct said, head);
    int rc = 0;
    while (!rc && s->in_parts < bytes) {
        uint32_t n = (uint32_t)min_size(most, bytes - s->in_parts);
        rc = p->ep.am_short(&p->ep, AM_PART, bytes, s->in_parts, from + s->in_parts, n);
        if (!rc) s->in_parts += n;
    }
    return rc;
}

/* One attempt: 0, TERN_AGAIN or a code. */
static int send_said(struct peer *p, struct said *s)
{
    const struct pt_long *h = &s->head;
    bool whole = !s->in_parts && s->n <= p->ep.max_short;
    int rc = whole ? p->ep.am_short(&p->ep, h->id, h->h0, h->h1, s->data, s->n) : send_parts(p, s);
    if (!rc) peer_look_again(p);
    return rc;
}

static void drop(struct lane *l, struct peer *p, struct pending *op)
{
    (void)l, (void)p;
    free(said_of(op));
}

/* ---- of this layer ---- */

/* It cannot go out. Credit is nothing to a peer that has left, which sessions may do without a barrier; a peer that is
 * owed another answer is lost. */
static TERN_COLD void unanswered(struct peer *p, unsigned id)
{
    if (id != AM_CREDIT) pt_lose(p);
}

static bool attempt_answer(struct lane *l, struct peer *p, struct pending *op)
{
    struct said *s = said_of(op);
    int rc = send_said(p, s);
    if (rc == TERN_AGAIN) return false;
    if (rc) unanswered(p, s->head.id);
    drop(l, p, op);
    return true;
}

/* It concerned what the other side has no more. */
static void void_answer(struct lane *l, uint32_t index, struct pending *op)
{
    (void)index;
    drop(l, NULL, op);
}

static const struct pending_ops answer = {.attempt = attempt_answer, .end = drop, .anew = void_answer};

static TERN_COLD void park_answer(struct lane *l, struct peer *p, unsigned id, uint64_t h0, uint64_t h1, const void *data,
                                  size_t n)
{
    struct said *s = said_new(id, h0, h1, data, n);
    if (!s || pending_park(l, p, &s->pending, &answer)) lane_fatal("a peer cannot be answered");
}

void lane_say(struct lane *l, struct peer *p, unsigned id, uint64_t h0, uint64_t h1, const void *data, size_t n)
{
    assert(n <= LANE_SAY_MAX);
    if (unlikely(p->lost || p->flags & PEER_CLOSING)) return;
    if (unlikely(!peer_is_connected(p)) && !peer_connect(p->index)) {
        unanswered(p, id);
        return;
    }
    int rc = pending_is_clear(l, p) ? p->ep.am_short(&p->ep, id, h0, h1, data, n) : TERN_AGAIN;
    if (likely(!rc)) peer_look_again(p);
    else if (rc == TERN_AGAIN) park_answer(l, p, id, h0, h1, data, n);
    else unanswered(p, id);
}

/* ---- of the layers above ---- */

static bool attempt_message(struct lane *l, struct peer *p, struct pending *op)
{
    int rc = send_said(p, said_of(op));
    if (rc == TERN_AGAIN) return false;
    if (rc) pt_lose(p);
    drop(l, p, op);
    return true;
}

/* The layer has something to tell that process, by whichever connection. */
static void message_anew(struct lane *l, uint32_t index, struct pending *op);
static const struct pending_ops message = {.attempt = attempt_message, .end = drop, .anew = message_anew};

static void message_anew(struct lane *l, uint32_t index, struct pending *op)
{
    struct peer *p = peer_get(index);
    said_of(op)->in_parts = 0;
    if (!p || p->lost || pending_park(l, p, op, &message)) drop(l, p, op);
}

static int keep_message(struct lane *l, struct peer *p, unsigned id, uint64_t h0, uint64_t h1, const void *data, size_t n)
{
    struct said *s = said_new(id, h0, h1, data, n);
    if (!s) return TERN_ERR_NOMEM;
    int rc = !pending_is_clear(l, p) || n <= p->ep.max_short ? TERN_AGAIN : send_said(p, s);
    if (rc == TERN_AGAIN) {
        rc = pending_park(l, p, &s->pending, &message);
        if (!rc) return 0;
    }
    if (rc && s->in_parts) pt_lose(p); /* also for want of memory: the rest of it never comes */
    free(s);
    return rc;
}

static int send_message(struct lane *l, struct peer *p, unsigned id, uint64_t h0, uint64_t h1, const void *data, size_t n)
{
    bool whole = pending_is_clear(l, p) && n <= p->ep.max_short;
    int rc = whole ? p->ep.am_short(&p->ep, id, h0, h1, data, n) : TERN_AGAIN;
    if (!rc) peer_look_again(p);
    return rc == TERN_AGAIN ? keep_message(l, p, id, h0, h1, data, n) : rc;
}

/* Lock held. */
static int message_to(struct lane *l, uint32_t index, unsigned id, uint64_t h0, uint64_t h1, const void *data, size_t n)
{
    if (n > PT_MESSAGE_LARGEST)
        return err_set(TERN_ERR_ARG, "a message of %zu bytes: at most %d can be sent", n, PT_MESSAGE_LARGEST);
    struct peer *p = peer_get(index);
    int rc = !p ? TERN_ERR_PEER : p->lost ? err_set(TERN_ERR_PEER, "%s", p->lost) : send_message(l, p, id, h0, h1, data, n);
    if (rc && rc != TERN_ERR_NOMEM && p && !p->lost) pt_lose(p);
    if (rc && p && p->lost) rc = err_set(TERN_ERR_PEER, "%s", p->lost);
    return rc;
}

int pt_message(uint32_t index, unsigned id, uint64_t h0, uint64_t h1, const void *data, size_t n)
{
    struct lane *l = lanes_first();
    lane_enter(l);
    int rc = message_to(l, index, id, h0, h1, data, n);
    lane_leave(l);
    return rc;
}

int pt_message_in(struct comm *c, int32_t rank, unsigned id, const void *data, size_t n)
{
    return message_to(c->lane, comm_index(c, rank), id, c->ctx, 0, data, n);
}
