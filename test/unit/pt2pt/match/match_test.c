/*
 * match_test.c - the matcher against a slow, obviously right one: one list a
 * side, searched from the oldest entry (MPI 3.5; LHS-7, 8, 10..13, 20).
 *
 * TERN_TEST_SEED sets the seed of the random programs.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/list.h"
#include "base/var.h"
#include "pt2pt/match/match.h"
#include "pt2pt/match/groups.h"
#include "pt2pt/match/scan.h"

static uint64_t rng_state, seed;

static uint32_t rng(uint32_t below)
{
    rng_state = rng_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)((rng_state >> 32) * below >> 32);
}

/* ---- the oracle ---- */

struct entry {
    struct link link;
    int src, tag;
};

static bool fits(int receive_src, int receive_tag, int src, int tag)
{
    return (receive_src == MATCH_ANY_SOURCE || receive_src == src) &&
           (receive_tag == tag || (receive_tag == MATCH_ANY_TAG && tag >= 0));
}

/* The oldest posted receive for a message, the oldest message for a receive. */
static struct entry *oracle_receive(struct link *posted, int src, int tag)
{
    list_each(l, next, posted)
    {
        struct entry *e = container_of(l, struct entry, link);
        if (fits(e->src, e->tag, src, tag)) return e;
    }
    return NULL;
}

static struct entry *oracle_message(struct link *unexpected, int src, int tag)
{
    list_each(l, next, unexpected)
    {
        struct entry *e = container_of(l, struct entry, link);
        if (fits(src, tag, e->src, e->tag)) return e;
    }
    return NULL;
}

/* ---- random programs ---- */

struct program {
    const char *what;
    uint32_t sources, tags;
    uint32_t any_source, any_tag; /* per cent of receives */
    uint32_t depth;               /* where the growing phases turn round */
};

struct world {
    struct match m;
    struct link posted, unexpected;
    uint32_t nposted, nunexpected;
    const struct program *p;
};

static struct entry *entry_new(struct link *side, int src, int tag)
{
    struct entry *e = malloc(sizeof *e);
    assert_non_null(e);
    e->src = src;
    e->tag = tag;
    list_push(side, &e->link);
    return e;
}

static void entry_free(struct entry *e, uint32_t *count)
{
    list_remove(&e->link);
    free(e);
    --*count;
}

/* Of the tags, one in sixteen is negative, as of internal contexts: no MATCH_ANY_TAG takes it. */
static int random_tag(const struct world *w)
{
    int tag = (int)rng(w->p->tags);
    return rng(16) ? tag : -10 - tag;
}

static void random_receive(const struct world *w, int *src, int *tag)
{
    *src = rng(100) < w->p->any_source ? MATCH_ANY_SOURCE : (int)rng(w->p->sources);
    *tag = rng(100) < w->p->any_tag ? MATCH_ANY_TAG : random_tag(w);
}

static void message_arrives(struct world *w)
{
    int src = (int)rng(w->p->sources), tag = random_tag(w);
    struct entry *e = oracle_receive(&w->posted, src, tag);
    assert_ptr_equal(match_arrive(&w->m, src, tag), e);
    if (e) {
        entry_free(e, &w->nposted);
        return;
    }
    assert_int_equal(match_store(&w->m, src, tag, entry_new(&w->unexpected, src, tag)), 0);
    w->nunexpected++;
}

static void receive_posted(struct world *w)
{
    int src, tag;
    random_receive(w, &src, &tag);
    struct entry *e = oracle_message(&w->unexpected, src, tag);
    assert_ptr_equal(match_take(&w->m, src, tag), e);
    if (e) {
        entry_free(e, &w->nunexpected);
        return;
    }
    assert_int_equal(match_post(&w->m, src, tag, entry_new(&w->posted, src, tag)), 0);
    w->nposted++;
}

static void probe(struct world *w)
{
    int src, tag;
    random_receive(w, &src, &tag);
    assert_ptr_equal(match_peek(&w->m, src, tag), oracle_message(&w->unexpected, src, tag));
}

