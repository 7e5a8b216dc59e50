/*
 * reorder_test.c - orders of ranks on made-up machines: they are orders, they never cost more, blocks are the best ones,
 * and what was hidden by shuffling is found again. TERN_TEST_TABLE=1 prints the costs that doc/decisions tells.
 */
#include "topo/reorder.h"
#include "../seed.h"
#include "base/err.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static uint64_t seed;

static uint32_t draw(uint32_t below)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(seed >> 33) % below;
}

/* ---- machines ---- */

enum layout { BY_CORE, BY_NODE, SHUFFLED, UNBOUND };
static const char *const layout_name[] = {"filled", "round robin", "shuffled", "unbound"};

struct machine {
    int nodes, packages, l3s, cores; /* each in one of the wider */
};

static int cpus_of(const struct machine *m) { return m->nodes * m->packages * m->l3s * m->cores; }

/* Cpu number `cpu` of all nodes. */
static struct machine_place place_of(const struct machine *m, int cpu)
{
    struct machine_place p;
    int per_node = cpus_of(m) / m->nodes, local = cpu % per_node;
    p.node = cpu / per_node;
    for (int i = 0; i < MACHINE_LEVELS; i++) p.at[i] = local;
    p.at[MACHINE_PACKAGE] = p.at[MACHINE_NUMA] = local / (m->l3s * m->cores);
    p.at[MACHINE_L3] = local / m->cores;
    return p;
}

static struct machine_place *make_places(const struct machine *m, int n, enum layout layout)
{
    struct machine_place *p = malloc((size_t)n * sizeof *p);
    int per_node = cpus_of(m) / m->nodes;
    for (int i = 0; i < n; i++) {
        p[i] = place_of(m, layout == BY_NODE ? i % m->nodes * per_node + i / m->nodes : i);
        if (layout == UNBOUND) memset(p[i].at, 0xff, sizeof p[i].at);
    }
    for (int i = n - 1; i > 0 && layout == SHUFFLED; i--) {
        int j = (int)draw((uint32_t)i + 1);
        struct machine_place t = p[i];
        p[i] = p[j];
        p[j] = t;
    }
    return p;
}

/* ---- topologies ---- */

static void grid_graph(struct reorder_graph *g, const struct reorder_grid *grid)
{
    int n = 1, count = 0;
    for (int i = 0; i < grid->ndims; i++) n *= grid->dims[i];
    struct reorder_edge *e = malloc((size_t)n * (size_t)grid->ndims * sizeof *e);
    for (int v = 0; v < n; v++)
        for (int i = grid->ndims - 1, stride = 1, rest = v; i >= 0; rest /= grid->dims[i], stride *= grid->dims[i], i--) {
            int at = rest % grid->dims[i];
            if (at + 1 < grid->dims[i]) e[count++] = (struct reorder_edge){v, v + stride, 1};
            else if (grid->periods[i]) e[count++] = (struct reorder_edge){v, v - at * stride, 1};
        }
    assert_int_equal(reorder_graph_open(g, n, count, e), 0);
    free(e);
}

static void random_graph(struct reorder_graph *g, int n, int edges)
{
    struct reorder_edge *e = malloc(((size_t)edges + 1) * sizeof *e);
    for (int i = 0; i < edges; i++) e[i] = (struct reorder_edge){(int)draw((uint32_t)n), (int)draw((uint32_t)n), (int)draw(10)};
    assert_int_equal(reorder_graph_open(g, n, edges, e), 0);
    free(e);
}

/* Cliques of `size` whose members are spread over all vertices. */
static void hidden_cliques(struct reorder_graph *g, int cliques, int size)
{
    struct reorder_edge *e = malloc((size_t)(cliques * size * size) * sizeof *e);
    int count = 0;
    for (int c = 0; c < cliques; c++)
        for (int a = 0; a < size; a++)
            for (int b = 0; b < a; b++) e[count++] = (struct reorder_edge){a * cliques + c, b * cliques + c, 5};
    assert_int_equal(reorder_graph_open(g, cliques * size, count, e), 0);
    free(e);
}

/* ---- what is always true ---- */

