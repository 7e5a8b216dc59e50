/* cache_test.c - programs are found again by shape, idle frames stay with them, the oldest make room. */
#include "coll/cache.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

static int freed;
static void free_idle(void *p)
{
    freed++;
    free(p);
}

static struct coll_shape shape(int64_t bytes)
{
    return (struct coll_shape){.kind = COLL_BCAST, .alg = (uint8_t)coll_alg_find(COLL_BCAST, "binomial"), .rank = 1,
                               .size = 4, .bytes = bytes, .grain = 1, .segment = 1024};
}

/* As the library does: looked up, else compiled and kept. */
static struct goal_prog *get_blocks(struct coll_cache *c, const struct coll_shape *s, const int64_t *blocks, size_t n,
                                    void **idle)
{
    struct goal_prog *prog;
    struct coll_key k = {s, blocks, n};
    *idle = NULL;
    if (coll_cache_find(c, &k, &prog, idle)) return prog;
    assert_int_equal(coll_compile(s, &coll_given_nothing, &prog), 0);
    coll_cache_add(c, &k, prog);
    return prog;
}

static struct goal_prog *get(struct coll_cache *c, int64_t bytes, void **idle)
{
    struct coll_shape s = shape(bytes);
    return get_blocks(c, &s, NULL, 0, idle);
}

static void found_again(void **state)
{
    (void)state;
    struct coll_cache *c = coll_cache_open(8, free_idle);
    void *idle;
    struct goal_prog *a = get(c, 64, &idle), *b = get(c, 65, &idle), *a2 = get(c, 64, &idle);
    assert_ptr_equal(a, a2);
    assert_ptr_not_equal(a, b);
    struct coll_cache_stats s;
    coll_cache_stats(c, &s);
    assert_int_equal(s.hits, 1);
    assert_int_equal(s.misses, 2);
    coll_cache_close(c);
    assert_int_equal(a->head.op_count, b->head.op_count); /* references outlive the cache */
    goal_unref(a);
    goal_unref(a2);
    goal_unref(b);
}

/* The same shape with other blocks is another program. */
static void found_by_blocks(void **state)
{
    (void)state;
    struct coll_cache *c = coll_cache_open(8, free_idle);
    struct coll_shape s = shape(64);
    int64_t x[3] = {1, 2, 3}, y[3] = {1, 2, 4};
    void *idle;
    struct goal_prog *none = get_blocks(c, &s, NULL, 0, &idle), *a = get_blocks(c, &s, x, 3, &idle);
    struct goal_prog *b = get_blocks(c, &s, y, 3, &idle), *shorter = get_blocks(c, &s, x, 2, &idle);
    x[2] = 4; /* the cache has a copy of its own */
    struct goal_prog *b2 = get_blocks(c, &s, x, 3, &idle);
    assert_ptr_equal(b, b2);
    assert_true(none != a && a != b && shorter != a && shorter != none);
    goal_unref(none), goal_unref(a), goal_unref(b), goal_unref(shorter), goal_unref(b2);
    coll_cache_close(c);
}

static void idle_frames(void **state)
{
    (void)state;
    struct coll_cache *c = coll_cache_open(8, free_idle);
    void *idle, *frame = malloc(1);
    freed = 0;
    struct goal_prog *prog = get(c, 64, &idle), *other;
    struct coll_shape s = shape(1);
    assert_int_equal(coll_compile(&s, &coll_given_nothing, &other), 0);
    assert_null(idle);
    coll_cache_put(c, prog, frame, 1);
    coll_cache_put(c, prog, malloc(1), 1); /* one is enough */
    assert_int_equal(freed, 1);
    coll_cache_put(c, other, malloc(1), 1); /* not in the cache */
    assert_int_equal(freed, 2);
    goal_unref(get(c, 64, &idle));
    assert_ptr_equal(idle, frame);
    void *again;
    goal_unref(get(c, 64, &again)); /* it is taken */
    assert_null(again);
    coll_cache_put(c, prog, idle, 1);
    goal_unref(prog);
    goal_unref(other);
    coll_cache_close(c);
    assert_int_equal(freed, 3);
}

