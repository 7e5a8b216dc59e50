/* reorder.c - graphs, costs, and the choice among orders; see reorder.h. */
#include "topo/reorder.h"
#include "base/err.h"

#include <stdlib.h>
#include <string.h>

/* ---- graphs ---- */

static int no_memory(int32_t n) { return err_set(TERN_ERR_NOMEM, "no memory to reorder %d ranks", n); }

void reorder_graph_close(struct reorder_graph *g)
{
    free(g->first);
    free(g->to);
    free(g->weight);
    memset(g, 0, sizeof *g);
}

int reorder_graph_open(struct reorder_graph *g, int32_t n, int64_t edges, const struct reorder_edge *e)
{
    size_t ends = 2 * (size_t)edges + 1;
    *g = (struct reorder_graph){n, calloc((size_t)n + 2, sizeof *g->first), malloc(ends * sizeof *g->to),
                                malloc(ends * sizeof *g->weight)};
    if (!g->first || !g->to || !g->weight) {
        reorder_graph_close(g);
        return no_memory(n);
    }
    int64_t *next = g->first + 1; /* while filling, next[v] is where v's next edge goes; then it is where v + 1 begins */
    for (int64_t i = 0; i < edges; i++)
        if (e[i].from != e[i].to) next[e[i].from + 1]++, next[e[i].to + 1]++;
    for (int32_t v = 0; v < n; v++) next[v + 1] += next[v];
    for (int64_t i = 0; i < edges; i++) {
        if (e[i].from == e[i].to) continue;
        int64_t a = next[e[i].from]++, b = next[e[i].to]++;
        g->to[a] = e[i].to;
        g->to[b] = e[i].from;
        g->weight[a] = g->weight[b] = e[i].weight;
    }
    return 0;
}

int64_t reorder_cost(const struct reorder_graph *g, const struct machine_place place[], const int32_t order[])
{
    int64_t cost = 0;
    for (int32_t v = 0; v < g->n; v++)
        for (int64_t i = g->first[v]; i < g->first[v + 1]; i++) {
            int32_t u = g->to[i];
            if (u > v) cost += (int64_t)g->weight[i] * machine_distance(&place[order ? order[v] : v], &place[order ? order[u] : u]);
        }
    return cost;
}

/* ---- places ---- */

bool reorder_apart(const struct machine_place *a, const struct machine_place *b, int depth)
{
    if (a->node != b->node) return true;
    for (int i = 0; i < depth; i++)
        if (a->at[i] != b->at[i]) return true;
    return false;
}

struct slot {
    struct machine_place at;
    int32_t index;
};

static int by_hardware(const void *a, const void *b)
{
    const struct slot *x = a, *y = b;
    if (x->at.node != y->at.node) return x->at.node < y->at.node ? -1 : 1;
    for (int i = 0; i < MACHINE_LEVELS; i++)
        if (x->at.at[i] != y->at.at[i]) return x->at.at[i] < y->at.at[i] ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

int reorder_sort(int32_t n, const struct machine_place place[], int32_t sorted[])
{
    struct slot *slot = malloc(((size_t)n + 1) * sizeof *slot);
    if (!slot) return no_memory(n);
    for (int32_t i = 0; i < n; i++) slot[i] = (struct slot){place[i], i};
    qsort(slot, (size_t)n, sizeof *slot, by_hardware);
    for (int32_t i = 0; i < n; i++) sorted[i] = slot[i].index;
    free(slot);
    return 0;
}

/* ---- the choice ---- */

struct choice {
    const struct reorder_graph *g;
    const struct machine_place *place;
    int32_t *best, *other;
    int64_t cost;
};

/* The order in `other`, if it was made, becomes the best if it is. */
static void consider(struct choice *c, int rc)
{
    if (rc) return;
    int64_t cost = reorder_cost(c->g, c->place, c->other);
    if (cost >= c->cost) return;
    memcpy(c->best, c->other, (size_t)c->g->n * sizeof *c->best);
    c->cost = cost;
}

static int choose(const struct reorder_graph *g, const struct reorder_grid *grid, const struct machine_place place[],
                  int32_t order[], int32_t *sorted, int32_t *other, struct reorder_result *result)
{
    struct choice c = {g, place, order, other, result->before};
    int rc = reorder_sort(g->n, place, sorted);
    if (rc) return rc;
    if (grid->ndims) consider(&c, reorder_block(grid, g->n, place, sorted, other));
    result->after = c.cost;
    if (g->first[g->n] > REORDER_EDGES) return 0;
    consider(&c, reorder_grow(g, place, sorted, other));
    result->after = reorder_refine(g, place, sorted, order, c.cost);
    return 0;
}

int reorder_find(const struct reorder_graph *g, const struct reorder_grid *grid, const struct machine_place place[], int32_t order[],
                 struct reorder_result *result)
{
    for (int32_t v = 0; v < g->n; v++) order[v] = v;
    result->before = result->after = reorder_cost(g, place, NULL);
    if (!result->before) return 0;
    int32_t *sorted = malloc(2 * (size_t)g->n * sizeof *sorted);
    int rc = sorted ? choose(g, grid, place, order, sorted, sorted + g->n, result) : no_memory(g->n);
    free(sorted);
    return rc;
}
