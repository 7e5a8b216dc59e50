/* topo_test.c - topologies as objects: neighbours in the order of MPI-5.0 8.6, steps in grids, copies. */
#include "topo/topo.h"
#include "base/err.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <string.h>

static void same(int n, const int got[], const int want[]) { assert_memory_equal(got, want, (size_t)n * sizeof got[0]); }

/* For each dimension the lower neighbour, then the upper one; nobody behind a border. */
static void neighbours_in_a_grid(void **state)
{
    (void)state;
    int dims[] = {3, 4}, periods[] = {0, 5}, at[] = {0, 3};
    struct comm c = {.topo = topo_new_cart(2, dims, periods, 3)};
    const struct topo *t = topo_of(&c);
    same(2, t->coords, at);
    assert_int_equal(t->periods[1], 1);
    struct topo_neighbors n;
    assert_int_equal(topo_neighbors(&c, &n), 0);
    assert_int_equal(n.in, 4);
    assert_int_equal(n.out, 4);
    same(4, n.sources, (int[]){MPI_PROC_NULL, 7, 2, 0});
    same(4, n.destinations, (int[]){MPI_PROC_NULL, 7, 2, 0});
    assert_int_equal(topo_cart_step(t, 0, 2), 11);
    assert_int_equal(topo_cart_step(t, 0, 3), MPI_PROC_NULL);
    assert_int_equal(topo_cart_step(t, 1, -4 * (int64_t)1000000000 - 1), 2);
    topo_unref(c.topo);
}

static void grid_of_one(void **state)
{
    (void)state;
    struct topo *t = topo_new_cart(0, NULL, NULL, 0);
    assert_int_equal(t->in, 0);
    assert_int_equal(topo_cart_rank(t, NULL), 0);
    topo_unref(t);
    int one = 1, yes = 1;
    t = topo_new_cart(1, &one, &yes, 0);
    same(2, t->sources, (int[]){0, 0}); /* itself, twice */
    topo_unref(t);
}

static void neighbours_in_a_graph(void **state)
{
    (void)state;
    int index[] = {2, 2, 5}, edges[] = {1, 2, 0, 0, 2};
    struct comm c = {.topo = topo_new_graph(3, index, edges, 2)};
    struct topo_neighbors n;
    const int *of;
    assert_int_equal(topo_neighbors(&c, &n), 0);
    assert_int_equal(n.in, 3);
    same(3, n.sources, (int[]){0, 0, 2});
    same(3, n.destinations, (int[]){0, 0, 2});
    assert_int_equal(topo_graph_edges(c.topo, 1, &of), 0);
    assert_int_equal(topo_graph_edges(c.topo, 0, &of), 2);
    same(2, of, (int[]){1, 2});
    topo_unref(c.topo);
}

static void neighbours_in_a_distributed_graph(void **state)
{
    (void)state;
    int in[] = {4, 1}, in_weights[] = {9, 8}, out[] = {3}, out_weights[] = {7};
    struct comm c = {.topo = topo_new_dist(2, in, in_weights, 1, out, out_weights, true)};
    struct topo_neighbors n;
    assert_int_equal(topo_neighbors(&c, &n), 0);
    assert_int_equal(n.in, 2);
    assert_int_equal(n.out, 1);
    same(2, n.sources, in);
    same(1, n.destinations, out);
    same(2, topo_of(&c)->in_weights, in_weights);
    same(1, topo_of(&c)->out_weights, out_weights);
    topo_unref(c.topo);
}

static void copies_share(void **state)
{
    (void)state;
    int dims[] = {2};
    struct comm c = {.topo = topo_new_cart(1, dims, dims, 0)}, dup = {0}, plain = {0}, plain_dup = {0};
    topo_copy(&c, &dup);
    assert_ptr_equal(topo_of(&dup), topo_of(&c));
    topo_unref(c.topo);
    assert_int_equal(topo_of(&dup)->dims[0], 2);
    topo_unref(dup.topo);
    topo_copy(&plain, &plain_dup);
    assert_null(topo_of(&plain_dup));
    struct topo_neighbors n;
    assert_int_equal(topo_neighbors(&plain, &n), TERN_ERR_TOPOLOGY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(neighbours_in_a_grid),
        cmocka_unit_test(grid_of_one),
        cmocka_unit_test(neighbours_in_a_graph),
        cmocka_unit_test(neighbours_in_a_distributed_graph),
        cmocka_unit_test(copies_share),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
