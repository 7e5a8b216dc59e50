/* trial_sides.c - see trial_sides.h. */
#include "trial_sides.h"

#include <stdlib.h>
#include <string.h>

static void *memory(size_t bytes)
{
    void *p = calloc(bytes + 1, 1);
    if (!p) abort();
    return p;
}

/* ---- contents ------------------------------------------------------------- */

/* Element i of what rank r contributes. */
static void value(const struct trial *t, int r, int64_t i, char *out)
{
    uint64_t state = t->seed ^ ((uint64_t)r << 40) ^ (uint64_t)i;
    for (int64_t k = 0; k < t->esize; k += 8) {
        uint64_t x = sim_random(&state);
        memcpy(out + k, &x, (size_t)(t->esize - k < 8 ? t->esize - k : 8));
    }
}

/* Elements in the block from rank `from` to rank `to` of the v-collectives: some are empty. */
static int64_t length_v(const struct trial *t, int from, int to)
{
    uint64_t state = t->seed + (uint64_t)from * 64 + (uint64_t)to;
    uint64_t x = sim_random(&state);
    return x % 4 == 0 ? 0 : (int64_t)(x >> 8) % (t->elems + 1);
}

/* x[0] op ... op x[r], element i: worked out once a trial for all r. */
static const char *fold(struct bench *b, int r, int64_t i, int64_t elems)
{
    const struct trial *t = b->t;
    int64_t row = elems * t->esize;
    if (!b->fold) {
        b->fold = memory((size_t)(t->P * row));
        for (int64_t k = 0; k < elems; k++)
            for (int q = 0; q < t->P; q++) {
                char *out = b->fold + q * row + k * t->esize;
                value(t, q, k, out);
                if (q) sim_op_apply(op_kind(t), out - row, out, out);
            }
    }
    return b->fold + r * row + i * t->esize;
}

/* ---- buffers -------------------------------------------------------------- */

static void side_open(struct bench *b, struct side *s, int64_t elems, int64_t low)
{
    s->elems = elems;
    s->low = low;
    s->mem = memory((size_t)(elems * b->type.extent));
    s->packed = memory((size_t)(elems * b->type.size));
    memset(s->mem, 0xa5, (size_t)(elems * b->type.extent));
    memset(s->packed, 0xa5, (size_t)(elems * b->type.size));
}

/* Input: the element is in memory and, unless something replaces it, shall be there at the end. */
static void give(const struct bench *b, struct side *s, int64_t i, int r, int64_t index)
{
    value(b->t, r, index, elem(b, s, i));
    value(b->t, r, index, want(b, s, i));
}

static void expect(const struct bench *b, struct side *s, int64_t i, int r, int64_t index)
{
    value(b->t, r, index, want(b, s, i));
}

/* The combination of ranks 0 to `last`, element `index` of `elems`. */
static void expect_fold(struct bench *b, struct side *s, int64_t i, int last, int64_t index, int64_t elems)
{
    memcpy(want(b, s, i), fold(b, last, index, elems), (size_t)b->t->esize);
}

/* Index of the i-th element of the block from one rank to another: what `value` is asked for. */
static int64_t index_of(int to, int64_t i) { return (int64_t)to * 1000 + i; }

/* A table of lengths and places with a hole between blocks, the last block first; returns elements in all. */
static int64_t lay_out(const struct bench *b, const struct trial *t, int me, bool sends, int64_t low, int64_t **len_p,
                       int64_t **off_p)
{
    int64_t *len = memory((size_t)t->P * sizeof *len), *off = memory((size_t)t->P * sizeof *off), at = 0;
    for (int i = t->P - 1; i >= 0; i--) {
        int from = sends ? me : i, to = sends ? i : me;
        if (b->kind == COLL_GATHERV || b->kind == COLL_ALLGATHERV) to = 0; /* one length a sender */
        if (b->kind == COLL_SCATTERV) from = 0;
        if (b->t->in_place && (b->kind == COLL_ALLTOALLV || b->kind == COLL_ALLTOALLW) && from > to) {
            int x = from; /* in place, both directions of a pair have the same length */
            from = to;
            to = x;
        }
        len[i] = length_v(t, from, to) * t->esize;
        off[i] = (at - low) * t->esize;
        at += len[i] / t->esize + 1;
    }
    *len_p = len;
    *off_p = off;
    return at;
}

