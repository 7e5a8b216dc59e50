/*
 * ops.c - the operations inside a node, in two halves: what a rank leaves for the
 * others (put), and what it makes of theirs (take). Between the two it waits for one
 * rank, for all, or for nobody (node_needs).
 */
#include "base/err.h"
#include "coll/coll.h"
#include "coll/node/block.h"
#include "coll/node/pack.h"
#include "coll/node/v.h"

/* ---- payloads ---- */

/* Place `rank` in a user's buffer of blocks of count elements. */
static inline char *block_at(const void *buf, int rank, int64_t count, const struct type *t)
{
    return (char *)(uintptr_t)buf + rank * count * t->extent;
}

/* ---- what ranks must agree on ---- */

/* Bytes of a contribution, which lie beside its flag: a line that is looked at in any case. */
static inline void say_terms(struct node *n, uint32_t seq, int rank, uint32_t mine) { node_slot(n, seq, rank)->terms = mine; }
static inline uint32_t terms(size_t bytes) { return (uint32_t)bytes; }
#define TERMS_DIFFER UINT32_MAX /* somebody has found out that they do */

static TERN_COLD int disagree(struct node *n, uint32_t seq, int slot, const struct coll_call *a, size_t bytes)
{
    uint32_t theirs = node_slot(n, seq, slot)->terms;
    int rank = a->kind == COLL_SCATTER ? a->root : slot;
    const char *mine = coll_kind_name(a->kind);
    if (theirs != TERMS_DIFFER)
        return err_set(TERN_ERR_TRUNCATE, "rank %d gives %u bytes in a collective (%s) where rank %d expects %zu", rank,
                       theirs, mine, n->rank, bytes);
    return err_set(TERN_ERR_TRUNCATE, "the ranks do not all give %zu bytes in a collective (%s), as rank %d does",
                   bytes, mine, n->rank);
}

/* The contributions of ranks first to last - 1, which are there. */
static inline int check_terms(struct node *n, uint32_t seq, int first, int last, const struct coll_call *a, size_t bytes)
{
    uint32_t mine = terms(bytes);
    const struct node_slot *slot = node_slot(n, seq, first);
    for (int r = first; r < last; r++, slot++)
        if (unlikely(slot->terms != mine)) return disagree(n, seq, r, a, bytes);
    return 0;
}

static int contribute(struct node *n, uint32_t seq, size_t bytes)
{
    say_terms(n, seq, n->rank, terms(bytes));
    node_contribute(n, seq);
    return 0;
}

/* ---- one for all ---- */

/* The flags say all of it. */
static int put_barrier(struct node *n, uint32_t seq, const struct coll_call *a)
{
    (void)a;
    node_contribute(n, seq);
    return 0;
}

static int take_barrier(struct node *n, uint32_t seq, const struct coll_call *a)
{
    (void)n, (void)seq, (void)a;
    return 0;
}

static int put_bcast(struct node *n, uint32_t seq, const struct coll_call *a)
{
    if (n->rank != a->root) return 0;
    size_t bytes = (size_t)(a->rcount * a->rtype->size);
    node_pack(node_payload(n, seq, n->rank, bytes), a->recvbuf, a->rcount, a->rtype);
    say_terms(n, seq, n->rank, terms(bytes));
    node_signal(n, seq, n->rank);
    node_announce(n);
    return 0;
}

static int take_bcast(struct node *n, uint32_t seq, const struct coll_call *a)
{
    size_t bytes = (size_t)(a->rcount * a->rtype->size);
    int rc = check_terms(n, seq, a->root, a->root + 1, a, bytes);
    if (unlikely(rc)) return rc;
    node_unpack(a->recvbuf, a->rcount, a->rtype, node_payload(n, seq, a->root, bytes));
    return 0;
}

static int put_scatter(struct node *n, uint32_t seq, const struct coll_call *a)
{
    if (n->rank != a->root) return 0;
    size_t bytes = (size_t)(a->scount * a->stype->size);
    for (int r = 0; r < n->size; r++) {
        const char *from = block_at(a->sendbuf, r, a->scount, a->stype);
        if (r != n->rank) {
            node_pack(node_payload(n, seq, r, bytes), from, a->scount, a->stype);
            say_terms(n, seq, r, terms(bytes));
            node_signal(n, seq, r);
        } else if (a->recvbuf != MPI_IN_PLACE) {
            type_copy_across(a->recvbuf, a->rcount, a->rtype, from, a->scount, a->stype);
        }
    }
    node_announce(n);
    return 0;
}

