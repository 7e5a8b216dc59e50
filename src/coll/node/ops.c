/*
 * ops.c - the operations inside a node, in two halves: what a rank leaves for the
 * others (put), and what it makes of theirs (take). Between the two it waits for one
 * rank, for all, or for nobody (node_needs).
 */
#include "base/err.h"
#include "coll/coll.h"
#include "coll/node/block.h"
#include "coll/node/blocks.h"
#include "coll/node/v.h"

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

/* A block in the slot of one rank. */
static void leave(struct node *n, uint32_t seq, int slot, struct node_block b)
{
    size_t bytes = node_bytes(&b);
    node_pack(node_payload(n, seq, slot, bytes), b);
    say_terms(n, seq, slot, terms(bytes));
    node_signal(n, seq, slot);
}

static int take(struct node *n, uint32_t seq, int slot, const struct coll_call *a)
{
    struct node_block b = node_got_first(a);
    size_t bytes = node_bytes(&b);
    int rc = check_terms(n, seq, slot, slot + 1, a, bytes);
    if (likely(!rc)) node_unpack(b, node_payload(n, seq, slot, bytes));
    return rc;
}

static int put_bcast(struct node *n, uint32_t seq, const struct coll_call *a)
{
    if (n->rank != a->root) return 0;
    leave(n, seq, n->rank, node_got_first(a));
    node_announce(n);
    return 0;
}

static int take_bcast(struct node *n, uint32_t seq, const struct coll_call *a) { return take(n, seq, a->root, a); }

static int put_scatter(struct node *n, uint32_t seq, const struct coll_call *a)
{
    if (n->rank != a->root) return 0;
    struct node_block first = node_sent_first(a);
    for (int r = 0; r < n->size; r++)
        if (r != n->rank) leave(n, seq, r, node_nth(first, r));
    node_announce(n);
    if (a->recvbuf != MPI_IN_PLACE) node_move(node_got_first(a), node_nth(first, n->rank));
    return 0;
}

static int take_scatter(struct node *n, uint32_t seq, const struct coll_call *a) { return take(n, seq, n->rank, a); }

/* ---- all for one, or for all ---- */

static bool is_root_of_gather(const struct node *n, const struct coll_call *a)
{
    return a->kind == COLL_GATHER && n->rank == a->root;
}

/* Also blocks of different lengths, which all ranks know. The root of a gather leaves nothing. */
static int put_gather(struct node *n, uint32_t seq, const struct coll_call *a)
{
    bool root = is_root_of_gather(n, a);
    struct node_block b = root ? node_got_first(a) : a->sendbuf == MPI_IN_PLACE ? node_got(a, n->rank) : node_sent_first(a);
    size_t bytes = node_bytes(&b);
    if (!root) node_pack(node_payload(n, seq, n->rank, bytes), b);
    return contribute(n, seq, bytes);
}

static int take_gather(struct node *n, uint32_t seq, const struct coll_call *a)
{
    bool own_aside = is_root_of_gather(n, a) || a->sendbuf == MPI_IN_PLACE;
    for (int r = 0; r < n->size; r++) {
        struct node_block b = node_got(a, r);
        size_t bytes = node_bytes(&b);
        int rc = check_terms(n, seq, r, r + 1, a, bytes);
        if (unlikely(rc)) return rc;
        if (r != n->rank || !own_aside) node_unpack(b, node_payload(n, seq, r, bytes));
    }
    if (own_aside && a->sendbuf != MPI_IN_PLACE) node_move(node_got(a, n->rank), node_sent_first(a));
    return 0;
}

static int put_alltoall(struct node *n, uint32_t seq, const struct coll_call *a)
{
    struct node_block first = a->sendbuf == MPI_IN_PLACE ? node_got_first(a) : node_sent_first(a);
    size_t one = node_bytes(&first);
    char *mine = node_payload(n, seq, n->rank, one * (size_t)n->size);
    for (int r = 0; r < n->size; r++) node_pack(mine + (size_t)r * one, node_nth(first, r));
    return contribute(n, seq, one);
}

static int take_alltoall(struct node *n, uint32_t seq, const struct coll_call *a)
{
    struct node_block first = node_got_first(a);
    size_t one = node_bytes(&first), all = one * (size_t)n->size;
    int rc = check_terms(n, seq, 0, n->size, a, one);
    if (unlikely(rc)) return rc;
    for (int r = 0; r < n->size; r++)
        node_unpack(node_nth(first, r), node_payload(n, seq, r, all) + (size_t)n->rank * one);
    return 0;
}

/* ---- reductions ---- */

/* What a rank's payload of `bytes` has at offset `off`, as an element address for operators. */
static const char *operand(struct node *n, uint32_t seq, int rank, size_t bytes, size_t off, const struct type *t)
{
    return node_payload(n, seq, rank, bytes) + off - t->true_lb;
}

