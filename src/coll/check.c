/*
 * check.c - see check.h. Messages are sorted by who sends to whom under which tag, which
 * pairs them; then all programs run in thought, where a message is over when both of its
 * sides have been started, and what is left at the end is a deadlock.
 */
#include "coll/check.h"

#include "base/err.h"
#include <stdlib.h>

struct side { /* a send or a receive */
    int32_t src, dst;
    uint32_t tag, op; /* op: number among the operations of all ranks */
    int64_t len;
};

static int compare(const void *x, const void *y)
{
    const struct side *a = x, *b = y;
    if (a->src != b->src) return a->src < b->src ? -1 : 1;
    if (a->dst != b->dst) return a->dst < b->dst ? -1 : 1;
    return a->tag < b->tag ? -1 : a->tag > b->tag;
}

static struct side side_of(const struct goal_head *h, const struct goal_op *op, uint32_t number)
{
    bool send = op->type == GOAL_OP_SEND;
    struct side s = {send ? h->rank : op->peer, send ? op->peer : h->rank, op->tag, number, 0};
    for (unsigned i = 0; i < (unsigned)op->n_in + op->n_out; i++) s.len += goal_piece_len(&op->piece[i]);
    return s;
}

/* Appends the messages of one type; returns how many there are now. */
static size_t collect(const struct goal_head *h, unsigned type, uint32_t base, struct side *to, size_t n)
{
    const struct goal_op *op = goal_op_at(h, h->first_op);
    for (uint32_t i = 0; i < h->op_count; i++, op = goal_op_next(op))
        if (op->type == type) to[n++] = side_of(h, op, base + i);
    return n;
}

static int no_memory(void) { return err_set(TERN_ERR_NOMEM, "no memory to check a schedule"); }

/* Two neighbours that are the same message; NULL: there are none. */
static const struct side *twice(const struct side *s, size_t n)
{
    for (size_t i = 1; i < n; i++)
        if (!compare(&s[i - 1], &s[i])) return &s[i];
    return NULL;
}

static int same_tag(const struct side *s, const char *what)
{
    return err_set(TERN_ERR_PROGRAM, "schedule has two %s from rank %d to rank %d under tag %u", what, s->src, s->dst, s->tag);
}

int goal_check_tags(const struct goal_head *h)
{
    struct side *s = malloc(((size_t)h->op_count + 1) * sizeof *s);
    if (!s) return no_memory();
    int rc = 0;
    for (unsigned type = GOAL_OP_SEND; type <= GOAL_OP_RECV && !rc; type++) {
        size_t n = collect(h, type, 0, s, 0);
        qsort(s, n, sizeof *s, compare);
        const struct side *bad = twice(s, n);
        if (bad) rc = same_tag(bad, type == GOAL_OP_SEND ? "sends" : "receives");
    }
    free(s);
    return rc;
}

/* ---- all ranks ------------------------------------------------------------- */

#define NO_PARTNER UINT32_MAX

struct world {
    int n;
    const struct goal_head *const *block;
    size_t ops;               /* of all ranks */
    uint32_t *base;           /* number of each rank's first operation */
    const struct goal_op **op; /* by number */
    int32_t *rank;            /* whose */
    uint32_t *partner;        /* the other side of its message */
    uint32_t *met;            /* predecessors met */
    bool *started;
    uint32_t *queue, tail;
    struct side *send, *recv;
    size_t sends, recvs;
};

static void world_close(struct world *w)
{
    free(w->base);
    free(w->op);
    free(w->rank);
    free(w->partner);
    free(w->met);
    free(w->started);
    free(w->queue);
    free(w->send);
    free(w->recv);
}

static bool world_room(struct world *w)
{
    size_t n = w->ops + 1;
    w->op = calloc(n, sizeof *w->op);
    w->rank = calloc(n, sizeof *w->rank);
    w->partner = calloc(n, sizeof *w->partner);
    w->met = calloc(n, sizeof *w->met);
    w->started = calloc(n, sizeof *w->started);
    w->queue = calloc(n, sizeof *w->queue);
    w->send = calloc(n, sizeof *w->send);
    w->recv = calloc(n, sizeof *w->recv);
    return w->op && w->rank && w->partner && w->met && w->started && w->queue && w->send && w->recv;
}