static int take_scatter(struct node *n, uint32_t seq, const struct coll_call *a)
{
    size_t bytes = (size_t)(a->rcount * a->rtype->size);
    int rc = check_terms(n, seq, n->rank, n->rank + 1, a, bytes);
    if (unlikely(rc)) return rc;
    node_unpack(a->recvbuf, a->rcount, a->rtype, node_payload(n, seq, n->rank, bytes));
    return 0;
}

/* ---- all for one, or for all ---- */

static bool is_root_of_gather(const struct node *n, const struct coll_call *a)
{
    return a->kind == COLL_GATHER && n->rank == a->root;
}

/* The root's own block goes straight to its place. */
static int put_gather(struct node *n, uint32_t seq, const struct coll_call *a)
{
    if (is_root_of_gather(n, a)) return contribute(n, seq, (size_t)(a->rcount * a->rtype->size));
    const void *from = a->sendbuf;
    int64_t count = a->scount;
    const struct type *t = a->stype;
    if (from == MPI_IN_PLACE) {
        from = block_at(a->recvbuf, n->rank, a->rcount, a->rtype);
        count = a->rcount;
        t = a->rtype;
    }
    node_pack(node_payload(n, seq, n->rank, (size_t)(count * t->size)), from, count, t);
    return contribute(n, seq, (size_t)(count * t->size));
}

static int take_gather(struct node *n, uint32_t seq, const struct coll_call *a)
{
    size_t bytes = (size_t)(a->rcount * a->rtype->size);
    int rc = check_terms(n, seq, 0, n->size, a, bytes);
    if (unlikely(rc)) return rc;
    for (int r = 0; r < n->size; r++) {
        char *to = block_at(a->recvbuf, r, a->rcount, a->rtype);
        if (r == n->rank && a->sendbuf == MPI_IN_PLACE) continue;
        if (r == n->rank && a->kind == COLL_GATHER)
            type_copy_across(to, a->rcount, a->rtype, a->sendbuf, a->scount, a->stype);
        else
            node_unpack(to, a->rcount, a->rtype, node_payload(n, seq, r, bytes));
    }
    return 0;
}

/* Blocks of different lengths, which all ranks know. */
static int put_gatherv(struct node *n, uint32_t seq, const struct coll_call *a)
{
    bool in_place = a->sendbuf == MPI_IN_PLACE;
    const struct type *t = in_place ? a->rtype : a->stype;
    int64_t count = in_place ? a->rcounts[n->rank] : a->scount;
    const void *from = in_place ? (char *)a->recvbuf + a->rdispls[n->rank] * t->extent : a->sendbuf;
    node_pack(node_payload(n, seq, n->rank, (size_t)(count * t->size)), from, count, t);
    return contribute(n, seq, (size_t)(count * t->size));
}

static int take_gatherv(struct node *n, uint32_t seq, const struct coll_call *a)
{
    const struct type *t = a->rtype;
    for (int r = 0; r < n->size; r++) {
        int rc = check_terms(n, seq, r, r + 1, a, (size_t)(a->rcounts[r] * t->size));
        if (unlikely(rc)) return rc;
    }
    for (int r = 0; r < n->size; r++)
        if (a->sendbuf != MPI_IN_PLACE || r != n->rank)
            node_unpack((char *)a->recvbuf + a->rdispls[r] * t->extent, a->rcounts[r], t,
                   node_payload(n, seq, r, (size_t)(a->rcounts[r] * t->size)));
    return 0;
}

static int put_alltoall(struct node *n, uint32_t seq, const struct coll_call *a)
{
    bool in_place = a->sendbuf == MPI_IN_PLACE;
    const void *from = in_place ? a->recvbuf : a->sendbuf;
    int64_t count = in_place ? a->rcount : a->scount;
    const struct type *t = in_place ? a->rtype : a->stype;
    size_t one = (size_t)(count * t->size);
    char *mine = node_payload(n, seq, n->rank, one * (size_t)n->size);
    for (int r = 0; r < n->size; r++) node_pack(mine + (size_t)r * one, block_at(from, r, count, t), count, t);
    return contribute(n, seq, one);
}

