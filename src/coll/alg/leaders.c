/*
 * leaders.c - collectives in which one rank of each node, or of each domain of a node, its leader, speaks for all
 * of it, so that what crosses the network, or leaves a cache, does so once and in few messages. Levels of leaders are
 * as in levels.h, which also says who is one; ranks may be spread over nodes and domains in any way. (bcast and reduce
 * do the same along a tree: tree.h; alltoall: leaders_alltoall.c.)
 */
#include "coll/alg/levels.h"

#include "base/err.h"
#include <stdlib.h>

struct leaders {
    struct goal_build *b;
    const struct coll_shape *s;
    const struct coll_given *v;
    struct coll_levels x;
    int *rank;              /* room for the leaders of a level */
    struct goal_part *part; /* room for a list of all ranks' blocks */
    struct goal_mem bundle; /* gather and scatter: the blocks of the widest group that I lead, in rank order */
};

static bool leaders_open(struct leaders *c, struct goal_build *b, const struct coll_shape *s,
                         const struct coll_given *v, int root)
{
    *c =
        (struct leaders){.b = b, .s = s, .v = v, .part = malloc((size_t)s->size * (sizeof *c->part + sizeof *c->rank))};
    if (!c->part) {
        goal_build_fail(b, err_set(TERN_ERR_NOMEM, "no memory to build a schedule of %d ranks", s->size));
        return false;
    }
    c->rank = (int *)(c->part + s->size);
    coll_levels_open(&c->x, s, v, root);
    return true;
}

/* Is there a leader above me (those of level 1 are equals)? And the levels on which I have some below me begin with
 * this. */
static bool has_above(const struct leaders *c) { return c->x.top > 1; }
static int first_below(const struct leaders *c) { return has_above(c) ? c->x.top + 1 : 2; }

/* ---- barrier ----------------------------------------------------------------------- */

enum { COME = 40, RELEASE = 41 }; /* tags; below them the rounds of the dissemination */

static goal_id tell(const struct leaders *c, int peer, int tag, goal_id after)
{
    goal_id send = goal_sendv(c->b, peer, tag, NULL, 0);
    goal_after(c->b, send, after);
    return send;
}

static goal_id hear(const struct leaders *c, int peer, int tag) { return goal_recvv(c->b, peer, tag, NULL, 0); }

/* The outermost leaders tell each other. */
static goal_id disseminate(const struct leaders *c, goal_id heard)
{
    int me = coll_level_look(&c->x, 1).me, n = coll_level_leaders(&c->x, 1, c->rank), tag = 0;
    for (int64_t d = 1; d < n; d *= 2, tag++) {
        tell(c, c->rank[(me + d) % n], tag, heard);
        heard = coll_both(c->b, heard, hear(c, c->rank[(me - d + n) % n], tag));
    }
    return heard;
}

void coll_barrier_leaders(struct goal_build *b, const struct coll_shape *s, const struct coll_given *v)
{
    struct leaders c;
    if (!leaders_open(&c, b, s, v, 0)) return;
    goal_id heard = goal_join(b);
    for (int level = c.x.last; level >= first_below(&c); level--)
        for (int i = coll_level_leaders(&c.x, level, c.rank) - 1; i > 0; i--)
            goal_after(b, heard, hear(&c, c.rank[i], COME));
    if (has_above(&c)) {
        int above = coll_levels_above(&c.x);
        tell(&c, above, COME, heard);
        heard = hear(&c, above, RELEASE);
    } else {
        heard = disseminate(&c, heard);
    }
    for (int level = first_below(&c); level <= c.x.last; level++)
        for (int i = coll_level_leaders(&c.x, level, c.rank) - 1; i > 0; i--) tell(&c, c.rank[i], RELEASE, heard);
    free(c.part);
}

/* ---- allreduce ------------------------------------------------------------------- */

/* One of the stages: a builder made for all ranks, on the leaders of a level. */
static goal_id stage(const struct leaders *c, coll_builder *build, int level, int tag, unsigned flags, goal_id before)
{
    struct coll_shape s = *c->s;
    struct goal_stage of = {
        .ranks = c->rank, .tag = tag, .slot = {goal_mem(GOAL_SEND_BUF, 0), goal_mem(GOAL_RECV_BUF, 0)}};
    of.size = coll_level_leaders(&c->x, level, c->rank);
    s.rank = coll_level_look(&c->x, level).me;
    s.size = of.size;
    s.root = 0;
    s.flags |= (uint16_t)flags;
    goal_stage_open(c->b, &of);
    build(c->b, &s, c->v);
    return goal_stage_close(c->b, before);
}

