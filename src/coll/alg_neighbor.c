/*
 * alg_neighbor.c - the neighbourhood collectives: blocks go along the edges of the
 * communicator's topology (MPI-5.0 8.6).
 *
 * Two ranks may be joined by several edges. In graphs, the messages between them pair up
 * in the order in which both list them: the tag counts the edges to the same peer. In
 * grids what goes up a dimension comes from below: the tag is the direction, so that a
 * dimension of one or two processes, where both neighbours are the same, keeps them apart.
 */
#include "coll/alg.h"

/* How many of the first n neighbours are the n-th. */
static int64_t earlier(const int *neighbor, int n)
{
    int64_t same = 0;
    for (int i = 0; i < n; i++) same += neighbor[i] == neighbor[n];
    return same;
}

static int tag_out(const struct coll_given *v, int i) { return coll_tag(v->grid ? i : earlier(v->destinations, i)); }
static int tag_in(const struct coll_given *v, int i) { return coll_tag(v->grid ? i ^ 1 : earlier(v->sources, i)); }

/* Everybody gets the same block from this rank in allgather. */
static struct goal_part outgoing(const struct coll_shape *s, const struct coll_given *v, int i)
{
    if (s->kind == COLL_NEIGHBOR_ALLGATHER || s->kind == COLL_NEIGHBOR_ALLGATHERV)
        return (struct goal_part){goal_mem(GOAL_SEND_BUF, 0), s->bytes};
    return coll_send_block(s, v, i);
}

void coll_neighbor_direct(struct goal_build *b, const struct coll_shape *s, const struct coll_given *v)
{
    for (int i = 0; i < v->in; i++) {
        struct goal_part to = coll_recv_block(s, v, i);
        if (v->sources[i] >= 0 && to.len) goal_recv(b, v->sources[i], tag_in(v, i), to.at, to.len);
    }
    for (int i = 0; i < v->out; i++) {
        struct goal_part from = outgoing(s, v, i);
        if (v->destinations[i] >= 0 && from.len) goal_send(b, v->destinations[i], tag_out(v, i), from.at, from.len);
    }
}
