/* alg.c - the list of algorithms, and what their builders share: trees, chunks, folding. */
#include "coll/alg.h"

#include "base/err.h"
#include <string.h>

const struct coll_alg coll_algs[] = {
    {COLL_BARRIER, "dissemination", coll_barrier_dissemination, 0, "log2 P rounds, all ranks alike"},
    {COLL_BCAST, "binomial", coll_bcast_binomial, 0, "tree, whole buffer at a time"},
    {COLL_BCAST, "chain", coll_bcast_chain, 0, "pipeline of segments from rank to rank"},
    {COLL_BCAST, "scatter", coll_bcast_scatter, 0, "a chunk to each rank by a tree, then a ring allgather"},
    {COLL_REDUCE, "binomial", coll_reduce_binomial, 0, "tree, whole buffer at a time"},
    {COLL_REDUCE, "chain", coll_reduce_chain, 0, "pipeline of segments from rank to rank"},
    {COLL_REDUCE, "halving", coll_reduce_halving, 0, "reduce-scatter by recursive halving, chunks to the root"},
    {COLL_ALLREDUCE, "doubling", coll_allreduce_doubling, 0, "recursive doubling"},
    {COLL_ALLREDUCE, "dissemination", coll_allreduce_dissemination, ALG_COMMUTES | ALG_EXACT,
     "log2 P rounds for any P, each rank combining in its own order"},
    {COLL_ALLREDUCE, "halving", coll_allreduce_halving, 0, "reduce-scatter by recursive halving, allgather by doubling"},
    {COLL_ALLREDUCE, "ring", coll_allreduce_ring, ALG_COMMUTES, "reduce-scatter and allgather around a ring"},
    {COLL_GATHER, "binomial", coll_gather_binomial, 0, "tree, subtrees gathered in scratch"},
    {COLL_GATHER, "linear", coll_gather_linear, 0, "everyone sends to the root"},
    {COLL_GATHERV, "linear", coll_gather_linear, 0, "everyone sends to the root"},
    {COLL_SCATTER, "binomial", coll_scatter_binomial, 0, "tree, subtrees passed on from scratch"},
    {COLL_SCATTER, "linear", coll_scatter_linear, 0, "the root sends to everyone"},
    {COLL_SCATTERV, "linear", coll_scatter_linear, 0, "the root sends to everyone"},
    {COLL_ALLGATHER, "bruck", coll_allgather_bruck, 0, "log2 P rounds through scratch, any P"},
    {COLL_ALLGATHER, "doubling", coll_allgather_doubling, ALG_POWER2, "recursive doubling in the receive buffer"},
    {COLL_ALLGATHER, "ring", coll_allgather_ring, 0, "each block travels around a ring"},
    {COLL_ALLGATHER, "direct", coll_allgather_direct, 0, "everyone sends to everyone, no waiting in between"},
    {COLL_ALLGATHERV, "ring", coll_allgather_ring, 0, "each block travels around a ring"},
    {COLL_ALLGATHERV, "direct", coll_allgather_direct, 0, "everyone sends to everyone, no waiting in between"},
    {COLL_ALLTOALL, "bruck", coll_alltoall_bruck, 0, "log2 P rounds, blocks forwarded in bundles"},
    {COLL_ALLTOALL, "direct", coll_alltoall_direct, 0, "everyone sends to everyone, all at once"},
    {COLL_ALLTOALL, "pairwise", coll_alltoall_pairwise, 0, "everyone sends to everyone, few at a time"},
    {COLL_ALLTOALLV, "direct", coll_alltoall_direct, 0, "everyone sends to everyone, all at once"},
    {COLL_ALLTOALLV, "pairwise", coll_alltoall_pairwise, 0, "everyone sends to everyone, few at a time"},
    {COLL_ALLTOALLW, "direct", coll_alltoall_direct, 0, "everyone sends to everyone, all at once"},
    {COLL_ALLTOALLW, "pairwise", coll_alltoall_pairwise, 0, "everyone sends to everyone, few at a time"},
    {COLL_REDUCE_SCATTER, "direct", coll_reduce_scatter_direct, 0, "every block straight to its owner, who combines"},
    {COLL_REDUCE_SCATTER, "tree", coll_reduce_scatter_tree, 0, "tree reduce to rank 0, which scatters"},
    {COLL_REDUCE_SCATTER_BLOCK, "direct", coll_reduce_scatter_direct, 0,
     "every block straight to its owner, who combines"},
    {COLL_REDUCE_SCATTER_BLOCK, "tree", coll_reduce_scatter_tree, 0, "tree reduce to rank 0, which scatters"},
    {COLL_SCAN, "doubling", coll_scan_doubling, 0, "log2 P rounds"},
    {COLL_SCAN, "chain", coll_scan_chain, 0, "pipeline of segments from rank to rank"},
    {COLL_EXSCAN, "doubling", coll_scan_doubling, 0, "log2 P rounds"},
    {COLL_EXSCAN, "chain", coll_scan_chain, 0, "pipeline of segments from rank to rank"},
    {COLL_NEIGHBOR_ALLGATHER, "direct", coll_neighbor_direct, 0, "a message to every neighbour"},
    {COLL_NEIGHBOR_ALLGATHERV, "direct", coll_neighbor_direct, 0, "a message to every neighbour"},
    {COLL_NEIGHBOR_ALLTOALL, "direct", coll_neighbor_direct, 0, "a message to every neighbour"},
    {COLL_NEIGHBOR_ALLTOALLV, "direct", coll_neighbor_direct, 0, "a message to every neighbour"},
    {COLL_NEIGHBOR_ALLTOALLW, "direct", coll_neighbor_direct, 0, "a message to every neighbour"},
    {COLL_BARRIER, "inter_leader", inter_barrier_leader, ALG_INTER, "trees to the leaders, who tell each other"},
    {COLL_BARRIER, "inter_direct", inter_barrier_direct, ALG_INTER, "everyone tells everyone of the other group"},
    {COLL_BCAST, "inter_leader", inter_bcast_leader, ALG_INTER, "to the other group's leader, then down a tree"},
    {COLL_BCAST, "inter_scatter", inter_bcast_scatter, ALG_INTER, "a chunk to each rank, then a ring allgather"},
    {COLL_BCAST, "inter_linear", inter_bcast_linear, ALG_INTER, "the root sends to everyone of the other group"},
    {COLL_REDUCE, "inter_leader", inter_reduce_leader, ALG_INTER, "up a tree to the leader, who sends to the root"},
    {COLL_REDUCE, "inter_chunks", inter_reduce_chunks, ALG_INTER, "everyone combines a chunk and sends it to the root"},
    {COLL_REDUCE, "inter_linear", inter_reduce_linear, ALG_INTER, "everyone sends to the root, which combines"},
    {COLL_ALLREDUCE, "inter_leader", inter_allreduce_leader, ALG_INTER, "trees to the leaders, who swap the results"},
    {COLL_ALLREDUCE, "inter_chunks", inter_allreduce_chunks, ALG_INTER,
     "everyone combines a chunk and sends it across, then rings"},
    {COLL_ALLREDUCE, "inter_direct", inter_allreduce_direct, ALG_INTER, "everyone sends to everyone of the other group"},
    {COLL_GATHER, "inter_leader", inter_gather_leader, ALG_INTER, "up a tree to the leader, who sends to the root"},
    {COLL_GATHER, "inter_linear", inter_gather_linear, ALG_INTER, "everyone sends to the root"},
    {COLL_GATHERV, "inter_linear", inter_gather_linear, ALG_INTER, "everyone sends to the root"},
    {COLL_SCATTER, "inter_leader", inter_scatter_leader, ALG_INTER, "to the other group's leader, then down a tree"},
    {COLL_SCATTER, "inter_linear", inter_scatter_linear, ALG_INTER, "the root sends to everyone"},
    {COLL_SCATTERV, "inter_linear", inter_scatter_linear, ALG_INTER, "the root sends to everyone"},
    {COLL_ALLGATHER, "inter_leader", inter_allgather_leader, ALG_INTER, "trees to the leaders, who swap all blocks"},
    {COLL_ALLGATHER, "inter_ring", inter_allgather_ring, ALG_INTER, "each block crosses once, then travels around a ring"},
    {COLL_ALLGATHER, "inter_direct", inter_allgather_direct, ALG_INTER, "everyone sends to everyone of the other group"},
    {COLL_ALLGATHERV, "inter_ring", inter_allgather_ring, ALG_INTER, "each block crosses once, then travels around a ring"},
    {COLL_ALLGATHERV, "inter_direct", inter_allgather_direct, ALG_INTER, "everyone sends to everyone of the other group"},
    {COLL_ALLTOALL, "inter_direct", inter_alltoall_direct, ALG_INTER, "everyone with the other group, all at once"},
    {COLL_ALLTOALL, "inter_pairwise", inter_alltoall_pairwise, ALG_INTER, "everyone with the other group, few at a time"},
    {COLL_ALLTOALLV, "inter_direct", inter_alltoall_direct, ALG_INTER, "everyone with the other group, all at once"},
    {COLL_ALLTOALLV, "inter_pairwise", inter_alltoall_pairwise, ALG_INTER, "everyone with the other group, few at a time"},
    {COLL_ALLTOALLW, "inter_direct", inter_alltoall_direct, ALG_INTER, "everyone with the other group, all at once"},
    {COLL_ALLTOALLW, "inter_pairwise", inter_alltoall_pairwise, ALG_INTER, "everyone with the other group, few at a time"},
    {COLL_REDUCE_SCATTER, "inter_leader", inter_reduce_scatter_leader, ALG_INTER,
     "trees to the leaders, who swap the results and deal them out"},
    {COLL_REDUCE_SCATTER_BLOCK, "inter_leader", inter_reduce_scatter_leader, ALG_INTER,
     "trees to the leaders, who swap the results and deal them out"},
    {COLL_REDUCE_SCATTER_BLOCK, "inter_direct", inter_reduce_scatter_direct, ALG_INTER,
     "every block straight to its owner, who combines"},
};
const struct coll_given coll_given_nothing;

