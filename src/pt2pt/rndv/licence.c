/* licence.c - see licence.h. */
#include "pt2pt/rndv/licence.h"
#include "pt2pt/check.h"
#include "pt2pt/dispatch.h"
#include "pt2pt/limits.h"
#include "pt2pt/lost.h"
#include "pt2pt/pending.h"
#include "pt2pt/say.h"
#include "pt2pt/ways.h"
#include "proc/proc.h"
#include "transport/endpoint.h"
#include "type/type.h"

#include <stdlib.h>
#include <string.h>

#define GIVEN_MOST 16          /* to one peer, in a lane */
#define HEARD_MOST 128         /* of one peer: with those that were taken back and come again before that is known */
#define ROOM_MOST (16 << 20)   /* bytes: what a message that meets no receive may take */
#define PAUSE_MOST 64          /* receives for which none is given */

enum state { GIVEN, REVOKED, PASSED, USED };

/* One that was given. */
struct licence {
    struct link link;       /* in lane.rndv.given */
    struct request landing; /* what the fragments come to: of bytes, in the memory of `meets` or in `buffer`. Its id is the label */
    struct request *holder; /* the receive that has given it; NULL: that needs it no more */
    struct request *meets;  /* the receive that its message has met */
    char *buffer;
    uint64_t ctx, env, room;
    enum state state;
    bool over;    /* all has come, or nothing more will, and the message has met no receive yet */
    bool dropped; /* ... and will meet none */
};

/* One that was heard of. */
struct heard {
    struct link link; /* in lane.rndv.heard */
    struct peer *peer;
    uint64_t ctx, env, label, room;
};

struct wire_licence {
    uint64_t label, room; /* room 0: it is given back */
};

/* ---- the receiver ---- */

static struct licence *licence_of(const struct request *r) { return r->xfer; }

static void release(struct licence *l)
{
    list_remove(&l->link);
    free(l->buffer);
    comm_unref(l->landing.comm);
    free(l);
}

static void unhold(struct licence *l)
{
    if (!l->holder) return;
    l->holder->course &= (uint8_t)~REQ_LICENCE;
    l->holder->xfer = NULL;
    l->holder = NULL;
}

/* What has come is the receive's. */
static void hand_over(struct licence *l)
{
    struct request *r = l->meets;
    if (l->landing.result.error) pt_end_lost(r, l->landing.peer);
    else if (l->buffer) pt_deliver(r, r->result.source, r->result.tag, l->buffer, (size_t)l->landing.result.bytes);
    else lane_finish(r, 0);
    release(l);
}

/* The last fragment has come, or the sender is lost. */
static void landed(struct request *landing)
{
    struct licence *l = landing->owner;
    unhold(l);
    if (l->meets) hand_over(l);
    else if (l->state == USED && !l->dropped) l->over = true;
    else release(l);
}

static struct licence *new_licence(struct request *r, struct peer *p)
{
    struct licence *l = calloc(1, sizeof *l);
    if (!l) return NULL;
    l->landing.kind = REQ_RECV;
    l->landing.flags = REQ_INTERNAL | REQ_LAST_WORD;
    l->landing.type = type_of(MPI_BYTE);
    l->landing.comm = r->comm;
    l->landing.peer = p;
    l->landing.done = landed;
    l->landing.owner = l;
    l->ctx = r->ctx;
    l->env = env_pack(r->rank, r->tag);
    l->room = (uint64_t)r->bytes;
    if (ids_give(&lane_of(r)->ids, &l->landing, AWAIT_RTS)) {
        free(l);
        return NULL;
    }
    comm_ref(r->comm);
    list_push(&lane_of(r)->rndv.given, &l->link);
    return l;
}

/* An unused one that the sender does not have any more. */
static void forget(struct licence *l)
{
    unhold(l);
    ids_drop(&lane_of(&l->landing)->ids, &l->landing);
    release(l);
}

/* The sender, if it is one of those that this is for. NULL: it is not. */
static struct peer *sender_of(const struct request *r)
{
    if (pt_checking || r->ctx & CTX_COLL || r->rank < 0 || r->tag < 0 || !r->type->contig || r->bytes > ROOM_MOST) return NULL;
    struct peer *p = peer_known(comm_index(r->comm, r->rank));
    if (!p || p->lost || !peer_is_connected(p) || !jobs_is_own(p->index) || p->index == proc_self()->rank) return NULL;
    bool other = ways_has(p, WAY_MAPPED) || ways_has(p, WAY_DIRECT) || ways_has(p, WAY_BULK);
    return !other && r->bytes > limits_of(p)->eager_max ? p : NULL;
}

