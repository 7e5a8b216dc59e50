/* halving.c - see halving.h. */
#include "coll/alg/halving.h"

void halving_number(const struct coll_shape *s, struct halving *h)
{
    int p = coll_pow2_below(s->size), extra = s->size - p;
    *h = (struct halving){.p = p, .extra = extra, .num = s->rank - extra, .hi = p, .last = GOAL_NONE};
    if (s->rank < 2 * extra) h->num = s->rank % 2 ? s->rank / 2 : -1;
}

void halving_pair(struct goal_build *b, const struct coll_shape *s, struct goal_mem dst, int tag, struct halving *h)
{
    struct goal_mem in = coll_input(s);
    halving_number(s, h);
    h->in = in;
    h->dst = dst;
    if (s->rank >= 2 * h->extra) return;
    if (h->num < 0) {
        h->last = goal_send(b, s->rank + 1, tag, in, s->bytes);
        return;
    }
    struct goal_mem x = goal_scratch(b, s->bytes);
    goal_id got = goal_recv(b, s->rank - 1, tag, x, s->bytes);
    h->last = coll_fold(b, s, in, x, true, dst, s->bytes, got, GOAL_NONE);
}

void halving_reduce(struct goal_build *b, const struct coll_shape *s, int tag, struct halving *h)
{
    struct goal_mem acc = h->last == GOAL_NONE ? h->in : h->dst;
    int k = 0;
    if (h->num < 0) return;
    for (int mask = 1; mask < h->p; mask *= 2, k++) {
        int partner = halving_rank(h, h->num ^ mask), lo = h->lo, hi = h->hi;
        int give_lo = h->lo, give_hi = h->hi;
        halving_keep(h->num, mask, &lo, &hi);
        halving_keep(h->num ^ mask, mask, &give_lo, &give_hi);
        int64_t at = halving_at(h, s, lo), n = halving_at(h, s, hi) - at;
        int64_t give = halving_at(h, s, give_lo), give_n = halving_at(h, s, give_hi) - give;
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