static struct entry *random_entry(struct link *side, uint32_t count)
{
    struct link *l = side->next;
    if (!count) return NULL;
    for (uint32_t n = rng(count); n; n--) l = l->next;
    return container_of(l, struct entry, link);
}

static void cancel(struct world *w)
{
    struct entry *e = random_entry(&w->posted, w->nposted), gone;
    assert_false(match_cancel(&w->m, &gone));
    if (!e) return;
    assert_true(match_cancel(&w->m, e));
    assert_false(match_cancel(&w->m, e));
    entry_free(e, &w->nposted);
}

static void withdraw(struct world *w)
{
    struct entry *e = random_entry(&w->unexpected, w->nunexpected), gone;
    assert_false(match_withdraw(&w->m, &gone));
    if (!e) return;
    assert_true(match_withdraw(&w->m, e));
    assert_false(match_withdraw(&w->m, e));
    entry_free(e, &w->nunexpected);
}

static void count_visit(void *what, int src, int tag, void *arg)
{
    struct entry *e = what;
    assert_int_equal(e->src, src);
    assert_int_equal(e->tag, tag);
    ++*(uint32_t *)arg;
}

static void check_counts(const struct world *w)
{
    uint32_t posted = 0, unexpected = 0;
    assert_int_equal(match_posted_count(&w->m), w->nposted);
    assert_int_equal(match_unexpected_count(&w->m), w->nunexpected);
    match_each(&w->m.posted, count_visit, &posted);
    match_each(&w->m.unexpected, count_visit, &unexpected);
    assert_int_equal(posted, w->nposted);
    assert_int_equal(unexpected, w->nunexpected);
}

/* Phases in turn: messages gather, both balance, receives gather, both balance; then all over again. */
static void step(struct world *w, uint32_t phase)
{
    static const uint32_t arrivals[] = {85, 45, 5, 45};
    uint32_t op = rng(100);
    if (op < 2)
        cancel(w);
    else if (op < 4)
        withdraw(w);
    else if (op < 10)
        probe(w);
    else if (rng(90) < arrivals[phase])
        message_arrives(w);
    else
        receive_posted(w);
}

static bool phase_over(const struct world *w, uint32_t phase, uint32_t steps)
{
    if (steps > 20 * w->p->depth) return true;
    if (phase == 0) return w->nunexpected >= w->p->depth;
    if (phase == 2) return w->nposted >= w->p->depth;
    return steps > 2 * w->p->depth;
}

static void clear_side(struct world *w, struct link *side, uint32_t *count, bool posted)
{
    while (!list_empty(side)) {
        struct entry *e = random_entry(side, *count < 64 ? *count : 64);
        assert_true(posted ? match_cancel(&w->m, e) : match_withdraw(&w->m, e));
        entry_free(e, count);
    }
}

static void run_program(const struct program *p, uint32_t operations)
{
    struct world w = {.p = p};
    uint32_t phase = 0, steps = 0, grouped = 0;
    list_init(&w.posted);
    list_init(&w.unexpected);
    match_init(&w.m);
    for (uint32_t i = 0; i < operations; i++) {
        step(&w, phase);
        grouped += w.m.posted.all.grouped | w.m.unexpected.all.grouped;
        if (i % 4096 == 0) check_counts(&w);
        if (!phase_over(&w, phase, ++steps)) continue;
        phase = (phase + 1) % 4;
        steps = 0;
        if (phase == 0 && rng(4) == 0) clear_side(&w, &w.posted, &w.nposted, true);
        if (phase == 2 && rng(4) == 0) clear_side(&w, &w.unexpected, &w.nunexpected, false);
    }
    check_counts(&w);
    clear_side(&w, &w.posted, &w.nposted, true);
    clear_side(&w, &w.unexpected, &w.nunexpected, false);
    check_counts(&w);
    match_fini(&w.m);
    print_message("# %s, %s: %u of %u operations while grouped\n", p->what, match_scan->name, grouped, operations);
    if (p->sources >= 16 && p->depth >= 600) assert_true(grouped > operations / 20);
}

