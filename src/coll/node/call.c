/* call.c - which calls go through the node-local block, and the way of those that nothing is pending before. */
#include "base/err.h"
#include "coll/node/node.h"
#include "coll/node/block.h"
#include "coll/node/direct.h"
#include "coll/node/pairs.h"
#include "coll/node/v.h"
#include "coll/node/wide.h"
#include "obj/request.h"

/* Of blocks whose lengths all ranks know: all of them, or the longest. */
static int64_t most_of(const struct comm *c, const struct coll_call *a)
{
    int64_t sum = 0, most = 0;
    for (int r = 0; r < c->size; r++) {
        sum += a->rcounts[r];
        if (a->rcounts[r] > most) most = a->rcounts[r];
    }
    return (a->kind == COLL_ALLGATHERV ? most : sum) * a->rtype->size;
}

/* The largest contribution of a rank in this call: what it leaves in its slot. */
static int64_t contribution(const struct comm *c, const struct coll_call *a, int64_t bytes)
{
    switch (a->kind) {
    case COLL_ALLTOALL:
    case COLL_REDUCE_SCATTER_BLOCK:
        return bytes * c->size;
    case COLL_ALLGATHERV:
    case COLL_REDUCE_SCATTER:
        return most_of(c, a);
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
    bool done = node_run_in_background(n, a, way, big, number, rc_p);
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

/*
 * Blocking ones go from memory to memory from so many bytes on (of the longest block; else as in node_run), of three ranks
 * and more, and of two; 0: never.
 */
static const struct {
    int64_t of_more, of_two;
} least_awaited[COLL_KINDS] = {
    [COLL_BCAST] = {16 << 10, 48 << 10},
    [COLL_SCATTER] = {16 << 10, 48 << 10},
    [COLL_GATHER] = {16 << 10, 48 << 10},
    [COLL_ALLGATHER] = {16 << 10, 16 << 10},
    [COLL_ALLGATHERV] = {16 << 10, 16 << 10},
    [COLL_ALLTOALL] = {16 << 10, 16 << 10},
    [COLL_REDUCE] = {32 << 10, 0},
    [COLL_ALLREDUCE] = {32 << 10, 0},
    [COLL_REDUCE_SCATTER_BLOCK] = {16 << 10, 0},
};

/*
 * Nonblocking ones from so many on; 0: never. Where ranks share cores, waking whoever may copy costs more than it gains: 4 ranks on
 * 2 cores, medians of 3 launches, ialltoall of 1 MB 1.7 ms by messages and 2.3 so, iallgather 1.4 and 2.2, ibcast 0.25 and
 * 0.33, ialltoall of 64 KB 90 and 117 us; only igather gains (1 MB 0.45 and 0.33 ms).
 */
static int64_t least_started(void) { return var_int(node_counts() ? VAR_COLL_PAIRS_SHARED : VAR_COLL_PAIRS); }

static bool is_direct(const struct comm *c, const struct coll_call *a, bool blocking, int64_t bytes)
{
    int64_t awaited = c->size > 2 ? least_awaited[a->kind].of_more : least_awaited[a->kind].of_two;
    int64_t least = blocking ? awaited : least_started();
    if (!least || !least_awaited[a->kind].of_more || !var_int(VAR_COLL_NODE) || !var_int(VAR_COLL_DIRECT)) return false;
    if (c->size < 2 || node_longest_block(a, c->size, bytes) < least) return false;
    if (!coll_reduces(a->kind)) return c->size <= NODE_PAIRS_RANKS;
    return blocking && a->rtype->contig && a->rtype->size > 0;
}

bool node_v_by_pairs(const struct node *n, bool blocking) { return n->places && (blocking || least_started()); }

/* The node for a large one, NULL: none. */
static struct node *node_for_large(struct comm *c, int *rc_p)
{
    struct node *n = node_get(c, rc_p);
    if (!n) return NULL;
    if (unlikely(!n->settled))
        run_unsettled(n, &(struct coll_call){.kind = COLL_BARRIER}, NODE_BY_PLACES, false, 0, rc_p);
    return *rc_p || n->state != NODE_READY ? NULL : n;
}

/* From memory to memory, if all ranks reach all others. */
static bool run_direct(struct node *n, const struct coll_call *a, int *rc_p)
{
    bool all;
    node_tell_reach(n);
    *rc_p = node_await_all(n, NODE_REACHES, &all);
    if (*rc_p || !all) return false;
    if (!coll_reduces(a->kind)) return node_run_in_background(n, a, NODE_BY_PAIRS, false, 0, rc_p);
    node_await(n); /* these have no place among others that are pending */
    *rc_p = a->kind == COLL_REDUCE_SCATTER_BLOCK ? node_direct_reduce_scatter(n, a) : node_direct_reduce(n, a);
    if (unlikely(node_failed(n))) *rc_p = node_failed(n);
    return true;
}

static bool run_wide(struct node *n, const struct coll_call *a, int64_t bytes, int *rc_p)
{
    node_await(n); /* the same */
    return node_wide_run(n, a, bytes, rc_p);
}

/* Larger ones: through wide slots, or from memory to memory, which ranks with a core each try first. */
static bool run_large(struct comm *c, const struct coll_call *a, int64_t bytes, int *rc_p)
{
    bool wide = node_wide_suits(c, a, bytes), direct = is_direct(c, a, true, bytes);
    struct node *n = wide || direct ? node_for_large(c, rc_p) : NULL;
    if (!n) return *rc_p != 0;
    if (wide && n->counted && run_wide(n, a, bytes, rc_p)) return true;
    if (!*rc_p && direct && run_direct(n, a, rc_p)) return true;
    if (!*rc_p && wide && !n->counted && run_wide(n, a, bytes, rc_p)) return true;
    return *rc_p != 0;
}

/* Blocks of lengths that not all know: a number for messages is taken in any case. */
static bool run_v(struct node *n, const struct coll_call *a, bool big, int *rc_p)
{
    if (n->settled && n->state != NODE_READY) return false;
    uint32_t number = coll_number(n->comm->coll);
    if (unlikely(!n->settled)) return run_unsettled(n, a, NODE_BY_SLOTS, big, number, rc_p);
    bool direct, has_long = node_v_long(n, a);
    node_tell_reach(n);
    *rc_p = node_await_all(n, NODE_REACHES, &direct);
    if (unlikely(*rc_p)) return true;
    node_v_open_short(n, a->kind);
    if (has_long || node_has_background(n)) return node_run_in_background(n, a, NODE_BY_SLOTS, big, number, rc_p) || *rc_p;
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
    if (unlikely(node_has_background(n))) return node_run_in_background(n, a, NODE_BY_SLOTS, big, 0, rc_p);
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
    if (!is_direct(c, a, false, bytes)) return false;
    n = node_get(c, rc_p);
    return n && node_enlist(n, a, NODE_BY_PAIRS, false, r, rc_p);
}