static bool is_time(struct peer_lane *w)
{
    if (w->licences >= GIVEN_MOST) return false;
    if (!w->licence_pause) return true;
    w->licence_pause--;
    return false;
}

void licence_give(struct request *r)
{
    struct peer *p = sender_of(r);
    struct lane *lane = lane_of(r);
    if (!p || pending_prepare(lane, p) || !pending_is_clear(lane, p)) return;
    struct peer_lane *w = peer_lane_of(p, lane->number);
    struct licence *l = is_time(w) ? new_licence(r, p) : NULL;
    if (!l) return;
    struct wire_licence say = {l->landing.id, l->room};
    if (p->ep.ops->am_short(&p->ep, AM_LICENCE, r->ctx, l->env, &say, sizeof say)) {
        forget(l);
        return;
    }
    w->licences++;
    l->holder = r;
    r->peer = p;
    r->xfer = l;
    r->course |= REQ_LICENCE;
}

static struct peer_lane *entry_of(const struct licence *l) { return peer_lane_of(l->landing.peer, lane_of(&l->landing)->number); }

static void pause(struct peer_lane *w)
{
    w->licence_misses = w->licence_misses ? (uint8_t)min_size(2u * w->licence_misses, PAUSE_MOST) : 1;
    w->licence_pause = w->licence_misses;
}

uint64_t licence_pass(struct request *r)
{
    struct licence *l = licence_of(r);
    l->state = PASSED;
    entry_of(l)->licences--;
    return l->landing.id;
}

void licence_end(struct request *r)
{
    struct licence *l = licence_of(r);
    if (l->state == PASSED) {
        forget(l);
        return;
    }
    struct wire_licence say = {l->landing.id, 0};
    unhold(l);
    l->state = REVOKED;
    entry_of(l)->licences--;
    pause(entry_of(l));
    lane_say(lane_of(&l->landing), l->landing.peer, AM_LICENCE, l->ctx, l->env, &say, sizeof say);
}

struct licence *licence_use(struct lane *lane, struct peer *from, uint64_t ctx, uint64_t env, const struct pt_rts *rts)
{
    struct id_entry *e = ids_find(&lane->ids, rts->send, from, AWAIT_RTS);
    struct licence *l = e ? e->request->owner : NULL;
    if (!l || l->ctx != ctx || l->env != env || !rts->bytes || rts->bytes > l->room) {
        pt_violation(from, "a large message that it has no licence for");
        return NULL;
    }
    struct peer_lane *w = peer_lane_of(from, lane->number);
    w->licences -= l->state == GIVEN;
    w->licence_misses = w->licence_pause = 0;
    unhold(l);
    l->state = USED;
    l->landing.result.bytes = (int64_t)rts->bytes;
    ids_lock(&lane->ids);
    e->awaits = AWAIT_FRAG;
    ids_unlock(&lane->ids);
    return l;
}

void licence_keep(struct licence *l)
{
    if (!(l->buffer = malloc((size_t)l->landing.result.bytes))) lane_fatal("no memory for an unexpected message");
    l->landing.buf = l->buffer;
}

void licence_meet(struct licence *l, struct request *r)
{
    l->meets = r;
    if (l->over) {
        hand_over(l);
        return;
    }
    if (l->buffer) return;
    if (r->type->contig && l->landing.result.bytes <= r->bytes) l->landing.buf = (char *)r->buf + r->type->true_lb;
    else licence_keep(l);
}

void licence_drop(struct licence *l)
{
    if (l->over) release(l);
    else l->dropped = true;
}

/* ---- the sender ---- */

static void drop_heard(struct heard *h)
{
    list_remove(&h->link);
    free(h);
}

static struct heard *find_label(struct lane *l, const struct peer *p, uint64_t label)
{
    list_each (a, next, &l->rndv.heard) {
        struct heard *h = container_of(a, struct heard, link);
        if (h->peer == p && h->label == label) return h;
    }
    return NULL;
}

void licence_withdrawn(struct lane *l, const struct peer *p, uint64_t label)
{
    struct heard *h = find_label(l, p, label);
    if (h) drop_heard(h);
}

