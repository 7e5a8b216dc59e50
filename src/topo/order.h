/*
 * order.h - the order of ranks for a new topology: reorder.h for communicators.
 *
 * Where the processes are is asked once for a communicator, when something is first
 * reordered on it, and remembered there. Rank 0 computes and tells the others.
 *
 * MPI_Cart_map and MPI_Graph_map must not communicate. They compute alone from what is
 * known without asking: all places after something was reordered, before that the nodes.
 */
#ifndef TERN_TOPO_ORDER_H
#define TERN_TOPO_ORDER_H

#include "obj/comm.h"
#include "topo/create.h"
#include "topo/reorder.h"

/* The topology that is asked for: a grid, a graph, or (both empty) what each process says of its own edges. */
struct order_wish {
    int32_t n; /* vertices, at most the processes of the communicator; the first n are taken */
    struct reorder_grid grid;
    const int *index, *edges;     /* of a graph: see MPI_Graph_create; NULL: it is none */
    const struct topo_side *out;  /* this process's outgoing edges */
};

/*
 * Collective. *order_p gets the rank in `c` for each new rank, malloc'ed; NULL: all ranks stay as they are. Not being
 * able to reorder is no failure.
 */
int order_find(struct comm *c, const struct order_wish *, int32_t **order_p);

/* Local; not for distributed graphs. The new rank of this process; MPI_UNDEFINED: none. */
int order_map(struct comm *c, const struct order_wish *, int *newrank);

#endif
