/* build_in.h - the builder inside: for build.c, and stage.c next to it. */
#ifndef TERN_COLL_GOAL_BUILD_IN_H
#define TERN_COLL_GOAL_BUILD_IN_H

#include "coll/goal/build.h"

struct draft { /* an operation before it has a place in the block */
    uint8_t type;
    uint16_t tag, n_in, n_out;
    int32_t peer;
    uint32_t piece; /* index of its first piece */
};

struct edge {
    int32_t from, to;
    bool start; /* released by the start of `from`, not by its end */
};

struct goal_build {
    int rank, size, err;
    unsigned flags;
    int64_t scratch;
    struct draft *op;
    struct goal_piece *piece;
    struct edge *edge;
    struct goal_range *range;
    size_t ops, pieces, edges, ranges;             /* in use ... */
    size_t op_cap, piece_cap, edge_cap, range_cap; /* ... of */
    bool staged; /* between goal_stage_open and goal_stage_close ... */
    struct goal_stage stage;
    size_t stage_op, stage_edge; /* ... with what has been added since */
};

/* An argument of an operation as it is outside of the stage that is open. */
static inline struct goal_mem goal_stage_place(const struct goal_build *b, struct goal_mem at)
{
    if (likely(!b->staged) || at.slot < 0 || at.slot > GOAL_RECV_BUF) return at;
    return goal_plus(b->stage.slot[at.slot], at.off);
}

#endif
