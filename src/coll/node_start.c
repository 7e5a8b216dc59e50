/*
 * node_start.c - node-local operations in the background. Each is a flight:
 *
 *     prepared -> launched: waits for the block and its slots -> put: waits for the others -> landed
 *
 * Flights are looked at by the lane's progress, as one poller for each node. What can be
 * done at the start is: the contribution lies there when the call returns, unless slots
 * are not free yet or the block is being made.
 */
#include "base/err.h"
#include "coll/node.h"
#include "coll/node_block.h"
#include "obj/request.h"
#include "pt2pt/api.h"
#include "type/op.h"

#include <stdlib.h>

struct node_flight {
    struct link link;
    struct coll_call call;
    struct request *req;         /* NULL: somebody waits for `landed` */
    uint32_t number;             /* of the messages, should there be no block */
    bool big, put, landed, lost; /* lost: there is none */
    int rc;
    struct node_wait wait;
};

/* ---- what an operation in the background keeps ---- */

static void hold(const struct coll_call *a)
{
    if (a->stype) type_ref(a->stype);
    if (a->rtype) type_ref(a->rtype);
    if (a->op) op_ref((struct op *)(uintptr_t)a->op);
}

static void let_go(const struct coll_call *a)
{
    if (a->stype) type_unref(a->stype);
    if (a->rtype) type_unref(a->rtype);
    if (a->op) op_unref((struct op *)(uintptr_t)a->op);
}

/* ---- flights ---- */

/* One step; true when it needs nothing more of the node. */
static bool advance(struct node_flight *f)
{
    struct node *n = f->wait.n;
    if (!f->put) {
        if (!node_free_slots(n, f->wait.seq, f->big)) return false;
        f->rc = node_put(n, f->wait.seq, &f->call);
        f->wait.rank = node_needs(n, &f->call);
        f->put = true;
    }
    if (!f->rc && f->wait.rank != NODE_NOBODY) {
        if (!node_ready(&f->wait)) return false;
        f->rc = node_take(n, f->wait.seq, &f->call);
    }
    node_finish(n, f->wait.seq, f->wait.rank == NODE_ALL);
    if (f->rc > 0) f->rc = 0;
    return true;
}

/* No block: by messages. */
static TERN_COLD void detour(struct node_flight *f)
{
    struct request *r = f->req;
    f->rc = coll_by_messages(r, &f->call, f->number);
    let_go(&f->call);
    if (f->rc)
        lane_finish(r, f->rc);
    else
        coll_go(r);
    free(f);
}

/* The operation is over: whoever wants to know is told. The last that sees the node, which may go with its
 * communicator. */
static void land(struct node_flight *f)
{
    struct request *r = f->req;
    if (!r) {
        f->landed = true;
        if (unlikely(lane0.sleepers)) bell_ring(peer_bell()); /* another thread of ours waits for it */
    } else if (unlikely(f->lost)) {
        detour(f);
    } else {
        int rc = f->rc;
        let_go(&f->call);
        free(f);
        lane_finish(r, rc);
    }
}

static void launch(struct node_flight *f)
{
    struct node *n = f->wait.n;
    if (likely(n->state == NODE_READY) && advance(f)) {
        land(f);
        return;
    }
    bool first = list_empty(&n->flights);
    list_push(&n->flights, &f->link);
    atomic_store_explicit(&n->flying, 1, memory_order_relaxed);
    if (first) lane_poller_add(n->comm->lane, &n->poller);
}

/* Moves the flights that are at their end. */
static int collect(struct node *n, struct link *landed)
{
    int count = 0;
    list_each(a, next, &n->flights)
    {
        struct node_flight *f = container_of(a, struct node_flight, link);
        f->lost = n->state == NODE_NONE && !n->error;
        if (unlikely(n->error))
            f->rc = n->error;
        else if (!f->lost && !advance(f))
            continue;
        list_remove(a);
        list_push(landed, a);
        count++;
    }
    return count;
}

/* The gates are known only now. */
static TERN_COLD bool finish_making(struct node *n)
{
    if (!node_told(n)) return false;
    lane_poller_remove(n->comm->lane, &n->poller);
    node_make(n);
    lane_poller_add(n->comm->lane, &n->poller);
    return true;
}

int node_poll(struct lane_poller *p)
{
    struct node *n = container_of(p, struct node, poller);
    struct link landed = LIST_INIT(landed);
    if (unlikely(n->state == NODE_MAKING) && !finish_making(n)) return 0;
    int count = collect(n, &landed);
    if (list_empty(&n->flights)) {
        lane_poller_remove(n->comm->lane, p);
        atomic_store_explicit(&n->flying, 0, memory_order_release); /* pairs with the acquire in node_run */
    }
    for (struct link *a; (a = list_pop(&landed));) land(container_of(a, struct node_flight, link));
    return count;
}

/* ---- starting them ---- */

bool node_enlist(struct node *n, const struct coll_call *a, bool big, struct request *r, int *rc_p)
{
    if (n->settled && n->state == NODE_NONE && !n->error) return false;
    struct node_flight *f = malloc(sizeof *f);
    if (!f) {
        *rc_p = err_set(TERN_ERR_NOMEM, "no memory to start a %s", coll_kind_name(a->kind));
        return false;
    }
    *f = (struct node_flight){.call = *a, .req = r, .big = big, .wait = {.n = n, .seq = ++n->seq}};
    if (!n->settled) f->number = n->comm->coll->seq++;
    hold(a);
    r->buf = f;
    return true;
}

void node_go(struct request *r) { launch(r->buf); }

static bool has_landed(void *flight) { return ((struct node_flight *)flight)->landed; }

bool node_run_behind(struct node *n, const struct coll_call *a, bool big, int *rc_p)
{
    struct node_flight f = {.call = *a, .big = big, .wait = {.n = n, .seq = ++n->seq}};
    struct lane *l = n->comm->lane;
    lane_enter(l);
    launch(&f);
    if (!f.landed) lane_wait(l, has_landed, &f, NULL);
    lane_leave(l);
    *rc_p = f.rc;
    return !f.lost;
}

static bool none_flies(void *node) { return list_empty(&((struct node *)node)->flights); }

void node_await(struct node *n)
{
    struct lane *l = n->comm->lane;
    lane_enter(l);
    lane_wait(l, none_flies, n, NULL);
    lane_leave(l);
}
