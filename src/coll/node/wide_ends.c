/* wide_ends.c - the user's buffers of the operations of wide.h, and what a rank sends to itself. */
#include "base/err.h"
#include "coll/node/wide_in.h"
#include "type/cursor.h"

#include <stdlib.h>

/* packed: the copy begins with the data. */
static struct node_flat flat(const void *buf, int64_t count, const struct type *t, bool packed)
{
    struct node_flat f = {.bytes = (size_t)(count * t->size)};
    if (t->contig) {
        f.at = (char *)(uintptr_t)buf + t->true_lb;
        return f;
    }
    f.at = f.copy = malloc(f.bytes + 1);
    if (f.at && packed) {
        struct type_cursor c;
        type_cursor_init(&c, t, count, buf);
        type_pack(&c, f.at, f.bytes);
    }
    return f;
}

static void flat_end(struct node_flat *f, void *buf, int64_t count, const struct type *t, bool unpacked)
{
    if (f->copy && unpacked) {
        struct type_cursor c;
        type_cursor_init(&c, t, count, buf);
        type_unpack(&c, f->copy, f->bytes);
    }
    free(f->copy);
}

struct side {
    const void *buf;
    int64_t count;
    const struct type *type; /* NULL: this rank gives, or gets, nothing */
};

static const void *block_at(const void *buf, int rank, int64_t count, const struct type *t)
{
    return (const char *)buf + rank * count * t->extent;
}

/* Where they are not all of one length. */
static void *block_v_at(const struct coll_call *a, int rank)
{
    return (char *)a->recvbuf + a->rdispls[rank] * a->rtype->extent;
}

static struct side gives(const struct node *n, const struct coll_call *a)
{
    struct side nothing = {0}, sent = {a->sendbuf, a->scount, a->stype}, got = {a->recvbuf, a->rcount, a->rtype};
    bool root = n->rank == a->root, in_place = a->sendbuf == MPI_IN_PLACE;
    switch (a->kind) {
    case COLL_BCAST:
        return root ? got : nothing;
    case COLL_SCATTER:
        sent.count *= n->size;
        return root ? sent : nothing;
    case COLL_GATHER:
        return root ? nothing : sent;
    case COLL_ALLGATHER:
        if (in_place) got.buf = block_at(got.buf, n->rank, got.count, got.type);
        return in_place ? got : sent;
    case COLL_ALLGATHERV:
        got.buf = block_v_at(a, n->rank);
        got.count = a->rcounts[n->rank];
        return in_place ? got : sent;
    case COLL_ALLTOALL:
        sent.count *= n->size;
        got.count *= n->size;
        return in_place ? got : sent;
    case COLL_REDUCE_SCATTER_BLOCK:
        got.count *= n->size;
        break;
    case COLL_REDUCE_SCATTER:
        got.count = 0;
        for (int r = 0; r < n->size; r++) got.count += a->rcounts[r];
        break;
    default:
        break;
    }
    if (!in_place) got.buf = a->sendbuf;
    return got;
}

static struct side gets(const struct node *n, const struct coll_call *a)
{
    struct side nothing = {0}, got = {a->recvbuf, a->rcount, a->rtype};
    bool root = n->rank == a->root;
    switch (a->kind) {
    case COLL_BCAST:
    case COLL_SCATTER:
        return root ? nothing : got;
    case COLL_GATHER:
    case COLL_REDUCE:
        if (!root) return nothing;
        break;
    default:
        break;
    }
    if (a->kind == COLL_GATHER || a->kind == COLL_ALLGATHER || a->kind == COLL_ALLTOALL) got.count *= n->size;
    if (a->kind == COLL_REDUCE_SCATTER) got.count = a->rcounts[n->rank];
    return got;
}

/* What a rank sends to itself does not go through the slots. */
static void scatter_own(const struct node_pass *p)
{
    const struct coll_call *a = p->a;
    const void *from = block_at(a->sendbuf, p->n->rank, a->scount, a->stype);
    if (a->recvbuf != MPI_IN_PLACE) type_copy_across(a->recvbuf, a->rcount, a->rtype, from, a->scount, a->stype);
}