static void random_programs_agree_with_one_list(void **state)
{
    static const struct program programs[] = {
        {"two sources, two tags, shallow", 2, 2, 30, 30, 4},
        {"few sources, few tags", 4, 6, 10, 10, 60},
        {"one source, many tags", 1, 1000, 5, 1, 600},
        {"many sources, few tags", 500, 8, 10, 5, 700},
        {"many sources and tags, many wildcards", 64, 100, 40, 20, 600},
        {"many sources and tags, hardly a wildcard", 500, 40, 1, 0, 1200},
        {"receives from any source only", 100, 300, 100, 0, 600},
    };
    (void)state;
    for (const struct match_scan *const *form = match_scan_forms; *form; form++) {
        if (match_scan_choose((*form)->name)) continue;
        struct match_scan early = *match_scan;
        early.group_from = 128; /* so that programs of a bearable depth meet groups */
        match_scan = &early;
        for (size_t i = 0; i < ARRAY_LEN(programs); i++) run_program(&programs[i], 50000);
    }
    assert_int_equal(match_scan_choose("auto"), 0);
}

/* ---- single rules ---- */

static char things[8]; /* bodies and requests: their addresses are all that matters */

static void an_empty_matcher_has_nothing(void **state)
{
    struct match m;
    (void)state;
    match_init(&m);
    assert_null(match_arrive(&m, 0, 0));
    assert_null(match_take(&m, MATCH_ANY_SOURCE, MATCH_ANY_TAG));
    assert_null(match_peek(&m, 0, 0));
    assert_false(match_cancel(&m, &things[0]));
    assert_false(match_withdraw(&m, &things[0]));
    match_fini(&m);
}

static void messages_of_a_pair_keep_their_order(void **state)
{
    struct match m;
    (void)state;
    match_init(&m);
    for (int i = 0; i < 3; i++) assert_int_equal(match_store(&m, 5, 7, &things[i]), 0);
    assert_ptr_equal(match_peek(&m, 5, 7), &things[0]);
    assert_ptr_equal(match_take(&m, 5, 7), &things[0]);
    assert_ptr_equal(match_take(&m, MATCH_ANY_SOURCE, 7), &things[1]);
    assert_ptr_equal(match_take(&m, 5, MATCH_ANY_TAG), &things[2]);
    assert_int_equal(match_unexpected_count(&m), 0);
    match_fini(&m);
}

static void wildcard_and_named_receives_match_in_posting_order(void **state)
{
    struct match m;
    (void)state;
    match_init(&m);
    assert_int_equal(match_post(&m, 1, 9, &things[0]), 0);
    assert_int_equal(match_post(&m, MATCH_ANY_SOURCE, 7, &things[1]), 0);
    assert_int_equal(match_post(&m, 1, MATCH_ANY_TAG, &things[2]), 0);
    assert_int_equal(match_post(&m, 1, 7, &things[3]), 0);
    assert_ptr_equal(match_arrive(&m, 1, 7), &things[1]);
    assert_ptr_equal(match_arrive(&m, 1, 7), &things[2]);
    assert_null(match_arrive(&m, 2, 7));
    assert_ptr_equal(match_arrive(&m, 1, 7), &things[3]);
    assert_ptr_equal(match_arrive(&m, 1, 9), &things[0]);
    match_fini(&m);
}

static void any_tag_takes_no_negative_tag(void **state)
{
    struct match m;
    (void)state;
    match_init(&m);
    assert_int_equal(match_store(&m, 0, -5, &things[0]), 0);
    assert_null(match_take(&m, MATCH_ANY_SOURCE, MATCH_ANY_TAG));
    assert_ptr_equal(match_take(&m, MATCH_ANY_SOURCE, -5), &things[0]);
    assert_int_equal(match_post(&m, MATCH_ANY_SOURCE, MATCH_ANY_TAG, &things[1]), 0);
    assert_null(match_arrive(&m, 0, -5));
    assert_null(match_arrive(&m, 0, MATCH_ANY_SOURCE));
    assert_ptr_equal(match_arrive(&m, INT32_MAX, INT32_MAX), &things[1]);
    match_fini(&m);
}

