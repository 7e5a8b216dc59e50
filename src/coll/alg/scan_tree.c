/*
 * scan_tree.c - scan and exscan in two sweeps over a tree, and in one stage; see scan.c for what they are.
 */
#include "coll/alg/alg.h"

static bool is_ex(const struct coll_shape *s) { return s->kind == COLL_EXSCAN; }

/* Everyone sends to all ranks above, which combine from themselves downwards. */
void coll_scan_direct(struct goal_build *b, const struct coll_shape *s, const struct coll_given *v)
{
    struct goal_mem own = coll_input(s);
    struct coll_folding f = {.b = b, .s = s, .dst = goal_mem(GOAL_RECV_BUF, 0), .len = s->bytes, .ready = GOAL_NONE};
    goal_id sent = goal_join(b);
    (void)v;
    for (int r = s->rank + 1; r < s->size; r++) goal_after(b, sent, goal_send(b, r, 0, own, s->bytes));
    f.free = coll_in_place(s) ? sent : GOAL_NONE;
    if (!is_ex(s)) coll_fold_next(&f, own, GOAL_NONE, s->rank == 0);
    for (int i = s->rank - 1; i >= 0; i--) {
        struct goal_mem x = goal_scratch(b, s->bytes);
        coll_fold_next(&f, x, goal_recv(b, i, 0, x, s->bytes), i == 0);
    }
}

/* What a rank holds in the two sweeps. */
struct sweep {
    struct goal_build *b;
    const struct coll_shape *s;
    struct goal_mem window; /* the combination of the ranks of my subtree, me last ... */
    goal_id summed;         /* ... after this */
    struct goal_mem below;  /* the same without me, in scratch; slot -1: none of them yet */
    goal_id joined;
};

/* exscan: x, destroyed, joins what is below me on the left. */
static void sweep_below(struct sweep *c, struct goal_mem x, goal_id got)
{
    if (c->below.slot < 0) {
        c->below = x;
        c->joined = got;
        return;
    }
    goal_id op = goal_reduce(c->b, x, c->below, c->s->bytes);
    goal_after(c->b, op, got);
    goal_after(c->b, op, c->joined);
    c->joined = op;
}

/* What rank `from` has joins my window on the left, which is being sent until `sent`. Returns when x is free. */
static goal_id sweep_take(struct sweep *c, int from, int tag, goal_id sent, bool window)
{
    const struct coll_shape *s = c->s;
    struct goal_mem x = goal_scratch(c->b, s->bytes), sum = goal_mem(GOAL_RECV_BUF, 0);
    goal_id got = goal_recv(c->b, from, tag, x, s->bytes);
    if (window) {
        if (is_ex(s)) sum = c->window.slot == GOAL_SCRATCH ? c->window : goal_scratch(c->b, s->bytes);
        goal_id op = coll_fold(c->b, s, c->window, x, true, sum, s->bytes, got, sent == GOAL_NONE ? c->summed : sent);
        goal_after(c->b, op, c->summed);
        c->summed = op;
        c->window = sum;
        got = op;
    }
    if (is_ex(s)) sweep_below(c, x, got);
    return got;
}

/*
 * Rank r ends a subtree of as many ranks as the lowest bit of r + 1 says. Upwards it takes in the subtrees that end at
 * r - 1, r - 2, r - 4 ...; downwards it gets what all ranks before its subtree make, and gives all up to itself to
 * those whose subtrees begin behind it.
 */
void coll_scan_binomial(struct goal_build *b, const struct coll_shape *s, const struct coll_given *v)
{
    enum { DOWN = 1 };
    struct sweep c = {
        .b = b, .s = s, .window = coll_input(s), .summed = GOAL_NONE, .below = {-1, 0}, .joined = GOAL_NONE};
    int64_t low = (s->rank + 1) & -(int64_t)(s->rank + 1), r = s->rank;
    goal_id sent = GOAL_NONE;
    bool gives = low > 1 && r + 1 < s->size; /* somebody's subtree begins behind mine, and is not above me */
    (void)v;
    for (int64_t d = 1; d < low; d *= 2) sweep_take(&c, (int)(r - d), 0, GOAL_NONE, true);
    if (r + low < s->size) {
        sent = goal_send(b, (int)(r + low), 0, c.window, s->bytes);
        goal_after(b, sent, c.summed);
    }
    if (r >= low) sweep_take(&c, (int)(r - low), DOWN, sent, gives || !is_ex(s));
    for (int64_t d = low / 2; d >= 1; d /= 2) {
        if (r + d >= s->size) continue;
        goal_id down = goal_send(b, (int)(r + d), DOWN, c.window, s->bytes);
        goal_after(b, down, c.summed);
    }
    struct goal_mem result = is_ex(s) ? c.below : c.window, dst = goal_mem(GOAL_RECV_BUF, 0);
    if (result.slot < 0 || (result.slot == dst.slot && !is_ex(s))) return;
    goal_id stored = goal_copy(b, result, dst, s->bytes);
    goal_after(b, stored, is_ex(s) ? c.joined : c.summed);
    if (is_ex(s) && coll_in_place(s)) { /* over the input */
        goal_after(b, stored, sent);
        goal_after(b, stored, c.summed);
    }
}
