/* halving.c - see halving.h. */
#include "coll/halving.h"

void halving_pair(struct goal_build *b, const struct coll_shape *s, struct goal_mem dst, int tag, struct halving *h)
{
    struct goal_mem in = coll_input(s);
    int p = coll_pow2_below(s->size), extra = s->size - p;
    *h = (struct halving){.p = p, .extra = extra, .num = s->rank - extra, .dst = dst, .hi = p, .last = GOAL_NONE};
    if (s->rank >= 2 * extra) return;
    if (s->rank % 2 == 0) {
        h->num = -1;
        h->last = goal_send(b, s->rank + 1, tag, in, s->bytes);
        return;
    }
    h->num = s->rank / 2;
    struct goal_mem x = goal_scratch(b, s->bytes);
    goal_id got = goal_recv(b, s->rank - 1, tag, x, s->bytes);
    h->last = coll_fold(b, s, in, x, true, dst, s->bytes, got, GOAL_NONE);
}

void halving_reduce(struct goal_build *b, const struct coll_shape *s, int tag, struct halving *h)
{
    struct goal_mem acc = h->last == GOAL_NONE ? coll_input(s) : h->dst;
    int k = 0;
    if (h->num < 0) return;
    for (int mask = 1; mask < h->p; mask *= 2, k++) {
        int partner = halving_rank(h, h->num ^ mask), lo = h->lo, hi = h->hi;
        int give_lo = h->lo, give_hi = h->hi;
        halving_keep(h->num, mask, &lo, &hi);
        halving_keep(h->num ^ mask, mask, &give_lo, &give_hi);
        int64_t at = coll_chunk(s, lo, h->p), n = coll_chunk(s, hi, h->p) - at;
        int64_t give = coll_chunk(s, give_lo, h->p), give_n = coll_chunk(s, give_hi, h->p) - give;
        h->sent[k] = GOAL_NONE;
        if (give_n) {
            h->sent[k] = goal_send(b, partner, tag + k, goal_plus(acc, give), give_n);
            goal_after(b, h->sent[k], h->last);
        }
        if (n) {
            struct goal_mem x = goal_scratch(b, n);
            goal_id got = goal_recv(b, partner, tag + k, x, n);
            h->last = coll_fold(b, s, goal_plus(acc, at), x, partner < s->rank, goal_plus(h->dst, at), n, got, h->last);
        }
        acc = h->dst;
        h->lo = lo;
        h->hi = hi;
    }
}