static void oldest_makes_room(void **state)
{
    (void)state;
    enum { CAP = 4 };
    struct coll_cache *c = coll_cache_open(CAP, free_idle);
    struct coll_cache_stats s;
    void *idle;
    for (int i = 0; i < CAP; i++) goal_unref(get(c, 100 + i, &idle));
    goal_unref(get(c, 100, &idle)); /* 101 is the oldest now */
    goal_unref(get(c, 200, &idle));
    for (int i = 0; i < CAP; i++)
        if (i != 1) goal_unref(get(c, 100 + i, &idle));
    coll_cache_stats(c, &s);
    assert_int_equal(s.used, CAP);
    assert_int_equal(s.evictions, 1);
    assert_int_equal(s.misses, CAP + 1);
    goal_unref(get(c, 101, &idle));
    coll_cache_stats(c, &s);
    assert_int_equal(s.misses, CAP + 2);
    coll_cache_close(c);
}

/* Never more bytes than the bound, over all caches: old programs and their frames go first; what is too large is not kept. */
static void bounded(void **state)
{
    (void)state;
    enum { BOUND = 20000 };
    struct coll_cache *c = coll_cache_open(64, free_idle), *d = coll_cache_open(64, free_idle);
    struct coll_cache_stats s;
    void *idle;
    coll_cache_bound(BOUND);
    freed = 0;
    for (int i = 0; i < 40; i++) {
        struct coll_cache *which = i % 3 ? c : d;
        struct goal_prog *p = get(which, 100 + i, &idle);
        coll_cache_put(which, p, malloc(1), 2000);
        goal_unref(p);
        coll_cache_stats(c, &s);
        assert_true(s.bytes <= BOUND);
    }
    assert_true(s.evictions > 0 && s.used > 0 && freed > 0);
    struct goal_prog *p = get(c, 1, &idle);
    int before = freed;
    coll_cache_put(c, p, malloc(1), BOUND);
    coll_cache_stats(c, &s);
    assert_true(s.bytes <= BOUND && freed > before);
    goal_unref(p);
    coll_cache_clear(c);
    coll_cache_close(c);
    coll_cache_close(d);
    c = coll_cache_open(1, free_idle);
    coll_cache_stats(c, &s);
    assert_int_equal(s.bytes, 0);
    coll_cache_bound((size_t)16 << 20);
    coll_cache_close(c);
}

/* A frame counts while it is away; its program may be gone when it comes back, and it may have grown. */
static void frames_come_and_go(void **state)
{
    (void)state;
    struct coll_cache *c = coll_cache_open(4, free_idle);
    struct coll_cache_stats empty, s;
    void *idle;
    struct goal_prog *p = get(c, 64, &idle);
    coll_cache_stats(c, &empty);
    coll_cache_put(c, p, malloc(1), 300);
    for (size_t bytes = 300; bytes < 3000; bytes += 300) {
        assert_null(get(c, 64, &idle));
        coll_cache_stats(c, &s);
        assert_int_equal(s.bytes - empty.bytes, bytes);
        assert_non_null(idle);
        coll_cache_put(c, p, idle, bytes + 300);
    }
    assert_null(get(c, 64, &idle));
    coll_cache_clear(c);
    freed = 0;
    coll_cache_put(c, p, idle, 3000);
    assert_int_equal(freed, 1);
    coll_cache_stats(c, &s);
    assert_int_equal(s.bytes, 0);
    goal_unref(p);
    coll_cache_close(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(found_again),
        cmocka_unit_test(found_by_blocks),
        cmocka_unit_test(idle_frames),
        cmocka_unit_test(frames_come_and_go),
        cmocka_unit_test(oldest_makes_room),
        cmocka_unit_test(bounded),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("cache of schedules", tests, NULL, NULL);
}
