/* ready.c - see ready.h. */
#include "pt2pt/rndv/ready.h"
#include "base/err.h"
#include "base/var.h"
#include "pt2pt/check.h"
#include "pt2pt/dispatch.h"
#include "pt2pt/limits.h"
#include "pt2pt/lost.h"
#include "pt2pt/pending.h"
#include "pt2pt/ways.h"
#include "proc/proc.h"
#include "transport/arena.h"
#include "transport/endpoint.h"

#include <stdlib.h>
#include <string.h>

#define ANNOUNCED_MOST 4 /* receives of a process that one sender keeps */
/* Posted receives. With more of them, or with more than one send under way, no messages are delivered before another operation begins. */
#define FEW 2
#define HEAR_MOST 16    /* messages of a wire that are delivered before a large operation */
#define POSTED_MOST 256 /* with more posted receives a new one is not announced: all of them would have to be compared with it */

/* r->cookie of a receive that is announced */
enum { READY_AT = 4 };

/* What one process knows of such receives between it and a peer: peer.ready, freed with the peer. */
struct ready {
    struct link link; /* in `announcers`, while there is a transfer of the peer's */
    struct peer *peer;
    uint64_t looked; /* what the peer had handled when its transfers were last looked at */
    bool waits;      /* one could be taken when the peer has handled more */
    uint64_t mark;   /* what had been sent to the peer (tp_ops.sent) when all of that was last known not to matter */
    uint64_t withdrawn_at; /* what had been sent when a transfer of the peer's was last seen withdrawn: one of these may have met it */
    uint8_t outstanding;   /* receives of this process whose transfers the peer may still look at */
    uint8_t count;         /* receives of the peer's: */
    struct announced {
        uint64_t ctx, env; /* of the message that the receive takes */
        uint64_t at;       /* of its transfer, in the peer's segment */
    } announced[ANNOUNCED_MOST];
};

/* AM_READY: where the transfer is. */
struct wire_ready {
    uint64_t at;
};

int64_t ready_least = INT64_MAX;

static struct link announcers = LIST_INIT(announcers);

void ready_open(void) { ready_least = var_int(VAR_EARLY_RECEIVERS) ? limits_eager_least() + 1 : INT64_MAX; }

/* The peer of an operation, if receives can be announced between it and this process. Not one of another job, as such connections end. */
static struct peer *early_peer(const struct request *r)
{
    struct peer *p = r->rank < 0 || wires_threaded ? NULL : peer_known(comm_index(r->comm, r->rank));
    return p && !p->lost && jobs_is_own(p->index) && peer_is_connected(p) && p->ep.ops->handled ? p : NULL;
}

/* Is the operation one of a window of messages? The wait for all of them delivers what comes. */
static bool is_one_of_many(const struct request *r)
{
    const struct link *sends = &lane_of(r)->rndv.outgoing.requests;
    return match_posted_count(&r->comm->pt->match[PT_USER]) > FEW || (!list_empty(sends) && sends->next->next != sends);
}

void ready_hear_large(const struct request *r)
{
    if (!is_one_of_many(r) && early_peer(r)) (void)wires_progress(HEAR_MOST);
}

static struct ready *ready_of(struct peer *p)
{
    if (p->ready) return p->ready;
    struct ready *a = calloc(1, sizeof *a);
    if (!a) return NULL;
    a->peer = p;
    list_init(&a->link);
    return p->ready = a;
}

/* Can no message that was sent to the peer match a receive there any more? It has been handled, or takes a transfer, or is of a kind that
 * no receive takes. */
static bool knows_all(struct peer *p)
{
    uint64_t sent = p->ep.ops->sent(&p->ep), handled = p->ep.ops->handled(&p->ep);
    return handled == sent || (handled != UINT64_MAX && p->ready && p->ready->mark == sent);
}

static void mark(struct peer *p) { p->ready->mark = p->ep.ops->sent(&p->ep); }

/* ---- the receiver ---- */

static struct pt_offer *transfer_of(const struct request *r) { return r->xfer; }

