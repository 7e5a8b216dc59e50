/* alg.c - the list of algorithms, and what their builders share: segments, folding. */
#include "coll/alg/alg.h"

#include "base/err.h"
#include <string.h>

const struct coll_alg coll_algs[] = {
    {COLL_BARRIER, "dissemination", coll_barrier_dissemination, 0, "log2 P rounds, all ranks alike"},
    {COLL_BARRIER, "kdissemination", coll_barrier_kdissemination, 0, "the same, radix - 1 messages a round"},
    {COLL_BARRIER, "doubling", coll_barrier_doubling, 0, "log2 P exchanges with one partner each"},
    {COLL_BARRIER, "linear", coll_barrier_linear, 0, "everyone tells rank 0, which tells everyone"},
    {COLL_BARRIER, "tree", coll_barrier_tree, 0, "up and down a k-nomial tree"},
    {COLL_BARRIER, "deposit", coll_barrier_deposit, 0, "everyone tells everyone, one stage"},
    {COLL_BARRIER, "leaders", coll_barrier_leaders, ALG_NODES, "dissemination over the nodes, linear inside"},
    {COLL_BARRIER, "domain_leaders", coll_barrier_leaders, ALG_DOMAINS, "over the nodes, or the domains of one, linear inside"},
    {COLL_BCAST, "binomial", coll_bcast_binomial, 0, "tree, whole buffer at a time"},
    {COLL_BCAST, "chain", coll_bcast_chain, 0, "pipeline of segments from rank to rank"},
    {COLL_BCAST, "scatter", coll_bcast_scatter, 0, "a chunk to each rank by a tree, then a ring allgather"},
    {COLL_BCAST, "scatter_doubling", coll_bcast_scatter_doubling, 0, "the same, allgather by recursive doubling"},
    {COLL_BCAST, "knomial", coll_bcast_knomial, 0, "k-nomial tree, whole buffer at a time"},
    {COLL_BCAST, "linear", coll_bcast_linear, 0, "the root sends to everyone"},
    {COLL_BCAST, "chains", coll_bcast_chains, 0, "pipelines of segments, radix of them below the root"},
    {COLL_BCAST, "binary", coll_bcast_binary, 0, "pipeline of segments down a binary tree"},
    {COLL_BCAST, "split_binary", coll_bcast_split_binary, 0, "a half down each side of a binary tree, then exchanged"},
    {COLL_BCAST, "two_tree", coll_bcast_two_tree, 0, "segments in turn down two trees with different inner ranks"},
    {COLL_BCAST, "leaders", coll_bcast_leaders, ALG_NODES, "segments down a tree of the nodes and inside each"},
    {COLL_BCAST, "domain_leaders", coll_bcast_leaders, ALG_DOMAINS, "segments down a tree of nodes, domains and ranks"},
    {COLL_REDUCE, "binomial", coll_reduce_binomial, 0, "tree, whole buffer at a time"},
    {COLL_REDUCE, "chain", coll_reduce_chain, 0, "pipeline of segments from rank to rank"},
    {COLL_REDUCE, "halving", coll_reduce_halving, 0, "reduce-scatter by recursive halving, chunks to the root"},
    {COLL_REDUCE, "knomial", coll_reduce_knomial, 0, "k-nomial tree, whole buffer at a time"},
    {COLL_REDUCE, "linear", coll_reduce_linear, 0, "everyone sends to the root, which combines a few at a time"},
    {COLL_REDUCE, "chains", coll_reduce_chains, 0, "pipelines of segments, radix of them end at the root"},
    {COLL_REDUCE, "binary", coll_reduce_binary, 0, "pipeline of segments up a binary tree"},
    {COLL_REDUCE, "two_tree", coll_reduce_two_tree, 0, "segments in turn up two trees with different inner ranks"},
    {COLL_REDUCE, "leaders", coll_reduce_leaders, ALG_NODES, "segments up a tree inside each node and of the nodes"},
    {COLL_REDUCE, "domain_leaders", coll_reduce_leaders, ALG_DOMAINS, "segments up a tree of ranks, domains and nodes"},
    {COLL_ALLREDUCE, "doubling", coll_allreduce_doubling, 0, "recursive doubling"},
    {COLL_ALLREDUCE, "dissemination", coll_allreduce_dissemination, ALG_COMMUTES | ALG_EXACT,
     "log2 P rounds for any P, each rank combining in its own order"},
    {COLL_ALLREDUCE, "halving", coll_allreduce_halving, 0, "reduce-scatter by recursive halving, allgather by doubling"},
    {COLL_ALLREDUCE, "ring", coll_allreduce_ring, ALG_COMMUTES, "reduce-scatter and allgather around a ring"},
    {COLL_ALLREDUCE, "ring_segmented", coll_allreduce_ring_segmented, ALG_COMMUTES, "several rings, each of a piece"},
    {COLL_ALLREDUCE, "knomial", coll_allreduce_knomial, 0, "exchanges among radix ranks at a time"},
    {COLL_ALLREDUCE, "reduce_bcast", coll_allreduce_reduce_bcast, 0, "up and down a binomial tree"},
    {COLL_ALLREDUCE, "binary", coll_allreduce_binary, 0, "segments up and down a binary tree"},
    {COLL_ALLREDUCE, "two_tree", coll_allreduce_two_tree, 0, "segments in turn up and down two trees"},
    {COLL_ALLREDUCE, "deposit", coll_allreduce_deposit, 0, "everyone sends all to everyone, one stage"},
    {COLL_ALLREDUCE, "leaders", coll_allreduce_leaders, ALG_NODES, "inside each node, among their leaders, and back"},
    {COLL_ALLREDUCE, "domain_leaders", coll_allreduce_leaders, ALG_DOMAINS, "inside each domain, each node, among the leaders, and back"},
    {COLL_GATHER, "binomial", coll_gather_binomial, 0, "tree, subtrees gathered in scratch"},
    {COLL_GATHER, "linear", coll_gather_linear, 0, "everyone sends to the root"},
    {COLL_GATHER, "staged", coll_gather_staged, 0, "the root asks for the blocks of few ranks at a time"},
    {COLL_GATHER, "leaders", coll_gather_leaders, ALG_NODES, "a bundle from each node"},
    {COLL_GATHER, "domain_leaders", coll_gather_leaders, ALG_DOMAINS, "bundles from the domains, and of them from the nodes"},
    {COLL_GATHERV, "linear", coll_gather_linear, 0, "everyone sends to the root"},
    {COLL_GATHERV, "staged", coll_gather_staged, 0, "the root asks for the blocks of few ranks at a time"},
    {COLL_SCATTER, "binomial", coll_scatter_binomial, 0, "tree, subtrees passed on from scratch"},
    {COLL_SCATTER, "linear", coll_scatter_linear, 0, "the root sends to everyone"},
    {COLL_SCATTER, "staged", coll_scatter_staged, 0, "the root sends to few ranks at a time"},
    {COLL_SCATTER, "leaders", coll_scatter_leaders, ALG_NODES, "a bundle to each node"},
    {COLL_SCATTER, "domain_leaders", coll_scatter_leaders, ALG_DOMAINS, "bundles to the nodes, and from there to the domains"},
    {COLL_SCATTERV, "linear", coll_scatter_linear, 0, "the root sends to everyone"},
    {COLL_SCATTERV, "staged", coll_scatter_staged, 0, "the root sends to few ranks at a time"},
    {COLL_ALLGATHER, "bruck", coll_allgather_bruck, 0, "log2 P rounds through scratch, any P"},
    {COLL_ALLGATHER, "doubling", coll_allgather_doubling, ALG_POWER2, "recursive doubling in the receive buffer"},
    {COLL_ALLGATHER, "ring", coll_allgather_ring, 0, "each block travels around a ring"},
    {COLL_ALLGATHER, "direct", coll_allgather_direct, 0, "everyone sends to everyone, no waiting in between"},
    {COLL_ALLGATHER, "kbruck", coll_allgather_kbruck, 0, "rounds that multiply by radix, in the receive buffer"},
    {COLL_ALLGATHER, "neighbor", coll_allgather_neighbor, ALG_EVEN, "P / 2 exchanges with either neighbour in turn"},
    {COLL_ALLGATHER, "gather_bcast", coll_allgather_gather_bcast, 0, "up and down a binomial tree"},
    {COLL_ALLGATHER, "leaders", coll_allgather_leaders, ALG_NODES, "bundles among the nodes, a tree inside each"},
    {COLL_ALLGATHER, "domain_leaders", coll_allgather_leaders, ALG_DOMAINS, "the same with the domains of each node"},
    {COLL_ALLGATHERV, "ring", coll_allgather_ring, 0, "each block travels around a ring"},
    {COLL_ALLGATHERV, "direct", coll_allgather_direct, 0, "everyone sends to everyone, no waiting in between"},
    {COLL_ALLGATHERV, "bruck", coll_allgather_blocks_bruck, 0, "log2 P rounds, any P"},
    {COLL_ALLGATHERV, "kbruck", coll_allgather_kbruck, 0, "rounds that multiply by radix"},
    {COLL_ALLGATHERV, "neighbor", coll_allgather_neighbor, ALG_EVEN, "P / 2 exchanges with either neighbour in turn"},
    {COLL_ALLGATHERV, "gather_bcast", coll_allgather_gather_bcast, 0, "up and down a binomial tree"},
    {COLL_ALLGATHERV, "leaders", coll_allgather_leaders, ALG_NODES, "bundles among the nodes, a tree inside each"},
    {COLL_ALLGATHERV, "domain_leaders", coll_allgather_leaders, ALG_DOMAINS, "the same with the domains of each node"},
    {COLL_ALLTOALL, "bruck", coll_alltoall_bruck, 0, "log2 P rounds, blocks forwarded in bundles"},
    {COLL_ALLTOALL, "direct", coll_alltoall_direct, 0, "everyone sends to everyone, all at once"},
    {COLL_ALLTOALL, "pairwise", coll_alltoall_pairwise, 0, "everyone sends to everyone, few at a time"},
    {COLL_ALLTOALL, "kbruck", coll_alltoall_kbruck, 0, "rounds that multiply by radix, blocks forwarded in bundles"},
    {COLL_ALLTOALL, "linear", coll_alltoall_linear, 0, "everyone sends to everyone, radix at a time"},
    {COLL_ALLTOALL, "leaders", coll_alltoall_leaders, ALG_NODES, "bundles among the nodes, sorted by their leaders"},
    {COLL_ALLTOALL, "domain_leaders", coll_alltoall_leaders, ALG_DOMAINS, "bundles among the domains, sorted by their leaders"},
    {COLL_ALLTOALLV, "direct", coll_alltoall_direct, 0, "everyone sends to everyone, all at once"},
    {COLL_ALLTOALLV, "pairwise", coll_alltoall_pairwise, 0, "everyone sends to everyone, few at a time"},
    {COLL_ALLTOALLV, "linear", coll_alltoall_linear, 0, "everyone sends to everyone, radix at a time"},
    {COLL_ALLTOALLW, "direct", coll_alltoall_direct, 0, "everyone sends to everyone, all at once"},
    {COLL_ALLTOALLW, "pairwise", coll_alltoall_pairwise, 0, "everyone sends to everyone, few at a time"},
    {COLL_ALLTOALLW, "linear", coll_alltoall_linear, 0, "everyone sends to everyone, radix at a time"},
    {COLL_REDUCE_SCATTER, "direct", coll_reduce_scatter_direct, 0, "every block straight to its owner, who combines"},
    {COLL_REDUCE_SCATTER, "tree", coll_reduce_scatter_tree, 0, "tree reduce to rank 0, which scatters"},
    {COLL_REDUCE_SCATTER, "halving", coll_reduce_scatter_halving, 0, "recursive halving of the blocks in suitable order"},
    {COLL_REDUCE_SCATTER, "pairwise", coll_reduce_scatter_pairwise, ALG_COMMUTES, "every block to its owner, few at a time"},
    {COLL_REDUCE_SCATTER, "ring", coll_reduce_scatter_ring, ALG_COMMUTES, "each block travels once around a ring"},
    {COLL_REDUCE_SCATTER_BLOCK, "direct", coll_reduce_scatter_direct, 0,
     "every block straight to its owner, who combines"},
    {COLL_REDUCE_SCATTER_BLOCK, "tree", coll_reduce_scatter_tree, 0, "tree reduce to rank 0, which scatters"},
    {COLL_REDUCE_SCATTER_BLOCK, "halving", coll_reduce_scatter_halving, 0, "recursive halving of the blocks in suitable order"},
    {COLL_REDUCE_SCATTER_BLOCK, "pairwise", coll_reduce_scatter_pairwise, ALG_COMMUTES, "every block to its owner, few at a time"},
    {COLL_REDUCE_SCATTER_BLOCK, "ring", coll_reduce_scatter_ring, ALG_COMMUTES, "each block travels once around a ring"},
    {COLL_SCAN, "doubling", coll_scan_doubling, 0, "log2 P rounds"},
    {COLL_SCAN, "chain", coll_scan_chain, 0, "pipeline of segments from rank to rank"},
    {COLL_SCAN, "direct", coll_scan_direct, 0, "everyone sends to all ranks above, one stage"},
    {COLL_SCAN, "binomial", coll_scan_binomial, 0, "up and down a tree, 2 log2 P rounds, few messages"},
    {COLL_EXSCAN, "doubling", coll_scan_doubling, 0, "log2 P rounds"},
    {COLL_EXSCAN, "chain", coll_scan_chain, 0, "pipeline of segments from rank to rank"},
    {COLL_EXSCAN, "direct", coll_scan_direct, 0, "everyone sends to all ranks above, one stage"},
    {COLL_EXSCAN, "binomial", coll_scan_binomial, 0, "up and down a tree, 2 log2 P rounds, few messages"},
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

/* Are there more than `whole` parts, and in rank order if that matters? */
static bool has_parts(const struct coll_shape *s, int whole, int parts, unsigned mixed)
{
    return parts > whole && !((s->flags & mixed) && (s->flags & COLL_ORDERED));
}

bool coll_alg_fits(int alg, const struct coll_shape *s)
{
    unsigned flags = coll_algs[alg].flags;
    if (coll_algs[alg].kind != s->kind || !(flags & ALG_INTER) != !s->remote) return false;
    if ((flags & ALG_COMMUTES) && (s->flags & COLL_ORDERED)) return false;
    if ((flags & ALG_EXACT) && !(s->flags & COLL_EXACT)) return false;
    if ((flags & ALG_NODES) && !has_parts(s, 1, s->nodes, COLL_MIXED)) return false;
    if ((flags & ALG_DOMAINS) && !has_parts(s, s->nodes, s->domains, COLL_MIXED | COLL_SHUFFLED)) return false;
    if ((flags & ALG_EVEN) && s->size % 2) return false;
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

void coll_fold_next(struct coll_folding *f, struct goal_mem x, goal_id got, bool is_last)
{
    if (!f->begun) {
        f->begun = true;
        f->acc = x;
        f->ready = got;
        if (!is_last || same_place(x, f->dst)) return;
        f->ready = goal_copy(f->b, x, f->dst, f->len);
        goal_after(f->b, f->ready, got);
        goal_after(f->b, f->ready, f->free);
        return;
    }
    /* until the last, results pile up in scratch: dst may hold an operand whose turn has not come */
    struct goal_mem to = is_last || f->acc.slot != GOAL_SCRATCH ? f->dst : f->acc;
    goal_id dep = got;
    if (same_place(to, f->dst) && f->free != GOAL_NONE) {
        dep = goal_join(f->b);
        goal_after(f->b, dep, got);
        goal_after(f->b, dep, f->free);
    }
    struct coll_shape in_order = *f->s; /* the leftmost in dst: not the other way round, which others do not do */
    in_order.flags |= f->s->flags & COLL_EXACT ? 0 : COLL_ORDERED;
    if (same_place(x, to)) f->ready = coll_fold(f->b, &in_order, x, f->acc, false, to, f->len, dep, f->ready);
    else f->ready = coll_fold(f->b, f->s, f->acc, x, true, to, f->len, dep, f->ready);
    f->acc = to;
}

goal_id coll_both(struct goal_build *b, goal_id x, goal_id y)
{
    goal_id join = goal_join(b);
    goal_after(b, join, x);
    goal_after(b, join, y);
    return join;
}

int coll_add_part(struct goal_part *list, int k, struct goal_part p)
{
    if (!p.len) return k;
    if (k && list[k - 1].at.slot == p.at.slot && list[k - 1].at.off + list[k - 1].len == p.at.off) {
        list[k - 1].len += p.len;
        return k;
    }
    list[k] = p;
    return k + 1;
}
