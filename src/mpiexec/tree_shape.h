/*
 * tree_shape.h - the shape of the tree of daemons (tree.h), worked out from two numbers alone.
 *
 * Vertex 0 is the root; the nodes that it does not serve itself are vertices 1, 2, ... in their order. The children of vertex v are
 * v * width + 1 ... v * width + width, as far as there are so many vertices, so that all know the whole tree from the list of nodes.
 */
#ifndef TERN_MPIEXEC_TREE_SHAPE_H
#define TERN_MPIEXEC_TREE_SHAPE_H

#include "base/compiler.h"

struct tree_shape {
    int width;    /* children of a vertex at most */
    int vertices; /* the root among them */
};

/* Of a vertex that is not the root. */
int tree_parent(const struct tree_shape *, int vertex);

/* How many children a vertex has; *first, if there are any, is the first one, and the others follow it. */
int tree_children(const struct tree_shape *, int vertex, int *first);

/* The child of `at` on the way to a vertex; 0: the way goes up, or ends here. */
int tree_towards(const struct tree_shape *, int at, int vertex);

/* Is `vertex` the same as `top`, or below it? */
bool tree_has_below(const struct tree_shape *, int top, int vertex);

#endif
