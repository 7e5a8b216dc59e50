/* array_test.c - darray against the distribution rules of 5.1.4 (subarray is in the random types of build_test). */
#include "base/err.h"
#include "reference.h"
#include "type/cursor.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define DIMS 3

struct distribution {
    int ndims, order, psizes[DIMS], distribs[DIMS], dargs[DIMS], size;
    int64_t gsizes[DIMS];
};

static void random_distribution(struct distribution *d)
{
    static const int kinds[] = {MPI_DISTRIBUTE_NONE, MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC};
    d->ndims = (int)random_int(1, DIMS);
    d->order = random_u64() & 1 ? MPI_ORDER_C : MPI_ORDER_FORTRAN;
    d->size = 1;
    for (int i = 0; i < d->ndims; i++) {
        d->gsizes[i] = random_int(1, 9);
        d->distribs[i] = kinds[random_int(0, 2)];
        d->psizes[i] = d->distribs[i] == MPI_DISTRIBUTE_NONE ? 1 : (int)random_int(1, 3);
        d->dargs[i] = MPI_DISTRIBUTE_DFLT_DARG;
        if (d->distribs[i] == MPI_DISTRIBUTE_CYCLIC && random_u64() & 1) d->dargs[i] = (int)random_int(1, 4);
        if (d->distribs[i] == MPI_DISTRIBUTE_BLOCK && random_u64() & 1)
            d->dargs[i] = (int)((d->gsizes[i] + d->psizes[i] - 1) / d->psizes[i] + random_int(0, 2));
        d->size *= d->psizes[i];
    }
}

/* Which process of its dimension owns index g. */
static int owner(const struct distribution *d, int dim, int64_t g)
{
    int64_t block = d->dargs[dim];
    if (d->distribs[dim] == MPI_DISTRIBUTE_NONE) return 0;
    if (d->distribs[dim] == MPI_DISTRIBUTE_BLOCK) {
        if (block == MPI_DISTRIBUTE_DFLT_DARG) block = (d->gsizes[dim] + d->psizes[dim] - 1) / d->psizes[dim];
        return (int)(g / block);
    }
    if (block == MPI_DISTRIBUTE_DFLT_DARG) block = 1;
    return (int)(g / block % d->psizes[dim]);
}

/* Ranks count the process grid with the last dimension fastest. */
static int owner_rank(const struct distribution *d, const int64_t *g)
{
    int rank = 0;
    for (int i = 0; i < d->ndims; i++) rank = rank * d->psizes[i] + owner(d, i, g[i]);
    return rank;
}

/* The indices of element k of the array in memory order. */
static void indices(const struct distribution *d, int64_t k, int64_t *g)
{
    for (int i = 0; i < d->ndims; i++) {
        int dim = d->order == MPI_ORDER_C ? d->ndims - 1 - i : i;
        g[dim] = k % d->gsizes[dim];
        k /= d->gsizes[dim];
    }
}

static void check_rank(const struct distribution *d, int rank, int64_t total)
{
    struct type *t;
    struct type_cursor c;
    int array[9 * 9 * 9], mine[9 * 9 * 9];
    int64_t g[DIMS], n = 0;
    for (int64_t k = 0; k < total; k++) array[k] = (int)k;
    assert_int_equal(type_darray(d->size, rank, d->ndims, d->gsizes, d->distribs, d->dargs, d->psizes, d->order,
                                 type_of(MPI_INT), &t),
                     0);
    assert_int_equal(type_commit(t), 0);
    assert_int_equal(t->lb, 0);
    assert_int_equal(t->extent, total * (int64_t)sizeof(int));
    type_cursor_init(&c, t, 1, array);
    size_t bytes = type_pack(&c, mine, sizeof mine);
    for (int64_t k = 0; k < total; k++) {
        indices(d, k, g);
        if (owner_rank(d, g) == rank) assert_int_equal(mine[n++], k); /* in memory order, each exactly once */
    }
    assert_int_equal(bytes, n * (int64_t)sizeof(int));
    assert_int_equal(t->size, bytes);
    if (n) {
        assert_int_equal(t->true_lb, mine[0] * (int64_t)sizeof(int));
        assert_int_equal(t->true_lb + t->true_extent, (mine[n - 1] + 1) * (int64_t)sizeof(int));
    }
    type_unref(t);
}

static void every_rank_has_its_share(void **state)
{
    (void)state;
    for (int64_t i = test_count(10000) / 10 + 1; i > 0; i--) {
        struct distribution d;
        int64_t total = 1;
        random_distribution(&d);
        for (int k = 0; k < d.ndims; k++) total *= d.gsizes[k];
        for (int rank = 0; rank < d.size; rank++) check_rank(&d, rank, total);
    }
}

static void refused_by(int error, int size, int rank, int ndims, int64_t gsize, int distrib, int darg, int psize)
{
    struct type *t = NULL;
    assert_int_equal(type_darray(size, rank, ndims, &gsize, &distrib, &darg, &psize, MPI_ORDER_C, type_of(MPI_INT), &t),
                     error);
    assert_null(t);
}

static void refused(int size, int rank, int ndims, int64_t gsize, int distrib, int darg, int psize)
{
    refused_by(TERN_ERR_ARG, size, rank, ndims, gsize, distrib, darg, psize);
}

static void impossible_distributions_are_refused(void **state)
{
    (void)state;
    refused(2, 2, 1, 8, MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_DFLT_DARG, 2); /* rank outside the group */
    refused(3, 0, 1, 8, MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_DFLT_DARG, 2); /* grid of 2 for a group of 3 */
    refused(2, 0, 1, 8, MPI_DISTRIBUTE_BLOCK, 3, 2);                        /* 2 blocks of 3 do not cover 8 */
    refused(2, 0, 1, 8, MPI_DISTRIBUTE_NONE, MPI_DISTRIBUTE_DFLT_DARG, 2);  /* not distributed, but over 2 */
    refused(2, 0, 1, 8, MPI_DISTRIBUTE_CYCLIC, 0, 2);
    refused(2, 0, 1, 8, 99, 1, 2);
    refused(2, 0, 1, 0, MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_DFLT_DARG, 2);
    refused(2, 0, 0, 8, MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_DFLT_DARG, 2);
    refused_by(TERN_ERR_COUNT, 1, 0, 1, INT64_MAX / 2, MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_DFLT_DARG, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_rank_has_its_share),
        cmocka_unit_test(impossible_distributions_are_refused),
    };
    if (type_open()) return 1;
    random_open();
    cmocka_set_message_output(CM_OUTPUT_TAP);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    type_close();
    handle_close();
    return failed;
}
