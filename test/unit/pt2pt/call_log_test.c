/* call_log_test.c - a rank that is asked about a collective compares it with its own, finds the first that differs, and is
 * never mistaken about an entry that is being replaced (pt2pt/call_log.c). */
#include "base/err.h"
#include "mock_job.h"
#include "pt2pt/call_log.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* As AM_CALL carries it. */
struct question {
    uint64_t what, history;
    int64_t bytes;
    uint64_t before;
};

static struct pt_call_log call_log;
static struct comm *world;

static void words(uint64_t what, int64_t bytes, char *text, size_t n)
{
    snprintf(text, n, "<%llu of %lld>", (unsigned long long)what, (long long)bytes);
}

static int64_t same_bytes(uint64_t what, int64_t bytes)
{
    (void)what;
    return bytes;
}

static int open_calls(void **state)
{
    (void)state;
    pt_call_words = words;
    pt_call_bytes = same_bytes;
    world = job_open(NULL);
    memset(&call_log, 0, sizeof call_log);
    world->call_log = &call_log;
    return 0;
}

static int close_calls(void **state)
{
    (void)state;
    world->call_log = NULL;
    job_close();
    return 0;
}

/* A rank that makes these calls asks about the last one. */
static struct question last_of(const uint64_t *what, int n)
{
    struct pt_call_log theirs = {.history = 0};
    struct question q = {0};
    for (int k = 0; k < n; k++) {
        q = (struct question){.what = what[k], .bytes = 8, .before = theirs.history};
        pt_call_log_note(&theirs, what[k], 8);
        q.history = theirs.history;
    }
    return q;
}

static void ask(uint32_t k, const struct question *q) { pt_on_call(job_peer(), world->ctx, k, q, sizeof *q); }
static void ask_last(const uint64_t *what, int n)
{
    struct question q = last_of(what, n);
    ask((uint32_t)n, &q);
}

static void note_all(const uint64_t *what, int n)
{
    for (int k = 0; k < n; k++) pt_call_log_note(&call_log, what[k], 8);
}

static const uint64_t ours[] = {11, 12, 13, 14}, others[] = {11, 22, 13, 14};

static void equal_calls_are_no_clash(void **state)
{
    (void)state;
    note_all(ours, 4);
    ask_last(ours, 4);
    ask_last(ours, 2);
    assert_int_equal(atomic_load(&call_log.error), 0);
    assert_int_equal(mock_count.sent[AM_CALL], 0);
}

static void a_call_that_has_not_come_is_answered_with_the_last_one(void **state)
{
    (void)state;
    note_all(ours, 2);
    ask_last(ours, 4);
    assert_int_equal(atomic_load(&call_log.error), 0);
    assert_int_equal(mock_count.sent[AM_CALL], 1);
}

/* Calls 3 and 4 are the same ones, behind others: the second is named. */
static void the_first_call_that_differs_is_looked_for(void **state)
{
    (void)state;
    note_all(ours, 4);
    for (int k = 4; k > 2; k--) {
        ask_last(others, k);
        assert_int_equal(atomic_load(&call_log.error), 0);
        assert_int_equal(mock_count.sent[AM_CALL], 5 - k); /* asks about the call before */
    }
    ask_last(others, 2);
    assert_int_equal(mock_count.sent[AM_CALL], 2);
    assert_int_equal(atomic_load(&call_log.error), TERN_ERR_DISAGREE);
    assert_int_equal(mock_count.sent[AM_CLASH], 1);
    assert_int_equal(call_log.clash.what[0], 12);
    assert_int_equal(call_log.clash.what[1], 22);
    assert_non_null(strstr(call_log.words, "rank 0 of the job has called <12 of 8> where rank 0 has called <22 of 8>"));
    assert_int_equal(pt_call_log_failed(world), TERN_ERR_DISAGREE);
}

static void other_bytes_are_a_clash_where_they_have_to_be_equal(void **state)
{
    struct question q = last_of(ours, 4);
    (void)state;
    note_all(ours, 4);
    q.bytes = -1; /* not known there */
    ask(4, &q);
    assert_int_equal(atomic_load(&call_log.error), 0);
    q.bytes = 16;
    ask(4, &q);
    assert_int_equal(atomic_load(&call_log.error), TERN_ERR_DISAGREE);
}

