/* pairs_suit.c - which operations are large nonblocking ones inside a node, and the memory for them: see pairs.h. */
#include "coll/node/direct.h"
#include "coll/node/pairs.h"

/*
 * From how many bytes for each rank on; 0: never. Where ranks share cores, waking whoever may copy costs more than it gains:
 * 4 ranks on 2 cores, medians of 3 launches, ialltoall of 1 MB 1.7 ms by messages and 2.3 so, iallgather 1.4 and 2.2,
 * ibcast 0.25 and 0.33, ialltoall of 64 KB 90 and 117 us; only igather gains (1 MB 0.45 and 0.33 ms).
 */
static int64_t least_bytes(void) { return var_int(node_counts() ? VAR_COLL_PAIRS_SHARED : VAR_COLL_PAIRS); }

size_t node_pairs_layout(struct node *n, char *base)
{
    size_t p = (size_t)n->size, places = NODE_PAIRS_LINES / (p * p);
    if (p > NODE_PAIRS_RANKS || !least_bytes()) return 0;
    if (places < 2) places = 2;
    if (places > NODE_BIG_K) places = NODE_BIG_K;
    n->places = (uint32_t)places;
    n->pairs = (struct node_pair *)base;
    n->tallies = (struct node_tally *)(base + places * p * p * sizeof *n->pairs);
    return places * p * (p * sizeof *n->pairs + sizeof *n->tallies);
}

bool node_pairs_suit(const struct comm *c, const struct coll_call *a, int64_t bytes)
{
    int64_t least = least_bytes();
    if (!least || !var_int(VAR_COLL_NODE) || c->size < 2 || c->size > NODE_PAIRS_RANKS) return false;
    switch (a->kind) {
    case COLL_BCAST:
    case COLL_SCATTER:
    case COLL_GATHER:
    case COLL_ALLGATHER:
    case COLL_ALLTOALL:
        return bytes >= least;
    case COLL_ALLGATHERV:
        for (int r = 0; r < c->size; r++)
            if (a->rcounts[r] * a->rtype->size >= least) return true;
        return false;
    default:
        return false;
    }
}