/* ---- what each operation is given and shall give -------------------------- */

static void set_rooted(struct bench *b, int r)
{
    const struct trial *t = b->t;
    struct rank_state *k = &b->rank[r];
    bool root = r == t->root, in_place = t->in_place && root;
    int64_t n = t->elems;
    if (b->kind == COLL_BCAST) {
        side_open(b, &k->recv, n, 0);
        for (int64_t i = 0; i < n; i++) {
            if (root) give(b, &k->recv, i, r, i);
            expect(b, &k->recv, i, t->root, i);
        }
        return;
    }
    if (b->kind == COLL_REDUCE) {
        side_open(b, &k->recv, root ? n : 0, 0);
        side_open(b, &k->send, n, 0);
        for (int64_t i = 0; i < n; i++) give(b, in_place ? &k->recv : &k->send, i, r, i);
        for (int64_t i = 0; i < n && root; i++) expect_fold(b, &k->recv, i, t->P - 1, i, n);
        return;
    }
    struct side *mine = b->kind == COLL_GATHER ? &k->send : &k->recv,
                *all = b->kind == COLL_GATHER ? &k->recv : &k->send;
    side_open(b, mine, n, 0);
    side_open(b, all, root ? n * t->P : 0, 0);
    for (int64_t i = 0; i < n; i++) {
        if (b->kind == COLL_GATHER) {
            if (in_place)
                give(b, all, r * n + i, r, i);
            else
                give(b, mine, i, r, i);
        } else if (!in_place) {
            expect(b, mine, i, t->root, index_of(r, i));
        }
    }
    for (int64_t i = 0; i < n * t->P && root; i++) {
        if (b->kind == COLL_GATHER)
            expect(b, all, i, (int)(i / n), i % n);
        else
            give(b, all, i, r, index_of((int)(i / n), i % n));
    }
}

static void set_rooted_v(struct bench *b, int r)
{
    const struct trial *t = b->t;
    struct rank_state *k = &b->rank[r];
    bool root = r == t->root, in_place = t->in_place && root, gather = b->kind == COLL_GATHERV;
    int64_t n = gather ? length_v(t, r, 0) : length_v(t, 0, r), low = root ? 3 : 0;
    struct side *mine = gather ? &k->send : &k->recv, *all = gather ? &k->recv : &k->send;
    side_open(b, mine, n, 0);
    for (int64_t i = 0; i < n; i++) {
        if (gather)
            give(b, mine, i, r, i);
        else if (!in_place)
            expect(b, mine, i, t->root, index_of(r, i));
    }
    if (!root) {
        side_open(b, all, 0, 0);
        return;
    }
    int64_t **len = gather ? &k->recv_len : &k->send_len, **off = gather ? &k->recv_off : &k->send_off;
    int64_t total = lay_out(b, t, r, !gather, low, len, off);
    side_open(b, all, total, low);
    for (int p = 0; p < t->P; p++)
        for (int64_t i = 0; i < (*len)[p] / t->esize; i++) {
            int64_t at = (*off)[p] / t->esize + low + i;
            if (!gather)
                give(b, all, at, r, index_of(p, i));
            else if (in_place && p == r)
                give(b, all, at, r, i);
            else
                expect(b, all, at, p, i);
        }
}