struct search {
    const struct request *own;
    bool found;
};

/* A receive that may take the message of `own`, and is not announced. */
static void look(void *what, int source, int tag, void *arg)
{
    const struct request *r = what;
    struct search *s = arg;
    bool takes = (source == MATCH_ANY_SOURCE || source == s->own->rank) && (tag == MATCH_ANY_TAG || tag == s->own->tag);
    s->found |= takes && r != s->own && !(r->course & REQ_READY);
}

/* Does the next message of its kind match this receive? Not if MPI_Mprobe has taken an offer: that looks to its sender like one that has
 * not been met, and would be replaced. */
static bool is_next(const struct request *r)
{
    const struct match *m = &r->comm->pt->match[PT_USER];
    struct search s = {.own = r};
    if (match_posted_count(m) > POSTED_MOST || lane_of(r)->rndv.probed) return false;
    match_each(&m->posted, look, &s);
    return !s.found;
}

/* The sender of a receive that can be announced, else NULL. */
static struct peer *sender_of(const struct request *r)
{
    if (pt_checking || r->ctx & CTX_COLL || r->tag < 0 || !r->type->contig) return NULL;
    struct peer *p = early_peer(r);
    bool can = p && comm_index(r->comm, r->rank) != proc_self()->rank && r->bytes > limits_of(p)->eager_max;
    return can && (ways_has(p, WAY_MAPPED) || ways_has(p, WAY_DIRECT)) ? p : NULL;
}

/* NULL: there is no memory, or none that the sender could write to. */
static struct pt_offer *new_transfer(struct request *r, const struct peer *p, uint64_t *at)
{
    char *to = (char *)(uintptr_t)r->buf + r->type->true_lb;
    uint64_t place = arena_place(to, (size_t)r->bytes);
    struct pt_offer *o = place || p->ep.caps & TP_CAP_GETPUT ? peer_shared_alloc(sizeof *o, at) : NULL;
    if (!o) return NULL;
    transfer_say(&o->transfer, TRANSFER_TO, OFFER_NUMBER, to, place, (uint64_t)r->bytes);
    o->receiver_of = p->index + 1;
    return o;
}

void ready_announce(struct request *r)
{
    struct peer *p = sender_of(r);
    struct ready *a = p ? ready_of(p) : NULL;
    struct wire_ready w;
    offers_free_some(lane_of(r));
    if (!a || a->outstanding >= ANNOUNCED_MOST || !is_next(r)) return;
    struct pt_offer *o = new_transfer(r, p, &w.at);
    if (!o) return;
    bool known = knows_all(p);
    if (p->ep.am_short(&p->ep, AM_READY, r->ctx, env_pack(r->rank, r->tag), &w, sizeof w)) {
        peer_shared_free(o, sizeof *o);
        return;
    }
    if (known) mark(p);
    a->outstanding++;
    r->peer = p;
    r->xfer = o;
    r->cookie[READY_AT] = w.at;
    r->course |= REQ_READY;
}

static struct pt_offer *forget(struct request *r)
{
    struct pt_offer *o = transfer_of(r);
    r->course &= (uint8_t)~REQ_READY;
    r->xfer = NULL;
    return o;
}

void ready_closed(uint32_t index)
{
    struct peer *p = wires_threaded ? NULL : peer_known(index); /* else nothing is announced any more */
    if (p && p->ready && p->ready->outstanding) p->ready->outstanding--;
}

/* The sender may look at the transfer until it has said CLOSED. */
void ready_withdraw(struct request *r)
{
    struct lane *l = lane_of(r);
    struct pt_offer *o = forget(r);
    /* The sender is given up, but may live: no more chunks are claimed. */
    if (!transfer_withdraw(&o->transfer)) transfer_stop(&o->transfer);
    offers_retire(l, o);
}

bool ready_cancel(struct request *r)
{
    if (!transfer_withdraw(&transfer_of(r)->transfer)) return false;
    ready_withdraw(r);
    return true;
}