/* recvbuf = slot 0 op slot 1 op ... op slot last, of the elements that this rank gets: evaluated from the right, so the
 * same at every rank, in rank order. */
static int combine(struct node *n, uint32_t seq, int last, const struct coll_call *a)
{
    int64_t before;
    struct node_block all = node_operand(a, n->size), to = node_result(a, n->rank, &before);
    size_t bytes = node_bytes(&all), off = (size_t)(before * all.type->size);
    int rc = check_terms(n, seq, 0, last + 1, a, bytes);
    if (unlikely(rc)) return rc;
    if (last == 0) {
        node_unpack(to, node_payload(n, seq, 0, bytes) + off);
        return 0;
    }
    const void *right = operand(n, seq, last, bytes, off, all.type);
    for (int r = last - 1; r >= 0 && !rc; r--, right = to.buf)
        rc = op_apply3(a->op, operand(n, seq, r, bytes, off, all.type), right, to.buf, to.count, all.type);
    return rc;
}

static void leave_operand(struct node *n, uint32_t seq, const struct coll_call *a)
{
    struct node_block b = node_operand(a, n->size);
    size_t bytes = node_bytes(&b);
    node_pack(node_payload(n, seq, n->rank, bytes), b);
    say_terms(n, seq, n->rank, terms(bytes));
}

static int put_operand(struct node *n, uint32_t seq, const struct coll_call *a)
{
    leave_operand(n, seq, a);
    node_contribute(n, seq);
    return 0;
}

static int take_result(struct node *n, uint32_t seq, const struct coll_call *a) { return combine(n, seq, n->size - 1, a); }

/* All ranks want the result. Where they share cores, the last one computes it and the others copy. */
static int put_allreduce(struct node *n, uint32_t seq, const struct coll_call *a)
{
    if (!n->counted) return put_operand(n, seq, a);
    leave_operand(n, seq, a);
    if (!node_arrive(n, seq)) return 0;
    int64_t before;
    struct node_block result = node_result(a, n->rank, &before);
    int rc = take_result(n, seq, a);
    if (unlikely(rc)) say_terms(n, seq, 0, TERMS_DIFFER); /* no other rank looks at all of them */
    node_pack(node_payload(n, seq, 0, node_bytes(&result)), result); /* everybody has left its own */
    node_release(n, seq);
    return rc ? rc : NODE_OVER;
}

static int take_allreduce(struct node *n, uint32_t seq, const struct coll_call *a)
{
    return n->counted ? combine(n, seq, 0, a) : take_result(n, seq, a);
}

/* ---- prefix reductions ---- */

/*
 * For the ranks above. An exclusive one leaves rank 0's buffer alone.
 *
 * Each rank leaves its operand at once, so that nobody has to wait for a rank that computes. A short one has room for what all
 * ranks up to this one give together as well, its prefix, which is there as soon as it is known: at the start, if the rank
 * below has its own, and then the operand is left out. So among ranks that share cores, of which low ones run ahead, each
 * looks at one slot. All combine from the left: the result has the same bits whichever of them it is made of.
 *
 *   payload of a short one:  | operand | prefix |
 */
static bool has_prefix(size_t bytes) { return 2 * bytes <= NODE_MIDDLE; }

/* That of a rank, as an element address. */
static char *prefix(struct node *n, uint32_t seq, int rank, size_t bytes, const struct type *t)
{
    return node_payload(n, seq, rank, 2 * bytes) + bytes - t->true_lb;
}

/* From the prefix below, NULL if there is none, and the operand of this rank: its prefix, and the result. */
static int extend(struct node *n, uint32_t seq, const struct coll_call *a, const char *below, const void *own)
{
    int64_t count = a->rcount;
    struct type *t = a->rtype;
    char *mine = prefix(n, seq, n->rank, (size_t)(count * t->size), t);
    const char *result = a->kind == COLL_SCAN ? mine : below;
    int rc = 0;
    if (below)
        rc = op_apply3(a->op, below, own, mine, count, t);
    else
        node_pack(mine + t->true_lb, node_block(own, count, t));
    if (result && result != a->recvbuf) node_unpack(node_got_first(a), result + t->true_lb);
    return rc;
}

/* The ranks above hear of it by the terms. */
static int say_prefix(struct node *n, uint32_t seq, int rc, memory_order order)
{
    if (unlikely(rc)) say_terms(n, seq, n->rank, TERMS_DIFFER);
    atomic_store_explicit(&node_slot(n, seq, n->rank)->prefix, 1, order);
    return rc;
}

