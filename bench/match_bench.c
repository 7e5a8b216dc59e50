/*
 * match_bench - the matcher alone, in one process: what a search costs by depth,
 * layout and search code, beside plain lists (LHS-14..16, 20, 21, 23). The
 * constants of match/queue.h and match/scan.c were set by it: doc/decisions/matching.md.
 *
 * Prints "key value" lines; times are medians in nanoseconds.
 *
 *   list_inline, list_cold     plain lists: envelope next to its body in nodes in
 *                              address order; nodes in random places
 *   queue_FORM, posted_FORM    the matcher, unexpected and posted side
 *   X_nN_ns                    a search that passes N entries
 *   X_ns_per_entry             slope between N = 0 and 4096, data in cache
 *   X_flushed_ns_per_entry     the same, everything put out of the caches before
 *   X_depthN_ns                one message through a matcher with N others waiting:
 *                              arrival or post, and removal
 *   drain_ORDER_nN_ns          all of N messages received; each
 *   groupsG_ns                 a search for one of 512 sources among 4096 messages
 *   any_source_groupsG_ns      the oldest of any source
 *   any_source_late_tag_groupsG_ns   the first of any source with a tag that begins late
 *   drain_groupsG_nN_ns        N messages of 512 sources arrive and are received by
 *                              source and tag in random order; each
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/list.h"
#include "base/var.h"
#include "pt2pt/match/match.h"
#include "pt2pt/match/scan.h"

#define REPS 15
#define BODY 256 /* bytes of a list node: an envelope and the message beside it */
#define WANTED 1000000

static void *sink; /* results go here, so that searches are not optimised away */

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *t, int n)
{
    qsort(t, (size_t)n, sizeof *t, by_value);
    return t[n / 2];
}

static void check(bool ok, const char *what)
{
    if (ok) return;
    fprintf(stderr, "match_bench: %s\n", what);
    exit(1);
}

static void *xalloc(size_t size)
{
    void *p = malloc(size);
    check(p, "no memory");
    return p;
}

static uint32_t rng(uint32_t below)
{
    static uint64_t state = 1;
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)((state >> 32) * below >> 32);
}

/* ---- plain lists ---- */

struct node {
    struct link link;
    int context, src, tag;
    char body[BODY - sizeof(struct link) - 3 * sizeof(int)];
};

struct list {
    struct link head;
    struct node *nodes, **free;
    uint32_t nfree;
};

static void list_open(struct list *l, uint32_t cap, bool shuffled)
{
    list_init(&l->head);
    l->nodes = xalloc(cap * sizeof *l->nodes);
    l->free = xalloc(cap * sizeof *l->free);
    l->nfree = cap;
    for (uint32_t i = 0; i < cap; i++) l->free[i] = &l->nodes[cap - 1 - i];
    for (uint32_t i = cap; shuffled && i > 1; i--) {
        uint32_t k = rng(i);
        struct node *n = l->free[k];
        l->free[k] = l->free[i - 1];
        l->free[i - 1] = n;
    }
}

static void list_close(struct list *l)
{
    free(l->nodes);
    free(l->free);
}

static __attribute__((noinline)) void list_add(struct list *l, int src, int tag)
{
    struct node *n = l->free[--l->nfree];
    n->context = 1;
    n->src = src;
    n->tag = tag;
    list_push(&l->head, &n->link);
}

static __attribute__((noinline)) struct node *list_find(struct list *l, int src, int tag)
{
    for (struct link *e = l->head.next; e != &l->head; e = e->next) {
        struct node *n = container_of(e, struct node, link);
        if (n->context == 1 && (src < 0 || n->src == src) && (n->tag == tag || (tag == MATCH_ANY_TAG && n->tag >= 0)))
            return n;
    }
    return NULL;
}

static __attribute__((noinline)) void *list_take(struct list *l, int src, int tag)
{
    struct node *n = list_find(l, src, tag);
    if (!n) return NULL;
    list_remove(&n->link);
    l->free[l->nfree++] = n;
    return n;
}

/* ---- one search, over a list or a matcher ---- */

struct subject {
    const char *name;
    struct list *list; /* else the matcher */
    bool posted;       /* the matcher's posted side */
    struct match m;
};

static void put(struct subject *s, int src, int tag)
{
    if (s->list)
        list_add(s->list, src, tag);
    else
        check(!(s->posted ? match_post(&s->m, src, tag, s) : match_store(&s->m, src, tag, s)), "no memory");
}

static void *get(struct subject *s, int src, int tag)
{
    return s->list     ? list_take(s->list, src, tag)
           : s->posted ? match_arrive(&s->m, src, tag)
                       : match_take(&s->m, src, tag);
}

