/*
 * alg_leaders.c - collectives in which one rank of each node, its leader, speaks for all of it, so that what crosses
 * the network does so once and in few messages. The leader is the root on its node, elsewhere the node's first rank.
 * Ranks may be spread over the nodes in any way. (bcast and reduce do the same along a tree: tree.h.)
 */
#include "coll/alg.h"

#include "base/err.h"
#include <stdlib.h>
#include <string.h>

struct nodes {
    struct goal_build *b;
    const struct coll_shape *s;
    const struct coll_given *v;
    int node;               /* mine */
    int members;            /* ranks on it ... */
    int me;                 /* ... and which of them I am, in rank order */
    int *member;            /* their ranks */
    int *leader;            /* of each node */
    int *count;             /* ranks of each node */
    struct goal_part *part; /* room for a list of all ranks' blocks */
};

static bool nodes_open(struct nodes *c, struct goal_build *b, const struct coll_shape *s, const struct coll_given *v,
                       int root)
{
    *c = (struct nodes){.b = b, .s = s, .v = v, .node = v->node[s->rank]};
    c->part = malloc((size_t)s->size * (sizeof *c->part + sizeof(int)) + 2 * (size_t)s->nodes * sizeof(int));
    if (!c->part) {
        goal_build_fail(b, err_set(TERN_ERR_NOMEM, "no memory to build a schedule of %d nodes", s->nodes));
        return false;
    }
    c->member = (int *)(c->part + s->size);
    c->leader = c->member + s->size;
    c->count = c->leader + s->nodes;
    memset(c->count, 0, (size_t)s->nodes * sizeof(int));
    for (int r = 0; r < s->size; r++) {
        int node = v->node[r];
        if (!c->count[node]++ || r == root) c->leader[node] = r;
        if (node != c->node) continue;
        if (r == s->rank) c->me = c->members;
        c->member[c->members++] = r;
    }
    return true;
}

static bool is_leader(const struct nodes *c) { return c->leader[c->node] == c->s->rank; }

/* Adds a piece to a list of k; neighbours in memory are one. */
static int add_part(struct goal_part *part, int k, struct goal_part p)
{
    if (!p.len) return k;
    if (k && part[k - 1].at.slot == p.at.slot && part[k - 1].at.off + part[k - 1].len == p.at.off) {
        part[k - 1].len += p.len;
        return k;
    }
    part[k] = p;
    return k + 1;
}

/* A point after both. */
static goal_id both(struct goal_build *b, goal_id x, goal_id y)
{
    goal_id join = goal_join(b);
    goal_after(b, join, x);
    goal_after(b, join, y);
    return join;
}

/* ---- allreduce ------------------------------------------------------------------- */

/* One of the stages: a builder made for all ranks, on `size` of them, of which I am number `rank`. */
static goal_id stage(const struct nodes *c, coll_builder *build, const int *ranks, int rank, int size, int tag,
                     unsigned flags, goal_id before)
{
    struct coll_shape s = *c->s;
    struct goal_stage of = {ranks, size, tag, {goal_mem(GOAL_SEND_BUF, 0), goal_mem(GOAL_RECV_BUF, 0)}};
    s.rank = rank;
    s.size = size;
    s.root = 0;
    s.flags |= (uint16_t)flags;
    goal_stage_open(c->b, &of);
    build(c->b, &s, c->v);
    return goal_stage_close(c->b, before);
}

void coll_allreduce_leaders(struct goal_build *b, const struct coll_shape *s, const struct coll_given *v)
{
    enum { UP = 0, DOWN = 8, OVER = 16 }; /* tags */
    struct nodes c;
    if (!nodes_open(&c, b, s, v, 0)) return;
    goal_id done = stage(&c, coll_reduce_binomial, c.member, c.me, c.members, UP, 0, GOAL_NONE);
    if (is_leader(&c)) {
        coll_builder *over = s->bytes < s->segment ? coll_allreduce_doubling : coll_allreduce_halving;
        done = stage(&c, over, c.leader, c.node, s->nodes, OVER, COLL_IN_PLACE, done);
    }
    stage(&c, coll_bcast_binomial, c.member, c.me, c.members, DOWN, 0, done);
    free(c.part);
}

