/*
 * copy_test.c - the direct copy, the software engines, and queues in front of an
 * engine that is everything hardware can be: slow, small, asynchronous, bound to pages.
 */
#include "base/err.h"
#include "../seed.h"
#include "base/var.h"
#include "copy/copy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define PAGE 4096

static uint64_t seed;

static size_t rnd(size_t below)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (size_t)(seed >> 33) % below;
}

static void fill(unsigned char *p, size_t n)
{
    for (size_t i = 0; i < n; i++) p[i] = (unsigned char)rnd(256);
}

/* ---- the direct call ---- */

/* Every alignment of both sides, sizes around lines; bytes outside must stay. */
static void check_copy(void (*copy)(void *, const void *, size_t))
{
    enum { ROOM = 1024 };
    static unsigned char src[ROOM], dst[ROOM], expect[ROOM];
    for (int i = 0; i < 20000; i++) {
        size_t n = rnd(600), from = rnd(130), to = rnd(130);
        fill(src, 8);
        memmove(src + 8 + rnd(50), src, 300);
        fill(dst, 16);
        memcpy(expect, dst, ROOM);
        for (size_t k = 0; k < n; k++) expect[to + k] = src[from + k];
        copy(dst + to, src + from, n);
        assert_memory_equal(dst, expect, ROOM);
    }
}

static void nontemporal_copies_every_byte(void **state)
{
    (void)state;
    check_copy(copy_nontemporal);
}

static void by_threshold(void *dst, const void *src, size_t n) { copy_memory(dst, src, n); }

static void threshold_is_the_variable(void **state)
{
    (void)state;
    assert_int_equal(var_set(VAR_COPY_NT, "100"), 0);
    assert_int_equal(copy_open(), 0);
    assert_int_equal(copy_nontemporal_min, 100);
    check_copy(by_threshold); /* sizes on both sides of it */
}

/* ---- an engine like hardware ---- */

struct slow {
    size_t depth, taken, started; /* pieces in the ring; of these, issued */
    uint64_t finished;
    int pins, issues, polls;
    struct {
        void *dst;
        const void *src;
        size_t n;
    } ring[64];
};
static struct slow slow; /* one at a time */

static int slow_open(size_t depth, void **state_p)
{
    (void)depth;
    slow = (struct slow){.depth = 5}; /* fewer than one copy can have pieces */
    *state_p = &slow;
    return 0;
}

static void slow_close(void *state)
{
    struct slow *s = state;
    assert_int_equal(s->taken, 0);
    assert_int_equal(s->pins, 0);
}

static int slow_push(void *state, void *dst, const void *src, size_t n)
{
    struct slow *s = state;
    assert_in_range(n, 1, PAGE);
    assert_int_equal((uintptr_t)dst / PAGE, ((uintptr_t)dst + n - 1) / PAGE);
    assert_int_equal((uintptr_t)src / PAGE, ((uintptr_t)src + n - 1) / PAGE);
    if (s->taken == s->depth) return TERN_AGAIN;
    s->ring[s->taken].dst = dst;
    s->ring[s->taken].src = src;
    s->ring[s->taken++].n = n;
    return 0;
}

static void slow_issue(void *state)
{
    struct slow *s = state;
    s->started = s->taken;
    s->issues++;
}

/* Time passes: up to two pieces are copied between looks. */
static uint64_t slow_finished(void *state)
{
    struct slow *s = state;
    s->polls++;
    for (size_t n = rnd(3); n > 0 && s->started > 0; n--) {
        memcpy(s->ring[0].dst, s->ring[0].src, s->ring[0].n);
        s->taken--;
        s->started--;
        memmove(s->ring, s->ring + 1, s->taken * sizeof s->ring[0]);
        s->finished++;
    }
    return s->finished;
}

static int slow_pin(void *state, const void *p, size_t n, void **token_p)
{
    (void)n;
    ((struct slow *)state)->pins++;
    *token_p = (void *)(uintptr_t)p;
    return 0;
}

static void slow_unpin(void *state, void *token)
{
    assert_non_null(token);
    ((struct slow *)state)->pins--;
}

static const struct copy_ops slow_ops = {
    "slow",        COPY_ASYNC | COPY_PAGES | COPY_PIN,
    slow_open,     slow_close, NULL,
    slow_push,     slow_issue,
    slow_finished, slow_pin,
    slow_unpin,    NULL,
};

static const struct copy_ops *const tested[] = {&copy_inline_ops, &copy_nontemporal_ops, &copy_core_ops, &slow_ops};

/* ---- queues ---- */

#define COPIES 40
#define LARGEST (5 * PAGE)

struct job {
    unsigned char *dst, *src;
    size_t n;
    copy_cookie cookie;
};

static bool arrived(const struct job *j) { return !memcmp(j->dst, j->src, j->n); }

