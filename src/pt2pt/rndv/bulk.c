/*
 * bulk.c - large messages by the wire's own protocol for much data (tp_ops.bulk_send), where both sides lie in one piece.
 *
 *     sender                           receiver
 *     RTS, offer = RTS_BULK   ----->
 *                                      matches it; bulk_recv, tag: the id of the receive
 *                             <-----   CTS, by BY_BULK, with that id and the bytes
 *     bulk_send            = = = = =>
 *     done                             done
 *
 * Matching, truncation and cancelling are over before the wire knows of the message. The receive is posted when the CTS
 * goes out, so nothing comes that has no place. The receiver gives the tag since it knows by itself when no transfer has
 * it any more: an id does not come again.
 *
 * A receive that the wire has no room for now waits in lane.rndv.bulks, and so does its sender, for the CTS; so does a send.
 * When the peer is lost, the end of what the wire works on is the wire's to tell: until then it has the memory.
 */
#include "base/err.h"
#include "pt2pt/api.h"
#include "pt2pt/lost.h"
#include "pt2pt/protocol.h"
#include "pt2pt/say.h"
#include "transport/endpoint.h"

#include <stdlib.h>

/* r->cookie of a send, and of a receive (FAULT and SENDER: as in offer.c). A receive's tag is its id. */
enum { TAG = 0, TO_SEND = 1 };
enum { FAULT = 1, SENDER = 3 };

/* A transfer that the wire works on; its request's xfer. */
struct bulk {
    struct tp_op op;
    struct mail mail; /* that it is over */
    struct request *request;
    bool starting;  /* the call that starts it has not returned */
    bool over;      /* `done` came during that call, with: */
    int rc;
    bool abandoned; /* the peer is lost: the request ends when the wire gives the memory back */
};

static char *place(const struct request *r) { return (char *)r->buf + r->type->true_lb; }

/* The memory is the program's again. A transfer that failed is the end of the peer, if that is not known yet, and ends
 * with what else there is with it (end_peer). */
static void end(struct request *r, int rc)
{
    struct bulk *b = r->xfer;
    bool abandoned = b->abandoned;
    free(b);
    r->xfer = NULL;
    lane_of(r)->rndv.bulks_under_way--;
    if (!rc) lane_finish(r, r->kind == REQ_RECV ? -(int)r->cookie[FAULT] : 0);
    else if (abandoned) pt_end_lost(r, r->peer);
    else pt_lose(r->peer);
}

static void is_over(struct bulk *b, int rc)
{
    b->over = true;
    b->rc = rc;
    if (!b->starting) end(b->request, rc);
}

static void open_over(struct lane *l, struct mail *m)
{
    struct bulk *b = container_of(m, struct bulk, mail);
    (void)l;
    is_over(b, b->rc);
}

/* By a thread that need not be in the lane. No other thread uses `rc` before the transfer is over. */
static TERN_COLD void post_over(struct bulk *b, int rc)
{
    struct lane *l = lane_of(b->request);
    enum deliver_hold h = deliver_begin(l, false);
    if (h) {
        is_over(b, rc);
        deliver_end(l, h);
        return;
    }
    b->rc = rc;
    b->mail.open = open_over;
    deliver_post(l, &b->mail);
}

static void done(struct tp_op *op, int rc)
{
    struct bulk *b = container_of(op, struct bulk, op);
    if (unlikely(wires_threaded)) post_over(b, rc);
    else is_over(b, rc);
}

static int call_wire(struct request *r, struct bulk *b)
{
    struct tp_ep *ep = &r->peer->ep;
    if (r->kind == REQ_RECV) return ep_bulk_recv(ep, r->id, place(r), (size_t)r->result.bytes, &b->op);
    return ep_bulk_send(ep, r->cookie[TAG], place(r), r->cookie[TO_SEND], &b->op);
}

