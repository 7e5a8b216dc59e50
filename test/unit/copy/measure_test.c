/*
 * measure_test.c - what copies cost on this machine (measure.h): the figures are of this machine's order, and engines are chosen by them,
 * on machines that are made up as well as by the best fixed border.
 */
#include "copy/measure.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/var.h"
#include "copy/count.h"
#include "copy/now.h"
#include "dsa_model.h"
#include "fake_engine.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* That caches are faster than memory is not asked for: one measurement on a busy machine may find otherwise. */
static void each_figure_is_there(void **state)
{
    const struct copy_memory_cost *m = copy_memory_cost();
    (void)state;
    if (!m) {
        print_message("# no instruction of this processor empties its caches\n");
        skip();
    }
    for (int from = COPY_NEAR; from <= COPY_FAR; from++) {
        assert_true(m->read[from] > 0 && m->read[from] < 1e9F);
        for (int to = COPY_NEAR; to <= COPY_FAR; to++) {
            assert_true(m->cached[from][to] > 0 && m->cached[from][to] < 1e9F);
            assert_true(m->nontemporal[from][to] > 0 && m->nontemporal[from][to] < 1e9F);
        }
    }
    assert_ptr_equal(m, copy_memory_cost());
}

static void a_core_is_worth_what_it_costs(void **state)
{
    struct copy_queue *q;
    struct copy_engine_cost c;
    (void)state;
    assert_int_equal(copy_queue_open(&copy_core_ops, 8, &q), 0);
    copy_engine_cost(q, &c);
    assert_true(c.submit_ns < 1e9F && c.issue_ns < 1e9F);
    assert_true(c.issue_ns > c.submit_ns); /* it wakes a thread */
    assert_true(c.lag_ns > 0 && c.own[COPY_NEAR] > 0 && c.own[COPY_FAR] > 0);
    copy_measured(q, &c);
    assert_true(copy_record_of(q).worth[COPY_FAR] > 64);
    assert_int_equal(copy_poll(q), copy_last(q));
    copy_queue_close(q);
}

/* Which one copy_queue_open_best opens for batches of up to `most` bytes. */
static bool works_alone(bool other_core, size_t most, size_t *worth)
{
    struct copy_queue *q;
    assert_int_equal(copy_queue_open_best(other_core, most, 8, &q), 0);
    bool alone = copy_is_async(q);
    *worth = copy_record_of(q).worth[COPY_FAR];
    copy_queue_close(q);
    return alone;
}

static void the_best_is_the_one_that_pays(void **state)
{
    size_t worth = 1;
    (void)state;
    assert_false(works_alone(true, 1, &worth));
    assert_int_equal(worth, 0);
    assert_false(works_alone(false, SIZE_MAX, &worth));
    assert_true(works_alone(true, SIZE_MAX, &worth));
    assert_true(worth > 0);
}

static void a_device_comes_first(void **state)
{
    struct dsa_model m = {.size = 16, .most = 1 << 21};
    size_t worth = 0;
    (void)state;
    assert_true(dsa_model_open(&m));
    assert_true(works_alone(false, SIZE_MAX, &worth));
    assert_true(worth > 0);
    dsa_model_close(&m);
    assert_true(m.copies >= COPY_BATCH);
}

/* ---- OMX-25: as good as the best fixed border, less 3 %, on machines that are made up ---- */

struct machine {
    const char *name;
    struct copy_memory_cost memory; /* only what a copy to memory costs matters */
    struct fake engine;
    double issue_later; /* ns: what issuing costs in the program, as its engine sleeps more deeply than when it was measured, or less */
};

static const struct machine machines[] = {
    {"slow memory, a device", {.cached = {{0, 40}, {0, 250}}}, {.submit = 30, .issue = 300, .look = 200, .lag = 800, .pace = 0.04}, 300},
    {"fast memory, a core", {.cached = {{0, 25}, {0, 60}}}, {.submit = 20, .issue = 2000, .look = 200, .lag = 6000, .pace = 0.08}, 6000},
    {"no cache to speak of, a device that is woken by others", {.cached = {{0, 120}, {0, 130}}},
     {.submit = 60, .issue = 4000, .look = 200, .lag = 2000, .pace = 0.1}, 1500},
};

static size_t random_size(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return ((size_t)512 << (*seed >> 40) % 8) + (size_t)(*seed >> 50) % 512; /* 512 bytes to 64 KB */
}

/* The caller's time for many batches, from a cache and from memory. */
static double time_of_batches(const struct machine *m, struct copy_queue *q)
{
    static char src[(64 << 10) + 512], dst[sizeof src];
    uint64_t seed = 1;
    double own = 0;
    for (int i = 0; i < 40000; i++) {
        enum copy_place from = i / 4 % 2 ? COPY_NEAR : COPY_FAR;
        size_t n = random_size(&seed);
        copy_cookie c;
        copy_from(q, from);
        if (!copy_pays(q, n)) {
            own += (double)m->memory.cached[from][COPY_FAR] * (double)n / 1024;
            continue;
        }
        uint64_t start = fake.now;
        for (size_t k = 0; k < COPY_BATCH; k++) assert_int_equal(copy_submit(q, dst + k * n / 4, src + k * n / 4, n / 4, &c), 0);
        copy_issue(q);
        own += (double)(fake.now - start);
        while (copy_poll(q) < c) continue; /* something else is done meanwhile */
    }
    return own;
}

/* least: a fixed border; -1: by what is measured and observed. */
static double by_border(const struct machine *m, long least)
{
    struct copy_queue *q;
    struct copy_engine_cost c;
    fake = m->engine;
    fake.dry = true;
    assert_int_equal(copy_queue_open(&fake_ops, 64, &q), 0);
    copy_engine_cost(q, &c);
    if (least < 0) copy_measured(q, &c);
    else copy_fix(q, (size_t)least);
    fake.issue = m->issue_later;
    double ns = time_of_batches(m, q);
    copy_queue_close(q);
    return ns;
}

static void as_good_as_the_best_border(void **state)
{
    (void)state;
    copy_now = fake_clock;
    for (size_t i = 0; i < ARRAY_LEN(machines); i++) {
        const struct machine *m = &machines[i];
        double best = 0, worst = 0;
        copy_memory_cost_is(&m->memory);
        for (long least = 512; least <= 256 << 10; least *= 2) {
            double ns = by_border(m, least);
            if (!best || ns < best) best = ns;
            if (ns > worst) worst = ns;
        }
        double ns = by_border(m, -1);
        print_message("# %s: %.3f of the best fixed border's speed, %.3f is the worst one's\n", m->name, best / ns, best / worst);
        assert_true(best / worst < 0.9); /* there is something to choose */
        assert_true(best / ns > 0.97);
    }
    copy_memory_cost_is(NULL);
    copy_now = clock_ns;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_figure_is_there),
        cmocka_unit_test(a_core_is_worth_what_it_costs),
        cmocka_unit_test(the_best_is_the_one_that_pays),
        cmocka_unit_test(a_device_comes_first),
        cmocka_unit_test(as_good_as_the_best_border),
    };
    if (var_open()) return 1;
    cmocka_set_message_output(CM_OUTPUT_TAP);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    var_close();
    return failed;
}
