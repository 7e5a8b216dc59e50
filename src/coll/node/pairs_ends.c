/*
 * pairs_ends.c - what a rank sends to and receives from each other one in a large nonblocking collective: the
 * blocks of each kind, and their copies where a type has gaps; see pairs.h.
 */
#include "coll/node/blocks.h"
#include "coll/node/pairs.h"

#include <stdlib.h>

static struct node_end end(struct node_block b)
{
    return (struct node_end){.bytes = node_bytes(&b), .buf = b.buf, .count = b.count, .type = b.type};
}

void node_ends_fill(struct node_ends *e, const struct coll_call *a)
{
    for (int r = 0; r < e->size; r++) {
        if (node_moves(a, e->rank, r)) {
            e->send[r] = end(node_out(a, e->rank, r));
            e->send[r].own = NODE_SENDS_EACH >> a->kind & 1 && a->sendbuf == MPI_IN_PLACE;
        }
        if (node_moves(a, r, e->rank)) e->recv[r] = end(node_in(a, r));
    }
}

/* ---- copies ---- */

static bool same_block(const struct node_end *a, const struct node_end *b)
{
    return a->buf == b->buf && a->count == b->count && a->type == b->type;
}

static void open_send(struct node_end *e)
{
    if (e->type->contig && !e->own) {
        e->at = (char *)(uintptr_t)e->buf + e->type->true_lb;
        return;
    }
    e->at = malloc(e->bytes);
    e->copy = e->at;
    if (!e->at) return;
    struct type_cursor c;
    type_cursor_init(&c, e->type, e->count, e->buf);
    type_pack(&c, e->at, e->bytes);
}

static void open_recv(struct node_end *e)
{
    e->copy = !e->type->contig;
    e->at = e->copy ? malloc(e->bytes) : (char *)(uintptr_t)e->buf + e->type->true_lb;
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
    for (int r = 0; r < e->size; r++) {
        struct node_end *d = &e->recv[r];
        struct type_cursor c;
        if (!d->copy) continue;
        type_cursor_init(&c, d->type, d->count, d->buf);
        type_unpack(&c, d->at, d->bytes);
    }
}

void node_ends_free(struct node_ends *e)
{
    for (int r = 0; r < e->size; r++) {
        if (e->send[r].copy) free(e->send[r].at);
        if (e->recv[r].copy) free(e->recv[r].at);
    }
}
