/* tree_shape.c - see tree_shape.h. */
#include "mpiexec/tree_shape.h"

int tree_parent(const struct tree_shape *s, int vertex) { return (vertex - 1) / s->width; }

int tree_children(const struct tree_shape *s, int vertex, int *first)
{
    int64_t begin = (int64_t)vertex * s->width + 1, end = min_int64(begin + s->width, s->vertices);
    if (begin >= end) return 0;
    *first = (int)begin;
    return (int)(end - begin);
}

int tree_towards(const struct tree_shape *s, int at, int vertex)
{
    for (; vertex > at; vertex = tree_parent(s, vertex))
        if (tree_parent(s, vertex) == at) return vertex;
    return 0;
}

bool tree_has_below(const struct tree_shape *s, int top, int vertex)
{
    while (vertex > top) vertex = tree_parent(s, vertex);
    return vertex == top;
}