/* Everything a cookie promises: in order, done when polled as done, and not lost when the queue is full. */
static void run_jobs(const struct copy_ops *ops, struct job *jobs, size_t depth)
{
    struct copy_queue *q;
    copy_cookie before = 0, expect = 0;
    assert_int_equal(copy_queue_open(ops, depth, &q), 0);
    for (int i = 0; i < COPIES; i++) {
        int rc;
        while ((rc = copy_submit(q, jobs[i].dst, jobs[i].src, jobs[i].n, &jobs[i].cookie)) == TERN_AGAIN) {
            copy_issue(q);
            copy_poll(q);
        }
        assert_int_equal(rc, 0);
        assert_int_equal(jobs[i].cookie, ++expect);
        assert_int_equal(copy_last(q), expect);
        if (rnd(4) == 0) copy_issue(q);
        copy_cookie done = copy_poll(q);
        assert_true(done >= before && done <= expect);
        for (int k = 0; k <= i; k++)
            if (jobs[k].cookie <= done) assert_true(arrived(&jobs[k]));
        before = done;
    }
    copy_wait_all(q);
    assert_int_equal(copy_poll(q), COPIES);
    for (int i = 0; i < COPIES; i++) assert_true(arrived(&jobs[i]));
    copy_queue_close(q);
}

static void cookies_finish_in_order(void **state)
{
    (void)state;
    unsigned char *src = aligned_alloc(PAGE, COPIES * (LARGEST + 2 * PAGE)),
                  *dst = aligned_alloc(PAGE, COPIES * (LARGEST + 2 * PAGE));
    assert_non_null(src);
    assert_non_null(dst);
    for (int round = 0; round < 60; round++) {
        struct job jobs[COPIES];
        fill(src, 64 * PAGE);
        for (int i = 0; i < COPIES; i++) { /* unaligned, crossing pages */
            size_t at = (size_t)i * (LARGEST + 2 * PAGE);
            jobs[i] = (struct job){dst + at + rnd(PAGE), src + at + rnd(PAGE), 1 + rnd(rnd(2) ? 300 : LARGEST), 0};
            memset(jobs[i].src, 1 + i, jobs[i].n);
            memset(jobs[i].dst, 0, jobs[i].n);
        }
        run_jobs(tested[round % 4], jobs, 1 + rnd(20));
    }
    free(src);
    free(dst);
}

/* Queued is not started: a batch goes with one issue (RMA-9). */
static void nothing_moves_before_issue(void **state)
{
    (void)state;
    for (size_t e = 0; e < ARRAY_LEN(tested); e++) {
        struct copy_queue *q;
        copy_cookie c;
        char src[3] = {1, 2, 3}, dst[3] = {0};
        assert_int_equal(copy_queue_open(tested[e], 4, &q), 0);
        for (int i = 0; i < 3; i++) assert_int_equal(copy_submit(q, &dst[i], &src[i], 1, &c), 0);
        for (int i = 0; i < 10; i++) assert_int_equal(copy_poll(q), 0);
        assert_int_equal(dst[0] + dst[1] + dst[2], 0);
        copy_issue(q);
        if (tested[e] == &slow_ops) assert_int_equal(slow.issues, 1);
        copy_wait_all(q);
        assert_memory_equal(dst, src, 3);
        copy_queue_close(q);
    }
}

static void full_queue_says_again(void **state)
{
    (void)state;
    struct copy_queue *q;
    copy_cookie c = 0;
    char src[3] = {1, 2, 3}, dst[3] = {0};
    assert_int_equal(copy_queue_open(&copy_inline_ops, 2, &q), 0);
    assert_int_equal(copy_submit(q, dst, src, 1, &c), 0);
    assert_int_equal(copy_submit(q, dst + 1, src + 1, 1, &c), 0);
    assert_int_equal(copy_submit(q, dst + 2, src + 2, 1, &c), TERN_AGAIN);
    assert_int_equal(c, 2);
    copy_issue(q);
    assert_int_equal(copy_poll(q), 2);
    assert_int_equal(copy_submit(q, dst + 2, src + 2, 1, &c), 0);
    copy_queue_close(q); /* waits */
    assert_int_equal(dst[2], 3);
}

static void pinning_is_for_engines_that_ask(void **state)
{
    (void)state;
    struct copy_queue *q;
    char page[8];
    void *token = page;
    assert_int_equal(copy_queue_open(&copy_inline_ops, 2, &q), 0);
    assert_int_equal(copy_pin(q, page, 8, &token), 0);
    assert_null(token);
    copy_unpin(q, token);
    copy_queue_close(q);
    assert_int_equal(copy_queue_open(&slow_ops, 2, &q), 0);
    assert_int_equal(copy_pin(q, page, 8, &token), 0);
    assert_ptr_equal(token, page);
    assert_int_equal(slow.pins, 1);
    copy_unpin(q, token);
    copy_queue_close(q);
}

/* A flag is set if and only if the member it promises is there. */
static void engines_keep_the_contract(void **state)
{
    (void)state;
    for (const struct copy_ops *const *e = copy_engines; *e; e++) {
        assert_ptr_equal(copy_engine_named((*e)->name), *e);
        assert_true((*e)->open && (*e)->close && (*e)->push && (*e)->issue && (*e)->finished);
        assert_int_equal(!!((*e)->flags & COPY_PIN), (*e)->pin != NULL);
        assert_int_equal(!!((*e)->flags & COPY_PIN), (*e)->unpin != NULL);
    }
    assert_null(copy_engine_named("none"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nontemporal_copies_every_byte),   cmocka_unit_test(threshold_is_the_variable),
        cmocka_unit_test(engines_keep_the_contract),       cmocka_unit_test(cookies_finish_in_order),
        cmocka_unit_test(nothing_moves_before_issue),      cmocka_unit_test(full_queue_says_again),
        cmocka_unit_test(pinning_is_for_engines_that_ask),
    };
    seed = seed_open();
    if (var_open()) return 1;
    cmocka_set_message_output(CM_OUTPUT_TAP);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    var_close();
    return failed;
}
