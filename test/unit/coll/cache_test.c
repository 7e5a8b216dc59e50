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

static struct goal_prog *get(struct coll_cache *c, int64_t bytes, void **idle)
{
    struct goal_prog *prog;
    struct coll_shape s = shape(bytes);
    assert_int_equal(coll_cache_get(c, &s, &coll_given_nothing, &prog, idle), 0);
    return prog;
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

static void idle_frames(void **state)
{
    (void)state;
    struct coll_cache *c = coll_cache_open(8, free_idle);
    struct coll_shape s = shape(64), other = shape(1);
    void *idle, *frame = malloc(1);
    freed = 0;
    goal_unref(get(c, 64, &idle));
    assert_null(idle);
    coll_cache_put(c, &s, frame);
    coll_cache_put(c, &s, malloc(1)); /* one is enough */
    assert_int_equal(freed, 1);
    coll_cache_put(c, &other, malloc(1)); /* not in the cache */
    assert_int_equal(freed, 2);
    goal_unref(get(c, 64, &idle));
    assert_ptr_equal(idle, frame);
    void *again;
    goal_unref(get(c, 64, &again)); /* it is taken */
    assert_null(again);
    coll_cache_put(c, &s, idle);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(found_again),
        cmocka_unit_test(idle_frames),
        cmocka_unit_test(oldest_makes_room),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("cache of schedules", tests, NULL, NULL);
}
