/*
 * offer.c - large messages inside a node: offers, and both sides copying chunks
 * (protocol.h says how).
 */
#include "base/err.h"
#include "base/sanitizer.h"
#include "copy/copy.h"
#include "pt2pt/api.h"
#include "pt2pt/check.h"
#include "pt2pt/limits.h"
#include "pt2pt/lost.h"
#include "pt2pt/pending.h"
#include "pt2pt/protocol.h"
#include "pt2pt/rndv/ahead.h"
#include "pt2pt/rndv/ready.h"
#include "pt2pt/ways.h"
#include "transport/arena.h"
#include "transport/endpoint.h"
#include "type/cursor.h"

#include <string.h>

/* r->cookie of a send until its CTS: what the RTS says of the transfer. Not [0], see request.pending */
enum { OFFER = 1 };
/* r->cookie of a receive, see also stream.c */
enum { FAULT = 1, SENDER = 3 }; /* FAULT: what is wrong with the message, minus a code */

static struct pt_offer *offer_of(const struct request *r) { return r->xfer; }

/* Is the transfer of a send the receiver's? */
static bool is_of_receiver(const struct request *r) { return (r->cookie[OFFER] & (CACHE_LINE - 1)) == RTS_READY; }

/* Does something follow the end of the message at either side, for which a helper has to be woken? What only the program waits for, a
 * thread of the program finds. */
static bool goes_on(const struct request *r) { return r->ctx & CTX_COLL; }

/*
 * The side that copies, where both can:
 *
 *     a thread waits here                        this side, by that thread
 *     none waits, but the other side sees this   the other side: a thread of it is in the library, or it has not armed its helper yet,
 *                                                and looks once more after that
 *     neither                                    this side, by its helper
 *
 * So if the callers of both sides leave at once, one of the two helpers copies.
 */
static bool a_thread_waits(void) { return atomic_load_explicit(&waits.waiting, memory_order_relaxed); }
static bool is_left_to_other(const struct request *r) { return !a_thread_waits() && ep_sees(&r->peer->ep); }

/* ---- the sender ---- */

/* Marks a send that has no transfer: it goes out by another way. */
static struct pt_offer no_offer;

/* The other side does not look at the transfer any more. */
static void free_offer(struct pt_offer *o)
{
    if (o->receiver_of) ready_closed(o->receiver_of - 1);
    peer_shared_free(o, sizeof *o);
}

/* An operation has ended here. Its transfer is kept until the other side has seen that. Whenever a new one is made, the oldest two of the
 * lane are looked at, which keeps their number near that of the transfers in progress. */
void offers_retire(struct lane *l, struct pt_offer *o)
{
    struct rndv *of = &l->rndv;
    if (transfer_life(&o->transfer) == TRANSFER_CLOSED) {
        free_offer(o);
        return;
    }
    o->next_retired = NULL;
    *(of->retired_tail ? &of->retired_tail->next_retired : &of->retired_head) = o;
    of->retired_tail = o;
}

void offers_free_some(struct lane *l)
{
    struct rndv *of = &l->rndv;
    for (int i = 0; i < 2 && of->retired_head; i++) {
        struct pt_offer *o = of->retired_head;
        of->retired_head = o->next_retired;
        if (!of->retired_head) of->retired_tail = NULL;
        offers_retire(l, o);
    }
}

void offer_say_from(struct pt_offer *o, const struct request *r)
{
    char *at = (char *)(uintptr_t)r->buf + r->type->true_lb;
    o->transfer.chunk = transfer_chunk((uint64_t)r->bytes, (uint64_t)limits_chunk.copied);
    transfer_say(&o->transfer, TRANSFER_FROM, OFFER_NUMBER, at, arena_place(at, (size_t)r->bytes), (uint64_t)r->bytes);
}

void pt_offer_make(struct request *r)
{
    enum way way = ways_best(r->peer, WAY_MAPPED, r->type->contig, r->bytes);
    uint64_t off = way == WAY_BULK ? RTS_BULK : 0;
    struct pt_offer *o = NULL;
    offers_free_some(lane_of(r));
    if (way == WAY_MAPPED || way == WAY_DIRECT) o = peer_shared_alloc(sizeof *o, &off);
    if (o) offer_say_from(o, r);
    r->xfer = o ? o : &no_offer;
    r->cookie[OFFER] = off;
}

