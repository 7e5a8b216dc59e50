/*
 * queue_test.c - a queue stays dense, in order and cheap to keep whatever is
 * removed from it (LHS-9, 11).
 *
 * TERN_TEST_SEED sets the seed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "pt2pt/match/queue.h"

static uint64_t rng_state;

static uint32_t rng(uint32_t below)
{
    rng_state = rng_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)((rng_state >> 32) * below >> 32);
}

static void *thing(uint32_t i) { return (void *)((uintptr_t)i + 1); }

/* The invariants of match/queue.h. */
static void check_invariants(const struct match_queue *q)
{
    uint32_t live = 0;
    for (uint32_t i = 0; i < q->cap; i++) {
        bool hole = q->keys[i] == MATCH_HOLE;
        assert_int_equal(hole, !match_queue_whats(q)[i]);
        if (i < q->head || i >= q->tail) assert_true(hole);
        live += !hole;
    }
    assert_int_equal(live, q->live);
    assert_true(q->tail - q->head <= 2 * live + 16);
    if (!live) {
        assert_int_equal(q->tail, 0);
        return;
    }
    assert_true(q->keys[q->head] != MATCH_HOLE);
    assert_true(q->keys[q->tail - 1] != MATCH_HOLE);
    if (q->cap > MATCH_INLINE) assert_int_equal((uintptr_t)q->keys % CACHE_LINE, 0);
}

/* Pushes and removals at random against an array that is shifted; removal at the ends more often than elsewhere. */
static void random_use_keeps_order_and_invariants(void **state)
{
    enum { DEPTH = 300, OPERATIONS = 60000 };
    uint64_t home[2 * MATCH_INLINE];
    uint32_t model[DEPTH], n = 0, next = 0;
    struct match_queue q;
    (void)state;
    match_queue_init(&q, home);
    for (uint32_t op = 0; op < OPERATIONS; op++) {
        bool growing = op / 1000 % 2;
        if (n < DEPTH && (!n || rng(10) < (growing ? 7u : 3u))) {
            assert_true(match_queue_push(&q, match_key(1, (int)next), thing(next)));
            model[n++] = next++;
        } else {
            uint32_t which = rng(3), k = which == 0 ? 0 : which == 1 ? n - 1 : rng(n);
            uint32_t at = match_queue_find_masked(&q, match_key(1, (int)model[k]), UINT64_MAX);
            assert_int_equal(match_queue_find_what(&q, thing(model[k])), at);
            assert_ptr_equal(match_queue_remove(&q, at), thing(model[k]));
            memmove(&model[k], &model[k + 1], (--n - k) * sizeof *model);
        }
        assert_int_equal(q.live, n);
        if (n) assert_ptr_equal(match_queue_whats(&q)[q.head], thing(model[0]));
        if (n) assert_ptr_equal(match_queue_whats(&q)[q.tail - 1], thing(model[n - 1]));
        if (op % 16 == 0) check_invariants(&q);
    }
    match_queue_clear(&q);
    check_invariants(&q);
    match_queue_fini(&q);
}

/* LHS-11: all entries moved by closing gaps while 10^5 are removed in random order are fewer than two for each removal.
 */
static void closing_gaps_costs_a_constant_per_removal(void **state)
{
    enum { N = 100000 };
    uint32_t *order = malloc(N * sizeof *order);
    uint64_t moved = 0;
    struct match_queue q;
    (void)state;
    assert_non_null(order);
    match_queue_init_ordered(&q);
    for (uint32_t i = 0; i < N; i++) {
        assert_true(match_queue_push(&q, match_key(1, (int)i), thing(i)));
        uint32_t k = rng(i + 1);
        order[i] = order[k];
        order[k] = i;
    }
    for (uint32_t i = 0; i < N; i++) {
        uint32_t span = q.tail - q.head;
        match_queue_remove(&q, match_queue_find_masked(&q, match_key(1, (int)order[i]), UINT64_MAX));
        if (q.live && q.tail - q.head == q.live && span > q.live + 1) moved += q.live;
        assert_true(q.tail - q.head <= 2 * q.live + 16);
    }
    assert_int_equal(q.live, 0);
    assert_in_range(moved, 1, 2 * N);
    match_queue_fini(&q);
    free(order);
}

