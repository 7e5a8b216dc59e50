/*
 * blocks.h - which block of whom goes where in a collective inside a node: what this rank sends to rank r, what it
 * receives from r, and what it has for itself, in the buffers of the call.
 *
 *                             from    to     sendbuf                recvbuf
 *     bcast                   root    all    -                      one block, the same at all ranks
 *     scatter, -v             root    all    one for each receiver  one block
 *     gather, -v              all     root   one block              one of each sender
 *     allgather, -v           all     all    one block              one of each sender
 *     alltoall, -v, -w        all     all    one for each receiver  one of each sender
 *
 * In place: what a rank has for itself is where it belongs (at the root, if there is one). An allgather then sends the
 * rank's block of recvbuf, an alltoall those that it receives into. A bcast's root has nothing for itself.
 *
 * In a reduction all ranks give operands of one length; which part of the result a rank gets: node_result.
 *
 * Source: MPI-5.0 6.4 to 6.11.
 */
#ifndef TERN_COLL_NODE_BLOCKS_H
#define TERN_COLL_NODE_BLOCKS_H

#include "coll/coll.h"
#include "type/cursor.h"

/* Elements in a buffer of the user's; `type` is NULL where there is nothing at all. */
struct node_block {
    char *buf;
    int64_t count;
    struct type *type;
};

static inline size_t node_bytes(const struct node_block *b) { return (size_t)(b->count * b->type->size); }

/* ---- who has something for whom ---- */

/* Sets of kinds, a bit each. */
enum {
    NODE_FROM_ROOT = 1u << COLL_BCAST | 1u << COLL_SCATTER | 1u << COLL_SCATTERV,
    NODE_TO_ROOT = 1u << COLL_GATHER | 1u << COLL_GATHERV,
    NODE_SENDS_EACH = 1u << COLL_SCATTER | 1u << COLL_SCATTERV | 1u << COLL_ALLTOALL | 1u << COLL_ALLTOALLV | 1u << COLL_ALLTOALLW,
    NODE_GETS_EACH = 1u << COLL_GATHER | 1u << COLL_GATHERV | 1u << COLL_ALLGATHER | 1u << COLL_ALLGATHERV | 1u << COLL_ALLTOALL |
                     1u << COLL_ALLTOALLV | 1u << COLL_ALLTOALLW
};

/* At this rank. */
static inline bool node_in_place(const struct coll_call *a)
{
    enum { SCATTERS = NODE_FROM_ROOT & NODE_SENDS_EACH };
    return (SCATTERS >> a->kind & 1 ? a->recvbuf : a->sendbuf) == MPI_IN_PLACE;
}

/* Has rank `from` a block for rank `to`? One of the two is this rank. */
static inline bool node_moves(const struct coll_call *a, int from, int to)
{
    if (NODE_FROM_ROOT >> a->kind & 1 && from != a->root) return false;
    if (NODE_TO_ROOT >> a->kind & 1 && to != a->root) return false;
    return from != to || ((NODE_SENDS_EACH | NODE_GETS_EACH) >> a->kind & 1 && !node_in_place(a));
}

/* ---- which ---- */

static inline struct node_block node_block(const void *buf, int64_t count, struct type *t)
{
    return (struct node_block){(char *)(uintptr_t)buf, count, t};
}

/* The one block of a buffer, or the first one of several. */
static inline struct node_block node_sent_first(const struct coll_call *a) { return node_block(a->sendbuf, a->scount, a->stype); }
static inline struct node_block node_got_first(const struct coll_call *a) { return node_block(a->recvbuf, a->rcount, a->rtype); }

/* Block r behind the first one, all of one length. */
static inline struct node_block node_nth(struct node_block first, int r)
{
    first.buf += r * first.count * first.type->extent;
    return first;
}

/* Block r of a buffer that has one for each rank. */
static inline struct node_block node_sent(const struct coll_call *a, int r)
{
    if (!a->scounts) return node_nth(node_sent_first(a), r);
    struct type *t = a->stypes ? a->stypes[r] : a->stype;
    return node_block((const char *)a->sendbuf + a->sdispls[r] * (a->stypes ? 1 : t->extent), a->scounts[r], t);
}