static int take_alltoall(struct node *n, uint32_t seq, const struct coll_call *a)
{
    size_t one = (size_t)(a->rcount * a->rtype->size), all = one * (size_t)n->size;
    int rc = check_terms(n, seq, 0, n->size, a, one);
    if (unlikely(rc)) return rc;
    for (int r = 0; r < n->size; r++)
        node_unpack(block_at(a->recvbuf, r, a->rcount, a->rtype), a->rcount, a->rtype,
               node_payload(n, seq, r, all) + (size_t)n->rank * one);
    return 0;
}

/* ---- reductions ---- */

/* What a rank's payload of `bytes` has at offset `off`, as an element address for operators. */
static const char *operand(struct node *n, uint32_t seq, int rank, size_t bytes, size_t off, const struct type *t)
{
    return node_payload(n, seq, rank, bytes) + off - t->true_lb;
}

/* recvbuf = slot 0 op slot 1 op ... op slot last, `count` elements at offset `off` of payloads of `bytes`: evaluated
 * from the right, so the same at every rank, in rank order. */
static int combine(struct node *n, uint32_t seq, int last, size_t bytes, size_t off, int64_t count,
                   const struct coll_call *a)
{
    struct type *t = a->rtype;
    int rc = check_terms(n, seq, 0, last + 1, a, bytes);
    if (unlikely(rc)) return rc;
    if (last == 0) {
        node_unpack(a->recvbuf, count, t, node_payload(n, seq, 0, bytes) + off);
        return 0;
    }
    const void *right = operand(n, seq, last, bytes, off, t);
    for (int r = last - 1; r >= 0 && !rc; r--, right = a->recvbuf)
        rc = op_apply3(a->op, operand(n, seq, r, bytes, off, t), right, a->recvbuf, count, t);
    return rc;
}

static void leave_operand(struct node *n, uint32_t seq, const struct coll_call *a, int64_t count)
{
    const void *from = a->sendbuf == MPI_IN_PLACE ? a->recvbuf : a->sendbuf;
    size_t bytes = (size_t)(count * a->rtype->size);
    node_pack(node_payload(n, seq, n->rank, bytes), from, count, a->rtype);
    say_terms(n, seq, n->rank, terms(bytes));
}

static int put_operands(struct node *n, uint32_t seq, const struct coll_call *a, int64_t count)
{
    leave_operand(n, seq, a, count);
    node_contribute(n, seq);
    return 0;
}

static int put_reduce(struct node *n, uint32_t seq, const struct coll_call *a) { return put_operands(n, seq, a, a->rcount); }

static int take_reduce(struct node *n, uint32_t seq, const struct coll_call *a)
{
    return combine(n, seq, n->size - 1, (size_t)(a->rcount * a->rtype->size), 0, a->rcount, a);
}

/* All ranks want the result. Where they share cores, the last one computes it and the others copy. */
static int put_allreduce(struct node *n, uint32_t seq, const struct coll_call *a)
{
    if (!n->counted) return put_reduce(n, seq, a);
    size_t bytes = (size_t)(a->rcount * a->rtype->size);
    leave_operand(n, seq, a, a->rcount);
    if (!node_arrive(n, seq)) return 0;
    int rc = take_reduce(n, seq, a);
    if (unlikely(rc)) say_terms(n, seq, 0, TERMS_DIFFER);                       /* no other rank looks at all of them */
    node_pack(node_payload(n, seq, 0, bytes), a->recvbuf, a->rcount, a->rtype); /* everybody has left its own */
    node_release(n, seq);
    return rc ? rc : NODE_OVER;
}

static int take_allreduce(struct node *n, uint32_t seq, const struct coll_call *a)
{
    if (!n->counted) return take_reduce(n, seq, a);
    size_t bytes = (size_t)(a->rcount * a->rtype->size);
    int rc = check_terms(n, seq, 0, 1, a, bytes);
    if (unlikely(rc)) return rc;
    node_unpack(a->recvbuf, a->rcount, a->rtype, node_payload(n, seq, 0, bytes));
    return 0;
}