const int coll_algs_count = ARRAY_LEN(coll_algs);

const char *coll_kind_name(enum coll_kind kind)
{
    static const char *const name[COLL_KINDS] = {
        [COLL_BARRIER] = "barrier",
        [COLL_BCAST] = "bcast",
        [COLL_REDUCE] = "reduce",
        [COLL_ALLREDUCE] = "allreduce",
        [COLL_GATHER] = "gather",
        [COLL_GATHERV] = "gatherv",
        [COLL_SCATTER] = "scatter",
        [COLL_SCATTERV] = "scatterv",
        [COLL_ALLGATHER] = "allgather",
        [COLL_ALLGATHERV] = "allgatherv",
        [COLL_ALLTOALL] = "alltoall",
        [COLL_ALLTOALLV] = "alltoallv",
        [COLL_ALLTOALLW] = "alltoallw",
        [COLL_REDUCE_SCATTER] = "reduce_scatter",
        [COLL_REDUCE_SCATTER_BLOCK] = "reduce_scatter_block",
        [COLL_SCAN] = "scan",
        [COLL_EXSCAN] = "exscan",
        [COLL_NEIGHBOR_ALLGATHER] = "neighbor_allgather",
        [COLL_NEIGHBOR_ALLGATHERV] = "neighbor_allgatherv",
        [COLL_NEIGHBOR_ALLTOALL] = "neighbor_alltoall",
        [COLL_NEIGHBOR_ALLTOALLV] = "neighbor_alltoallv",
        [COLL_NEIGHBOR_ALLTOALLW] = "neighbor_alltoallw",
    };
    return name[kind];
}

