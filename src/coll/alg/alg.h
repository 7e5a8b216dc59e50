/*
 * alg.h - the algorithms of the collectives, listed as data; each is a builder that
 * writes the schedule of one rank.
 *
 * A builder sees a shape (which operation, how many ranks, how many bytes) and, for
 * the v-collectives, the blocks; never a buffer, a datatype or an operator. Slots are
 * used as in MPI: 0 is the send buffer, 1 the receive buffer (the one buffer of
 * bcast), 2 the scratchpad. The w-collectives have one send and one receive slot for each peer.
 */
#ifndef TERN_COLL_ALG_H
#define TERN_COLL_ALG_H

#include "coll/goal/build.h"
#include "coll/alg/tree.h"

enum coll_kind {
    COLL_BARRIER, COLL_BCAST, COLL_REDUCE, COLL_ALLREDUCE,
    COLL_GATHER, COLL_GATHERV, COLL_SCATTER, COLL_SCATTERV,
    COLL_ALLGATHER, COLL_ALLGATHERV, COLL_ALLTOALL, COLL_ALLTOALLV, COLL_ALLTOALLW,
    COLL_REDUCE_SCATTER, COLL_REDUCE_SCATTER_BLOCK, COLL_SCAN, COLL_EXSCAN,
    COLL_NEIGHBOR_ALLGATHER, COLL_NEIGHBOR_ALLGATHERV,
    COLL_NEIGHBOR_ALLTOALL, COLL_NEIGHBOR_ALLTOALLV, COLL_NEIGHBOR_ALLTOALLW,
    COLL_KINDS
};

enum coll_flag {
    COLL_IN_PLACE = 1, /* at this rank: input is taken from the receive buffer (scatter: the root keeps its block) */
    COLL_ORDERED = 2,  /* the operator does not commute: combine in the order of the ranks */
    COLL_EXACT = 4,    /* any order and grouping gives the same bits (integers, minima) */
    COLL_STAGED = 8,   /* bcast: the buffer has gaps, so pieces of it go through the scratchpad */
    COLL_MIXED = 32,   /* ranks of different nodes alternate: those of a node are not all neighbours */
    COLL_SHUFFLED = 64, /* the same of domains */
    COLL_FAR = 16,     /* some messages cross a network: each costs ten times what it does in shared memory */
    COLL_OVERSUBSCRIBED = 128 /* all ranks are on one node and share its cores: the work of all of them counts, not the longest way */
};

/*
 * What a program depends on, besides what is given with it (struct coll_given). Also the key of the cache: zero it
 * before filling, so that padding compares equal.
 *
 * Between two groups (MPI-5.0 6.2.3, intercommunicators) `size` ranks here face `remote` ranks there. Programs then name
 * their peers 0 to size - 1 in the own group and size to size + remote - 1 in the other one, which sees it the other way
 * round; `root` is MPI's argument: MPI_ROOT, MPI_PROC_NULL or a rank of the other group.
 */
struct coll_shape {
    uint8_t kind;     /* enum coll_kind */
    uint8_t alg;      /* index in coll_algs */
    uint16_t flags;   /* enum coll_flag */
    int32_t rank, size, root;
    int32_t remote;   /* ranks of the other group; 0: there is none */
    int32_t nodes;    /* that the ranks of the own group are on; at least 1 */
    int32_t radix;    /* of the k-nomial algorithms, 2 and more */
    int32_t domains;  /* caches or NUMA domains that they are known to be in, at least one a node; 0 is the same as `nodes` */
    int64_t bytes;    /* packed data: of the buffer (bcast, reductions), of one rank's block (others), of my block (gatherv,
                       * scatterv); 0 for the other v-collectives */
    int64_t from;     /* allgather and alltoall between two groups: of a block that comes from the other one, while
                       * `bytes` is of one that goes there (which allgatherv has, too); 0 for the others */
    int64_t grain;    /* reductions: bytes of an element, which is never split; else 1 */
    int64_t segment;  /* bytes of a piece for the algorithms that pipeline */
};
static_assert(sizeof(struct coll_shape) == 64, "no padding in the key");