bool ready_is_taken_by(struct request *r, const struct pt_rts *rts)
{
    bool takes = rts->offer & RTS_READY;
    bool taken = takes ? (rts->offer & ~(uint64_t)RTS_READY) == r->cookie[READY_AT] : !transfer_withdraw(&transfer_of(r)->transfer);
    if (!taken) ready_withdraw(r);
    return taken;
}

struct pt_offer *ready_meet(struct request *r) { return forget(r); }

static void end_posted(void *what, int source, int tag, void *arg)
{
    struct request *r = what;
    (void)source, (void)tag, (void)arg;
    if (r->course & REQ_READY && transfer_withdraw(&transfer_of(r)->transfer)) ready_withdraw(r);
}

void ready_end(struct pt_comm *pt) { match_each(&pt->match[PT_USER].posted, end_posted, NULL); }

/* ---- the sender ---- */

/* NULL: there is no such place, or the peer is not connected yet. */
static struct pt_offer *map_transfer(struct peer *p, uint64_t at)
{
    return p->ep.caps & TP_CAP_MAP ? ep_map(&p->ep, at, sizeof(struct pt_offer)) : NULL;
}

static void drop(struct ready *a, unsigned i)
{
    a->count--;
    for (; i < a->count; i++) a->announced[i] = a->announced[i + 1];
    if (!a->count) list_remove(&a->link);
}

/* Transfers that were withdrawn are closed, and forgotten. */
static void drop_withdrawn(struct peer *p)
{
    struct ready *a = p->ready;
    for (unsigned i = 0; i < a->count;) {
        struct pt_offer *o = map_transfer(p, a->announced[i].at);
        bool gone = o && transfer_life(&o->transfer) == TRANSFER_WITHDRAWN;
        if (!gone) {
            i++;
            continue;
        }
        transfer_close(&o->transfer);
        drop(a, i);
        a->withdrawn_at = p->ep.ops->sent(&p->ep);
    }
}

/* The first one for this message that is not withdrawn, which stays in the list; NULL: none. */
static struct announced *find(struct peer *p, const struct request *r)
{
    struct ready *a = p->ready;
    uint64_t env = env_pack(r->comm->rank, r->tag);
    drop_withdrawn(p);
    for (unsigned i = 0; i < a->count; i++)
        if (a->announced[i].ctx == r->ctx && a->announced[i].env == env) return &a->announced[i];
    return NULL;
}

/* Takes the transfer, if this side can copy all of it, and says where the data lies. False: it cannot, or the receive has met another
 * message or was cancelled. */
static bool take_and_fill(struct pt_offer *o, const struct request *r)
{
    if (!transfer_reaches(&o->transfer, TRANSFER_FROM, &r->peer->ep) || !transfer_take(&o->transfer)) return false;
    offer_say_from(o, r);
    return true;
}

/* r was offered and has not been met, and the receiver has announced a receive for such a message. If it has handled all messages before
 * r, and the transfer is open, then r will meet this receive. So r takes the transfer in place of its offer, which the receiver then
 * does not look at. Not if the transfer of an earlier receive has been withdrawn since r was offered: r may be what that receive is
 * meeting now. */
static void take_late(struct ready *a, struct request *r, uint64_t handled)
{
    struct peer *p = a->peer;
    if (handled == UINT64_MAX || !r->bytes) return;
    if (handled < r->cookie[READY_SENT]) {
        a->waits = true;
        return;
    }
    const struct announced *s = find(p, r);
    struct pt_offer *o = s && r->cookie[READY_SENT] >= a->withdrawn_at ? map_transfer(p, s->at) : NULL;
    if (!o || !take_and_fill(o, r)) return;
    p->ep.ops->nudge(&p->ep, false); /* this side can do it all */
    offer_replace(r, o, s->at | RTS_READY);
    drop(a, (unsigned)(s - a->announced));
}

