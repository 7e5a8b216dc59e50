/*
 * v_lend.c - long blocks of blocking v-collectives inside a node: the sender lends its memory, the receiver copies from
 * it; see v.h.
 *
 * A rank that has lent blocks waits until its count of them is 0, which their receivers take down. So only those who have
 * long blocks for each other wait for each other, and the last receiver wakes the sender.
 */
#include "base/err.h"
#include "coll/node/direct.h"
#include "coll/node/background.h"
#include "coll/node/pairs.h"
#include "coll/node/v.h"

#include <stdlib.h>
#include <string.h>

bool node_v_may_lend(const struct node *n, const struct coll_call *a)
{
    size_t least = NODE_V_PREFIX + sizeof(struct node_place);
    return node_v_to_all(a->kind) ? n->share >= least : n->counted;
}

/* ---- the sender ---- */

void node_v_say_lent(const struct node *n, char *payload, int to)
{
    const struct node_end *e = &n->lending->send[to];
    struct node_place place = {(uintptr_t)e->at, e->bytes};
    memcpy(payload, &place, sizeof place);
}

/* acquire: pairs with give_back */
static bool is_back(void *node)
{
    struct node *n = node;
    return !atomic_load_explicit(&node_done(n, n->rank)->lent, memory_order_acquire);
}

static bool is_back_or_over(void *node) { return is_back(node) || node_is_over(node); }
static void doubt_return(void *node) { node_doubt_all(node); }

static void await_return(struct node *n)
{
    struct lane *l = n->comm->lane;
    if (is_back(n)) return;
    lane_enter(l);
    lane_wait_doubting(l, is_back_or_over, n, doubt_return);
    lane_leave(l);
}

/* ---- the receiver ---- */

static int copy_lent(struct node *n, int from, const char *payload)
{
    struct node_end none = {0}, *e = n->lending ? &n->lending->recv[from] : &none;
    struct node_place place;
    memcpy(&place, payload, sizeof place);
    if (place.bytes > e->bytes)
        return err_set(TERN_ERR_TRUNCATE, "rank %d sends %llu bytes, which is more than is expected of it", from,
                       (unsigned long long)place.bytes);
    e->bytes = place.bytes;
    if (!e->at) return err_set(TERN_ERR_NOMEM, "no memory to unpack the block of rank %d", from);
    return node_fetch(n, from, e->at, place.at, place.bytes);
}

/* release: our reads are over; pairs with is_back */
static void give_back(struct node *n, int from)
{
    if (atomic_fetch_sub_explicit(&node_done(n, from)->lent, 1, memory_order_release) != 1) return;
    lane_enter(n->comm->lane);
    peer_wake(comm_index(n->comm, from));
    lane_leave(n->comm->lane);
}

int node_v_take_lent(struct node *n, int from, const char *payload)
{
    int rc = copy_lent(n, from, payload);
    give_back(n, from);
    return rc;
}

/* ---- the operation ---- */

static uint32_t count_long(const struct node *n)
{
    uint32_t count = 0;
    for (int r = 0; r < n->size; r++) count += n->lending->send[r].bytes > 0;
    return count;
}

static int run(struct node *n, const struct coll_call *a)
{
    /* relaxed: told by the flags */
    atomic_store_explicit(&node_done(n, n->rank)->lent, count_long(n), memory_order_relaxed);
    uint32_t seq;
    int rc = node_begin(n, node_v_big(n, a), NODE_BY_SLOTS, &seq);
    if (rc) return rc;
    int needs = node_needs(n, a);
    rc = node_put(n, seq, a);
    if (needs != NODE_NOBODY) {
        rc = node_wait_for(n, seq, needs);
        if (!rc) rc = node_take(n, seq, a);
    }
    node_finish(n, seq, needs == NODE_ALL);
    await_return(n);
    return rc;
}

int node_v_lend(struct node *n, const struct coll_call *a)
{
    struct node_end *ends = calloc(2 * (size_t)n->size, sizeof *ends);
    if (!ends) return node_no_memory(a->kind);
    struct node_ends e = {.send = ends, .recv = ends + n->size, .size = n->size, .rank = n->rank};
    n->lending = &e;
    node_v_ends(n, a, &e);
    node_ends_open(&e);
    int rc = run(n, a);
    if (!rc) node_ends_unpack(&e);
    node_ends_free(&e);
    free(ends);
    n->lending = NULL;
    return rc;
}
