/*
 * allreduce_tree.c - allreduce up and down trees, by exchanges among several ranks at a time, and by everyone
 * sending everything to everyone.
 */
#include "coll/alg/tree_reduce.h"

/* ---- up to rank 0 and down again ------------------------------------------------ */

static void up_and_down(struct goal_build *b, const struct coll_shape *s, const struct coll_given *v,
                        enum coll_tree_kind kind, bool whole)
{
    struct tree_reduce c;
    tree_reduce_open(&c, b, s, v, kind, 0, whole, true);
    for (int64_t lo = 0; lo < s->bytes; lo += c.seg) {
        const struct coll_tree *t = tree_reduce_tree(&c, lo);
        struct goal_mem dst = goal_mem(GOAL_RECV_BUF, lo);
        int64_t n = tree_reduce_end(&c, lo) - lo;
        int tag = coll_tag(2 * (lo / c.seg));
        goal_id have = tree_reduce_piece(&c, lo, tag);
        if (t->parent >= 0) {
            goal_id up = have;
            have = goal_recv(b, t->parent, tag + 1, dst, n);
            goal_after(b, have, up); /* which may have gone up from there */
        }
        for (int k = t->children - 1; k >= 0; k--) goal_after(b, goal_send(b, t->child[k], tag + 1, dst, n), have);
    }
}

void coll_allreduce_reduce_bcast(struct goal_build *b, const struct coll_shape *s, const struct coll_given *v)
{
    up_and_down(b, s, v, TREE_BINOMIAL, true);
}

void coll_allreduce_binary(struct goal_build *b, const struct coll_shape *s, const struct coll_given *v)
{
    up_and_down(b, s, v, TREE_BINARY, false);
}

void coll_allreduce_two_tree(struct goal_build *b, const struct coll_shape *s, const struct coll_given *v)
{
    up_and_down(b, s, v, TREE_PAIR, false);
}

/* ---- k at a time ----------------------------------------------------------------- */

/*
 * p is the largest power of k in P. The ranks form p groups of neighbours, at most k in each, whose first rank combines
 * for the others and returns the result to them. The p exchange in rounds: in that of weight w, k groups whose numbers
 * differ in one digit of base k send each other all they have, and all combine in the same order.
 */
struct groups {
    struct goal_build *b;
    const struct coll_shape *s;
    int k, p;
    int num, first, last; /* my group, its first rank and the one behind it */
    struct goal_mem cur;  /* what I have so far ... */
    goal_id ready;        /* ... after this */
};

static int group_start(const struct groups *g, int num)
{
    int each = g->s->size / g->p, more = g->s->size % g->p;
    return num * each + (num < more ? num : more);
}

static void groups_open(struct groups *g, struct goal_build *b, const struct coll_shape *s)
{
    *g = (struct groups){.b = b, .s = s, .k = coll_radix(s), .p = 1, .cur = coll_input(s), .ready = GOAL_NONE};
    while (g->p <= s->size / g->k) g->p *= g->k;
    while (group_start(g, g->num + 1) <= s->rank) g->num++;
    g->first = group_start(g, g->num);
    g->last = group_start(g, g->num + 1);
}

static struct coll_folding folding_open(const struct groups *g, goal_id free)
{
    return (struct coll_folding){
        .b = g->b, .s = g->s, .dst = goal_mem(GOAL_RECV_BUF, 0), .len = g->s->bytes, .free = free, .ready = GOAL_NONE};
}

/* The first rank of a group takes in the others. */
static void group_collect(struct groups *g)
{
    struct coll_folding f = folding_open(g, GOAL_NONE);
    if (g->last - g->first == 1) return;
    for (int r = g->last - 1; r > g->first; r--) {
        struct goal_mem x = goal_scratch(g->b, g->s->bytes);
        coll_fold_next(&f, x, goal_recv(g->b, r, 0, x, g->s->bytes), false);
    }
    coll_fold_next(&f, g->cur, GOAL_NONE, true);
    g->cur = f.dst;
    g->ready = f.ready;
}

static void group_round(struct groups *g, int w, int tag)
{
    int digit = g->num / w % g->k;
    goal_id sent = goal_join(g->b);
    struct goal_mem x[TREE_RADIX_MAX];
    goal_id got[TREE_RADIX_MAX];
    for (int d = 0; d < g->k; d++) {
        int peer = group_start(g, g->num + (d - digit) * w);
        x[d] = g->cur;
        got[d] = g->ready;
        if (d == digit) continue;
        goal_id send = goal_send(g->b, peer, tag, g->cur, g->s->bytes);
        goal_after(g->b, send, g->ready);
        goal_after(g->b, sent, send);
        x[d] = goal_scratch(g->b, g->s->bytes);
        got[d] = goal_recv(g->b, peer, tag, x[d], g->s->bytes);
    }
    struct coll_folding f = folding_open(g, g->cur.slot == GOAL_RECV_BUF ? sent : GOAL_NONE);
    for (int d = g->k - 1; d >= 0; d--) coll_fold_next(&f, x[d], got[d], d == 0);
    g->cur = f.dst;
    g->ready = f.ready;
}

void coll_allreduce_knomial(struct goal_build *b, const struct coll_shape *s, const struct coll_given *v)
{
    struct groups g;
    struct goal_mem dst = goal_mem(GOAL_RECV_BUF, 0);
    int tag = 2;
    (void)v;
    groups_open(&g, b, s);
    if (s->rank != g.first) {
        goal_id up = goal_send(b, g.first, 0, g.cur, s->bytes), down = goal_recv(b, g.first, 1, dst, s->bytes);
        if (coll_in_place(s)) goal_after(b, down, up);
        return;
    }
    group_collect(&g);
    for (int w = 1; w < g.p; w *= g.k) group_round(&g, w, tag++);
    if (s->size == 1 && !coll_in_place(s)) goal_copy(b, g.cur, dst, s->bytes);
    for (int r = g.first + 1; r < g.last; r++) goal_after(b, goal_send(b, r, 1, dst, s->bytes), g.ready);
}

/* ---- everything to everyone -------------------------------------------------------- */

/*
 * All messages leave at the start and nothing is passed on, so it goes on without this rank's doing while it computes;
 * all combine from the last rank to the first.
 */
void coll_allreduce_deposit(struct goal_build *b, const struct coll_shape *s, const struct coll_given *v)
{
    struct goal_mem own = coll_input(s);
    struct coll_folding f = {.b = b, .s = s, .dst = goal_mem(GOAL_RECV_BUF, 0), .len = s->bytes, .ready = GOAL_NONE};
    goal_id sent = goal_join(b);
    (void)v;
    for (int i = 1; i < s->size; i++) goal_after(b, sent, goal_send(b, (s->rank + i) % s->size, 0, own, s->bytes));
    f.free = coll_in_place(s) ? sent : GOAL_NONE;
    for (int i = s->size - 1; i >= 0; i--) {
        struct goal_mem x = i == s->rank ? own : goal_scratch(b, s->bytes);
        coll_fold_next(&f, x, i == s->rank ? GOAL_NONE : goal_recv(b, i, 0, x, s->bytes), i == 0);
    }
}
