/*
 * body_test.c - the pool of unexpected messages (LHS-1..4, 9): where heads
 * and payloads lie, what they cost, that memory is bounded and given back.
 *
 * TERN_TEST_SEED sets the seed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "pt2pt/match/body.h"

static uint64_t rng_state;

static uint32_t rng(uint32_t below)
{
    rng_state = rng_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)((rng_state >> 32) * below >> 32);
}

/* Everything the owner may write, from one byte. */
static void mark(struct match_body *b, unsigned char byte)
{
    for (unsigned i = 0; i < b->cookies; i++) b->cookie[i] = byte * UINT64_C(0x0101010101010101);
    b->peer = (void *)(uintptr_t)byte;
    b->next = NULL;
    b->src = b->tag = byte;
    b->length = byte;
    if (b->held) memset(match_body_payload(b), byte, b->held);
}

static void check_mark(struct match_body *b, unsigned char byte)
{
    unsigned char *p = match_body_payload(b);
    for (unsigned i = 0; i < b->cookies; i++) assert_true(b->cookie[i] == byte * UINT64_C(0x0101010101010101));
    assert_ptr_equal(b->peer, (void *)(uintptr_t)byte);
    assert_int_equal(b->length, byte);
    assert_int_equal(b->src, byte);
    for (uint32_t i = 0; i < b->held; i++)
        if (p[i] != byte) fail_msg("payload byte %u of %u is %u, not %u", i, b->held, p[i], byte);
}

/* LHS-2, LHS-4: a payload up to the threshold lies in the slot, one byte more elsewhere, for all slot sizes. */
static void the_threshold_follows_the_slot_size(void **state)
{
    static const size_t heads[][2] = {{0, 64},    {32, 64},   {64, 64},   {65, 128},
                                      {128, 128}, {192, 192}, {256, 256}, {4096, 256}};
    (void)state;
    for (size_t h = 0; h < ARRAY_LEN(heads); h++)
        for (unsigned cookies = 0; cookies <= 2; cookies++) {
            struct match_pool pool;
            match_pool_init(&pool, SIZE_MAX, heads[h][0]);
            size_t most = match_body_inline_max(&pool, cookies);
            assert_int_equal(most, heads[h][1] - 40 - 8 * cookies);
            struct match_body *in = match_body_new(&pool, cookies, (uint32_t)most);
            assert_int_equal(pool.used, heads[h][1]);
            struct match_body *out = match_body_new(&pool, cookies, (uint32_t)most + 1);
            assert_true(pool.used > 2 * heads[h][1]);
            mark(in, 1);
            mark(out, 2);
            assert_ptr_equal(match_body_payload(in), (char *)in + heads[h][1] - most);
            char *p = match_body_payload(out);
            assert_true(p >= (char *)out + heads[h][1] || p + most + 1 <= (char *)out);
            check_mark(in, 1);
            check_mark(out, 2);
            match_body_free(&pool, in);
            match_body_free(&pool, out);
            match_pool_fini(&pool);
        }
}

/* LHS-1, LHS-3: heads lie on cache lines in arrival order without gaps, whatever the payloads. */
static void heads_lie_in_arrival_order(void **state)
{
    enum { N = 4000 };
    struct match_pool pool;
    char *before = NULL;
    unsigned jumps = 0;
    (void)state;
    match_pool_init(&pool, SIZE_MAX, 64);
    for (uint32_t i = 0; i < N; i++) {
        struct match_body *b = match_body_new(&pool, 0, i % 3 * 100);
        assert_non_null(b);
        assert_int_equal((uintptr_t)b % CACHE_LINE, 0);
        jumps += before && (char *)b != before + 64;
        before = (char *)b;
    }
    assert_true(jumps <= N * 64 / 65536 + 1);
    assert_int_equal(pool.bodies, N);
    match_pool_fini(&pool);
}

/* A rendezvous descriptor fits the smallest slot. */
static void three_cookies_fit_one_line(void **state)
{
    struct match_pool pool;
    (void)state;
    match_pool_init(&pool, SIZE_MAX, 64);
    struct match_body *b = match_body_new(&pool, 3, 0);
    mark(b, 9);
    check_mark(b, 9);
    assert_int_equal(pool.used, 64);
    match_pool_fini(&pool);
}

/* The limit is kept to the byte, for short and for long payloads; what is freed can be had again. */
static void the_limit_holds(void **state)
{
    struct match_pool pool;
    struct match_body *b[16];
    size_t n = 0;
    (void)state;
    match_pool_init(&pool, 10 * 64, 64);
    while (n < 16 && (b[n] = match_body_new(&pool, 0, 8))) n++;
    assert_int_equal(n, 10);
    match_body_free(&pool, b[--n]);
    assert_null(match_body_new(&pool, 0, 25)); /* slot and chunk are two lines */
    assert_null(match_body_new(&pool, 0, 100000));
    assert_non_null(match_body_new(&pool, 0, 24));
    assert_int_equal(pool.used, 10 * 64);
    assert_int_equal(pool.peak, 10 * 64);
    match_pool_fini(&pool);
    assert_int_equal(pool.used, 0);
}