/*
 * What comes along with a shape.
 *
 * Blocks of the v-collectives: where in the slot and how long, packed bytes; one entry a rank (neighbourhoods: a
 * neighbour; between two groups: a rank of the other group); what an operation does not use is NULL (so is the whole at
 * the ranks of gatherv and scatterv that are not the root). reduce_scatter: send_* are the blocks of the input, one
 * behind the other.
 *
 * Constants of the communicator: they need no place in the key of its cache.
 */
struct coll_given {
    const int64_t *send_len, *send_off;
    const int64_t *recv_len, *recv_off;
    const int32_t *node; /* of each rank, 0 to shape.nodes - 1 in the order of their first ranks; NULL: all are on one */
    const int32_t *domain; /* the same for domains, each of which is in one node; NULL: they are the nodes */
    int in, out;         /* neighbours that send to this rank, and that it sends to; MPI_PROC_NULL among them */
    const int *sources, *destinations;
    bool grid;           /* neighbours 2i and 2i+1 are those down and up dimension i: what goes up comes from below */
};

extern const struct coll_given coll_given_nothing; /* all 0: no blocks, one node, no neighbours */

typedef void coll_builder(struct goal_build *, const struct coll_shape *, const struct coll_given *);

enum coll_alg_flag {
    ALG_COMMUTES = 1, /* only for operators that commute */
    ALG_EXACT = 2,    /* ranks may combine in different orders: only where that cannot be seen */
    ALG_POWER2 = 4,   /* only for 2, 4, 8 ... ranks */
    ALG_INTER = 8,    /* between two groups, and only there */
    ALG_EVEN = 16,    /* only for an even number of ranks */
    ALG_NODES = 32,   /* only on more than one node; operators that do not commute want each node's ranks together */
    ALG_DOMAINS = 64  /* the same with domains of nodes: only where some node has more than one */
};

struct coll_alg {
    enum coll_kind kind;
    const char *name; /* as in TERN_COLL_<OPERATION> */
    coll_builder *build;
    unsigned flags; /* enum coll_alg_flag */
    const char *meaning;
};
extern const struct coll_alg coll_algs[];
extern const int coll_algs_count;

/* May algorithm `alg` be used for this shape (whose `alg` is not looked at)? */
bool coll_alg_fits(int alg, const struct coll_shape *);

/* Index of the algorithm of that name, -1 if there is none. */
int coll_alg_find(enum coll_kind, const char *name);

const char *coll_kind_name(enum coll_kind); /* "bcast", as in the names of the variables, in lower case */

/* Does the operation combine data (so that its scratchpad holds elements)? */
static inline bool coll_reduces(enum coll_kind k)
{
    enum {
        THOSE = 1u << COLL_REDUCE | 1u << COLL_ALLREDUCE | 1u << COLL_REDUCE_SCATTER | 1u << COLL_REDUCE_SCATTER_BLOCK |
                1u << COLL_SCAN | 1u << COLL_EXSCAN
    };
    return THOSE >> k & 1;
}

/* Is it one of the v-collectives, whose ranks have blocks of different lengths? */
static inline bool coll_has_blocks(enum coll_kind k)
{
    return k == COLL_GATHERV || k == COLL_SCATTERV || k == COLL_ALLGATHERV || k == COLL_ALLTOALLV ||
           k == COLL_ALLTOALLW || k == COLL_REDUCE_SCATTER || k == COLL_NEIGHBOR_ALLGATHERV ||
           k == COLL_NEIGHBOR_ALLTOALLV || k == COLL_NEIGHBOR_ALLTOALLW;
}

/* Has it a datatype for each block? */
static inline bool coll_has_types(enum coll_kind k) { return k == COLL_ALLTOALLW || k == COLL_NEIGHBOR_ALLTOALLW; }

