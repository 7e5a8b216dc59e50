/* allgather.c - allgather and allgatherv: every rank gets the blocks of all. */
#include "coll/alg/alg.h"

/* My own block into its place in the receive buffer; GOAL_NONE if it is there already. */
static goal_id place_own(struct goal_build *b, const struct coll_shape *s, const struct coll_given *v)
{
    struct goal_part to = coll_recv_block(s, v, s->rank);
    if (coll_in_place(s) || !to.len) return GOAL_NONE;
    return goal_copy(b, goal_mem(GOAL_SEND_BUF, 0), to.at, to.len);
}

/* In step i, block rank-i goes on to the next rank and block rank-i-1 comes from the one before. */
void coll_allgather_ring(struct goal_build *b, const struct coll_shape *s, const struct coll_given *v)
{
    int P = s->size, to = (s->rank + 1) % P, from = (s->rank - 1 + P) % P;
    goal_id have = place_own(b, s, v);
    for (int i = 0; i < P - 1; i++) {
        struct goal_part out = coll_recv_block(s, v, (s->rank - i + P) % P);
        struct goal_part in = coll_recv_block(s, v, (s->rank - i - 1 + P) % P);
        if (out.len) goal_after(b, goal_send(b, to, coll_tag(i), out.at, out.len), have);
        have = in.len ? goal_recv(b, from, coll_tag(i), in.at, in.len) : GOAL_NONE;
    }
}

/* Nobody waits for anybody on the way: best where messages are cheap and turns on the processor are not. */
void coll_allgather_direct(struct goal_build *b, const struct coll_shape *s, const struct coll_given *v)
{
    struct goal_part own = coll_recv_block(s, v, s->rank);
    struct goal_mem from = coll_in_place(s) ? own.at : goal_mem(GOAL_SEND_BUF, 0);
    for (int i = 1; i < s->size; i++) {
        int to = (s->rank + i) % s->size, peer = (s->rank - i + s->size) % s->size;
        struct goal_part in = coll_recv_block(s, v, peer);
        if (in.len) goal_recv(b, peer, 0, in.at, in.len);
        if (own.len) goal_send(b, to, 0, from, own.len);
    }
    place_own(b, s, v);
}

/* For 2^k ranks: the blocks held double in each exchange, all in their places. */
void coll_allgather_doubling(struct goal_build *b, const struct coll_shape *s, const struct coll_given *v)
{
    goal_id have = place_own(b, s, v);
    int tag = 0;
    for (int mask = 1; mask < s->size; mask *= 2, tag++) {
        int partner = s->rank ^ mask, mine = s->rank & -mask, theirs = partner & -mask;
        struct goal_mem from = goal_mem(GOAL_RECV_BUF, mine * s->bytes),
                        to = goal_mem(GOAL_RECV_BUF, theirs * s->bytes);
        goal_after(b, goal_send(b, partner, tag, from, mask * s->bytes), have);
        goal_id got = goal_recv(b, partner, tag, to, mask * s->bytes), both = goal_join(b);
        goal_after(b, both, got);
        goal_after(b, both, have);
        have = both;
    }
}

/* Scratch holds the blocks from my own upwards, wrapped around; they double in each round, then go to their places. */
void coll_allgather_bruck(struct goal_build *b, const struct coll_shape *s, const struct coll_given *v)
{
    int P = s->size, tag = 0;
    if (P == 1) {
        place_own(b, s, v);
        return;
    }
    struct goal_mem x = goal_scratch(b, P * s->bytes);
    struct goal_mem own = coll_in_place(s) ? coll_recv_block(s, v, s->rank).at : goal_mem(GOAL_SEND_BUF, 0);
    goal_id have = goal_copy(b, own, x, s->bytes);
    for (int64_t d = 1; d < P; d *= 2, tag++) {
        int64_t n = (d < P - d ? d : P - d) * s->bytes;
        int to = (int)((s->rank - d + P) % P), from = (int)((s->rank + d) % P);
        goal_after(b, goal_send(b, to, tag, x, n), have);
        goal_id got = goal_recv(b, from, tag, goal_plus(x, d * s->bytes), n), both = goal_join(b);
        goal_after(b, both, got);
        goal_after(b, both, have);
        have = both;
    }
    struct goal_part in = {x, P * s->bytes};
    struct goal_part out[2] = {{goal_mem(GOAL_RECV_BUF, s->rank * s->bytes), (P - s->rank) * s->bytes},
                               {goal_mem(GOAL_RECV_BUF, 0), s->rank * s->bytes}};
    goal_after(b, goal_copyv(b, &in, 1, out, 2), have);
}
