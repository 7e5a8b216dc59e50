/*
 * allgather_blocks.c - allgather and allgatherv whose messages are bundles of blocks of ranks that follow each
 * other, sent from their places in the receive buffer and received into them: no scratch, for blocks of any lengths.
 */
#include "coll/alg/alg.h"

#include "base/err.h"
#include <stdlib.h>

struct bundles {
    struct goal_build *b;
    const struct coll_shape *s;
    const struct coll_given *v;
    struct goal_part *part; /* room for a bundle of all blocks */
};

static bool bundles_open(struct bundles *c, struct goal_build *b, const struct coll_shape *s,
                         const struct coll_given *v)
{
    *c = (struct bundles){b, s, v, malloc(((size_t)s->size + 1) * sizeof *c->part)};
    if (!c->part) goal_build_fail(b, err_set(TERN_ERR_NOMEM, "no memory to build an allgather of %d ranks", s->size));
    return c->part;
}

/* The blocks of n ranks from `first` on, wrapped around, as pieces: neighbours in memory are one. Returns how many. */
static int bundle(const struct bundles *c, int first, int n)
{
    int k = 0;
    for (int i = 0; i < n; i++) {
        struct goal_part p = coll_recv_block(c->s, c->v, (first + i) % c->s->size);
        if (!p.len) continue;
        if (k && c->part[k - 1].at.off + c->part[k - 1].len == p.at.off)
            c->part[k - 1].len += p.len;
        else
            c->part[k++] = p;
    }
    return k;
}

static void bundle_send(const struct bundles *c, int to, int tag, int first, int n, goal_id after)
{
    int k = bundle(c, first, n);
    if (k) goal_after(c->b, goal_sendv(c->b, to, tag, c->part, k), after);
}

static goal_id bundle_recv(const struct bundles *c, int from, int tag, int first, int n)
{
    int k = bundle(c, first, n);
    return k ? goal_recvv(c->b, from, tag, c->part, k) : GOAL_NONE;
}

static goal_id place_own(const struct bundles *c)
{
    struct goal_part to = coll_recv_block(c->s, c->v, c->s->rank);
    if (coll_in_place(c->s) || !to.len) return GOAL_NONE;
    return goal_copy(c->b, goal_mem(GOAL_SEND_BUF, 0), to.at, to.len);
}

/* A rank with the blocks of w ranks from itself on gets those of radix - 1 times as many from the ranks that have them.
 */
static void bruck(struct goal_build *b, const struct coll_shape *s, const struct coll_given *v, int radix)
{
    struct bundles c;
    int P = s->size, tag = 0;
    if (!bundles_open(&c, b, s, v)) return;
    goal_id have = place_own(&c);
    for (int64_t w = 1; w < P; w *= radix) {
        goal_id round = have;
        for (int64_t d = w; d < radix * w && d < P; d += w, tag++) {
            int n = (int)(w < P - d ? w : P - d), from = (int)((s->rank + d) % P);
            bundle_send(&c, (int)((s->rank - d + P) % P), tag, s->rank, n, have);
            round = coll_both(b, round, bundle_recv(&c, from, tag, from, n));
        }
        have = round;
    }
    free(c.part);
}

void coll_allgather_blocks_bruck(struct goal_build *b, const struct coll_shape *s, const struct coll_given *v)
{
    bruck(b, s, v, 2);
}

void coll_allgather_kbruck(struct goal_build *b, const struct coll_shape *s, const struct coll_given *v)
{
    bruck(b, s, v, coll_radix(s));
}

/*
 * Ranks 2j and 2j + 1 are a pair. After they have exchanged their blocks, each passes on the pair's to its other
 * neighbour, and what it got from that one to the first again, and so on: P / 2 steps, messages between neighbours
 * only.
 */
void coll_allgather_neighbor(struct goal_build *b, const struct coll_shape *s, const struct coll_given *v)
{
    struct bundles c;
    int P = s->size, pairs = P / 2, odd = s->rank % 2, pair = s->rank / 2;
    int twin = s->rank ^ 1, other = odd ? (s->rank + 1) % P : (s->rank - 1 + P) % P, out = pair;
    if (!bundles_open(&c, b, s, v)) return;
    goal_id own = place_own(&c);
    bundle_send(&c, twin, 0, s->rank, 1, own);
    goal_id have = coll_both(b, own, bundle_recv(&c, twin, 0, twin, 1));
    for (int i = 1; i < pairs; i++) {
        int peer = i % 2 ? other : twin, far = (i + 1) / 2;
        int in = (odd == (i % 2) ? pair + far : pair - far + P) % pairs;
        bundle_send(&c, peer, coll_tag(i), 2 * out, 2, have);
        have = bundle_recv(&c, peer, coll_tag(i), 2 * in, 2);
        out = in;
    }
    free(c.part);
}

/* Up a binomial tree to rank 0, every rank keeping what comes by, then down again what it has not. */
void coll_allgather_gather_bcast(struct goal_build *b, const struct coll_shape *s, const struct coll_given *v)
{
    enum { UP = 0, DOWN = 1 };
    struct bundles c;
    struct coll_tree t;
    int P = s->size;
    if (!bundles_open(&c, b, s, v)) return;
    coll_tree_binomial(&t, s->rank, P, 0);
    goal_id have = coll_both(b, place_own(&c), GOAL_NONE);
    for (int k = 0; k < t.children; k++)
        goal_after(b, have, bundle_recv(&c, t.child[k], UP, t.child[k], t.child_span[k]));
    if (t.parent >= 0) {
        bundle_send(&c, t.parent, UP, s->rank, t.span, have);
        have = coll_both(b, have, bundle_recv(&c, t.parent, DOWN, s->rank + t.span, P - t.span));
    }
    for (int k = t.children - 1; k >= 0; k--)
        bundle_send(&c, t.child[k], DOWN, t.child[k] + t.child_span[k], P - t.child_span[k], have);
    free(c.part);
}
