/*
 * alltoall.c - alltoall, alltoallv and alltoallw: a block from everyone to everyone.
 */
#include "coll/alg/alg.h"

#include "base/err.h"
#include <stdlib.h>

enum { WINDOW_PAIRWISE = 4, WINDOW_MAX = 16 }; /* exchanges of one rank under way at a time */

static void own_block(struct goal_build *b, const struct coll_shape *s, const struct coll_given *v)
{
    struct goal_part to = coll_recv_block(s, v, s->rank);
    if (coll_in_place(s) || !to.len) return;
    goal_copy(b, coll_send_block(s, v, s->rank).at, to.at, to.len);
}

/* The exchange with two peers; `after` is awaited first. Returns an operation that ends it. */
static goal_id exchange(struct goal_build *b, const struct coll_shape *s, const struct coll_given *v, int to, int from,
                        goal_id after)
{
    struct goal_part out = coll_send_block(s, v, to), in = coll_recv_block(s, v, from);
    goal_id end = goal_join(b);
    if (in.len) {
        goal_id got = goal_recv(b, from, 0, in.at, in.len);
        goal_after(b, got, after);
        goal_after(b, end, got);
    }
    if (out.len) {
        goal_id sent = goal_send(b, to, 0, out.at, out.len);
        goal_after(b, sent, after);
        goal_after(b, end, sent);
    }
    goal_after(b, end, after);
    return end;
}

/* In place, with one peer: what it sends waits in scratch until my block for it has left. */
static goal_id swap(struct goal_build *b, const struct coll_shape *s, const struct coll_given *v, int peer,
                    struct goal_mem x, goal_id after)
{
    struct goal_part block = coll_recv_block(s, v, peer);
    if (!block.len) return after;
    goal_id sent = goal_send(b, peer, 0, block.at, block.len), got = goal_recv(b, peer, 0, x, block.len);
    goal_id stored = goal_copy(b, x, block.at, block.len);
    goal_after(b, sent, after);
    goal_after(b, got, after);
    goal_after(b, stored, sent);
    goal_after(b, stored, got);
    return stored;
}

/*
 * P steps, at most `window` of them under way, each with the ranks that many before and behind. In place both
 * directions of a pair belong to one step: partners in step i are the ranks that add up to i.
 */
static void staged(struct goal_build *b, const struct coll_shape *s, const struct coll_given *v, int window)
{
    goal_id end[WINDOW_MAX];
    struct goal_mem x[WINDOW_MAX] = {{0, 0}};
    int64_t largest = 0;
    for (int i = 0; i < s->size && coll_in_place(s); i++) {
        int64_t n = coll_recv_block(s, v, i).len;
        if (n > largest) largest = n;
    }
    for (int w = 0; w < window; w++) {
        end[w] = GOAL_NONE;
        if (coll_in_place(s)) x[w] = goal_scratch(b, largest);
    }
    for (int i = 0; i < s->size; i++) {
        int behind = (s->rank + i) % s->size, before = (s->rank - i + s->size) % s->size, w = i % window;
        int partner = (i - s->rank + s->size) % s->size;
        if (coll_in_place(s) && partner != s->rank)
            end[w] = swap(b, s, v, partner, x[w], end[w]);
        else if (!coll_in_place(s) && i)
            end[w] = exchange(b, s, v, behind, before, end[w]);
    }
    own_block(b, s, v);
}

void coll_alltoall_pairwise(struct goal_build *b, const struct coll_shape *s, const struct coll_given *v)
{
    staged(b, s, v, WINDOW_PAIRWISE);
}

void coll_alltoall_linear(struct goal_build *b, const struct coll_shape *s, const struct coll_given *v)
{
    staged(b, s, v, coll_radix(s));
}

/* Everything at once. */
void coll_alltoall_direct(struct goal_build *b, const struct coll_shape *s, const struct coll_given *v)
{
    if (coll_in_place(s)) {
        staged(b, s, v, WINDOW_MAX);
        return;
    }
    for (int i = 1; i < s->size; i++) {
        int to = (s->rank + i) % s->size, from = (s->rank - i + s->size) % s->size;
        struct goal_part out = coll_send_block(s, v, to), in = coll_recv_block(s, v, from);
        if (in.len) goal_recv(b, from, 0, in.at, in.len);
        if (out.len) goal_send(b, to, 0, out.at, out.len);
    }
    own_block(b, s, v);
}

/*
 * Bruck (GOAL-26): a block for the rank d behind me travels the digits of d in base `radix`, lowest first: in the round
 * of weight w all blocks whose digit there is k go k * w ranks on, for each k in a message of its own. Scratch holds
 * block d at place d; a message gathers its blocks in a bundle.
 *
 * The rounds share their bundles, one in each direction for each k: with many ranks a bundle for each round would be
 * most of the memory. So a round packs when the message of the round before is out, and receives when its bundle is
 * unpacked.
 */
