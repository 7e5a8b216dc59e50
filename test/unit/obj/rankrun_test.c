/* rankrun_test.c - what two runs have in common, place by place; lists of runs as they grow. */
#include "obj/rankrun.h"
#include "../seed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

static uint64_t seed;

static uint32_t draw(uint32_t below)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(seed >> 33) % below;
}

static struct rank_run draw_run(void)
{
    struct rank_run r = {0, 1 + (int32_t)draw(30), draw(100), 1 + (int32_t)draw(12)};
    if (r.count == 1) r.stride = 1;
    if (draw(2)) r = (struct rank_run){0, r.count, run_at(&r, r.count - 1), r.count > 1 ? -r.stride : 1};
    return r;
}

static void common_places(void **state)
{
    int some = 0;
    (void)state;
    for (int round = 0; round < 100000; round++) {
        struct rank_run a = draw_run(), b = draw_run();
        struct run_cut cut = {0, 1, 0};
        bool any = run_common(&a, &b, &cut);
        int32_t n = 0;
        for (int32_t i = 0; i < a.count; i++) {
            if (run_find(&b, run_at(&a, i)) < 0) continue;
            assert_true(any);
            assert_int_equal(cut.at + n * cut.step, i);
            n++;
        }
        assert_int_equal(any ? cut.count : 0, n);
        some += n > 0;
    }
    assert_true(some > 10000 && some < 90000);
}

static void far_apart_indices(void **state)
{
    const struct rank_run a = {0, 1000000, 0, 2000}, b = {0, 500000, 1999999999, -3999};
    struct run_cut cut;
    (void)state;
    assert_true(run_common(&a, &b, &cut));
    for (int32_t i = 0; i < cut.count; i++) assert_true(run_find(&b, run_at(&a, cut.at + i * cut.step)) >= 0);
    int32_t n = 0;
    for (int32_t i = 0; i < b.count; i++) n += run_find(&a, run_at(&b, i)) >= 0;
    assert_int_equal(cut.count, n);
}

static void lists_are_what_was_added(void **state)
{
    uint32_t want[4000];
    (void)state;
    for (int round = 0; round < 20000; round++) {
        struct run_list l = {0};
        int32_t n = 0;
        for (int pieces = (int)draw(30); pieces > 0; pieces--) {
            struct rank_run r = draw_run();
            bool single = draw(2);
            for (int32_t i = 0; i < r.count; i++) {
                want[n++] = run_at(&r, i);
                if (single) runs_add(&l, run_at(&r, i), 1, 1);
            }
            if (!single) runs_add(&l, r.first, r.stride, r.count);
        }
        assert_int_equal(l.size, n);
        int32_t at = 0;
        for (uint32_t i = 0; i < l.n; i++) {
            assert_int_equal(l.run[i].rank, at);
            for (int32_t k = 0; k < l.run[i].count; k++) assert_int_equal(run_at(&l.run[i], k), want[at++]);
        }
        assert_int_equal(at, n);
        runs_free(&l);
    }
}

static uint32_t runs_in(const uint32_t *index, int n)
{
    struct run_list l = {0};
    for (int i = 0; i < n; i++) runs_add(&l, index[i], 1, 1);
    uint32_t runs = l.n;
    runs_free(&l);
    return runs;
}

static void single_indices_become_runs(void **state)
{
    const uint32_t up[] = {4, 5, 6, 7, 8}, down[] = {90, 80, 70, 60}, odd_first[] = {0, 7, 8, 9, 10}, two[] = {1, 2, 3, 30, 40, 50, 60};
    (void)state;
    assert_int_equal(runs_in(up, 5), 1);
    assert_int_equal(runs_in(down, 4), 1);
    assert_int_equal(runs_in(odd_first, 5), 2); /* and not (0, 7), (8, 9, 10) */
    assert_int_equal(runs_in(two, 7), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(common_places),
        cmocka_unit_test(far_apart_indices),
        cmocka_unit_test(lists_are_what_was_added),
        cmocka_unit_test(single_indices_become_runs),
    };
    seed = seed_open();
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
