/*
 * tree_shape_test.c - the tree of daemons: every vertex has one parent, which has it as a child; messages find the way; levels are filled
 * one after the other. And what a job of 100 000 processes is described by: it fits, in the bytes that were worked out on paper.
 */
#include "../seed.h"
#include "mpiexec/describe.h"
#include "mpiexec/tree_shape.h"
#include "on_paper.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static uint64_t seed;

/* ---- the shape ---- */

static int depth_of(const struct tree_shape *s, int vertex)
{
    int depth = 0;
    for (; vertex; vertex = tree_parent(s, vertex)) depth++;
    return depth;
}

static void check_children(const struct tree_shape *s)
{
    int next = 1;
    for (int v = 0; v < s->vertices; v++) {
        int first = -1, n = tree_children(s, v, &first);
        assert_in_range(n, 0, s->width);
        if (n) assert_int_equal(first, next); /* each is the child of one, in order */
        for (int c = first; c < first + n; c++) assert_int_equal(tree_parent(s, c), v);
        next += n;
    }
    assert_int_equal(next, s->vertices);
}

static void check_levels(const struct tree_shape *s)
{
    enum { LEVELS = 10 }; /* 300 vertices in a binary tree have 9 */
    int64_t on[LEVELS] = {0};
    for (int v = 0; v < s->vertices; v++) {
        int k = depth_of(s, v);
        assert_in_range(k, 0, LEVELS - 1);
        on[k]++;
    }
    for (int k = 0; k < LEVELS; k++) assert_int_equal(on[k], paper_level(s->width, s->vertices, k));
}

static void every_vertex_has_one_parent(void **state)
{
    (void)state;
    for (int width = 1; width <= 20; width++)
        for (int vertices = 1; vertices <= 300; vertices += 1 + vertices / 20) {
            struct tree_shape s = {width, vertices};
            check_children(&s);
            if (width > 1) check_levels(&s);
        }
    struct tree_shape chain = {1, 50};
    assert_int_equal(depth_of(&chain, 49), 49);
}

/* Step by step from one vertex to another: down where it is below, else up. */
static int steps_between(const struct tree_shape *s, int from, int to)
{
    int steps = 0;
    for (int at = from; at != to; steps++) {
        int child = tree_towards(s, at, to);
        assert_int_equal(child != 0, tree_has_below(s, at, to));
        assert_true(!child || tree_parent(s, child) == at);
        at = child ? child : tree_parent(s, at);
    }
    return steps;
}

static void messages_find_the_way(void **state)
{
    (void)state;
    for (int round = 0; round < 20000; round++) {
        struct tree_shape s = {1 + (int)(seed_next(&seed) % 20), 1 + (int)(seed_next(&seed) % 2000)};
        if (s.width == 1) s.vertices = 1 + s.vertices % 40;
        int a = (int)(seed_next(&seed) % (uint64_t)s.vertices), b = (int)(seed_next(&seed) % (uint64_t)s.vertices), common = a, other = b;
        while (common != other)
            if (common > other) common = tree_parent(&s, common);
            else other = tree_parent(&s, other);
        assert_int_equal(steps_between(&s, a, b), depth_of(&s, a) + depth_of(&s, b) - 2 * depth_of(&s, common));
        assert_int_equal(tree_towards(&s, a, a), 0);
        assert_true(tree_has_below(&s, a, a) && tree_has_below(&s, 0, a));
    }
}

/* Numbers of children that are beyond what an int holds belong to nobody. */
static void wide_trees_end(void **state)
{
    struct tree_shape s = {65536, 65537};
    int first = -1;
    (void)state;
    assert_int_equal(tree_children(&s, 0, &first), 65536);
    assert_int_equal(tree_children(&s, 65536, &first), 0);
}

/* ---- a job of many processes ---- */

enum { PER_HOST = 64, NAME = 8 };

static void make_job(struct job *j, struct spec *s, struct app_spec *as, struct app *a, int ranks)
{
    *as = (struct app_spec){.n = ranks};
    strv_push(&as->argv, "prog");
    *a = (struct app){.spec = as};
    strv_push(&a->env, "PATH=/bin");
    *s = (struct spec){.apps = as, .napps = 1, .size = ranks,
                       .launcher = {.kind = "ssh", .command = "mpiexec --tern-daemon", .width = 16, .seconds = 60}};
    *j = (struct job){.spec = s, .name = "tern.1.2", .size = ranks, .apps = a, .root = true, .nnodes = (ranks + PER_HOST - 1) / PER_HOST};
    j->nodes = calloc((size_t)j->nnodes, sizeof *j->nodes);
    for (int i = 0; i < j->nnodes; i++) {
        char name[20];
        snprintf(name, sizeof name, "h%0*d", NAME - 1, i);
        j->nodes[i] = (struct node){.name = strdup(name), .slots = PER_HOST, .own = i == 0};
    }
    launch_make_ranks(j);
    for (int r = 0; r < ranks; r++) j->ranks[r].node = r / PER_HOST;
}

static void free_job(struct job *j)
{
    for (int i = 0; i < j->nnodes; i++) free(j->nodes[i].name);
    free(j->nodes);
    free(j->ranks);
    strv_free(&j->apps->env);
    strv_free(&j->spec->apps->argv);
}

/* The bytes of its description; the daemon of the last host reads them. */
static size_t describe(int ranks)
{
    struct job j, got = {0};
    struct spec s, got_spec = {0};
    struct app_spec as;
    struct app a;
    struct wire_out w = {0};
    char *cwd;
    make_job(&j, &s, &as, &a, ranks);
    describe_job(&w, &j, "/where");
    if (j.nnodes > 1) {
        assert_null(describe_parse(&got, &got_spec, &cwd, j.nnodes - 1, w.bytes, w.n));
        assert_int_equal(got.size, ranks);
        assert_int_equal(got.nodes[j.nnodes - 1].ranks[0], (j.nnodes - 1) * PER_HOST);
        describe_free(&got, &got_spec);
        free(cwd);
    }
    size_t n = w.n;
    wire_free(&w);
    free_job(&j);
    return n;
}

static void many_processes_are_described(void **state)
{
    static const int ranks[] = {2, PER_HOST, PER_HOST + 1, 10000, 100000, RANKS_MAX};
    size_t once = describe(1) - paper_description(0, 1, NAME, 1);
    (void)state;
    for (unsigned i = 0; i < ARRAY_LEN(ranks); i++) {
        size_t hosts = (size_t)(ranks[i] + PER_HOST - 1) / PER_HOST, n = describe(ranks[i]);
        assert_int_equal(n, paper_description(once, hosts, NAME, (size_t)ranks[i]));
        printf("# %d processes on %zu hosts: described in %zu bytes\n", ranks[i], hosts, n);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_vertex_has_one_parent), cmocka_unit_test(messages_find_the_way),
                                       cmocka_unit_test(wide_trees_end), cmocka_unit_test(many_processes_are_described)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    seed = seed_open();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
