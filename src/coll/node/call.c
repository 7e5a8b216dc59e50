/* call.c - which calls go through the node-local block, and the way of those that nothing is pending before. */
#include "base/err.h"
#include "coll/node/node.h"
#include "coll/node/block.h"
#include "coll/node/blocks.h"
#include "coll/node/pairs.h"
#include "coll/node/v.h"
#include "coll/node/wide.h"
#include "obj/request.h"

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

/* By things that all ranks know alike only. */
static bool suits(const struct comm *c, const struct coll_call *a, int64_t amount)
{
    if (!node_can(a->kind) || amount > c->coll->slot_max) return false;
    if (node_v_is(a->kind)) return node_v_suits(a->kind, c->size);
    return !coll_reduces(a->kind) || (a->rtype->contig && a->rtype->size > 0);
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

/* It has ended otherwise than by what node_take gives. */
static TERN_COLD int ended(struct node *n, const struct coll_call *a, uint32_t number, int rc)
{
    if (rc > 0) return 0;
    if (node_v_is(a->kind) && !node_failed(n)) node_straighten(n, n->seq, a, true, number);
    return rc;
}

/* `number`: of the messages of one with blocks whose lengths not all know. */
static int run(struct node *n, const struct coll_call *a, bool big, uint32_t number)
{
    uint32_t seq;
    int rc = node_begin(n, big, NODE_BY_SLOTS, &seq);
    if (unlikely(rc)) return rc;
    int needs = node_needs(n, a);
    rc = node_put(n, seq, a);
    if (!rc && needs != NODE_NOBODY) {
        rc = node_wait_for(n, seq, needs);
        if (likely(!rc)) rc = node_take(n, seq, a);
    }
    node_finish(n, seq, needs == NODE_ALL);
    return likely(!rc) ? 0 : ended(n, a, number, rc);
}

/* The first one behind the making: from here on all ranks know its outcome, and numbers for messages are taken no more.
 */
static TERN_COLD bool run_unsettled(struct node *n, const struct coll_call *a, enum node_way way, bool big,
                                    uint32_t number, int *rc_p)
{
    node_settled(n);
    bool done = node_run_and_wait(n, a, way, big, number, rc_p);
    if (done) n->comm->coll->seq++;
    return done || *rc_p;
}

/* ---- large ones ---- */

int64_t node_longest_block(const struct coll_call *a, int ranks, int64_t bytes)
{
    int64_t most = 0;
    if (!coll_has_blocks(a->kind)) return bytes;
    for (int r = 0; r < ranks; r++)
        if (a->rcounts[r] > most) most = a->rcounts[r];
    return most * a->rtype->size;
}

#define ANY_BYTES INT64_MAX

/*
 * Blocking ones with a core for each rank, by bytes of the longest block, else as in node_run. 0: never.
 *
 * once: from memory to memory from so many on, three ranks and more, and two. Two ranks, wide slots and this, us: scatter of 16 KB
 * 4.6 and 3.5, of 24 KB 5.8 and 3.8, gather 4.5 and 3.5, 5.1 and 3.9; of 10 KB both alike.
 *
 * wide: two ranks: up to how many wide slots are faster than messages, where memory to memory is not for it. Best of 8 launches
 * in turn on a busy machine of 2 cores, messages and this, us: reduce of 1 MB 133 and 69, allreduce 153 and 125, scan 222 and 79,
 * reduce_scatter_block 290 and 126. What only one of the two gets is copied half by each as a message: that takes the same time however
 * far the cores are apart, but a line that goes through a slot has to cross twice. 64 KB, messages and this: near (8 bytes cross in
 * 0.06 us) scatter 6.4 and 5.3, exscan 6.8 and 5.6; far (0.25 us) bcast 6.7 and 12.7, gather 7.7 and 11.3, scatter 7.4 and 12.7,
 * exscan 8.9 and 14.5.
 */
static const struct {
    int64_t once_of_more, once_of_two, wide_of_two;
} large[COLL_KINDS] = {
    [COLL_BCAST] = {16 << 10, 16 << 10, 32 << 10},
    [COLL_SCATTER] = {16 << 10, 16 << 10, 32 << 10},
    [COLL_GATHER] = {16 << 10, 16 << 10, 32 << 10},
    [COLL_ALLGATHER] = {16 << 10, 16 << 10, 256 << 10},
    [COLL_ALLGATHERV] = {16 << 10, 16 << 10, 0},
    [COLL_ALLTOALL] = {16 << 10, 16 << 10, 256 << 10},
    [COLL_REDUCE] = {32 << 10, 0, ANY_BYTES},
    [COLL_ALLREDUCE] = {32 << 10, 0, ANY_BYTES},
    [COLL_SCAN] = {0, 0, ANY_BYTES},
    [COLL_EXSCAN] = {0, 0, 32 << 10},
    [COLL_REDUCE_SCATTER] = {0, 0, ANY_BYTES},
    [COLL_REDUCE_SCATTER_BLOCK] = {16 << 10, 0, ANY_BYTES},
};

/* Three and more, which copy from memory to memory if they may and the operation has that. */
#define WIDE_OF_MORE (128 << 10)

/*
 * The blocks of an alltoall are cut into as many slices as it takes that all ranks' slices fit into the slots beside
 * each other: if they are small and many, the ranks are switched too often. 2 busy cores, processor time of the wide
 * slots and of copying from memory to memory: 4 ranks, 256 KB in 8 slices 326 and 445 us, 1 MB in 32 slices of 32
 * KB 1.6 and 2.6 ms; 16 ranks, 4 KB in 1 slice 220 us (messages: 2.5 ms), 64 KB in 16 slices of 4 KB 4.4 ms both.
 */
#define ALLTOALL_SLICES 8
#define ALLTOALL_SLICE ((size_t)16 << 10)

static bool too_many_slices(const struct coll_call *a, size_t one, int64_t bytes)
{
    return a->kind == COLL_ALLTOALL && one < ALLTOALL_SLICE && bytes > (int64_t)one * ALLTOALL_SLICES;
}

/* Through wide slots? Where ranks share cores, all that has slices. */
static bool is_wide(const struct comm *c, const struct coll_call *a, int64_t bytes)
{
    size_t one = node_wide_slice(a, c->size);
    if (!one) return false;
    bytes = node_longest_block(a, c->size, bytes);
    if (bytes <= 0) return false;
    if (c->size > 2 || node_counts()) {
        if (too_many_slices(a, one, bytes)) return false;
        return node_counts() || (large[a->kind].wide_of_two && bytes <= WIDE_OF_MORE);
    }
    return bytes <= large[a->kind].wide_of_two;
}

/* A nonblocking allgather of many ranks that share cores: messages double their data, so they are fewer and longer. 16 ranks on 2 cores, 64 KB:
 * 1.5 ms by messages, 2.5 so; 8 ranks 0.34 and 0.25. */
static bool is_better_by_messages(const struct comm *c, const struct coll_call *a)
{
    return (a->kind == COLL_ALLGATHER || a->kind == COLL_ALLGATHERV) && c->size > 8 && node_counts();
}

/* From memory to memory, if all ranks reach all others? */
static bool copies_once(const struct comm *c, const struct coll_call *a, bool blocking, int64_t bytes)
{
    int64_t awaited = c->size > 2 ? large[a->kind].once_of_more : large[a->kind].once_of_two;
    int64_t least = blocking ? awaited : var_int(VAR_COLL_PAIRS); /* 0: never */
    if (!least || !large[a->kind].once_of_more || !var_int(VAR_COLL_NODE) || !var_int(VAR_COLL_DIRECT)) return false;
    if (c->size < 2 || node_longest_block(a, c->size, bytes) < least) return false;
    if (!blocking && is_better_by_messages(c, a)) return false;
    if (!coll_reduces(a->kind)) return c->size <= NODE_PAIRS_RANKS;
    return blocking && a->rtype->contig && a->rtype->size > 0;
}

bool node_v_by_pairs(const struct node *n, bool blocking) { return n->pair_sets && (blocking || var_int(VAR_COLL_PAIRS)); }

/* The node for a large one, NULL: none. */
static struct node *node_for_large(struct comm *c, int *rc_p)
{
    struct node *n = node_get(c, rc_p);
    if (!n) return NULL;
    if (unlikely(!n->settled))
        run_unsettled(n, &(struct coll_call){.kind = COLL_BARRIER}, NODE_BY_SHARES, false, 0, rc_p);
    return *rc_p || n->state != NODE_READY ? NULL : n;
}

/* False: not all ranks reach all others. */
static bool run_single_copy(struct node *n, const struct coll_call *a, int *rc_p)
{
    bool all;
    node_tell_reach(n);
    *rc_p = node_await_all(n, NODE_REACHES, &all);
    if (*rc_p || !all) return false;
    if (!coll_reduces(a->kind)) return node_run_and_wait(n, a, NODE_BY_PAIRS, false, 0, rc_p);
    node_await(n); /* these have no place among others that are pending */
    *rc_p = node_reduce_by_shares(n, a);
    if (unlikely(node_failed(n))) *rc_p = node_failed(n);
    return true;
}

static bool run_wide(struct node *n, const struct coll_call *a, int64_t bytes, int *rc_p)
{
    node_await(n); /* the same */
    return node_wide_run(n, a, bytes, rc_p);
}

/* Larger ones: from memory to memory, or through wide slots, which ranks that share cores try first. */
static bool run_large(struct comm *c, const struct coll_call *a, int64_t bytes, int *rc_p)
{
    if (unlikely(!var_int(VAR_COLL_NODE))) return false;
    bool once = copies_once(c, a, true, bytes), wide = is_wide(c, a, bytes);
    struct node *n = once || wide ? node_for_large(c, rc_p) : NULL;
    if (!n) return *rc_p != 0;
    if (!n->counted && once && run_single_copy(n, a, rc_p)) return true;
    if (!*rc_p && wide && run_wide(n, a, bytes, rc_p)) return true;
    if (!*rc_p && n->counted && once && run_single_copy(n, a, rc_p)) return true;
    return *rc_p != 0;
}

/* Blocks of lengths that not all know: a number for messages is taken in any case. */
static bool run_v(struct node *n, const struct coll_call *a, bool big, int *rc_p)
{
    if (n->settled && n->state != NODE_READY) return false;
    uint32_t number = coll_number(n->comm->coll);
    if (unlikely(!n->settled)) return run_unsettled(n, a, NODE_BY_SLOTS, big, number, rc_p);
    bool all_reach, has_long = node_v_long(n, a);
    node_tell_reach(n);
    *rc_p = node_await_all(n, NODE_REACHES, &all_reach); /* either is good: nobody asks again */
    if (unlikely(*rc_p)) return true;
    node_v_open_short(n, a->kind);
    if (has_long || node_has_background(n)) return node_run_and_wait(n, a, NODE_BY_SLOTS, big, number, rc_p) || *rc_p;
    *rc_p = run(n, a, big, number);
    return true;
}

/* Once the node is settled its state does not change, and is read without the lane: the operation that settled it was waited
 * for in the lane, behind the making. */
static bool run_otherwise(struct comm *c, const struct coll_call *a, int64_t bytes, int *rc_p)
{
    bool big;
    struct node *n = node_for(c, a, bytes, &big, rc_p);
    if (!n) return *rc_p || run_large(c, a, bytes, rc_p);
    if (node_v_is(a->kind)) return run_v(n, a, big, rc_p);
    if (unlikely(!n->settled)) return run_unsettled(n, a, NODE_BY_SLOTS, big, 0, rc_p);
    if (unlikely(n->state != NODE_READY)) return false;
    if (unlikely(node_has_background(n))) return node_run_and_wait(n, a, NODE_BY_SLOTS, big, 0, rc_p);
    *rc_p = run(n, a, big, 0);
    return true;
}

bool node_run(struct comm *c, const struct coll_call *a, int64_t bytes, int *rc_p)
{
    struct node *n = c->coll->node;
    bool big;
    if (unlikely(!n || node_has_background(n))) return run_otherwise(c, a, bytes, rc_p);
    if (likely(node_is_quick(c, n, a, bytes, &big)))
        *rc_p = run(n, a, big, 0);
    else if (node_v_is_short(n, a))
        *rc_p = run(n, a, false, coll_number(c->coll));
    else
        return run_otherwise(c, a, bytes, rc_p);
    return true;
}

bool node_prepare(struct comm *c, const struct coll_call *a, int64_t bytes, struct request *r, int *rc_p)
{
    bool big;
    *rc_p = 0;
    struct node *n = node_for(c, a, bytes, &big, rc_p);
    if (n || *rc_p) return n && node_enlist(n, a, NODE_BY_SLOTS, big, r, rc_p);
    if (!copies_once(c, a, false, bytes)) return false;
    n = node_get(c, rc_p);
    return n && node_enlist(n, a, NODE_BY_PAIRS, false, r, rc_p);
}
