/*
 * refine.c - swapping pairs; see reorder.h.
 *
 * A vertex wants to be near its neighbour that costs it most: it tries to swap with those
 * that are there now. What is there is found in the order of the hardware.
 */
#include "topo/reorder.h"

#include <stdlib.h>

enum { REACH = 8, PASSES = 8 }; /* places looked at on each side of the neighbour; rounds over all vertices */

struct refine {
    const struct reorder_graph *g;
    const struct machine_place *place;
    const int32_t *sorted;
    int32_t *order;
    int32_t *index;  /* of a place, in `sorted` */
    int32_t *vertex; /* at a place */
    int64_t steps;   /* edges looked at */
};

/* What v's edges would cost with v at `at` and `other` at `other_at`. */
static int64_t cost_at(struct refine *r, int32_t v, int32_t at, int32_t other, int32_t other_at)
{
    int64_t cost = 0;
    for (int64_t i = r->g->first[v]; i < r->g->first[v + 1]; i++) {
        int32_t u = r->g->to[i];
        cost += (int64_t)r->g->weight[i] * machine_distance(&r->place[at], &r->place[u == other ? other_at : r->order[u]]);
    }
    r->steps += r->g->first[v + 1] - r->g->first[v] + 1;
    return cost;
}

/* The neighbour that costs v most; -1: none costs anything. */
static int32_t dearest(struct refine *r, int32_t v)
{
    int64_t most = 0;
    int32_t found = -1;
    for (int64_t i = r->g->first[v]; i < r->g->first[v + 1]; i++) {
        int32_t u = r->g->to[i];
        int64_t cost = (int64_t)r->g->weight[i] * machine_distance(&r->place[r->order[v]], &r->place[r->order[u]]);
        if (cost > most) most = cost, found = u;
    }
    r->steps += r->g->first[v + 1] - r->g->first[v] + 1;
    return found;
}

/* How much the whole costs less when u and v swap. (An edge between them costs the same.) */
static int64_t saved(struct refine *r, int32_t v, int32_t u)
{
    int32_t a = r->order[v], b = r->order[u];
    return cost_at(r, v, a, -1, 0) + cost_at(r, u, b, -1, 0) - cost_at(r, v, b, u, a) - cost_at(r, u, a, v, b);
}

/* Swaps v with the best of those near its dearest neighbour; returns what that saved. */
static int64_t improve(struct refine *r, int32_t v)
{
    int32_t neighbour = dearest(r, v), best = -1;
    if (neighbour < 0) return 0;
    int64_t most = 0;
    int32_t centre = r->index[r->order[neighbour]];
    for (int32_t i = centre - REACH; i <= centre + REACH; i++) {
        if (i < 0 || i >= r->g->n) continue;
        int32_t u = r->vertex[r->sorted[i]];
        if (u == v || u == neighbour) continue;
        int64_t s = saved(r, v, u);
        if (s > most) most = s, best = u;
    }
    if (best < 0) return 0;
    int32_t a = r->order[v], b = r->order[best];
    r->order[v] = b;
    r->order[best] = a;
    r->vertex[b] = v;
    r->vertex[a] = best;
    return most;
}

int64_t reorder_refine(const struct reorder_graph *g, const struct machine_place place[], const int32_t sorted[], int32_t order[],
                       int64_t cost)
{
    size_t n = (size_t)g->n;
    int32_t *lists = malloc(2 * n * sizeof *lists);
    struct refine r = {g, place, sorted, order, lists, lists + n, 0};
    if (!lists) return cost; /* it is as good as it is */
    for (int32_t i = 0; i < g->n; i++) {
        r.index[sorted[i]] = i;
        r.vertex[order[i]] = i;
    }
    for (int pass = 0; pass < PASSES; pass++) {
        int64_t gained = 0;
        for (int32_t v = 0; v < g->n && r.steps < REORDER_STEPS; v++) gained += improve(&r, v);
        cost -= gained;
        if (!gained) break;
    }
    free(lists);
    return cost;
}
