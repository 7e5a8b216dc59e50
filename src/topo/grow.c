/*
 * grow.c - parts of a graph that grow; see reorder.h.
 *
 * The places are in the order of the hardware, so each piece of it is a range [lo, hi).
 * vertex[lo] to vertex[hi - 1] are those that go there; splitting a range moves them
 * about inside it.
 */
#include "topo/reorder.h"
#include "base/err.h"

#include <stdlib.h>

struct offer { /* a vertex that may join the part */
    int64_t gain; /* what the weight cut falls by, when it was put here: may be out of date */
    int32_t vertex;
};

struct grow {
    const struct reorder_graph *g;
    const struct machine_place *place;
    const int32_t *sorted;
    int32_t *vertex; /* by position */
    int32_t *where;  /* by vertex: its position */
    int32_t *range;  /* by vertex: number of the range that it may be chosen from; 0: it is chosen */
    int64_t *gain;   /* by vertex */
    struct offer *heap;
    int64_t heaped;
    int32_t ranges;
};

/* ---- the heap: greatest gain first, then the lowest vertex ---- */

static bool before(const struct offer *a, const struct offer *b)
{
    return a->gain != b->gain ? a->gain > b->gain : a->vertex < b->vertex;
}

static void heap_push(struct grow *w, struct offer o)
{
    int64_t i = w->heaped++;
    for (; i && before(&o, &w->heap[(i - 1) / 2]); i = (i - 1) / 2) w->heap[i] = w->heap[(i - 1) / 2];
    w->heap[i] = o;
}

static struct offer heap_pop(struct grow *w)
{
    struct offer top = w->heap[0], last = w->heap[--w->heaped];
    int64_t i = 0;
    for (int64_t child = 1; child < w->heaped; child = 2 * i + 1) {
        if (child + 1 < w->heaped && before(&w->heap[child + 1], &w->heap[child])) child++;
        if (!before(&w->heap[child], &last)) break;
        w->heap[i] = w->heap[child];
        i = child;
    }
    w->heap[i] = last;
    return top;
}

/* ---- one part ---- */

/* Minus the weight of the edges to vertices that are still to be chosen: what joining alone would cut. */
static int64_t lone_gain(const struct grow *w, int32_t v)
{
    int64_t gain = 0;
    for (int64_t i = w->g->first[v]; i < w->g->first[v + 1]; i++)
        if (w->range[w->g->to[i]] == w->range[v]) gain -= w->g->weight[i];
    return gain;
}

/* The vertex at position `to` is v; its neighbours would gain by following it. */
static void join(struct grow *w, int32_t v, int32_t to)
{
    int32_t range = w->range[v], from = w->where[v], moved = w->vertex[to];
    w->vertex[from] = moved;
    w->where[moved] = from;
    w->vertex[to] = v;
    w->where[v] = to;
    w->range[v] = 0;
    for (int64_t i = w->g->first[v]; i < w->g->first[v + 1]; i++) {
        int32_t u = w->g->to[i];
        if (w->range[u] != range) continue;
        w->gain[u] += 2 * (int64_t)w->g->weight[i]; /* an edge less is cut, and it was counted as one that is */
        heap_push(w, (struct offer){w->gain[u], u});
    }
}

/* The vertex in [lo, hi) that is connected the least: a corner. */
static int32_t corner(const struct grow *w, int32_t lo, int32_t hi)
{
    int32_t best = w->vertex[lo];
    for (int32_t i = lo + 1; i < hi; i++) {
        struct offer a = {w->gain[w->vertex[i]], w->vertex[i]}, b = {w->gain[best], best};
        if (before(&a, &b)) best = w->vertex[i];
    }
    return best;
}

/* Chooses vertices of a range for [lo, cut), the seed first. Where nothing is connected any more, it goes on anywhere. */
static void grow_part(struct grow *w, int32_t lo, int32_t cut, int32_t seed)
{
    w->heaped = 0;
    for (int32_t to = lo, next = seed; to < cut; to++, next = -1) {
        while (w->heaped && next < 0) {
            struct offer o = heap_pop(w);
            if (w->range[o.vertex] && w->gain[o.vertex] == o.gain) next = o.vertex;
        }
        join(w, next < 0 ? w->vertex[to] : next, to);
    }
}

/* The part [lo, cut) is there: its edges to the rest of the range do not count any more. Returns the seed of the next. */
static int32_t leave_part(struct grow *w, int32_t lo, int32_t cut)
{
    struct offer best = {INT64_MIN, w->vertex[cut]};
    for (int pass = 0; pass < 2; pass++) /* first all gains, then the choice */
        for (int32_t p = lo; p < cut; p++) {
            int32_t v = w->vertex[p];
            for (int64_t i = w->g->first[v]; i < w->g->first[v + 1]; i++) {
                int32_t u = w->g->to[i];
                if (w->range[u] != w->ranges) continue;
                if (!pass) w->gain[u] -= w->g->weight[i];
                struct offer o = {w->gain[u], u};
                if (pass && before(&o, &best)) best = o;
            }
        }
    return best.vertex;
}

static void new_range(struct grow *w, int32_t lo, int32_t hi)
{
    w->ranges++;
    for (int32_t i = lo; i < hi; i++) w->range[w->vertex[i]] = w->ranges;
    for (int32_t i = lo; i < hi; i++) w->gain[w->vertex[i]] = lone_gain(w, w->vertex[i]);
}

/* Where the piece of hardware ends that starts at a position. */
static int32_t piece_end(const struct grow *w, int32_t start, int32_t hi, int depth)
{
    int32_t end = start + 1;
    while (end < hi && !reorder_apart(&w->place[w->sorted[end - 1]], &w->place[w->sorted[end]], depth)) end++;
    return end;
}

/* Splits a range by the pieces of hardware of this depth, then each by the next. */
static void split(struct grow *w, int32_t lo, int32_t hi, int depth)
{
    if (depth == REORDER_DEPTHS || hi - lo < 2) return;
    if (piece_end(w, lo, hi, depth) < hi) {
        new_range(w, lo, hi);
        int32_t seed = corner(w, lo, hi);
        for (int32_t start = lo, end; start < hi; start = end) {
            end = piece_end(w, start, hi, depth);
            grow_part(w, start, end, seed);
            if (end < hi) seed = leave_part(w, start, end);
        }
    }
    for (int32_t start = lo, end; start < hi; start = end) {
        end = piece_end(w, start, hi, depth);
        split(w, start, end, depth + 1);
    }
}

int reorder_grow(const struct reorder_graph *g, const struct machine_place place[], const int32_t sorted[], int32_t order[])
{
    size_t n = (size_t)g->n, ends = (size_t)g->first[g->n] + 1;
    int32_t *lists = calloc(3 * n, sizeof *lists);
    struct grow w = {.g = g, .place = place, .sorted = sorted, .vertex = lists, .where = lists + n, .range = lists + 2 * n};
    w.gain = malloc(n * sizeof *w.gain);
    w.heap = malloc(ends * sizeof *w.heap);
    bool room = lists && w.gain && w.heap;
    if (room) {
        for (int32_t v = 0; v < g->n; v++) w.vertex[v] = w.where[v] = v;
        split(&w, 0, g->n, 0);
        for (int32_t i = 0; i < g->n; i++) order[w.vertex[i]] = sorted[i];
    }
    free(w.heap);
    free(w.gain);
    free(lists);
    return room ? 0 : err_set(TERN_ERR_NOMEM, "no memory to reorder %d ranks", g->n);
}
