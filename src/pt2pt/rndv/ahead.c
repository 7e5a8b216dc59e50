/* ahead.c - see ahead.h. */
#include "pt2pt/rndv/ahead.h"
#include "copy/copy.h"
#include "pt2pt/check.h"
#include "pt2pt/dispatch.h"
#include "pt2pt/early.h"
#include "pt2pt/limits.h"
#include "pt2pt/lost.h"
#include "pt2pt/pending.h"
#include "pt2pt/ways.h"
#include "transport/endpoint.h"
#include "type/type.h"

#include <stdlib.h>
#include <string.h>

struct ahead_msg {
    struct ahead_msg *next; /* in peer.ahead, until all has come */
    struct peer *from;
    struct lane *lane;
    uint64_t number, bytes;
    uint64_t arrived;       /* bytes that were handled */
    uint64_t seen;          /* bytes whose header was seen, once threads share the transports */
    char *to;               /* the receive's memory, or the buffer */
    char *buffer;           /* NULL: it needs none */
    struct request *receive;
    int32_t source, tag;
    bool over;    /* all has come, or nothing more will (`lost`), and it is in no list */
    bool lost;    /* the sender is, before all has come */
    bool taken;   /* out of its body: it meets a receive */
    bool dropped; /* no receive will take it */
};

static struct lock lists_lock; /* a leaf: the lists of all peers, and ahead_msg.seen */
static _Atomic uint32_t listed;   /* in all of them */

/* ---- the sender ---- */

static _Atomic uint32_t numbers;

static bool may_go(const struct request *r, bool is_next)
{
    struct peer *p = r->peer;
    bool could = r->bytes && r->mode != PT_SYNC && !(r->ctx & CTX_COLL) && !pt_checking && peer_is_connected(p) &&
                 r->bytes <= limits_of(p)->ahead_max;
    if (!could || !jobs_is_own(p->index) || ways_best(p, WAY_MAPPED, r->type->contig, r->bytes) != WAY_IN_PLACE) return false;
    return (is_next || pending_is_clear(lane_of(r), p)) && !peer_lane_of(p, lane_of(r)->number)->streams; /* else the wire is busy anyway */
}

/* Small messages shall not wait for credit because large ones have not been received. The part that is left to them is not larger, as up
 * to half of the quota may have been received and not been given back yet (credit.c). */
static bool leaves_some(const struct peer *p, size_t bytes)
{
    return counter_get(&p->credit) - eager_cost(bytes) >= counter_get(&p->quota_there) / AHEAD_LEAVES;
}

bool ahead_send(struct request *r, bool is_next)
{
    if (!may_go(r, is_next) || !leaves_some(r->peer, (size_t)r->bytes) || !credit_take(r->peer, (size_t)r->bytes)) return false;
    struct pt_rts rts = {atomic_fetch_add_explicit(&numbers, 1, memory_order_relaxed) & INT32_MAX, (uint64_t)r->bytes, RTS_AHEAD};
    uint64_t env = env_pack(r->comm->rank, r->tag);
    if (r->peer->ep.am_short(&r->peer->ep, AM_RTS, r->ctx, env, &rts, sizeof rts)) {
        credit_return(r->peer, (size_t)r->bytes);
        return false;
    }
    pt_stream_ahead(r, rts.send);
    return true;
}

/* ---- the receiver: a message ---- */

static void enlist(struct ahead_msg *a)
{
    leaf_take(&lists_lock);
    a->next = a->from->ahead;
    a->from->ahead = a;
    listed++;
    leaf_give(&lists_lock);
}

static void delist(struct ahead_msg *a)
{
    leaf_take(&lists_lock);
    struct ahead_msg **at = &a->from->ahead;
    while (*at != a) at = &(*at)->next;
    *at = a->next;
    listed--;
    leaf_give(&lists_lock);
}

static void msg_free(struct ahead_msg *a)
{
    free(a->buffer);
    free(a);
}

void ahead_expect(struct peer *from, int64_t bytes)
{
    if (peer_is_connected(from) && !from->lost) ep_expect(&from->ep, (uint64_t)bytes);
}

/* Bytes of the largest message that a peer may send ahead: no more than it may have unreceived here. */
static uint64_t largest(void) { return min_size((size_t)AHEAD_LARGEST, (size_t)eager_store.credit); }

