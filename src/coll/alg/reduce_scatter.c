/*
 * reduce_scatter.c - reduce_scatter and reduce_scatter_block. The input has one block for
 * each rank: coll_send_block says where; s->bytes is the length of a block, 0 in the v form.
 * In place, input and result share the receive buffer.
 */
#include "coll/alg/halving.h"

#include "base/err.h"
#include <stdlib.h>

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

/* Block rank of a result made elsewhere, or in the receive buffer's own place, goes there; `idle` as in direct. */
static void store(struct goal_build *b, struct goal_mem sum, int64_t n, goal_id ready, goal_id idle)
{
    goal_id stored = goal_copy(b, sum, goal_mem(GOAL_RECV_BUF, 0), n);
    goal_after(b, stored, ready);
    goal_after(b, stored, idle);
}

/* Every block straight to its owner, few at a time; combined as they come. */
void coll_reduce_scatter_pairwise(struct goal_build *b, const struct coll_shape *s, const struct coll_given *v)
{
    struct goal_part own = input_block(s, v, s->rank);
    struct goal_mem room[TREE_RADIX_MAX], acc = own.at;
    struct goal_mem sum = coll_in_place(s) ? goal_scratch(b, own.len) : goal_mem(GOAL_RECV_BUF, 0);
    if (s->size == 1) return coll_reduce_scatter_direct(b, s, v);
    goal_id end[TREE_RADIX_MAX], ready = GOAL_NONE, idle = goal_join(b);
    int window = coll_radix(s);
    for (int w = 0; w < window; w++) {
        room[w] = goal_scratch(b, own.len);
        end[w] = GOAL_NONE;
    }
    for (int i = 1; i < s->size; i++) {
        int to = (s->rank + i) % s->size, from = (s->rank - i + s->size) % s->size, w = i % window;
        struct goal_part out = input_block(s, v, to);
        goal_id before = end[w];
        end[w] = goal_join(b);
        goal_after(b, end[w], before);
        if (out.len) {
            goal_id sent = goal_send(b, to, 0, out.at, out.len);
            goal_after(b, sent, before);
            goal_after(b, end[w], sent);
            goal_after(b, idle, sent);
        }
        if (!own.len) continue;
        goal_id got = goal_recv(b, from, 0, room[w], own.len);
        goal_after(b, got, before);
        ready = coll_fold(b, s, acc, room[w], true, sum, own.len, got, ready);
        goal_after(b, end[w], ready);
        acc = sum;
    }
    if (coll_in_place(s) && own.len) store(b, sum, own.len, ready, idle);
}

/* Block after block travels once around the ring to its owner, each rank joining its part. Two rooms take turns. */
void coll_reduce_scatter_ring(struct goal_build *b, const struct coll_shape *s, const struct coll_given *v)
{
    int P = s->size, to = (s->rank + 1) % P, from = (s->rank - 1 + P) % P;
    int64_t largest = 0;
    goal_id sent[2] = {GOAL_NONE, GOAL_NONE}, ready = GOAL_NONE, used = GOAL_NONE, first = GOAL_NONE;
    if (P == 1) return coll_reduce_scatter_direct(b, s, v);
    for (int i = 0; i < P; i++) {
        int64_t n = input_block(s, v, i).len;
        if (n > largest) largest = n;
    }
    struct goal_mem room[2] = {goal_scratch(b, largest), goal_scratch(b, largest)};
    for (int i = 0; i < P - 1; i++) {
        struct goal_part out = input_block(s, v, (s->rank - 1 - i + P) % P);
        struct goal_part in = input_block(s, v, (s->rank - 2 - i + 2 * P) % P);
        if (out.len) {
            goal_id send = goal_send(b, to, coll_tag(i), i ? room[(i - 1) % 2] : out.at, out.len);
            goal_after(b, send, ready);
            if (i)
                sent[(i - 1) % 2] = send;
            else
                first = send;
        }
        ready = GOAL_NONE;
        if (!in.len) continue;
        goal_id got = goal_recv(b, from, coll_tag(i), room[i % 2], in.len);
        goal_after(b, got, sent[i % 2]);
        ready = goal_reduce(b, in.at, room[i % 2], in.len);
        goal_after(b, ready, got);
        goal_after(b, ready, used); /* so that in the end all of the input is */
        used = ready;
    }
    if (ready != GOAL_NONE) store(b, room[(P - 2) % 2], input_block(s, v, s->rank).len, ready, first);
}

