/*
 * inter.c - between two groups (MPI-5.0 6.2.3): trees within the own group, and the
 * operations with a root, which is in one group while the data is of the other. Of the
 * root's group nobody else has anything to do.
 */
#include "coll/alg/inter.h"

#include <mpi.h>

enum { UP = 0, DOWN = 1, CROSS = 0 }; /* tags */

enum inter_role inter_role(const struct coll_shape *s)
{
    if (s->root == MPI_ROOT) return INTER_ROOT;
    return s->root == MPI_PROC_NULL ? INTER_IDLE : INTER_MEMBER;
}

/* ---- within the own group ------------------------------------------------- */

goal_id inter_down(struct goal_build *b, const struct coll_shape *s, int tag, struct goal_mem buf, int64_t len, goal_id have)
{
    struct coll_tree t;
    coll_tree_binomial(&t, s->rank, s->size, 0);
    if (t.parent >= 0) have = goal_recv(b, t.parent, tag, buf, len);
    for (int k = t.children - 1; k >= 0; k--) goal_after(b, goal_send(b, t.child[k], tag, buf, len), have);
    return have;
}

struct inter_data inter_reduce(struct goal_build *b, const struct coll_shape *s, int tag, int64_t len)
{
    struct coll_tree t;
    struct inter_data sum = {coll_input(s), GOAL_NONE};
    coll_tree_binomial(&t, s->rank, s->size, 0);
    struct goal_mem dst = t.children ? goal_scratch(b, len) : sum.at;
    for (int k = 0; k < t.children; k++) {
        struct goal_mem x = goal_scratch(b, len);
        goal_id got = goal_recv(b, t.child[k], tag, x, len);
        sum.ready = coll_fold(b, s, sum.at, x, false, dst, len, got, sum.ready);
        sum.at = dst;
    }
    if (t.parent >= 0) goal_after(b, goal_send(b, t.parent, tag, sum.at, len), sum.ready);
    return sum;
}

/* Combines what is sent by all of the group, this rank's own part being `own`, from the last to the first into dst. */
static struct inter_data fold_all(struct goal_build *b, const struct coll_shape *s, int tag, struct goal_mem own, int64_t len)
{
    struct inter_data sum = {own, GOAL_NONE};
    struct goal_mem dst = s->size > 1 ? goal_scratch(b, len) : own;
    for (int i = s->size - 1; i >= 0; i--) {
        struct goal_mem x = i == s->rank ? own : goal_scratch(b, len);
        goal_id got = i == s->rank ? GOAL_NONE : goal_recv(b, i, tag, x, len);
        if (i == s->size - 1) {
            sum = (struct inter_data){x, got};
            continue;
        }
        sum.ready = coll_fold(b, s, sum.at, x, true, dst, len, got, sum.ready);
        sum.at = dst;
    }
    return sum;
}

struct inter_data inter_reduce_chunk(struct goal_build *b, const struct coll_shape *s, int tag)
{
    struct goal_mem in = coll_input(s);
    int64_t at = coll_chunk(s, s->rank, s->size), n = coll_chunk(s, s->rank + 1, s->size) - at;
    for (int i = 1; i < s->size; i++) {
        int to = (s->rank + i) % s->size;
        int64_t lo = coll_chunk(s, to, s->size), hi = coll_chunk(s, to + 1, s->size);
        if (lo < hi) goal_send(b, to, tag, goal_plus(in, lo), hi - lo);
    }
    if (!n) return (struct inter_data){in, GOAL_NONE};
    return fold_all(b, s, tag, goal_plus(in, at), n);
}

struct inter_data inter_gather(struct goal_build *b, const struct coll_shape *s, int tag)
{
    struct coll_tree t;
    struct inter_data all = {goal_mem(GOAL_SEND_BUF, 0), GOAL_NONE};
    coll_tree_binomial(&t, s->rank, s->size, 0);
    if (t.children) {
        struct goal_mem x = goal_scratch(b, t.span * s->bytes);
        goal_id copied = goal_copy(b, all.at, x, s->bytes);
        all = (struct inter_data){x, goal_join(b)};
        goal_after(b, all.ready, copied);
        for (int k = 0; k < t.children; k++) {
            struct goal_mem to = goal_plus(x, (t.child_vr[k] - t.vr) * s->bytes);
            goal_after(b, all.ready, goal_recv(b, t.child[k], tag, to, t.child_span[k] * s->bytes));
        }
    }
    if (t.parent >= 0) goal_after(b, goal_send(b, t.parent, tag, all.at, t.span * s->bytes), all.ready);
    return all;
}

