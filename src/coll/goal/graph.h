/*
 * graph.h - a program taken apart, so that it can be changed: operations with lists that can be replaced, and edges.
 */
#ifndef TERN_COLL_GOAL_GRAPH_H
#define TERN_COLL_GOAL_GRAPH_H

#include "coll/goal/goal.h"

struct graph_op {
    uint8_t type;
    bool gone; /* not in the program any more; has no edges */
    uint16_t tag;
    int32_t peer;
    unsigned n_in, n_out;
    struct goal_piece *piece; /* in..., out...; malloc'ed */
};

struct graph_edge {
    uint32_t from, to; /* indices of operations */
    bool start, gone;
};

struct graph {
    int rank, size;
    unsigned flags;
    int64_t scratch;
    struct graph_op *op;
    struct graph_edge *edge;
    uint32_t ops;
    size_t edges, edge_room;
};

/* Copies a program; 0 or TERN_ERR_NOMEM. */
int graph_open(struct graph *, const struct goal_head *);
void graph_close(struct graph *);

int graph_add_edge(struct graph *, uint32_t from, uint32_t to, bool start);

/*
 * An operation that does nothing any more goes: what came before it comes before what comes after it. Where that would
 * take more edges than it has, it becomes a join instead.
 */
int graph_remove(struct graph *, uint32_t op);

/* The program of what is left; one reference. */
int graph_seal(const struct graph *, struct goal_prog **prog_p);

/* The edges by where they begin: those of i are list[first[i]] to list[first[i + 1] - 1]. One allocation, at `first`. */
struct graph_out {
    size_t *first;
    uint32_t *list; /* indices of edges that are not gone */
};
int graph_out_open(const struct graph *, struct graph_out *);

#endif
