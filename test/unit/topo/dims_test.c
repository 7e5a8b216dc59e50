/* dims_test.c - balanced factors (MPI-5.0 8.5.2) against trying everything; bounded work for the worst numbers. */
#include "topo/dims.h"
#include "base/err.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The best k factors, ascending, with product n, by trying all. */
struct goal {
    int k, f[5];
};

/* Less spread, then the smallest as large as possible, then the next. */
static bool better(const struct goal *a, const struct goal *b)
{
    int spread = a->f[a->k - 1] - a->f[0], other = b->f[b->k - 1] - b->f[0];
    if (spread != other) return spread < other;
    for (int i = 0; i < a->k; i++)
        if (a->f[i] != b->f[i]) return a->f[i] > b->f[i];
    return false;
}

/* All ascending factors of n behind the first `made` of `g`. */
static void try_all(int n, int made, struct goal *g, struct goal *best)
{
    int lo = made ? g->f[made - 1] : 1;
    if (made == g->k - 1) {
        g->f[made] = n;
        if (n >= lo && (!best->k || better(g, best))) *best = *g;
        return;
    }
    for (int f = lo; f <= n; f++) {
        int64_t p = 1;
        for (int i = made; i < g->k && p <= n; i++) p *= f;
        if (p > n) return;
        g->f[made] = f;
        if (n % f == 0) try_all(n / f, made + 1, g, best);
    }
}

/* The dimensions are non-increasing, have the product, and are the best (NULL: not known). */
static void right(int n, int k, const int d[], const struct goal *best)
{
    int64_t product = 1;
    for (int i = 0; i < k; i++) {
        assert_true(d[i] >= 1 && (i == 0 || d[i] <= d[i - 1]));
        product *= d[i];
    }
    assert_int_equal(product, n);
    for (int i = 0; i < k && best; i++) {
        if (d[i] != best->f[k - 1 - i]) print_error("%d processes, %d dimensions\n", n, k);
        assert_int_equal(d[i], best->f[k - 1 - i]);
    }
}

static void best_of_all(void **state)
{
    (void)state;
    for (int k = 1; k <= 5; k++)
        for (int n = 1; n <= 2000; n++) {
            int d[5] = {0};
            struct goal best = {0}, g = {.k = k};
            try_all(n, 0, &g, &best);
            assert_int_equal(topo_dims(n, k, d), 0);
            right(n, k, d, &best);
        }
}

static void known_values(void **state)
{
    (void)state;
    static const struct { int n, k, d[4]; } known[] = {
        {6, 2, {3, 2}}, {7, 2, {7, 1}}, {6, 3, {3, 2, 1}}, {48, 3, {4, 4, 3}}, {1200, 3, {12, 10, 10}}, {16, 4, {2, 2, 2, 2}},
        {36, 4, {3, 3, 2, 2}}, {5040, 3, {21, 16, 15}}, {2147483647, 2, {2147483647, 1}}, {1 << 30, 3, {1024, 1024, 1024}}, {1, 3, {1, 1, 1}},
    };
    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        int d[4] = {0};
        assert_int_equal(topo_dims(known[i].n, known[i].k, d), 0);
        assert_memory_equal(d, known[i].d, (size_t)known[i].k * sizeof d[0]);
    }
}

/* Entries that are given stay; the others are what they would be alone. */
static void given(void **state)
{
    (void)state;
    unsigned seed = (unsigned)time(NULL);
    const char *env = getenv("TERN_TEST_SEED");
    if (env) seed = (unsigned)strtoul(env, NULL, 0);
    printf("# TERN_TEST_SEED=%u\n", seed);
    srand(seed);
    for (int round = 0; round < 3000; round++) {
        int k = 1 + rand() % 6, d[6], before[6], alone[6] = {0}, open[6], n = 1 + rand() % 2000, product = 1, holes = 0;
        for (int i = 0; i < k; i++) before[i] = d[i] = rand() % 3 ? 0 : 1 + rand() % 4;
        for (int i = 0; i < k; i++)
            if (d[i]) product *= d[i];
            else holes++;
        if (rand() % 4) n *= product;
        bool possible = n % product == 0 && (holes || n == product);
        int rc = topo_dims(n, k, d);
        assert_int_equal(rc, possible ? 0 : TERN_ERR_DIMS);
        if (rc) assert_memory_equal(d, before, (size_t)k * sizeof d[0]);
        if (rc || !holes) continue;
        int next = 0;
        for (int i = 0; i < k; i++)
            if (before[i]) assert_int_equal(d[i], before[i]);
            else open[next++] = d[i];
        assert_int_equal(topo_dims(n / product, holes, alone), 0);
        assert_memory_equal(open, alone, (size_t)holes * sizeof d[0]);
    }
}

static void impossible(void **state)
{
    (void)state;
    int d[3] = {0, 4, 0};
    assert_int_equal(topo_dims(6, 3, d), TERN_ERR_DIMS);
    d[1] = -2;
    assert_int_equal(topo_dims(6, 3, d), TERN_ERR_DIMS);
    assert_non_null(strstr(err_words(), "dims[1] is -2"));
    int all[2] = {2, 2};
    assert_int_equal(topo_dims(8, 2, all), TERN_ERR_DIMS);
    assert_int_equal(topo_dims(4, 2, all), 0);
    assert_int_equal(topo_dims(2, 0, NULL), TERN_ERR_DIMS);
    assert_int_equal(topo_dims(1, 0, NULL), 0);
}

/* The numbers with the most divisors, powers, large primes with rich rests: the work stays small in any dimension. */
static void bounded(void **state)
{
    (void)state;
    static const int hard[] = {2095133040, 1102701600, 2147483640, 1396755360, 73513440, 110270160, 1 << 30, 1 << 20, 1162261467,
                               1009 * 1048576, 46337 * 46327, 1021 * 1019 * 1013, 1999 * 720720, 10007 * 166320, 1000000, 1048575};
    int64_t most = 0;
    int at = 0, at_k = 0;
    for (size_t i = 0; i < ARRAY_LEN(hard); i++)
        for (int k = 1; k <= 32; k++) {
            int d[32];
            int64_t steps;
            assert_int_equal(dims_balance(hard[i], k, d, &steps), 0);
            right(hard[i], k, d, NULL);
            if (steps > most) most = steps, at = hard[i], at_k = k;
        }
    printf("# most steps: %lld, for %d processes in %d dimensions\n", (long long)most, at, at_k);
    assert_true(most < 40000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_values), cmocka_unit_test(best_of_all), cmocka_unit_test(given),
        cmocka_unit_test(impossible),   cmocka_unit_test(bounded),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
