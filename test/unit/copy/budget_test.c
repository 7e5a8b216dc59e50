/*
 * budget_test.c - which batches are left to an engine (copy/budget.h), with times and an engine that are made up: borders are where the
 * costs are equal; they move with what is observed, and not more; a device that has become slow loses its work, and gets it back.
 */
#include "copy/budget.h"
#include "../seed.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/var.h"
#include "copy/count.h"
#include "copy/measure.h"
#include "copy/now.h"
#include "fake_engine.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define KB ((size_t)1024)

/* A caller that copies 10 GB/s from a cache and 5 from memory; starting a batch costs it 1.2 us; the engine copies 20 GB/s after 1 us. */
static const struct copy_engine_cost machine = {
    .submit_ns = 50, .issue_ns = 1000, .lag_ns = 1000, .pace = {0.05F, 0.05F}, .own = {0.1F, 0.2F}};

static struct copy_budget b;

static void begin(void) { budget_measured(&b, &machine); }

static uint64_t predicted(size_t n) { return budget_predict(&b, n, COPY_FAR, false); }

/* An end that is seen exactly, so many times what was measured. */
static void end_at(double times, size_t n)
{
    uint64_t end = (uint64_t)(times * (1000 + 0.05 * (double)n));
    budget_ended(&b, COPY_FAR, predicted(n), end, end);
}

static void borders_are_where_the_costs_are_equal(void **state)
{
    (void)state;
    begin();
    assert_in_range(b.worth[COPY_NEAR].from, 11990, 12010); /* 1,200 ns / 0.1 */
    assert_in_range(b.worth[COPY_FAR].from, 5990, 6010);
    assert_true(budget_takes(&b, 6010, COPY_FAR) && !budget_takes(&b, 5990, COPY_FAR) && !budget_takes(&b, 6010, COPY_NEAR));
    assert_true(budget_takes(&b, SIZE_MAX, COPY_FAR));
}

static void of_a_new_queue_all_is_worth_it(void **state)
{
    (void)state;
    budget_open(&b);
    assert_true(budget_takes(&b, 1, COPY_NEAR) && budget_takes(&b, SIZE_MAX, COPY_FAR));
    for (int i = 0; i < 1000; i++) budget_ended(&b, COPY_FAR, 1000, 900000, 900000);
    assert_true(budget_takes(&b, 1, COPY_FAR));
}

/* ---- the cost of issuing ---- */

static void border_follows_the_cost_of_issuing(void **state)
{
    (void)state;
    begin();
    for (int i = 0; i < 60; i++) budget_issued(&b, 3800);
    assert_in_range(b.worth[COPY_FAR].from, 19500, 20010); /* 4,000 / 0.2 */
    assert_in_range(b.worth[COPY_NEAR].from, 39000, 40010);
    for (int i = 0; i < 60; i++) budget_issued(&b, 1000);
    assert_in_range(b.worth[COPY_FAR].from, 5990, 6100);
}

/* The caller was taken off its core in the middle: a millisecond. */
static void one_bad_issue_is_no_more_than_three_eighths(void **state)
{
    (void)state;
    begin();
    budget_issued(&b, 1000000);
    assert_in_range(b.worth[COPY_FAR].from, 7870, 7890); /* (200 + 1,375) / 0.2 */
    for (int i = 0; i < 30; i++) budget_issued(&b, 1000);
    assert_in_range(b.worth[COPY_FAR].from, 5990, 6100);
}

static void border_follows_the_callers_own_copies(void **state)
{
    (void)state;
    begin();
    for (int i = 0; i < 60; i++) budget_copied(&b, COPY_NEAR, 4 * KB, 1638); /* 0.4 ns for a byte */
    assert_in_range(b.worth[COPY_NEAR].from, 2990, 3020);
    assert_in_range(b.worth[COPY_FAR].from, 5990, 6010);
}

/* ---- ends ---- */

static void a_prediction_between_two_looks_is_right(void **state)
{
    (void)state;
    begin();
    uint64_t p = predicted(32 * KB);
    for (int i = 0; i < 100; i++) budget_ended(&b, COPY_FAR, p, p / 2, 2 * p);
    assert_int_equal(predicted(32 * KB), p);
    assert_int_equal(b.corrections, 0);
    assert_int_equal(b.ends, 100);
    budget_ended(&b, COPY_FAR, p, p + p / 8, 2 * p); /* the nearer look */
    assert_in_range(predicted(32 * KB), p + p / 64 - 2, p + p / 64 + 2);
    assert_int_equal(b.corrections, 1);
}

