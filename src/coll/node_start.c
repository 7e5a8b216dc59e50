/*
 * node_start.c - node-local operations in the background. Each is a flight:
 *
 *     prepared -> launched: waits for the block and its slots -> put: waits for the others -> landed
 *
 * Flights are looked at by the lane's progress, as one poller for each node. What can be
 * done at the start is: the contribution lies there when the call returns, unless slots
 * are not free yet or the block is being made. Blocks that have no room in the slots (node_v.h) go by messages of the
 * same operation, which begin with the put.
 */
#include "base/err.h"
#include "coll/node.h"
#include "coll/node_block.h"
#include "coll/node_pairs.h"
#include "coll/node_v.h"
#include "coll/port_pt2pt.h"
#include "obj/request.h"
#include "pt2pt/api.h"
#include "type/op.h"

#include <stdlib.h>
#include <string.h>

struct node_flight {
    struct link link;
    struct coll_call call;
    struct request *req;         /* NULL: somebody waits for `landed` */
    uint32_t number;             /* of the messages, should there be no block, and of `rest` */
    bool big, put, landed, lost; /* lost: there is none */
    bool awaits, taken;          /* needs others' contributions; nothing is left to be done in the slots */
    bool finished;               /* nor in the node */
    int rc;
    struct request *rest; /* the messages for what has no room; NULL: none, or they are over */
    void *arrays;         /* of the call, kept; NULL: they are the caller's, or there are none */
    struct node_wait wait;
    struct node_pairs *pairs; /* of a large one, or for what has no room; else NULL */
};

/* ---- what an operation in the background keeps ---- */

static void hold(const struct coll_call *a, int ranks)
{
    for (int r = 0; r < ranks && a->stypes; r++) type_ref(a->stypes[r]);
    for (int r = 0; r < ranks && a->rtypes; r++) type_ref(a->rtypes[r]);
    if (a->stype) type_ref(a->stype);
    if (a->rtype) type_ref(a->rtype);
    if (a->op) op_ref((struct op *)(uintptr_t)a->op);
}

static void let_go(const struct coll_call *a, int ranks)
{
    for (int r = 0; r < ranks && a->stypes; r++) type_unref(a->stypes[r]);
    for (int r = 0; r < ranks && a->rtypes; r++) type_unref(a->rtypes[r]);
    if (a->stype) type_unref(a->stype);
    if (a->rtype) type_unref(a->rtype);
    if (a->op) op_unref((struct op *)(uintptr_t)a->op);
}

static void *put_aside(const void *from, size_t bytes, char **at)
{
    if (!from) return NULL;
    char *to = *at;
    memcpy(to, from, bytes);
    *at += bytes;
    return to;
}

static bool has_arrays(const struct coll_call *a) { return a->scounts || a->rcounts; }

/* The arrays are the user's again when the call has returned. False: memory is out. */
static bool keep_arrays(struct node_flight *f)
{
    struct coll_call *a = &f->call;
    size_t ranks = (size_t)f->wait.n->size, counts = ranks * sizeof(int64_t), types = ranks * sizeof(struct type *);
    char *at = f->arrays = malloc(4 * counts + 2 * types);
    if (!at) return false;
    a->scounts = put_aside(a->scounts, counts, &at);
    a->sdispls = put_aside(a->sdispls, counts, &at);
    a->rcounts = put_aside(a->rcounts, counts, &at);
    a->rdispls = put_aside(a->rdispls, counts, &at);
    a->stypes = put_aside(a->stypes, types, &at);
    a->rtypes = put_aside(a->rtypes, types, &at);
    return true;
}

/* ---- what has no room in the slots ---- */

static int no_memory(enum coll_kind kind)
{
    return err_set(TERN_ERR_NOMEM, "no memory to start a %s", coll_kind_name(kind));
}

static void rest_over(struct request *r)
{
    struct node_flight *f = r->owner;
    if (!f->rc) f->rc = r->result.error;
    f->rest = NULL; /* the next look at the flight goes on */
    request_free(r);
}