/* ---- gather and scatter ------------------------------------------------------------ */

enum { INSIDE = 0, BETWEEN = 1, OUT = 2 }; /* tags */

/* The blocks of a node's ranks in the buffer of the root. */
static int node_blocks(const struct nodes *c, int node, bool recv)
{
    int k = 0;
    for (int r = 0; r < c->s->size; r++) {
        if (c->v->node[r] != node) continue;
        k = add_part(c->part, k, recv ? coll_recv_block(c->s, c->v, r) : coll_send_block(c->s, c->v, r));
    }
    return k;
}

static void gather_root(const struct nodes *c)
{
    const struct coll_shape *s = c->s;
    for (int n = 0; n < s->nodes; n++)
        if (n != c->node) goal_recvv(c->b, c->leader[n], BETWEEN, c->part, node_blocks(c, n, true));
    for (int m = 0; m < c->members; m++) {
        struct goal_part to = coll_recv_block(s, c->v, c->member[m]);
        if (m != c->me)
            goal_recv(c->b, c->member[m], INSIDE, to.at, to.len);
        else if (!coll_in_place(s))
            goal_copy(c->b, goal_mem(GOAL_SEND_BUF, 0), to.at, to.len);
    }
}

/* Into one bundle, which goes to the root. */
static void gather_node(const struct nodes *c)
{
    int64_t n = c->s->bytes;
    struct goal_mem x = goal_scratch(c->b, c->members * n), own = goal_mem(GOAL_SEND_BUF, 0);
    goal_id up = goal_send(c->b, c->s->root, BETWEEN, x, c->members * n);
    for (int m = 0; m < c->members; m++) {
        struct goal_mem at = goal_plus(x, m * n);
        goal_after(c->b, up, m == c->me ? goal_copy(c->b, own, at, n) : goal_recv(c->b, c->member[m], INSIDE, at, n));
    }
}

void coll_gather_leaders(struct goal_build *b, const struct coll_shape *s, const struct coll_given *v)
{
    struct nodes c;
    if (!nodes_open(&c, b, s, v, s->root)) return;
    if (s->rank == s->root)
        gather_root(&c);
    else if (is_leader(&c))
        gather_node(&c);
    else
        goal_send(b, c.leader[c.node], INSIDE, goal_mem(GOAL_SEND_BUF, 0), s->bytes);
    free(c.part);
}

static void scatter_root(const struct nodes *c)
{
    const struct coll_shape *s = c->s;
    for (int n = 0; n < s->nodes; n++)
        if (n != c->node) goal_sendv(c->b, c->leader[n], BETWEEN, c->part, node_blocks(c, n, false));
    for (int m = 0; m < c->members; m++) {
        struct goal_part from = coll_send_block(s, c->v, c->member[m]);
        if (m != c->me)
            goal_send(c->b, c->member[m], INSIDE, from.at, from.len);
        else if (!coll_in_place(s))
            goal_copy(c->b, from.at, goal_mem(GOAL_RECV_BUF, 0), from.len);
    }
}

static void scatter_node(const struct nodes *c)
{
    int64_t n = c->s->bytes;
    struct goal_mem x = goal_scratch(c->b, c->members * n), own = goal_mem(GOAL_RECV_BUF, 0);
    goal_id down = goal_recv(c->b, c->s->root, BETWEEN, x, c->members * n);
    for (int m = 0; m < c->members; m++) {
        struct goal_mem at = goal_plus(x, m * n);
        goal_after(c->b, m == c->me ? goal_copy(c->b, at, own, n) : goal_send(c->b, c->member[m], INSIDE, at, n), down);
    }
}

