/*
 * inter_all.c - between two groups (MPI-5.0 6.2.3): the operations without a root, in which
 * each group gets what comes of the other one's data. The amounts in the two directions may
 * differ: s->bytes is a block that goes there, s->from one that comes from there.
 */
#include "coll/alg/inter.h"

#include "base/err.h"
#include <stdlib.h>

enum { UP = 0, DOWN = 1, CROSS = 0 }; /* tags */

/* ---- barrier: nobody leaves before the whole other group has come ---------- */

void inter_barrier_leader(struct goal_build *b, const struct coll_shape *s, const struct coll_given *v)
{
    struct coll_tree t;
    (void)v;
    coll_tree_binomial(&t, s->rank, s->size, 0);
    goal_id come = goal_join(b), go;
    for (int k = 0; k < t.children; k++) goal_after(b, come, goal_recvv(b, t.child[k], UP, NULL, 0));
    int to = t.parent < 0 ? inter_peer(s, 0) : t.parent;
    goal_after(b, goal_sendv(b, to, t.parent < 0 ? CROSS : UP, NULL, 0), come);
    go = t.parent < 0 ? goal_recvv(b, to, CROSS, NULL, 0) : goal_recvv(b, to, DOWN, NULL, 0);
    for (int k = t.children - 1; k >= 0; k--) goal_after(b, goal_sendv(b, t.child[k], DOWN, NULL, 0), go);
}

void inter_barrier_direct(struct goal_build *b, const struct coll_shape *s, const struct coll_given *v)
{
    (void)v;
    for (int i = 0; i < s->remote; i++) {
        int peer = inter_peer(s, (s->rank + i) % s->remote);
        goal_sendv(b, peer, CROSS, NULL, 0);
        goal_recvv(b, peer, CROSS, NULL, 0);
    }
}

/* ---- rings ---------------------------------------------------------------- */

/*
 * Blocks of the other group, in[] (one a rank there): each has come to the own rank that has its number modulo the size
 * of the group, and goes around the ring.
 */
static void ring(struct goal_build *b, const struct coll_shape *s, const struct goal_part *in)
{
    int next = (s->rank + 1) % s->size, before = (s->rank - 1 + s->size) % s->size;
    for (int step = 0; step < s->size; step++)
        for (int i = (s->rank - step + s->size) % s->size; i < s->remote; i += s->size) {
            if (!in[i].len) continue;
            goal_id got = step ? goal_recv(b, before, coll_tag(i), in[i].at, in[i].len)
                               : goal_recv(b, inter_peer(s, i), CROSS, in[i].at, in[i].len);
            if (step + 1 < s->size) goal_after(b, goal_send(b, next, coll_tag(i), in[i].at, in[i].len), got);
        }
}

static struct goal_part *parts(struct goal_build *b, const struct coll_shape *s)
{
    struct goal_part *p = malloc((size_t)s->remote * sizeof *p);
    if (!p) goal_build_fail(b, err_set(TERN_ERR_NOMEM, "no memory to build a ring for %d blocks", s->remote));
    return p;
}

/* ---- allreduce ------------------------------------------------------------- */

void inter_allreduce_leader(struct goal_build *b, const struct coll_shape *s, const struct coll_given *v)
{
    struct goal_mem dst = goal_mem(GOAL_RECV_BUF, 0);
    struct inter_data sum = inter_reduce(b, s, UP, s->bytes);
    goal_id got = GOAL_NONE;
    (void)v;
    if (s->rank == 0) {
        goal_after(b, goal_send(b, inter_peer(s, 0), CROSS, sum.at, s->bytes), sum.ready);
        got = goal_recv(b, inter_peer(s, 0), CROSS, dst, s->bytes);
    }
    inter_down(b, s, DOWN, dst, s->bytes, got);
}

/* Everyone sends its input to everyone there: one stage, which needs nobody on the way. */
void inter_allreduce_direct(struct goal_build *b, const struct coll_shape *s, const struct coll_given *v)
{
    (void)v;
    for (int i = 0; i < s->remote; i++)
        goal_send(b, inter_peer(s, (s->rank + i) % s->remote), CROSS, coll_input(s), s->bytes);
    inter_fold(b, s, CROSS, s->bytes);
}

/* Every rank combines a chunk of its group and sends it across; the chunks of the others go around a ring. */
void inter_allreduce_chunks(struct goal_build *b, const struct coll_shape *s, const struct coll_given *v)
{
    struct goal_part *in = parts(b, s);
    enum { CHUNK_TAG = 65535 }; /* none of the ring's */
    (void)v;
    if (!in) return;
    struct inter_data sum = inter_reduce_chunk(b, s, CHUNK_TAG);
    int64_t n = coll_chunk(s, s->rank + 1, s->size) - coll_chunk(s, s->rank, s->size);
    if (n) goal_after(b, goal_send(b, inter_peer(s, s->rank % s->remote), CROSS, sum.at, n), sum.ready);
    for (int i = 0; i < s->remote; i++) {
        int64_t lo = coll_chunk(s, i, s->remote);
        in[i] = (struct goal_part){goal_mem(GOAL_RECV_BUF, lo), coll_chunk(s, i + 1, s->remote) - lo};
    }
    ring(b, s, in);
    free(in);
}

/* ---- allgather, allgatherv --------------------------------------------------- */

