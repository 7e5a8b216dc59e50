/*
 * scan.c - scan and exscan: the combination of the inputs of all ranks up to this one,
 * or up to the one before (of which rank 0 has none: its receive buffer stays as it is).
 */
#include "coll/alg/alg.h"

static bool is_ex(const struct coll_shape *s) { return s->kind == COLL_EXSCAN; }

static void first_rank(struct goal_build *b, const struct coll_shape *s)
{
    if (!is_ex(s) && !coll_in_place(s)) goal_copy(b, coll_input(s), goal_mem(GOAL_RECV_BUF, 0), s->bytes);
}

/*
 * exscan: x, received by `got`, joins the result on the left; `before` is the operation that did so last. The first
 * one replaces the input when that is in place, so the input must have left (`sent`) and be counted in (`summed`).
 */
static goal_id join_before(struct goal_build *b, const struct coll_shape *s, struct goal_mem x, goal_id got,
                           goal_id before, goal_id sent, goal_id summed)
{
    struct goal_mem dst = goal_mem(GOAL_RECV_BUF, 0);
    goal_id op = before == GOAL_NONE ? goal_copy(b, x, dst, s->bytes) : goal_reduce(b, x, dst, s->bytes);
    goal_after(b, op, got);
    goal_after(b, op, before);
    if (before != GOAL_NONE) return op;
    goal_after(b, op, sent);
    goal_after(b, op, summed);
    return op;
}

/*
 * In round k the combination of a window of 2^k ranks, the last of which is me, goes to the rank 2^k behind me, and the
 * window of the rank 2^k before me joins mine on the left.
 */
void coll_scan_doubling(struct goal_build *b, const struct coll_shape *s, const struct coll_given *v)
{
    struct goal_mem window = coll_input(s), sum = goal_mem(GOAL_RECV_BUF, 0);
    goal_id summed = GOAL_NONE, before = GOAL_NONE;
    int tag = 0;
    (void)v;
    if (s->rank == 0) first_rank(b, s);
    if (is_ex(s)) sum = goal_scratch(b, s->bytes);
    for (int64_t d = 1; d < s->size; d *= 2, tag++) {
        goal_id sent = GOAL_NONE;
        if (s->rank + d < s->size) {
            sent = goal_send(b, (int)(s->rank + d), tag, window, s->bytes);
            goal_after(b, sent, summed);
        }
        if (s->rank < d) continue;
        struct goal_mem x = goal_scratch(b, s->bytes);
        goal_id got = goal_recv(b, (int)(s->rank - d), tag, x, s->bytes);
        if (!is_ex(s) || s->rank + 2 * d < s->size) { /* otherwise nobody needs the window any more */
            summed = coll_fold(b, s, window, x, true, sum, s->bytes, got, sent == GOAL_NONE ? summed : sent);
            window = sum;
        }
        if (is_ex(s)) before = join_before(b, s, x, got, before, sent, summed);
    }
}

/* One segment of the chain: what all ranks before me make comes from the one before, goes on with mine joined. */
static void chain_piece(struct goal_build *b, const struct coll_shape *s, struct goal_mem x, struct goal_mem sum,
                        int64_t lo, int64_t n, int tag)
{
    struct goal_mem in = goal_plus(coll_input(s), lo), dst = goal_mem(GOAL_RECV_BUF, lo);
    bool last = s->rank + 1 == s->size;
    goal_id got = GOAL_NONE, ready = GOAL_NONE;
    struct goal_mem out = in;
    if (s->rank > 0) {
        got = goal_recv(b, s->rank - 1, tag, goal_plus(x, lo), n);
        out = goal_plus(sum, lo);
        if (!is_ex(s) || !last) ready = coll_fold(b, s, in, goal_plus(x, lo), true, out, n, got, GOAL_NONE);
    }
    if (!last) goal_after(b, goal_send(b, s->rank + 1, tag, out, n), ready);
    if (is_ex(s) && s->rank > 0 && x.slot == GOAL_SCRATCH) {
        goal_id stored = goal_copy(b, goal_plus(x, lo), dst, n);
        goal_after(b, stored, ready);
        goal_after(b, stored, got);
    }
}

void coll_scan_chain(struct goal_build *b, const struct coll_shape *s, const struct coll_given *v)
{
    struct goal_mem x = goal_mem(GOAL_RECV_BUF, 0), sum = x;
    int64_t seg = coll_segment(s);
    (void)v;
    if (s->rank == 0) first_rank(b, s);
    if (!is_ex(s) || coll_in_place(s)) x = goal_scratch(b, s->bytes);
    if (is_ex(s)) sum = goal_scratch(b, s->bytes);
    for (int64_t lo = 0; lo < s->bytes; lo += seg) {
        int64_t n = seg < s->bytes - lo ? seg : s->bytes - lo;
        chain_piece(b, s, x, sum, lo, n, coll_tag(lo / seg));
    }
}
