/*
 * reduce.c - reduce to the root. Operators that commute let the tree grow from the root;
 * the others keep the order of the ranks, so their tree grows from rank 0, which passes the
 * result on.
 */
#include "coll/alg/halving.h"
#include "coll/alg/tree_reduce.h"

/* Piece [lo, hi) from the top of the tree to the root, where they differ; it is at the top after `ready`. */
static void deliver(struct tree_reduce *c, int top, int64_t lo, int tag, goal_id ready)
{
    const struct coll_shape *s = c->s;
    int64_t n = tree_reduce_end(c, lo) - lo;
    if (top == s->root) return;
    if (s->rank == top)
        goal_after(c->b, goal_send(c->b, s->root, tag, goal_plus(c->dst, lo), n), ready);
    else if (s->rank == s->root) /* in place it overwrites what has gone up from there */
        goal_after(c->b, goal_recv(c->b, top, tag, goal_mem(GOAL_RECV_BUF, lo), n), ready);
}

static void by_tree(struct goal_build *b, const struct coll_shape *s, const struct coll_given *v,
                    enum coll_tree_kind kind, bool whole)
{
    struct tree_reduce c;
    int top = s->flags & COLL_ORDERED ? 0 : s->root;
    tree_reduce_open(&c, b, s, v, kind, top, whole, false);
    for (int64_t lo = 0; lo < s->bytes; lo += c.seg) {
        int tag = coll_tag(2 * (lo / c.seg));
        deliver(&c, top, lo, tag + 1, tree_reduce_piece(&c, lo, tag));
    }
}

void coll_reduce_binomial(struct goal_build *b, const struct coll_shape *s, const struct coll_given *v)
{
    by_tree(b, s, v, TREE_BINOMIAL, true);
}

void coll_reduce_knomial(struct goal_build *b, const struct coll_shape *s, const struct coll_given *v)
{
    by_tree(b, s, v, TREE_KNOMIAL, true);
}

void coll_reduce_chain(struct goal_build *b, const struct coll_shape *s, const struct coll_given *v)
{
    by_tree(b, s, v, TREE_CHAIN, false);
}

void coll_reduce_chains(struct goal_build *b, const struct coll_shape *s, const struct coll_given *v)
{
    by_tree(b, s, v, TREE_CHAINS, false);
}

void coll_reduce_binary(struct goal_build *b, const struct coll_shape *s, const struct coll_given *v)
{
    by_tree(b, s, v, TREE_BINARY, false);
}

void coll_reduce_two_tree(struct goal_build *b, const struct coll_shape *s, const struct coll_given *v)
{
    by_tree(b, s, v, TREE_PAIR, false);
}

void coll_reduce_leaders(struct goal_build *b, const struct coll_shape *s, const struct coll_given *v)
{
    by_tree(b, s, v, TREE_LEVELS, false);
}

/*
 * Everyone sends to the root, which combines from the last rank to the first, so that the order is right for any
 * operator. It asks for few at a time: the room of one is used again when it has been combined.
 */
void coll_reduce_linear(struct goal_build *b, const struct coll_shape *s, const struct coll_given *v)
{
    struct goal_mem own = coll_input(s), room[TREE_RADIX_MAX];
    goal_id free[TREE_RADIX_MAX];
    int window = coll_radix(s), last = s->size - 1;
    struct coll_folding f = {.b = b, .s = s, .dst = goal_mem(GOAL_RECV_BUF, 0), .len = s->bytes, .ready = GOAL_NONE};
    (void)v;
    f.free = GOAL_NONE;
    if (s->rank != s->root) {
        goal_send(b, s->root, 0, own, s->bytes);
        return;
    }
    for (int i = 0; i < window && i < s->size; i++) {
        room[i] = goal_scratch(b, s->bytes);
        free[i] = GOAL_NONE;
    }
    struct goal_mem first = s->root == last ? own : goal_scratch(b, s->bytes);
    for (int i = last, w = 0; i >= 0; i--) {
        if (i == s->root) {
            coll_fold_next(&f, own, GOAL_NONE, i == 0);
            continue;
        }
        struct goal_mem x = i == last ? first : room[w];
        goal_id got = goal_recv(b, i, 0, x, s->bytes);
        if (i != last) goal_after(b, got, free[w]);
        coll_fold_next(&f, x, got, i == 0);
        if (i == last) continue;
        free[w] = f.ready;
        w = (w + 1) % window;
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
