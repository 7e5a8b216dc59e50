/*
 * optimise.c - see optimise.h.
 *
 * What may be left out is decided by what comes before what. For an operation v,
 *
 *     after[v]  the operations that start when v has started, or later
 *     behind[v] those that start when v has finished, or later
 *
 * as sets of bits, found backwards through the graph: a path that begins with an edge after
 * the end of v leads behind it, any other path after its start.
 *
 * Copies. What a copy leaves in the scratchpad can be read at its origin instead, if nobody else writes
 * the copy, who reads it does so behind the copy, and who writes the origin has finished before the copy
 * or starts behind all of its readers. A message that is received into the scratchpad and only copied away
 * can be received where it goes, if whoever else touches that place has finished before the receive,
 * or starts behind the copy. Either way the copy has no use any more, which is seen next.
 *
 * Dead work. What leaves something outside of the scratchpad is live, as are messages; so is what writes
 * anything that live operations read. The rest goes, with the joins that cost more edges than they save.
 *
 * Edges. One from u to v follows from another path: behind u, or for edges after the start after u. All that follow can
 * go at once, since the longest of the paths that a chain of such reasons ends in is made of edges that do not.
 */
#include "coll/goal/optimise.h"

#include "base/err.h"
#include "coll/goal/graph.h"
#include <stdlib.h>
#include <string.h>

enum { OPS_MAX = 4096 }; /* two sets of that many bits an operation: 4 MB; beyond, a program stays as it is */

struct order {
    size_t words;            /* of one set */
    uint64_t *after, *behind; /* by operation */
};

static int no_memory(void) { return err_set(TERN_ERR_NOMEM, "no memory to improve a schedule"); }

static bool has(const struct order *o, const uint64_t *sets, uint32_t v, uint32_t x)
{
    return sets[v * o->words + x / 64] >> x % 64 & 1;
}

static void join_sets(const struct order *o, uint64_t *to, uint32_t v, uint32_t x)
{
    uint64_t *set = to + v * o->words;
    const uint64_t *more = o->after + x * o->words;
    for (size_t i = 0; i < o->words; i++) set[i] |= more[i];
    set[x / 64] |= (uint64_t)1 << x % 64;
}

static void order_close(struct order *o)
{
    free(o->after);
    free(o->behind);
}

/* Operations such that every edge leads to a later one. */
static bool sort(const struct graph *g, const struct graph_out *out, uint32_t *sorted)
{
    uint32_t *left = calloc((size_t)g->ops + 1, sizeof *left), n = 0;
    if (!left) return false;
    for (size_t i = 0; i < g->edges; i++) left[g->edge[i].to] += !g->edge[i].gone;
    for (uint32_t i = 0; i < g->ops; i++)
        if (!left[i]) sorted[n++] = i;
    for (uint32_t i = 0; i < n; i++)
        for (size_t k = out->first[sorted[i]]; k < out->first[sorted[i] + 1]; k++) {
            uint32_t to = g->edge[out->list[k]].to;
            if (!--left[to]) sorted[n++] = to;
        }
    free(left);
    return true;
}

/* A join has finished when it has started. */
static bool by_end(const struct graph *g, const struct graph_edge *e) { return !e->start || g->op[e->from].type == GOAL_OP_JOIN; }

static void order_fill(const struct graph *g, const struct graph_out *out, const uint32_t *sorted, struct order *o)
{
    for (uint32_t i = g->ops; i-- > 0;) {
        uint32_t v = sorted[i];
        for (size_t k = out->first[v]; k < out->first[v + 1]; k++) {
            const struct graph_edge *e = &g->edge[out->list[k]];
            join_sets(o, o->after, v, e->to);
            if (by_end(g, e)) join_sets(o, o->behind, v, e->to);
        }
    }
}

static int order_open(const struct graph *g, struct order *o)
{
    struct graph_out out = {NULL, NULL};
    uint32_t *sorted = malloc(((size_t)g->ops + 1) * sizeof *sorted);
    o->words = ((size_t)g->ops + 63) / 64;
    o->after = calloc((size_t)g->ops * o->words + 1, sizeof *o->after);
    o->behind = calloc((size_t)g->ops * o->words + 1, sizeof *o->behind);
    bool ok = sorted && o->after && o->behind && !graph_out_open(g, &out) && sort(g, &out, sorted);
    if (ok) order_fill(g, &out, sorted, o);
    else order_close(o);
    free(out.first);
    free(sorted);
    return ok ? 0 : no_memory();
}

/* ---- what touches what ------------------------------------------------------------ */

