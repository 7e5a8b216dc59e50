/* event_queue_test.c - events come out in their order, also after those of one job have been dropped. */
#include "proc/event_queue.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <string.h>

static void push(struct event_queue *q, const char *job, uint32_t rank)
{
    struct proc_event e = {.rank = rank};
    strcpy(e.job, job);
    assert_true(event_queue_push(q, &e));
}

/* The queue holds just these ranks. */
static void holds(struct event_queue *q, const char *ranks)
{
    struct proc_event e;
    for (; *ranks; ranks++) {
        assert_true(event_queue_pop(q, &e));
        assert_int_equal(e.rank, *ranks - '0');
    }
    assert_false(event_queue_pop(q, &e));
}

static void events_come_in_their_order(void **state)
{
    struct event_queue q = {0};
    (void)state;
    holds(&q, "");
    push(&q, "a", 1);
    push(&q, "b", 2);
    holds(&q, "12");
    push(&q, "a", 3);
    holds(&q, "3");
}

/* Whether they stand first, last, or everywhere, what is pushed then comes behind the rest. */
static void events_of_a_job_are_dropped(void **state)
{
    static const struct {
        const char *jobs, *rest;
    } cases[] = {
        {"", "9"},    {"a", "9"},    {"aa", "9"},    {"b", "09"},     {"ab", "19"},
        {"ba", "09"}, {"aba", "19"}, {"bab", "029"}, {"baab", "039"},
    };
    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        struct event_queue q = {0};
        for (uint32_t i = 0; cases[k].jobs[i]; i++) push(&q, (char[]){cases[k].jobs[i], 0}, i);
        event_queue_drop(&q, "a");
        push(&q, "a", 9);
        holds(&q, cases[k].rest);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_come_in_their_order),
        cmocka_unit_test(events_of_a_job_are_dropped),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
