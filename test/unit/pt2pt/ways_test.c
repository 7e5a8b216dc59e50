/* ways_test.c - by which way a large message goes: from what the wire is able to, the message, and the variables. */
#include "mock_job.h"
#include "pt2pt/limits.h"
#include "pt2pt/ways.h"
#include "transport/find.h"

#include <stdlib.h>
#include <string.h>

enum { ALL = TP_CAP_MAP | TP_CAP_ARENA | TP_CAP_GETPUT | TP_CAP_BULK | TP_CAP_ZCOPY };

static enum way best(uint32_t caps, bool one_piece)
{
    struct peer p = {.ep = {.ops = &tp_mock, .caps = caps}};
    return ways_best(&p, WAY_MAPPED, one_piece, 100000);
}

/* Each way that lacks something leaves the message to the next. */
static void in_the_order_of_the_table(void **state)
{
    (void)state;
    job_open(NULL);
    assert_int_equal(best(ALL, true), WAY_MAPPED);
    assert_int_equal(best(ALL & ~TP_CAP_ARENA, true), WAY_DIRECT);
    assert_int_equal(best(ALL & ~TP_CAP_MAP, true), WAY_BULK);
    assert_int_equal(best(ALL & ~(TP_CAP_ARENA | TP_CAP_GETPUT), true), WAY_BULK);
    assert_int_equal(best(TP_CAP_ZCOPY, true), WAY_IN_PLACE);
    assert_int_equal(best(0, true), WAY_PACKED);
    assert_int_equal(best(ALL, false), WAY_PACKED);
    job_close();
}

/* Fragments only: what a receiver asks for that has gaps. */
static void from_a_way_on(void **state)
{
    (void)state;
    job_open(NULL);
    struct peer p = {.ep = {.ops = &tp_mock, .caps = ALL}};
    assert_int_equal(ways_best(&p, WAY_IN_PLACE, true, 100000), WAY_IN_PLACE);
    assert_int_equal(ways_best(&p, WAY_IN_PLACE, false, 100000), WAY_PACKED);
    job_close();
}

/* What the wire says that its own protocol is worth. */
static void short_ones_go_in_fragments(void **state)
{
    (void)state;
    job_open(NULL);
    struct tp_ops wire = tp_mock;
    wire.cost.bulk_min = 50000;
    struct peer p = {.ep = {.ops = &wire, .caps = TP_CAP_BULK | TP_CAP_ZCOPY}};
    assert_int_equal(ways_best(&p, WAY_MAPPED, true, 49999), WAY_IN_PLACE);
    assert_int_equal(ways_best(&p, WAY_MAPPED, true, 50000), WAY_BULK);
    job_close();
}

static void switched_off(void **state)
{
    (void)state;
    setenv("TERN_BULK", "off", 1);
    job_open(NULL);
    assert_int_equal(best(ALL & ~TP_CAP_MAP, true), WAY_IN_PLACE);
    job_close();
}

/* A wire finds out later that the system refuses: the row stays, the way is not taken. */
static void withdrawn_later(void **state)
{
    (void)state;
    job_open(NULL);
    struct peer p = {.ep = {.ops = &tp_mock, .caps = ALL & ~TP_CAP_ARENA}};
    assert_int_equal(ways_best(&p, WAY_MAPPED, true, 100000), WAY_DIRECT);
    p.ep.caps &= ~(uint32_t)TP_CAP_GETPUT;
    assert_int_equal(ways_best(&p, WAY_MAPPED, true, 100000), WAY_BULK);
    assert_false(ways_has(&p, WAY_DIRECT));
    assert_true(ways_has(&p, WAY_BULK));
    job_close();
}

static void in_words(void **state)
{
    char text[100], few[8];
    (void)state;
    job_open(NULL);
    assert_string_equal(pt_ways(&tp_tcp, text, sizeof text), "in_place, packed");
    assert_string_equal(pt_ways(&tp_shm, text, sizeof text), "mapped, direct, packed");
    assert_string_equal(pt_ways(&tp_mock, text, sizeof text), "mapped, direct, bulk, in_place, packed");
    assert_string_equal(pt_ways(&tp_mock, few, sizeof few), "mapped,");
    job_close();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(in_the_order_of_the_table, job_clean),
        cmocka_unit_test_teardown(from_a_way_on, job_clean),
        cmocka_unit_test_teardown(short_ones_go_in_fragments, job_clean),
        cmocka_unit_test_teardown(switched_off, job_clean),
        cmocka_unit_test_teardown(withdrawn_later, job_clean),
        cmocka_unit_test_teardown(in_words, job_clean),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