/* LHS-14: what is shallow lies in the struct. */
static void shallow_queues_allocate_nothing(void **state)
{
    struct match m;
    (void)state;
    match_init(&m);
    for (int i = 0; i < 1000; i++) {
        for (int k = 0; k < 3; k++) assert_int_equal(match_store(&m, 0, k, &things[k]), 0);
        for (int k = 0; k < 3; k++) assert_int_equal(match_post(&m, 0, k + 10, &things[k]), 0);
        for (int k = 0; k < 3; k++) assert_ptr_equal(match_take(&m, 0, (i + k) % 3), &things[(i + k) % 3]);
        for (int k = 0; k < 3; k++) assert_ptr_equal(match_arrive(&m, 0, 10 + (i + k) % 3), &things[(i + k) % 3]);
    }
    assert_ptr_equal(m.posted.all.keys, m.posted_home);
    assert_ptr_equal(m.unexpected.all.keys, m.unexpected_home);
    match_fini(&m);
}

/* ---- depth ---- */

static void *thing(uint32_t i) { return (void *)((uintptr_t)i + 1); }

/* LHS-10: 10^6 entries, taken in order, last first, and from the middle outwards. */
static void a_million_messages(void **state)
{
    enum { N = 1000000, EACH = 1000 };
    struct match m;
    (void)state;
    match_init(&m);
    for (uint32_t i = 0; i < N; i++) assert_int_equal(match_store(&m, (int)(i % 7), (int)i, thing(i)), 0);
    for (uint32_t i = 0; i < EACH; i++) assert_ptr_equal(match_take(&m, (int)(i % 7), (int)i), thing(i));
    for (uint32_t i = N - 1; i >= N - EACH; i--) assert_ptr_equal(match_take(&m, (int)(i % 7), (int)i), thing(i));
    for (uint32_t i = N / 2; i < N / 2 + EACH; i++)
        assert_ptr_equal(match_take(&m, MATCH_ANY_SOURCE, (int)i), thing(i));
    for (uint32_t i = EACH; i < N - EACH; i++)
        if (i < N / 2 || i >= N / 2 + EACH) assert_ptr_equal(match_take(&m, MATCH_ANY_SOURCE, MATCH_ANY_TAG), thing(i));
    assert_int_equal(match_unexpected_count(&m), 0);
    assert_false(m.unexpected.all.grouped);
    match_fini(&m);
}

static void a_million_receives(void **state)
{
    enum { N = 1000000 };
    struct match m;
    (void)state;
    match_init(&m);
    for (uint32_t i = 0; i < N; i++)
        assert_int_equal(match_post(&m, i % 3 ? 1 : MATCH_ANY_SOURCE, (int)(i % 5), thing(i)), 0);
    for (uint32_t i = 0; i < 5000; i++) assert_ptr_equal(match_arrive(&m, 1, (int)(i % 5)), thing(i));
    assert_null(match_arrive(&m, 1, 5));
    for (uint32_t i = 5000; i < N; i++) assert_ptr_equal(match_arrive(&m, 1, (int)(i % 5)), thing(i));
    assert_int_equal(match_posted_count(&m), 0);
    assert_true(m.posted.all.cap <= 65536); /* the memory has been given back */
    match_fini(&m);
}

/* LHS-20: searches get shorter by grouping, and the order for any source stays. */
static void deep_sides_are_grouped_until_empty(void **state)
{
    enum { N = 4096 };
    struct match m;
    (void)state;
    assert_int_equal(match_scan_choose("scalar"), 0);
    match_init(&m);
    for (uint32_t i = 0; i < N; i++) assert_int_equal(match_store(&m, (int)(i % 512), (int)(i / 512), thing(i)), 0);
    assert_true(m.unexpected.all.grouped);
    for (size_t g = 0; g < 64; g++) assert_in_range(m.unexpected.groups->group[g].live, 1, 2 * N / 64);
    for (uint32_t i = 0; i < N; i++)
        assert_ptr_equal(match_take(&m, MATCH_ANY_SOURCE, i & 1 ? MATCH_ANY_TAG : (int)(i / 512)), thing(i));
    assert_false(m.unexpected.all.grouped);
    assert_int_equal(match_store(&m, 3, 4, &things[0]), 0);
    assert_int_equal(m.unexpected.all.tail, 1);
    assert_ptr_equal(match_take(&m, 3, 4), &things[0]);
    match_fini(&m);
}