/* What is below has come with its prefix. */
static int put_prefix(struct node *n, uint32_t seq, const struct coll_call *a, struct node_block own)
{
    size_t bytes = node_bytes(&own);
    int below = n->rank - 1, rc = 0;
    say_terms(n, seq, n->rank, terms(bytes));
    if (below >= 0) rc = check_terms(n, seq, below, n->rank, a, bytes);
    if (!rc) rc = extend(n, seq, a, below < 0 ? NULL : prefix(n, seq, below, bytes, own.type), own.buf);
    say_prefix(n, seq, rc, memory_order_relaxed); /* the flag is behind it */
    node_pass_on(n, seq);
    return rc ? rc : NODE_OVER;
}

static int put_scan(struct node *n, uint32_t seq, const struct coll_call *a)
{
    struct node_block own = node_operand(a, n->size);
    size_t bytes = node_bytes(&own);
    bool is_short = has_prefix(bytes);
    if (is_short && (!n->rank || node_is_prefix(node_slot(n, seq, n->rank - 1), node_flag(n, seq)))) return put_prefix(n, seq, a, own);
    node_pack(node_payload(n, seq, n->rank, is_short ? 2 * bytes : bytes), own);
    say_terms(n, seq, n->rank, terms(bytes));
    node_say_no_prefix(n, seq);
    node_pass_on(n, seq);
    return 0;
}

/* The highest prefix below this rank, with the operands of the ranks between: *below_p is an element address. The last step
 * is made in the user's buffer, the one before that where the own prefix will be, and so on. */
static int combine_below(struct node *n, uint32_t seq, const struct coll_call *a, size_t bytes, const char **below_p)
{
    struct type *t = a->rtype;
    int r = n->rank - 1;
    while (r && !node_is_prefix(node_slot(n, seq, r), node_flag(n, seq))) r--; /* that of rank 0 came with its flag */
    const char *below = prefix(n, seq, r, bytes, t);
    int rc = check_terms(n, seq, r, n->rank, a, bytes);
    while (++r < n->rank && !rc) {
        char *to = (n->rank - r) % 2 ? a->recvbuf : prefix(n, seq, n->rank, bytes, t);
        rc = op_apply3(a->op, below, node_payload(n, seq, r, 2 * bytes) - t->true_lb, to, a->rcount, t);
        below = to;
    }
    *below_p = below;
    return rc;
}

static int take_scan(struct node *n, uint32_t seq, const struct coll_call *a)
{
    size_t bytes = (size_t)(a->rcount * a->rtype->size);
    const char *below;
    if (!has_prefix(bytes)) return n->rank || a->kind == COLL_SCAN ? combine(n, seq, n->rank - (a->kind == COLL_EXSCAN), a) : 0;
    int rc = combine_below(n, seq, a, bytes, &below);
    if (!rc) rc = extend(n, seq, a, below, node_payload(n, seq, n->rank, 2 * bytes) - a->rtype->true_lb);
    return say_prefix(n, seq, rc, memory_order_release); /* pairs with node_is_prefix */
}

/* ---- all of them ---- */

enum { ROOT_NEEDS_ALL = -10, OWN_SLOT = -11, ROOTS = -12 }; /* below NODE_ALL, NODE_NOBODY and NODE_LOWER */

const struct node_op node_ops[COLL_KINDS] = {
    [COLL_BARRIER] = {put_barrier, take_barrier, NODE_ALL},
    [COLL_BCAST] = {put_bcast, take_bcast, ROOTS},
    [COLL_REDUCE] = {put_operand, take_result, ROOT_NEEDS_ALL},
    [COLL_ALLREDUCE] = {put_allreduce, take_allreduce, NODE_ALL},
    [COLL_GATHER] = {put_gather, take_gather, ROOT_NEEDS_ALL},
    [COLL_ALLGATHER] = {put_gather, take_gather, NODE_ALL},
    [COLL_ALLGATHERV] = {put_gather, take_gather, NODE_ALL},
    [COLL_SCATTER] = {put_scatter, take_scatter, OWN_SLOT},
    [COLL_GATHERV] = {node_put_gatherv, node_take_v, ROOT_NEEDS_ALL},
    [COLL_SCATTERV] = {node_put_scatterv, node_take_scatterv, OWN_SLOT},
    [COLL_ALLTOALLV] = {node_put_alltoallv, node_take_v, NODE_ALL},
    [COLL_ALLTOALLW] = {node_put_alltoallv, node_take_v, NODE_ALL},
    [COLL_ALLTOALL] = {put_alltoall, take_alltoall, NODE_ALL},
    [COLL_REDUCE_SCATTER_BLOCK] = {put_operand, take_result, NODE_ALL},
    [COLL_REDUCE_SCATTER] = {put_operand, take_result, NODE_ALL},
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
