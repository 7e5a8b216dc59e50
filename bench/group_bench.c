/*
 * group_bench - groups of a job of a million ranks, in one process that belongs to no
 * such job: what they take in memory, and what operations on them cost. The limits in
 * rankmap.c (RANKS_PER_RUN and others) were set by it.
 *
 * Prints "key value" lines; times are medians in nanoseconds.
 *
 *   KIND_ranks, KIND_bytes       ranks and memory of a group
 *   KIND_make_ns                 from the group of the world
 *   KIND_OPERATION_ns            with the world (inverse_, union_, minus_), or with itself (find_: its rank of a
 *                                process; at_: the process of its rank)
 *   all_bytes, all_max_bytes     of 100 groups of all kinds: together, the largest
 *   worst_union_ns ...           the slowest of all pairs among the 100, and the median pair
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "obj/group.h"
#include "obj/rankset.h"

enum { WORLD = 1000000, SIDE = 1000, GROUPS = 100, REPS = 9, RANDOM = 1000 };

static struct group *world;
static volatile uint32_t sink; /* results go here, so that nothing is optimised away */

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *t, int n)
{
    qsort(t, (size_t)n, sizeof *t, by_value);
    return t[n / 2];
}

static void check(bool ok, const char *what)
{
    if (ok) return;
    fprintf(stderr, "group_bench: %s\n", what);
    exit(1);
}

static uint32_t rng(uint32_t below)
{
    static uint64_t state = 1;
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)((state >> 32) * below >> 32);
}

/* ---- kinds of groups ---- */

static void half(struct run_list *l, int which) { runs_add(l, which % 2 ? WORLD / 2 : 0, 1, WORLD / 2); }
static void range(struct run_list *l, int which) { runs_add(l, rng(WORLD / 2), 1, 1 + WORLD / (which + 2)); }
static void sevenths(struct run_list *l, int which) { runs_add(l, (uint32_t)(which % 7), 7, WORLD / 7); }
static void reversed(struct run_list *l, int which) { runs_add(l, (uint32_t)(WORLD - 1 - which), -1, WORLD - which); }
static void column(struct run_list *l, int which) { runs_add(l, (uint32_t)which, SIDE, SIDE); }
static void row(struct run_list *l, int which) { runs_add(l, (uint32_t)which * SIDE, 1, SIDE); }

static void blocks(struct run_list *l, int which) /* every other node of 64 ranks */
{
    for (uint32_t at = (uint32_t)which % 2 * 64; at + 64 <= WORLD; at += 128) runs_add(l, at, 1, 64);
}

static void columns(struct run_list *l, int which) /* the grid, column after column: a transposition */
{
    (void)which;
    for (uint32_t c = 0; c < SIDE; c++) runs_add(l, c, SIDE, SIDE);
}

static void all_but_one(struct run_list *l, int which)
{
    uint32_t without = (uint32_t)which * 1237 + 1;
    runs_add(l, 0, 1, (int32_t)without);
    runs_add(l, without + 1, 1, WORLD - 1 - (int32_t)without);
}

static void random_some(struct run_list *l, int which)
{
    (void)which;
    uint32_t at = 0;
    for (int i = 0; i < RANDOM; i++) {
        at += 1 + rng(WORLD / RANDOM - 1);
        runs_add(l, at, 1, 1);
    }
}