void inter_allgather_leader(struct goal_build *b, const struct coll_shape *s, const struct coll_given *v)
{
    struct goal_mem dst = goal_mem(GOAL_RECV_BUF, 0);
    int64_t out = s->size * s->bytes, in = s->remote * s->from;
    goal_id got = GOAL_NONE;
    (void)v;
    if (out) {
        struct inter_data all = inter_gather(b, s, UP);
        if (s->rank == 0) goal_after(b, goal_send(b, inter_peer(s, 0), CROSS, all.at, out), all.ready);
    }
    if (!in) return;
    if (s->rank == 0) got = goal_recv(b, inter_peer(s, 0), CROSS, dst, in);
    inter_down(b, s, DOWN, dst, in, got);
}

void inter_allgather_direct(struct goal_build *b, const struct coll_shape *s, const struct coll_given *v)
{
    for (int i = 0; i < s->remote; i++) {
        int r = (s->rank + i) % s->remote;
        struct goal_part in = inter_in_block(s, v, r);
        if (s->bytes) goal_send(b, inter_peer(s, r), CROSS, goal_mem(GOAL_SEND_BUF, 0), s->bytes);
        if (in.len) goal_recv(b, inter_peer(s, r), CROSS, in.at, in.len);
    }
}

/* Every block crosses once. */
void inter_allgather_ring(struct goal_build *b, const struct coll_shape *s, const struct coll_given *v)
{
    struct goal_part *in = parts(b, s);
    if (!in) return;
    if (s->bytes) goal_send(b, inter_peer(s, s->rank % s->remote), CROSS, goal_mem(GOAL_SEND_BUF, 0), s->bytes);
    for (int i = 0; i < s->remote; i++) in[i] = inter_in_block(s, v, i);
    ring(b, s, in);
    free(in);
}

/* ---- alltoall, alltoallv, alltoallw ------------------------------------------ */

/* The rank's k-th partners: it sends to rank + k and receives from rank - k, modulo the size of the larger group. */
static goal_id exchange(struct goal_build *b, const struct coll_shape *s, const struct coll_given *v, int k, goal_id after)
{
    int n = s->size > s->remote ? s->size : s->remote, to = (s->rank + k) % n, from = (s->rank - k + n) % n;
    goal_id both = goal_join(b);
    goal_after(b, both, after);
    struct goal_part in = from < s->remote ? inter_in_block(s, v, from) : (struct goal_part){.len = 0};
    struct goal_part out = to < s->remote ? coll_send_block(s, v, to) : (struct goal_part){.len = 0};
    if (in.len) {
        goal_id got = goal_recv(b, inter_peer(s, from), CROSS, in.at, in.len);
        goal_after(b, got, after);
        goal_after(b, both, got);
    }
    if (out.len) {
        goal_id sent = goal_send(b, inter_peer(s, to), CROSS, out.at, out.len);
        goal_after(b, sent, after);
        goal_after(b, both, sent);
    }
    return both;
}

/* So many partners at a time. */
void inter_alltoall_pairwise(struct goal_build *b, const struct coll_shape *s, const struct coll_given *v)
{
    enum { WINDOW = 4 };
    goal_id end[WINDOW] = {GOAL_NONE, GOAL_NONE, GOAL_NONE, GOAL_NONE};
    for (int k = 0; k < s->size || k < s->remote; k++) end[k % WINDOW] = exchange(b, s, v, k, end[k % WINDOW]);
}

void inter_alltoall_direct(struct goal_build *b, const struct coll_shape *s, const struct coll_given *v)
{
    for (int i = 0; i < s->remote; i++) {
        int r = (s->rank + i) % s->remote;
        struct goal_part in = inter_in_block(s, v, r), out = coll_send_block(s, v, r);
        if (in.len) goal_recv(b, inter_peer(s, r), CROSS, in.at, in.len);
        if (out.len) goal_send(b, inter_peer(s, r), CROSS, out.at, out.len);
    }
}

/* ---- reduce_scatter, reduce_scatter_block ------------------------------------ */

/* The leaders swap the sums of their groups; each deals out the other's by the lengths of its own group. */
void inter_reduce_scatter_leader(struct goal_build *b, const struct coll_shape *s, const struct coll_given *v)
{
    struct goal_mem dst = goal_mem(GOAL_RECV_BUF, 0);
    struct goal_part own = coll_send_block(s, v, s->rank), last = coll_send_block(s, v, s->size - 1);
    int64_t all = last.at.off + last.len;
    if (!all) return;
    struct inter_data sum = inter_reduce(b, s, UP, all);
    if (s->rank > 0) {
        if (own.len) goal_recv(b, 0, DOWN, dst, own.len);
        return;
    }
    struct goal_mem theirs = s->size > 1 ? goal_scratch(b, all) : dst;
    goal_after(b, goal_send(b, inter_peer(s, 0), CROSS, sum.at, all), sum.ready);
    goal_id got = goal_recv(b, inter_peer(s, 0), CROSS, theirs, all);
    for (int i = 1; i < s->size; i++) {
        struct goal_part out = coll_send_block(s, v, i);
        if (out.len) goal_after(b, goal_send(b, i, DOWN, goal_plus(theirs, out.at.off), out.len), got);
    }
    if (s->size > 1 && own.len) goal_after(b, goal_copy(b, theirs, dst, own.len), got);
}

/* Blocks of one length only: what the ranks there have as theirs is known here. It must come out even. */
void inter_reduce_scatter_direct(struct goal_build *b, const struct coll_shape *s, const struct coll_given *v)
{
    int64_t all = s->bytes * s->size, theirs = all / s->remote;
    if (all % (s->remote * s->grain)) return inter_reduce_scatter_leader(b, s, v);
    for (int i = 0; i < s->remote; i++) {
        int to = (s->rank + i) % s->remote;
        goal_send(b, inter_peer(s, to), CROSS, goal_plus(coll_input(s), to * theirs), theirs);
    }
    inter_fold(b, s, CROSS, s->bytes);
}
