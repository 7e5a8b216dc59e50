/* tree_reduce.c - see tree_reduce.h. */
#include "coll/alg/tree_reduce.h"

void tree_reduce_open(struct tree_reduce *c, struct goal_build *b, const struct coll_shape *s,
                      const struct coll_given *v, enum coll_tree_kind kind, int top, bool whole, bool everywhere)
{
    c->b = b;
    c->s = s;
    c->trees = coll_tree_make(c->t, kind, s, v, top);
    c->seg = whole ? s->bytes : coll_segment(s);
    if (c->trees == 2 && c->seg >= s->bytes) c->seg = coll_chunk(s, 1, 2); /* a half for each */
    int children = c->t[0].children;
    if (c->trees == 2 && c->t[1].children > children) children = c->t[1].children;
    int64_t room = c->seg * TREE_PIECES < s->bytes ? c->seg * TREE_PIECES : s->bytes;
    c->keeps = everywhere || s->rank == s->root || s->rank == top;
    c->dst = goal_mem(GOAL_RECV_BUF, 0);
    if (!everywhere && s->rank != s->root && children) c->dst = goal_scratch(b, c->keeps ? s->bytes : room);
    for (int k = 0; k < children; k++) c->in[k] = goal_scratch(b, room);
    for (int i = 0; i < TREE_PIECES; i++) c->free[i] = GOAL_NONE;
}

goal_id tree_reduce_piece(struct tree_reduce *c, int64_t lo, int tag)
{
    const struct coll_tree *t = tree_reduce_tree(c, lo);
    int turn = (int)(lo / c->seg % TREE_PIECES);
    int64_t n = tree_reduce_end(c, lo) - lo, at = turn * c->seg;
    struct goal_mem acc = goal_plus(coll_input(c->s), lo), dst = goal_plus(c->dst, c->keeps ? lo : at);
    goal_id ready = c->free[turn];
    for (int k = 0; k < t->children; k++) {
        struct goal_mem x = goal_plus(c->in[k], at);
        goal_id got = goal_recv(c->b, t->child[k], tag, x, n);
        goal_after(c->b, got, c->free[turn]);
        ready = coll_fold(c->b, c->s, acc, x, t->child_vr[k] < t->vr, dst, n, got, ready);
        acc = dst;
    }
    if (t->parent >= 0) {
        goal_id up = goal_send(c->b, t->parent, tag, acc, n);
        goal_after(c->b, up, t->children ? ready : GOAL_NONE);
        ready = up;
    } else if (!t->children && !coll_in_place(c->s)) {
        ready = goal_copy(c->b, acc, dst, n);
    }
    return c->free[turn] = ready;
}