void inter_fold(struct goal_build *b, const struct coll_shape *s, int tag, int64_t len)
{
    struct goal_mem dst = goal_mem(GOAL_RECV_BUF, 0);
    goal_id ready = goal_recv(b, inter_peer(s, s->remote - 1), tag, dst, len);
    for (int i = s->remote - 2; i >= 0; i--) {
        struct goal_mem x = goal_scratch(b, len);
        goal_id got = goal_recv(b, inter_peer(s, i), tag, x, len);
        ready = coll_fold(b, s, dst, x, true, dst, len, got, ready);
    }
}

/* ---- bcast ---------------------------------------------------------------- */

void inter_bcast_linear(struct goal_build *b, const struct coll_shape *s, const struct coll_given *v)
{
    struct goal_mem buf = goal_mem(GOAL_RECV_BUF, 0);
    enum inter_role role = inter_role(s);
    (void)v;
    for (int i = 0; i < s->remote && role == INTER_ROOT; i++) goal_send(b, inter_peer(s, i), CROSS, buf, s->bytes);
    if (role == INTER_MEMBER) goal_recv(b, inter_peer(s, s->root), CROSS, buf, s->bytes);
}

void inter_bcast_leader(struct goal_build *b, const struct coll_shape *s, const struct coll_given *v)
{
    struct goal_mem buf = goal_mem(GOAL_RECV_BUF, 0);
    enum inter_role role = inter_role(s);
    goal_id have = GOAL_NONE;
    (void)v;
    if (role == INTER_ROOT) goal_send(b, inter_peer(s, 0), CROSS, buf, s->bytes);
    if (role != INTER_MEMBER) return;
    if (s->rank == 0) have = goal_recv(b, inter_peer(s, s->root), CROSS, buf, s->bytes);
    inter_down(b, s, DOWN, buf, s->bytes, have);
}

/* One chunk [lo, hi) of a bcast: `staged` is where messages leave from and arrive, the user's buffer if it has no gaps. */
static goal_id load_chunk(struct goal_build *b, const struct coll_shape *s, struct goal_mem staged, int64_t lo, int64_t hi)
{
    if (!(s->flags & COLL_STAGED)) return GOAL_NONE;
    return goal_copy(b, goal_mem(GOAL_RECV_BUF, lo), goal_plus(staged, lo), hi - lo);
}

static goal_id store_chunk(struct goal_build *b, const struct coll_shape *s, struct goal_mem staged, int64_t lo, int64_t hi,
                           int from, int tag)
{
    goal_id got = goal_recv(b, from, tag, goal_plus(staged, lo), hi - lo);
    if (s->flags & COLL_STAGED)
        goal_after(b, goal_copy(b, goal_plus(staged, lo), goal_mem(GOAL_RECV_BUF, lo), hi - lo), got);
    return got;
}

/* A chunk from the root to each rank; then they travel around a ring. */
void inter_bcast_scatter(struct goal_build *b, const struct coll_shape *s, const struct coll_given *v)
{
    enum inter_role role = inter_role(s);
    struct goal_mem buf = goal_mem(GOAL_RECV_BUF, 0);
    (void)v;
    if (role == INTER_IDLE) return;
    if (s->flags & COLL_STAGED) buf = goal_scratch(b, s->bytes);
    for (int i = 0; i < s->remote && role == INTER_ROOT; i++) {
        int64_t lo = coll_chunk(s, i, s->remote), hi = coll_chunk(s, i + 1, s->remote);
        if (lo == hi) continue;
        goal_id ready = load_chunk(b, s, buf, lo, hi);
        goal_after(b, goal_send(b, inter_peer(s, i), CROSS, goal_plus(buf, lo), hi - lo), ready);
    }
    if (role == INTER_ROOT) return;
    int next = (s->rank + 1) % s->size, before = (s->rank - 1 + s->size) % s->size;
    for (int step = 0; step < s->size; step++) {
        int c = (s->rank - step + s->size) % s->size;
        int64_t lo = coll_chunk(s, c, s->size), hi = coll_chunk(s, c + 1, s->size);
        if (lo == hi) continue;
        goal_id got = step ? store_chunk(b, s, buf, lo, hi, before, coll_tag(step))
                           : store_chunk(b, s, buf, lo, hi, inter_peer(s, s->root), CROSS);
        if (step + 1 < s->size) goal_after(b, goal_send(b, next, coll_tag(step + 1), goal_plus(buf, lo), hi - lo), got);
    }
}

/* ---- reduce --------------------------------------------------------------- */

void inter_reduce_linear(struct goal_build *b, const struct coll_shape *s, const struct coll_given *v)
{
    enum inter_role role = inter_role(s);
    (void)v;
    if (role == INTER_ROOT) inter_fold(b, s, CROSS, s->bytes);
    if (role == INTER_MEMBER) goal_send(b, inter_peer(s, s->root), CROSS, coll_input(s), s->bytes);
}

