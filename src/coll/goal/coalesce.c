/*
 * coalesce.c - fewer messages: see goal_coalesce in optimise.h.
 *
 * Two messages from one rank to another become one if their sends wait for the same operations, and so do their receives.
 * Then the two sends have always been started together, and the two receives, so that nothing waits for the
 * new message that did not wait for both of the old ones already, and no deadlock can come of it.
 */
#include "coll/goal/optimise.h"

#include "base/err.h"
#include "coll/goal/graph.h"
#include <stdlib.h>
#include <string.h>

struct end { /* of a message */
    int32_t src, dst;
    uint32_t tag, op; /* index in the program of its rank */
    int64_t len;
};

struct part { /* the program of one rank */
    struct graph g;
    size_t *first;    /* the operations that i waits for: before[first[i]] to before[first[i + 1] - 1], ascending ... */
    uint64_t *before; /* ... each as its index and, in the lowest bit, whether for its start */
};

struct merger {
    int n;
    int64_t most;
    struct part *part;
    struct end *send, *recv; /* sorted alike, so that the i-th ones are of the same message */
    size_t messages;
};

static int no_memory(void) { return err_set(TERN_ERR_NOMEM, "no memory to improve a schedule"); }

static int compare_numbers(const void *x, const void *y)
{
    uint64_t a = *(const uint64_t *)x, b = *(const uint64_t *)y;
    return a < b ? -1 : a > b;
}

static int compare_ends(const void *x, const void *y)
{
    const struct end *a = x, *b = y;
    if (a->src != b->src) return a->src < b->src ? -1 : 1;
    if (a->dst != b->dst) return a->dst < b->dst ? -1 : 1;
    return a->tag < b->tag ? -1 : a->tag > b->tag;
}

/* ---- what operations wait for ------------------------------------------------ */

static int part_open(struct part *p, const struct goal_head *h)
{
    int rc = graph_open(&p->g, h);
    if (rc) return rc;
    size_t n = (size_t)p->g.ops + 2;
    p->first = calloc(n, sizeof *p->first);
    p->before = malloc((p->g.edges + 1) * sizeof *p->before);
    if (!p->first || !p->before) return no_memory();
    for (size_t i = 0; i < p->g.edges; i++) p->first[p->g.edge[i].to + 2]++;
    for (size_t i = 2; i < n; i++) p->first[i] += p->first[i - 1];
    for (size_t i = 0; i < p->g.edges; i++)
        p->before[p->first[p->g.edge[i].to + 1]++] = 2 * (uint64_t)p->g.edge[i].from + p->g.edge[i].start;
    for (uint32_t i = 0; i < p->g.ops; i++)
        qsort(p->before + p->first[i], p->first[i + 1] - p->first[i], sizeof *p->before, compare_numbers);
    return 0;
}

static bool wait_alike(const struct part *p, uint32_t a, uint32_t b)
{
    size_t n = p->first[a + 1] - p->first[a];
    return n == p->first[b + 1] - p->first[b] && !memcmp(p->before + p->first[a], p->before + p->first[b], n * sizeof *p->before);
}

/* ---- messages -------------------------------------------------------------------- */

static void collect(struct merger *m, int rank, size_t *sends, size_t *recvs)
{
    const struct graph *g = &m->part[rank].g;
    for (uint32_t i = 0; i < g->ops; i++) {
        const struct graph_op *op = &g->op[i];
        bool send = op->type == GOAL_OP_SEND;
        if (!send && op->type != GOAL_OP_RECV) continue;
        struct end e = {send ? rank : op->peer, send ? op->peer : rank, op->tag, i, 0};
        for (unsigned k = 0; k < op->n_in + op->n_out; k++) e.len += goal_piece_len(&op->piece[k]);
        if (send) m->send[(*sends)++] = e;
        else m->recv[(*recvs)++] = e;
    }
}

