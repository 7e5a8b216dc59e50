/* graph.c - see graph.h. */
#include "coll/goal/graph.h"

#include "base/err.h"
#include "coll/goal/build.h"
#include <stdlib.h>
#include <string.h>

static int no_memory(void) { return err_set(TERN_ERR_NOMEM, "no memory to change a schedule"); }

static int copy_op(struct graph_op *to, const struct goal_op *op)
{
    size_t pieces = (size_t)op->n_in + op->n_out;
    *to = (struct graph_op){op->type, false, op->tag, op->peer, op->n_in, op->n_out, malloc((pieces + 1) * sizeof *op->piece)};
    if (!to->piece) return no_memory();
    memcpy(to->piece, op->piece, pieces * sizeof *op->piece);
    return 0;
}

int graph_add_edge(struct graph *g, uint32_t from, uint32_t to, bool start)
{
    if (g->edges == g->edge_room) {
        size_t room = g->edge_room ? 2 * g->edge_room : 64;
        struct graph_edge *edge = realloc(g->edge, room * sizeof *edge);
        if (!edge) return no_memory();
        g->edge = edge;
        g->edge_room = room;
    }
    g->edge[g->edges++] = (struct graph_edge){from, to, start, false};
    return 0;
}

int graph_open(struct graph *g, const struct goal_head *h)
{
    *g = (struct graph){.rank = h->rank, .size = h->size, .flags = h->flags, .scratch = h->scratch};
    g->op = calloc((size_t)h->op_count + 1, sizeof *g->op);
    if (!g->op) return no_memory();
    g->ops = h->op_count;
    const struct goal_op *op = goal_op_at(h, h->first_op);
    for (uint32_t i = 0; i < h->op_count; i++, op = goal_op_next(op)) {
        int rc = copy_op(&g->op[i], op);
        for (unsigned k = 0; !rc && k < (unsigned)op->n_finish + op->n_start; k++)
            rc = graph_add_edge(g, i, goal_op_at(h, goal_edges(op)[k])->index, k >= op->n_finish);
        if (rc) {
            graph_close(g);
            return rc;
        }
    }
    return 0;
}

void graph_close(struct graph *g)
{
    for (uint32_t i = 0; i < g->ops; i++) free(g->op[i].piece);
    free(g->op);
    free(g->edge);
    *g = (struct graph){.ops = 0};
}

int graph_remove(struct graph *g, uint32_t op)
{
    size_t n = g->edges, in = 0, out = 0;
    for (size_t i = 0; i < n; i++) {
        if (g->edge[i].gone) continue;
        in += g->edge[i].to == op;
        out += g->edge[i].from == op;
    }
    if (in * out > in + out) {
        g->op[op].type = GOAL_OP_JOIN;
        g->op[op].tag = 0;
        g->op[op].n_in = g->op[op].n_out = 0;
        return 0;
    }
    for (size_t i = 0; i < n; i++) { /* what is said of the start of `before` holds for what comes after, whatever the second edge */
        if (g->edge[i].gone || g->edge[i].to != op) continue;
        for (size_t k = 0; k < n; k++)
            if (!g->edge[k].gone && g->edge[k].from == op && graph_add_edge(g, g->edge[i].from, g->edge[k].to, g->edge[i].start))
                return TERN_ERR_NOMEM;
    }
    for (size_t i = 0; i < n; i++)
        if (g->edge[i].from == op || g->edge[i].to == op) g->edge[i].gone = true;
    g->op[op].gone = true;
    return 0;
}

int graph_out_open(const struct graph *g, struct graph_out *o)
{
    size_t n = (size_t)g->ops + 2;
    o->first = calloc(1, n * sizeof *o->first + (g->edges + 1) * sizeof *o->list);
    if (!o->first) return no_memory();
    o->list = (uint32_t *)(o->first + n);
    for (size_t i = 0; i < g->edges; i++)
        if (!g->edge[i].gone) o->first[g->edge[i].from + 2]++;
    for (size_t i = 2; i < n; i++) o->first[i] += o->first[i - 1];
    for (size_t i = 0; i < g->edges; i++) /* first[i + 1] is the cursor of i, and the beginning of i + 1 in the end */
        if (!g->edge[i].gone) o->list[o->first[g->edge[i].from + 1]++] = (uint32_t)i;
    return 0;
}

/* ---- back to a program ------------------------------------------------------- */

static void parts_of(const struct goal_piece *p, unsigned n, struct goal_part *part)
{
    for (unsigned i = 0; i < n; i++)
        part[i] = (struct goal_part){goal_mem((int)goal_piece_slot(&p[i]), p[i].off), goal_piece_len(&p[i])};
}

static goal_id rebuild_op(struct goal_build *b, const struct graph_op *op, const struct goal_part *in)
{
    const struct goal_part *out = in + op->n_in;
    int n_in = (int)op->n_in, n_out = (int)op->n_out;
    switch (op->type) {
    case GOAL_OP_SEND: return goal_sendv(b, op->peer, op->tag, in, n_in);
    case GOAL_OP_RECV: return goal_recvv(b, op->peer, op->tag, out, n_out);
    case GOAL_OP_COPY: return goal_copyv(b, in, n_in, out, n_out);
    case GOAL_OP_REDUCE: return goal_reducev(b, in, n_in, out, n_out);
    case GOAL_OP_REDUCE3: return goal_reduce3(b, in[0].at, in[1].at, out->at, out->len);
    case GOAL_OP_STAMP: return goal_stamp(b, out->at);
    case GOAL_OP_ARITH: return goal_arithv(b, op->tag, in, n_in, out, n_out);
    default: return goal_join(b);
    }
}

static int rebuild(const struct graph *g, struct goal_build *b, goal_id *id)
{
    if (g->scratch) goal_scratch(b, g->scratch);
    for (uint32_t i = 0; i < g->ops; i++) {
        const struct graph_op *op = &g->op[i];
        id[i] = GOAL_NONE;
        if (op->gone) continue;
        struct goal_part *part = malloc(((size_t)op->n_in + op->n_out + 1) * sizeof *part);
        if (!part) return no_memory();
        parts_of(op->piece, op->n_in + op->n_out, part);
        id[i] = rebuild_op(b, op, part);
        free(part);
    }
    for (size_t i = 0; i < g->edges; i++) {
        const struct graph_edge *e = &g->edge[i];
        if (!e->gone) (e->start ? goal_after_start : goal_after)(b, id[e->to], id[e->from]);
    }
    return goal_build_error(b);
}

int graph_seal(const struct graph *g, struct goal_prog **prog_p)
{
    struct goal_build *b = goal_build_open(g->rank, g->size, g->flags);
    goal_id *id = malloc(((size_t)g->ops + 1) * sizeof *id);
    int rc = b && id ? rebuild(g, b, id) : no_memory();
    if (!rc) rc = goal_seal(b, prog_p);
    goal_build_close(b);
    free(id);
    return rc;
}
