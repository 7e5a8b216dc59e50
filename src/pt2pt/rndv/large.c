/*
 * large.c - large messages inside a node: offers, and both sides copying chunks
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

/* r->cookie of a send until its CTS: what the RTS says of the descriptor. Not [0], see request.pending */
enum { OFFER = 1 };
/* r->cookie of a receive, see also stream.c */
enum { FAULT = 1, SENDER = 3 }; /* FAULT: what is wrong with the message, minus a code */

static struct pt_offer *offer_of(const struct request *r) { return r->xfer; }

/* Is the descriptor of a send the receiver's? */
static bool is_of_receiver(const struct request *r) { return (r->cookie[OFFER] & (CACHE_LINE - 1)) == RTS_READY; }

/* Does something follow upon the end of a message at either side, for which a helper has to be woken? What a program waits for it
 * finds by itself. */
static bool goes_on(const struct request *r) { return r->ctx & CTX_COLL; }

/* While a thread waits here, it takes part in all that can be done. Else it is asked for the helper, which leaves the copying to the
 * other side if that can do it and sees it: a thread of it is inside, or it has not armed its helper yet, and will look behind
 * that. So of two sides that are left at once one calls its helper. */
static bool is_waited_for(void) { return atomic_load_explicit(&waits.waiting, memory_order_relaxed); }
static bool is_left_to_other(const struct request *r) { return !is_waited_for() && ep_sees(&r->peer->ep); }

/* ---- the sender ---- */

/* Marks a send that has no descriptor: it goes out by another way. */
static struct pt_offer no_offer;

/* The other side looks at it no more. */
static void free_offer(struct pt_offer *o)
{
    if (o->receiver_of) ready_closed(o->receiver_of - 1);
    peer_shared_free(o, sizeof *o);
}

/* An operation is over here; the other side may still have to see that: its descriptor is kept until then. First in, first out: a look
 * at the oldest two of the lane whenever a new one is made keeps their number near that of transfers in progress. */
