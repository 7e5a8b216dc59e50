/*
 * start.c - node-local operations in the background. Each is a flight:
 *
 *     prepared -> launched: waits for the block and its slots -> put: waits for the others -> landed
 *
 * Flights are looked at by the lane's progress, as one poller for each node. What can be
 * done at the start is: the contribution lies there when the call returns, unless slots
 * are not free yet or the block is being made.
 */
#include "coll/node/node.h"
#include "coll/node/flight.h"
#include "coll/node/v.h"
#include "pt2pt/api.h"

#include <stdlib.h>

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
    node_flight_straighten(f);
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

static void drop_flight(struct node_flight *f)
{
    free(f->arrays);
    node_pairs_free(f->pairs);
    free(f);
}

/* No block: by messages. */
static TERN_COLD void detour(struct node_flight *f)
{
    struct request *r = f->req;
    r->flags |= REQ_DRIVEN;
    lane_leave_to_itself(r->comm->lane, r); /* before it goes: another thread may see its end */
    f->rc = coll_by_messages(r, &f->call, f->number);
    node_let_go(&f->call, f->wait.n->size);
    if (f->rc)
        lane_finish(r, f->rc);
    else
        coll_go(r);
    drop_flight(f);
}

static TERN_COLD void drop_arrays(struct node_flight *f)
{
    free(f->arrays);
    f->arrays = NULL;
    f->call = (struct coll_call){.kind = f->call.kind};
}

/* Its request brings it back (keep), now or when the user has waited. */
static inline void land_kept(struct node_flight *f)
{
    if (unlikely(f->holds)) node_let_go(&f->call, f->wait.n->size);
    if (unlikely(f->arrays)) drop_arrays(f);
    lane_finish_plain(f->req, f->rc);
}

/* The operation is over: whoever wants to know is told. The last that sees the node, which may go with its
 * communicator. */
static void land(struct node_flight *f)
{
    struct request *r = f->req;
    if (unlikely(f->rest)) node_drop_rest(f);
    if (!r) {
        f->landed = true;
        if (unlikely(lane0.sleepers)) bell_ring(peer_bell()); /* another thread of ours waits for it */
    } else if (unlikely(f->lost)) {
        detour(f);
    } else if (likely(f->kept)) {
        land_kept(f);
    } else {
        int rc = f->rc;
        node_let_go(&f->call, f->wait.n->size);
        drop_flight(f);
        lane_finish(r, rc);
    }
}

static void take_off(struct node_flight *f)
{
    struct node *n = f->wait.n;
    list_push(&n->flights, &f->link);
    atomic_store_explicit(&n->flying, 1, memory_order_relaxed);
    if (n->polled) return;
    n->polled = true;
    lane_poller_add(n->comm->lane, &n->poller);
}

static void launch(struct node_flight *f)
{
    if (likely(f->wait.n->state == NODE_READY) && advance(f))
        land(f);
    else
        take_off(f);
}

/* The helper leaves to a caller what may run users' operators, and makes way for it as soon as it has copied something.
 */
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

static inline void none_left(struct node *n)
{
    atomic_store_explicit(&n->flying, 0, memory_order_release); /* pairs with the acquire in has_flights (call.c) */
}

/* The next turn of progress that finds nothing in flight does that: another operation may come first. */
static void look_no_more(struct node *n)
{
    n->polled = false;
    lane_poller_remove(n->comm->lane, &n->poller);
}

int node_poll(struct lane_poller *p)
{
    struct node *n = container_of(p, struct node, poller);
    struct link landed = LIST_INIT(landed);
    if (unlikely(n->state == NODE_MAKING) && !finish_making(n)) return 0;
    int count = collect(n, &landed);
    if (list_empty(&n->flights)) {
        look_no_more(n);
        none_left(n);
    }
    for (struct link *a; (a = list_pop(&landed));) land(container_of(a, struct node_flight, link));
    return count;
}

/*
 * Whose helper copies, when all have left? Who published before others were asleep woke nobody, and was not woken. So each
 * wakes those who sleep once more when its own helper is called; the last to do so wakes one. Who is awake will come to
 * that, or is waiting and copies.
 */
void node_call_others(struct lane_poller *p)
{
    struct node *n = container_of(p, struct node, poller);
    bool copies = false;
    list_each(a, next, &n->flights) copies |= container_of(a, struct node_flight, link)->pairs != NULL;
    for (int r = 0; r < n->size && copies; r++)
        if (r != n->rank) peer_wake(comm_index(n->comm, r));
}

/* ---- starting them ---- */

/* The arrays, and what has no room. 0 or a code. */
static int prepare(struct node_flight *f, bool large)
{
    if (node_has_arrays(&f->call) && !node_keep_arrays(f)) return node_no_memory(f->call.kind);
    return large ? node_prepare_pairs(f) : node_prepare_rest(f);
}

