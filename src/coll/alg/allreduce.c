/*
 * allreduce.c - all ranks get the combination of all inputs. Plain dissemination counts
 * inputs twice when the number of ranks is no power of two (GOAL-27); here the exchange
 * algorithms fold the surplus ranks into their neighbours first, in rank order, and the
 * dissemination proper grows windows that meet exactly.
 */
#include "coll/alg/halving.h"
#include "coll/alg/tree_reduce.h"

#include "base/err.h"
#include <stdlib.h>

static void own_copy(struct goal_build *b, const struct coll_shape *s)
{
    if (!coll_in_place(s)) goal_copy(b, coll_input(s), goal_mem(GOAL_RECV_BUF, 0), s->bytes);
}

/* The ranks that dropped out in halving_pair get the result from their neighbours. */
static void return_result(struct goal_build *b, const struct coll_shape *s, const struct halving *h, int tag,
                          goal_id ready)
{
    struct goal_mem dst = goal_mem(GOAL_RECV_BUF, 0);
    if (s->rank >= 2 * h->extra) return;
    if (h->num < 0)
        goal_after(b, goal_recv(b, s->rank + 1, tag, dst, s->bytes), coll_in_place(s) ? h->last : GOAL_NONE);
    else
        goal_after(b, goal_send(b, s->rank - 1, tag, dst, s->bytes), ready);
}

/*
 * Whole vectors are exchanged with partners at distance 1, 2, 4 ... Both partners combine them in the same order, so
 * that all ranks get the same bits; where mine is the left one and in dst, the result stays in the scratch of the
 * other.
 */
void coll_allreduce_doubling(struct goal_build *b, const struct coll_shape *s, const struct coll_given *v)
{
    struct goal_mem dst = goal_mem(GOAL_RECV_BUF, 0);
    struct halving h;
    (void)v;
    if (s->size == 1) return own_copy(b, s);
    halving_pair(b, s, dst, 0, &h);
    struct goal_mem acc = h.last == GOAL_NONE ? coll_input(s) : dst;
    goal_id reading = GOAL_NONE; /* the send that dst is in use by */
    int tag = 2;
    for (int mask = 1; mask < h.p && h.num >= 0; mask *= 2, tag++) {
        int partner = halving_rank(&h, h.num ^ mask);
        bool left = partner < s->rank || (s->flags & COLL_EXACT);
        struct goal_mem x = goal_scratch(b, s->bytes);
        goal_id sent = goal_send(b, partner, tag, acc, s->bytes), got = goal_recv(b, partner, tag, x, s->bytes), op;
        goal_after(b, sent, h.last);
        if (acc.slot == dst.slot) reading = sent;
        if (!left && acc.slot == dst.slot) {
            op = goal_reduce(b, acc, x, s->bytes);
            goal_after(b, op, got);
            acc = x;
        } else {
            op = coll_fold(b, s, acc, x, left, dst, s->bytes, got, reading);
            acc = dst;
        }
        goal_after(b, op, h.last);
        h.last = op;
    }
    if (h.num >= 0 && acc.slot != dst.slot) {
        goal_id stored = goal_copy(b, acc, dst, s->bytes);
        goal_after(b, stored, h.last);
        goal_after(b, stored, reading);
        h.last = stored;
    }
    return_result(b, s, &h, 1, h.last);
}

/*
 * ceil(log2 P) rounds for any P, every input used once (the census functions of Bar-Noy and Kipnis). E(k) is the
 * combination of the k ranks before me, I(k) = E(k) op mine. From a rank k+1 before me, I(k) extends E(k) to
 * E(2k+1); from a rank k before me, E(k) extends it to E(2k). The bits of P - 1, highest first, choose, and
 * I(P-1) is the result.
 */
void coll_allreduce_dissemination(struct goal_build *b, const struct coll_shape *s, const struct coll_given *v)
{
    struct goal_mem mine = coll_input(s), window = mine, dst = goal_mem(GOAL_RECV_BUF, 0);
    goal_id ready = GOAL_NONE, first_sent = GOAL_NONE;
    int64_t n = s->bytes;
    (void)v;
    if (s->size == 1) return own_copy(b, s);
    int k = 0, tag = 0;
    for (int bit = coll_pow2_below(s->size - 1); bit; bit /= 2, tag++) {
        bool odd = (s->size - 1) & bit;
        int d = odd ? k + 1 : k;
        struct goal_mem out = window, x = goal_scratch(b, n);
        goal_id out_ready = ready;
        if (odd && k) {
            out = goal_scratch(b, n);
            out_ready = goal_reduce3(b, window, mine, out, n);
            goal_after(b, out_ready, ready);
        }
        goal_id sent = goal_send(b, (s->rank + d) % s->size, tag, out, n);
        goal_id got = goal_recv(b, (s->rank - d + s->size) % s->size, tag, x, n);
        goal_after(b, sent, out_ready);
        if (k) { /* x = window op x; the window stays as it is for the send */
            goal_id joined = goal_reduce(b, window, x, n);
            goal_after(b, joined, got);
            goal_after(b, joined, ready);
            goal_after(b, joined, out_ready); /* so that all uses of my input come before the result */
            got = joined;
        } else {
            first_sent = sent;
        }
        window = x;
        ready = got;
        k += d;
    }
    coll_fold(b, s, mine, window, true, dst, n, ready, coll_in_place(s) ? first_sent : GOAL_NONE);
}

/* Allgather by recursive doubling of the chunks that halving left, in reverse order of its steps. */
static goal_id gather_chunks(struct goal_build *b, const struct coll_shape *s, struct halving *h, int tag)
{
    int step = 0;
    for (int m = 1; m < h->p; m *= 2) step++;
    goal_id ready = h->last;
    int lo = h->lo, hi = h->hi;
    for (int mask = h->p / 2; mask >= 1; mask /= 2) {
        int partner = halving_rank(h, h->num ^ mask), whole = hi - lo;
        int other = (h->num & mask) ? lo - whole : lo + whole; /* the partner's chunks: [other, other + whole) */
        int64_t at = coll_chunk(s, lo, h->p), n = coll_chunk(s, hi, h->p) - at;
        int64_t in = coll_chunk(s, other, h->p), in_n = coll_chunk(s, other + whole, h->p) - in;
        step--;
        goal_id sent = n ? goal_send(b, partner, tag + step, goal_plus(h->dst, at), n) : GOAL_NONE;
        goal_after(b, sent, ready);
        if (in_n) {
            goal_id got = goal_recv(b, partner, tag + step, goal_plus(h->dst, in), in_n), both = goal_join(b);
            goal_after(b, got, h->sent[step]); /* that half of the vector was given away from there */
            goal_after(b, both, got);
            goal_after(b, both, ready);
            ready = both;
        }
        if (other < lo) lo = other;
        hi = lo + 2 * whole;
    }
    return ready;
}

void coll_allreduce_halving(struct goal_build *b, const struct coll_shape *s, const struct coll_given *v)
{
    struct halving h;
    goal_id ready = GOAL_NONE;
    (void)v;
    if (s->size == 1) return own_copy(b, s);
    halving_pair(b, s, goal_mem(GOAL_RECV_BUF, 0), 0, &h);
    halving_reduce(b, s, 2, &h);
    if (h.num >= 0) ready = gather_chunks(b, s, &h, 2 + 32);
    return_result(b, s, &h, 1, ready);
}
