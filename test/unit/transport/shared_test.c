/* shared_test.c - the heap in the shared segment: blocks do not overlap, come back zeroed, and run out in good order. */
#include "transport/shared.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <string.h>

static void blocks_are_apart_and_zeroed(void **state)
{
    enum { N = 500 };
    unsigned char *block[N];
    uint64_t off[N];
    (void)state;
    assert_int_equal(shared_open(NULL, 0, 8 << 20), 0);
    assert_false(shared_is_public());
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < N; i++) {
            size_t n = (size_t)(i * 37 + round) % 3000 + 1;
            block[i] = shared_alloc(n, &off[i]);
            assert_non_null(block[i]);
            assert_int_equal((uintptr_t)block[i] % CACHE_LINE, 0);
            assert_true(off[i] > 0); /* 0 means "none" on the wire */
            assert_ptr_equal(shared_at(off[i]), block[i]);
            for (size_t k = 0; k < n; k++) assert_int_equal(block[i][k], 0);
            memset(block[i], i % 255 + 1, n);
        }
        for (int i = 0; i < N; i++) {
            size_t n = (size_t)(i * 37 + round) % 3000 + 1;
            for (size_t k = 0; k < n; k++) assert_int_equal(block[i][k], i % 255 + 1);
        }
        for (int i = 0; i < N; i++) shared_free(block[i], (size_t)(i * 37 + round) % 3000 + 1);
    }
    shared_close();
}

static void freed_blocks_are_used_again(void **state)
{
    uint64_t off;
    (void)state;
    assert_int_equal(shared_open(NULL, 0, 64 << 10), 0);
    for (int i = 0; i < 100000; i++) { /* a hundred times what there is */
        void *p = shared_alloc(128, &off);
        assert_non_null(p);
        shared_free(p, 128);
    }
    shared_close();
}

static void it_ends(void **state)
{
    uint64_t off = 1234;
    int n = 0;
    (void)state;
    assert_int_equal(shared_open(NULL, 0, 64 << 10), 0);
    assert_null(shared_alloc(65 << 10, &off));
    assert_null(shared_alloc(SIZE_MAX, &off));
    assert_null(shared_alloc(SIZE_MAX / 2, &off));
    assert_int_equal(off, 1234);
    while (shared_alloc(1024, &off)) n++;
    assert_in_range(n, 62, 64);
    assert_non_null(shared_alloc(64, &off)); /* a smaller one still fits */
    shared_close();
    assert_false(shared_is_public());
}

static void given_memory_is_public(void **state)
{
    static char segment[8192] __attribute__((aligned(64)));
    uint64_t off = 0;
    (void)state;
    assert_int_equal(shared_open(segment, 4096, 4096), 0);
    assert_true(shared_is_public());
    char *p = shared_alloc(100, &off);
    assert_ptr_equal(p, segment + off);
    assert_in_range(off, 4096, 8192 - 128);
    shared_close();
    assert_false(shared_is_public());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_are_apart_and_zeroed),
        cmocka_unit_test(freed_blocks_are_used_again),
        cmocka_unit_test(it_ends),
        cmocka_unit_test(given_memory_is_public),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
