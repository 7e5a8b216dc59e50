/*
 * alg_bcast.c - broadcast. The buffer is slot 1 at every rank. The algorithms that cut it
 * into pieces do so at bytes, the same everywhere whatever the ranks' datatypes; where
 * the buffer has gaps (COLL_STAGED) the pieces go through a packed copy in the scratchpad.
 */
#include "coll/alg.h"

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
void coll_bcast_binomial(struct goal_build *b, const struct coll_shape *s, const struct coll_given *v)
{
    struct coll_tree t;
    struct goal_mem buf = goal_mem(GOAL_RECV_BUF, 0);
    goal_id have = GOAL_NONE;
    (void)v;
    coll_tree_binomial(&t, s->rank, s->size, s->root);
    if (t.parent >= 0) have = goal_recv(b, t.parent, 0, buf, s->bytes);
    for (int k = t.children - 1; k >= 0; k--) goal_after(b, goal_send(b, t.child[k], 0, buf, s->bytes), have);
}

void coll_bcast_chain(struct goal_build *b, const struct coll_shape *s, const struct coll_given *v)
{
    struct coll_tree t;
    struct bcast c = bcast_open(b, s);
    int64_t seg = coll_segment(s);
    (void)v;
    coll_tree_chain(&t, s->rank, s->size, s->root);
    for (int64_t lo = 0; lo < s->bytes; lo += seg) {
        int64_t hi = lo + seg < s->bytes ? lo + seg : s->bytes;
        goal_id have;
        if (t.parent < 0) {
            have = bcast_load(&c, lo, hi);
        } else {
            have = goal_recv(b, t.parent, coll_tag(lo / seg), goal_plus(c.buf, lo), hi - lo);
            bcast_store(&c, lo, hi, have);
        }
        if (t.children)
            goal_after(b, goal_send(b, t.child[0], coll_tag(lo / seg), goal_plus(c.buf, lo), hi - lo), have);
    }
}

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
