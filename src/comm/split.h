/*
 * split.h - what splitting by color and splitting by type have in common: everybody's
 * vote is gathered, and each color becomes a communicator.
 */
#ifndef TERN_COMM_SPLIT_H
#define TERN_COMM_SPLIT_H

#include "comm/create.h"

#define SPLIT_NONE ((int64_t)-1) /* the color of who is in no part; others are not negative */

/* What each rank says; known to all. The fresh contexts are used if the rank becomes the first of its color. */
struct vote {
    int64_t color;
    int32_t key;
    int32_t type; /* MPI_Comm_split_type's; 0 for a split by color */
    uint64_t ctx, within;
};

/* The vote of this process, with fresh contexts. */
struct vote split_vote(const struct comm *parent, int64_t color, int key, int type);

/* `bytes` of every rank, malloc'ed: of the own group, and of the other one where there is one, else NULL. */
int split_gather(struct comm *, const void *mine, size_t bytes, void **ours_p, void **theirs_p);

/* The communicator of this process's color; *out stays if it has none. `theirs` is NULL for intracommunicators. */
int split_make(struct comm *parent, const struct vote *ours, const struct vote *theirs, struct comm **out);

#endif
