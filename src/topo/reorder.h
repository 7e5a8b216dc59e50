/*
 * reorder.h - which process takes which place of a topology, so that neighbours are
 * near each other in the hardware.
 *
 * The measure is the cost of an order: the sum of weight x machine_distance over the
 * edges. Several orders are proposed (below); the cheapest is made better by swapping
 * pairs, and is taken only if it costs less than leaving the ranks alone.
 *
 * All of it is arithmetic on plain arrays, the same for the same input, so that who
 * computes does not matter. See doc/decisions/topology-reordering.md.
 */
#ifndef TERN_TOPO_REORDER_H
#define TERN_TOPO_REORDER_H

#include "proc/machine.h"

/* An undirected graph: the neighbours of v are to[first[v]] to to[first[v + 1] - 1], each edge standing at both ends. */
struct reorder_graph {
    int32_t n;
    int64_t *first;
    int32_t *to, *weight;
};

struct reorder_edge {
    int32_t from, to, weight;
};

/* From edges in any direction and order; loops are left out. 0 or TERN_ERR_NOMEM. */
int reorder_graph_open(struct reorder_graph *, int32_t n, int64_t edges, const struct reorder_edge *);
void reorder_graph_close(struct reorder_graph *);

/* Where the graph is a grid; ndims 0 where it is none. */
struct reorder_grid {
    int ndims;
    const int *dims, *periods;
};

/* order[v] is the place that vertex v has; NULL: v itself. */
int64_t reorder_cost(const struct reorder_graph *, const struct machine_place place[], const int32_t order[]);

struct reorder_result {
    int64_t before, after; /* costs; after < before, or nothing is gained */
};

/*
 * Finds an order of the n places for the n vertices. 0 or TERN_ERR_NOMEM.
 */
int reorder_find(const struct reorder_graph *, const struct reorder_grid *, const struct machine_place place[], int32_t order[],
                 struct reorder_result *);

/*
 * Growing and swapping are for graphs with at most so many ends of edges, and swapping for so many steps: together a
 * fraction of a second, at the worst, in a call that is made once. Larger grids are blocked only; larger graphs keep
 * their order.
 */
enum { REORDER_EDGES = 1 << 18, REORDER_STEPS = 1 << 22 };

/* ---- the parts ---- */

/* The places in the order of the hardware: nodes, packages ... one after the other. `sorted` has n entries. */
int reorder_sort(int32_t n, const struct machine_place place[], int32_t sorted[]);

/* Is there a boundary of this depth (0: node, then enum machine_level + 1), or of a wider one, between two places? */
bool reorder_apart(const struct machine_place *, const struct machine_place *, int depth);
enum { REORDER_DEPTHS = MACHINE_LEVELS + 1 };

/*
 * Grids on regular hardware: block.c. At each level, from nodes to cores, the box of the level above is cut into equal
 * boxes, as many cells each as the hardware has places there, of the shape with the least surface.
 * TERN_ERR_NOT_FOUND: no level fits.
 */
int reorder_block(const struct reorder_grid *, int32_t n, const struct machine_place place[], const int32_t sorted[], int32_t order[]);

/*
 * Any graph: grow.c. At each level, a part for each piece of hardware grows from a vertex at the border, always by the
 * vertex that adds the least to the weight cut.
 */
int reorder_grow(const struct reorder_graph *, const struct machine_place place[], const int32_t sorted[], int32_t order[]);

/* Swaps pairs of vertices while that pays: refine.c. Returns the cost, given the cost at the start. */
int64_t reorder_refine(const struct reorder_graph *, const struct machine_place place[], const int32_t sorted[], int32_t order[],
                       int64_t cost);

#endif
