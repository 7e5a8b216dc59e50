/* wide_ends.c - the user's buffers of the operations of wide.h, and what a rank sends to itself. */
#include "base/err.h"
#include "coll/node/blocks.h"
#include "coll/node/wide_in.h"

#include <stdlib.h>

/* Where the blocks of an allgatherv or a reduce_scatter are: of the first one in the user's buffer or, if they have gaps, one
 * behind the other in a copy. */
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

/* packed: the copy begins with the data. */
static struct node_flat flat(struct node_block b, bool packed)
{
    struct node_flat f = {.bytes = node_bytes(&b)};
    if (b.type->contig) {
        f.at = b.buf + b.type->true_lb;
        return f;
    }
    f.at = f.copy = malloc(f.bytes + 1);
    if (f.at && packed) node_pack(f.at, b);
    return f;
}

void node_pass_open(struct node_pass *p)
{
    int me = p->n->rank, ranks = p->n->size;
    struct node_block in = node_out_all(p->a, me, ranks), out = node_in_all(p->a, me, ranks);
    if (coll_has_blocks(p->a->kind)) open_blocks(p);
    if (in.type) p->in = flat(in, true);
    if (out.type && p->a->kind != COLL_ALLGATHERV) p->out = flat(out, false);
    if ((in.type && !p->in.at) || (out.type && !p->out.at))
        p->lacks = err_set(TERN_ERR_NOMEM, "no memory to pack the buffer of a collective");
    if (!p->lacks) node_move_own(p->a, me);
}

/* What has come for a buffer with gaps. Reductions have none. */
static void unpack(const struct node_pass *p)
{
    const struct coll_call *a = p->a;
    int me = p->n->rank;
    for (int r = 0; r < p->n->size; r++)
        if (r != me && node_moves(a, r, me))
            node_unpack(node_in(a, r), p->out.copy + (NODE_GETS_EACH >> a->kind & 1 ? node_pass_start(p, r) : 0));
}

void node_pass_close(struct node_pass *p, bool good)
{
    if (p->out.copy && good && !p->lacks) unpack(p);
    free(p->out.copy);
    free(p->in.copy);
}