static inline struct node_block node_got(const struct coll_call *a, int r)
{
    if (!a->rcounts) return node_nth(node_got_first(a), r);
    struct type *t = a->rtypes ? a->rtypes[r] : a->rtype;
    return node_block((char *)a->recvbuf + a->rdispls[r] * (a->rtypes ? 1 : t->extent), a->rcounts[r], t);
}

/* What rank `me`, this one, sends to rank r, and receives from it, where node_moves says so. */
static inline struct node_block node_out(const struct coll_call *a, int me, int r)
{
    bool gets_each = NODE_GETS_EACH >> a->kind & 1, sends_each = NODE_SENDS_EACH >> a->kind & 1;
    if (a->kind == COLL_BCAST) return node_got_first(a);
    if (gets_each && a->sendbuf == MPI_IN_PLACE) return node_got(a, sends_each ? r : me);
    return sends_each ? node_sent(a, r) : node_sent_first(a);
}

static inline struct node_block node_in(const struct coll_call *a, int r)
{
    return NODE_GETS_EACH >> a->kind & 1 ? node_got(a, r) : node_got_first(a);
}

/* ---- reductions ---- */

static inline int64_t node_sum(const int64_t *counts, int n)
{
    int64_t sum = 0;
    for (int r = 0; r < n; r++) sum += counts[r];
    return sum;
}

/* What a rank gives: elements for all, or those for each rank one behind the other. */
static inline struct node_block node_operand(const struct coll_call *a, int ranks)
{
    int64_t count = a->rcount;
    if (a->kind == COLL_REDUCE_SCATTER_BLOCK) count *= ranks;
    if (a->kind == COLL_REDUCE_SCATTER) count = node_sum(a->rcounts, ranks);
    return node_block(a->sendbuf == MPI_IN_PLACE ? a->recvbuf : a->sendbuf, count, a->rtype);
}

/* What rank `me`, this one, gets, and before which the result has so many elements more. */
static inline struct node_block node_result(const struct coll_call *a, int me, int64_t *before)
{
    bool arrays = a->kind == COLL_REDUCE_SCATTER;
    int64_t count = arrays ? a->rcounts[me] : a->rcount;
    *before = arrays ? node_sum(a->rcounts, me) : a->kind == COLL_REDUCE_SCATTER_BLOCK ? me * count : 0;
    return node_block(a->recvbuf, count, a->rtype);
}

/* ---- packing ---- */

/* Lengths that most small calls have need no call. */
static inline void node_copy(char *to, const char *from, size_t n)
{
    if (n == 8)
        memcpy(to, from, 8);
    else if (n == 4)
        memcpy(to, from, 4);
    else if (n)
        memcpy(to, from, n);
}

static inline void node_pack(char *to, struct node_block b)
{
    size_t n = node_bytes(&b);
    if (likely(b.type->contig)) {
        node_copy(to, b.buf + b.type->true_lb, n);
        return;
    }
    struct type_cursor c;
    type_cursor_init(&c, b.type, b.count, b.buf);
    type_pack(&c, to, n);
}

/* The first n packed bytes, which are no more than the block has. */
static inline void node_unpack_some(struct node_block b, const char *from, size_t n)
{
    if (likely(b.type->contig)) {
        node_copy(b.buf + b.type->true_lb, from, n);
        return;
    }
    struct type_cursor c;
    type_cursor_init(&c, b.type, b.count, b.buf);
    type_unpack(&c, from, n);
}

static inline void node_unpack(struct node_block b, const char *from) { node_unpack_some(b, from, node_bytes(&b)); }

/* From one buffer of the user's to another one, of equal bytes. */
static inline void node_move(struct node_block to, struct node_block from)
{
    if (likely(to.type->contig))
        node_pack(to.buf + to.type->true_lb, from);
    else
        type_copy_across(to.buf, to.count, to.type, from.buf, from.count, from.type);
}

/* What rank `me`, this one, has for itself. */
static inline void node_move_own(const struct coll_call *a, int me)
{
    if (node_moves(a, me, me)) node_move(node_in(a, me), node_out(a, me, me));
}

#endif