struct bundle {
    struct goal_mem out, in;
    goal_id sent, stored; /* the last operations that used them */
};

/* The places of the bundle of weight w and digit k, into part, those that lie together as one; how many parts, and in
 * *bytes of all. */
static int places_of(const struct coll_shape *s, struct goal_mem x, int64_t w, int64_t k, int radix,
                     struct goal_part *part, int64_t *bytes)
{
    int n = 0;
    *bytes = 0;
    for (int64_t d = k * w; d < s->size; d += radix * w) {
        int64_t len = (d + w < s->size ? w : s->size - d) * s->bytes;
        part[n++] = (struct goal_part){goal_plus(x, d * s->bytes), len};
        *bytes += len;
    }
    return n;
}

static int64_t most_places(int64_t size, int64_t k, int radix)
{
    int64_t most = 0;
    for (int64_t w = 1; k * w < size; w *= radix) {
        int64_t lap = radix * w, rest = size % lap - k * w;
        int64_t n = size / lap * w + (rest < 0 ? 0 : rest < w ? rest : w);
        if (n > most) most = n;
    }
    return most;
}

static void bruck_bundle(struct goal_build *b, const struct coll_shape *s, struct goal_mem x, int64_t w, int64_t k,
                         int radix, int tag, struct goal_part *part, goal_id have, struct bundle *u)
{
    int64_t bytes;
    int n = places_of(s, x, w, k, radix, part, &bytes), P = s->size;
    struct goal_part out = {u->out, bytes}, in = {u->in, bytes};
    goal_id packed = goal_copyv(b, part, n, &out, 1);
    goal_after(b, packed, have);
    goal_after(b, packed, u->sent);
    u->sent = goal_send(b, (int)((s->rank + k * w) % P), tag, out.at, out.len);
    goal_id got = goal_recv(b, (int)((s->rank - k * w + P) % P), tag, in.at, in.len);
    goal_after(b, u->sent, packed);
    goal_after(b, got, u->stored);
    u->stored = goal_copyv(b, &in, 1, part, n);
    goal_after(b, u->stored, packed);
    goal_after(b, u->stored, got);
}

/* Returns where the places of x have their new blocks. */
static goal_id bruck_rounds(struct goal_build *b, const struct coll_shape *s, struct goal_mem x, int radix,
                            struct goal_part *part, goal_id have)
{
    struct bundle use[WINDOW_MAX];
    int tag = 0;
    for (int k = 1; k < radix; k++) {
        int64_t bytes = most_places(s->size, k, radix) * s->bytes;
        use[k] = (struct bundle){goal_scratch(b, bytes), goal_scratch(b, bytes), GOAL_NONE, GOAL_NONE};
    }
    for (int64_t w = 1; w < s->size; w *= radix) {
        goal_id round = goal_join(b);
        for (int k = 1; k < radix && k * w < s->size; k++) {
            bruck_bundle(b, s, x, w, k, radix, tag++, part, have, &use[k]);
            goal_after(b, round, use[k].stored);
        }
        have = round;
    }
    return have;
}

static void bruck(struct goal_build *b, const struct coll_shape *s, int radix)
{
    int P = s->size;
    int slot = coll_in_place(s) ? GOAL_RECV_BUF : GOAL_SEND_BUF;
    struct goal_part *part = malloc((size_t)P * sizeof *part);
    if (!part) return goal_build_fail(b, err_set(TERN_ERR_NOMEM, "no memory to build an alltoall of %d ranks", P));
    struct goal_part x = {goal_scratch(b, P * s->bytes), P * s->bytes};
    /* the blocks turned around, so that place d is the one for rank + d */
    struct goal_part in[2] = {{goal_mem(slot, s->rank * s->bytes), (P - s->rank) * s->bytes},
                              {goal_mem(slot, 0), s->rank * s->bytes}};
    goal_id have = goal_copyv(b, in, 2, &x, 1);
    have = bruck_rounds(b, s, x.at, radix, part, have);
    /* place d now holds what rank - d sent */
    for (int i = 0; i < P; i++)
        part[i] = (struct goal_part){goal_plus(x.at, ((s->rank - i + P) % P) * s->bytes), s->bytes};
    struct goal_part out = {goal_mem(GOAL_RECV_BUF, 0), P * s->bytes};
    goal_after(b, goal_copyv(b, part, P, &out, 1), have);
    free(part);
}

void coll_alltoall_bruck(struct goal_build *b, const struct coll_shape *s, const struct coll_given *v)
{
    (void)v;
    bruck(b, s, 2);
}

void coll_alltoall_kbruck(struct goal_build *b, const struct coll_shape *s, const struct coll_given *v)
{
    (void)v;
    bruck(b, s, coll_radix(s));
}
