/*
 * bcast.c - broadcast. The buffer is slot 1 at every rank. The algorithms that cut it
 * into pieces do so at bytes, the same everywhere whatever the ranks' datatypes; where
 * the buffer has gaps (COLL_STAGED) the pieces go through a packed copy in the scratchpad.
 */
#include "coll/alg/alg.h"

/* What both kinds of cutting know: where pieces are sent from and received into. */
struct bcast {
    struct goal_build *b;
    const struct coll_shape *s;
    struct goal_mem buf;
};

static struct bcast bcast_open(struct goal_build *b, const struct coll_shape *s)
{
    struct goal_mem buf = s->flags & COLL_STAGED ? goal_scratch(b, s->bytes) : goal_mem(GOAL_RECV_BUF, 0);
    return (struct bcast){b, s, buf};
}

/* At the root: piece [lo, hi) can be sent after this. */
static goal_id bcast_load(struct bcast *c, int64_t lo, int64_t hi)
{
    if (!(c->s->flags & COLL_STAGED)) return GOAL_NONE;
    return goal_copy(c->b, goal_mem(GOAL_RECV_BUF, lo), goal_plus(c->buf, lo), hi - lo);
}

/* Elsewhere: piece [lo, hi) has arrived by `recv` and goes to the user. */
static void bcast_store(struct bcast *c, int64_t lo, int64_t hi, goal_id recv)
{
    if (!(c->s->flags & COLL_STAGED)) return;
    goal_after(c->b, goal_copy(c->b, goal_plus(c->buf, lo), goal_mem(GOAL_RECV_BUF, lo), hi - lo), recv);
}

/* Down a tree whole: the deepest subtree first. Datatypes with gaps are left to the messages. */
static void whole_down(struct goal_build *b, const struct coll_shape *s, enum coll_tree_kind kind)
{
    struct coll_tree t[2];
    struct goal_mem buf = goal_mem(GOAL_RECV_BUF, 0);
    goal_id have = GOAL_NONE;
    coll_tree_make(t, kind, s, NULL, s->root);
    if (t->parent >= 0) have = goal_recv(b, t->parent, 0, buf, s->bytes);
    for (int k = t->children - 1; k >= 0; k--) goal_after(b, goal_send(b, t->child[k], 0, buf, s->bytes), have);
}

void coll_bcast_binomial(struct goal_build *b, const struct coll_shape *s, const struct coll_given *v)
{
    (void)v;
    whole_down(b, s, TREE_BINOMIAL);
}

void coll_bcast_knomial(struct goal_build *b, const struct coll_shape *s, const struct coll_given *v)
{
    (void)v;
    whole_down(b, s, TREE_KNOMIAL);
}

void coll_bcast_linear(struct goal_build *b, const struct coll_shape *s, const struct coll_given *v)
{
    struct goal_mem buf = goal_mem(GOAL_RECV_BUF, 0);
    (void)v;
    if (s->rank != s->root) {
        goal_recv(b, s->root, 0, buf, s->bytes);
        return;
    }
    for (int i = 1; i < s->size; i++) goal_send(b, (s->root + i) % s->size, 0, buf, s->bytes);
}

/* Piece [lo, hi) comes from rank `from`, or is here already if that is -1. Returns what it can be sent after. */
static goal_id bcast_get(struct bcast *c, int from, int tag, int64_t lo, int64_t hi)
{
    if (from < 0) return bcast_load(c, lo, hi);
    goal_id got = goal_recv(c->b, from, tag, goal_plus(c->buf, lo), hi - lo);
    bcast_store(c, lo, hi, got);
    return got;
}

static void bcast_put(struct bcast *c, int to, int tag, int64_t lo, int64_t hi, goal_id have)
{
    goal_after(c->b, goal_send(c->b, to, tag, goal_plus(c->buf, lo), hi - lo), have);
}

/* Down trees in segments, each as soon as it is there. Of a pair of trees each carries every other segment. */
static void segments_down(struct goal_build *b, const struct coll_shape *s, const struct coll_given *v,
                          enum coll_tree_kind kind)
{
    struct coll_tree t[2];
    struct bcast c = bcast_open(b, s);
    int trees = coll_tree_make(t, kind, s, v, s->root), tag = 0;
    int64_t seg = coll_segment(s);
    if (trees == 2 && seg >= s->bytes) seg = coll_chunk(s, 1, 2);
    for (int64_t lo = 0; lo < s->bytes; lo += seg, tag++) {
        const struct coll_tree *x = &t[tag % trees];
        int64_t hi = lo + seg < s->bytes ? lo + seg : s->bytes;
        goal_id have = bcast_get(&c, x->parent, tag, lo, hi);
        for (int k = x->children - 1; k >= 0; k--) bcast_put(&c, x->child[k], tag, lo, hi, have);
    }
}