/* Is it one of the neighbourhood collectives? */
static inline bool coll_has_neighbors(enum coll_kind k)
{
    return k >= COLL_NEIGHBOR_ALLGATHER && k <= COLL_NEIGHBOR_ALLTOALLW;
}

/* The program of s->alg for s->rank. One reference. */
int coll_compile(const struct coll_shape *s, const struct coll_given *v, struct goal_prog **prog_p);

/* ---- for builders -------------------------------------------------------- */

/* The slot of rank (neighbour) i's buffer in the operations with a datatype for each. */
static inline int coll_slot_w(int i, bool recv) { return GOAL_SLOT_USER + 2 * i + recv; }

/* Block of rank (neighbour) i in the send buffer and in the receive buffer, regular or not. */
static inline struct goal_part coll_send_block(const struct coll_shape *s, const struct coll_given *v, int i)
{
    if (coll_has_types(s->kind)) return (struct goal_part){goal_mem(coll_slot_w(i, false), 0), v->send_len[i]};
    if (v->send_len) return (struct goal_part){goal_mem(GOAL_SEND_BUF, v->send_off[i]), v->send_len[i]};
    return (struct goal_part){goal_mem(GOAL_SEND_BUF, i * s->bytes), s->bytes};
}

static inline struct goal_part coll_recv_block(const struct coll_shape *s, const struct coll_given *v, int i)
{
    if (coll_has_types(s->kind)) return (struct goal_part){goal_mem(coll_slot_w(i, true), 0), v->recv_len[i]};
    if (v->recv_len) return (struct goal_part){goal_mem(GOAL_RECV_BUF, v->recv_off[i]), v->recv_len[i]};
    return (struct goal_part){goal_mem(GOAL_RECV_BUF, i * s->bytes), s->bytes};
}

static inline bool coll_in_place(const struct coll_shape *s) { return s->flags & COLL_IN_PLACE; }

/* Where the input of a reduction lies. */
static inline struct goal_mem coll_input(const struct coll_shape *s)
{
    return goal_mem(coll_in_place(s) ? GOAL_RECV_BUF : GOAL_SEND_BUF, 0);
}

static inline int coll_tag(int64_t n) { return (int)(n & 0xffff); }

/* The largest power of two that is at most n (n > 0). */
static inline int coll_pow2_below(int n)
{
    int p = 1;
    while (p <= n / 2) p *= 2;
    return p;
}

/* First byte of chunk i when s->bytes are cut into n chunks of whole elements, as equal as can be. */
static inline int64_t coll_chunk(const struct coll_shape *s, int i, int n)
{
    int64_t elems = s->bytes / s->grain, extra = elems % n;
    return (elems / n * i + (i < extra ? i : extra)) * s->grain;
}

/* Bytes of a piece when s->bytes are pipelined: s->segment, but at most 1024 pieces of whole elements. */
int64_t coll_segment(const struct coll_shape *s);

/* The radix of a shape, within what the trees take. */
static inline int coll_radix(const struct coll_shape *s)
{
    return s->radix < 2 ? 2 : s->radix > TREE_RADIX_MAX ? TREE_RADIX_MAX : s->radix;
}

/*
 * dst = acc op in, or in op acc if in_left (the operand of the lower ranks is left). acc and dst are the same place or
 * do not overlap; `in` is scratch and is destroyed. Starts after dep1 and dep2; returns the operation that ends it.
 */
goal_id coll_fold(struct goal_build *, const struct coll_shape *, struct goal_mem acc, struct goal_mem in, bool in_left,
                  struct goal_mem dst, int64_t len, goal_id dep1, goal_id dep2);

/*
 * Combining a list of operands from the last to the first, the same way at every rank, so that results are alike to the
 * bit and the order is right for any operator. Operands in scratch are destroyed, others are not but for dst, where the
 * result is made. coll_fold_next takes operand after operand; is_last says that this is the one most to the left.
 */
