/*
 * rankset.h - rank maps as ordered sets: what the operations on groups are made of
 * (MPI-5.0 section 7.3.2).
 *
 * Where both maps are progressions or runs, the cost is that of their runs, not of
 * their ranks, unless a look at each rank is cheaper; otherwise O(n) expected.
 * Functions that return a map return NULL when memory is out.
 */
#ifndef TERN_OBJ_RANKSET_H
#define TERN_OBJ_RANKSET_H

#include "obj/rankmap.h"

/* What of a is in b, or is not; in a's order. */
struct rankmap *rankset_common(const struct rankmap *a, const struct rankmap *b);
struct rankmap *rankset_minus(const struct rankmap *a, const struct rankmap *b);

/* First all of a, then what of b is not in a; or all of b, if they have nothing in common. */
struct rankmap *rankset_union(const struct rankmap *a, const struct rankmap *b);
struct rankmap *rankset_join(const struct rankmap *a, const struct rankmap *b);

/* `ranks` is a map, too, whose indices are ranks of m. The members of m with these ranks, in that order; or all others. */
struct rankmap *rankset_pick(const struct rankmap *m, const struct rankmap *ranks);
struct rankmap *rankset_drop(const struct rankmap *m, const struct rankmap *ranks);

/* The first rank of a that is not in b; -1: a is a subset. */
int32_t rankset_outside(const struct rankmap *a, const struct rankmap *b);

/* An index, all being below `limit`, that is in a map more than once: -1 if none is, -2 when memory is out. */
int32_t rankset_twice(const struct rankmap *, int32_t limit);

#endif