void coll_bcast_chain(struct goal_build *b, const struct coll_shape *s, const struct coll_given *v)
{
    segments_down(b, s, v, TREE_CHAIN);
}

void coll_bcast_chains(struct goal_build *b, const struct coll_shape *s, const struct coll_given *v)
{
    segments_down(b, s, v, TREE_CHAINS);
}

void coll_bcast_binary(struct goal_build *b, const struct coll_shape *s, const struct coll_given *v)
{
    segments_down(b, s, v, TREE_BINARY);
}

void coll_bcast_two_tree(struct goal_build *b, const struct coll_shape *s, const struct coll_given *v)
{
    segments_down(b, s, v, TREE_PAIR);
}

void coll_bcast_leaders(struct goal_build *b, const struct coll_shape *s, const struct coll_given *v)
{
    segments_down(b, s, v, TREE_LEVELS);
}

/* ---- a binary tree whose sides carry a half each ------------------------------- */

/*
 * One piece of the half that goes down side `half` (0: the numbers 1 to `left`, 1: those behind). Number i of the one
 * side and number left + i of the other then exchange what they have; a number that is left over is served by the root.
 */
static void split_piece(struct bcast *c, const struct coll_tree *t, int left, int half, int tag, int64_t lo, int64_t hi)
{
    const struct coll_shape *s = c->s;
    int right = s->size - 1 - left, side = t->vr > left;
    if (!t->vr) {
        goal_id have = bcast_load(c, lo, hi);
        for (int k = 0; k < t->children; k++)
            if ((t->child_vr[k] > left) == half) bcast_put(c, t->child[k], tag, lo, hi, have);
        if (half && left > right) bcast_put(c, (s->root + left) % s->size, tag, lo, hi, have);
        return;
    }
    int other = side ? t->vr - left : t->vr + left;
    if (!side && t->vr > right) other = 0;
    int partner = (other + s->root) % s->size;
    if (side != half) {
        bcast_get(c, partner, tag, lo, hi);
        return;
    }
    goal_id have = bcast_get(c, t->parent, tag, lo, hi);
    for (int k = 0; k < t->children; k++) bcast_put(c, t->child[k], tag, lo, hi, have);
    if (other) bcast_put(c, partner, tag, lo, hi, have);
}

void coll_bcast_split_binary(struct goal_build *b, const struct coll_shape *s, const struct coll_given *v)
{
    struct coll_tree t;
    struct bcast c = bcast_open(b, s);
    int64_t seg = coll_segment(s), middle = coll_chunk(s, 1, 2);
    int tag = 0;
    (void)v;
    coll_tree_binary(&t, s->rank, s->size, s->root);
    for (int64_t lo = 0, hi; lo < s->bytes; lo = hi, tag++) {
        int64_t end = lo < middle ? middle : s->bytes;
        hi = lo + seg < end ? lo + seg : end;
        split_piece(&c, &t, s->size / 2, lo >= middle, tag, lo, hi);
    }
}

/* ---- scatter and allgather ------------------------------------------------------ */

/* Sends the children of the tree their subtrees' chunks, which I have after `have`. */
static void scatter_down(struct bcast *c, const struct coll_tree *t, goal_id have)
{
    for (int k = t->children - 1; k >= 0; k--) {
        int64_t lo = coll_chunk(c->s, t->child_vr[k], c->s->size);
        int64_t hi = coll_chunk(c->s, t->child_vr[k] + t->child_span[k], c->s->size);
        if (lo < hi) goal_after(c->b, goal_send(c->b, t->child[k], 0, goal_plus(c->buf, lo), hi - lo), have);
    }
}

/* Passes the chunks around a ring; a rank is not sent what its subtree of the scatter has brought it already. */
static void ring_around(struct bcast *c, const struct coll_tree *t, goal_id have)
{
    const struct coll_shape *s = c->s;
    struct coll_tree next;
    int to = (s->rank + 1) % s->size, from = (s->rank - 1 + s->size) % s->size;
    goal_id got = have;
    coll_tree_binomial(&next, to, s->size, s->root);
    for (int step = 1; step < s->size; step++) {
        int out = (t->vr - step + 1 + s->size) % s->size, in = (t->vr - step + s->size) % s->size;
        int64_t lo = coll_chunk(s, out, s->size), hi = coll_chunk(s, out + 1, s->size);
        if (lo < hi && (out < next.vr || out >= next.vr + next.span))
            goal_after(c->b, goal_send(c->b, to, coll_tag(step), goal_plus(c->buf, lo), hi - lo), got);
        lo = coll_chunk(s, in, s->size), hi = coll_chunk(s, in + 1, s->size);
        if (lo == hi) {
            got = GOAL_NONE;
        } else if (in >= t->vr && in < t->vr + t->span) {
            got = have;
        } else {
            got = goal_recv(c->b, from, coll_tag(step), goal_plus(c->buf, lo), hi - lo);
            bcast_store(c, lo, hi, got);
        }
    }
}