/* Time to take the wanted entry, the youngest, and to put it there again; n others are before it. */
static double search_time(struct subject *s, uint32_t n)
{
    double t[REPS];
    uint32_t loops = 200000 / (n + 20) + 20;
    for (uint32_t i = 0; i < n; i++) put(s, 1, (int)i);
    put(s, 1, WANTED);
    for (int r = 0; r < REPS; r++) {
        uint64_t t0 = clock_ns();
        for (uint32_t i = 0; i < loops; i++) {
            sink = get(s, 1, WANTED);
            put(s, 1, WANTED);
        }
        t[r] = (double)(clock_ns() - t0) / loops;
    }
    check(get(s, 1, WANTED), "lost an entry");
    for (uint32_t i = 0; i < n; i++) check(get(s, 1, (int)i), "lost an entry");
    return median(t, REPS);
}

/* Reads more than the last-level cache holds. */
static void evict(void)
{
    static char *junk;
    enum { BYTES = 96 << 20 };
    if (!junk) junk = xalloc(BYTES);
    for (size_t i = 0; i < BYTES; i += CACHE_LINE) junk[i]++;
}

static double flushed_time(struct subject *s, uint32_t n)
{
    double t[7];
    for (uint32_t i = 0; i < n; i++) put(s, 1, (int)i);
    for (int r = 0; r < 7; r++) {
        put(s, 1, WANTED);
        evict();
        uint64_t t0 = clock_ns();
        sink = get(s, 1, WANTED);
        t[r] = (double)(clock_ns() - t0);
    }
    for (uint32_t i = 0; i < n; i++) check(get(s, 1, (int)i), "lost an entry");
    return median(t, 7);
}

static void report(struct subject *s)
{
    static const uint32_t depth[] = {0, 1, 2, 4, 8, 16, 64, 256, 1000, 4096, 16384};
    double at[ARRAY_LEN(depth)];
    if (!s->list) match_init(&s->m);
    for (size_t i = 0; i < ARRAY_LEN(depth); i++) {
        at[i] = search_time(s, depth[i]);
        printf("%s_n%u_ns %.2f\n", s->name, depth[i], at[i]);
    }
    printf("%s_ns_per_entry %.4f\n", s->name, (at[9] - at[0]) / 4096);
    printf("%s_flushed_ns_per_entry %.4f\n", s->name, (flushed_time(s, 4096) - flushed_time(s, 0)) / 4096);
    if (!s->list) match_fini(&s->m);
    fflush(stdout);
}

static void report_lists(void)
{
    struct list inline_list, cold_list;
    list_open(&inline_list, 20000, false);
    list_open(&cold_list, 20000, true);
    report(&(struct subject){.name = "list_inline", .list = &inline_list});
    report(&(struct subject){.name = "list_cold", .list = &cold_list});
    list_close(&inline_list);
    list_close(&cold_list);
}

static void report_forms(void)
{
    for (const struct match_scan *const *form = match_scan_forms; *form; form++) {
        char unexpected[32], posted[32];
        if (match_scan_choose((*form)->name)) continue;
        snprintf(unexpected, sizeof unexpected, "queue_%s", (*form)->name);
        snprintf(posted, sizeof posted, "posted_%s", (*form)->name);
        report(&(struct subject){.name = unexpected});
        report(&(struct subject){.name = posted, .posted = true});
    }
}

/* ---- one message at small depth (LHS-14) ---- */

/* Arrival without a receive, store, receive: the unexpected way. n others wait, younger than none of ours. */
static double through(struct subject *s, struct subject *other, uint32_t n)
{
    double t[REPS];
    const uint32_t loops = 20000;
    for (uint32_t i = 0; i < n; i++) put(s, 1, (int)i);
    for (int r = 0; r < REPS; r++) {
        uint64_t t0 = clock_ns();
        for (uint32_t i = 0; i < loops; i++) {
            if (get(other, 1, WANTED)) exit(1);
            put(s, 1, WANTED);
            sink = get(s, 1, WANTED);
        }
        t[r] = (double)(clock_ns() - t0) / loops;
    }
    for (uint32_t i = 0; i < n; i++) check(get(s, 1, (int)i), "lost an entry");
    return median(t, REPS);
}

static void report_shallow(void)
{
    struct list a, b;
    list_open(&a, 100, false);
    list_open(&b, 100, false);
    for (uint32_t n = 0; n <= 3; n++) {
        struct subject la = {.list = &a}, lb = {.list = &b}, u = {.list = NULL}, p = {.posted = true};
        match_init(&u.m);
        match_init(&p.m);
        printf("list_depth%u_ns %.2f\n", n, through(&la, &lb, n));
        printf("queue_depth%u_ns %.2f\n", n, through(&u, &p, n));
        printf("posted_depth%u_ns %.2f\n", n, through(&p, &u, n));
        match_fini(&u.m);
        match_fini(&p.m);
    }
    list_close(&a);
    list_close(&b);
}

/* ---- drains (LHS-10, 11) ---- */