static struct heard *find_for(struct lane *l, const struct request *r)
{
    uint64_t env = env_pack(r->comm->rank, r->tag);
    list_each (a, next, &l->rndv.heard) {
        struct heard *h = container_of(a, struct heard, link);
        if (h->peer == r->peer && h->ctx == r->ctx && h->env == env && h->room >= (uint64_t)r->bytes) return h;
    }
    return NULL;
}

bool licence_send(struct request *r)
{
    struct lane *l = lane_of(r);
    if (likely(list_empty(&l->rndv.heard)) || r->mode == PT_SYNC || pt_checking || !pending_is_clear(l, r->peer)) return false;
    struct heard *h = find_for(l, r);
    struct pt_rts rts = {h ? h->label : 0, (uint64_t)r->bytes, RTS_LICENCE};
    if (!h || r->peer->ep.ops->am_short(&r->peer->ep, AM_RTS, r->ctx, h->env, &rts, sizeof rts)) return false;
    drop_heard(h);
    peer_look_again(r->peer);
    pt_stream_send(r, &(struct pt_cts){.recv = rts.send, .bytes = rts.bytes, .most = UINT64_MAX});
    return true;
}

/* ---- what is said of licences ---- */

static void hear(struct lane *l, struct peer *from, uint64_t ctx, uint64_t env, const struct wire_licence *w)
{
    unsigned n = 0;
    list_each (a, next, &l->rndv.heard) n += container_of(a, struct heard, link)->peer == from;
    if (n >= HEARD_MOST) {
        pt_violation(from, "more than %d licences", HEARD_MOST);
        return;
    }
    struct heard *h = malloc(sizeof *h);
    if (!h) lane_fatal("no memory for what a receiver says");
    *h = (struct heard){.peer = from, .ctx = ctx, .env = env, .label = w->label, .room = w->room};
    list_push(&l->rndv.heard, &h->link);
}

/* If it has been used the peer knows that before it has the answer. */
static void on_taken_back(struct lane *l, struct peer *from, uint64_t ctx, uint64_t env, const struct wire_licence *w)
{
    struct heard *h = find_label(l, from, w->label);
    if (h) drop_heard(h);
    struct wire_licence back = {w->label, UINT64_MAX};
    lane_say(l, from, AM_LICENCE, ctx, env, &back, sizeof back);
}

static void on_given_back(struct lane *l, struct peer *from, const struct wire_licence *w)
{
    struct id_entry *e = ids_find(&l->ids, w->label, from, AWAIT_RTS);
    struct licence *given = e ? e->request->owner : NULL;
    if (given && given->state == REVOKED) forget(given);
}

static void on_licence(struct lane *l, struct pt_comm *pt, struct peer *from, uint64_t h0, uint64_t h1, const void *data, size_t n)
{
    struct wire_licence w = {0};
    if (n == sizeof w) memcpy(&w, data, sizeof w);
    bool possible = pt && n == sizeof w && env_possible(h0, h1) && !(h0 & CTX_COLL) && env_source(h1) == pt->comm->rank;
    if (n == sizeof w && w.room == UINT64_MAX) on_given_back(l, from, &w);
    else if (n == sizeof w && !w.room) on_taken_back(l, from, h0, h1, &w);
    else if (possible && w.room <= INT64_MAX) hear(l, from, h0, h1, &w);
    else if (pt) pt_violation(from, "a licence that cannot be, in %zu bytes", n);
}

static const struct pt_kind kind = {AM_LICENCE, PT_ABOUT, on_licence};

void pt_on_licence(struct peer *from, uint64_t h0, uint64_t h1, const void *data, size_t n) { dispatch(&kind, from, h0, h1, data, n); }

void licences_lost(struct lane *l, const struct peer *p)
{
    list_each (a, next, &l->rndv.heard) {
        struct heard *h = container_of(a, struct heard, link);
        if (h->peer == p) drop_heard(h);
    }
}

void licences_forget(struct lane *l, uint64_t ctx)
{
    list_each (a, next, &l->rndv.heard) {
        struct heard *h = container_of(a, struct heard, link);
        if (h->ctx == ctx) drop_heard(h);
    }
}

void licences_close(struct lane *l)
{
    while (!list_empty(&l->rndv.heard)) drop_heard(container_of(l->rndv.heard.next, struct heard, link));
    while (!list_empty(&l->rndv.given)) {
        struct licence *of = container_of(l->rndv.given.next, struct licence, link);
        list_remove(&of->link);
        free(of->buffer);
        free(of);
    }
}