static void gather_own(const struct node_pass *p)
{
    const struct coll_call *a = p->a;
    int me = p->n->rank;
    char *to = (char *)(uintptr_t)block_at(a->recvbuf, me, a->rcount, a->rtype);
    if (a->sendbuf != MPI_IN_PLACE) {
        const void *from = a->kind == COLL_ALLTOALL ? block_at(a->sendbuf, me, a->scount, a->stype) : a->sendbuf;
        type_copy_across(to, a->rcount, a->rtype, from, a->scount, a->stype);
    }
    if (!p->out.copy) return;
    struct type_cursor c; /* it will be unpacked with the others */
    type_cursor_init(&c, a->rtype, a->rcount, to);
    type_pack(&c, p->out.copy + (size_t)me * p->block, p->block);
}

static void gather_own_v(const struct node_pass *p)
{
    const struct coll_call *a = p->a;
    int me = p->n->rank;
    if (a->sendbuf != MPI_IN_PLACE)
        type_copy_across(block_v_at(a, me), a->rcounts[me], a->rtype, a->sendbuf, a->scount, a->stype);
}

static void move_own_block(const struct node_pass *p)
{
    bool root = p->n->rank == p->a->root;
    enum coll_kind k = p->a->kind;
    if (k == COLL_SCATTER && root) scatter_own(p);
    if (k == COLL_ALLGATHERV) gather_own_v(p);
    if (k == COLL_ALLGATHER || k == COLL_ALLTOALL || (k == COLL_GATHER && root)) gather_own(p);
}

/* The blocks of an allgatherv in the user's buffer or, if they have gaps, one behind the other in a copy. */
static void open_blocks(struct node_pass *p)
{
    const struct coll_call *a = p->a;
    const struct type *t = a->rtype;
    bool gathers = a->kind == COLL_ALLGATHERV;
    size_t at = 0;
    p->counts = a->rcounts;
    for (int r = 0; r < p->n->size; r++) {
        p->start[r] = gathers && t->contig ? (size_t)(a->rdispls[r] * t->extent) : at;
        at += (size_t)(a->rcounts[r] * t->size);
    }
    if (gathers && t->contig)
        p->out.at = (char *)a->recvbuf + t->true_lb;
    else if (gathers)
        p->out.at = p->out.copy = malloc(at + 1);
}

static void close_blocks(struct node_pass *p, bool good)
{
    const struct coll_call *a = p->a;
    for (int r = 0; r < p->n->size && good && p->out.copy; r++) {
        struct type_cursor c;
        if (r == p->n->rank) continue;
        type_cursor_init(&c, a->rtype, a->rcounts[r], block_v_at(a, r));
        type_unpack(&c, p->out.copy + p->start[r], (size_t)(a->rcounts[r] * a->rtype->size));
    }
    free(p->out.copy);
}

void node_pass_open(struct node_pass *p)
{
    struct side in = gives(p->n, p->a), out = gets(p->n, p->a);
    if (coll_has_blocks(p->a->kind)) open_blocks(p);
    if (in.type) p->in = flat(in.buf, in.count, in.type, true);
    if (out.type && p->a->kind != COLL_ALLGATHERV) p->out = flat(out.buf, out.count, out.type, false);
    if ((in.type && !p->in.at) || (out.type && !p->out.at))
        p->lacks = err_set(TERN_ERR_NOMEM, "no memory to pack the buffer of a collective");
    if (!p->lacks) move_own_block(p);
}

void node_pass_close(struct node_pass *p, bool good)
{
    struct side out = gets(p->n, p->a);
    good = good && !p->lacks;
    if (p->a->kind == COLL_ALLGATHERV)
        close_blocks(p, good);
    else if (p->out.copy)
        flat_end(&p->out, (void *)(uintptr_t)out.buf, out.count, out.type, good);
    free(p->in.copy);
}