/* The lock: others that are in flight may be looked at meanwhile. */
static int prepare_pairs(struct node_flight *f)
{
    struct lane *l = f->wait.n->comm->lane;
    lane_enter(l);
    f->pairs = node_pairs_new(f->wait.n, &f->call, f->wait.seq);
    lane_leave(l);
    return f->pairs ? 0 : no_memory(f->call.kind);
}

/* Prepares the copies or messages of that, if there is any. */
static int prepare_rest(struct node_flight *f)
{
    struct node *n = f->wait.n;
    struct coll_call rest;
    int64_t *mem;
    if (!node_v_is(f->call.kind) || !node_v_long(n, &f->call)) return 0;
    if (node_pairs_serve(n)) return prepare_pairs(f);
    node_v_rest(n, &f->call, &rest, &mem);
    struct request *r = mem ? request_new(REQ_COLL) : NULL;
    if (r) r->comm = n->comm;
    int rc = r ? coll_by_messages(r, &rest, f->number) : no_memory(f->call.kind);
    free(mem);
    if (!rc) {
        r->done = rest_over;
        r->owner = f;
        r->flags |= REQ_LAST_WORD | REQ_INTERNAL;
        f->rest = r;
    } else if (r) {
        request_free(r);
    }
    return rc;
}

/* They have not been started: there is no block. */
static TERN_COLD void drop_rest(struct node_flight *f)
{
    coll_frame_let_go(f->rest->xfer);
    coll_frame_give(f->rest->xfer);
    request_free(f->rest);
    f->rest = NULL;
}

static void stray_over(struct request *r) { request_free(r); }

/* A message that does not fit is received for its sender's sake. */
static void receive_stray(struct node *n, int rank, uint32_t number)
{
    struct request *r = request_new(REQ_RECV);
    if (!r) return;
    pt_prepare(r, REQ_RECV, n->comm, PT_COLL, NULL, 0, type_of(MPI_BYTE), rank, coll_frame_tag(number), PT_STANDARD);
    r->done = stray_over;
    r->flags |= REQ_LAST_WORD | REQ_INTERNAL;
    pt_recv_start(r);
}

/* Sender and receiver do not agree (an error of the program): nothing shall wait for what does not come. */
static TERN_COLD void straighten(struct node_flight *f)
{
    struct node *n = f->wait.n;
    for (int r = 0; r < n->size && node_v_is(f->call.kind); r++) {
        int d = node_v_disagrees(n, f->wait.seq, &f->call, r);
        if (d && node_pairs_serve(n)) {
            if (d > 0) node_pairs_refuse(n, f->wait.seq, r);
            if (d < 0 && f->pairs) node_pairs_expect_none(f->pairs, r);
        } else {
            if (d > 0) receive_stray(n, r, f->number);
            if (d < 0 && f->rest) coll_frame_give_up(f->rest->xfer, r);
        }
    }
}

void node_straighten(struct node *n, uint32_t seq, const struct coll_call *a, uint32_t number)
{
    struct node_flight f = {.call = *a, .number = number, .wait = {.n = n, .seq = seq}};
    lane_enter(n->comm->lane);
    straighten(&f);
    lane_leave(n->comm->lane);
}

/* ---- flights ---- */

static bool advance_pairs(struct node_flight *f)
{
    enum node_pairs_state s = node_pairs_step(f->pairs, &f->rc);
    f->lost = s == NODE_PAIRS_REFUSED;
    return s != NODE_PAIRS_GO_ON;
}

/* Its own contribution, and what goes along with it. */
static void put(struct node_flight *f)
{
    struct node *n = f->wait.n;
    int rc = node_put(n, f->wait.seq, &f->call);
    f->put = true;
    f->wait.rank = node_needs(n, &f->call);
    f->awaits = !rc && f->wait.rank != NODE_NOBODY;
    f->rc = rc < 0 ? rc : 0;
    if (unlikely(f->rest)) coll_go(f->rest);
    if (unlikely(f->pairs)) node_pairs_wake(f->pairs);
}