/* The earlier call is not kept any more: the one asked about is named. */
static void a_call_that_is_not_kept_is_not_compared(void **state)
{
    uint64_t many[CALL_LOG_KEPT + 8], different[CALL_LOG_KEPT + 8];
    (void)state;
    for (int k = 0; k < CALL_LOG_KEPT + 8; k++) many[k] = different[k] = (uint64_t)(100 + k);
    different[0] = 7;
    note_all(many, CALL_LOG_KEPT + 8);
    ask_last(different, 8);
    assert_int_equal(atomic_load(&call_log.error), 0);
    assert_int_equal(mock_count.sent[AM_CALL], 0);
    ask_last(different, 11); /* the oldest that is kept */
    assert_int_equal(atomic_load(&call_log.error), TERN_ERR_DISAGREE);
    assert_int_equal(call_log.clash.what[0], 110);
    assert_int_equal(mock_count.sent[AM_CALL], 0);
}

/* A receive of a collective was posted when those of the communicator had been ended: its wait lasts, and they are ended again. */
static void what_is_posted_too_late_is_ended(void **state)
{
    (void)state;
    note_all(ours, 2);
    ask_last(others, 2);
    assert_int_equal(atomic_load(&call_log.error), TERN_ERR_DISAGREE);
    call_log.ended = true;
    pt_call_log_ask(world, 0);
    assert_false(call_log.ended);
}

/* ---- questions while calls are noted ---- */

enum { QUESTIONS = 200000, AHEAD = 2 * CALL_LOG_KEPT, CALLS = 2 * QUESTIONS + AHEAD };

static uint64_t *history; /* of call k */
static _Atomic uint32_t asked;

static void await_count(_Atomic uint32_t *count, uint32_t least)
{
    for (int looks = 1; atomic_load(count) < least; looks++)
        if (looks % 1000 == 0) sched_yield(); /* on one core */
}

/* Two calls for each question, at the time when it is compared. */
static void *note_calls(void *arg)
{
    (void)arg;
    for (uint32_t k = 1; k <= CALLS; k++) {
        if (k > AHEAD) await_count(&asked, (k - AHEAD) / 2);
        pt_call_log_note(&call_log, k, k);
        history[k] = call_log.history;
    }
    return NULL;
}

/* Of the oldest calls that are kept, and those that are replaced just now. */
static void ask_of_replaced(void)
{
    for (uint32_t i = 0; i < QUESTIONS; i++) {
        await_count(&call_log.count, 2 * i + CALL_LOG_KEPT + 1);
        uint32_t k = atomic_load(&call_log.count) - CALL_LOG_KEPT + i % 6;
        ask(k, &(struct question){k, history[k], k, history[k - 1]});
        atomic_store(&asked, i + 1);
    }
}

static void an_entry_that_is_replaced_is_not_mistaken(void **state)
{
    pthread_t thread;
    (void)state;
    history = calloc(CALLS + 1, sizeof *history);
    assert_non_null(history);
    atomic_store(&asked, 0);
    assert_int_equal(pthread_create(&thread, NULL, note_calls, NULL), 0);
    ask_of_replaced();
    pthread_join(thread, NULL);
    free(history);
    assert_int_equal(atomic_load(&call_log.error), 0);
    assert_int_equal(mock_count.sent[AM_CALL], 0);
    assert_int_equal(atomic_load(&call_log.count), CALLS);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, open_calls, close_calls)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(equal_calls_are_no_clash),
        TEST(a_call_that_has_not_come_is_answered_with_the_last_one),
        TEST(the_first_call_that_differs_is_looked_for),
        TEST(other_bytes_are_a_clash_where_they_have_to_be_equal),
        TEST(a_call_that_is_not_kept_is_not_compared),
        TEST(what_is_posted_too_late_is_ended),
        TEST(an_entry_that_is_replaced_is_not_mistaken),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