void coll_scatter_leaders(struct goal_build *b, const struct coll_shape *s, const struct coll_given *v)
{
    struct nodes c;
    if (!nodes_open(&c, b, s, v, s->root)) return;
    if (s->rank == s->root)
        scatter_root(&c);
    else if (is_leader(&c))
        scatter_node(&c);
    else
        goal_recv(b, c.leader[c.node], INSIDE, goal_mem(GOAL_RECV_BUF, 0), s->bytes);
    free(c.part);
}

/* ---- allgather --------------------------------------------------------------------- */

/* The blocks of all ranks but one. */
static int others(const struct nodes *c, int rank)
{
    int k = 0;
    for (int r = 0; r < c->s->size; r++)
        if (r != rank) k = add_part(c->part, k, coll_recv_block(c->s, c->v, r));
    return k;
}

/* A leader takes in its node's blocks, then swaps bundles with the other leaders. Returns when it has all blocks. */
static goal_id exchange_bundles(const struct nodes *c, goal_id own)
{
    goal_id here = both(c->b, own, GOAL_NONE), all = both(c->b, here, GOAL_NONE);
    for (int m = 0; m < c->members; m++) {
        struct goal_part to = coll_recv_block(c->s, c->v, c->member[m]);
        if (m != c->me && to.len) goal_after(c->b, here, goal_recv(c->b, c->member[m], INSIDE, to.at, to.len));
    }
    for (int i = 1; i < c->s->nodes; i++) {
        int to = (c->node + i) % c->s->nodes, from = (c->node - i + c->s->nodes) % c->s->nodes;
        int k = node_blocks(c, c->node, true);
        if (k) goal_after(c->b, goal_sendv(c->b, c->leader[to], BETWEEN, c->part, k), here);
        k = node_blocks(c, from, true);
        if (k) goal_after(c->b, all, goal_recvv(c->b, c->leader[from], BETWEEN, c->part, k));
    }
    return all;
}

/* Blocks of any lengths: they stay in their places in the receive buffers. In the end a tree on each node. */
void coll_allgather_leaders(struct goal_build *b, const struct coll_shape *s, const struct coll_given *v)
{
    struct nodes c;
    struct coll_tree t;
    struct goal_part own = coll_recv_block(s, v, s->rank);
    struct goal_mem in = coll_in_place(s) ? own.at : goal_mem(GOAL_SEND_BUF, 0);
    if (!nodes_open(&c, b, s, v, 0)) return;
    coll_tree_binomial(&t, c.me, c.members, 0);
    goal_id have = coll_in_place(s) || !own.len ? GOAL_NONE : goal_copy(b, in, own.at, own.len);
    if (is_leader(&c)) {
        have = exchange_bundles(&c, have);
    } else {
        if (own.len) goal_send(b, c.leader[c.node], INSIDE, in, own.len);
        int k = others(&c, s->rank);
        if (k) have = both(b, have, goal_recvv(b, c.member[t.parent], OUT, c.part, k));
    }
    for (int i = t.children - 1; i >= 0; i--) {
        int child = c.member[t.child[i]], k = others(&c, child);
        if (k) goal_after(b, goal_sendv(b, child, OUT, c.part, k), have);
    }
    free(c.part);
}

/* ---- alltoall ----------------------------------------------------------------------- */

/*
 * A leader's scratch: `out` has the send buffers of its ranks one behind the other, P blocks each; `in` what other
 * nodes send, node by node, there for each rank of the sending node the blocks of mine.
 */
struct hub {
    struct nodes c;
    struct goal_mem out, in;
    int64_t *at; /* of each node's part of `in` */
};

static struct goal_part out_block(const struct hub *h, int m, int to)
{
    int64_t n = h->c.s->bytes;
    return (struct goal_part){goal_plus(h->out, ((int64_t)m * h->c.s->size + to) * n), n};
}

