/*
 * neighbor.c - the neighbourhood collectives: blocks go along the edges of the
 * communicator's topology (MPI-5.0 8.6).
 *
 * Two ranks may be joined by several edges. In graphs, the messages between them pair up
 * in the order in which both list them: the tag counts the edges to the same peer. In
 * grids what goes up a dimension comes from below: the tag is the direction, so that a
 * dimension of one or two processes, where both neighbours are the same, keeps them apart.
 */
#include "coll/alg/alg.h"

#include "base/err.h"
#include <stdlib.h>

struct edge {
    int peer, at; /* neighbour number `at` */
};

static int by_peer(const void *a, const void *b)
{
    const struct edge *x = a, *y = b;
    if (x->peer != y->peer) return x->peer < y->peer ? -1 : 1;
    return x->at < y->at ? -1 : x->at > y->at;
}

/* tag[i]: how many of the first i neighbours are the i-th. `edge` is room for n. */
static void count_edges(const int *neighbor, int n, struct edge *edge, int *tag)
{
    for (int i = 0; i < n; i++) edge[i] = (struct edge){neighbor[i], i};
    if (n) qsort(edge, (size_t)n, sizeof *edge, by_peer);
    for (int i = 0, first = 0; i < n; i++) {
        if (edge[i].peer != edge[first].peer) first = i;
        tag[edge[i].at] = i - first;
    }
}

/* The tags of what comes in, then of what goes out; malloc'ed. */
static int *edge_tags(struct goal_build *b, const struct coll_given *v)
{
    size_t most = (size_t)(v->in > v->out ? v->in : v->out);
    int *tag = malloc(((size_t)v->in + (size_t)v->out + 1) * sizeof *tag);
    struct edge *edge = malloc((most + 1) * sizeof *edge);
    if (!tag || !edge) {
        goal_build_fail(b, err_set(TERN_ERR_NOMEM, "no memory for the schedule of %zu neighbours", most));
        free(tag);
        tag = NULL;
    } else if (v->grid) {
        for (int i = 0; i < v->in; i++) tag[i] = i ^ 1;
        for (int i = 0; i < v->out; i++) tag[v->in + i] = i;
    } else {
        count_edges(v->sources, v->in, edge, tag);
        count_edges(v->destinations, v->out, edge, tag + v->in);
    }
    free(edge);
    return tag;
}

/* Everybody gets the same block from this rank in allgather. */
static struct goal_part outgoing(const struct coll_shape *s, const struct coll_given *v, int i)
{
    if (s->kind == COLL_NEIGHBOR_ALLGATHER || s->kind == COLL_NEIGHBOR_ALLGATHERV)
        return (struct goal_part){goal_mem(GOAL_SEND_BUF, 0), s->bytes};
    return coll_send_block(s, v, i);
}

void coll_neighbor_direct(struct goal_build *b, const struct coll_shape *s, const struct coll_given *v)
{
    int *tag = edge_tags(b, v);
    if (!tag) return;
    for (int i = 0; i < v->in; i++) {
        struct goal_part to = coll_recv_block(s, v, i);
        if (v->sources[i] >= 0 && to.len) goal_recv(b, v->sources[i], coll_tag(tag[i]), to.at, to.len);
    }
    for (int i = 0; i < v->out; i++) {
        struct goal_part from = outgoing(s, v, i);
        if (v->destinations[i] >= 0 && from.len)
            goal_send(b, v->destinations[i], coll_tag(tag[v->in + i]), from.at, from.len);
    }
    free(tag);
}