int coll_alg_find(enum coll_kind kind, const char *name)
{
    for (int i = 0; i < coll_algs_count; i++)
        if (coll_algs[i].kind == kind && strcmp(coll_algs[i].name, name) == 0) return i;
    return -1;
}

bool coll_alg_fits(int alg, const struct coll_shape *s)
{
    unsigned flags = coll_algs[alg].flags;
    if (coll_algs[alg].kind != s->kind || !(flags & ALG_INTER) != !s->remote) return false;
    if ((flags & ALG_COMMUTES) && (s->flags & COLL_ORDERED)) return false;
    if ((flags & ALG_EXACT) && !(s->flags & COLL_EXACT)) return false;
    if ((flags & ALG_POWER2) && (s->size & (s->size - 1))) return false;
    return true;
}

/* With nothing to move there is nothing to do, which all ranks know; the v-collectives skip empty blocks themselves. */
static bool is_empty(const struct coll_shape *s)
{
    return !coll_has_blocks((enum coll_kind)s->kind) && !s->bytes && !s->from && s->kind != COLL_BARRIER;
}

int coll_compile(const struct coll_shape *s, const struct coll_given *v, struct goal_prog **prog_p)
{
    struct goal_build *b = goal_build_open(s->rank, s->size + s->remote, coll_reduces(s->kind) ? GOAL_TYPED_SCRATCH : 0);
    if (!b) return err_set(TERN_ERR_NOMEM, "no memory to build the schedule of a %s", coll_kind_name(s->kind));
    if (!is_empty(s)) coll_algs[s->alg].build(b, s, v);
    int rc = goal_seal(b, prog_p);
    goal_build_close(b);
    return rc;
}