struct coll_folding {
    struct goal_build *b;
    const struct coll_shape *s;
    struct goal_mem dst;
    int64_t len;
    goal_id free;  /* dst may be written to after this */
    goal_id ready; /* in the end: the result is there; at the beginning GOAL_NONE */
    bool begun;
    struct goal_mem acc;
};
void coll_fold_next(struct coll_folding *, struct goal_mem x, goal_id got, bool is_last);

/* A point after both. */
goal_id coll_both(struct goal_build *, goal_id x, goal_id y);

/* Adds a block to a list of k; neighbours in memory are one, and empty ones none. Returns the new k. */
int coll_add_part(struct goal_part *list, int k, struct goal_part);

/* The builders, by operation (alg_<operation>.c). */
coll_builder coll_barrier_dissemination, coll_barrier_kdissemination, coll_barrier_doubling, coll_barrier_linear,
    coll_barrier_tree, coll_barrier_deposit, coll_barrier_leaders;
coll_builder coll_bcast_binomial, coll_bcast_chain, coll_bcast_scatter, coll_bcast_scatter_doubling, coll_bcast_knomial,
    coll_bcast_linear, coll_bcast_chains, coll_bcast_binary, coll_bcast_split_binary, coll_bcast_two_tree,
    coll_bcast_leaders;
coll_builder coll_reduce_binomial, coll_reduce_chain, coll_reduce_halving, coll_reduce_knomial, coll_reduce_linear,
    coll_reduce_chains, coll_reduce_binary, coll_reduce_two_tree, coll_reduce_leaders;
coll_builder coll_allreduce_doubling, coll_allreduce_dissemination, coll_allreduce_ring, coll_allreduce_halving,
    coll_allreduce_ring_segmented, coll_allreduce_knomial, coll_allreduce_reduce_bcast, coll_allreduce_binary,
    coll_allreduce_two_tree, coll_allreduce_deposit;
coll_builder coll_gather_binomial, coll_gather_linear, coll_gather_staged;
coll_builder coll_scatter_binomial, coll_scatter_linear, coll_scatter_staged;
coll_builder coll_allgather_bruck, coll_allgather_doubling, coll_allgather_ring, coll_allgather_direct,
    coll_allgather_blocks_bruck, coll_allgather_kbruck, coll_allgather_neighbor, coll_allgather_gather_bcast;
coll_builder coll_alltoall_bruck, coll_alltoall_direct, coll_alltoall_pairwise, coll_alltoall_linear,
    coll_alltoall_kbruck;
coll_builder coll_reduce_scatter_direct, coll_reduce_scatter_tree, coll_reduce_scatter_halving,
    coll_reduce_scatter_pairwise, coll_reduce_scatter_ring;
coll_builder coll_scan_doubling, coll_scan_chain, coll_scan_direct, coll_scan_binomial;
coll_builder coll_allreduce_leaders, coll_gather_leaders, coll_scatter_leaders, coll_allgather_leaders,
    coll_alltoall_leaders;
coll_builder coll_neighbor_direct;
/* Between two groups (inter.c, inter_all.c). */
coll_builder inter_bcast_linear, inter_bcast_leader, inter_bcast_scatter;
coll_builder inter_reduce_linear, inter_reduce_leader, inter_reduce_chunks;
coll_builder inter_gather_linear, inter_gather_leader, inter_scatter_linear, inter_scatter_leader;
coll_builder inter_barrier_leader, inter_barrier_direct;
coll_builder inter_allreduce_leader, inter_allreduce_direct, inter_allreduce_chunks;
coll_builder inter_allgather_leader, inter_allgather_direct, inter_allgather_ring;
coll_builder inter_alltoall_direct, inter_alltoall_pairwise;
coll_builder inter_reduce_scatter_leader, inter_reduce_scatter_direct;

#endif
