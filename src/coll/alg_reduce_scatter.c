/*
 * alg_reduce_scatter.c - reduce_scatter and reduce_scatter_block. The input has one block for
 * each rank: coll_send_block says where; s->bytes is the length of a block, 0 in the v form.
 * In place, input and result share the receive buffer.
 */
#include "coll/alg.h"

/* Block i of the input. */
static struct goal_part input_block(const struct coll_shape *s, const struct coll_given *v, int i)
{
    struct goal_part p = coll_send_block(s, v, i);
    if (coll_in_place(s)) p.at.slot = GOAL_RECV_BUF;
    return p;
}

/*
 * Every block goes straight to its owner, which combines the P inputs from the last rank to the first, so that the
 * order is right for any operator. Moves the least data, costs P - 1 messages.
 */
void coll_reduce_scatter_direct(struct goal_build *b, const struct coll_shape *s, const struct coll_given *v)
{
    struct goal_part own = input_block(s, v, s->rank);
    struct goal_mem dst = goal_mem(GOAL_RECV_BUF, 0), acc = own.at;
    int64_t n = own.len;
    goal_id idle = goal_join(b), ready = GOAL_NONE; /* idle: nothing of the input is needed any more */
    for (int i = 1; i < s->size; i++) {
        int to = (s->rank + i) % s->size;
        struct goal_part out = input_block(s, v, to);
        if (out.len) goal_after(b, idle, goal_send(b, to, 0, out.at, out.len));
    }
    if (!n) return;
    struct goal_mem sum = coll_in_place(s) ? goal_scratch(b, n) : dst;
    for (int i = s->size - 1; i >= 0; i--) {
        struct goal_mem x = own.at;
        goal_id got = GOAL_NONE;
        if (i != s->rank) {
            x = goal_scratch(b, n);
            got = goal_recv(b, i, 0, x, n);
        }
        if (i == s->size - 1) { /* the first operand is only remembered */
            acc = x;
            ready = got;
            continue;
        }
        ready = coll_fold(b, s, acc, x, true, sum, n, got, ready);
        acc = sum;
    }
    if (s->size > 1 && !coll_in_place(s)) return;
    if (s->size == 1 && coll_in_place(s)) return;
    goal_id stored = goal_copy(b, acc, dst, n);
    goal_after(b, stored, ready);
    goal_after(b, stored, idle);
}

/* End of the last block of the input; the blocks lie one behind the other. */
static int64_t whole(const struct coll_shape *s, const struct coll_given *v)
{
    struct goal_part last = input_block(s, v, s->size - 1);
    return last.at.off + last.len;
}

/* Up a binomial tree of rank 0 whole, then block by block from rank 0 to the owners. */
void coll_reduce_scatter_tree(struct goal_build *b, const struct coll_shape *s, const struct coll_given *v)
{
    struct coll_tree t;
    int64_t bytes = whole(s, v);
    struct goal_mem dst = goal_mem(GOAL_RECV_BUF, 0), acc = goal_mem(input_block(s, v, 0).at.slot, 0);
    struct goal_part own = input_block(s, v, s->rank);
    goal_id ready = GOAL_NONE;
    if (s->size == 1) return coll_reduce_scatter_direct(b, s, v);
    coll_tree_binomial(&t, s->rank, s->size, 0);
    struct goal_mem sum = t.children ? goal_scratch(b, bytes) : acc;
    for (int k = 0; k < t.children && bytes; k++) {
        struct goal_mem x = goal_scratch(b, bytes);
        goal_id got = goal_recv(b, t.child[k], 0, x, bytes);
        ready = coll_fold(b, s, acc, x, false, sum, bytes, got, ready);
        acc = sum;
    }
    if (t.parent >= 0) {
        goal_id up = bytes ? goal_send(b, t.parent, 0, acc, bytes) : GOAL_NONE;
        goal_after(b, up, ready);
        if (own.len) goal_after(b, goal_recv(b, 0, 1, dst, own.len), up); /* in place it overwrites what goes up */
        return;
    }
    for (int i = 1; i < s->size; i++) {
        struct goal_part out = input_block(s, v, i);
        if (out.len) goal_after(b, goal_send(b, i, 1, goal_plus(acc, out.at.off), out.len), ready);
    }
    if (own.len) goal_after(b, goal_copy(b, goal_plus(acc, own.at.off), dst, own.len), ready);
}
