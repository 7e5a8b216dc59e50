/*
 * halving.h - reduce-scatter by recursive halving, the first half of large reductions
 * (Rabenseifner), for any number of ranks and in rank order.
 *
 * With P ranks and p the largest power of two in it, the first 2 (P - p) ranks pair up:
 * the even one hands its whole vector to the odd one and drops out. The p that are left,
 * renumbered in order, exchange halves with partners at distance 1, 2, 4 ...; since after
 * each step a rank holds the combination of a contiguous, aligned group of ranks, the
 * order is kept for operators that do not commute. Rank number `num` ends with chunk
 * bitreverse(num) of p.
 */
#ifndef TERN_COLL_ALG_HALVING_H
#define TERN_COLL_ALG_HALVING_H

#include "coll/alg/alg.h"

struct halving {
    int p, extra;        /* ranks that take part, P - p */
    int num;             /* my number among them, -1 if I dropped out */
    struct goal_mem in, dst; /* where the input is, and where results are made */
    const int64_t *bound; /* where chunks begin, p + 1 entries; NULL: they are as equal as can be */
    int lo, hi;          /* my chunks at the end: [lo, hi), one chunk */
    goal_id last;        /* my chunk is complete in dst (or, having dropped out, my vector is sent) after this */
    goal_id sent[32];    /* step k: the send of the half given away, from dst or the input */
};

/* Rank of the process with number num. */
static inline int halving_rank(const struct halving *h, int num)
{
    return num < h->extra ? 2 * num + 1 : num + h->extra;
}

/* The half of [lo, hi) that number `num` keeps in the step with distance `mask`, as [*lo, *hi). */
static inline void halving_keep(int num, int mask, int *lo, int *hi)
{
    int mid = *lo + (*hi - *lo) / 2;
    if (num & mask)
        *lo = mid;
    else
        *hi = mid;
}

/* The chunk that number `num` ends with. */
static inline int halving_chunk(const struct halving *h, int num)
{
    int lo = 0, hi = h->p;
    for (int mask = 1; mask < h->p; mask *= 2) halving_keep(num, mask, &lo, &hi);
    return lo;
}

/* First byte of chunk c. */
static inline int64_t halving_at(const struct halving *h, const struct coll_shape *s, int c)
{
    return h->bound ? h->bound[c] : coll_chunk(s, c, h->p);
}

/* Numbers the ranks; nothing else is set, all chunks are still everyone's. */
void halving_number(const struct coll_shape *, struct halving *);

/* Pairs up and numbers the ranks; messages use `tag`. Input: coll_input; the result goes to dst. */
void halving_pair(struct goal_build *, const struct coll_shape *, struct goal_mem dst, int tag, struct halving *);

/* The halving itself, behind halving_pair; messages use tags from `tag` on, one a step. */
void halving_reduce(struct goal_build *, const struct coll_shape *, int tag, struct halving *);

#endif