/* A reverse drain leaves nothing behind the last entry, an orderly one nothing before the first. */
static void drains_leave_no_holes_at_the_ends(void **state)
{
    struct match_queue q;
    (void)state;
    match_queue_init_ordered(&q);
    for (uint32_t i = 0; i < 1000; i++) assert_true(match_queue_push(&q, match_key(0, (int)i), thing(i)));
    for (uint32_t i = 0; i < 400; i++) match_queue_remove(&q, q.tail - 1);
    assert_int_equal(q.tail - q.head, 600);
    for (uint32_t i = 0; i < 400; i++) match_queue_remove(&q, q.head);
    assert_int_equal(q.tail - q.head, 200);
    check_invariants(&q);
    match_queue_fini(&q);
}

/* One in, one out, for ever: the block is used again and again. */
static void steady_traffic_does_not_grow_the_block(void **state)
{
    struct match_queue q;
    (void)state;
    match_queue_init_ordered(&q);
    for (uint32_t i = 0; i < 100; i++) assert_true(match_queue_push(&q, match_key(0, (int)i), thing(i)));
    for (uint32_t i = 100; i < 100000; i++) {
        assert_true(match_queue_push(&q, match_key(0, (int)i), thing(i)));
        assert_ptr_equal(match_queue_remove(&q, q.head), thing(i - 100));
    }
    assert_true(q.cap <= 256);
    match_queue_fini(&q);
}

/* Entries are found by order numbers with gaps, around 2^32 too, and after gaps in the block were closed. */
static void entries_are_found_by_order_number(void **state)
{
    enum { N = 3000 };
    struct match_queue q;
    uint64_t number[N], next = UINT32_MAX - UINT64_C(2000);
    (void)state;
    match_queue_init_ordered(&q);
    for (uint32_t i = 0; i < N; i++) {
        assert_true(match_queue_push(&q, match_key(0, (int)i), thing(i)));
        number[i] = next;
        match_queue_order(&q)[q.tail - 1] = next;
        next += rng(4) ? 1 : 1 + rng(50);
    }
    for (uint32_t left = N; left > 1; left--) {
        uint32_t i = rng(N);
        uint32_t at = match_queue_find_masked(&q, match_key(0, (int)i), UINT64_MAX);
        if (at == MATCH_NONE) continue;
        assert_int_equal(match_queue_find_order(&q, number[i]), at);
        match_queue_remove(&q, at);
    }
    assert_true(q.live > 0);
    match_queue_fini(&q);
}

static void widening_keeps_the_entries(void **state)
{
    uint64_t home[2 * MATCH_INLINE];
    struct match_queue q;
    (void)state;
    match_queue_init(&q, home);
    for (uint32_t i = 0; i < 100; i++) assert_true(match_queue_push(&q, match_key(0, (int)i), thing(i)));
    for (uint32_t i = 10; i < 40; i++) match_queue_remove(&q, match_queue_find_what(&q, thing(i)));
    assert_true(match_queue_widen(&q));
    assert_true(q.ordered);
    assert_int_equal(q.tail, 70);
    check_invariants(&q);
    for (uint32_t i = 0; i < 70; i++) assert_ptr_equal(match_queue_whats(&q)[i], thing(i < 10 ? i : i + 30));
    match_queue_fini(&q);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_use_keeps_order_and_invariants),
        cmocka_unit_test(closing_gaps_costs_a_constant_per_removal),
        cmocka_unit_test(drains_leave_no_holes_at_the_ends),
        cmocka_unit_test(steady_traffic_does_not_grow_the_block),
        cmocka_unit_test(entries_are_found_by_order_number),
        cmocka_unit_test(widening_keeps_the_entries),
    };
    const char *text = getenv("TERN_TEST_SEED");
    rng_state = text ? strtoull(text, NULL, 0) : 7;
    printf("# TERN_TEST_SEED=%llu\n", (unsigned long long)rng_state);
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