/* Allgather and alltoall, regular and v: the receive buffer has a block from everyone. */
static void set_all(struct bench *b, int r)
{
    const struct trial *t = b->t;
    struct rank_state *k = &b->rank[r];
    bool gather = b->kind == COLL_ALLGATHER || b->kind == COLL_ALLGATHERV, v = is_v(b->kind), in_place = t->in_place;
    int64_t n = t->elems, low = v && b->kind != COLL_ALLTOALLW ? 2 : 0;
    if (v)
        side_open(b, &k->recv, lay_out(b, t, r, false, low, &k->recv_len, &k->recv_off), low);
    else
        side_open(b, &k->recv, n * t->P, 0);
    if (gather)
        side_open(b, &k->send, v ? length_v(t, r, 0) : n, 0);
    else if (v)
        side_open(b, &k->send, lay_out(b, t, r, true, low, &k->send_len, &k->send_off), low);
    else
        side_open(b, &k->send, n * t->P, 0);
    for (int p = 0; p < t->P; p++) {
        int64_t len = v ? k->recv_len[p] / t->esize : n, at = v ? k->recv_off[p] / t->esize + low : p * n;
        for (int64_t i = 0; i < len; i++) {
            if (gather && in_place && p == r)
                give(b, &k->recv, at + i, r, i);
            else if (!gather && in_place)
                give(b, &k->recv, at + i, r, index_of(p, i));
            expect(b, &k->recv, at + i, p, gather ? i : index_of(r, i));
        }
        if (gather) continue;
        len = v ? k->send_len[p] / t->esize : n, at = v ? k->send_off[p] / t->esize + low : p * n;
        for (int64_t i = 0; i < len; i++) give(b, &k->send, at + i, r, index_of(p, i));
    }
    for (int64_t i = 0; gather && i < k->send.elems; i++) give(b, &k->send, i, r, i);
}

static void set_reduction(struct bench *b, int r)
{
    const struct trial *t = b->t;
    struct rank_state *k = &b->rank[r];
    int64_t n = t->elems, mine = n, first = 0, total = n;
    bool blocks = b->kind == COLL_REDUCE_SCATTER || b->kind == COLL_REDUCE_SCATTER_BLOCK;
    if (blocks) {
        k->send_len = memory((size_t)t->P * sizeof *k->send_len);
        k->send_off = memory((size_t)t->P * sizeof *k->send_off);
        total = 0;
        for (int p = 0; p < t->P; p++) {
            int64_t len = b->kind == COLL_REDUCE_SCATTER ? length_v(t, 0, p) : n;
            k->send_len[p] = len * t->esize;
            k->send_off[p] = total * t->esize;
            if (p == r) mine = len, first = total;
            total += len;
        }
    }
    side_open(b, &k->send, total, 0);
    side_open(b, &k->recv, t->in_place ? total : mine, 0);
    for (int64_t i = 0; i < total; i++) give(b, t->in_place ? &k->recv : &k->send, i, r, i);
    for (int64_t i = 0; i < mine; i++) {
        if (b->kind == COLL_SCAN)
            expect_fold(b, &k->recv, i, r, i, total);
        else if (b->kind != COLL_EXSCAN)
            expect_fold(b, &k->recv, i, t->P - 1, first + i, total);
        else if (r > 0)
            expect_fold(b, &k->recv, i, r - 1, i, total);
    }
}

void set_rank(struct bench *b, int r)
{
    switch (b->kind) {
    case COLL_BARRIER:
        break;
    case COLL_BCAST:
    case COLL_REDUCE:
    case COLL_GATHER:
    case COLL_SCATTER:
        set_rooted(b, r);
        break;
    case COLL_GATHERV:
    case COLL_SCATTERV:
        set_rooted_v(b, r);
        break;
    case COLL_ALLGATHER:
    case COLL_ALLGATHERV:
    case COLL_ALLTOALL:
    case COLL_ALLTOALLV:
    case COLL_ALLTOALLW:
        set_all(b, r);
        break;
    default:
        set_reduction(b, r);
    }
}

void close_rank(struct rank_state *k)
{
    free(k->send.mem);
    free(k->send.packed);
    free(k->recv.mem);
    free(k->recv.packed);
    free(k->send_len);
    free(k->send_off);
    free(k->recv_len);
    free(k->recv_off);
}