static void one_source_is_not_grouped(void **state)
{
    struct match m;
    (void)state;
    match_init(&m);
    for (uint32_t i = 0; i < 5000; i++) assert_int_equal(match_store(&m, 11, (int)i, thing(i)), 0);
    assert_false(m.unexpected.all.grouped);
    match_fini(&m);
}

/* Least time of one message through the tail of a queue of `length` entries, of several tries. */
static uint64_t time_at_length(uint32_t length)
{
    uint64_t least = UINT64_MAX;
    struct match m;
    match_init(&m);
    for (uint32_t i = 0; i < length; i++) assert_int_equal(match_store(&m, 0, (int)i, thing(i)), 0);
    for (int i = 0; i < 200; i++) {
        uint64_t t0 = clock_ns();
        assert_int_equal(match_store(&m, 0, -5, &things[0]), 0);
        assert_ptr_equal(match_take(&m, 0, -5), &things[0]);
        least = min_size(least, clock_ns() - t0);
    }
    match_fini(&m);
    return least;
}

/* Regression: messages coming and going where the length of the queue is a power of two had the side judged each time.
 */
static void no_length_is_special(void **state)
{
    (void)state;
    assert_int_equal(match_scan_choose("auto"), 0);
    uint64_t at = time_at_length(32768), beside = time_at_length(32760);
    print_message("# %llu ns at length 32768, %llu at 32760\n", (unsigned long long)at, (unsigned long long)beside);
    assert_true(at < 2 * beside + 200);
}

/* ---- taking many at once ---- */

static void put_in_list(void *what, int src, int tag, void *arg)
{
    struct entry ***at = arg;
    (void)tag;
    assert_int_equal(((struct entry *)what)->src, src);
    *(*at)++ = what;
}

/* All receives of one source go, in their order; what is left matches as before. Short, with gaps, and grouped. */
static void receives_of_a_source_are_taken(void **state)
{
    static const uint32_t lengths[] = {1, 4, 30, 500, 20000};
    (void)state;
    for (size_t k = 0; k < ARRAY_LEN(lengths); k++) {
        uint32_t n = lengths[k], left = 0;
        struct entry *e = calloc(n, sizeof *e), **taken = calloc(n, sizeof *taken), **end = taken;
        struct match m;
        assert_true(e && taken);
        match_init(&m);
        for (uint32_t i = 0; i < n; i++) {
            e[i] = (struct entry){.src = (int)rng(100) - 1, .tag = (int)i}; /* -1: any */
            assert_int_equal(match_post(&m, e[i].src, e[i].tag, &e[i]), 0);
        }
        for (uint32_t i = 0; i < n; i += 3) assert_true(match_cancel(&m, &e[i]));
        for (int src = -1; src < 50; src++) {
            struct entry **from = end;
            uint32_t count = match_take_posted(&m, &src, put_in_list, &end);
            assert_int_equal(count, end - from);
            for (struct entry **t = from; t < end; t++) assert_true((*t)->src == src && (t == from || t[-1] < t[0]));
        }
        for (uint32_t i = 0; i < n; i++) left += i % 3 && e[i].src >= 50;
        assert_int_equal(match_posted_count(&m), left);
        for (uint32_t i = 0; i < n; i++)
            if (i % 3 && e[i].src >= 50) assert_ptr_equal(match_arrive(&m, e[i].src, e[i].tag), &e[i]);
            else assert_null(match_arrive(&m, e[i].src < 0 ? 0 : e[i].src, e[i].tag));
        assert_int_equal(match_take_posted(&m, NULL, put_in_list, &end), 0);
        match_fini(&m);
        free(e);
        free(taken);
    }
}

static void count_one(void *what, int src, int tag, void *arg)
{
    (void)what, (void)src, (void)tag;
    ++*(uint32_t *)arg;
}