static void one_late_end_turns_no_engine_off(void **state)
{
    (void)state;
    begin();
    end_at(1000, 32 * KB);
    assert_true(budget_takes(&b, 32 * KB, COPY_FAR));
    for (int i = 0; i < 3; i++) end_at(1, 32 * KB);
    end_at(1000, 32 * KB);
    assert_true(budget_takes(&b, 32 * KB, COPY_FAR));
    assert_in_range(b.worth[COPY_FAR].from, 5990, 6010);
}

/* A slow device loses all that it had, after how many ends? */
static int ends_until_lost(double times)
{
    for (int i = 1; i < 200; i++) {
        end_at(times, 32 * KB);
        if (b.worth[COPY_FAR].from > 32 * KB || b.worth[COPY_FAR].to < 32 * KB) return i;
    }
    return 0;
}

static void a_slow_device_loses_its_work(void **state)
{
    (void)state;
    begin();
    assert_in_range(ends_until_lost(20), 5, 15);
    begin();
    assert_in_range(ends_until_lost(10000), 5, 15);
    begin();
    assert_int_equal(ends_until_lost(4), 0); /* SLOWER, and not more */
}

static void sources_in_memory_say_nothing_of_cached_ones(void **state)
{
    (void)state;
    begin();
    assert_true(ends_until_lost(20));
    assert_true(budget_takes(&b, 32 * KB, COPY_NEAR));
    assert_int_equal(budget_predict(&b, 32 * KB, COPY_NEAR, false), 2639);
}

/* In 256 batches 8 are tried; if these are slow again, so it stays. */
static void a_lost_engine_is_tried_now_and_then(void **state)
{
    int tried = 0;
    (void)state;
    begin();
    assert_true(ends_until_lost(20));
    for (int i = 0; i < 10 * (DISTANCE + TRIAL - 1); i++)
        if (budget_takes(&b, 32 * KB, COPY_FAR)) {
            assert_true(budget_samples(&b));
            end_at(20, 32 * KB);
            tried++;
        }
    assert_int_equal(tried, 10 * TRIAL);
    assert_int_equal(b.trials, 10);
    for (int i = 0; i < 1000; i++) assert_false(budget_takes(&b, 4 * KB, COPY_FAR)); /* never worth it */
}

static void a_fast_one_has_its_work_again(void **state)
{
    int batches = 0;
    (void)state;
    begin();
    for (int i = 0; i < 300; i++) end_at(20, 32 * KB);
    while (batches < 2 * DISTANCE && b.worth[COPY_FAR].from > 32 * KB)
        if (batches++, budget_takes(&b, 32 * KB, COPY_FAR)) end_at(1, 32 * KB);
    assert_true(batches < DISTANCE + TRIAL);
    for (int i = 0; i < 20; i++) end_at(1, 32 * KB);
    assert_in_range(b.worth[COPY_FAR].from, 5990, 6010);
}

/* However slow it was, the estimate has a bound, from which it comes back in some trials. */
static void a_device_that_was_dead_comes_back(void **state)
{
    int ends = 0;
    (void)state;
    begin();
    for (int i = 0; i < 10000; i++) end_at(1e6, 32 * KB);
    for (; b.worth[COPY_FAR].from > 32 * KB; ends++) end_at(1, 32 * KB);
    assert_in_range(ends, 2, 3 * TRIAL);
}

/* Times from half to three times the usual, one in 20 a hundred times: as on a machine with other work. The border stays. */
static void noise_moves_no_border(void **state)
{
    uint64_t seed = seed_open();
    (void)state;
    begin();
    for (int i = 0; i < 100000; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        double times = 0.5 + 2.5 * (double)(seed >> 33 & 1023) / 1024;
        end_at((seed >> 44) % 20 ? times : 100, 32 * KB);
        assert_true(b.worth[COPY_FAR].from < 6010 && b.worth[COPY_FAR].to >= 32 * KB);
    }
}