static size_t list_length(const struct link *head)
{
    size_t n = 0;
    for (const struct link *l = head->next; l != head; l = l->next) n++;
    return n;
}

static uint32_t random_size(void)
{
    static const uint32_t most[] = {1, 24, 64, 300, 5000, 8193, 40000};
    return rng(most[rng(ARRAY_LEN(most))] + 1);
}

/* Bodies of all sizes come and go; none is moved or overwritten by another (LHS-9), and the slabs are given back. */
static void random_use_keeps_contents_and_gives_back(void **state)
{
    enum { N = 3000, OPERATIONS = 100000 };
    static struct match_body *b[N];
    struct match_pool pool;
    (void)state;
    match_pool_init(&pool, SIZE_MAX, 64);
    for (uint32_t op = 0; op < OPERATIONS; op++) {
        uint32_t i = rng(op / 5000 % 2 ? N / 20 : N);
        if (b[i]) {
            check_mark(b[i], (unsigned char)i);
            match_body_free(&pool, b[i]);
            b[i] = NULL;
        } else {
            assert_non_null(b[i] = match_body_new(&pool, rng(3), random_size()));
            mark(b[i], (unsigned char)i);
        }
    }
    for (uint32_t i = 0; i < N; i++) {
        if (!b[i]) continue;
        check_mark(b[i], (unsigned char)i);
        match_body_free(&pool, b[i]);
    }
    assert_int_equal(pool.used, 0);
    assert_int_equal(pool.bodies, 0);
    for (size_t c = 0; c < MATCH_CLASSES; c++) {
        assert_int_equal(list_length(&pool.class[c].full), 0);
        assert_in_range(list_length(&pool.class[c].room), 0, 1);
    }
    assert_int_equal(list_length(&pool.large), 0);
    match_pool_fini(&pool);
}

/* ---- failures ---- */

static int64_t allocs_left = -1; /* how many succeed; negative: all */

static bool alloc_fails(void) { return allocs_left == 0 || (allocs_left > 0 && allocs_left-- < 0); }

void *__real_aligned_alloc(size_t, size_t);
void *__wrap_aligned_alloc(size_t align, size_t size);
void *__wrap_aligned_alloc(size_t align, size_t size)
{
    return alloc_fails() ? NULL : __real_aligned_alloc(align, size);
}

static int ended;
static void end_loan(void *owner)
{
    ended++;
    *(unsigned char *)owner = 0xdd;
}

/* A payload that is lent is not copied, counts as it would here, and goes back once: with its body, or with the pool. */
static void what_is_lent_goes_back_once(void **state)
{
    static unsigned char payload[3][5000];
    struct match_pool pool;
    (void)state;
    match_pool_init(&pool, 12000, 64);
    for (unsigned i = 0; i < 2; i++) {
        struct match_body *b = match_body_lend(&pool, i, sizeof payload[i], payload[i], end_loan, payload[i]);
        assert_ptr_equal(match_body_payload(b), payload[i]);
        mark(b, (unsigned char)(i + 1));
        check_mark(b, (unsigned char)(i + 1));
        assert_true(pool.used >= (i + 1) * sizeof payload[i]);
        if (!i) continue;
        assert_null(match_body_lend(&pool, 0, sizeof payload[2], payload[2], end_loan, payload[2]));
        assert_int_equal(ended, 0);
        match_body_free(&pool, b);
    }
    assert_int_equal(ended, 1);
    assert_int_equal(payload[1][0], 0xdd);
    assert_int_equal(payload[0][0], 1);
    match_pool_fini(&pool);
    assert_int_equal(ended, 2);
    assert_int_equal(payload[0][0], 0xdd);
}

static void without_memory_nothing_is_lost(void **state)
{
    (void)state;
    for (int64_t ok = 0; ok < 3; ok++) {
        struct match_pool pool;
        match_pool_init(&pool, SIZE_MAX, 64);
        allocs_left = ok;
        struct match_body *b = match_body_new(&pool, 1, 5000); /* a slab of slots and one of chunks */
        allocs_left = -1;
        assert_int_equal(b != NULL, ok == 2);
        assert_int_equal(pool.bodies, ok == 2);
        assert_int_equal(pool.used, ok == 2 ? 64 + 8192 : 0);
        b = match_body_new(&pool, 1, 5000);
        assert_non_null(b);
        mark(b, 3);
        check_mark(b, 3);
        match_pool_fini(&pool);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_threshold_follows_the_slot_size),
        cmocka_unit_test(heads_lie_in_arrival_order),
        cmocka_unit_test(three_cookies_fit_one_line),
        cmocka_unit_test(the_limit_holds),
        cmocka_unit_test(random_use_keeps_contents_and_gives_back),
        cmocka_unit_test(without_memory_nothing_is_lost),
        cmocka_unit_test(what_is_lent_goes_back_once),
    };
    const char *text = getenv("TERN_TEST_SEED");
    rng_state = text ? strtoull(text, NULL, 0) : 7;
    printf("# TERN_TEST_SEED=%llu\n", (unsigned long long)rng_state);
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
