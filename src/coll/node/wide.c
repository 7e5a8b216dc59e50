/*
 * wide.c - see wide.h: the memory, and an operation as slices of the vector, or of each
 * block, one after the other. Each slice is what a small operation is: who has something leaves it in its slot, who
 * needs something takes it (wide_ops.c).
 */
#include "coll/node/wide.h"
#include "base/err.h"
#include "base/var.h"
#include "coll/node/wide_in.h"
#include "transport/endpoint.h"
#include "transport/peer.h"

#define SLICE_LEAST 256 /* bytes; less is not worth a switch */

/*
 * Ranks that share cores: few large slices, since each is a switch, but no larger than what stays in a core's own
 * cache. With a core for each, one rank fills slots while another one empties those before.
 */
static const struct wide_shape {
    uint32_t sets;
    size_t most; /* bytes of a slot */
} shared_cores = {2, 128 << 10}, own_cores = {8, 16 << 10};

static const struct wide_shape *shape(void) { return node_counts() ? &shared_cores : &own_cores; }

/* ---- memory ---- */

/* Of all communicators whose rank 0 this process is: half of the heap that peers map (shm/segment.h), which others
 * need. */
#define WHOLE_MOST ((size_t)32 << 20)

static _Atomic size_t whole_taken; /* on different lanes perhaps; a mere sum, so relaxed */

/* False: that would be too much. */
static bool take_share(size_t bytes)
{
    if (atomic_fetch_add_explicit(&whole_taken, bytes, memory_order_relaxed) + bytes <= WHOLE_MOST) return true;
    atomic_fetch_sub_explicit(&whole_taken, bytes, memory_order_relaxed);
    return false;
}

static void give_share(size_t bytes) { atomic_fetch_sub_explicit(&whole_taken, bytes, memory_order_relaxed); }

static size_t slot_bytes(int ranks)
{
    size_t share = (size_t)var_int(VAR_COLL_WIDE) / shape()->sets / (size_t)ranks;
    return min_size(share, shape()->most) & ~(size_t)4095;
}

/* Rank 0: where it is, for the others. */
static void take_memory(struct node *n, size_t bytes)
{
    if (!take_share(bytes)) return;
    lane_enter(n->comm->lane);
    n->wide.block = peer_shared_alloc(bytes, &n->head->wide_at);
    lane_leave(n->comm->lane);
    if (!n->wide.block) give_share(bytes);
    n->wide.at = n->wide.block;
}

/* Rank 0's word comes behind the place. */
static bool first_has_it(struct node *n)
{
    bool yes = false;
    return !node_await_words(n, NODE_HAS_WIDE, 1, &yes) && yes;
}

static char *map_memory(struct node *n, uint64_t off, size_t bytes)
{
    lane_enter(n->comm->lane);
    struct peer *p = peer_get(comm_index(n->comm, 0));
    char *at = p && (p->ep.caps & TP_CAP_MAP) ? ep_map(&p->ep, off, bytes) : NULL;
    lane_leave(n->comm->lane);
    return at;
}

/* All ranks have it, or none uses it. */
static int open_memory(struct node *n, bool *all_p)
{
    n->wide.bytes = slot_bytes(n->size);
    n->wide.sets = shape()->sets;
    n->wide.whole = n->wide.sets * (size_t)n->size * n->wide.bytes;
    if (n->rank == 0)
        take_memory(n, n->wide.whole);
    else if (first_has_it(n))
        n->wide.at = map_memory(n, n->head->wide_at, n->wide.whole);
    node_tell(n, NODE_HAS_WIDE, n->wide.at != NULL);
    return node_await_all(n, NODE_HAS_WIDE, all_p);
}

void node_wide_free(struct node *n)
{
    if (!n->wide.block) return;
    peer_shared_free(n->wide.block, n->wide.whole);
    give_share(n->wide.whole);
}

/* ---- slots ---- */

