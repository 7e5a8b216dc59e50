/*
 * measure_test.c - what copies cost on this machine (measure.h): the figures are of this machine's order, and engines are chosen by them.
 */
#include "copy/measure.h"
#include "base/err.h"
#include "base/var.h"
#include "dsa_model.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void caches_are_faster_than_memory(void **state)
{
    const struct copy_memory_cost *m = copy_memory_cost();
    (void)state;
    if (!m) {
        print_message("# no instruction of this processor empties its caches\n");
        skip();
    }
    assert_true(m->read[COPY_NEAR] > 0 && m->read[COPY_NEAR] < m->read[COPY_FAR]);
    assert_true(m->cached[COPY_NEAR][COPY_NEAR] < m->cached[COPY_FAR][COPY_FAR]);
    assert_true(m->nontemporal[COPY_NEAR][COPY_NEAR] > 0 && m->nontemporal[COPY_FAR][COPY_FAR] > 0);
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
    assert_true(c.worth > 64);
    assert_int_equal(copy_poll(q), copy_last(q));
    copy_queue_close(q);
}

/* Which one copy_queue_open_best opens for batches of up to `most` bytes. */
static bool works_alone(bool other_core, size_t most, size_t *worth)
{
    struct copy_queue *q;
    assert_int_equal(copy_queue_open_best(other_core, most, 8, &q, worth), 0);
    bool alone = copy_is_async(q);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(caches_are_faster_than_memory),
        cmocka_unit_test(a_core_is_worth_what_it_costs),
        cmocka_unit_test(the_best_is_the_one_that_pays),
        cmocka_unit_test(a_device_comes_first),
    };
    if (var_open()) return 1;
    cmocka_set_message_output(CM_OUTPUT_TAP);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    var_close();
    return failed;
}
