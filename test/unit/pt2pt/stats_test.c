/*
 * stats_test.c - what TERN_STATS says: of a thread that waits for the lane, of one that finds a wire taken, and of copies
 * (pt2pt/stats.h).
 */
#include "mock_job.h"
#include "copy/budget.h"
#include "copy/count.h"
#include "pt2pt/stats.h"
#include "transport/wire_lock.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char said[2000];

/* What stats_say prints. */
static const char *say(void)
{
    FILE *f = tmpfile();
    int before = dup(STDERR_FILENO);
    assert_non_null(f);
    dup2(fileno(f), STDERR_FILENO);
    stats_say();
    dup2(before, STDERR_FILENO);
    close(before);
    rewind(f);
    said[fread(said, 1, sizeof said - 1, f)] = 0;
    fclose(f);
    return said;
}

static int open_job(void **state)
{
    (void)state;
    setenv("TERN_STATS", "1", 1);
    job_open_threaded();
    wires_share();
    return 0;
}

static int close_job(void **state)
{
    wires_unshare();
    job_close();
    unsetenv("TERN_STATS");
    return job_clean(state);
}

static void *enter(void *lane)
{
    lane_enter(lane);
    lane_leave(lane);
    return NULL;
}

static void *look(void *found)
{
    *(int *)found = wire_poll(0, 1);
    return NULL;
}

static void one_that_waits_for_the_lane_is_counted(void **state)
{
    struct lane *l = lanes_first();
    unsigned number, times;
    double ms = 0;
    pthread_t thread;
    (void)state;
    assert_non_null(strstr(say(), "tern: rank 0: lane 0: sections waited for its lock 0 times, 0.000 ms in all\n"));
    lane_enter(l);
    assert_int_equal(pthread_create(&thread, NULL, enter, l), 0);
    while (!lock_is_wanted(&l->lock)) sched_yield();
    lane_leave(l);
    pthread_join(thread, NULL);
    assert_int_equal(sscanf(say(), "tern: rank 0: lane %u: sections waited for its lock %u times, %lf ms", &number, &times, &ms), 3);
    assert_int_equal(number, 0);
    assert_int_equal(times, 1);
    assert_true(ms > 0);
}

static void a_look_that_finds_another_thread_is_counted(void **state)
{
    pthread_t thread;
    int found = -1;
    (void)state;
    assert_non_null(strstr(say(), "tern: rank 0: mock: looks found another thread there 0 times;"));
    assert_int_equal(wire_take(0, WIRE_POLL), 0);
    assert_int_equal(pthread_create(&thread, NULL, look, &found), 0);
    pthread_join(thread, NULL);
    wire_give(0, WIRE_POLL);
    assert_int_equal(found, 0);
    assert_non_null(strstr(say(), "tern: rank 0: mock: looks found another thread there 1 times;"));
}

static void copies_are_said_if_there_are_any(void **state)
{
    static const struct copy_record r = {.engine = "made-up", .issue_ns = {2000, 2500}, .worth = {SIZE_MAX, 9000}, .ends = 4,
                                         .predicted_ns = 40000, .observed_ns = 50000, .corrections = 3, .trials = 2};
    (void)state;
    assert_null(strstr(say(), "copies:"));
    assert_null(strstr(say(), "copy engine"));
    copy_count(COPY_BY_NONTEMPORAL, 3, 6000000);
    assert_non_null(strstr(say(), "tern: rank 0: copies: 0 by memcpy, 0.0 MB; 3 past the caches, 6.0 MB; 0 by an engine, 0.0 MB\n"));
    copy_count_engine(&r);
    assert_non_null(strstr(say(), "tern: rank 0: copy engine made-up: issuing a batch takes 2.50 us, 2.00 at first; "
                                  "least batch none from a cache, 9000 bytes from memory\n"));
    assert_non_null(strstr(say(), "tern: rank 0: copy engine made-up: 4 ends observed, after 12.50 us, predicted 10.00 us, in the mean; "
                                  "3 corrections, 2 trials\n"));
}

static int open_silent(void **state)
{
    (void)state;
    job_open_threaded();
    return 0;
}

static int close_silent(void **state)
{
    job_close();
    return job_clean(state);
}

static void nothing_is_said_unasked(void **state)
{
    (void)state;
    assert_string_equal(say(), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(one_that_waits_for_the_lane_is_counted, open_job, close_job),
        cmocka_unit_test_setup_teardown(a_look_that_finds_another_thread_is_counted, open_job, close_job),
        cmocka_unit_test_setup_teardown(copies_are_said_if_there_are_any, open_job, close_job),
        cmocka_unit_test_setup_teardown(nothing_is_said_unasked, open_silent, close_silent),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
