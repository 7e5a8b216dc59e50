/*
 * start.c - starting a small operation inside a node, and waiting for it.
 *
 * Its contribution lies there at the start. What is left are records of operations in the background (background.c) with a
 * request each, which stay together for the next operation (REQ_KEPT). A thread that waits looks at the record itself first.
 */
#include "base/err.h"
#include "coll/node/background.h"
#include "coll/node/node.h"
#include "coll/node/v.h"
#include "pt2pt/api.h"

#include <stdlib.h>

/* ---- records with their requests ---- */

static inline void take_if_there(struct node_background *f)
{
    struct node *n = f->wait.n;
    if (!node_is_there(&f->wait)) return;
    node_background_take(f);
    node_finish(n, f->wait.seq, f->wait.rank == NODE_ALL);
    list_remove(&f->link);
    if (list_empty(&n->background)) node_background_none(n);
    node_end_kept(f);
}

static void look(struct request *r)
{
    struct node_background *f = r->buf;
    lane_enter(r->comm->lane);
    if (likely(!request_is_complete(r))) take_if_there(f);
    lane_leave(f->wait.n->comm->lane); /* the same: read again rather than kept in a register */
}

static void keep(struct request *r)
{
    struct node_background *f = r->buf;
    struct node *n = f->wait.n;
    struct lane *l = n->comm->lane;
    r->h.kind = HANDLE_DEAD;
    lane_enter(l);
    list_insert(&n->spare, &f->link);
    lane_out(l); /* nothing that a helper would have to hear of */
}

static const struct request_hooks hooks = {.look = look, .keep = keep};

static TERN_COLD struct node_background *new_kept(struct node *n)
{
    struct request *r = coll_request(n->comm);
    struct node_background *f = r ? calloc(1, sizeof *f) : NULL;
    if (r) comm_unref(n->comm); /* as long as it is not pending */
    if (!f) {
        if (r) request_free(r);
        return NULL;
    }
    f->req = r;
    f->wait.n = n;
    r->buf = f;
    r->hooks = &hooks;
    return f;
}

void node_free_background(struct node *n)
{
    lane_enter(n->comm->lane);
    step_off(&n->step);
    node_end_carrying(n);
    lane_leave(n->comm->lane);
    for (struct link *l; (l = list_pop(&n->spare));) {
        struct node_background *f = container_of(l, struct node_background, link);
        f->req->flags = REQ_HEAP;
        request_free(f->req);
        free(f);
    }
}

/* What a small one without arrays needs of its call; the arrays of a kept record are NULL. Word by word: whole vectors of what
 * the entry point has just written by words would have to wait until that is out of the store buffer. */
static inline void note_call(struct coll_call *to, const struct coll_call *a)
{
#define NOTE(field) to->field = a->field, atomic_signal_fence(memory_order_seq_cst)
    NOTE(kind), NOTE(sendbuf), NOTE(recvbuf), NOTE(scount), NOTE(rcount), NOTE(stype), NOTE(rtype), NOTE(op), NOTE(root);
#undef NOTE
}

/* Of a call with arrays: all of it. */
static TERN_COLD bool note_arrays(struct node_background *f, const struct coll_call *a)
{
    f->call = *a;
    return coll_call_keep_arrays(&f->call, f->wait.n->size, &f->arrays);
}

/* Lock held. NULL: memory is out. */
static inline struct node_background *take_kept(struct node *n, const struct coll_call *a)
{
    struct link *l = list_pop(&n->spare);
    struct node_background *f = likely(l != NULL) ? container_of(l, struct node_background, link) : new_kept(n);
    if (unlikely(!f)) return NULL;
    if (likely(!coll_call_has_arrays(a))) {
        note_call(&f->call, a);
        return f;
    }
    if (note_arrays(f, a)) return f;
    node_drop_arrays(f); /* those are the user's */
    list_insert(&n->spare, &f->link);
    return NULL;
}

