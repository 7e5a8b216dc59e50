/*
 * pairs_ends.c - what a rank sends to and receives from each other one in a large nonblocking collective: the
 * blocks of each kind, and their copies where a type has gaps; see pairs.h.
 */
#include "coll/node/pairs.h"
#include "type/cursor.h"

#include <stdlib.h>

/* ---- blocks of each kind ---- */

static struct node_end end(const void *buf, int64_t count, struct type *t)
{
    return (struct node_end){.bytes = (uint64_t)(count * t->size), .buf = buf, .count = count, .type = t};
}

/* Block `i` of blocks of one length. */
static struct node_end block(const void *buf, int i, int64_t count, struct type *t)
{
    return end((const char *)buf + i * count * t->extent, count, t);
}

static void fill_bcast(struct node_ends *e, const struct coll_call *a)
{
    struct node_end all = end(a->recvbuf, a->rcount, a->rtype);
    if (e->rank != a->root)
        e->recv[a->root] = all;
    else
        for (int r = 0; r < e->size; r++)
            if (r != e->rank) e->send[r] = all;
}

static void fill_scatter(struct node_ends *e, const struct coll_call *a)
{
    bool root = e->rank == a->root;
    for (int r = 0; root && r < e->size; r++)
        if (r != e->rank || a->recvbuf != MPI_IN_PLACE) e->send[r] = block(a->sendbuf, r, a->scount, a->stype);
    if (a->recvbuf != MPI_IN_PLACE) e->recv[a->root] = end(a->recvbuf, a->rcount, a->rtype);
}

static void fill_gather(struct node_ends *e, const struct coll_call *a)
{
    bool root = e->rank == a->root;
    for (int r = 0; root && r < e->size; r++)
        if (r != e->rank || a->sendbuf != MPI_IN_PLACE) e->recv[r] = block(a->recvbuf, r, a->rcount, a->rtype);
    if (a->sendbuf != MPI_IN_PLACE) e->send[a->root] = end(a->sendbuf, a->scount, a->stype);
}

/* Block r of the receive buffer, by arrays or not. */
static struct node_end gathered(const struct coll_call *a, int r)
{
    if (!a->rcounts) return block(a->recvbuf, r, a->rcount, a->rtype);
    return end((char *)a->recvbuf + a->rdispls[r] * a->rtype->extent, a->rcounts[r], a->rtype);
}

static void fill_allgather(struct node_ends *e, const struct coll_call *a)
{
    bool in_place = a->sendbuf == MPI_IN_PLACE;
    struct node_end mine = in_place ? gathered(a, e->rank) : end(a->sendbuf, a->scount, a->stype);
    for (int r = 0; r < e->size; r++) {
        if (r == e->rank && in_place) continue;
        e->send[r] = mine;
        e->recv[r] = gathered(a, r);
    }
}

static void fill_alltoall(struct node_ends *e, const struct coll_call *a)
{
    bool in_place = a->sendbuf == MPI_IN_PLACE;
    for (int r = 0; r < e->size; r++) {
        if (r == e->rank && in_place) continue;
        e->recv[r] = gathered(a, r);
        e->send[r] = in_place ? e->recv[r] : block(a->sendbuf, r, a->scount, a->stype);
        e->send[r].own = in_place;
    }
}

void node_ends_fill(struct node_ends *e, const struct coll_call *a)
{
    static void (*const fill[COLL_KINDS])(struct node_ends *, const struct coll_call *) = {
        [COLL_BCAST] = fill_bcast,         [COLL_SCATTER] = fill_scatter,      [COLL_GATHER] = fill_gather,
        [COLL_ALLGATHER] = fill_allgather, [COLL_ALLGATHERV] = fill_allgather, [COLL_ALLTOALL] = fill_alltoall,
    };
    fill[a->kind](e, a);
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