static struct reorder_result find(const struct reorder_graph *g, const struct reorder_grid *grid, const struct machine_place *place)
{
    static const struct reorder_grid none;
    struct reorder_result r;
    int32_t *order = malloc((size_t)g->n * sizeof *order), *again = malloc((size_t)g->n * sizeof *again);
    char *seen = calloc((size_t)g->n, 1);
    assert_int_equal(reorder_find(g, grid ? grid : &none, place, order, &r), 0);
    for (int v = 0; v < g->n; v++) {
        assert_in_range(order[v], 0, g->n - 1);
        assert_int_equal(seen[order[v]]++, 0);
    }
    assert_int_equal(r.before, reorder_cost(g, place, NULL));
    assert_int_equal(r.after, reorder_cost(g, place, order));
    assert_true(r.after <= r.before);
    struct reorder_result other;
    assert_int_equal(reorder_find(g, grid ? grid : &none, place, again, &other), 0);
    assert_memory_equal(order, again, (size_t)g->n * sizeof *order); /* whoever computes finds the same */
    free(seen);
    free(again);
    free(order);
    return r;
}

static void graphs_are_symmetric(void **state)
{
    (void)state;
    struct reorder_edge e[] = {{0, 2, 3}, {1, 1, 9}, {2, 1, 4}, {0, 2, 1}};
    struct reorder_graph g;
    assert_int_equal(reorder_graph_open(&g, 3, 4, e), 0);
    int64_t first[] = {0, 2, 3, 6};
    int32_t to[] = {2, 2, 2, 0, 1, 0}, weight[] = {3, 1, 4, 3, 4, 1};
    assert_memory_equal(g.first, first, sizeof first);
    assert_memory_equal(g.to, to, sizeof to);
    assert_memory_equal(g.weight, weight, sizeof weight);
    reorder_graph_close(&g);
}

static void never_worse(void **state)
{
    (void)state;
    for (int round = 0; round < 300; round++) {
        struct machine m = {1 + (int)draw(4), 1 + (int)draw(2), 1 + (int)draw(3), 1 + (int)draw(4)};
        int n = 1 + (int)draw((uint32_t)cpus_of(&m));
        struct machine_place *p = make_places(&m, n, (enum layout)draw(4));
        struct reorder_graph g;
        random_graph(&g, n, (int)draw((uint32_t)(4 * n)));
        find(&g, NULL, p);
        reorder_graph_close(&g);
        free(p);
    }
}

/* Grids of any shape, on machines that they fill or do not. */
static void grids_never_worse(void **state)
{
    (void)state;
    for (int round = 0; round < 300; round++) {
        int dims[3] = {1 + (int)draw(6), 1 + (int)draw(6), 1 + (int)draw(4)}, periods[3] = {(int)draw(2), (int)draw(2), (int)draw(2)};
        struct reorder_grid grid = {1 + (int)draw(3), dims, periods};
        struct machine m = {36, 2, 1, 2};
        struct reorder_graph g;
        grid_graph(&g, &grid);
        struct machine_place *p = make_places(&m, g.n, (enum layout)draw(4));
        find(&g, &grid, p);
        reorder_graph_close(&g);
        free(p);
    }
}

/* 8 x 8 on 4 nodes of 16: blocks of 4 x 4 leave 16 edges between nodes; inside, packages of 2 x 4 leave 4 each. */
static void blocks_have_the_least_surface(void **state)
{
    (void)state;
    struct machine m = {4, 2, 1, 8};
    int dims[] = {8, 8}, periods[] = {0, 0};
    struct reorder_grid grid = {2, dims, periods};
    struct reorder_graph g;
    grid_graph(&g, &grid);
    for (int layout = BY_CORE; layout <= SHUFFLED; layout++) {
        struct machine_place *p = make_places(&m, 64, (enum layout)layout);
        int32_t sorted[64], order[64];
        assert_int_equal(reorder_sort(64, p, sorted), 0);
        assert_int_equal(reorder_block(&grid, 64, p, sorted, order), 0);
        int across = 0, packages = 0;
        for (int v = 0; v < 64; v++)
            for (int64_t i = g.first[v]; i < g.first[v + 1]; i++) {
                if (g.to[i] < v) continue;
                const struct machine_place *a = &p[order[v]], *b = &p[order[g.to[i]]];
                across += a->node != b->node;
                packages += a->node == b->node && a->at[MACHINE_PACKAGE] != b->at[MACHINE_PACKAGE];
            }
        assert_int_equal(across, 16);
        assert_int_equal(packages, 4 * 4);
        free(p);
    }
    reorder_graph_close(&g);
}

/* Irregular hardware and grids that cannot be cut equally are for growing. */
static void blocks_need_regular_hardware(void **state)
{
    (void)state;
    struct machine m = {2, 1, 1, 8};
    int dims[] = {3, 3}, periods[] = {0, 0};
    struct reorder_grid grid = {2, dims, periods};
    struct machine_place *p = make_places(&m, 9, BY_CORE); /* 8 and 1 */
    int32_t sorted[9], order[9];
    assert_int_equal(reorder_sort(9, p, sorted), 0);
    assert_int_equal(reorder_block(&grid, 9, p, sorted, order), TERN_ERR_NOT_FOUND);
    free(p);
}