/* To and from one other node: a message for each of the sending node's ranks, number m. */
static goal_id swap_with(const struct hub *h, int node, goal_id ready, goal_id all)
{
    const struct nodes *c = &h->c;
    int64_t row = c->members * c->s->bytes;
    for (int m = 0; m < c->members; m++) {
        int k = 0;
        for (int r = 0; r < c->s->size; r++)
            if (c->v->node[r] == node) k = add_part(c->part, k, out_block(h, m, r));
        goal_after(c->b, goal_sendv(c->b, c->leader[node], BETWEEN + 1 + m, c->part, k), ready);
    }
    for (int m = 0; m < c->count[node]; m++)
        goal_after(c->b, all,
                   goal_recv(c->b, c->leader[node], BETWEEN + 1 + m, goal_plus(h->in, h->at[node] + m * row), row));
    return all;
}

/* All blocks for my node's rank number m, in the order of their senders. */
static int blocks_for(const struct hub *h, int m, int *seen)
{
    const struct nodes *c = &h->c;
    int64_t n = c->s->bytes;
    int k = 0;
    memset(seen, 0, (size_t)c->s->nodes * sizeof *seen);
    for (int r = 0; r < c->s->size; r++) {
        int node = c->v->node[r], i = seen[node]++;
        struct goal_part p = {goal_plus(h->in, h->at[node] + ((int64_t)i * c->members + m) * n), n};
        k = add_part(c->part, k, node == c->node ? out_block(h, i, c->member[m]) : p);
    }
    return k;
}

static void hub_run(struct hub *h, int *seen)
{
    const struct nodes *c = &h->c;
    int64_t whole = c->s->size * c->s->bytes, sum = 0;
    int slot = coll_in_place(c->s) ? GOAL_RECV_BUF : GOAL_SEND_BUF;
    goal_id ready = goal_join(c->b), all = both(c->b, ready, GOAL_NONE);
    for (int n = 0; n < c->s->nodes; n++) {
        h->at[n] = sum;
        if (n != c->node) sum += c->count[n] * c->members * c->s->bytes;
    }
    h->out = goal_scratch(c->b, c->members * whole);
    h->in = goal_scratch(c->b, sum);
    for (int m = 0; m < c->members; m++) {
        struct goal_mem to = out_block(h, m, 0).at;
        goal_after(c->b, ready,
                   m == c->me ? goal_copy(c->b, goal_mem(slot, 0), to, whole)
                              : goal_recv(c->b, c->member[m], INSIDE, to, whole));
    }
    for (int i = 1; i < c->s->nodes; i++) swap_with(h, (c->node + i) % c->s->nodes, ready, all);
    for (int m = 0; m < c->members; m++) {
        struct goal_part own = {goal_mem(GOAL_RECV_BUF, 0), whole};
        int k = blocks_for(h, m, seen);
        goal_after(c->b,
                   m == c->me ? goal_copyv(c->b, c->part, k, &own, 1)
                              : goal_sendv(c->b, c->member[m], BETWEEN, c->part, k),
                   all);
    }
}

void coll_alltoall_leaders(struct goal_build *b, const struct coll_shape *s, const struct coll_given *v)
{
    struct hub h;
    if (!nodes_open(&h.c, b, s, v, 0)) return;
    int64_t whole = s->size * s->bytes;
    if (!is_leader(&h.c)) {
        int slot = coll_in_place(s) ? GOAL_RECV_BUF : GOAL_SEND_BUF, leader = h.c.leader[h.c.node];
        goal_id up = goal_send(b, leader, INSIDE, goal_mem(slot, 0), whole);
        goal_id down = goal_recv(b, leader, BETWEEN, goal_mem(GOAL_RECV_BUF, 0), whole);
        if (coll_in_place(s)) goal_after(b, down, up);
    } else {
        h.at = malloc((size_t)s->nodes * (sizeof *h.at + sizeof(int)));
        if (h.at)
            hub_run(&h, (int *)(h.at + s->nodes));
        else
            goal_build_fail(b, err_set(TERN_ERR_NOMEM, "no memory to build an alltoall of %d nodes", s->nodes));
        free(h.at);
    }
    free(h.c.part);
}
