/*
 * create.h - making communicators with a topology (MPI-5.0 sections 8.5.1 to 8.5.6).
 *
 * Collective over the parent, which is an intracommunicator. What all members have to
 * agree on is a context, told by rank 0 of the parent. Arguments have been checked.
 * All return 0 or a code with words; *out is NULL for processes that get none.
 *
 * reorder: ranks may change places, see topo/reorder.h.
 */
#ifndef TERN_TOPO_CREATE_H
#define TERN_TOPO_CREATE_H

#include "topo/topo.h"

int topo_cart_create(struct comm *parent, int ndims, const int dims[], const int periods[], bool reorder,
                     struct comm **out);
/* Collective over the sub-grids: the processes of one hear of no other. */
int topo_cart_sub(struct comm *cart, const int remain[], struct comm **out);

int topo_graph_create(struct comm *parent, int nnodes, const int index[], const int edges[], bool reorder,
                      struct comm **out);

/* Local: the rank that this process would get with reorder; MPI_UNDEFINED: none. */
int topo_cart_map(struct comm *, int ndims, const int dims[], const int periods[], int *newrank);
int topo_graph_map(struct comm *, int nnodes, const int index[], const int edges[], int *newrank);

/* One side of the edges of a process, or (for topo_dist_create) the edges that a process knows of. */
struct topo_side {
    int n;
    const int *ranks, *weights; /* weights: NULL when there are none */
};

/* Each process tells its own edges, both ways. */
int topo_dist_create_adjacent(struct comm *parent, const struct topo_side *in, const struct topo_side *out_side,
                              bool weighted, bool reorder, struct comm **out);

/* Any process tells any edges: from sources[i] to the next degrees[i] entries of `to`. */
int topo_dist_create(struct comm *parent, int n, const int sources[], const int degrees[], const struct topo_side *to,
                     bool weighted, bool reorder, struct comm **out);

#endif