void coll_allreduce_leaders(struct goal_build *b, const struct coll_shape *s, const struct coll_given *v)
{
    enum { UP = 0, DOWN = 8, OVER = 16 }; /* tags */
    struct leaders c;
    if (!leaders_open(&c, b, s, v, 0)) return;
    int outer = has_above(&c) ? c.x.top : 2; /* the outermost level below which the result is made */
    goal_id done = GOAL_NONE;
    for (int level = c.x.last; level >= outer; level--)
        done = stage(&c, coll_reduce_binomial, level, UP, level < c.x.last ? COLL_IN_PLACE : 0, done);
    if (!has_above(&c)) {
        coll_builder *over = s->bytes < s->segment ? coll_allreduce_doubling : coll_allreduce_halving;
        done = stage(&c, over, 1, OVER, COLL_IN_PLACE, done);
    }
    for (int level = outer; level <= c.x.last; level++) done = stage(&c, coll_bcast_binomial, level, DOWN, 0, done);
    free(c.part);
}

/* ---- gather and scatter ------------------------------------------------------------ */

enum { INSIDE = 0, BETWEEN = 1, OUT = 2 }; /* tags */

static bool in_group(const struct leaders *c, int level, int rank, int r)
{
    return coll_level_group(&c->x, level, r) == coll_level_group(&c->x, level, rank);
}

/* How many ranks the group has that I lead. */
static int members(const struct leaders *c)
{
    int n = 0;
    for (int r = 0; r < c->s->size; r++) n += in_group(c, c->x.top, c->s->rank, r);
    return n;
}

/* The blocks of the group that a leader leads on this level: in the root's buffer, elsewhere in the bundle. */
static int blocks_of(const struct leaders *c, int level, int leader)
{
    struct goal_mem at = c->bundle;
    int k = 0;
    for (int r = 0; r < c->s->size; r++) {
        struct goal_part p = {at, c->s->bytes};
        if (!in_group(c, c->x.top, c->s->rank, r)) continue;
        at.off += c->s->bytes;
        if (!c->x.top && c->s->kind == COLL_GATHER) p = coll_recv_block(c->s, c->v, r);
        if (!c->x.top && c->s->kind == COLL_SCATTER) p = coll_send_block(c->s, c->v, r);
        if (in_group(c, level, leader, r)) k = coll_add_part(c->part, k, p);
    }
    return k;
}

/* My own block, and that place in the bundle or the root's buffer: one copy, unless the root has it there. */
static goal_id copy_own(const struct leaders *c, int slot, bool out)
{
    struct goal_part user = {goal_mem(slot, 0), c->s->bytes};
    if (!c->x.top && coll_in_place(c->s)) return GOAL_NONE;
    int k = blocks_of(c, c->x.last, c->s->rank);
    return out ? goal_copyv(c->b, c->part, k, &user, 1) : goal_copyv(c->b, &user, 1, c->part, k);
}

void coll_gather_leaders(struct goal_build *b, const struct coll_shape *s, const struct coll_given *v)
{
    struct leaders c;
    goal_id up = GOAL_NONE;
    if (!leaders_open(&c, b, s, v, s->root)) return;
    c.bundle = goal_mem(GOAL_SEND_BUF, 0);
    if (c.x.top && c.x.top < c.x.last) c.bundle = goal_scratch(b, members(&c) * s->bytes);
    if (c.x.top) up = goal_send(b, coll_levels_above(&c.x), INSIDE, c.bundle, members(&c) * s->bytes);
    if (c.x.top < c.x.last) goal_after(b, up, copy_own(&c, GOAL_SEND_BUF, false));
    for (int level = c.x.top + 1; level <= c.x.last; level++) {
        int n = coll_level_leaders(&c.x, level, c.rank);
        for (int i = 0; i < n; i++) {
            if (c.rank[i] == s->rank) continue;
            int k = blocks_of(&c, level, c.rank[i]);
            goal_after(b, up, goal_recvv(b, c.rank[i], INSIDE, c.part, k));
        }
    }
    free(c.part);
}

void coll_scatter_leaders(struct goal_build *b, const struct coll_shape *s, const struct coll_given *v)
{
    struct leaders c;
    goal_id down = GOAL_NONE;
    if (!leaders_open(&c, b, s, v, s->root)) return;
    c.bundle = goal_mem(GOAL_RECV_BUF, 0);
    if (c.x.top && c.x.top < c.x.last) c.bundle = goal_scratch(b, members(&c) * s->bytes);
    if (c.x.top) down = goal_recv(b, coll_levels_above(&c.x), INSIDE, c.bundle, members(&c) * s->bytes);
    for (int level = c.x.top + 1; level <= c.x.last; level++) {
        int n = coll_level_leaders(&c.x, level, c.rank);
        for (int i = 0; i < n; i++) {
            if (c.rank[i] == s->rank) continue;
            int k = blocks_of(&c, level, c.rank[i]);
            goal_after(b, goal_sendv(b, c.rank[i], INSIDE, c.part, k), down);
        }
    }
    if (c.x.top < c.x.last) goal_after(b, copy_own(&c, GOAL_RECV_BUF, true), down);
    free(c.part);
}

