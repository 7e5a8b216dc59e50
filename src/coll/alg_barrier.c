/*
 * alg_barrier.c - dissemination (GOAL-26): in round k each rank tells the one 2^k behind
 * it that it has heard of 2^k ranks; after ceil(log2 P) rounds everyone has heard of all.
 */
#include "coll/alg.h"

void coll_barrier_dissemination(struct goal_build *b, const struct coll_shape *s, const struct coll_given *v)
{
    (void)v;
    goal_id heard = GOAL_NONE, told = GOAL_NONE;
    int k = 0;
    for (int64_t d = 1; d < s->size; d *= 2, k++) {
        int to = (int)((s->rank + d) % s->size), from = (int)((s->rank - d + s->size) % s->size);
        goal_id send = goal_sendv(b, to, k, NULL, 0);
        /* The start of the last send says that all rounds before it had been heard, the last receive that it has. */
        goal_after(b, send, heard);
        goal_after_start(b, send, told);
        told = send;
        heard = goal_recvv(b, from, k, NULL, 0);
    }
}