void coll_bcast_scatter(struct goal_build *b, const struct coll_shape *s, const struct coll_given *v)
{
    struct coll_tree t;
    struct bcast c = bcast_open(b, s);
    goal_id have = GOAL_NONE;
    (void)v;
    coll_tree_binomial(&t, s->rank, s->size, s->root);
    int64_t lo = coll_chunk(s, t.vr, s->size), hi = coll_chunk(s, t.vr + t.span, s->size);
    if (t.parent < 0) {
        have = bcast_load(&c, 0, s->bytes);
    } else if (lo < hi) {
        have = goal_recv(b, t.parent, 0, goal_plus(c.buf, lo), hi - lo);
        bcast_store(&c, lo, hi, have);
    }
    scatter_down(&c, &t, have);
    ring_around(&c, &t, have);
}

/* A number beyond the power of two gets from the one p before it whatever that has, as it comes. */
enum { DOUBLING_TAG = 1, FORWARD_TAG = 64 };

struct doubling {
    struct bcast c;
    int vr, p;
    int lo, hi; /* chunks that the scatter brings me */
};

static int doubling_rank(const struct doubling *d, int vr) { return (vr + d->c.s->root) % d->c.s->size; }

/* Chunks [lo, hi) come from number `from` or are here, and go on to the number beyond. */
static goal_id doubling_get(struct doubling *d, int from, int tag, int step, int lo, int hi)
{
    int64_t at = coll_chunk(d->c.s, lo, d->p), end = coll_chunk(d->c.s, hi, d->p);
    if (at == end) return GOAL_NONE;
    goal_id have = bcast_get(&d->c, from < 0 ? -1 : doubling_rank(d, from), tag, at, end);
    if (d->vr + d->p < d->c.s->size)
        bcast_put(&d->c, doubling_rank(d, d->vr + d->p), FORWARD_TAG + step, at, end, have);
    return have;
}

/* A number's chunks are doubled by its partner's, unless the scatter has brought them. */
static goal_id doubling_step(struct doubling *d, int mask, int step, goal_id have)
{
    int partner = d->vr ^ mask, mine = d->vr & -mask, theirs = partner & -mask;
    int low = partner ? partner & -partner : d->p; /* the partner's chunks after the scatter */
    if (mine < partner || mine >= partner + low) {
        int64_t at = coll_chunk(d->c.s, mine, d->p), end = coll_chunk(d->c.s, mine + mask, d->p);
        if (at < end) bcast_put(&d->c, doubling_rank(d, partner), DOUBLING_TAG + step, at, end, have);
    }
    if (theirs >= d->lo && theirs < d->hi) return have;
    goal_id both = goal_join(d->c.b);
    goal_after(d->c.b, both, doubling_get(d, partner, DOUBLING_TAG + step, step + 1, theirs, theirs + mask));
    goal_after(d->c.b, both, have);
    return both;
}

/* What a number beyond the power of two gets: the same pieces as the one p before it. */
static void doubling_beyond(struct doubling *d)
{
    int twin = d->vr - d->p, low = twin ? twin & -twin : d->p;
    doubling_get(d, twin, FORWARD_TAG, 0, twin, twin + low);
    for (int mask = 1, step = 0; mask < d->p; mask *= 2, step++) {
        int theirs = (twin ^ mask) & -mask;
        if (theirs < twin || theirs >= twin + low)
            doubling_get(d, twin, FORWARD_TAG + step + 1, 0, theirs, theirs + mask);
    }
}

void coll_bcast_scatter_doubling(struct goal_build *b, const struct coll_shape *s, const struct coll_given *v)
{
    struct coll_tree t;
    struct doubling d = {.c = bcast_open(b, s), .vr = (s->rank - s->root + s->size) % s->size};
    (void)v;
    d.p = coll_pow2_below(s->size);
    if (d.vr >= d.p) return doubling_beyond(&d);
    coll_tree_binomial(&t, d.vr, d.p, 0);
    d.lo = d.vr;
    d.hi = d.vr + t.span;
    goal_id have = doubling_get(&d, t.parent, 0, 0, d.lo, d.hi);
    for (int k = t.children - 1; k >= 0; k--) {
        int64_t at = coll_chunk(s, t.child_vr[k], d.p), end = coll_chunk(s, t.child_vr[k] + t.child_span[k], d.p);
        if (at < end) bcast_put(&d.c, doubling_rank(&d, t.child[k]), 0, at, end, have);
    }
    for (int mask = 1, step = 0; mask < d.p; mask *= 2, step++) have = doubling_step(&d, mask, step, have);
}
