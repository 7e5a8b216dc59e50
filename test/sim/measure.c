/* measure.c - see measure.h. */
#include "measure.h"

#include <stdlib.h>
#include <string.h>

struct vertex { /* an operation of a rank */
    const struct goal_op *op;
    int rank;
    uint32_t left;         /* predecessors not yet seen */
    int stage;             /* messages on the longest way to where it is */
    bool started, arrived; /* arrived: not a receive, or its message is there */
    struct vertex *peer;   /* of a send its receive, and the other way round */
};

struct graph {
    int n;
    struct goal_prog *const *prog;
    struct vertex *vertex, **first; /* of each rank, by index of the operation */
    struct vertex **queue;
    size_t count, tail;
};

static int64_t length(const struct goal_op *op)
{
    int64_t sum = 0;
    for (unsigned i = 0; i < (unsigned)op->n_in + op->n_out; i++) sum += goal_piece_len(&op->piece[i]);
    return sum;
}

static bool is_message(const struct vertex *v) { return v->op->type == GOAL_OP_SEND || v->op->type == GOAL_OP_RECV; }

/* What a message is known by: its ends and its tag. */
static uint64_t name(const struct vertex *v)
{
    bool send = v->op->type == GOAL_OP_SEND;
    uint64_t src = (uint64_t)(send ? v->rank : v->op->peer), dst = (uint64_t)(send ? v->op->peer : v->rank);
    return src << 40 | dst << 16 | v->op->tag;
}

static int by_name(const void *a, const void *b)
{
    const struct vertex *x = *(struct vertex *const *)a, *y = *(struct vertex *const *)b;
    if (name(x) != name(y)) return name(x) < name(y) ? -1 : 1;
    return (x->op->type > y->op->type) - (x->op->type < y->op->type);
}

static const char *pair_up(struct graph *g, struct measure *m)
{
    size_t n = 0;
    for (size_t i = 0; i < g->count; i++)
        if (is_message(&g->vertex[i])) g->queue[n++] = &g->vertex[i];
    qsort(g->queue, n, sizeof *g->queue, by_name);
    for (size_t i = 0; i < n; i += 2) {
        struct vertex *send = g->queue[i], *recv = i + 1 < n ? g->queue[i + 1] : NULL;
        if (!recv || name(send) != name(recv)) return "a message without counterpart";
        if (send->op->type == recv->op->type || (i + 2 < n && name(g->queue[i + 2]) == name(send)))
            return "two messages of one name";
        if (length(send->op) != length(recv->op)) return "a receive of another length than its message";
        send->peer = recv;
        recv->peer = send;
        m->messages++;
        m->moved += length(send->op);
    }
    return NULL;
}

static void lift(struct vertex *v, int stage)
{
    if (v->stage < stage) v->stage = stage;
}

static void release(struct graph *g, const struct vertex *v, unsigned from, unsigned to)
{
    const uint32_t *edge = goal_edges(v->op);
    for (unsigned k = from; k < to; k++) {
        struct vertex *next = &g->first[v->rank][goal_op_at(&g->prog[v->rank]->head, edge[k])->index];
        lift(next, v->stage);
        if (!--next->left) g->queue[g->tail++] = next;
    }
}

/* A vertex is in the queue twice: when it can start, and when it has finished. */
static void advance(struct graph *g, struct vertex *v)
{
    unsigned finish = v->op->n_finish, edges = finish + v->op->n_start;
    if (v->started) return release(g, v, 0, finish);
    v->started = true;
    release(g, v, finish, edges);
    if (v->arrived) g->queue[g->tail++] = v;
    if (v->op->type != GOAL_OP_SEND) return;
    v->peer->arrived = true;
    lift(v->peer, v->stage + 1);
    if (v->peer->started) g->queue[g->tail++] = v->peer;
}

/* In the order of dependencies. */
static const char *find_stages(struct graph *g, struct measure *m)
{
    g->tail = 0;
    for (size_t i = 0; i < g->count; i++) {
        struct vertex *v = &g->vertex[i];
        v->left = v->op->dependencies;
        v->arrived = v->op->type != GOAL_OP_RECV;
        if (!v->left) g->queue[g->tail++] = v;
    }
    for (size_t head = 0; head < g->tail; head++) advance(g, g->queue[head]);
    for (size_t i = 0; i < g->count; i++)
        if (g->vertex[i].stage > m->stages) m->stages = g->vertex[i].stage;
    return g->tail == 2 * g->count ? NULL : "ranks wait for each other in a circle";
}

static void take_in(struct graph *g, struct measure *m)
{
    for (int r = 0; r < g->n; r++) {
        const struct goal_head *h = &g->prog[r]->head;
        const struct goal_op *op = goal_op_at(h, h->first_op);
        g->first[r] = g->vertex + g->count;
        for (uint32_t i = 0; i < h->op_count; i++, op = goal_op_next(op))
            g->vertex[g->count++] = (struct vertex){.op = op, .rank = r};
        if (h->op_count > m->ops) m->ops = h->op_count;
        if (h->bytes > m->bytes) m->bytes = h->bytes;
        if (h->scratch > m->scratch) m->scratch = h->scratch;
    }
}

const char *measure_programs(int n, struct goal_prog *const prog[], struct measure *m)
{
    struct graph g = {.n = n, .prog = prog};
    size_t ops = 1;
    memset(m, 0, sizeof *m);
    for (int r = 0; r < n; r++) ops += prog[r]->head.op_count;
    g.vertex = malloc(ops * sizeof *g.vertex);
    g.queue = malloc(2 * ops * sizeof *g.queue);
    g.first = malloc((size_t)n * sizeof *g.first);
    if (!g.vertex || !g.queue || !g.first) abort();
    take_in(&g, m);
    const char *words = pair_up(&g, m);
    if (!words) words = find_stages(&g, m);
    free(g.vertex);
    free(g.queue);
    free(g.first);
    return words;
}