int pt_offer_send_rts(struct request *r)
{
    struct pt_rts rts = {r->id, (uint64_t)r->bytes, r->cookie[OFFER]};
    struct lane *l = lane_of(r);
    bool offered = r->xfer != &no_offer;
    if (!wires_threaded && r->peer->ep.ops->sent) r->cookie[READY_SENT] = r->peer->ep.ops->sent(&r->peer->ep);
    if (!wires_threaded && r->peer->ready) ready_offered(r->peer);
    /* before the call: a message to ourselves is answered during it */
    if (offered) worklist_push(&l->steps, &l->rndv.outgoing, r);
    ids_await(&l->ids, r, AWAIT_CTS);
    int rc = r->peer->ep.am_short(&r->peer->ep, AM_RTS, r->ctx, env_pack(r->comm->rank, r->tag), &rts, sizeof rts);
    if (rc) ids_await_no_more(&l->ids, r, AWAIT_CTS);
    else if (!is_of_receiver(r)) peer_look_again(r->peer); /* else this side can do it all */
    if (rc && offered) worklist_remove(&l->rndv.outgoing, r);
    return rc;
}

/* Sends to a receive that was announced. False: there is none, or no room for the RTS. */
static bool send_to_ready(struct request *r)
{
    struct pt_offer *o = ready_take(r, &r->cookie[OFFER]);
    if (!o) return false;
    r->xfer = o;
    bool gone = !pt_offer_send_rts(r);
    if (gone) ready_taken(r);
    else ready_give_back(o);
    return gone;
}

void pt_offer_start(struct request *r)
{
    int rc = ids_give(&lane_of(r)->ids, r, 0);
    if (!rc) rc = pending_prepare(lane_of(r), r->peer); /* it may wait for its turn among others (stream.c) */
    if (unlikely(rc)) {
        lane_finish(r, rc);
        return;
    }
    if (!wires_threaded && r->peer->ready && send_to_ready(r)) return;
    if (unlikely(lane_puts_off(lane_of(r), r->bytes)) && pt_send_is_call(r->peer)) {
        r->xfer = &no_offer;
        r->cookie[OFFER] = 0;
        pt_send_put_off(r);
        return;
    }
    if (ahead_send(r, false)) return;
    pt_offer_make(r);
    pt_send_begin(r);
}

void pt_offer_discard(struct request *r)
{
    if (r->xfer && r->xfer != &no_offer) {
        if (is_of_receiver(r)) transfer_close(&offer_of(r)->transfer);
        else peer_shared_free(r->xfer, sizeof(struct pt_offer));
    }
    r->xfer = NULL;
}

struct request *offer_unmatched(struct lane *l, const struct peer *p, uint64_t ctx, uint64_t env)
{
    struct request *first = NULL; /* the list is in no order (worklist_some) */
    list_each (at, next, &l->rndv.outgoing.requests) {
        struct request *r = container_of(at, struct request, link);
        bool same = r->peer == p && r->ctx == ctx && env_pack(r->comm->rank, r->tag) == env && !is_of_receiver(r);
        bool earlier = same && (!first || r->cookie[READY_SENT] < first->cookie[READY_SENT]);
        if (earlier && !offer_is_met(offer_of(r))) first = r;
    }
    return first;
}

void offer_replace(struct request *r, struct pt_offer *o, uint64_t at)
{
    pt_offer_discard(r);
    r->xfer = o;
    r->cookie[OFFER] = at;
}

void pt_offer_withdraw(struct request *r)
{
    if (r->xfer && r->xfer != &no_offer) worklist_remove(&lane_of(r)->rndv.outgoing, r);
    pt_offer_discard(r);
}

/* The receiver may look at the transfer as long as it lives, so that is not used again. */
void pt_offer_abandon(struct request *r)
{
    struct pt_offer *o = r->xfer;
    struct peer *p = r->peer;
    if (o && o != &no_offer) {
        worklist_remove(&lane_of(r)->rndv.outgoing, r);
        if (!is_of_receiver(r)) offers_retire(lane_of(r), o);
    }
    r->xfer = NULL;
    pt_end_lost(r, p);
}

/* The error of a transfer that is over, in words also if the failure was the other side's. */
static int error_of(struct pt_offer *o)
{
    int error = transfer_error(&o->transfer);
    unsigned long long bytes = transfer_bytes(&o->transfer);
    if (error && err_code() != error) /* ours would have been put in words just now */
        err_set(error, "the other process could not copy its part of a message of %llu bytes", bytes);
    return error;
}

/* Copies the next chunk, if one is left; false: none was. */
static bool copy_chunk(struct request *r, enum transfer_side side)
{
    struct tp_ep *ep = &r->peer->ep;
    unsigned did = transfer_go_on(&offer_of(r)->transfer, side, ep);
    if (did & TRANSFER_MOVED) lane_has_read(r);
    if (did & TRANSFER_ENDED) ep->ops->nudge(ep, goes_on(r));
    return did;
}

/* Can the other side copy all of it? As far as is known here: it reaches what this one would. */
static bool other_can_copy(const struct request *r, enum transfer_side side)
{
    const struct transfer *t = &offer_of(r)->transfer;
    bool helpless = atomic_load_explicit(&t->end[!side].helpless, memory_order_relaxed);
    return !helpless && transfer_reaches(t, !side, &r->peer->ep);
}