static void what_is_fixed_stays(void **state)
{
    (void)state;
    begin();
    budget_fix(&b, 9000);
    for (int i = 0; i < 100; i++) {
        end_at(1000, 32 * KB);
        budget_issued(&b, 100000);
        budget_copied(&b, COPY_FAR, 4 * KB, 1);
    }
    for (int i = 0; i < 1000; i++) assert_false(budget_takes(&b, 8999, COPY_FAR));
    assert_true(budget_takes(&b, 9000, COPY_FAR));
}

static void one_in_some_is_sampled_and_more_when_it_is_off(void **state)
{
    int sampled = 0;
    (void)state;
    begin();
    for (int i = 0; i < 10 * SAMPLE_EVERY + 1; i++) sampled += budget_samples(&b);
    assert_int_equal(sampled, 11);
    end_at(1.2, 32 * KB);
    end_at(0.9, 32 * KB);
    assert_false(budget_samples(&b));
    end_at(3, 32 * KB);
    assert_true(budget_samples(&b));
    assert_false(budget_samples(&b));
}

/* ---- through a queue ---- */

static char src[64 << 10], dst[64 << 10];

static struct copy_queue *open_fake(void)
{
    static const struct copy_memory_cost memory = {.cached = {{0, 102.4F}, {0, 204.8F}}};
    struct copy_queue *q;
    struct copy_engine_cost c;
    fake = (struct fake){.submit = 50, .issue = 1000, .look = 40, .lag = 2000, .pace = 0.05, .now = 1000000};
    copy_now = fake_clock;
    copy_memory_cost_is(&memory);
    assert_int_equal(copy_queue_open(&fake_ops, 64, &q), 0);
    copy_engine_cost(q, &c);
    copy_measured(q, &c);
    copy_from(q, COPY_FAR);
    return q;
}

static void close_fake(struct copy_queue *q)
{
    copy_queue_close(q);
    copy_memory_cost_is(NULL);
    copy_now = clock_ns;
}

/* A batch of 32 KB in 4 copies, looked at until it is done, if the engine gets it. */
static bool batch(struct copy_queue *q)
{
    copy_cookie c;
    if (!copy_pays(q, 32 * KB)) return false;
    memset(src, (int)(fake.now & 0xff), 32 * KB);
    for (size_t i = 0; i < 4; i++) assert_int_equal(copy_submit(q, dst + i * 8 * KB, src + i * 8 * KB, 8 * KB, &c), 0);
    copy_issue(q);
    while (copy_poll(q) < c) continue;
    assert_memory_equal(src, dst, 32 * KB);
    return true;
}

static int batches_of(struct copy_queue *q, int times)
{
    int n = 0;
    for (int i = 0; i < times; i++) n += batch(q);
    return n;
}

/* OMX-20, OMX-25: what is measured at the start is what the engine is, and the ends are as predicted. */
static void what_is_measured_is_what_it_is(void **state)
{
    struct copy_queue *q = open_fake();
    (void)state;
    assert_in_range(copy_record_of(q).worth[COPY_FAR], 5900, 6100);
    assert_in_range(copy_record_of(q).worth[COPY_NEAR], 11900, 12200);
    assert_int_equal(batches_of(q, 1000), 1000);
    struct copy_record r = copy_record_of(q);
    assert_in_range(r.ends, 60, 65);
    assert_true(r.observed_ns > 0.9 * r.predicted_ns && r.observed_ns < 1.1 * r.predicted_ns);
    assert_in_range(r.worth[COPY_FAR], 5900, 6100);
    close_fake(q);
}

static void a_queue_takes_work_from_a_slow_device_and_gives_it_back(void **state)
{
    struct copy_queue *q = open_fake();
    int done = 0;
    (void)state;
    batches_of(q, 100);
    fake.lag *= 20;
    fake.pace *= 20;
    while (done < 1000 && batch(q)) done++;
    assert_in_range(done, 5, 50); /* some tens of copies */
    assert_in_range(batches_of(q, 2000), 7 * TRIAL, 8 * TRIAL);
    fake.lag /= 20;
    fake.pace /= 20;
    batches_of(q, 2 * DISTANCE);
    assert_int_equal(batches_of(q, 1000), 1000);
    close_fake(q);
}

