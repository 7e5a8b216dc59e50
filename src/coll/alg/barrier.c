/*
 * barrier.c - barriers. Dissemination (GOAL-26): in round k each rank tells the one 2^k behind it that it has heard
 * of 2^k ranks; after ceil(log2 P) rounds everyone has heard of all.
 */
#include "coll/alg/alg.h"

static goal_id tell(struct goal_build *b, int peer, int tag, goal_id after)
{
    goal_id send = goal_sendv(b, peer, tag, NULL, 0);
    goal_after(b, send, after);
    return send;
}

static goal_id hear(struct goal_build *b, int peer, int tag) { return goal_recvv(b, peer, tag, NULL, 0); }

void coll_barrier_dissemination(struct goal_build *b, const struct coll_shape *s, const struct coll_given *v)
{
    (void)v;
    goal_id heard = GOAL_NONE, told = GOAL_NONE;
    int k = 0;
    for (int64_t d = 1; d < s->size; d *= 2, k++) {
        int to = (int)((s->rank + d) % s->size), from = (int)((s->rank - d + s->size) % s->size);
        goal_id send = tell(b, to, k, heard);
        /* The start of the last send says that all rounds before it had been heard, the last receive that it has. */
        goal_after_start(b, send, told);
        told = send;
        heard = hear(b, from, k);
    }
}

/* With radix k each round multiplies by k what has been heard of, at k - 1 messages. */
void coll_barrier_kdissemination(struct goal_build *b, const struct coll_shape *s, const struct coll_given *v)
{
    (void)v;
    int radix = coll_radix(s), tag = 0;
    goal_id heard = GOAL_NONE;
    for (int64_t w = 1; w < s->size; w *= radix) {
        goal_id round = goal_join(b);
        goal_after(b, round, heard);
        for (int64_t d = w; d < radix * w && d < s->size; d += w, tag++) {
            tell(b, (int)((s->rank + d) % s->size), tag, heard);
            goal_after(b, round, hear(b, (int)((s->rank - d + s->size) % s->size), tag));
        }
        heard = round;
    }
}

/* Ranks beyond the largest power of two report to a partner first and are released by it. */
void coll_barrier_doubling(struct goal_build *b, const struct coll_shape *s, const struct coll_given *v)
{
    (void)v;
    enum { RELEASE = 40 };
    int p = coll_pow2_below(s->size), tag = 1;
    goal_id heard = GOAL_NONE;
    if (s->rank >= p) {
        tell(b, s->rank - p, 0, GOAL_NONE);
        hear(b, s->rank - p, RELEASE);
        return;
    }
    if (s->rank + p < s->size) heard = hear(b, s->rank + p, 0);
    for (int mask = 1; mask < p; mask *= 2, tag++) {
        tell(b, s->rank ^ mask, tag, heard);
        heard = coll_both(b, heard, hear(b, s->rank ^ mask, tag));
    }
    if (s->rank + p < s->size) tell(b, s->rank + p, RELEASE, heard);
}

void coll_barrier_linear(struct goal_build *b, const struct coll_shape *s, const struct coll_given *v)
{
    (void)v;
    if (s->rank) {
        tell(b, 0, 0, GOAL_NONE);
        hear(b, 0, 1);
        return;
    }
    goal_id all = goal_join(b);
    for (int i = 1; i < s->size; i++) {
        goal_after(b, all, hear(b, i, 0));
        tell(b, i, 1, all);
    }
}

void coll_barrier_tree(struct goal_build *b, const struct coll_shape *s, const struct coll_given *v)
{
    struct coll_tree t[2];
    coll_tree_make(t, TREE_KNOMIAL, s, v, 0);
    goal_id go = goal_join(b);
    for (int k = 0; k < t->children; k++) goal_after(b, go, hear(b, t->child[k], 0));
    if (t->parent >= 0) {
        tell(b, t->parent, 0, go);
        go = hear(b, t->parent, 1);
    }
    for (int k = t->children - 1; k >= 0; k--) tell(b, t->child[k], 1, go);
}

/* All is said at the start and nothing depends on anything: it ends without this rank's doing. */
void coll_barrier_deposit(struct goal_build *b, const struct coll_shape *s, const struct coll_given *v)
{
    (void)v;
    for (int i = 1; i < s->size; i++) {
        tell(b, (s->rank + i) % s->size, 0, GOAL_NONE);
        hear(b, (s->rank - i + s->size) % s->size, 0);
    }
}