static int put_blocks(struct node *n, uint32_t seq, const struct coll_call *a)
{
    return put_operands(n, seq, a, a->rcount * n->size);
}

static int take_block(struct node *n, uint32_t seq, const struct coll_call *a)
{
    size_t one = (size_t)(a->rcount * a->rtype->size);
    return combine(n, seq, n->size - 1, one * (size_t)n->size, one * (size_t)n->rank, a->rcount, a);
}

static int64_t sum(const int64_t *counts, int n)
{
    int64_t all = 0;
    for (int r = 0; r < n; r++) all += counts[r];
    return all;
}

static int put_blocks_v(struct node *n, uint32_t seq, const struct coll_call *a)
{
    return put_operands(n, seq, a, sum(a->rcounts, n->size));
}

static int take_block_v(struct node *n, uint32_t seq, const struct coll_call *a)
{
    int64_t before = sum(a->rcounts, n->rank), all = sum(a->rcounts, n->size), size = a->rtype->size;
    return combine(n, seq, n->size - 1, (size_t)(all * size), (size_t)(before * size), a->rcounts[n->rank], a);
}

/* Prefix reductions: for the ranks above. An exclusive one leaves rank 0's buffer alone. */
static int put_scan(struct node *n, uint32_t seq, const struct coll_call *a)
{
    leave_operand(n, seq, a, a->rcount);
    node_pass_on(n, seq);
    return 0;
}

static int take_scan(struct node *n, uint32_t seq, const struct coll_call *a)
{
    int last = n->rank - (a->kind == COLL_EXSCAN);
    return last < 0 ? 0 : combine(n, seq, last, (size_t)(a->rcount * a->rtype->size), 0, a->rcount, a);
}

/* ---- all of them ---- */

enum { ROOT_NEEDS_ALL = -10, OWN_SLOT = -11, ROOTS = -12 }; /* below NODE_ALL, NODE_NOBODY and NODE_LOWER */

const struct node_op node_ops[COLL_KINDS] = {
    [COLL_BARRIER] = {put_barrier, take_barrier, NODE_ALL},
    [COLL_BCAST] = {put_bcast, take_bcast, ROOTS},
    [COLL_REDUCE] = {put_reduce, take_reduce, ROOT_NEEDS_ALL},
    [COLL_ALLREDUCE] = {put_allreduce, take_allreduce, NODE_ALL},
    [COLL_GATHER] = {put_gather, take_gather, ROOT_NEEDS_ALL},
    [COLL_ALLGATHER] = {put_gather, take_gather, NODE_ALL},
    [COLL_ALLGATHERV] = {put_gatherv, take_gatherv, NODE_ALL},
    [COLL_SCATTER] = {put_scatter, take_scatter, OWN_SLOT},
    [COLL_GATHERV] = {node_put_gatherv, node_take_gatherv, ROOT_NEEDS_ALL},
    [COLL_SCATTERV] = {node_put_scatterv, node_take_scatterv, OWN_SLOT},
    [COLL_ALLTOALLV] = {node_put_alltoallv, node_take_alltoallv, NODE_ALL},
    [COLL_ALLTOALLW] = {node_put_alltoallv, node_take_alltoallv, NODE_ALL},
    [COLL_ALLTOALL] = {put_alltoall, take_alltoall, NODE_ALL},
    [COLL_REDUCE_SCATTER_BLOCK] = {put_blocks, take_block, NODE_ALL},
    [COLL_REDUCE_SCATTER] = {put_blocks_v, take_block_v, NODE_ALL},
    [COLL_SCAN] = {put_scan, take_scan, NODE_LOWER},
    [COLL_EXSCAN] = {put_scan, take_scan, NODE_LOWER},
};

int node_needs_by_root(const struct node *n, const struct coll_call *a)
{
    bool root = n->rank == a->root;
    switch (node_ops[a->kind].needs) {
    case ROOT_NEEDS_ALL:
        return root ? NODE_ALL : NODE_NOBODY;
    case OWN_SLOT:
        return root ? NODE_NOBODY : n->rank;
    case ROOTS:
        return root ? NODE_NOBODY : a->root;
    default:
        return node_ops[a->kind].needs;
    }
}