struct ahead_msg *ahead_new(struct lane *l, struct peer *from, const struct pt_rts *rts)
{
    if (!jobs_is_own(from->index) || !rts->bytes || rts->bytes > largest() || rts->send > INT32_MAX) {
        pt_violation(from, "a large message of %llu bytes that nobody has asked for", (unsigned long long)rts->bytes);
        return NULL;
    }
    struct ahead_msg *a = calloc(1, sizeof *a);
    if (!a) lane_fatal("no memory for a message that is coming");
    a->from = from;
    a->lane = l;
    a->number = rts->send;
    a->bytes = rts->bytes;
    ahead_expect(from, (int64_t)a->bytes);
    return a;
}

static void give_buffer(struct ahead_msg *a)
{
    if (!(a->buffer = malloc(a->bytes))) lane_fatal("no memory for an unexpected message");
    a->to = a->buffer;
}

/* The body that the message was kept in is freed. */
static void body_freed(void *msg)
{
    struct ahead_msg *a = msg;
    if (a->taken) return;
    if (a->over) msg_free(a);
    else a->dropped = true;
}

struct match_body *ahead_keep(struct ahead_msg *a)
{
    give_buffer(a);
    enlist(a);
    return match_body_lend(&a->lane->pool, 1, (uint32_t)a->bytes, a->buffer, body_freed, a);
}

void ahead_take(struct ahead_msg *a) { a->taken = true; }

/* The message is over, and has met its receive. */
static void hand_over(struct ahead_msg *a)
{
    struct request *r = a->receive;
    if (a->lost) pt_end_lost(r, a->from);
    else if (a->buffer) pt_deliver(r, a->source, a->tag, a->buffer, a->bytes);
    else lane_finish(r, 0);
    msg_free(a);
}

void ahead_meet(struct ahead_msg *a, struct request *r, int32_t source, int32_t tag)
{
    bool begun = a->buffer;
    if (unlikely(!a->over && lost_is_known(a->lane, a->from))) { /* it was kept for its communicator (early.h) when the peer was lost */
        if (begun) delist(a);
        a->over = a->lost = true;
    }
    bool in_place = r->type->contig && a->bytes <= (uint64_t)r->bytes;
    r->peer = a->from;
    r->result.source = a->source = source;
    r->result.tag = a->tag = tag;
    r->result.bytes = (int64_t)a->bytes;
    a->receive = r;
    if (a->over) {
        hand_over(a);
        return;
    }
    if (begun) return;
    if (in_place) a->to = (char *)r->buf + r->type->true_lb;
    else give_buffer(a);
    enlist(a);
}

/* No more of the message comes. Its receive ends; or it has none, and is freed if it was dropped. */
static void end(struct ahead_msg *a, bool lost)
{
    delist(a);
    a->over = true;
    a->lost = lost;
    if (a->receive) hand_over(a);
    else if (a->dropped) msg_free(a);
}

/* ---- the receiver: data ---- */

static uint64_t number_of(uint64_t h1) { return h1 >> 32; }
static uint64_t offset_of(uint64_t h1) { return (uint32_t)h1; }

static struct ahead_msg *find_locked(const struct peer *from, uint64_t number)
{
    struct ahead_msg *a = from->ahead;
    while (a && a->number != number) a = a->next;
    return a;
}

/* In this lane. */
static struct ahead_msg *find(const struct lane *l, const struct peer *from, uint64_t number)
{
    leaf_take(&lists_lock);
    struct ahead_msg *a = from->ahead;
    while (a && (a->number != number || a->lane != l)) a = a->next;
    leaf_give(&lists_lock);
    return a;
}

/* Are these n bytes the next ones behind those that are there? */
static bool follows(const struct ahead_msg *a, uint64_t there, uint64_t h1, size_t n)
{
    return a && n && offset_of(h1) == there && n <= a->bytes - there;
}

/* The sender may be lost: data that came before that may have waited for the communicator. */
static void on_data(struct lane *l, struct pt_comm *pt, struct peer *from, uint64_t h0, uint64_t h1, const void *data, size_t n)
{
    struct ahead_msg *a = find(l, from, number_of(h1));
    (void)pt, (void)h0;
    if (unlikely(!follows(a, a ? a->arrived : 0, h1, n))) {
        pt_violation(from, "%zu bytes at %llu of a message that nobody has asked for, and that they are not the next ones of", n,
                     (unsigned long long)offset_of(h1));
        return;
    }
    char *to = a->to + a->arrived;
    if (to != data) copy_part(to, data, n, a->bytes);
    a->arrived += n;
    if (a->arrived == a->bytes) end(a, false);
}