static void take(struct node_flight *f)
{
    struct node *n = f->wait.n;
    int rc = node_take(n, f->wait.seq, &f->call);
    if (likely(!rc)) return;
    straighten(f);
    f->rc = rc;
}

/* True when all that is to be had from the slots has been taken. */
static bool take_slots(struct node_flight *f)
{
    if (f->taken) return true;
    if (f->awaits) {
        if (!node_ready(&f->wait)) return false;
        take(f);
    }
    return f->taken = true;
}

/* One step; true when it is over. */
static bool advance(struct node_flight *f)
{
    struct node *n = f->wait.n;
    if (f->pairs && !node_v_is(f->call.kind)) return advance_pairs(f);
    if (!f->put) {
        if (!node_free_slots(n, f->wait.seq, f->big) || (f->pairs && !node_pairs_begin(f->pairs))) return false;
        put(f);
    }
    if (!f->finished) {
        bool taken = take_slots(f);
        if ((f->pairs && !node_pairs_go_on(f->pairs, &f->rc)) || !taken) return false;
        f->finished = true;
        node_finish(n, f->wait.seq, f->wait.rank == NODE_ALL);
    }
    return !f->rest;
}

/* Flights that are over are kept for the next ones. Lock held. */
static struct node_flight *take_flight(struct node *n)
{
    struct link *l = list_pop(&n->spare);
    if (unlikely(!l)) return malloc(sizeof(struct node_flight));
    n->spares--;
    return container_of(l, struct node_flight, link);
}

static void give_flight(struct node_flight *f)
{
    struct node *n = f->wait.n;
    free(f->arrays);
    node_pairs_free(f->pairs);
    if (n->spares < NODE_K) {
        n->spares++;
        list_push(&n->spare, &f->link);
    } else {
        free(f);
    }
}

void node_free_spare(struct node *n)
{
    for (struct link *l; (l = list_pop(&n->spare));) free(container_of(l, struct node_flight, link));
}

/* No block: by messages. */
static TERN_COLD void detour(struct node_flight *f)
{
    struct request *r = f->req;
    f->rc = coll_by_messages(r, &f->call, f->number);
    let_go(&f->call, f->wait.n->size);
    if (f->rc)
        lane_finish(r, f->rc);
    else
        coll_go(r);
    give_flight(f);
}

/* The operation is over: whoever wants to know is told. The last that sees the node, which may go with its
 * communicator. */
static void land(struct node_flight *f)
{
    struct request *r = f->req;
    if (unlikely(f->rest)) drop_rest(f);
    if (!r) {
        f->landed = true;
        if (unlikely(lane0.sleepers)) bell_ring(peer_bell()); /* another thread of ours waits for it */
    } else if (unlikely(f->lost)) {
        detour(f);
    } else {
        int rc = f->rc;
        let_go(&f->call, f->wait.n->size);
        give_flight(f);
        lane_finish(r, rc);
    }
}

static void take_off(struct node_flight *f)
{
    struct node *n = f->wait.n;
    bool first = list_empty(&n->flights);
    list_push(&n->flights, &f->link);
    atomic_store_explicit(&n->flying, 1, memory_order_relaxed);
    if (first) lane_poller_add(n->comm->lane, &n->poller);
}

static void launch(struct node_flight *f)
{
    if (likely(f->wait.n->state == NODE_READY) && advance(f))
        land(f);
    else
        take_off(f);
}

/* The helper leaves to a caller what may run users' operators, and makes way for it as soon as it has copied something. */
static bool leave_alone(const struct node_flight *f, uint32_t moved)
{
    const struct lane *l = f->wait.n->comm->lane;
    return lane_is_no_caller(l) && (!f->pairs || (f->wait.n->moved != moved && lane_wanted(l)));
}