/* Its request is in the user's hands. */
static inline struct request *hand_out(struct request *r)
{
    r->h.kind = HANDLE_REQUEST;
    r->flags = REQ_HEAP | REQ_HOOKED | REQ_KEPT;
    r->course = 0;
    atomic_store_explicit(&r->complete, 0, memory_order_relaxed);
    comm_ref(r->comm);
    return r;
}

static inline struct request *launch(const struct node_wait *w, const struct coll_call *a, uint32_t number)
{
    struct node *n = w->n;
    struct lane *l = n->comm->lane;
    lane_enter(l);
    struct node_background *f = take_kept(n, a);
    if (unlikely(!f)) {
        lane_leave(l);
        return NULL;
    }
    f->big = f->ended = f->lost = f->taken = f->finished = false;
    f->put = f->awaits = f->kept = true;
    f->rc = 0;
    f->number = number;
    f->wait.flag = w->flag;
    f->wait.seq = w->seq;
    f->wait.rank = w->rank;
    f->wait.seen = w->seen;
    f->holds = node_holds(a);
    if (unlikely(f->holds)) coll_call_hold(&f->call, n->size);
    struct request *r = hand_out(f->req);
    node_background_add(f);
    lane_leave_to_itself(l, r);
    lane_leave(l);
    return r;
}

/* ---- starting ---- */

/* It is over at the start: the shared request, or one that tells what failed. */
static struct request *over(struct node *n, int rc)
{
    if (likely(!rc)) return request_done;
    struct request *r = coll_request(n->comm);
    if (!r) return request_done;
    r->result.error = rc;
    atomic_store_explicit(&r->complete, 1, memory_order_relaxed);
    return r;
}

static inline struct request *start(struct node *n, const struct coll_call *a, uint32_t number)
{
    uint32_t seq = ++n->seq;
    struct node_wait w = {n, node_take_sign(n, seq, node_sign(n, NODE_BY_SLOTS)), seq, node_needs(n, a), 0};
    int rc = node_put(n, w.seq, a);
    if (!rc && w.rank != NODE_NOBODY) {
        if (!node_is_there(&w)) {
            struct request *r = launch(&w, a, number);
            if (likely(r != NULL)) return r;
            rc = node_wait_for(n, w.seq, w.rank);
        }
        if (likely(!rc)) rc = node_take(n, w.seq, a);
        if (unlikely(rc) && !node_failed(n)) node_straighten(n, w.seq, a, false, number);
    }
    node_finish(n, w.seq, w.rank == NODE_ALL);
    return over(n, rc > 0 ? 0 : rc);
}

/* Others that are pending may be looked at by other threads, or by the helper. */
static inline bool is_alone(const struct node *n)
{
    return !node_has_background(n) || (!lane_threaded() && !background_is_helped());
}

/* Blocks of lengths that not all know, or not by one number. */
static bool start_v(struct comm *c, const struct coll_call *a, int64_t bytes, struct request **req_p)
{
    bool big = false;
    int rc;
    struct node *n = c->coll->node;
    bool is_short = node_v_is_short(n, a);
    if (!is_short) n = node_for(c, a, bytes, &big, &rc);
    if (!n || !n->settled || n->state != NODE_READY || !is_alone(n)) return false;
    bool v = node_v_is(a->kind);
    if (!node_free_slots(n, n->seq + 1, big)) return false;
    if (v && !is_short && (node_all(n, NODE_REACHES) == NODE_UNKNOWN || node_v_long(n, a))) return false;
    *req_p = start(n, a, v ? coll_number(c->coll) : 0);
    return true;
}

bool node_start(struct comm *c, const struct coll_call *a, int64_t bytes, struct request **req_p)
{
    struct node *n = c->coll->node;
    bool big;
    if (unlikely(!n)) return false;
    if (unlikely(!node_is_quick(c, n, a, bytes, &big))) return coll_has_blocks(a->kind) && start_v(c, a, bytes, req_p);
    if (unlikely(!is_alone(n) || !node_free_slots(n, n->seq + 1, big))) return false;
    *req_p = start(n, a, 0);
    return true;
}
