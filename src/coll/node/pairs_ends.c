/*
 * pairs_ends.c - what a rank sends to and receives from each other one in a large collective, and copies where a type has
 * gaps; see pairs.h.
 */
#include "coll/node/pairs.h"
#include "coll/node/v.h"

#include <stdlib.h>

static void fill(struct node_end *e, struct node_block b, size_t room, bool own)
{
    size_t bytes = node_bytes(&b);
    if (bytes > room) *e = (struct node_end){.bytes = bytes, .block = b, .own = own};
}

void node_ends_fill(const struct node *n, struct node_ends *e, const struct coll_call *a)
{
    bool v = node_v_is(a->kind), own = NODE_SENDS_EACH >> a->kind & 1 && a->sendbuf == MPI_IN_PLACE;
    size_t room = v ? node_v_room(n, a) : 0;
    for (int r = 0; r < n->size; r++) {
        if (node_moves(a, n->rank, r)) fill(&e->send[r], node_out(a, n->rank, r), room, own);
        if (node_moves(a, r, n->rank)) fill(&e->recv[r], node_in(a, r), room, false);
    }
}

/* ---- copies ---- */

static bool same_block(const struct node_end *a, const struct node_end *b)
{
    return a->block.buf == b->block.buf && a->block.count == b->block.count && a->block.type == b->block.type;
}

static void open_send(struct node_end *e)
{
    e->copy = !e->block.type->contig || e->own;
    e->at = e->copy ? malloc(e->bytes) : e->block.buf + e->block.type->true_lb;
    e->copy &= e->at != NULL;
    if (e->copy) node_pack(e->at, e->block);
}

static void open_recv(struct node_end *e)
{
    e->copy = !e->block.type->contig;
    e->at = e->copy ? malloc(e->bytes) : e->block.buf + e->block.type->true_lb;
    e->copy &= e->at != NULL;
}

/* What goes to several ranks is packed once. */
static void open_sends(struct node_ends *e)
{
    const struct node_end *last = NULL;
    for (int r = 0; r < e->size; r++) {
        struct node_end *s = &e->send[r];
        if (!s->bytes || r == e->rank) continue;
        if (last && same_block(last, s))
            s->at = last->at;
        else
            open_send(s);
        last = s;
    }
}

void node_ends_open(struct node_ends *e)
{
    open_sends(e);
    for (int r = 0; r < e->size; r++)
        if (e->recv[r].bytes && r != e->rank) open_recv(&e->recv[r]);
}

void node_ends_unpack(struct node_ends *e)
{
    for (int r = 0; r < e->size; r++)
        if (e->recv[r].copy) node_unpack_some(e->recv[r].block, e->recv[r].at, e->recv[r].bytes);
}

void node_ends_free(struct node_ends *e)
{
    for (int r = 0; r < e->size; r++) {
        if (e->send[r].copy) free(e->send[r].at);
        if (e->recv[r].copy) free(e->recv[r].at);
    }
}
