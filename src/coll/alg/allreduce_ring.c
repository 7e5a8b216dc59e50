/*
 * allreduce_ring.c - allreduce around a ring: chunks of 1/P are combined on their way to their last rank, then go
 * around once more. Segmented, the vector is cut into pieces first, each with a ring of its own: while one is combined
 * another is on the wire.
 */
#include "coll/alg/alg.h"

#include "base/err.h"
#include <stdlib.h>

struct ring {
    struct goal_build *b;
    struct coll_shape s; /* of one piece: bytes is its length */
    int64_t lo;          /* where the piece begins */
    int tag;             /* of its first step */
    goal_id *sent;       /* by step of the first half */
};

/*
 * One of the 2 (P - 1) steps of a ring. Chunk rank-i goes to the next rank, chunk rank-i-1 comes from the one before:
 * in the first half to be combined with this rank's part, in the second half complete, to stay.
 */
static goal_id ring_step(struct ring *c, int i, goal_id ready)
{
    const struct coll_shape *s = &c->s;
    struct goal_mem dst = goal_mem(GOAL_RECV_BUF, c->lo), in = goal_plus(coll_input(s), c->lo);
    int P = s->size, to = (s->rank + 1) % P, from = (s->rank - 1 + P) % P, tag = coll_tag(c->tag + i);
    int out_c = (s->rank - i + 2 * P) % P, in_c = (s->rank - i - 1 + 2 * P) % P;
    int64_t out = coll_chunk(s, out_c, P), out_n = coll_chunk(s, out_c + 1, P) - out;
    int64_t at = coll_chunk(s, in_c, P), n = coll_chunk(s, in_c + 1, P) - at;
    if (out_n) {
        goal_id send = goal_send(c->b, to, tag, goal_plus(i ? dst : in, out), out_n);
        goal_after(c->b, send, ready);
        if (i < P - 1) c->sent[i] = send;
    }
    if (!n) return GOAL_NONE;
    if (i < P - 1) {
        struct goal_mem x = goal_scratch(c->b, n);
        goal_id got = goal_recv(c->b, from, tag, x, n);
        return coll_fold(c->b, s, goal_plus(in, at), x, true, goal_plus(dst, at), n, got, GOAL_NONE);
    }
    goal_id got = goal_recv(c->b, from, tag, goal_plus(dst, at), n);
    goal_after(c->b, got, c->sent[i + 1 - P]); /* when this chunk left here, unfinished */
    return got;
}

/* The vector in `pieces` pieces. */
static void rings(struct goal_build *b, const struct coll_shape *s, int pieces)
{
    struct ring c = {.b = b, .s = *s};
    if (s->size == 1) {
        if (!coll_in_place(s)) goal_copy(b, coll_input(s), goal_mem(GOAL_RECV_BUF, 0), s->bytes);
        return;
    }
    c.sent = malloc((size_t)s->size * sizeof *c.sent);
    if (!c.sent) return goal_build_fail(b, err_set(TERN_ERR_NOMEM, "no memory to build a ring of %d ranks", s->size));
    for (int k = 0; k < pieces; k++) {
        goal_id ready = GOAL_NONE;
        c.lo = coll_chunk(s, k, pieces);
        c.s.bytes = coll_chunk(s, k + 1, pieces) - c.lo;
        c.tag = k * 2 * (s->size - 1);
        for (int i = 0; i < s->size; i++) c.sent[i] = GOAL_NONE;
        for (int i = 0; i < 2 * (s->size - 1); i++) ready = ring_step(&c, i, ready);
    }
    free(c.sent);
}

void coll_allreduce_ring(struct goal_build *b, const struct coll_shape *s, const struct coll_given *v)
{
    (void)v;
    rings(b, s, 1);
}

void coll_allreduce_ring_segmented(struct goal_build *b, const struct coll_shape *s, const struct coll_given *v)
{
    int64_t most = 32768 / s->size, pieces = s->bytes / s->size / coll_segment(s) + 1; /* tags are 16 bits */
    (void)v;
    if (pieces > 64) pieces = 64;
    rings(b, s, (int)(pieces < most ? pieces : most > 1 ? most : 1));
}