static bool overlap(const struct goal_piece *a, const struct goal_piece *b)
{
    return goal_piece_slot(a) == goal_piece_slot(b) && a->off < b->off + goal_piece_len(b) &&
           b->off < a->off + goal_piece_len(a);
}

static bool inside(const struct goal_piece *a, const struct goal_piece *b)
{
    return goal_piece_slot(a) == goal_piece_slot(b) && a->off >= b->off &&
           a->off + goal_piece_len(a) <= b->off + goal_piece_len(b);
}

static bool updates(const struct graph_op *op) { return op->type == GOAL_OP_REDUCE || op->type == GOAL_OP_ARITH; }

static bool any_overlaps(const struct goal_piece *p, unsigned n, const struct goal_piece *place)
{
    for (unsigned i = 0; i < n; i++)
        if (overlap(&p[i], place)) return true;
    return false;
}

static bool writes(const struct graph_op *op, const struct goal_piece *place)
{
    return !op->gone && any_overlaps(op->piece + op->n_in, op->n_out, place);
}

static bool reads(const struct graph_op *op, const struct goal_piece *place)
{
    return !op->gone && any_overlaps(op->piece, op->n_in + (updates(op) ? op->n_out : 0), place);
}

/* ---- copies --------------------------------------------------------------------------- */

/* Every part of `place` that the operation reads, it only reads, and lies in it as a whole. */
static bool reads_simply(const struct graph_op *op, const struct goal_piece *place)
{
    for (unsigned i = 0; i < op->n_in + op->n_out; i++)
        if (overlap(&op->piece[i], place) && (i >= op->n_in || !inside(&op->piece[i], place))) return false;
    return true;
}

/* May operation x write what a copy c reads, if reader is to read it instead of the copy? */
static bool no_danger(const struct order *o, const struct graph *g, uint32_t x, uint32_t c, const struct goal_piece *copy)
{
    if (has(o, o->behind, x, c)) return true;
    for (uint32_t r = 0; r < g->ops; r++)
        if (r != c && reads(&g->op[r], copy) && !has(o, o->behind, r, x)) return false;
    return has(o, o->behind, c, x);
}

/* Can the readers of what copy c made read its origin? */
static bool can_forward(const struct order *o, const struct graph *g, uint32_t c)
{
    const struct goal_piece *from = &g->op[c].piece[0], *to = &g->op[c].piece[1];
    if (goal_piece_slot(to) != GOAL_SCRATCH) return false;
    for (uint32_t x = 0; x < g->ops; x++) {
        const struct graph_op *op = &g->op[x];
        if (x == c || op->gone) continue;
        if (writes(op, to)) return false;
        if (reads(op, to) && (!has(o, o->behind, c, x) || !reads_simply(op, to))) return false;
        if (writes(op, from) && !no_danger(o, g, x, c, to)) return false;
    }
    return true;
}

static void move_pieces(struct graph_op *op, const struct goal_piece *from, const struct goal_piece *to)
{
    for (unsigned i = 0; i < op->n_in + op->n_out; i++) {
        struct goal_piece *p = &op->piece[i];
        if (!overlap(p, from)) continue;
        p->off += to->off - from->off;
        p->where = (uint64_t)goal_piece_slot(to) << 48 | (uint64_t)goal_piece_len(p);
    }
}

static void forward(struct graph *g, uint32_t c)
{
    const struct goal_piece from = g->op[c].piece[0], to = g->op[c].piece[1];
    for (uint32_t x = 0; x < g->ops; x++)
        if (x != c && !g->op[x].gone) move_pieces(&g->op[x], &to, &from);
}

/* The receive whose message copy c takes away, as a whole and alone, and that could bring it there itself; -1: none. */
static int64_t can_backward(const struct order *o, const struct graph *g, uint32_t c)
{
    const struct goal_piece *from = &g->op[c].piece[0], *to = &g->op[c].piece[1];
    int64_t recv = -1;
    if (goal_piece_slot(from) != GOAL_SCRATCH) return -1;
    for (uint32_t x = 0; x < g->ops; x++) {
        const struct graph_op *op = &g->op[x];
        if (x == c || op->gone || (!writes(op, from) && !reads(op, from))) continue;
        bool whole = op->type == GOAL_OP_RECV && op->n_out == 1 && op->piece[0].off == from->off && op->piece[0].where == from->where;
        if (recv >= 0 || !whole || !has(o, o->behind, x, c)) return -1;
        recv = x;
    }
    for (uint32_t x = 0; recv >= 0 && x < g->ops; x++) {
        const struct graph_op *op = &g->op[x];
        if (x == c || x == recv || op->gone || (!writes(op, to) && !reads(op, to))) continue;
        if (!has(o, o->behind, x, (uint32_t)recv) && !has(o, o->behind, c, x)) return -1;
    }
    return recv;
}

