/*
 * scatter.c - scatter and scatterv: gather in the other direction. Ranks in between
 * hold blocks packed.
 */
#include "coll/alg/alg.h"

static void keep_own(struct goal_build *b, const struct coll_shape *s, const struct coll_given *v)
{
    struct goal_part from = coll_send_block(s, v, s->rank);
    if (!coll_in_place(s) && from.len) goal_copy(b, from.at, goal_mem(GOAL_RECV_BUF, 0), from.len);
}

void coll_scatter_linear(struct goal_build *b, const struct coll_shape *s, const struct coll_given *v)
{
    if (s->rank != s->root) {
        if (s->bytes) goal_recv(b, s->root, 0, goal_mem(GOAL_RECV_BUF, 0), s->bytes);
        return;
    }
    for (int i = 1; i < s->size; i++) {
        int peer = (s->rank + i) % s->size;
        struct goal_part from = coll_send_block(s, v, peer);
        if (from.len) goal_send(b, peer, 0, from.at, from.len);
    }
    keep_own(b, s, v);
}

/* The same, few at a time. */
void coll_scatter_staged(struct goal_build *b, const struct coll_shape *s, const struct coll_given *v)
{
    goal_id end[TREE_RADIX_MAX];
    int window = coll_radix(s), turn = 0;
    if (s->rank != s->root) return coll_scatter_linear(b, s, v);
    for (int w = 0; w < window; w++) end[w] = GOAL_NONE;
    for (int i = 1; i < s->size; i++) {
        int peer = (s->rank + i) % s->size, w = turn % window;
        struct goal_part from = coll_send_block(s, v, peer);
        if (!from.len) continue;
        goal_id sent = goal_send(b, peer, 0, from.at, from.len);
        goal_after(b, sent, end[w]);
        end[w] = sent;
        turn++;
    }
    keep_own(b, s, v);
}

/* The root sends a child the blocks of its subtree: from where they are, or together where the ranks wrap around. */
static void scatter_root(struct goal_build *b, const struct coll_shape *s, const struct coll_given *v,
                         const struct coll_tree *t)
{
    for (int k = t->children - 1; k >= 0; k--) {
        int64_t n = t->child_span[k] * s->bytes;
        int first = t->child[k], head = s->size - first;
        struct goal_mem from = goal_mem(GOAL_SEND_BUF, first * s->bytes);
        goal_id ready = GOAL_NONE;
        if (t->child_span[k] > head) {
            struct goal_part part[2] = {{from, head * s->bytes},
                                        {goal_mem(GOAL_SEND_BUF, 0), (t->child_span[k] - head) * s->bytes}};
            struct goal_part x = {goal_scratch(b, n), n};
            ready = goal_copyv(b, part, 2, &x, 1);
            from = x.at;
        }
        goal_after(b, goal_send(b, t->child[k], 0, from, n), ready);
    }
    keep_own(b, s, v);
}

void coll_scatter_binomial(struct goal_build *b, const struct coll_shape *s, const struct coll_given *v)
{
    struct coll_tree t;
    coll_tree_binomial(&t, s->rank, s->size, s->root);
    if (t.parent < 0) return scatter_root(b, s, v, &t);
    struct goal_mem own = goal_mem(GOAL_RECV_BUF, 0);
    if (!t.children) {
        goal_recv(b, t.parent, 0, own, s->bytes);
        return;
    }
    struct goal_mem x = goal_scratch(b, t.span * s->bytes);
    goal_id got = goal_recv(b, t.parent, 0, x, t.span * s->bytes);
    for (int k = t.children - 1; k >= 0; k--) {
        struct goal_mem from = goal_plus(x, (t.child_vr[k] - t.vr) * s->bytes);
        goal_after(b, goal_send(b, t.child[k], 0, from, t.child_span[k] * s->bytes), got);
    }
    goal_after(b, goal_copy(b, x, own, s->bytes), got);
}