static void all_messages_are_taken(void **state)
{
    struct match m;
    uint32_t n = 0;
    (void)state;
    match_init(&m);
    for (uint32_t i = 0; i < 10000; i++) assert_int_equal(match_store(&m, (int)(i % 300), 1, thing(i)), 0);
    assert_true(m.unexpected.all.grouped);
    assert_int_equal(match_take_unexpected(&m, count_one, &n), 10000);
    assert_int_equal(n, 10000);
    assert_false(m.unexpected.all.grouped);
    assert_null(match_take(&m, MATCH_ANY_SOURCE, MATCH_ANY_TAG));
    assert_int_equal(match_store(&m, 3, 4, &things[0]), 0);
    assert_ptr_equal(match_take(&m, 3, 4), &things[0]);
    match_fini(&m);
}

/* ---- failures ---- */

static int64_t allocs_left = -1; /* how many succeed; negative: all */

void *__real_aligned_alloc(size_t, size_t);
void *__wrap_aligned_alloc(size_t align, size_t size);
void *__wrap_aligned_alloc(size_t align, size_t size)
{
    if (allocs_left == 0) return NULL;
    if (allocs_left > 0) allocs_left--;
    return __real_aligned_alloc(align, size);
}

static void without_memory_nothing_changes(void **state)
{
    (void)state;
    for (int64_t ok = 0; ok < 75; ok++) {
        struct match m;
        uint32_t n = 0;
        match_init(&m);
        allocs_left = ok;
        while (n < 20000 && match_store(&m, (int)(n % 200), (int)n, thing(n)) == 0) n++;
        if (n < 20000) {
            assert_int_equal(match_store(&m, (int)(n % 200), (int)n, thing(n)), TERN_ERR_NOMEM);
            assert_non_null(strstr(err_words(), "unexpected"));
        }
        allocs_left = -1;
        assert_int_equal(match_unexpected_count(&m), n);
        for (uint32_t i = 0; i < n; i++) assert_ptr_equal(match_take(&m, MATCH_ANY_SOURCE, MATCH_ANY_TAG), thing(i));
        match_fini(&m);
    }
}

static void bad_variables_are_refused_in_words(void **state)
{
    (void)state;
    assert_int_equal(var_open(), 0);
    assert_int_equal(var_set(VAR_MATCH_GROUPS, "48"), 0);
    assert_int_equal(match_open(), TERN_ERR_ARG);
    assert_non_null(strstr(err_words(), "TERN_MATCH_GROUPS"));
    assert_int_equal(var_set(VAR_MATCH_GROUPS, "64"), 0);
    assert_int_equal(var_set(VAR_MATCH_VECTOR, "scalar"), 0);
    assert_int_equal(match_open(), 0);
    assert_string_equal(match_scan->name, "scalar");
    assert_int_equal(var_set(VAR_MATCH_VECTOR, "auto"), 0);
    assert_int_equal(match_open(), 0);
    var_close();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_matcher_has_nothing),
        cmocka_unit_test(messages_of_a_pair_keep_their_order),
        cmocka_unit_test(wildcard_and_named_receives_match_in_posting_order),
        cmocka_unit_test(any_tag_takes_no_negative_tag),
        cmocka_unit_test(shallow_queues_allocate_nothing),
        cmocka_unit_test(a_million_messages),
        cmocka_unit_test(a_million_receives),
        cmocka_unit_test(deep_sides_are_grouped_until_empty),
        cmocka_unit_test(one_source_is_not_grouped),
        cmocka_unit_test(no_length_is_special),
        cmocka_unit_test(receives_of_a_source_are_taken),
        cmocka_unit_test(all_messages_are_taken),
        cmocka_unit_test(without_memory_nothing_changes),
        cmocka_unit_test(bad_variables_are_refused_in_words),
        cmocka_unit_test(random_programs_agree_with_one_list),
    };
    const char *text = getenv("TERN_TEST_SEED");
    seed = text ? strtoull(text, NULL, 0) : 20240607;
    rng_state = seed;
    printf("# TERN_TEST_SEED=%llu\n", (unsigned long long)seed);
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