/* Looks for a send for each transfer that was announced. */
static void look_late(struct ready *a)
{
    struct peer *p = a->peer;
    bool may = !p->lost && peer_is_connected(p) && p->ep.ops->handled && !wires_threaded && !pt_checking;
    a->waits = false;
    a->looked = may ? p->ep.ops->handled(&p->ep) : UINT64_MAX;
    drop_withdrawn(p);
    for (unsigned i = 0; may && i < a->count; i++) {
        struct announced s = a->announced[i];
        struct pt_comm *pt = context_of(s.ctx);
        struct request *r = pt ? offer_unmatched(pt->lane, p, s.ctx, s.env) : NULL;
        if (!r) continue;
        unsigned before = a->count;
        take_late(a, r, p->ep.ops->handled(&p->ep));
        if (a->count < before) i = UINT32_MAX; /* some have gone: from the first one on */
    }
}

bool ready_look(void)
{
    bool more = false;
    if (wires_threaded) return false;
    list_each (at, next, &announcers) {
        struct ready *a = container_of(at, struct ready, link);
        if (a->peer->lost || !a->peer->ep.ops || !a->peer->ep.ops->handled) continue;
        bool news = a->count && a->peer->ep.ops->handled(&a->peer->ep) != a->looked;
        if (news) look_late(a);
        more |= news;
    }
    return more;
}

bool ready_waits(void)
{
    if (wires_threaded) return true;
    list_each (at, next, &announcers) {
        struct ready *a = container_of(at, struct ready, link);
        if (a->peer->lost || !a->waits || !a->peer->ep.ops || !a->peer->ep.ops->handled) continue;
        if (a->peer->ep.ops->handled(&a->peer->ep) != a->looked || !a->peer->ep.ops->await_handled(&a->peer->ep)) return false;
    }
    return true;
}

static void on_ready(struct lane *l, struct pt_comm *pt, struct peer *from, uint64_t h0, uint64_t h1, const void *data, size_t n)
{
    struct wire_ready w = {0};
    struct ready *a = ready_of(from);
    (void)l, (void)pt;
    if (n == sizeof w) memcpy(&w, data, sizeof w);
    if (!a) lane_fatal("no memory for what a receiver announces");
    drop_withdrawn(from);
    bool possible = n == sizeof w && jobs_is_own(from->index) && env_possible(h0, h1) && !(h0 & CTX_COLL);
    if (!possible || w.at % CACHE_LINE || a->count == ANNOUNCED_MOST) {
        pt_violation(from, "a receive that is announced, in %zu bytes", n);
        return;
    }
    if (!a->count) list_push(&announcers, &a->link);
    a->announced[a->count++] = (struct announced){h0, h1, w.at};
    look_late(a);
}

void ready_forget(struct peer *p)
{
    if (!p->ready) return;
    list_remove(&p->ready->link);
    p->ready->count = 0;
}

void ready_close(void)
{
    while (list_pop(&announcers)) continue;
}

static const struct pt_kind ready_kind = {AM_READY, PT_BY_PEER, on_ready};

void pt_on_ready(struct peer *from, uint64_t h0, uint64_t h1, const void *data, size_t n)
{
    dispatch(&ready_kind, from, h0, h1, data, n);
}

struct pt_offer *ready_take(struct request *r, uint64_t *at)
{
    struct peer *p = r->peer;
    bool may = !wires_threaded && p->ready && p->ready->count && p->ep.ops->handled && r->bytes && r->type->contig &&
               !(r->ctx & CTX_COLL) && !pt_checking;
    struct announced *s = may && knows_all(p) && pending_is_clear(lane_of(r), p) ? find(p, r) : NULL;
    struct pt_offer *o = s ? map_transfer(p, s->at) : NULL;
    if (!o || !take_and_fill(o, r)) return NULL;
    *at = s->at | RTS_READY;
    return o;
}

void ready_offered(struct peer *p) { p->ready->looked = UINT64_MAX; }

void ready_taken(struct request *r)
{
    struct ready *a = r->peer->ready;
    for (unsigned i = 0; i < a->count; i++)
        if (map_transfer(r->peer, a->announced[i].at) == r->xfer) drop(a, i);
    mark(r->peer);
}

void ready_give_back(struct pt_offer *o) { transfer_give_back(&o->transfer); }
