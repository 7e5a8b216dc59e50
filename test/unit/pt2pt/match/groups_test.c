/*
 * groups_test.c - the index by source of a deep side (LHS-20). That groups
 * give the answers of one list is shown by match_test.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "pt2pt/match/groups.h"

static void *thing(uint32_t i) { return (void *)((uintptr_t)i + 1); }

/* Sources first, first + stride ...: n of them, each with one entry, tag = index. */
static void fill(struct match_queue *q, uint32_t n, uint32_t first, uint32_t stride)
{
    match_queue_init_ordered(q);
    for (uint32_t i = 0; i < n; i++)
        assert_true(match_queue_push(q, match_key((int)(first + i * stride), (int)i), thing(i)));
}

/* Ranks in a row, and ranks at powers of two apart as in grids and trees, fall evenly into the groups. */
static void usual_sets_of_ranks_are_spread(void **state)
{
    static const uint32_t strides[] = {1, 2, 3, 16, 64, 100, 128, 1024};
    enum { N = 1024 };
    (void)state;
    for (size_t s = 0; s < ARRAY_LEN(strides); s++)
        for (unsigned bits = 1; bits <= 6; bits++) {
            struct match_queue all;
            struct match_groups *g = match_groups_new(bits);
            assert_non_null(g);
            fill(&all, N, 5, strides[s]);
            assert_true(match_groups_pay(&all, bits) || bits == 1);
            assert_true(match_queue_widen(&all));
            assert_true(match_groups_fill(g, &all));
            for (size_t i = 0; i < MATCH_GROUPS_MAX; i++)
                assert_in_range(g->group[i].live, 0, i < 1u << bits ? 2 * N >> bits : 0);
            match_groups_free(g);
            match_queue_fini(&all);
        }
}

static void groups_do_not_pay_for_one_source_or_any(void **state)
{
    struct match_queue q;
    (void)state;
    fill(&q, 1000, 3, 0);
    assert_false(match_groups_pay(&q, 6));
    match_queue_fini(&q);
    fill(&q, 1000, (uint32_t)MATCH_ANY_SOURCE, 0);
    assert_false(match_groups_pay(&q, 6));
    match_queue_fini(&q);
}

/* Order numbers pass 2^32 as any other value, in both directions of matching. */
static void the_oldest_is_found_across_two_to_the_32(void **state)
{
    enum { N = 400, SOURCES = 100 };
    struct match_groups *g = match_groups_new(6);
    uint64_t first = UINT32_MAX - UINT64_C(50);
    (void)state;
    assert_non_null(g);
    g->next = first;
    for (int i = 0; i < N; i++) assert_true(match_groups_push(g, match_key(i % SOURCES, i % 2 ? MATCH_ANY_TAG : 7)));
    for (int i = 0; i < 10; i++) assert_true(match_groups_push(g, match_key(MATCH_ANY_SOURCE, 8)));
    for (int i = 0; i < N; i++) {
        uint64_t order = match_groups_find_receive(g, i % SOURCES, 7);
        assert_true(order == first + (uint64_t)i);
        match_groups_remove(g, match_key(i % SOURCES, i % 2 ? MATCH_ANY_TAG : 7), order);
    }
    assert_true(match_groups_find_receive(g, 0, 7) == MATCH_NO_ORDER);
    assert_true(match_groups_find_receive(g, 0, 8) == first + N);
    match_groups_clear(g);
    assert_true(match_groups_push(g, match_key(4, 4)));
    assert_true(match_groups_find_message(g, 4, MATCH_ANY_TAG) == first + N + 10);
    assert_true(match_groups_find_message(g, 4, 5) == MATCH_NO_ORDER);
    match_groups_free(g);
}

static void clearing_gives_large_blocks_back(void **state)
{
    struct match_groups *g = match_groups_new(0);
    (void)state;
    assert_non_null(g);
    for (int i = 0; i < 5000; i++) assert_true(match_groups_push(g, match_key(i, 0)));
    assert_int_equal(g->group[0].live, 5000);
    match_groups_clear(g);
    assert_int_equal(g->group[0].live, 0);
    assert_true(g->group[0].cap <= 64);
    match_groups_free(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(usual_sets_of_ranks_are_spread),
        cmocka_unit_test(groups_do_not_pay_for_one_source_or_any),
        cmocka_unit_test(the_oldest_is_found_across_two_to_the_32),
        cmocka_unit_test(clearing_gives_large_blocks_back),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