static void clear_to_send(struct request *r)
{
    struct pt_cts cts = {r->id, (uint64_t)r->result.bytes, 0};
    lane_say(lane_of(r), r->peer, AM_CTS, r->cookie[SENDER], BY_BULK, &cts, sizeof cts);
}

/* One attempt: 0; TERN_AGAIN, also for want of memory; or a code. */
static int start(struct request *r)
{
    struct bulk *b = calloc(1, sizeof *b);
    if (!b) return TERN_AGAIN;
    *b = (struct bulk){.op.done = done, .request = r, .starting = true};
    r->xfer = b;
    lane_of(r)->rndv.bulks_under_way++;
    int rc = call_wire(r, b);
    if (rc < 0) {
        free(b);
        r->xfer = NULL;
        lane_of(r)->rndv.bulks_under_way--;
        return rc;
    }
    if (r->kind == REQ_RECV) clear_to_send(r);
    b->starting = false;
    if (rc == TERN_DONE || b->over) end(r, b->rc);
    return 0;
}

/* Starts it, or leaves it in the list for a later turn. True: it is out of the way. */
static bool attempt(struct request *r)
{
    int rc = start(r);
    if (rc == TERN_AGAIN) {
        worklist_push(&lane_of(r)->steps, &lane_of(r)->rndv.bulks, r);
        lane_adds_work(lane_of(r));
    } else if (rc && r->kind == REQ_SEND) pt_lose(r->peer);
    else if (rc) { /* the wire will not: nothing has been said to the sender */
        ids_await_no_more(&lane_of(r)->ids, r, AWAIT_BULK);
        pt_stream_ask(r, r->peer, r->cookie[SENDER], (uint64_t)r->result.bytes);
    }
    return rc != TERN_AGAIN;
}

void pt_bulk_ask(struct request *r)
{
    if (ids_give(&lane_of(r)->ids, r, AWAIT_BULK)) lane_fatal("a large message cannot be received");
    list_init(&r->link);
    attempt(r);
}

void pt_bulk_send(struct request *r, const struct pt_cts *cts)
{
    r->cookie[TAG] = cts->recv;
    r->cookie[TO_SEND] = cts->bytes;
    ids_await(&lane_of(r)->ids, r, AWAIT_BULK);
    list_init(&r->link);
    attempt(r);
}

static int go_on(struct request *r)
{
    if (unlikely(r->peer->lost)) return 0; /* lost.c ends it next */
    worklist_remove(&lane_of(r)->rndv.bulks, r);
    return attempt(r);
}

/* The peer is lost: ends the request as soon as its memory is free. */
static void abandon(struct request *r)
{
    struct bulk *b = r->xfer;
    if (b) {
        b->abandoned = true;
        return;
    }
    if (!list_empty(&r->link)) worklist_remove(&lane_of(r)->rndv.bulks, r); /* else the wire has let it go */
    pt_end_lost(r, r->peer);
}

/* ---- the step ---- */

/* Transfers that wait for room: so many are tried in a turn. */
#define BULKS_TURN 64

static int poll(struct step *s) { return worklist_some(worklist_of(s), go_on, BULKS_TURN); }

static bool is_drained(const struct step *s) { return worklist_is_empty(s) && !lane_of_step(s)->rndv.bulks_under_way; }

static void end_peer(struct step *s, struct peer *p)
{
    uint32_t at = 0;
    for (struct id_entry *e; (e = ids_next(&lane_of_step(s)->ids, p, &at)); at++) {
        if (!e->request || !(e->awaits & AWAIT_BULK)) continue;
        e->awaits &= ~(uint32_t)AWAIT_CANCELLED;
        abandon(e->request);
    }
}

static const struct step_ops ops = {.name = "large messages by the wire's protocol",
                                    .poll = poll,
                                    .room = true,
                                    .idle = step_waits,
                                    .drained = is_drained,
                                    .peer_end = end_peer};

void bulk_open(struct lane *l) { worklist_open(&l->steps, &l->rndv.bulks, &ops); }