/* Moves the flights that are at their end. */
static int collect(struct node *n, struct link *landed)
{
    uint32_t moved = n->moved;
    int count = 0;
    list_each(a, next, &n->flights)
    {
        struct node_flight *f = container_of(a, struct node_flight, link);
        if (leave_alone(f, moved)) continue;
        f->lost = n->state == NODE_NONE && !n->error;
        if (unlikely(n->error))
            f->rc = n->error;
        else if (!f->lost && !advance(f))
            continue;
        list_remove(a);
        list_push(landed, a);
        count++;
    }
    return count + (int)(n->moved - moved); /* a look that copied has found something */
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

static void none_left(struct node *n)
{
    lane_poller_remove(n->comm->lane, &n->poller);
    atomic_store_explicit(&n->flying, 0, memory_order_release); /* pairs with the acquire in node_run */
}

int node_poll(struct lane_poller *p)
{
    struct node *n = container_of(p, struct node, poller);
    struct link landed = LIST_INIT(landed);
    if (unlikely(n->state == NODE_MAKING) && !finish_making(n)) return 0;
    int count = collect(n, &landed);
    if (list_empty(&n->flights)) none_left(n);
    for (struct link *a; (a = list_pop(&landed));) land(container_of(a, struct node_flight, link));
    return count;
}

/* ---- starting them ---- */

/* The arrays, and what has no room. 0 or a code. */
static int prepare(struct node_flight *f, bool large)
{
    if (has_arrays(&f->call) && !keep_arrays(f)) return no_memory(f->call.kind);
    return large ? prepare_pairs(f) : prepare_rest(f);
}

bool node_enlist(struct node *n, const struct coll_call *a, bool big, bool large, struct request *r, int *rc_p)
{
    if (n->settled && n->state == NODE_NONE && !n->error) return false;
    struct node_flight *f = malloc(sizeof *f);
    if (!f) {
        *rc_p = no_memory(a->kind);
        return false;
    }
    *f = (struct node_flight){.call = *a, .req = r, .big = big, .wait = {.n = n, .seq = n->seq + 1}};
    /* for a large one in any case: not all ranks know at the same time whether it will be needed */
    if (!n->settled || large || node_v_is(a->kind)) f->number = n->comm->coll->seq++;
    *rc_p = prepare(f, large);
    if (unlikely(*rc_p)) {
        free(f->arrays);
        free(f);
        return false;
    }
    n->seq++;
    hold(&f->call, n->size);
    r->buf = f;
    return true;
}

/* Who waits looks at the flight itself first. */
static void look(struct request *r)
{
    struct node_flight *f = r->buf;
    struct node *n = f->wait.n;
    if (n->state != NODE_READY || !advance(f)) return;
    list_remove(&f->link);
    if (list_empty(&n->flights)) none_left(n);
    land(f);
}

static const struct request_hooks hooks = {.look = look};

struct request *node_launch_put(const struct node_wait *w, const struct coll_call *a, uint32_t number)
{
    struct node *n = w->n;
    struct lane *l = n->comm->lane;
    struct request *r = coll_request(n->comm);
    if (!r) return NULL;
    lane_enter(l);
    struct node_flight *f = take_flight(n);
    if (f) *f = (struct node_flight){.call = *a, .req = r, .number = number, .put = true, .awaits = true, .wait = *w};
    if (unlikely(!f || (has_arrays(a) && !keep_arrays(f)))) {
        free(f);
        lane_leave(l);
        pt_retire(r);
        return NULL;
    }
    hold(&f->call, n->size);
    r->buf = f;
    r->flags |= REQ_HOOKED;
    r->hooks = &hooks;
    take_off(f);
    lane_leave_to_itself(l, r);
    lane_leave(l);
    return r;
}

void node_go(struct request *r) { launch(r->buf); }

static bool has_landed(void *flight) { return ((struct node_flight *)flight)->landed; }

bool node_run_behind(struct node *n, const struct coll_call *a, bool big, uint32_t number, int *rc_p)
{
    struct node_flight f = {.call = *a, .big = big, .number = number, .wait = {.n = n, .seq = n->seq + 1}};
    struct lane *l = n->comm->lane;
    *rc_p = prepare_rest(&f);
    if (*rc_p) return false;
    n->seq++;
    lane_enter(l);
    launch(&f);
    if (!f.landed) lane_wait(l, has_landed, &f, NULL);
    lane_leave(l);
    node_pairs_free(f.pairs);
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