static const struct kind {
    const char *name;
    void (*list)(struct run_list *, int which);
} kinds[] = {
    {"half", half},       {"range", range},     {"every_7th", sevenths}, {"reversed", reversed},       {"column", column},
    {"row", row},         {"blocks_64", blocks}, {"transposed", columns}, {"all_but_one", all_but_one}, {"random_1000", random_some},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

static struct group *make(const struct kind *k, int which)
{
    struct run_list l = {0};
    struct group *g = NULL;
    k->list(&l, which);
    struct rankmap *ranks = rankmap_runs(&l);
    check(ranks && !group_pick(world, ranks, &g), "no memory");
    rankmap_unref(ranks);
    return g;
}

/* ---- measuring ---- */

typedef int set_fn(const struct group *, const struct group *, struct group **);

static double one_set(set_fn *fn, const struct group *a, const struct group *b)
{
    struct group *made = NULL;
    uint64_t t = clock_ns();
    check(!fn(a, b, &made), "no memory");
    double ns = (double)(clock_ns() - t);
    group_unref(made);
    return ns;
}

static double set_ns(set_fn *fn, const struct group *a, const struct group *b)
{
    double t[REPS];
    for (int i = 0; i < REPS; i++) t[i] = one_set(fn, a, b);
    return median(t, REPS);
}

static double compare_ns(const struct group *a, const struct group *b)
{
    double t[REPS];
    for (int i = 0; i < REPS; i++) {
        uint64_t begin = clock_ns();
        sink = (uint32_t)group_compare(a, b);
        t[i] = (double)(clock_ns() - begin);
    }
    return median(t, REPS);
}

static double make_ns(const struct kind *k)
{
    double t[REPS];
    for (int i = 0; i < REPS; i++) {
        uint64_t begin = clock_ns();
        struct group *g = make(k, 3);
        t[i] = (double)(clock_ns() - begin);
        group_unref(g);
    }
    return median(t, REPS);
}

static double each_ns(const struct rankmap *m, bool find)
{
    enum { N = 1000 };
    double t[REPS];
    uint32_t what[N];
    for (int i = 0; i < N; i++) what[i] = find ? rankmap_at(m, (int32_t)rng((uint32_t)m->size)) : rng((uint32_t)m->size);
    for (int rep = 0; rep < REPS; rep++) {
        uint64_t begin = clock_ns();
        for (int i = 0; i < N; i++) sink = find ? (uint32_t)rankmap_find(m, what[i]) : rankmap_at(m, (int32_t)what[i]);
        t[rep] = (double)(clock_ns() - begin) / N;
    }
    return median(t, REPS);
}

static void measure_kind(const struct kind *k)
{
    struct group *g = make(k, 3);
    printf("%s_ranks %d\n%s_bytes %zu\n", k->name, g->map->size, k->name, sizeof *g + rankmap_bytes(g->map));
    printf("%s_make_ns %.0f\n", k->name, make_ns(k));
    printf("%s_at_ns %.1f\n%s_find_ns %.1f\n", k->name, each_ns(g->map, false), k->name, each_ns(g->map, true));
    printf("%s_union_ns %.0f\n", k->name, set_ns(group_union, g, world));
    printf("%s_common_ns %.0f\n", k->name, set_ns(group_intersection, world, g));
    printf("%s_minus_ns %.0f\n", k->name, set_ns(group_difference, world, g));
    printf("%s_compare_ns %.0f\n", k->name, compare_ns(world, g));
    fflush(stdout);
    group_unref(g);
}

static void measure_pairs(struct group *g[GROUPS], const char *name, set_fn *fn)
{
    static double t[GROUPS * GROUPS];
    int n = 0;
    for (int i = 0; i < GROUPS; i += 3)
        for (int k = 0; k < GROUPS; k += 3) t[n++] = one_set(fn, g[i], g[k]);
    double middle = median(t, n);
    printf("median_%s_ns %.0f\nworst_%s_ns %.0f\n", name, middle, name, t[n - 1]);
    fflush(stdout);
}

int main(void)
{
    struct group *g[GROUPS];
    size_t bytes = 0, most = 0;
    group_open(WORLD / 3);
    world = group_new(rankmap_line(WORLD, 0, 1));
    check(world, "no memory");
    printf("world_bytes %zu\n", sizeof *world + rankmap_bytes(world->map));
    for (int k = 0; k < KINDS; k++) measure_kind(&kinds[k]);
    for (int i = 0; i < GROUPS; i++) {
        g[i] = make(&kinds[i % KINDS], i / KINDS);
        size_t size = sizeof *world + rankmap_bytes(g[i]->map);
        bytes += size;
        if (size > most) most = size;
    }
    printf("all_bytes %zu\nall_max_bytes %zu\n", bytes, most);
    measure_pairs(g, "union", group_union);
    measure_pairs(g, "common", group_intersection);
    measure_pairs(g, "minus", group_difference);
    for (int i = 0; i < GROUPS; i++) group_unref(g[i]);
    group_unref(world);
    group_close();
    handle_close();
    return 0;
}