void offers_retire(struct lane *l, struct pt_offer *o)
{
    struct rndv *of = &l->rndv;
    /* acquire: the other's last look comes before we use the memory again */
    if (atomic_load_explicit(&o->state, memory_order_acquire) == OFFER_CLOSED) {
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

void pt_offer_make(struct request *r)
{
    enum way way = ways_best(r->peer, WAY_MAPPED, r->type->contig, r->bytes);
    uint64_t off = way == WAY_BULK ? RTS_BULK : 0;
    struct pt_offer *o = NULL;
    offers_free_some(lane_of(r));
    if (way == WAY_MAPPED || way == WAY_DIRECT) o = peer_shared_alloc(sizeof *o, &off);
    if (o) {
        o->from = (uintptr_t)r->buf + (uintptr_t)r->type->true_lb;
        o->from_place = arena_place((void *)(uintptr_t)o->from, (size_t)r->bytes);
    }
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

/* To a receive that is ready. False: there is none, or no room to say so. */
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

/* This side looks at a descriptor of the other no more. release: pairs with the acquire in offers_retire */
static void close_offer(struct pt_offer *o) { atomic_store_explicit(&o->state, OFFER_CLOSED, memory_order_release); }

void pt_offer_discard(struct request *r)
{
    if (r->xfer && r->xfer != &no_offer) {
        if (is_of_receiver(r)) close_offer(r->xfer);
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
        if (earlier && atomic_load_explicit(&offer_of(r)->state, memory_order_acquire) == OFFER_OPEN) first = r;
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

/* The receiver may look at the descriptor as long as it lives, so that is not used again. */
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

/* A copy of n bytes failed: the chunks that nobody claimed need not be tried. Returns the bytes that count as done. */
static TERN_COLD uint64_t give_up(struct pt_offer *o, int error, uint64_t n)
{
    int32_t none = 0;
    atomic_compare_exchange_strong_explicit(&o->error, &none, error, memory_order_relaxed, memory_order_relaxed);
    uint64_t at = atomic_fetch_add_explicit(&o->next, o->bytes, memory_order_relaxed);
    return n + (at < o->bytes ? o->bytes - at : 0);
}

/* The error of a transfer that is over, in words also if the failure was the other side's. */
static int error_of(struct pt_offer *o)
{
    int error = atomic_load_explicit(&o->error, memory_order_relaxed); /* ordered by the load of `state` */
    if (error && err_code() != error) /* ours would have been put in words just now */
        err_set(error, "the other process could not copy its part of a message of %llu bytes", (unsigned long long)o->bytes);
    return error;
}

/* n more bytes are accounted for; who adds the last ones says so. */
static uint64_t add_done(const struct request *r, struct pt_offer *o, uint64_t n)
{
    /* acq_rel: whoever adds the last chunk sees the others' errors, and its DONE covers their copies */
    uint64_t done = n + atomic_fetch_add_explicit(&o->done, n, memory_order_acq_rel);
    if (!n || done < o->bytes) return n;
    atomic_store_explicit(&o->state, OFFER_DONE, memory_order_release); /* pairs with the steps' acquire */
    r->peer->ep.ops->nudge(&r->peer->ep, goes_on(r));
    return n;
}

/* Can this side reach memory that lies at `place` of the peer's arena, or anywhere (0)? */
static bool can_reach(const struct tp_ep *ep, uint64_t place)
{
    return (ep->caps & TP_CAP_GETPUT) || (place && (ep->caps & TP_CAP_ARENA));
}

/* Copies n bytes at `at` of the message: through the mapping of its arena if there is one, else the system does it. */
static int copy_piece(struct tp_ep *ep, const struct pt_offer *o, bool sending, uint64_t at, uint64_t n)
{
    uint64_t place = sending ? o->to_place : o->from_place;
    void *there = place && (ep->caps & TP_CAP_ARENA) ? ep_map_arena(ep, place + at, n) : NULL;
    struct iovec src = {(void *)(uintptr_t)(o->from + at), n}, dst = {(void *)(uintptr_t)(o->to + at), n};
    if (there) {
        copy_memory(sending ? there : dst.iov_base, sending ? src.iov_base : there, n);
        return 0;
    }
    if (!(ep->caps & TP_CAP_GETPUT)) return TERN_ERR_UNSUPPORTED; /* no arena after all */
    return sending ? ep_put(ep, &src, 1, &dst, 1) : ep_get(ep, &dst, 1, &src, 1);
}

/* This side can copy nothing, or no more. The other one does it all if it can; else the receiver changes the way, see
 * end_incoming. */
static TERN_COLD uint64_t leave_it(const struct request *r, struct pt_offer *o, bool sending)
{
    bool other_copies = sending ? o->receiver_copies : !o->receiver_copies;
    return other_copies ? 0 : add_done(r, o, give_up(o, TERN_ERR_UNSUPPORTED, 0));
}

/* Copies the next chunk of an offer if one is left; returns its bytes, 0 if none was. */
static uint64_t copy_chunk(struct request *r, struct pt_offer *o, bool sending)
{
    struct tp_ep *ep = &r->peer->ep;
    if (atomic_load_explicit(&o->next, memory_order_relaxed) >= o->bytes) return 0;
    if (unlikely(!can_reach(ep, sending ? o->to_place : o->from_place))) return leave_it(r, o, sending);
    /* relaxed: only who gets which chunk matters; the addresses were published by `state` */
    uint64_t at = atomic_fetch_add_explicit(&o->next, o->chunk, memory_order_relaxed);
    if (at >= o->bytes) return 0;
    uint64_t n = min_size(o->chunk, o->bytes - at);
    int rc = copy_piece(ep, o, sending, at, n);
    lane_has_read(r);
    return add_done(r, o, likely(!rc) ? n : give_up(o, rc, n));
}

static bool is_ready(const struct request *r)
{
    struct pt_offer *o = offer_of(r);
    uint32_t state = atomic_load_explicit(&o->state, memory_order_acquire); /* as in pt_outgoing_step */
    bool unsupported = atomic_load_explicit(&o->error, memory_order_relaxed) == TERN_ERR_UNSUPPORTED;
    if (state >= OFFER_DONE) return !unsupported && (is_waited_for() || goes_on(r));
    if (state != OFFER_MATCHED || atomic_load_explicit(&o->next, memory_order_relaxed) >= o->bytes) return false;
    if (o->receiver_copies && is_left_to_other(r)) return false;
    return can_reach(&r->peer->ep, o->to_place) || !o->receiver_copies; /* in the latter case it must be said */
}

int pt_outgoing_step(struct request *r)
{
    struct pt_offer *o = offer_of(r);
    /* acquire: pairs with the release of MATCHED (addresses), DONE and CLOSED (data) */
    uint32_t state = atomic_load_explicit(&o->state, memory_order_acquire);
    if (state == OFFER_OPEN) return 0;
    if (state == OFFER_MATCHED && copy_chunk(r, o, true)) return 1;
    state = atomic_load_explicit(&o->state, memory_order_acquire);
    if (state < OFFER_DONE) return 0;
    int error = error_of(o);
    if (error == TERN_ERR_UNSUPPORTED) return 0; /* the receiver will ask for fragments */
    worklist_remove(&lane_of(r)->rndv.outgoing, r);
    r->xfer = NULL;
    if (is_of_receiver(r)) close_offer(o);
    else offers_retire(lane_of(r), o);
    lane_finish(r, error);
    return 1;
}

/* Sends that nothing may have happened to: so many are looked at in a turn. */
#define OUTGOING_TURN 64

static int outgoing_poll(struct step *s)
{
    int n = ready_look();
    return n + worklist_some(worklist_of(s), pt_outgoing_step, OUTGOING_TURN);
}

static bool outgoing_idle(struct step *s)
{
    list_each(a, next, &worklist_of(s)->requests)
        if (is_ready(container_of(a, struct request, link))) return false;
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

/* Bytes of a chunk: large messages in pieces so that both sides get some, small ones in two. */
uint32_t offer_chunk(uint64_t bytes)
{
    uint64_t half = round_up(bytes / 2, 4096);
    uint64_t most = (uint64_t)limits_chunk.copied;
    return (uint32_t)(half < most ? (half ? half : 4096) : most);
}

/* The sender makes one descriptor after another at the same place, for receives in different lanes. It does so when it has
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

/* This process looks at it no more. The sender is told of that after this call. */
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
        close_offer(o);
    }
    if (error == TERN_ERR_UNSUPPORTED) { /* the system began to refuse the copying: all over again, another way */
        pt_stream_ask(r, r->peer, r->cookie[SENDER], (uint64_t)r->result.bytes);
        return;
    }
    if (!error) error = -(int)r->cookie[FAULT];
    lane_finish(r, error);
}

/* Can one of the two sides copy it? Writes down what the sender has to know for that. */
static bool one_can_copy(const struct request *r, struct pt_offer *o)
{
    const struct tp_ep *ep = &r->peer->ep;
    o->to = (uintptr_t)r->buf + (uintptr_t)r->type->true_lb;
    o->to_place = arena_place((void *)(uintptr_t)o->to, (size_t)r->result.bytes);
    o->receiver_copies = can_reach(ep, o->from_place);
    return o->receiver_copies || can_reach(ep, o->to_place); /* what we may do, the sender may: else it says so */
}

static void accept_offer(struct request *r, struct pt_offer *o)
{
    o->bytes = (uint64_t)r->result.bytes;
    o->chunk = offer_chunk(o->bytes);
    r->xfer = o;
    if (!o->bytes) {
        struct tp_ep *ep = &r->peer->ep; /* the request may be gone after its end */
        bool goes_on = r->ctx & CTX_COLL;
        end_incoming(r, o);
        ep->ops->nudge(ep, goes_on);
        return;
    }
    atomic_store_explicit(&o->state, OFFER_MATCHED, memory_order_release); /* the addresses are there */
    r->peer->ep.ops->nudge(&r->peer->ep, !o->receiver_copies || !background_is_helped()); /* else all is done here */
    worklist_push(&lane_of(r)->steps, &lane_of(r)->rndv.incoming, r);
    lane_adds_work(lane_of(r));
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
    bool taken = unlikely(r->course & REQ_READY) && !ready_refuse(r, rts);
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
    if (o && r->type->contig && one_can_copy(r, o)) {
        accept_offer(r, o);
        return;
    }
    unmap_offer(o);
    pt_stream_ask(r, from, rts->send, (uint64_t)r->result.bytes);
}

/* A sender that takes the transfer of a receive has written down all, and rings. acquire: pairs with the release of MATCHED */
static bool is_filled(struct pt_offer *o) { return atomic_load_explicit(&o->state, memory_order_acquire) >= OFFER_MATCHED; }

int pt_incoming_step(struct request *r)
{
    struct pt_offer *o = offer_of(r);
    if (unlikely(!is_filled(o))) return 0;
    if (unlikely(o->receiver_of && o->bytes != (uint64_t)r->result.bytes)) {
        pt_violation(r->peer, "%llu bytes for a receive that has met a message of %lld", (unsigned long long)o->bytes, (long long)r->result.bytes);
        return 0; /* lost.c ends it next */
    }
    uint64_t n = copy_chunk(r, o, false);
    /* acquire: pairs with the release of DONE: the sender's copies are in our memory */
    if (atomic_load_explicit(&o->state, memory_order_acquire) < OFFER_DONE) return n > 0;
    worklist_remove(&lane_of(r)->rndv.incoming, r);
    end_incoming(r, o);
    return 1;
}

static int incoming_poll(struct step *s) { return worklist_all(worklist_of(s), pt_incoming_step); }

/* This side has a chunk to copy, or all is done. */
static bool has_to_do(const struct request *r)
{
    struct pt_offer *o = offer_of(r);
    if (unlikely(!is_filled(o))) return false;
    if (o->receiver_copies && atomic_load_explicit(&o->next, memory_order_relaxed) < o->bytes)
        return !(can_reach(&r->peer->ep, o->to_place) && is_left_to_other(r));
    if (!is_waited_for() && !goes_on(r)) return false;
    return atomic_load_explicit(&o->done, memory_order_acquire) >= o->bytes; /* as in pt_incoming_step */
}

static bool incoming_idle(struct step *s)
{
    list_each(a, next, &worklist_of(s)->requests)
        if (has_to_do(container_of(a, struct request, link))) return false;
    return true;
}

/* Chunks that the sender has not claimed it gets no more. */
static void abandon(struct request *r)
{
    give_up(r->xfer, TERN_ERR_PEER, 0);
    r->xfer = NULL;
    pt_end_lost(r, r->peer);
}

static void incoming_end(struct step *s, struct peer *p) { worklist_end(worklist_of(s), p, abandon); }

static const struct step_ops incoming_ops = {.name = "large receives",
                                             .poll = incoming_poll,
                                             .idle = incoming_idle,
                                             .busy_with = worklist_has,
                                             .peer_end = incoming_end};

void large_open(struct lane *l)
{
    worklist_open(&l->steps, &l->rndv.incoming, &incoming_ops);
    worklist_open(&l->steps, &l->rndv.outgoing, &outgoing_ops);
}
