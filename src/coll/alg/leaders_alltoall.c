/*
 * leaders_alltoall.c - alltoall in which the leader of each node, or of each domain, gets the send buffers of its
 * ranks, swaps bundles with the other leaders and sorts what came. Two levels only: with domains, their leaders swap
 * across nodes, too.
 */
#include "coll/alg/alg.h"

#include "base/err.h"
#include <stdlib.h>
#include <string.h>

enum { INSIDE = 0, BETWEEN = 1 }; /* tags */

struct parts { /* the ranks as nodes, or as domains */
    struct goal_build *b;
    const struct coll_shape *s;
    const int32_t *of;      /* each rank's part ... */
    int n;                  /* ... of so many */
    int mine, members, me;  /* mine, how many ranks it has, and which of them I am, in rank order */
    int *member;            /* their ranks */
    int *leader, *count;    /* of each part: its first rank, its ranks */
    struct goal_part *part; /* room for a list of all ranks' blocks */
};

static bool parts_open(struct parts *c, struct goal_build *b, const struct coll_shape *s, const struct coll_given *v)
{
    bool domains = coll_algs[s->alg].flags & ALG_DOMAINS;
    *c = (struct parts){.b = b, .s = s, .of = domains ? v->domain : v->node, .n = domains ? s->domains : s->nodes};
    c->part = malloc((size_t)s->size * (sizeof *c->part + sizeof(int)) + 2 * (size_t)c->n * sizeof(int));
    if (!c->part) {
        goal_build_fail(b, err_set(TERN_ERR_NOMEM, "no memory to build a schedule of %d ranks", s->size));
        return false;
    }
    c->mine = c->of[s->rank];
    c->member = (int *)(c->part + s->size);
    c->leader = c->member + s->size;
    c->count = c->leader + c->n;
    memset(c->count, 0, (size_t)c->n * sizeof(int));
    for (int r = 0; r < s->size; r++) {
        int part = c->of[r];
        if (!c->count[part]++) c->leader[part] = r;
        if (part != c->mine) continue;
        if (r == s->rank) c->me = c->members;
        c->member[c->members++] = r;
    }
    return true;
}

/*
 * A leader's scratch: `out` has the send buffers of its ranks one behind the other, P blocks each; `in` what other
 * parts send, part by part, there for each rank of the sending part the blocks of mine.
 */
struct hub {
    struct parts c;
    struct goal_mem out, in;
    int64_t *at; /* of each part's place in `in` */
};

static struct goal_part out_block(const struct hub *h, int m, int to)
{
    int64_t n = h->c.s->bytes;
    return (struct goal_part){goal_plus(h->out, ((int64_t)m * h->c.s->size + to) * n), n};
}

/* To and from one other part: a message for each of its, or my, ranks, number m. */
static goal_id swap_with(const struct hub *h, int part, goal_id ready, goal_id all)
{
    const struct parts *c = &h->c;
    int64_t row = c->members * c->s->bytes;
    for (int m = 0; m < c->members; m++) {
        int k = 0;
        for (int r = 0; r < c->s->size; r++)
            if (c->of[r] == part) k = coll_add_part(c->part, k, out_block(h, m, r));
        goal_after(c->b, goal_sendv(c->b, c->leader[part], BETWEEN + 1 + m, c->part, k), ready);
    }
    for (int m = 0; m < c->count[part]; m++)
        goal_after(c->b, all,
                   goal_recv(c->b, c->leader[part], BETWEEN + 1 + m, goal_plus(h->in, h->at[part] + m * row), row));
    return all;
}

/* All blocks for my part's rank number m, in the order of their senders. */
static int blocks_for(const struct hub *h, int m, int *seen)
{
    const struct parts *c = &h->c;
    int64_t n = c->s->bytes;
    int k = 0;
    memset(seen, 0, (size_t)c->n * sizeof *seen);
    for (int r = 0; r < c->s->size; r++) {
        int part = c->of[r], i = seen[part]++;
        struct goal_part p = {goal_plus(h->in, h->at[part] + ((int64_t)i * c->members + m) * n), n};
        k = coll_add_part(c->part, k, part == c->mine ? out_block(h, i, c->member[m]) : p);
    }
    return k;
}

static void hub_run(struct hub *h, int *seen)
{
    const struct parts *c = &h->c;
    int64_t whole = c->s->size * c->s->bytes, sum = 0;
    int slot = coll_in_place(c->s) ? GOAL_RECV_BUF : GOAL_SEND_BUF;
    goal_id ready = goal_join(c->b), all = coll_both(c->b, ready, GOAL_NONE);
    for (int n = 0; n < c->n; n++) {
        h->at[n] = sum;
        if (n != c->mine) sum += c->count[n] * c->members * c->s->bytes;
    }
    h->out = goal_scratch(c->b, c->members * whole);
    h->in = goal_scratch(c->b, sum);
    for (int m = 0; m < c->members; m++) {
        struct goal_mem to = out_block(h, m, 0).at;
        goal_after(c->b, ready,
                   m == c->me ? goal_copy(c->b, goal_mem(slot, 0), to, whole)
                              : goal_recv(c->b, c->member[m], INSIDE, to, whole));
    }
    for (int i = 1; i < c->n; i++) swap_with(h, (c->mine + i) % c->n, ready, all);
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
    if (!parts_open(&h.c, b, s, v)) return;
    int64_t whole = s->size * s->bytes;
    if (s->rank != h.c.leader[h.c.mine]) {
        int slot = coll_in_place(s) ? GOAL_RECV_BUF : GOAL_SEND_BUF, leader = h.c.leader[h.c.mine];
        goal_id up = goal_send(b, leader, INSIDE, goal_mem(slot, 0), whole);
        goal_id down = goal_recv(b, leader, BETWEEN, goal_mem(GOAL_RECV_BUF, 0), whole);
        if (coll_in_place(s)) goal_after(b, down, up);
    } else {
        h.at = malloc((size_t)h.c.n * (sizeof *h.at + sizeof(int)));
        if (h.at)
            hub_run(&h, (int *)(h.at + h.c.n));
        else
            goal_build_fail(b, err_set(TERN_ERR_NOMEM, "no memory to build an alltoall of %d parts", h.c.n));
        free(h.at);
    }
    free(h.c.part);
}