/* Data of a message that is known, whose communicator may have gone; and data of one whose RTS waits for its lane or its communicator:
 * these wait behind the RTS. */
static const struct pt_kind known = {AM_AHEAD, PT_BY_LANE, on_data}, waiting = {AM_AHEAD, PT_BY_CONTEXT, on_data};

/* Memory for data whose RTS has not been handled. There is one block for a peer at a time, as a stream is read in order. */
static void *unplaced(struct peer *from, size_t n)
{
    free(from->unplaced);
    return from->unplaced = n <= largest() ? malloc(n) : NULL;
}

/* The place of the data, by a thread that is in the wire and in no lane. NULL: they have none of their own yet. `over`: their handler has
 * been called, and the next data follow behind them. */
static void *see(const struct peer *from, uint64_t h1, size_t n, bool over)
{
    leaf_take(&lists_lock);
    struct ahead_msg *a = find_locked(from, number_of(h1));
    char *to = follows(a, a ? a->seen : 0, h1, n) ? a->to + a->seen : NULL;
    if (to && over) a->seen += n;
    leaf_give(&lists_lock);
    return to;
}

void *pt_sink_ahead(struct peer *from, uint64_t h0, uint64_t h1, size_t n)
{
    (void)h0;
    if (from->lost) return NULL;
    const struct ahead_msg *a = wires_threaded ? NULL : find_locked(from, number_of(h1));
    if (a) return follows(a, a->arrived, h1, n) ? a->to + a->arrived : NULL;
    char *to = wires_threaded ? see(from, h1, n, false) : NULL;
    return to ? to : unplaced(from, n);
}

static void deliver(struct peer *from, uint64_t h0, uint64_t h1, const void *data, size_t n)
{
    leaf_take(&lists_lock);
    const struct ahead_msg *a = find_locked(from, number_of(h1));
    struct lane *l = a ? a->lane : NULL;
    leaf_give(&lists_lock);
    if (!l) dispatch(&waiting, from, h0, h1, data, n);
    else if (!wires_threaded) on_data(l, NULL, from, h0, h1, data, n);
    else deliver_message(&known, from, (uintptr_t)l, h1, data, n, see(from, h1, n, true) == data);
}

void pt_on_ahead(struct peer *from, uint64_t h0, uint64_t h1, const void *data, size_t n)
{
    void *given = from->unplaced;
    from->unplaced = NULL;
    if (!from->lost) deliver(from, h0, h1, data, n);
    free(given);
}

/* ---- the end ---- */

static struct ahead_msg *next_in(const struct peer *p, const struct lane *l)
{
    leaf_take(&lists_lock);
    struct ahead_msg *a = p->ahead;
    while (a && a->lane != l) a = a->next;
    leaf_give(&lists_lock);
    return a;
}

void ahead_lost(struct lane *l, struct peer *p)
{
    for (struct ahead_msg *a; (a = next_in(p, l));) end(a, true);
}

/* Only peers of the own job send ahead, and their structs stay. */
void ahead_forget(const struct comm *c)
{
    for (uint32_t i = 0; listed && i < jobs_own_size; i++) {
        struct peer *p = peer_known(i);
        leaf_take(&lists_lock);
        for (struct ahead_msg *a = p ? p->ahead : NULL; a; a = a->next) {
            if (a->lane != c->lane || !a->receive || a->receive->comm != c) continue;
            if (!a->buffer) give_buffer(a);
            a->receive = NULL;
            a->dropped = true;
        }
        leaf_give(&lists_lock);
    }
}

static void end_peer(struct peer *p)
{
    for (struct ahead_msg *a = p->ahead, *next; a; a = next) {
        next = a->next;
        msg_free(a);
    }
    p->ahead = NULL;
}

void ahead_close(void)
{
    for (uint32_t i = 0; i < peers_end(); i++)
        if (peer_known(i)) end_peer(peer_known(i));
    listed = 0;
}
