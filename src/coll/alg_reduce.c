/*
 * alg_reduce.c - reduce to the root. Operators that commute let the tree grow from the root;
 * the others keep the order of the ranks, so their tree grows from rank 0, which passes the
 * result on.
 */
#include "coll/halving.h"

/* Where this rank accumulates: the receive buffer at the end of the way, scratch elsewhere. */
struct reduce {
    struct goal_build *b;
    const struct coll_shape *s;
    struct coll_tree t;
    int top; /* the rank at which the tree ends */
    struct goal_mem dst;
    struct goal_mem in[32]; /* room for what the children send */
};

static void reduce_open(struct reduce *c, struct goal_build *b, const struct coll_shape *s,
                        void (*tree)(struct coll_tree *, int, int, int))
{
    c->b = b;
    c->s = s;
    c->top = s->flags & COLL_ORDERED ? 0 : s->root;
    tree(&c->t, s->rank, s->size, c->top);
    c->dst = goal_mem(GOAL_RECV_BUF, 0);
    if (s->rank != s->root && c->t.children) c->dst = goal_scratch(b, s->bytes);
    for (int k = 0; k < c->t.children; k++) c->in[k] = goal_scratch(b, s->bytes);
}

/* Bytes [lo, hi): what the children send is combined with my own, then goes up. Returns the operation that ends it. */
static goal_id reduce_piece(struct reduce *c, int64_t lo, int64_t hi, int tag)
{
    struct goal_mem acc = goal_plus(coll_input(c->s), lo), dst = goal_plus(c->dst, lo);
    goal_id ready = GOAL_NONE;
    for (int k = 0; k < c->t.children; k++) {
        struct goal_mem x = goal_plus(c->in[k], lo);
        goal_id got = goal_recv(c->b, c->t.child[k], tag, x, hi - lo);
        ready = coll_fold(c->b, c->s, acc, x, false, dst, hi - lo, got, ready);
        acc = dst;
    }
    if (c->t.parent >= 0) {
        goal_id up = goal_send(c->b, c->t.parent, tag, acc, hi - lo);
        goal_after(c->b, up, ready);
        ready = up;
    } else if (!c->t.children && !coll_in_place(c->s)) {
        ready = goal_copy(c->b, acc, dst, hi - lo);
    }
    return ready;
}

/* The same bytes from the top of the tree to the root, where they differ. */
static void reduce_deliver(struct reduce *c, int64_t lo, int64_t hi, int tag, goal_id ready)
{
    const struct coll_shape *s = c->s;
    if (c->top == s->root) return;
    if (s->rank == c->top)
        goal_after(c->b, goal_send(c->b, s->root, tag, goal_plus(c->dst, lo), hi - lo), ready);
    else if (s->rank == s->root)
        goal_after(c->b, goal_recv(c->b, c->top, tag, goal_mem(GOAL_RECV_BUF, lo), hi - lo), ready);
}

void coll_reduce_binomial(struct goal_build *b, const struct coll_shape *s, const struct coll_given *v)
{
    struct reduce c;
    (void)v;
    reduce_open(&c, b, s, coll_tree_binomial);
    reduce_deliver(&c, 0, s->bytes, 1, reduce_piece(&c, 0, s->bytes, 0));
}

void coll_reduce_chain(struct goal_build *b, const struct coll_shape *s, const struct coll_given *v)
{
    struct reduce c;
    int64_t seg = coll_segment(s);
    (void)v;
    reduce_open(&c, b, s, coll_tree_chain);
    for (int64_t lo = 0; lo < s->bytes; lo += seg) {
        int64_t hi = lo + seg < s->bytes ? lo + seg : s->bytes;
        int tag = coll_tag(2 * (lo / seg));
        reduce_deliver(&c, lo, hi, tag + 1, reduce_piece(&c, lo, hi, tag));
    }
}

/* The root takes all chunks but its own, which is in place already. They overwrite what it may still be sending. */
static void collect_chunks(struct goal_build *b, const struct coll_shape *s, const struct halving *h, int tag)
{
    goal_id idle = goal_join(b);
    if (h->num < 0) {
        goal_after(b, idle, h->last);
    } else {
        int k = 0;
        for (int mask = 1; mask < h->p; mask *= 2) goal_after(b, idle, h->sent[k++]);
    }
    for (int num = 0; num < h->p; num++) {
        int c = halving_chunk(h, num);
        int64_t at = coll_chunk(s, c, h->p), n = coll_chunk(s, c + 1, h->p) - at;
        if (num == h->num || !n) continue;
        goal_after(b, goal_recv(b, halving_rank(h, num), tag, goal_mem(GOAL_RECV_BUF, at), n), idle);
    }
}

/* Reduce-scatter by recursive halving, then everyone sends the root its chunk. */
void coll_reduce_halving(struct goal_build *b, const struct coll_shape *s, const struct coll_given *v)
{
    struct halving h;
    enum { GATHER_TAG = 40 };
    if (s->size == 1) return coll_reduce_binomial(b, s, v);
    bool drops_out = s->rank % 2 == 0 && s->rank < 2 * (s->size - coll_pow2_below(s->size));
    struct goal_mem dst = goal_mem(GOAL_RECV_BUF, 0);
    if (s->rank != s->root && !drops_out) dst = goal_scratch(b, s->bytes);
    halving_pair(b, s, dst, 0, &h);
    halving_reduce(b, s, 1, &h);
    if (s->rank == s->root) return collect_chunks(b, s, &h, GATHER_TAG);
    if (h.num < 0) return;
    int64_t at = coll_chunk(s, h.lo, h.p), n = coll_chunk(s, h.hi, h.p) - at;
    if (n) goal_after(b, goal_send(b, s->root, GATHER_TAG, goal_plus(dst, at), n), h.last);
}