static void report_drain(const char *order, uint32_t n)
{
    uint32_t *tags = xalloc(n * sizeof *tags);
    double t[5];
    for (uint32_t i = 0; i < n; i++) tags[i] = *order == 'r' ? n - 1 - i : i;
    for (uint32_t i = n; !strcmp(order, "shuffled") && i > 1; i--) {
        uint32_t k = rng(i), v = tags[k];
        tags[k] = tags[i - 1];
        tags[i - 1] = v;
    }
    int reps = n > 100000 ? 1 : 5;
    for (int r = 0; r < reps; r++) {
        struct subject s = {.name = order};
        match_init(&s.m);
        for (uint32_t i = 0; i < n; i++) put(&s, 1, (int)i);
        uint64_t t0 = clock_ns();
        for (uint32_t i = 0; i < n; i++) check(get(&s, 1, (int)tags[i]), "lost an entry");
        t[r] = (double)(clock_ns() - t0) / n;
        match_fini(&s.m);
    }
    printf("drain_%s_n%u_ns %.2f\n", order, n, median(t, reps));
    free(tags);
    fflush(stdout);
}

/* ---- groups (LHS-20) ---- */

/* The form in use, so many groups, and an index from 128 entries on: earlier than the form asks for. */
static void set_groups(const char *groups)
{
    static struct match_scan early;
    check(!var_set(VAR_MATCH_GROUPS, groups) && !match_open(), "cannot set the number of groups");
    early = *match_scan;
    early.group_from = 128;
    match_scan = &early;
}

static void report_groups(const char *groups)
{
    enum { N = 4096, SOURCES = 512, LOOPS = 2000 };
    double named[REPS], any[REPS], any_tag[REPS];
    struct match m;
    set_groups(groups);
    match_init(&m);
    for (int i = 0; i < N; i++) check(!match_store(&m, i % SOURCES, i / SOURCES, &sink), "no memory");
    for (int r = 0; r < REPS; r++) {
        uint64_t t0 = clock_ns();
        for (int i = 0; i < LOOPS; i++) sink = match_peek(&m, (int)rng(SOURCES), N / SOURCES - 1);
        uint64_t t1 = clock_ns();
        for (int i = 0; i < LOOPS; i++) sink = match_peek(&m, MATCH_ANY_SOURCE, MATCH_ANY_TAG);
        uint64_t t2 = clock_ns();
        for (int i = 0; i < LOOPS; i++) sink = match_peek(&m, MATCH_ANY_SOURCE, N / SOURCES - 1);
        named[r] = (double)(t1 - t0) / LOOPS;
        any[r] = (double)(t2 - t1) / LOOPS;
        any_tag[r] = (double)(clock_ns() - t2) / LOOPS;
    }
    match_fini(&m);
    printf("groups%s_ns %.1f\nany_source_groups%s_ns %.1f\nany_source_late_tag_groups%s_ns %.1f\n", groups,
           median(named, REPS), groups, median(any, REPS), groups, median(any_tag, REPS));
}

/* All of n messages of 512 sources arrive and are received by source and tag in random order; each. */
static void report_drain_groups(const char *groups, uint32_t n)
{
    enum { SOURCES = 512 };
    double t[REPS];
    uint32_t *order = xalloc(n * sizeof *order);
    for (uint32_t i = 0; i < n; i++) order[i] = i;
    for (uint32_t i = n; i > 1; i--) {
        uint32_t k = rng(i), v = order[k];
        order[k] = order[i - 1];
        order[i - 1] = v;
    }
    set_groups(groups);
    struct subject s = {.name = groups};
    match_init(&s.m);
    for (int r = 0; r < REPS; r++) {
        uint64_t t0 = clock_ns();
        for (uint32_t i = 0; i < n; i++) put(&s, (int)(i % SOURCES), (int)(i / SOURCES));
        for (uint32_t i = 0; i < n; i++)
            check(get(&s, (int)(order[i] % SOURCES), (int)(order[i] / SOURCES)), "lost an entry");
        t[r] = (double)(clock_ns() - t0) / n;
    }
    match_fini(&s.m);
    printf("drain_groups%s_n%u_ns %.2f\n", groups, n, median(t, REPS));
    free(order);
}

int main(void)
{
    static const uint32_t drains[] = {256, 1000, 4096, 16384, 100000};
    check(!var_open() && !match_open(), "bad TERN_MATCH_ variables");
    printf("form %s\n", match_scan->name);
    report_shallow();
    report_lists();
    report_forms();
    check(!match_open(), "bad TERN_MATCH_ variables");
    for (size_t i = 0; i < ARRAY_LEN(drains); i++) {
        report_drain("fifo", drains[i]);
        report_drain("reverse", drains[i]);
        report_drain("shuffled", drains[i]);
    }
    report_drain("fifo", 1000000);
    static const char *const groups[] = {"1", "2", "4", "8", "16", "32", "64"};
    for (size_t i = 0; i < ARRAY_LEN(groups); i++) report_groups(groups[i]);
    for (uint32_t n = 256; n <= 65536; n *= 2) {
        report_drain_groups("1", n);
        report_drain_groups("64", n);
    }
    var_close();
    return 0;
}