static int world_open(struct world *w, int n, const struct goal_head *const block[])
{
    *w = (struct world){.n = n, .block = block};
    w->base = calloc((size_t)n, sizeof *w->base);
    if (!w->base) return no_memory();
    for (int r = 0; r < n; r++) {
        const struct goal_head *h = block[r];
        if (h->rank != r || h->size != n)
            return err_set(TERN_ERR_PROGRAM, "rank %d of %d has a schedule for rank %d of %d", r, n, h->rank, h->size);
        w->base[r] = (uint32_t)w->ops;
        w->ops += h->op_count;
    }
    if (w->ops >= NO_PARTNER) return err_set(TERN_ERR_UNSUPPORTED, "a schedule of %zu operations is too long to check", w->ops);
    if (!world_room(w)) return no_memory();
    for (int r = 0; r < n; r++) {
        const struct goal_op *op = goal_op_at(block[r], block[r]->first_op);
        for (uint32_t i = 0; i < block[r]->op_count; i++, op = goal_op_next(op)) {
            w->op[w->base[r] + i] = op;
            w->rank[w->base[r] + i] = r;
        }
        w->sends = collect(block[r], GOAL_OP_SEND, w->base[r], w->send, w->sends);
        w->recvs = collect(block[r], GOAL_OP_RECV, w->base[r], w->recv, w->recvs);
    }
    return 0;
}

static int alone(const struct world *w, const struct side *s, bool send)
{
    uint32_t index = w->op[s->op]->index;
    if (send)
        return err_set(TERN_ERR_PROGRAM, "rank %d sends to rank %d under tag %u (operation %u), and nothing there receives it",
                       s->src, s->dst, s->tag, index);
    return err_set(TERN_ERR_PROGRAM, "rank %d receives from rank %d under tag %u (operation %u), and nothing there sends it",
                   s->dst, s->src, s->tag, index);
}

/* Sorts the messages and makes each send and its receive partners. */
static int pair(struct world *w)
{
    qsort(w->send, w->sends, sizeof *w->send, compare);
    qsort(w->recv, w->recvs, sizeof *w->recv, compare);
    const struct side *bad = twice(w->send, w->sends);
    if (bad) return same_tag(bad, "sends");
    if ((bad = twice(w->recv, w->recvs))) return same_tag(bad, "receives");
    for (size_t i = 0; i < w->sends || i < w->recvs; i++) {
        const struct side *s = i < w->sends ? &w->send[i] : NULL, *r = i < w->recvs ? &w->recv[i] : NULL;
        int which = !s ? 1 : !r ? -1 : compare(s, r);
        if (which) return alone(w, which < 0 ? s : r, which < 0);
        if (s->len > r->len)
            return err_set(TERN_ERR_PROGRAM, "rank %d sends %lld bytes to rank %d under tag %u, which has room for %lld",
                           s->src, (long long)s->len, s->dst, s->tag, (long long)r->len);
        w->partner[s->op] = r->op;
        w->partner[r->op] = s->op;
    }
    return 0;
}

static void release(struct world *w, uint32_t number, bool start)
{
    const struct goal_op *op = w->op[number];
    const struct goal_head *h = w->block[w->rank[number]];
    const uint32_t *to = goal_edges(op) + (start ? op->n_finish : 0);
    for (unsigned k = 0; k < (start ? op->n_start : op->n_finish); k++) {
        const struct goal_op *next = goal_op_at(h, to[k]);
        uint32_t id = w->base[w->rank[number]] + next->index;
        if (++w->met[id] == next->dependencies) w->queue[w->tail++] = id;
    }
}

/* Starts everything that can be; returns how many operations have been. */
static uint32_t run(struct world *w)
{
    uint32_t head = 0;
    for (uint32_t i = 0; i < w->ops; i++)
        if (!w->op[i]->dependencies) w->queue[w->tail++] = i;
    for (; head < w->tail; head++) {
        uint32_t id = w->queue[head];
        w->started[id] = true;
        release(w, id, true);
        if (w->op[id]->type > GOAL_OP_RECV) release(w, id, false);
        else if (w->started[w->partner[id]]) {
            release(w, id, false);
            if (w->partner[id] != id) release(w, w->partner[id], false);
        }
    }
    return w->tail;
}

static int deadlock(const struct world *w)
{
    for (uint32_t i = 0; i < w->ops; i++) {
        const struct goal_op *op = w->op[i];
        if (op->type > GOAL_OP_RECV || !w->started[i] || w->started[w->partner[i]]) continue;
        bool send = op->type == GOAL_OP_SEND;
        return err_set(TERN_ERR_PROGRAM,
                       "deadlock: rank %d %s rank %d under tag %u (operation %u), but what rank %d waits for before it %s "
                       "(operation %u) never ends", w->rank[i], send ? "sends to" : "receives from", op->peer, op->tag, op->index,
                       op->peer, send ? "receives" : "sends", w->op[w->partner[i]]->index);
    }
    return err_set(TERN_ERR_PROGRAM, "deadlock: the dependencies of a schedule form a cycle");
}

int goal_check_all(int n, const struct goal_head *const block[])
{
    struct world w;
    int rc = world_open(&w, n, block);
    if (!rc) rc = pair(&w);
    if (!rc && run(&w) < w.ops) rc = deadlock(&w);
    world_close(&w);
    return rc;
}
