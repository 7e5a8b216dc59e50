/*
 * topo.h - virtual topologies of communicators (MPI-5.0 chapter 8).
 *
 * A topology is a constant that hangs on a communicator (comm.topo) and is shared by
 * its duplicates. All of it that this process may be asked for is in one piece of
 * memory, with this process's neighbours worked out, since they are what the
 * neighbourhood collectives want.
 *
 * The functions here are local. Making communicators is in topo/create.h.
 *
 * Threads: immutable but for the count of references.
 */
#ifndef TERN_TOPO_TOPO_H
#define TERN_TOPO_TOPO_H

#include "obj/comm.h"

struct topo {
    _Atomic int32_t refs; /* relaxed to add (who adds has one), acq_rel to take away */
    int kind;             /* MPI_CART, MPI_GRAPH, MPI_DIST_GRAPH */

    /* Cartesian: the last dimension runs fastest. */
    int ndims;
    int *dims, *periods, *coords; /* coords: of this process */

    /* Graph: the neighbours of node i are edges[i ? index[i - 1] : 0] to edges[index[i] - 1]. */
    int nnodes;
    int *index, *edges;

    /* Distributed graph, in the order of sources and destinations. */
    bool weighted;
    int *in_weights, *out_weights;

    /*
     * Every kind: who sends to this process, and whom it sends to, in the order of the neighbourhood collectives (8.6):
     * cartesian, for each dimension the lower neighbour, then the upper one, MPI_PROC_NULL where there is none; graph,
     * the order of the edges, for both; distributed graph, as given, or by who gave them.
     */
    int in, out;
    int *sources, *destinations;

    int ints[]; /* what the pointers point to */
};

void topo_open(void); /* before communicators are made: hooks into their end */
void topo_close(void);

/* The topology of a communicator; NULL: it has none. */
static inline const struct topo *topo_of(const struct comm *c) { return c->topo; }

/* A duplicate gets its parent's topology. To be called once, when `dup` is new. */
void topo_copy(const struct comm *parent, struct comm *dup);

/* This process's neighbours, which are borrowed from the communicator. TERN_ERR_TOPOLOGY: it has no topology. */
struct topo_neighbors {
    int in, out;
    const int *sources, *destinations;
};
int topo_neighbors(const struct comm *, struct topo_neighbors *);

/* ---- making topologies: NULL with words when memory is out ---- */

/* What `rank` is told of a grid with one process a cell. */
struct topo *topo_new_cart(int ndims, const int dims[], const int periods[], int rank);
struct topo *topo_new_graph(int nnodes, const int index[], const int edges[], int rank);
/* The arrays of weights are NULL for a graph without weights. */
struct topo *topo_new_dist(int in, const int sources[], const int in_weights[], int out, const int destinations[],
                           const int out_weights[], bool weighted);
void topo_unref(struct topo *);

/* ---- grids ---- */
int topo_cart_rank(const struct topo *, const int coords[]); /* coordinates are inside */
void topo_cart_coords(const struct topo *, int rank, int coords[]);
/* The rank that is `disp` steps away along a dimension; MPI_PROC_NULL outside. */
int topo_cart_step(const struct topo *, int dim, int64_t disp);

/* ---- graphs ---- */
/* The neighbours of a node; returns how many. */
int topo_graph_edges(const struct topo *, int node, const int **edges);

#endif
