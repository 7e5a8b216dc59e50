/* call.c - the calls that go without messages inside a node, each by the first of its ways (possible.c) that its ranks can take. */
#include "base/err.h"
#include "coll/node/node.h"
#include "coll/node/block.h"
#include "coll/node/blocks.h"
#include "coll/node/pairs.h"
#include "coll/node/v.h"
#include "coll/node/wide.h"
#include "obj/request.h"

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

/* ---- one way ---- */

/* Once the node is settled its state does not change, and is read without the lane: the operation that settled it was waited
 * for in the lane, behind the making. */
static bool run_by_slots(struct comm *c, const struct coll_call *a, int64_t bytes, int *rc_p)
{
    bool big;
    struct node *n = node_for(c, a, bytes, &big, rc_p);
    if (!n) return false;
    if (node_v_is(a->kind)) return run_v(n, a, big, rc_p);
    if (unlikely(!n->settled)) return run_unsettled(n, a, NODE_BY_SLOTS, big, 0, rc_p);
    if (unlikely(n->state != NODE_READY)) return false;
    if (unlikely(node_has_background(n))) return node_run_and_wait(n, a, NODE_BY_SLOTS, big, 0, rc_p);
    *rc_p = run(n, a, big, 0);
    return true;
}

static bool run_by(enum coll_way way, struct comm *c, const struct coll_call *a, int64_t bytes, int *rc_p)
{
    if (way == COLL_WAY_SLOTS) return run_by_slots(c, a, bytes, rc_p);
    struct node *n = node_for_large(c, rc_p);
    if (!n || way == COLL_WAY_ONCE) return n && run_single_copy(n, a, rc_p);
    node_await(n); /* it has no place among others that are pending either */
    return node_wide_run(n, a, bytes, rc_p);
}

static bool enlist_by(enum coll_way way, struct comm *c, const struct coll_call *a, int64_t bytes, struct request *r, int *rc_p)
{
    bool big = false, slots = way == COLL_WAY_SLOTS;
    struct node *n = slots ? node_for(c, a, bytes, &big, rc_p) : node_get(c, rc_p);
    return n && node_enlist(n, a, slots ? NODE_BY_SLOTS : NODE_BY_PAIRS, big, r, rc_p);
}

/* By the first of the ways in question that the ranks can take. r: the request of a nonblocking one, or NULL. */
static bool go_by_rules(struct comm *c, const struct coll_call *a, int64_t bytes, bool slots, struct request *r, int *rc_p)
{
    struct coll_way_list l;
    if (c->coll->node && !node_get(c, rc_p)) return false;
    *rc_p = node_ways(c, a, !r, slots, bytes, &l);
    for (unsigned i = 0; i < l.n && !*rc_p; i++) {
        enum coll_way way = (enum coll_way)l.way[i];
        if (r ? enlist_by(way, c, a, bytes, r, rc_p) : run_by(way, c, a, bytes, rc_p)) return true;
    }
    return *rc_p != 0;
}

/* ---- calls ---- */

static bool run_otherwise(struct comm *c, const struct coll_call *a, int64_t bytes, int *rc_p)
{
    return run_by_slots(c, a, bytes, rc_p) || *rc_p || go_by_rules(c, a, bytes, false, NULL, rc_p);
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

bool node_run_by_rules(struct comm *c, const struct coll_call *a, int64_t bytes, int *rc_p)
{
    return go_by_rules(c, a, bytes, true, NULL, rc_p);
}

bool node_prepare(struct comm *c, const struct coll_call *a, int64_t bytes, struct request *r, bool by_rules, int *rc_p)
{
    *rc_p = 0;
    if (!by_rules && (enlist_by(COLL_WAY_SLOTS, c, a, bytes, r, rc_p) || *rc_p)) return true;
    return go_by_rules(c, a, bytes, by_rules, r, rc_p);
}