static void cliques_are_found(void **state)
{
    (void)state;
    struct machine m = {8, 1, 1, 6};
    struct reorder_graph g;
    hidden_cliques(&g, 8, 6);
    struct machine_place *p = make_places(&m, 48, BY_CORE);
    struct reorder_result r = find(&g, NULL, p);
    int inside = 4; /* L2, L1, core and cpu differ on one node */
    assert_int_equal(r.after, 8 * 15 * 5 * inside);
    assert_true(r.before > r.after);
    reorder_graph_close(&g);
    free(p);
}

static void nothing_known_nothing_done(void **state)
{
    (void)state;
    struct machine m = {1, 2, 2, 4};
    struct reorder_graph g;
    random_graph(&g, 16, 40);
    struct machine_place *p = make_places(&m, 16, UNBOUND);
    struct reorder_result r = find(&g, NULL, p);
    assert_int_equal(r.before, 0);
    reorder_graph_close(&g);
    free(p);
}

/* ---- figures ---- */

static void row(const char *name, const struct reorder_graph *g, const struct reorder_grid *grid, const struct machine *m, enum layout layout)
{
    struct timespec a, b;
    struct machine_place *p = make_places(m, g->n, layout);
    static const struct reorder_grid none;
    struct reorder_result r;
    int32_t *order = malloc((size_t)g->n * sizeof *order);
    clock_gettime(CLOCK_MONOTONIC, &a);
    assert_int_equal(reorder_find(g, grid ? grid : &none, p, order, &r), 0);
    clock_gettime(CLOCK_MONOTONIC, &b);
    double ms = (double)(b.tv_sec - a.tv_sec) * 1e3 + (double)(b.tv_nsec - a.tv_nsec) / 1e6;
    printf("# | %s | %s | %lld | %lld | %.2f | %.1f |\n", name, layout_name[layout], (long long)r.before, (long long)r.after,
           r.before ? (double)r.after / (double)r.before : 1.0, ms);
    assert_true(r.after <= r.before);
    free(order);
    free(p);
}

static void table(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int ndims, dims[3], periods[3];
        struct machine m;
    } grids[] = {
        {"8 x 8 grid, 4 nodes", 2, {8, 8, 0}, {0, 0, 0}, {4, 2, 2, 4}},
        {"8 x 8 x 8 torus, 16 nodes", 3, {8, 8, 8}, {1, 1, 1}, {16, 2, 2, 8}},
        {"32 x 32 grid, 16 nodes", 2, {32, 32, 0}, {0, 0, 0}, {16, 2, 4, 8}},
        {"15 x 9 grid, 9 nodes of 16", 2, {15, 9, 0}, {0, 0, 0}, {9, 2, 1, 8}},
        {"64 x 64 x 32 grid, 1024 nodes", 3, {64, 64, 32}, {0, 0, 0}, {1024, 2, 4, 16}},
    };
    size_t lines = getenv("TERN_TEST_TABLE") ? ARRAY_LEN(grids) : 2;
    for (size_t i = 0; i < lines; i++) {
        struct reorder_grid grid = {grids[i].ndims, grids[i].dims, grids[i].periods};
        struct reorder_graph g;
        grid_graph(&g, &grid);
        for (int layout = BY_CORE; layout <= SHUFFLED; layout++) row(grids[i].name, &g, &grid, &grids[i].m, (enum layout)layout);
        reorder_graph_close(&g);
    }
    struct machine m = {8, 2, 2, 4};
    struct reorder_graph g;
    hidden_cliques(&g, 16, 8);
    for (int layout = BY_CORE; layout <= SHUFFLED; layout++) row("16 cliques of 8, 8 nodes", &g, NULL, &m, (enum layout)layout);
    reorder_graph_close(&g);
    random_graph(&g, 128, 384);
    for (int layout = BY_CORE; layout <= SHUFFLED; layout++) row("random, 3 edges a rank, 8 nodes", &g, NULL, &m, (enum layout)layout);
    reorder_graph_close(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(graphs_are_symmetric),
        cmocka_unit_test(never_worse),
        cmocka_unit_test(grids_never_worse),
        cmocka_unit_test(blocks_have_the_least_surface),
        cmocka_unit_test(blocks_need_regular_hardware),
        cmocka_unit_test(cliques_are_found),
        cmocka_unit_test(nothing_known_nothing_done),
        cmocka_unit_test(table),
    };
    seed = seed_open();
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