bool node_enlist(struct node *n, const struct coll_call *a, bool big, bool large, struct request *r, int *rc_p)
{
    if (n->settled && n->state == NODE_NONE && !n->error) return false;
    struct node_flight *f = malloc(sizeof *f);
    if (!f) {
        *rc_p = node_no_memory(a->kind);
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
    if (f->pairs || f->rest) r->flags |= REQ_DRIVEN;
    n->seq++;
    node_hold(&f->call, n->size);
    r->buf = f;
    return true;
}

/*
 * Small ones, whose contribution lies there at the start: flights with a request each, which stay together for the next
 * operation (REQ_KEPT). Who waits looks at the flight itself first.
 */
static void look(struct request *r)
{
    struct node_flight *f = r->buf;
    struct node *n = f->wait.n;
    if (!node_ready(&f->wait)) return;
    take(f);
    node_finish(n, f->wait.seq, f->wait.rank == NODE_ALL);
    list_remove(&f->link);
    if (list_empty(&n->flights)) none_left(n);
    land_kept(f);
}

static void keep(struct request *r)
{
    struct node_flight *f = r->buf;
    struct node *n = f->wait.n;
    struct lane *l = n->comm->lane;
    r->h.kind = HANDLE_DEAD;
    lane_enter(l);
    list_insert(&n->spare, &f->link);
    lane_out(l); /* nothing that a helper would have to hear of */
}

static const struct request_hooks hooks = {.look = look, .keep = keep};

static TERN_COLD struct node_flight *new_kept(struct node *n)
{
    struct request *r = coll_request(n->comm);
    struct node_flight *f = r ? calloc(1, sizeof *f) : NULL;
    if (r) comm_unref(n->comm); /* as long as it is not in flight */
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

void node_free_flights(struct node *n)
{
    lane_enter(n->comm->lane);
    if (n->polled) look_no_more(n);
    lane_leave(n->comm->lane);
    for (struct link *l; (l = list_pop(&n->spare));) {
        struct node_flight *f = container_of(l, struct node_flight, link);
        f->req->flags = REQ_HEAP;
        request_free(f->req);
        free(f);
    }
}

/* What a small one without arrays needs of its call; the arrays of a kept flight are NULL. Word by word: whole vectors of what
 * the entry point has just written by words would have to wait until that is out of the store buffer. */
static inline void note_call(struct coll_call *to, const struct coll_call *a)
{
#define NOTE(field) to->field = a->field, atomic_signal_fence(memory_order_seq_cst)
    NOTE(kind), NOTE(sendbuf), NOTE(recvbuf), NOTE(scount), NOTE(rcount), NOTE(stype), NOTE(rtype), NOTE(op), NOTE(root);
#undef NOTE
}

/* Of a call with arrays: all of it. */
static TERN_COLD bool note_arrays(struct node_flight *f, const struct coll_call *a)
{
    f->call = *a;
    return node_keep_arrays(f);
}

/* Lock held. NULL: memory is out. */
static inline struct node_flight *take_kept(struct node *n, const struct coll_call *a)
{
    struct link *l = list_pop(&n->spare);
    struct node_flight *f = likely(l != NULL) ? container_of(l, struct node_flight, link) : new_kept(n);
    if (unlikely(!f)) return NULL;
    if (likely(!node_has_arrays(a))) {
        note_call(&f->call, a);
        return f;
    }
    if (note_arrays(f, a)) return f;
    list_insert(&n->spare, &f->link);
    return NULL;
}

/* Its request is in the user's hands. */
static inline struct request *hand_out(struct request *r)
{
    r->h.kind = HANDLE_REQUEST;
    r->flags = REQ_HEAP | REQ_HOOKED | REQ_KEPT;
    atomic_store_explicit(&r->complete, 0, memory_order_relaxed);
    comm_ref(r->comm);
    return r;
}

struct request *node_launch_put(const struct node_wait *w, const struct coll_call *a, uint32_t number)
{
    struct node *n = w->n;
    struct lane *l = n->comm->lane;
    lane_enter(l);
    struct node_flight *f = take_kept(n, a);
    if (unlikely(!f)) {
        lane_leave(l);
        return NULL;
    }
    f->big = f->landed = f->lost = f->taken = f->finished = false;
    f->put = f->awaits = f->kept = true;
    f->rc = 0;
    f->number = number;
    f->wait.seq = w->seq;
    f->wait.rank = w->rank;
    f->wait.seen = w->seen;
    f->holds = node_holds(a);
    if (unlikely(f->holds)) node_hold(&f->call, n->size);
    struct request *r = hand_out(f->req);
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
    *rc_p = node_prepare_rest(&f);
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