/* ---- recursive halving ----------------------------------------------------------- */

/*
 * Halving gives number `num` the chunk bitreverse(num): the input is put together in that order first. A chunk is the
 * block of its rank, with that of the rank that dropped out in its favour before it. Fills part (P entries) and the p +
 * 1 bounds.
 */
static void chunk_order(const struct coll_shape *s, const struct coll_given *v, const struct halving *h,
                        struct goal_part *part, int64_t *bound)
{
    int n = 0;
    bound[0] = 0;
    int *owner = (int *)(bound + h->p + 1);
    for (int num = 0; num < h->p; num++) owner[halving_chunk(h, num)] = num;
    for (int c = 0; c < h->p; c++) {
        int rank = halving_rank(h, owner[c]);
        bound[c + 1] = bound[c];
        if (owner[c] < h->extra) {
            part[n] = input_block(s, v, rank - 1);
            bound[c + 1] += part[n++].len;
        }
        part[n] = input_block(s, v, rank);
        bound[c + 1] += part[n++].len;
    }
}

static void halve(struct goal_build *b, const struct coll_shape *s, struct goal_part *part, int64_t *bound,
                  struct halving *h, const struct coll_given *v)
{
    enum { PAIR = 0, RESULT = 1, STEPS = 2 };
    struct goal_part own = input_block(s, v, s->rank);
    struct goal_mem dst = goal_mem(GOAL_RECV_BUF, 0);
    chunk_order(s, v, h, part, bound);
    int64_t all = bound[h->p];
    if (!all) return;
    if (h->num < 0) {
        goal_id sent = goal_sendv(b, s->rank + 1, PAIR, part, s->size);
        if (own.len) goal_after(b, goal_recv(b, s->rank + 1, RESULT, dst, own.len), sent);
        return;
    }
    struct goal_part x = {goal_scratch(b, all), all};
    goal_id ready = goal_copyv(b, part, s->size, &x, 1);
    if (h->num < h->extra) {
        struct goal_mem y = goal_scratch(b, all);
        ready = coll_fold(b, s, x.at, y, true, x.at, all, goal_recv(b, s->rank - 1, PAIR, y, all), ready);
    }
    h->dst = h->in = x.at;
    h->last = ready;
    h->bound = bound;
    halving_reduce(b, s, STEPS, h);
    struct goal_mem mine = goal_plus(x.at, bound[h->lo]);
    int64_t other = bound[h->lo + 1] - bound[h->lo] - own.len;
    if (other) goal_after(b, goal_send(b, s->rank - 1, RESULT, mine, other), h->last);
    if (own.len) store(b, goal_plus(mine, other), own.len, h->last, GOAL_NONE);
}

void coll_reduce_scatter_halving(struct goal_build *b, const struct coll_shape *s, const struct coll_given *v)
{
    struct halving h;
    if (s->size == 1) return coll_reduce_scatter_direct(b, s, v);
    halving_number(s, &h);
    struct goal_part *part = malloc((size_t)s->size * sizeof *part);
    int64_t *bound = malloc(((size_t)h.p + 1) * sizeof *bound + (size_t)h.p * sizeof(int));
    if (part && bound)
        halve(b, s, part, bound, &h, v);
    else
        goal_build_fail(b, err_set(TERN_ERR_NOMEM, "no memory to build a reduce_scatter of %d ranks", s->size));
    free(bound);
    free(part);
}