/* The wide slots of the next operation are free when all have finished the last one that may have used them. */
static bool next_is_free(void *node)
{
    struct node *n = node;
    return node_free_slots(n, n->seq + NODE_K - n->wide.sets, false);
}

static bool is_free_or_over(void *node) { return next_is_free(node) || node_is_over(node); }
static void doubt_free(void *node) { node_doubt_all(node); }

/* As node_begin. The length is part of the sign: ranks that do not agree on it have different slices. */
static int begin(struct node_pass *p)
{
    struct node *n = p->n;
    struct lane *l = n->comm->lane;
    int rc = 0;
    p->seq = ++n->seq;
    if (!next_is_free(n)) {
        lane_enter(l);
        lane_wait_at(l, is_free_or_over, n, &n->head->room, doubt_free);
        lane_leave(l);
        rc = node_failed(n);
    }
    node_take_sign(n, n->seq, node_sign(n, (p->block * UINT64_C(0x9e3779b97f4a7c15) >> 32) | 1));
    return rc;
}

/* ---- which ---- */

/* Whom this rank waits for, as in node_wait_for. */
static int awaited(const struct node_pass *p)
{
    switch (node_wide_ops[p->a->kind].needs) {
    case NODE_WIDE_ROOT_ALL:
        return node_pass_root(p) ? NODE_ALL : NODE_NOBODY;
    case NODE_WIDE_ROOTS:
        return node_pass_root(p) ? NODE_NOBODY : p->a->root;
    case NODE_WIDE_OWN:
        return node_pass_root(p) ? NODE_NOBODY : p->n->rank;
    default:
        return NODE_ALL;
    }
}

/* Does so. With a core for each, slots that need not be waited for may not be signalled at all. *all_p: all have come.
 */
static int wait_for(const struct node_pass *p, int whom, bool *all_p)
{
    struct node *n = p->n;
    bool lower = node_wide_ops[p->a->kind].needs == NODE_WIDE_LOWER;
    int rc = 0;
    if (whom != NODE_ALL || n->counted) {
        *all_p = whom == NODE_ALL || n->size == 2;
        return node_wait_for(n, p->seq, whom);
    }
    int end = lower ? n->rank : n->size;
    for (int r = 0; r < end && !rc; r++)
        if (r != n->rank) rc = node_wait_for(n, p->seq, r);
    *all_p = !lower || n->rank == n->size - 1;
    return rc;
}

/* Bytes of a slice: whole elements where they are combined. */
static size_t slice(const struct coll_call *a, int ranks)
{
    bool blocks = a->kind == COLL_ALLTOALL || a->kind == COLL_REDUCE_SCATTER || a->kind == COLL_REDUCE_SCATTER_BLOCK;
    size_t most = slot_bytes(ranks) / (blocks ? (size_t)ranks : 1);
    return coll_reduces(a->kind) ? most / (size_t)a->rtype->size * (size_t)a->rtype->size : most & ~(size_t)63;
}

/*
 * The blocks of an alltoall are cut into as many slices as it takes that all ranks' slices fit into the slots beside
 * each other: if they are small and many, the ranks are switched too often. 2 busy cores, processor time of the wide
 * slots and of copying from memory to memory: 4 ranks, 256 KB in 8 slices 326 and 445 us, 1 MB in 32 slices of 32
 * KB 1.6 and 2.6 ms; 16 ranks, 4 KB in 1 slice 220 us (messages: 2.5 ms), 64 KB in 16 slices of 4 KB 4.4 ms both.
 */
#define ALLTOALL_SLICES 8
#define ALLTOALL_SLICE ((size_t)16 << 10)

static bool too_many_slices(const struct coll_call *a, int ranks, int64_t bytes)
{
    size_t one = slice(a, ranks);
    return a->kind == COLL_ALLTOALL && one < ALLTOALL_SLICE && bytes > (int64_t)one * ALLTOALL_SLICES;
}

#define ANY_BYTES INT64_MAX

