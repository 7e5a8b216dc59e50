/*
 * scan_test.c - every search form this processor runs gives the answer of
 * the definition (LHS-7, LHS-23): the oldest that fits, for all windows and
 * alignments, with holes between.
 *
 * TERN_TEST_SEED sets the seed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "pt2pt/match/key.h"
#include "pt2pt/match/scan.h"

#define N 128

static uint64_t rng_state;

static uint32_t rng(uint32_t below)
{
    rng_state = rng_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)((rng_state >> 32) * below >> 32);
}

static TERN_ALIGNED(CACHE_LINE) uint64_t keys[N];

static bool receive_fits(uint64_t receive, uint64_t message)
{
    int src = match_key_src(receive), tag = match_key_tag(receive), t = match_key_tag(message);
    return (src == MATCH_ANY_SOURCE || src == match_key_src(message)) && (tag == t || (tag == MATCH_ANY_TAG && t >= 0));
}

/* A window of holes and random keys; wildcards too if they are receives. Outside of it, holes only. */
static void fill(uint32_t from, uint32_t to, uint32_t values, bool receives)
{
    for (uint32_t i = 0; i < N; i++) {
        int src = (int)rng(values), tag = rng(8) ? (int)rng(values) : -10 - (int)rng(values);
        if (receives && !rng(4)) src = MATCH_ANY_SOURCE;
        if (receives && !rng(4)) tag = MATCH_ANY_TAG;
        keys[i] = i < from || i >= to || !rng(5) ? MATCH_HOLE : match_key(src, tag);
    }
}

static void check_masked(const struct match_scan *form, uint32_t from, uint32_t to, uint32_t values)
{
    int src = rng(3) ? (int)rng(values) : MATCH_ANY_SOURCE, tag = rng(3) ? (int)rng(values) : MATCH_ANY_TAG;
    uint32_t expected = from;
    fill(from, to, values, false);
    while (expected < to && (keys[expected] == MATCH_HOLE || !receive_fits(match_key(src, tag), keys[expected])))
        expected++;
    assert_int_equal(form->masked(keys, from, to, match_sought_key(src, tag), match_sought_mask(src, tag)), expected);
}

static void check_either(const struct match_scan *form, uint32_t from, uint32_t to, uint32_t values)
{
    int src = (int)rng(values), tag = rng(8) ? (int)rng(values) : -10 - (int)rng(values);
    uint32_t expected = from;
    fill(from, to, values, true);
    while (expected < to && (keys[expected] == MATCH_HOLE || !receive_fits(keys[expected], match_key(src, tag))))
        expected++;
    assert_int_equal(form->either(keys, from, to, match_key(src, tag), match_wild_key(tag)), expected);
}

static void forms_find_the_oldest_that_fits(void **state)
{
    int forms = 0;
    (void)state;
    for (const struct match_scan *const *form = match_scan_forms; *form; form++) {
        if (!(*form)->here()) {
            print_message("# %s: not on this processor\n", (*form)->name);
            continue;
        }
        forms++;
        for (uint32_t from = 0; from < N; from++)
            for (uint32_t to = from + 1; to <= N; to++) {
                check_masked(*form, from, to, 3);
                check_masked(*form, from, to, 40);
                check_either(*form, from, to, 6);
                check_either(*form, from, to, 400);
            }
    }
    assert_true(forms >= 1);
}

/* The extremes of both integers are values like others. */
static void extreme_values_fit_only_themselves(void **state)
{
    static const int values[] = {0, 1, INT32_MAX, INT32_MAX - 1};
    (void)state;
    for (const struct match_scan *const *form = match_scan_forms; *form; form++) {
        if (!(*form)->here()) continue;
        for (size_t a = 0; a < 16; a++)
            for (size_t b = 0; b < 16; b++) {
                uint64_t k = match_key(values[a / 4], values[a % 4]), sought = match_key(values[b / 4], values[b % 4]);
                fill(0, 0, 1, false);
                keys[70] = k;
                assert_int_equal((*form)->masked(keys, 0, N, sought, UINT64_MAX), a == b ? 70 : N);
                assert_int_equal((*form)->either(keys, 0, N, sought, match_wild_key(0)), a == b ? 70 : N);
            }
    }
}

static void a_form_is_chosen_by_name(void **state)
{
    (void)state;
    assert_int_equal(match_scan_choose("scalar"), 0);
    assert_ptr_equal(match_scan, &match_scan_scalar);
    assert_int_equal(match_scan_choose("abacus"), TERN_ERR_UNSUPPORTED);
    assert_non_null(strstr(err_words(), "abacus"));
    assert_ptr_equal(match_scan, &match_scan_scalar);
    assert_int_equal(match_scan_choose("auto"), 0);
    assert_true(match_scan->here());
    for (const struct match_scan *const *form = match_scan_forms; *form; form++) {
        int rc = match_scan_choose((*form)->name);
        assert_int_equal(rc, (*form)->here() ? 0 : TERN_ERR_UNSUPPORTED);
        if (!rc) assert_ptr_equal(match_scan, *form);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forms_find_the_oldest_that_fits),
        cmocka_unit_test(extreme_values_fit_only_themselves),
        cmocka_unit_test(a_form_is_chosen_by_name),
    };
    const char *text = getenv("TERN_TEST_SEED");
    rng_state = text ? strtoull(text, NULL, 0) : 7;
    printf("# TERN_TEST_SEED=%llu\n", (unsigned long long)rng_state);
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