static int find_messages(struct merger *m)
{
    size_t ops = 1, sends = 0, recvs = 0;
    for (int r = 0; r < m->n; r++) ops += m->part[r].g.ops;
    m->send = malloc(ops * sizeof *m->send);
    m->recv = malloc(ops * sizeof *m->recv);
    if (!m->send || !m->recv) return no_memory();
    for (int r = 0; r < m->n; r++) collect(m, r, &sends, &recvs);
    qsort(m->send, sends, sizeof *m->send, compare_ends);
    qsort(m->recv, recvs, sizeof *m->recv, compare_ends);
    m->messages = sends;
    return sends == recvs ? 0 : err_set(TERN_ERR_PROGRAM, "%zu sends and %zu receives in a schedule", sends, recvs);
}

/* The pieces and successors of operation `b` become those of `a`. */
static int swallow(struct graph *g, uint32_t a, uint32_t b)
{
    struct graph_op *x = &g->op[a], *y = &g->op[b];
    size_t n = x->n_in + x->n_out, more = y->n_in + y->n_out;
    struct goal_piece *piece = realloc(x->piece, (n + more + 1) * sizeof *piece);
    if (!piece) return no_memory();
    memcpy(piece + n, y->piece, more * sizeof *piece);
    x->piece = piece;
    x->n_in += y->n_in;
    x->n_out += y->n_out;
    y->gone = true;
    for (size_t i = 0; i < g->edges; i++) {
        if (g->edge[i].to == b) g->edge[i].gone = true;
        if (g->edge[i].from == b) g->edge[i].from = a;
    }
    return 0;
}

/* May message k become part of message i, which has `len` bytes by now? */
static bool fits(const struct merger *m, size_t i, size_t k, int64_t len)
{
    const struct end *s = m->send, *r = m->recv;
    const struct part *from = &m->part[s[i].src], *to = &m->part[s[i].dst];
    const struct graph_op *out[2] = {&from->g.op[s[i].op], &from->g.op[s[k].op]}, *in[2] = {&to->g.op[r[i].op], &to->g.op[r[k].op]};
    if (out[1]->gone || len + s[k].len > m->most || s[k].len != r[k].len || s[i].len != r[i].len) return false;
    if (out[0]->n_in + out[1]->n_in > GOAL_PIECES_MAX || in[0]->n_out + in[1]->n_out > GOAL_PIECES_MAX) return false;
    return wait_alike(from, s[i].op, s[k].op) && wait_alike(to, r[i].op, r[k].op);
}

static int merge(struct merger *m)
{
    for (size_t i = 0; i < m->messages; i++) {
        const struct end *s = &m->send[i], *r = &m->recv[i];
        int64_t len = s->len;
        if (m->part[s->src].g.op[s->op].gone) continue;
        for (size_t k = i + 1; k < m->messages && m->send[k].src == s->src && m->send[k].dst == s->dst; k++) {
            if (!fits(m, i, k, len)) continue;
            len += m->send[k].len;
            if (swallow(&m->part[s->src].g, s->op, m->send[k].op) || swallow(&m->part[s->dst].g, r->op, m->recv[k].op))
                return TERN_ERR_NOMEM;
        }
    }
    return 0;
}

/* ---- all ---------------------------------------------------------------------------- */

static void merger_close(struct merger *m)
{
    for (int r = 0; m->part && r < m->n; r++) {
        graph_close(&m->part[r].g);
        free(m->part[r].first);
        free(m->part[r].before);
    }
    free(m->part);
    free(m->send);
    free(m->recv);
}

static int seal_all(struct merger *m, struct goal_prog *out[])
{
    for (int r = 0; r < m->n; r++) {
        int rc = graph_seal(&m->part[r].g, &out[r]);
        if (!rc) continue;
        while (r--) goal_unref(out[r]);
        return rc;
    }
    return 0;
}

int goal_coalesce(int n, const struct goal_head *const in[], int64_t most, struct goal_prog *out[])
{
    struct merger m = {.n = n, .most = most, .part = calloc((size_t)n, sizeof *m.part)};
    int rc = m.part ? 0 : no_memory();
    for (int r = 0; r < n && !rc; r++) rc = part_open(&m.part[r], in[r]);
    if (!rc) rc = find_messages(&m);
    if (!rc) rc = merge(&m);
    if (!rc) rc = seal_all(&m, out);
    merger_close(&m);
    return rc;
}