int64_t coll_segment(const struct coll_shape *s)
{
    int64_t least = (s->bytes + 1023) / 1024;
    int64_t seg = s->segment > least ? s->segment : least;
    return (seg + s->grain - 1) / s->grain * s->grain;
}

void coll_tree_binomial(struct coll_tree *t, int rank, int size, int first)
{
    int vr = (rank - first + size) % size, low = vr ? vr & -vr : size;
    *t = (struct coll_tree){.vr = vr, .parent = -1};
    if (vr) t->parent = (vr - low + first) % size;
    t->span = low < size - vr ? low : size - vr;
    for (int64_t mask = 1; mask < low && vr + mask < size; mask *= 2) {
        int k = t->children++, c = (int)(vr + mask);
        t->child_vr[k] = c;
        t->child[k] = (c + first) % size;
        t->child_span[k] = (int)(mask < size - c ? mask : size - c);
    }
}

void coll_tree_chain(struct coll_tree *t, int rank, int size, int first)
{
    int vr = (rank - first + size) % size;
    *t = (struct coll_tree){.vr = vr, .parent = vr ? (rank - 1 + size) % size : -1, .span = size - vr};
    if (vr + 1 == size) return;
    t->children = 1;
    t->child[0] = (rank + 1) % size;
    t->child_vr[0] = vr + 1;
    t->child_span[0] = size - vr - 1;
}

static bool same_place(struct goal_mem a, struct goal_mem b) { return a.slot == b.slot && a.off == b.off; }

goal_id coll_fold(struct goal_build *b, const struct coll_shape *s, struct goal_mem acc, struct goal_mem in,
                  bool in_left, struct goal_mem dst, int64_t len, goal_id dep1, goal_id dep2)
{
    goal_id first, last;
    if (!same_place(acc, dst)) {
        first = last = in_left ? goal_reduce3(b, in, acc, dst, len) : goal_reduce3(b, acc, in, dst, len);
    } else if (in_left || !(s->flags & COLL_ORDERED)) {
        first = last = goal_reduce(b, in, dst, len);
    } else {
        first = goal_reduce(b, dst, in, len);
        last = goal_copy(b, in, dst, len);
        goal_after(b, last, first);
    }
    goal_after(b, first, dep1);
    goal_after(b, first, dep2);
    return last;
}
