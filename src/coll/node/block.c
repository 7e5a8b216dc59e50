/*
 * block.c - making a communicator's node-local block; it is given back by retire.c.
 *
 * Rank 0 of the communicator takes it from its shared heap and tells the others
 * where, by a broadcast of messages that goes on in the background: what was started
 * in the meantime waits for it. If there is no memory that all can map, that goes by messages, under the
 * numbers that it has taken.
 */
#include "coll/node/block.h"
#include "base/err.h"
#include "base/var.h"
#include "coll/node/node.h"
#include "coll/node/pairs.h"
#include "coll/node/v.h"
#include "obj/request.h"
#include "proc/jobs.h"
#include "proc/proc.h"
#include "pt2pt/api.h"
#include "pt2pt/lane.h"
#include "transport/endpoint.h"
#include "transport/wires.h"

#include <stdlib.h>
#include <string.h>

static struct node none; /* coll_comm.node of a communicator that cannot have one */

size_t node_layout(struct node *n, char *base)
{
    size_t at = 0, p = (size_t)n->size;
    n->head = (struct node_head *)(base + at);
    at += sizeof *n->head;
    n->done_of = (struct node_done *)(base + at);
    at += p * sizeof *n->done_of;
    n->slots = (struct node_slot *)(base + at);
    at += NODE_K * p * sizeof *n->slots;
    n->middle = base + at;
    at += NODE_K * p * NODE_MIDDLE;
    n->big = base + at;
    at += NODE_BIG_K * p * n->big_bytes;
    return at + node_pairs_layout(n, base + at);
}

/* Of a communicator that goes: by a thread of the user's, or by one that ended an operation and holds the lane's lock. */
static void node_free(void *node)
{
    if (node == &none) return;
    struct node *n = node;
    node_free_background(n); /* leaves the gates */
    node_retire(n);
    free(n);
}

/* ---- making one ---- */

static bool eligible(const struct comm *c)
{
    if (c->inter || c->size < 2 || c->size > NODE_RANKS_MAX || !peer_shared_public()) return false;
    for (int r = 0; r < c->size; r++)
        if (!jobs_is_own(comm_index(c, r)) || proc_node_of(comm_index(c, r)) != proc_self()->node) return false;
    return true;
}

static bool all_can_map(const struct comm *c)
{
    for (int r = 0; r < c->size; r++)
        if (!peer_is_mappable(comm_index(c, r))) return false;
    return true;
}

/* Rank 0: the block, and its offset in this process's segment; 0 when the heap is used up, or a member cannot map it. */
static uint64_t take_block(struct node *n)
{
    uint64_t off = 0;
    if (!all_can_map(n->comm)) return 0;
    lane_enter(n->comm->lane);
    node_reclaim();
    n->block = peer_shared_alloc(n->bytes, &off);
    lane_leave(n->comm->lane);
    return n->block ? off : 0;
}

/* Maps rank 0's block, which begins at `off` of its segment. */
static int map_block(struct node *n, uint64_t off, char **base_p)
{
    *base_p = n->block;
    if (n->rank == 0) return 0;
    lane_enter(n->comm->lane);
    struct peer *p = peer_get(comm_index(n->comm, 0));
    int rc = p ? 0 : err_code();
    *base_p = p && (p->ep.caps & TP_CAP_MAP) ? ep_map(&p->ep, off, node_layout(n, NULL)) : NULL;
    lane_leave(n->comm->lane);
    return *base_p || rc ? rc : err_set(TERN_ERR_SYSTEM, "it does not lie in the shared memory that was mapped");
}

static int attach(struct node *n)
{
    char *base;
    int rc = map_block(n, n->block_at - 1, &base);
    if (rc) return err_set(rc, "the memory for collectives inside the node cannot be mapped: %s", err_words());
    node_layout(n, base);
    n->safe = NODE_K;
    if (atomic_load_explicit(&wires_bell()->fenced, memory_order_relaxed))
        atomic_store_explicit(&n->head->fenced, 1, memory_order_relaxed);
    n->counted = n->comm->coll->oversubscribed;
    n->step.gate[0] = &n->head->gate;
    n->step.gate[1] = &n->head->room;
    return 0;
}

/* v-collectives have more to look at. Lane held: the block may be made by any thread that makes progress, while the
 * communicator's thread settles it. */
static void open_quick_way(struct node *n)
{
    uint32_t kinds = 0;
    if (!n->settled || n->state != NODE_READY) return;
    for (int k = 0; k < COLL_KINDS; k++)
        if (node_can(k) && !node_v_is(k) && !coll_has_blocks(k)) kinds |= 1u << k;
    atomic_store_explicit(&n->quick, kinds, memory_order_release); /* pairs with node_is_quick */
}

void node_make(struct node *n)
{
    if (!n->error && n->block_at > 1) n->error = attach(n);
    if (n->error) pt_call_log_give_up(n->comm, n->error);
    n->state = n->error || n->block_at == 1 ? NODE_NONE : NODE_READY;
    open_quick_way(n);
}

void node_settled(struct node *n)
{
    lane_enter(n->comm->lane);
    n->settled = true;
    open_quick_way(n);
    lane_leave(n->comm->lane);
}

/* The broadcast is over here. Whoever looks at the node next goes on (node_make): this is called from inside of
 * messages. */
static void told(struct request *r)
{
    struct node *n = r->owner;
    struct comm *c = r->comm;
    if (n->rank) { /* rank 0 has known before */
        n->error = r->result.error;
        if (n->error) pt_call_log_give_up(c, n->error); /* the words are this thread's */
        n->block_at = n->told;
    }
    request_free(r);
    comm_unref(c);
}

/* Begins the making. Rank 0 knows the outcome at once. */
static int begin(struct comm *c, struct node *n)
{
    struct coll_call a = {
        .kind = COLL_BCAST, .recvbuf = &n->told, .rcount = sizeof n->told, .rtype = type_of(MPI_BYTE)};
    struct request *r;
    n->comm = c;
    n->rank = c->rank;
    n->size = c->size;
    n->big_bytes = round_up((size_t)node_limit(n->size) + NODE_V_PREFIX * (size_t)n->size, CACHE_LINE);
    node_v_shares(n);
    n->bytes = node_layout(n, NULL);
    list_init(&n->background);
    list_init(&n->spare);
    n->step.ops = &node_background_ops;
    if (c->rank == 0) n->block_at = n->told = 1 + take_block(n);
    int rc = coll_prepare_messages(c, &a, &r);
    if (rc) return rc;
    r->done = told;
    r->owner = n;
    r->flags |= REQ_LAST_WORD | REQ_INTERNAL;
    lane_enter(c->lane);
    coll_go(r);
    if (n->rank == 0) node_make(n);
    lane_leave(c->lane);
    return 0;
}

static struct node *make(struct comm *c, struct coll_comm *k, int *rc_p)
{
    k->node = &none;
    k->node_free = node_free;
    if (!eligible(c)) return NULL;
    struct node *n = calloc(1, sizeof *n);
    if (!n) {
        *rc_p = err_set(TERN_ERR_NOMEM, "no memory for collectives inside the node");
        return NULL;
    }
    k->node = n;
    *rc_p = begin(c, n);
    return *rc_p ? NULL : n;
}

struct node *node_get(struct comm *c, int *rc_p)
{
    struct coll_comm *k = c->coll;
    *rc_p = 0;
    if (unlikely(!k->node)) return make(c, k, rc_p);
    return likely(k->node != &none) ? k->node : NULL;
}