/*
 * With a core for each, two ranks: up to how many bytes (as in node_run) this is faster than messages, where direct.h is
 * not for it. Best of 8 launches in turn on a busy machine of 2 cores, messages and this, us: reduce of 1 MB 133 and 69,
 * allreduce 153 and 125, scan 222 and 79, reduce_scatter_block 290 and 126.
 *
 * What only one of the two gets is copied half by each as a message: that takes the same time however far the cores are
 * apart, but a line that goes through a slot has to cross twice. 64 KB, messages and this: near (8 bytes cross in 0.06 us)
 * scatter 6.4 and 5.3, exscan 6.8 and 5.6; far (0.25 us) bcast 6.7 and 12.7, gather 7.7 and 11.3, scatter 7.4 and 12.7,
 * exscan 8.9 and 14.5.
 */
static const int64_t most_of_two[COLL_KINDS] = {
    [COLL_BCAST] = 32 << 10,
    [COLL_SCATTER] = 32 << 10,
    [COLL_GATHER] = 32 << 10,
    [COLL_EXSCAN] = 32 << 10,
    [COLL_ALLGATHER] = 256 << 10,
    [COLL_ALLTOALL] = 256 << 10,
    [COLL_REDUCE] = ANY_BYTES,
    [COLL_ALLREDUCE] = ANY_BYTES,
    [COLL_SCAN] = ANY_BYTES,
    [COLL_REDUCE_SCATTER] = ANY_BYTES,
    [COLL_REDUCE_SCATTER_BLOCK] = ANY_BYTES,
};

/* Three and more, who copy from memory to memory if they may (direct.h) and the operation has that. */
#define MOST_OF_MORE (128 << 10)

static bool suits_own_cores(const struct comm *c, const struct coll_call *a, int64_t bytes)
{
    if (c->size == 2) return bytes <= most_of_two[a->kind];
    return most_of_two[a->kind] && bytes <= MOST_OF_MORE && !too_many_slices(a, c->size, bytes);
}

bool node_wide_suits(const struct comm *c, const struct coll_call *a, int64_t bytes)
{
    if (!node_wide_ops[a->kind].take) return false;
    bytes = node_longest_block(a, c->size, bytes);
    if (bytes <= 0 || !var_int(VAR_COLL_NODE)) return false;
    if (coll_reduces(a->kind) && (!a->rtype->contig || a->rtype->size <= 0)) return false;
    if (slice(a, c->size) < SLICE_LEAST) return false;
    return node_counts() ? !too_many_slices(a, c->size, bytes) : suits_own_cores(c, a, bytes);
}

static int run_slice(struct node_pass *p)
{
    const struct node_wide_op *w = &node_wide_ops[p->a->kind];
    int whom = awaited(p);
    bool all = false;
    int rc = begin(p);
    if (unlikely(rc)) return rc;
    rc = w->leave(p);
    if (whom != NODE_NOBODY) {
        int failed = wait_for(p, whom, &all);
        if (!rc) rc = failed ? failed : w->take(p);
    }
    node_finish(p->n, p->seq, all);
    return rc;
}

bool node_wide_run(struct node *n, const struct coll_call *a, int64_t bytes, int *rc_p)
{
    struct node_pass p = {.n = n, .a = a, .block = (size_t)node_longest_block(a, n->size, bytes)};
    bool all = node_all(n, NODE_HAS_WIDE) == NODE_YES;
    *rc_p = node_has_told(n, NODE_HAS_WIDE) ? 0 : open_memory(n, &all);
    if (*rc_p || !all) return false;
    node_pass_open(&p);
    int rc = p.lacks;
    for (size_t step = slice(a, n->size); p.at < p.block && !node_failed(n); p.at += step) {
        p.len = min_size(step, p.block - p.at);
        int failed = run_slice(&p); /* the others go on */
        if (!rc) rc = failed;
    }
    node_pass_close(&p, !rc);
    *rc_p = rc;
    return true;
}