void inter_reduce_leader(struct goal_build *b, const struct coll_shape *s, const struct coll_given *v)
{
    enum inter_role role = inter_role(s);
    (void)v;
    if (role == INTER_ROOT) goal_recv(b, inter_peer(s, 0), CROSS, goal_mem(GOAL_RECV_BUF, 0), s->bytes);
    if (role != INTER_MEMBER) return;
    struct inter_data sum = inter_reduce(b, s, UP, s->bytes);
    if (s->rank == 0) goal_after(b, goal_send(b, inter_peer(s, s->root), CROSS, sum.at, s->bytes), sum.ready);
}

/* Everyone combines a chunk and sends it to the root. */
void inter_reduce_chunks(struct goal_build *b, const struct coll_shape *s, const struct coll_given *v)
{
    enum inter_role role = inter_role(s);
    (void)v;
    for (int i = 0; i < s->remote && role == INTER_ROOT; i++) {
        int64_t lo = coll_chunk(s, i, s->remote), hi = coll_chunk(s, i + 1, s->remote);
        if (lo < hi) goal_recv(b, inter_peer(s, i), CROSS, goal_mem(GOAL_RECV_BUF, lo), hi - lo);
    }
    if (role != INTER_MEMBER) return;
    struct inter_data sum = inter_reduce_chunk(b, s, UP);
    int64_t n = coll_chunk(s, s->rank + 1, s->size) - coll_chunk(s, s->rank, s->size);
    if (n) goal_after(b, goal_send(b, inter_peer(s, s->root), CROSS, sum.at, n), sum.ready);
}

/* ---- gather, scatter ------------------------------------------------------ */

void inter_gather_linear(struct goal_build *b, const struct coll_shape *s, const struct coll_given *v)
{
    enum inter_role role = inter_role(s);
    if (role == INTER_MEMBER && s->bytes) goal_send(b, inter_peer(s, s->root), CROSS, goal_mem(GOAL_SEND_BUF, 0), s->bytes);
    for (int i = 0; i < s->remote && role == INTER_ROOT; i++) {
        struct goal_part to = coll_recv_block(s, v, i);
        if (to.len) goal_recv(b, inter_peer(s, i), CROSS, to.at, to.len);
    }
}

void inter_gather_leader(struct goal_build *b, const struct coll_shape *s, const struct coll_given *v)
{
    enum inter_role role = inter_role(s);
    (void)v;
    if (role == INTER_ROOT) goal_recv(b, inter_peer(s, 0), CROSS, goal_mem(GOAL_RECV_BUF, 0), s->remote * s->bytes);
    if (role != INTER_MEMBER) return;
    struct inter_data all = inter_gather(b, s, UP);
    if (s->rank == 0) goal_after(b, goal_send(b, inter_peer(s, s->root), CROSS, all.at, s->size * s->bytes), all.ready);
}

void inter_scatter_linear(struct goal_build *b, const struct coll_shape *s, const struct coll_given *v)
{
    enum inter_role role = inter_role(s);
    if (role == INTER_MEMBER && s->bytes) goal_recv(b, inter_peer(s, s->root), CROSS, goal_mem(GOAL_RECV_BUF, 0), s->bytes);
    for (int i = 0; i < s->remote && role == INTER_ROOT; i++) {
        struct goal_part from = coll_send_block(s, v, i);
        if (from.len) goal_send(b, inter_peer(s, i), CROSS, from.at, from.len);
    }
}

/* The blocks of a subtree come in one message, and go on in one to each subtree below. */
void inter_scatter_leader(struct goal_build *b, const struct coll_shape *s, const struct coll_given *v)
{
    enum inter_role role = inter_role(s);
    struct coll_tree t;
    (void)v;
    if (role == INTER_ROOT) goal_send(b, inter_peer(s, 0), CROSS, goal_mem(GOAL_SEND_BUF, 0), s->remote * s->bytes);
    if (role != INTER_MEMBER) return;
    coll_tree_binomial(&t, s->rank, s->size, 0);
    struct goal_mem own = goal_mem(GOAL_RECV_BUF, 0), x = t.children ? goal_scratch(b, t.span * s->bytes) : own;
    int from = t.parent < 0 ? inter_peer(s, s->root) : t.parent;
    goal_id got = goal_recv(b, from, t.parent < 0 ? CROSS : DOWN, x, t.span * s->bytes);
    for (int k = t.children - 1; k >= 0; k--) {
        struct goal_mem at = goal_plus(x, (t.child_vr[k] - t.vr) * s->bytes);
        goal_after(b, goal_send(b, t.child[k], DOWN, at, t.child_span[k] * s->bytes), got);
    }
    if (t.children) goal_after(b, goal_copy(b, x, own, s->bytes), got);
}