/* Nobody looks meanwhile: of the ends only that they were over is known. So the device is not called slow. */
static void who_looks_late_calls_nobody_slow(void **state)
{
    struct copy_queue *q = open_fake();
    copy_cookie c;
    (void)state;
    for (int i = 0; i < 1000; i++) {
        assert_true(copy_pays(q, 32 * KB));
        assert_int_equal(copy_submit(q, dst, src, 32 * KB, &c), 0);
        copy_issue(q);
        fake.now += 1000000;
        assert_int_equal(copy_poll(q), c);
    }
    assert_int_equal(copy_record_of(q).corrections, 0);
    close_fake(q);
}

/* A batch costs one look at the clock, which tells when it is due; a sampled one some more. */
static void what_is_not_sampled_costs_no_look_at_the_clock(void **state)
{
    struct copy_queue *q = open_fake();
    (void)state;
    batches_of(q, 20);
    unsigned before = fake.reads, most = 0;
    for (int i = 0; i < 16; i++) {
        unsigned one = fake.reads;
        batch(q);
        if (fake.reads - one > most) most = fake.reads - one;
    }
    assert_true(most > 3); /* the sampled one */
    assert_int_equal(fake.reads - before - most, 15);
    close_fake(q);
}

static void copies_are_counted_by_what_made_them(void **state)
{
    struct copy_counts before = copy_counts(), after;
    struct copy_queue *q = open_fake();
    copy_cookie c;
    (void)state;
    uint64_t at_start = 2 * 3 + 5 * 4, bytes_at_start = 6 * 32 * KB + 20 * 64; /* what was measured */
    assert_int_equal(batches_of(q, 3), 3);
    memset(src, 9, 5000);
    copy_here(q, dst, src, 5000);
    assert_memory_equal(src, dst, 5000);
    assert_int_equal(copy_counts().copies[COPY_BY_ENGINE], before.copies[COPY_BY_ENGINE]);
    close_fake(q);
    after = copy_counts();
    assert_int_equal(after.copies[COPY_BY_ENGINE] - before.copies[COPY_BY_ENGINE], 12 + at_start);
    assert_int_equal(after.bytes[COPY_BY_ENGINE] - before.bytes[COPY_BY_ENGINE], 96 * KB + bytes_at_start);
    assert_int_equal(after.copies[COPY_BY_MEMCPY] - before.copies[COPY_BY_MEMCPY], 1);
    assert_int_equal(after.bytes[COPY_BY_MEMCPY] - before.bytes[COPY_BY_MEMCPY], 5000);
    assert_string_equal(after.last.engine, "fake");
    assert_int_equal(copy_queue_open(&copy_nontemporal_ops, 4, &q), 0);
    assert_int_equal(copy_submit(q, dst, src, 700, &c), 0);
    copy_queue_close(q);
    assert_int_equal(copy_counts().bytes[COPY_BY_NONTEMPORAL] - after.bytes[COPY_BY_NONTEMPORAL], 700);
    assert_string_equal(copy_counts().last.engine, "fake");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(borders_are_where_the_costs_are_equal),
        cmocka_unit_test(of_a_new_queue_all_is_worth_it),
        cmocka_unit_test(border_follows_the_cost_of_issuing),
        cmocka_unit_test(one_bad_issue_is_no_more_than_three_eighths),
        cmocka_unit_test(border_follows_the_callers_own_copies),
        cmocka_unit_test(a_prediction_between_two_looks_is_right),
        cmocka_unit_test(one_late_end_turns_no_engine_off),
        cmocka_unit_test(a_slow_device_loses_its_work),
        cmocka_unit_test(sources_in_memory_say_nothing_of_cached_ones),
        cmocka_unit_test(a_lost_engine_is_tried_now_and_then),
        cmocka_unit_test(a_fast_one_has_its_work_again),
        cmocka_unit_test(a_device_that_was_dead_comes_back),
        cmocka_unit_test(noise_moves_no_border),
        cmocka_unit_test(what_is_fixed_stays),
        cmocka_unit_test(one_in_some_is_sampled_and_more_when_it_is_off),
        cmocka_unit_test(what_is_measured_is_what_it_is),
        cmocka_unit_test(a_queue_takes_work_from_a_slow_device_and_gives_it_back),
        cmocka_unit_test(who_looks_late_calls_nobody_slow),
        cmocka_unit_test(what_is_not_sampled_costs_no_look_at_the_clock),
        cmocka_unit_test(copies_are_counted_by_what_made_them),
    };
    if (var_open()) return 1;
    cmocka_set_message_output(CM_OUTPUT_TAP);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    var_close();
    return failed;
}
