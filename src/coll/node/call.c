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

static int run(struct node *n, const struct coll_call *a, bool big)
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
    return rc > 0 ? 0 : rc;
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

/* The node for a large one, NULL: none. What is pending has to be over first, since both use the node's order. */
static struct node *node_for_large(struct comm *c, int *rc_p)
{
    struct node *n = node_get(c, rc_p);
    if (!n) return NULL;
    if (unlikely(!n->settled))
        run_unsettled(n, &(struct coll_call){.kind = COLL_BARRIER}, NODE_BY_PLACES, false, 0, rc_p);
    if (*rc_p || n->state != NODE_READY) return NULL;
    if (unlikely(node_has_background(n))) node_await(n);
    return n;
}

/* Larger ones: through wide slots, or from memory to memory, which three and more with a core each try first. */
static bool run_large(struct comm *c, const struct coll_call *a, int64_t bytes, int *rc_p)
{
    bool wide = node_wide_suits(c, a, bytes), direct = node_direct_suits(c, a, bytes);
    struct node *n = wide || direct ? node_for_large(c, rc_p) : NULL;
    if (!n) return *rc_p != 0;
    if (wide && n->counted && node_wide_run(n, a, bytes, rc_p)) return true;
    if (!*rc_p && direct && node_direct_run(n, a, rc_p)) return true;
    if (!*rc_p && wide && !n->counted && node_wide_run(n, a, bytes, rc_p)) return true;
    return *rc_p != 0;
}

/* With nothing else pending, where `n->lending` would be another one's. */
static bool lend(struct node *n, const struct coll_call *a, int *rc_p)
{
    if (unlikely(node_has_background(n))) node_await(n);
    *rc_p = node_v_lend(n, a);
    return true;
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
    if (has_long && direct && node_v_may_lend(n, a)) return lend(n, a, rc_p);
    if (has_long || node_has_background(n)) return node_run_in_background(n, a, NODE_BY_SLOTS, big, number, rc_p) || *rc_p;
    *rc_p = run(n, a, big);
    if (unlikely(*rc_p) && !node_failed(n)) node_straighten(n, n->seq, a, number);
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
    *rc_p = run(n, a, big);
    return true;
}

bool node_run(struct comm *c, const struct coll_call *a, int64_t bytes, int *rc_p)
{
    struct node *n = c->coll->node;
    bool big;
    if (unlikely(!n || !node_is_quick(c, n, a, bytes, &big) || node_has_background(n)))
        return run_otherwise(c, a, bytes, rc_p);
    *rc_p = run(n, a, big);
    return true;
}

bool node_prepare(struct comm *c, const struct coll_call *a, int64_t bytes, struct request *r, int *rc_p)
{
    bool big;
    *rc_p = 0;
    struct node *n = node_for(c, a, bytes, &big, rc_p);
    if (n || *rc_p) return n && node_enlist(n, a, big, false, r, rc_p);
    if (!node_pairs_suit(c, a, bytes)) return false;
    n = node_get(c, rc_p);
    return n && node_enlist(n, a, false, true, r, rc_p);
}