/* ---- allgather --------------------------------------------------------------------- */

/* The blocks of the group that a leader leads on this level, or all others. */
static int gathered(const struct leaders *c, int level, int leader, bool inside)
{
    int k = 0;
    for (int r = 0; r < c->s->size; r++)
        if (in_group(c, level, leader, r) == inside) k = coll_add_part(c->part, k, coll_recv_block(c->s, c->v, r));
    return k;
}

/* Takes in the blocks of the group that I lead. */
static goal_id take_in(const struct leaders *c, goal_id own)
{
    goal_id here = coll_both(c->b, own, GOAL_NONE);
    for (int level = first_below(c); level <= c->x.last; level++)
        for (int i = coll_level_leaders(&c->x, level, c->rank) - 1; i > 0; i--) {
            int k = gathered(c, level, c->rank[i], true);
            if (k) goal_after(c->b, here, goal_recvv(c->b, c->rank[i], INSIDE, c->part, k));
        }
    return here;
}

/* The outermost leaders swap bundles. Returns when all blocks are there. */
static goal_id exchange_bundles(const struct leaders *c, goal_id here)
{
    goal_id all = coll_both(c->b, here, GOAL_NONE);
    int me = coll_level_look(&c->x, 1).me, n = coll_level_leaders(&c->x, 1, c->rank);
    for (int i = 1; i < n; i++) {
        int to = c->rank[(me + i) % n], from = c->rank[(me - i + n) % n];
        int k = gathered(c, 1, c->s->rank, true);
        if (k) goal_after(c->b, goal_sendv(c->b, to, BETWEEN, c->part, k), here);
        k = gathered(c, 1, from, true);
        if (k) goal_after(c->b, all, goal_recvv(c->b, from, BETWEEN, c->part, k));
    }
    return all;
}

/* What I have goes up (who leads nobody has its own block still in the send buffer), all the others come down a tree of
 * the leaders on my level. Returns when all blocks are there. */
static goal_id up_and_down(const struct leaders *c, struct goal_mem in, goal_id here)
{
    int level = c->x.top, above = coll_levels_above(&c->x), k = gathered(c, level, c->s->rank, true);
    struct coll_level l = coll_level_look(&c->x, level);
    struct coll_tree t;
    if (k && level == c->x.last)
        goal_send(c->b, above, INSIDE, in, c->part[0].len);
    else if (k)
        goal_after(c->b, goal_sendv(c->b, above, INSIDE, c->part, k), here);
    coll_tree_binomial(&t, l.me, l.n, l.home);
    k = gathered(c, level, c->s->rank, false);
    if (!k) return here;
    return coll_both(c->b, here, goal_recvv(c->b, coll_level_leader(&c->x, level, t.parent), OUT, c->part, k));
}

/* To the children that I have in the trees of this level and of those inside: all that they have not. */
static void pass_on(const struct leaders *c, int level, goal_id have)
{
    for (; level <= c->x.last; level++) {
        struct coll_level l = coll_level_look(&c->x, level);
        struct coll_tree t;
        coll_tree_binomial(&t, l.me, l.n, l.home);
        for (int i = t.children - 1; i >= 0; i--) {
            int child = coll_level_leader(&c->x, level, t.child[i]), k = gathered(c, level, child, false);
            if (k) goal_after(c->b, goal_sendv(c->b, child, OUT, c->part, k), have);
        }
    }
}

/* Blocks of any lengths: they stay in their places in the receive buffers. */
void coll_allgather_leaders(struct goal_build *b, const struct coll_shape *s, const struct coll_given *v)
{
    struct leaders c;
    struct goal_part own = coll_recv_block(s, v, s->rank);
    struct goal_mem in = coll_in_place(s) ? own.at : goal_mem(GOAL_SEND_BUF, 0);
    if (!leaders_open(&c, b, s, v, 0)) return;
    goal_id have = coll_in_place(s) || !own.len ? GOAL_NONE : goal_copy(b, in, own.at, own.len);
    have = take_in(&c, have);
    have = has_above(&c) ? up_and_down(&c, in, have) : exchange_bundles(&c, have);
    pass_on(&c, has_above(&c) ? c.x.top : 2, have);
    free(c.part);
}