/* Has this side something to do: chunks to copy, or an end that something waits for? */
static bool must_act(const struct request *r, enum transfer_side side)
{
    const struct transfer *t = &offer_of(r)->transfer;
    if (!offer_is_met(offer_of(r))) return false;
    if (transfer_is_over(t)) return a_thread_waits() || goes_on(r);
    if (!transfer_has_work(t) || atomic_load_explicit(&t->end[side].helpless, memory_order_relaxed)) return false;
    return !(other_can_copy(r, side) && is_left_to_other(r));
}

int pt_outgoing_step(struct request *r)
{
    struct pt_offer *o = offer_of(r);
    if (!offer_is_met(o)) return 0;
    bool copied = copy_chunk(r, TRANSFER_FROM);
    if (!transfer_is_over(&o->transfer)) return copied;
    int error = error_of(o);
    if (error == TERN_ERR_UNSUPPORTED) return copied; /* the receiver will ask for fragments */
    worklist_remove(&lane_of(r)->rndv.outgoing, r);
    r->xfer = NULL;
    if (is_of_receiver(r)) transfer_close(&o->transfer);
    else offers_retire(lane_of(r), o);
    lane_finish(r, error);
    return 1;
}

/* So many sends are looked at in a turn, as most of them may still wait for their receivers. */
#define OUTGOING_TURN 64

static int outgoing_poll(struct step *s)
{
    int n = ready_look();
    return n + worklist_some(worklist_of(s), pt_outgoing_step, OUTGOING_TURN);
}

/* Not one that the receiver will ask for once more, in fragments. */
static bool has_to_be_sent(const struct request *r)
{
    const struct transfer *t = &offer_of(r)->transfer;
    return must_act(r, TRANSFER_FROM) && !(transfer_is_over(t) && transfer_error(t) == TERN_ERR_UNSUPPORTED);
}

static bool outgoing_idle(struct step *s)
{
    list_each(a, next, &worklist_of(s)->requests)
        if (has_to_be_sent(container_of(a, struct request, link))) return false;
    return ready_waits();
}

/* Sends that wait to be matched, offered or synchronous; those that had been matched are in no list. */
static void outgoing_end(struct step *s, struct peer *p)
{
    uint32_t at = 0;
    for (struct id_entry *e; (e = ids_next(&lane_of_step(s)->ids, p, &at)); at++) {
        if (!e->request || !(e->awaits & (AWAIT_CTS | AWAIT_ACK))) continue;
        e->awaits &= ~(uint32_t)AWAIT_CANCELLED;
        pt_offer_abandon(e->request);
    }
}

static const struct step_ops outgoing_ops = {.name = "large sends offered",
                                             .poll = outgoing_poll,
                                             .idle = outgoing_idle,
                                             .busy_with = worklist_has,
                                             .peer_end = outgoing_end};

/* ---- the receiver ---- */

/* The sender makes one transfer after another at the same place, for receives in different lanes. It does so when it has
 * heard that the receiver has done with the last one: what threads of the receiver do there is ordered through the sender
 * (unmap_offer). */
static struct pt_offer *map_offer(struct peer *p, uint64_t off)
{
    if (!off || off == RTS_BULK || (!peer_is_connected(p) && !peer_connect(p->index))) return NULL;
    if (!(p->ep.caps & TP_CAP_MAP)) return NULL;
    struct pt_offer *o = ep_map(&p->ep, off, sizeof *o);
    if (o) sanitizer_acquired(o);
    return o;
}

/* This process does not look at the transfer any more. The sender is told so after this call. */
static void unmap_offer(struct pt_offer *o)
{
    if (o) sanitizer_released(o);
}

/* The end of an offer that needs no copying by us any more. */
static void end_incoming(struct request *r, struct pt_offer *o)
{
    int error = error_of(o);
    r->xfer = NULL;
    if (o->receiver_of) {
        offers_retire(lane_of(r), o);
    } else {
        unmap_offer(o);
        transfer_close(&o->transfer);
    }
    if (error == TERN_ERR_UNSUPPORTED) { /* the system began to refuse the copying: all over again, another way */
        pt_stream_ask(r, r->peer, r->cookie[SENDER], (uint64_t)r->result.bytes);
        return;
    }
    if (!error) error = -(int)r->cookie[FAULT];
    lane_finish(r, error);
}

/* Can one of the two sides copy it? What we may do, the sender may; else it says so. */
static bool one_can_copy(const struct tp_ep *ep, const struct pt_offer *o, uint64_t place)
{
    bool in_arena = o->transfer.end[TRANSFER_FROM].place || place;
    return (ep->caps & TP_CAP_GETPUT) || (in_arena && (ep->caps & TP_CAP_ARENA));
}

