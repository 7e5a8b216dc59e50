/*
 * levels.h - who leads whom: partitions of the ranks, each inside the one before.
 *
 *     level 0      all ranks                              | 0 1 2 3 4 5 6 7 8 9 |
 *     level 1      the ranks of each node                 | 0 1 2 3 4 5 | 6 7 8 9 |
 *     level 2      those of each domain of a node         | 0 1 2 | 3 4 5 | 6 7 | 8 9 |
 *     the last     each rank by itself
 *
 * The level of the nodes is left out where all ranks are on one, that of the domains where the algorithm is not for
 * them (ALG_DOMAINS). Every group has a leader: `first` (the root) if that is in it, else its first rank; so the leader
 * of a group leads one of the groups inside it, too. A rank takes part in what happens among the groups of level l if
 * it leads its own one, with the leaders of those that are in the same group of level l - 1.
 *
 * Groups are numbered in the order of their first ranks, over all ranks.
 */
#ifndef TERN_COLL_ALG_LEVELS_H
#define TERN_COLL_ALG_LEVELS_H

#include "coll/alg/alg.h"

enum { LEVELS_MAX = 3 };

struct coll_levels {
    int last; /* the level of the single ranks */
    int top;  /* the widest one of whose groups I am a leader: 0 for `first`, `last` for who leads nobody */
    int rank, size;
    int first;
    const int32_t *of[LEVELS_MAX]; /* the group of each rank, on levels 1 to last - 1 */
};

void coll_levels_open(struct coll_levels *, const struct coll_shape *, const struct coll_given *, int first);

static inline int coll_level_group(const struct coll_levels *x, int level, int rank)
{
    return level == 0 ? 0 : level == x->last ? rank : x->of[level][rank];
}

/* The groups of a level that are in my group of the level above, in the order of their numbers. */
struct coll_level {
    int n;    /* how many */
    int me;   /* which one is mine */
    int home; /* and which has the leader of them all */
};
struct coll_level coll_level_look(const struct coll_levels *, int level);

/* The leader of number i of them; of all of them (room for all ranks; returns how many). */
int coll_level_leader(const struct coll_levels *, int level, int i);
int coll_level_leaders(const struct coll_levels *, int level, int *leader);

/* The leader of my group of the level above `top`, which is another rank; not to be asked by `first`. */
int coll_levels_above(const struct coll_levels *);

#endif
