/*
 * possible.c - which ways a call can take inside a node. What has room in the slots goes through them without a question. Which of
 * the ways of large ones to try is what the rules say (coll/select.h), as for small ones if the user has said something of them.
 */
#include "coll/call.h"
#include "coll/node/block.h"
#include "coll/node/blocks.h"
#include "coll/node/node.h"
#include "coll/node/pairs.h"
#include "coll/node/v.h"
#include "coll/node/wide.h"
#include "coll/select.h"

/* ---- slots ---- */

/* The largest contribution of a rank in this call: what it leaves in its slot. */
static int64_t contribution(const struct comm *c, const struct coll_call *a, int64_t bytes)
{
    switch (a->kind) {
    case COLL_ALLTOALL:
    case COLL_REDUCE_SCATTER_BLOCK:
        return bytes * c->size;
    case COLL_ALLGATHERV:
        return node_longest_block(a, c->size, bytes);
    case COLL_REDUCE_SCATTER:
        return node_sum(a->rcounts, c->size) * a->rtype->size;
    case COLL_GATHERV:
    case COLL_SCATTERV:
    case COLL_ALLTOALLV:
    case COLL_ALLTOALLW:
        return 0; /* whatever there is room for */
    default:
        return bytes;
    }
}

int64_t node_slot_max(const struct comm *c) { return node_limit(c->size); }

/* Reductions are of elements without gaps. */
static bool is_plain(const struct coll_call *a) { return !coll_reduces(a->kind) || (a->rtype->contig && a->rtype->size > 0); }

/* By things that all ranks know alike only, here and below. */
static bool suits(const struct comm *c, const struct coll_call *a, int64_t amount)
{
    if (!node_can(a->kind) || amount > c->coll->slot_max) return false;
    return node_v_is(a->kind) ? node_v_suits(a->kind, c->size) : is_plain(a);
}

struct node *node_for(struct comm *c, const struct coll_call *a, int64_t bytes, bool *big_p, int *rc_p)
{
    int64_t amount = contribution(c, a, bytes);
    *rc_p = 0;
    *big_p = amount > NODE_MIDDLE;
    struct node *n = likely(suits(c, a, amount)) ? node_get(c, rc_p) : NULL;
    if (n && node_v_is(a->kind)) *big_p = node_v_big(n, a);
    return n;
}

/* ---- large ones ---- */

int64_t node_longest_block(const struct coll_call *a, int ranks, int64_t bytes)
{
    int64_t most = 0;
    if (a->kind != COLL_ALLGATHERV && a->kind != COLL_REDUCE_SCATTER) return coll_has_blocks(a->kind) ? 0 : bytes;
    for (int r = 0; r < ranks; r++)
        if (a->rcounts[r] > most) most = a->rcounts[r];
    return most * a->rtype->size;
}

#define SLICE_LONG ((size_t)16 << 10) /* of slices that are no shorter a rule allows any number */

/* Through the wide slots, in slices of so many bytes? 0: not at all. */
static bool is_well_cut(size_t one, int64_t longest, int32_t slices)
{
    return one && (!slices || one >= SLICE_LONG || longest <= (int64_t)one * slices);
}

/* If all ranks reach all others. TERN_COLL_PAIRS, if set, is the bound of nonblocking ones; 0: never. */
static bool can_copy_once(const struct comm *c, const struct coll_call *a, enum coll_calls calls, int64_t longest)
{
    int64_t bound = calls == COLL_CALLS_NONBLOCKING && var_is_set(VAR_COLL_PAIRS) ? var_int(VAR_COLL_PAIRS) : 1;
    if (!coll_way_is_of(COLL_WAY_ONCE, a->kind, calls) || !var_int(VAR_COLL_DIRECT) || !bound || longest < bound) return false;
    return coll_reduces(a->kind) || c->size <= NODE_PAIRS_RANKS;
}

int node_ways(const struct comm *c, const struct coll_call *a, bool blocking, bool slots, int64_t bytes, struct coll_way_list *l)
{
    enum coll_calls calls = blocking ? COLL_CALLS_BLOCKING : COLL_CALLS_NONBLOCKING;
    int64_t longest = node_longest_block(a, c->size, bytes);
    bool large = longest > 0 && c->size > 1 && is_plain(a) && var_int(VAR_COLL_NODE);
    bool once = large && can_copy_once(c, a, calls, longest);
    size_t one = large && coll_way_is_of(COLL_WAY_WIDE, a->kind, calls) ? node_wide_slice(c, a) : 0;
    struct coll_shape s;
    unsigned n = 0;
    l->n = 0;
    if (!slots && !one && !once) return 0;
    coll_call_shape(c, a, &s);
    s.bytes = longest;
    int rc = coll_select_ways(&s, blocking, c->coll->wanted, l);
    const bool can[COLL_WAYS] = {
        [COLL_WAY_SLOTS] = slots, [COLL_WAY_WIDE] = is_well_cut(one, longest, l->slices), [COLL_WAY_ONCE] = once};
    for (unsigned i = 0; i < l->n; i++)
        if (can[l->way[i]]) l->way[n++] = l->way[i];
    l->n = (uint8_t)n;
    return rc;
}