/* False: neither of them can. */
static bool accept_offer(struct request *r, struct pt_offer *o)
{
    struct tp_ep *ep = &r->peer->ep; /* the request may be gone after its end */
    size_t n = (size_t)r->result.bytes;
    char *to = (char *)(uintptr_t)r->buf + r->type->true_lb;
    uint64_t place = arena_place(to, n);
    if (!one_can_copy(ep, o, place)) return false;
    transfer_say(&o->transfer, TRANSFER_TO, OFFER_NUMBER, to, place, n);
    r->xfer = o;
    /* the other side's helper is not needed if all is done here */
    bool helper = n ? !transfer_reaches(&o->transfer, TRANSFER_TO, ep) || !background_is_helped() : goes_on(r);
    if (n) {
        worklist_push(&lane_of(r)->steps, &lane_of(r)->rndv.incoming, r);
        lane_adds_work(lane_of(r));
    } else {
        end_incoming(r, o);
    }
    ep->ops->nudge(ep, helper);
    return true;
}

/* The sender has taken the transfer that this receive has left. */
static void join_transfer(struct request *r, bool taken)
{
    struct pt_offer *o = taken ? ready_meet(r) : NULL;
    if (!o) {
        pt_violation(r->peer, "a large message for a receive that is not ready for it");
        pt_end_lost(r, r->peer);
        return;
    }
    r->xfer = o;
    worklist_push(&lane_of(r)->steps, &lane_of(r)->rndv.incoming, r);
    lane_adds_work(lane_of(r));
}

void pt_offer_matched(struct request *r, struct peer *from, int32_t source, int32_t tag, const struct pt_rts *rts)
{
    bool taken = unlikely(r->course & REQ_READY) && ready_is_taken_by(r, rts);
    r->result.source = source;
    r->result.tag = tag;
    r->result.bytes = (int64_t)min_size(rts->bytes, (size_t)r->bytes);
    int fault = unlikely(rts->bytes > (uint64_t)r->bytes) ? pt_too_long(r, source, tag, rts->bytes) : 0;
    if (unlikely(pt_checking) && !fault) fault = pt_check_receive(r, source, tag, rts->bytes);
    r->cookie[FAULT] = (uint64_t)-fault;
    r->cookie[SENDER] = rts->send;
    r->peer = from;
    if (unlikely(from->lost)) {
        pt_end_lost(r, from);
        return;
    }
    if (unlikely(taken || rts->offer & RTS_READY)) {
        join_transfer(r, taken);
        return;
    }
    if (rts->offer == RTS_BULK && r->type->contig && r->result.bytes && ways_has(from, WAY_BULK)) {
        pt_bulk_ask(r);
        return;
    }
    struct pt_offer *o = map_offer(from, rts->offer);
    if (o && r->type->contig && accept_offer(r, o)) return;
    unmap_offer(o);
    pt_stream_ask(r, from, rts->send, (uint64_t)r->result.bytes);
}

int pt_incoming_step(struct request *r)
{
    struct pt_offer *o = offer_of(r);
    if (unlikely(!offer_is_met(o))) return 0; /* a sender that takes the transfer of a receive rings when it has said its end */
    uint64_t bytes = transfer_bytes(&o->transfer);
    if (unlikely(bytes != (uint64_t)r->result.bytes)) {
        pt_violation(r->peer, "%llu bytes for a receive that has met a message of %lld", (unsigned long long)bytes,
                     (long long)r->result.bytes);
        return 0; /* lost.c ends it next */
    }
    bool copied = copy_chunk(r, TRANSFER_TO);
    if (!transfer_is_over(&o->transfer)) return copied;
    worklist_remove(&lane_of(r)->rndv.incoming, r);
    end_incoming(r, o);
    return 1;
}

static int incoming_poll(struct step *s) { return worklist_all(worklist_of(s), pt_incoming_step); }

static bool incoming_idle(struct step *s)
{
    list_each(a, next, &worklist_of(s)->requests)
        if (must_act(container_of(a, struct request, link), TRANSFER_TO)) return false;
    return true;
}

/* The sender is lost: it can claim no more chunks. */
static void abandon(struct request *r)
{
    transfer_stop(&offer_of(r)->transfer);
    r->xfer = NULL;
    pt_end_lost(r, r->peer);
}

static void incoming_end(struct step *s, struct peer *p) { worklist_end(worklist_of(s), p, abandon); }

static const struct step_ops incoming_ops = {.name = "large receives",
                                             .poll = incoming_poll,
                                             .idle = incoming_idle,
                                             .busy_with = worklist_has,
                                             .peer_end = incoming_end};

void offer_open(struct lane *l)
{
    worklist_open(&l->steps, &l->rndv.incoming, &incoming_ops);
    worklist_open(&l->steps, &l->rndv.outgoing, &outgoing_ops);
}