/* One copy after the other; an operation that has become nothing stays in the order that was found. */
static int copies(struct graph *g)
{
    struct order o;
    int rc = order_open(g, &o);
    for (uint32_t c = 0; !rc && c < g->ops; c++) {
        struct graph_op *op = &g->op[c];
        if (op->gone || op->type != GOAL_OP_COPY || op->n_in != 1 || op->n_out != 1) continue;
        int64_t recv = -1;
        if (can_forward(&o, g, c)) forward(g, c);
        else if ((recv = can_backward(&o, g, c)) >= 0) g->op[recv].piece[0] = op->piece[1];
        else continue;
        op->type = GOAL_OP_JOIN; /* keeps its edges: they still order what comes before it and after it */
        op->n_in = op->n_out = 0;
    }
    if (!rc) order_close(&o);
    return rc;
}

/* ---- dead work ---------------------------------------------------------------------------- */

static bool has_effect(const struct graph_op *op)
{
    if (op->type == GOAL_OP_SEND || op->type == GOAL_OP_RECV) return true;
    for (unsigned i = op->n_in; i < op->n_in + op->n_out; i++)
        if (goal_piece_slot(&op->piece[i]) != GOAL_SCRATCH) return true;
    return false;
}

/* Marks who writes something that live operation v reads. */
static void mark_sources(const struct graph *g, uint32_t v, bool *live, uint32_t *queue, uint32_t *tail)
{
    const struct graph_op *op = &g->op[v];
    unsigned n = op->n_in + (updates(op) ? op->n_out : 0);
    for (uint32_t x = 0; x < g->ops; x++)
        for (unsigned i = 0; i < n && !live[x]; i++)
            if (writes(&g->op[x], &op->piece[i])) {
                live[x] = true;
                queue[(*tail)++] = x;
            }
}

static int dead(struct graph *g)
{
    bool *live = calloc((size_t)g->ops + 1, sizeof *live);
    uint32_t *queue = malloc(((size_t)g->ops + 1) * sizeof *queue), tail = 0;
    int rc = live && queue ? 0 : no_memory();
    for (uint32_t i = 0; !rc && i < g->ops; i++)
        if ((live[i] = !g->op[i].gone && has_effect(&g->op[i]))) queue[tail++] = i;
    for (uint32_t i = 0; !rc && i < tail; i++) mark_sources(g, queue[i], live, queue, &tail);
    for (uint32_t i = 0; !rc && i < g->ops; i++)
        if (!live[i] && !g->op[i].gone) rc = graph_remove(g, i);
    free(live);
    free(queue);
    return rc;
}

/* ---- edges ---------------------------------------------------------------------------------- */

/* Does edge e follow from another one out of the same operation? Of equal ones the first stays. */
static bool follows(const struct graph *g, const struct order *o, size_t e, size_t from)
{
    const struct graph_edge *a = &g->edge[e], *b = &g->edge[from];
    bool as_strong = by_end(g, b) || !by_end(g, a);
    if (e == from || !as_strong) return false;
    if (a->to != b->to) return has(o, o->after, b->to, a->to);
    return by_end(g, b) != by_end(g, a) || from < e;
}

static int edges(struct graph *g)
{
    struct order o;
    struct graph_out out;
    int rc = order_open(g, &o);
    if (rc) return rc;
    if (!(rc = graph_out_open(g, &out))) {
        for (uint32_t v = 0; v < g->ops; v++)
            for (size_t i = out.first[v]; i < out.first[v + 1]; i++)
                for (size_t k = out.first[v]; k < out.first[v + 1] && !g->edge[out.list[i]].gone; k++)
                    if (follows(g, &o, out.list[i], out.list[k])) g->edge[out.list[i]].gone = true;
        free(out.first);
    }
    order_close(&o);
    return rc;
}

/* ---- all ------------------------------------------------------------------------------------- */

int goal_optimise(const struct goal_head *h, unsigned passes, struct goal_prog **out_p)
{
    struct graph g;
    if (h->op_count > OPS_MAX) return goal_import(h, h->bytes, out_p);
    int rc = graph_open(&g, h);
    if (rc) return rc;
    if (passes & GOAL_PASS_COPIES) rc = copies(&g);
    if (!rc && (passes & GOAL_PASS_DEAD)) rc = dead(&g);
    if (!rc && (passes & GOAL_PASS_EDGES)) rc = edges(&g);
    if (!rc) rc = graph_seal(&g, out_p);
    graph_close(&g);
    return rc;
}
