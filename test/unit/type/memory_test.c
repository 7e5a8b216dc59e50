/*
 * memory_test.c - when memory runs out at any point of making or committing a type,
 * the answer is TERN_ERR_NOMEM, nothing is made, and nothing leaks.
 *
 * The linker puts __wrap_calloc and __wrap_malloc in the places of calloc and malloc.
 */
#include "base/err.h"
#include "reference.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);

static long until_failure = -1; /* calls that still succeed; negative: all do */
static long held;               /* allocations counted while failures are on */

static bool may_allocate(void)
{
    if (until_failure == 0) return false;
    if (until_failure > 0) until_failure--;
    held++;
    return true;
}

void *__wrap_calloc(size_t n, size_t size) { return may_allocate() ? __real_calloc(n, size) : NULL; }
void *__wrap_malloc(size_t size) { return may_allocate() ? __real_malloc(size) : NULL; }

typedef int maker(struct type **new_p);

static int64_t lens[] = {2, 1, 3}, displs[] = {40, 0, 100};

static int make_struct(struct type **new_p)
{
    struct type *members[] = {type_of(MPI_DOUBLE_INT), type_of(MPI_CHAR), type_of(MPI_SHORT_INT)};
    return type_struct(3, lens, displs, members, new_p);
}

static int make_indexed(struct type **new_p)
{
    return type_indexed(3, lens, displs, TYPE_ELEMENTS, type_of(MPI_SHORT_INT), new_p);
}

static int make_blocks(struct type **new_p)
{
    return type_indexed_block(3, 2, displs, TYPE_ELEMENTS, type_of(MPI_INT), new_p);
}

static int make_vector(struct type **new_p)
{
    return type_vector(30, 2, 5, TYPE_ELEMENTS, type_of(MPI_SHORT_INT), new_p);
}

static int make_subarray(struct type **new_p)
{
    const int64_t sizes[] = {4, 5, 6}, subs[] = {2, 3, 2}, starts[] = {1, 1, 1};
    return type_subarray(3, sizes, subs, starts, MPI_ORDER_C, type_of(MPI_SHORT_INT), new_p);
}

static int make_darray(struct type **new_p)
{
    const int64_t sizes[] = {50, 50};
    const int distribs[] = {MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_BLOCK}, dargs[] = {3, MPI_DISTRIBUTE_DFLT_DARG};
    const int psizes[] = {2, 2};
    return type_darray(4, 1, 2, sizes, distribs, dargs, psizes, MPI_ORDER_C, type_of(MPI_SHORT_INT), new_p);
}

static void every_failure_is_told(void **state)
{
    (void)state;
    static maker *const makers[] = {make_struct, make_indexed, make_blocks, make_vector, make_subarray, make_darray};
    for (size_t m = 0; m < ARRAY_LEN(makers); m++) {
        int rc = TERN_ERR_NOMEM;
        for (long n = 0; rc; n++) {
            struct type *t = NULL;
            until_failure = n;
            rc = makers[m](&t);
            until_failure = -1;
            assert_true(rc == 0 || rc == TERN_ERR_NOMEM);
            assert_true((rc == 0) == (t != NULL)); /* sanitizers see what leaks */
            if (t) type_unref(t);
            assert_true(n < 100);
        }
    }
    assert_true(held > 0);
}

static void a_type_survives_a_failed_commit(void **state)
{
    (void)state;
    struct type *t;
    int rc = TERN_ERR_NOMEM;
    assert_int_equal(make_darray(&t), 0);
    for (long n = 0; rc; n++) {
        until_failure = n;
        rc = type_commit(t);
        until_failure = -1;
        assert_true(rc == 0 || rc == TERN_ERR_NOMEM);
        assert_int_equal(t->committed, rc == 0);
        assert_int_equal(type_blocks(t) > 0, 1);
        assert_true(n < 100);
    }
    type_unref(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_failure_is_told),
        cmocka_unit_test(a_type_survives_a_failed_commit),
    };
    if (type_open()) return 1;
    cmocka_set_message_output(CM_OUTPUT_TAP);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    type_close();
    handle_close();
    return failed;
}
