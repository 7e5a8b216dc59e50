/*
 * copy_bench.c - plain copies: memcpy, stores that bypass the caches, what Tern chooses between them, and copy engines. Without an argument
 * the first of:
 *
 * `copy_bench choice`: a copy, and then all of it read once, on lines "key value"; medians of blocks in turn. SITUATION: `again` (the same
 * buffers, again and again) and `fresh` (a destination that has not been touched for long). WAY: memcpy, nontemporal, automatic (copy_memory).
 *     SITUATION_SIZE_WAY_us         both
 *     SITUATION_SIZE_WAY_copy_us    the copy alone
 *     SITUATION_SIZE_WAY_first_us   of the reading, the first 64 KB
 *     SITUATION_SIZE_to_best        the automatic way to the better one of the others
 *
 * `copy_bench tuned [LARGEST]`: what is chosen while the program runs beside fixed thresholds (OMX-21, OMX-25), 256 KB to 32 MB or LARGEST,
 * on lines "key value"; medians of blocks in turn, a copy and then all of it read once. CONFIGURATION: `again`, `fresh` and `cold` (neither
 * the source nor the destination has been touched for long). THRESHOLD is TERN_COPY_NT: 64K (all past the caches), 4M, 1G (none).
 *     tuned_CONFIGURATION_SIZE_THRESHOLD_us, tuned_CONFIGURATION_SIZE_auto_us
 *     tuned_CONFIGURATION_SIZE_of_best       the automatic way's speed to that of the best threshold
 *
 * `copy_bench engines`: copies by engines instead (RMA-16, OMX-20), one at a time, to a destination outside the cache, on lines
 * "key value". E is an engine (inline, nontemporal, core); `core` copies on another cpu than the caller's, if there are two.
 *     memcpy_SIZE_us       the plain call
 *     E_SIZE_us            from the submission until the queue says that the copy has finished
 *     E_caller_SIZE_us     of that, the time in which the caller submits and issues
 *     memcpy_cached_SIZE_us, E_cached_SIZE_us   the first two, the same destination each time
 *     E_chunk_SIZE_MBs     4 MB in chunks of that size, all queued, issued once
 *     E_submit_ns          submitting a copy, without the issue
 *     E_issue_ns           issuing a batch while the engine sleeps
 *     E_poll_ns            asking once how far it is, while it copies (OMX-7)
 *     E_worth_bytes, E_cached_worth_bytes   a batch that the caller would copy itself in the time of these, from memory and from a cache
 *     E_crossover_bytes, E_cached_crossover_bytes   the least size from which on the engine is quicker than memcpy; 0: there is none
 *
 * `copy_bench victim`: a loop that follows pointers through all lines of an array, beside copies of 4 MB at 1 GB/s, on lines "key value".
 *     loopA_WAY_ratio       the loop on another core, to one beside no copies
 *     loopA_WAY_own_ratio   the loop on the core that copies, once through the array between two copies, to one without them
 */
#include "copy/copy.h"
#include "base/err.h"
#include "base/var.h"
#include "copy/choose.h"
#include "copy/count.h"
#include "copy/measure.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define POOL ((size_t)512 << 20) /* far more than any cache */
#define LARGEST ((size_t)32 << 20)

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *t, int n)
{
    qsort(t, (size_t)n, sizeof *t, compare);
    return t[n / 2];
}

static const char *size_name(size_t n)
{
    static char name[24];
    if (n >= (size_t)1 << 20) snprintf(name, sizeof name, "%zuM", n >> 20);
    else if (n >= 1024) snprintf(name, sizeof name, "%zuK", n >> 10);
    else snprintf(name, sizeof name, "%zu", n);
    return name;
}

static void plain(void *dst, const void *src, size_t n) { memcpy(dst, src, n); }
static void automatic(void *dst, const void *src, size_t n) { copy_memory(dst, src, n); }

typedef void copier(void *dst, const void *src, size_t n);

static const struct {
    const char *name;
    copier *copy;
} ways[] = {{"memcpy", plain}, {"nontemporal", copy_nontemporal}, {"automatic", automatic}};
enum { WAYS = ARRAY_LEN(ways) };

/* ---- what is chosen ---- */

enum { BLOCKS = 12, IN_BLOCK_MAX = 16 };
#define FIRST ((size_t)64 << 10)

struct times {
    double both[BLOCKS * IN_BLOCK_MAX], copy[BLOCKS * IN_BLOCK_MAX], first[BLOCKS * IN_BLOCK_MAX];
    int n;
};

static void read_all(const char *p, size_t n)
{
    for (size_t i = 0; i < n; i += CACHE_LINE) (void)*(const volatile char *)(p + i);
}

static void once(copier *copy, char *to, const char *from, size_t n, struct times *t)
{
    size_t first = min_size(n, FIRST);
    double start = now();
    copy(to, from, n);
    double copied = now();
    read_all(to, first);
    double some = now();
    read_all(to + first, n - first);
    double end = now();
    if (!t) return;
    t->copy[t->n] = copied - start;
    t->first[t->n] = some - copied;
    t->both[t->n++] = end - start;
}

/* Where the next copy goes. */
static char *destination(char *pool, size_t n, bool fresh)
{
    static size_t at;
    if (!fresh) return pool;
    at = at + 2 * n > POOL ? 0 : at + n;
    return pool + at;
}

static void choice_of(char *pool, const char *src, size_t n, bool fresh)
{
    static struct times t[WAYS];
    const char *situation = fresh ? "fresh" : "again";
    int each = n >= (size_t)4 << 20 ? 2 : n >= (size_t)256 << 10 ? 6 : IN_BLOCK_MAX;
    double us[WAYS];
    copy_choose_among(NULL, NULL);
    for (int i = 0; i < 24; i++) once(automatic, destination(pool, n, fresh), src, n, NULL); /* it is found out meanwhile */
    for (int w = 0; w < WAYS; w++) t[w].n = 0;
    for (int b = 0; b < BLOCKS; b++)
        for (int k = 0; k < WAYS; k++) {
            int w = (b % 2 ? b + k : b + WAYS - k) % WAYS; /* each behind each other one */
            for (int i = -3; i < each; i++) once(ways[w].copy, destination(pool, n, fresh), src, n, i < 0 ? NULL : &t[w]);
        }
    for (int w = 0; w < WAYS; w++) {
        us[w] = 1e6 * median(t[w].both, t[w].n);
        printf("%s_%s_%s_us %.3f\n", situation, size_name(n), ways[w].name, us[w]);
        printf("%s_%s_%s_copy_us %.3f\n", situation, size_name(n), ways[w].name, 1e6 * median(t[w].copy, t[w].n));
        printf("%s_%s_%s_first_us %.3f\n", situation, size_name(n), ways[w].name, 1e6 * median(t[w].first, t[w].n));
    }
    printf("%s_%s_to_best %.3f\n", situation, size_name(n), us[2] / (us[0] < us[1] ? us[0] : us[1]));
}

static int choices(char *pool, const char *src)
{
    for (int fresh = 0; fresh < 2; fresh++)
        for (size_t n = 1024; n <= LARGEST; n *= 2) choice_of(pool, src, n, fresh);
    return 0;
}

/* ---- beside fixed thresholds ---- */

static const char *const thresholds[] = {"64K", "4M", "1G", "0"};
enum { THRESHOLDS = ARRAY_LEN(thresholds), AUTO = THRESHOLDS - 1 };

enum configuration { AGAIN, FRESH, COLD, CONFIGURATIONS };
static const char *const configurations[] = {"again", "fresh", "cold"};

/* The sources of cold copies are the upper half of the pool, their destinations the lower one. */
static void tuned_once(enum configuration c, char *pool, const char *src, size_t n, struct times *t)
{
    static size_t at;
    at = at + 2 * n > POOL / 2 ? 0 : at + n;
    once(automatic, c == AGAIN ? pool : pool + at, c == COLD ? pool + POOL / 2 + at : src, n, t);
}

static void set_threshold(const char *size)
{
    if (var_set(VAR_COPY_NT, size)) abort();
    copy_open();
}

static void tuned_of(enum configuration c, char *pool, const char *src, size_t n)
{
    static struct times t[THRESHOLDS];
    int each = n >= (size_t)4 << 20 ? 2 : n >= (size_t)1 << 20 ? 6 : IN_BLOCK_MAX;
    double us[THRESHOLDS], best = 0;
    copy_choose_among(NULL, NULL);
    set_threshold("0");
    for (int i = 0; i < 24; i++) tuned_once(c, pool, src, n, NULL); /* it is found out meanwhile */
    for (int k = 0; k < THRESHOLDS; k++) t[k].n = 0;
    for (int b = 0; b < BLOCKS; b++)
        for (int i = 0; i < THRESHOLDS; i++) {
            int k = (b % 2 ? b + i : b + THRESHOLDS - i) % THRESHOLDS; /* each behind each other one */
            set_threshold(thresholds[k]);
            for (int j = -3; j < each; j++) tuned_once(c, pool, src, n, j < 0 ? NULL : &t[k]);
        }
    for (int k = 0; k < THRESHOLDS; k++) {
        us[k] = 1e6 * median(t[k].both, t[k].n);
        printf("tuned_%s_%s_%s_us %.3f\n", configurations[c], size_name(n), k == AUTO ? "auto" : thresholds[k], us[k]);
        if (k != AUTO && (!best || us[k] < best)) best = us[k];
    }
    printf("tuned_%s_%s_of_best %.3f\n", configurations[c], size_name(n), best / us[AUTO]);
}

static int tuned(char *pool, const char *src, const char *most)
{
    size_t largest = LARGEST;
    if (most) {
        if (var_set(VAR_COPY_NT, most)) return fprintf(stderr, "copy_bench: %s\n", err_words()), 2;
        largest = min_size((size_t)var_int(VAR_COPY_NT), LARGEST);
    }
    for (int c = 0; c < CONFIGURATIONS; c++)
        for (size_t n = (size_t)256 << 10; n <= largest; n *= 2) tuned_of((enum configuration)c, pool, src, n);
    return 0;
}

/* ---- engines ---- */

enum { SAMPLES = 101, DEPTH = 64 };
static const size_t sizes[] = {256, 1024, 4096, 16384, 65536, 262144, (size_t)1 << 20, (size_t)4 << 20, (size_t)16 << 20};

static void pause_us(long us)
{
    struct timespec t = {.tv_nsec = us * 1000};
    nanosleep(&t, NULL);
}

/* Seconds of a copy, and of the caller's part of it. No queue: memcpy. */
static double copy_s(struct copy_queue *q, char *pool, const char *src, size_t n, bool cached, double *caller_s)
{
    static size_t at; /* the destination wanders through the pool, if it is not to be cached */
    double whole[SAMPLES], caller[SAMPLES];
    int samples = n >= (size_t)4 << 20 ? 21 : SAMPLES;
    for (int i = 0; i < samples; i++) {
        copy_cookie c;
        char *to = pool + at;
        if (!cached) at = (at + n) % (POOL / 2);
        if (q) pause_us(100); /* the engine sleeps again */
        double from = now();
        if (!q) memcpy(to, src, n);
        else if (copy_submit(q, to, src, n, &c)) abort();
        if (q) copy_issue(q);
        caller[i] = now() - from;
        if (q) copy_wait_all(q);
        whole[i] = now() - from;
    }
    *caller_s = median(caller, samples);
    return median(whole, samples);
}

/* Bytes a second of 4 MB in chunks. */
static double chunk_rate(struct copy_queue *q, char *pool, const char *src, size_t chunk)
{
    size_t all = (size_t)4 << 20;
    double t[SAMPLES];
    int samples = 21;
    for (int i = 0; i < samples; i++) {
        char *to = pool + (size_t)i * all;
        double from = now();
        for (size_t at = 0; at < all; at += chunk) {
            copy_cookie c;
            while (copy_submit(q, to + at, src + at, chunk, &c)) {
                copy_issue(q);
                copy_poll(q);
            }
        }
        copy_wait_all(q);
        t[i] = now() - from;
    }
    return (double)all / median(t, samples);
}

/* Seconds of submitting one of a batch, and of issuing it. */
static double submit_s(struct copy_queue *q, char *pool, const char *src, double *issue_s)
{
    double submits[SAMPLES], issues[SAMPLES];
    for (int i = 0; i < SAMPLES; i++) {
        copy_cookie c;
        pause_us(100);
        double from = now();
        int n = 0; /* as many as a device has places for */
        while (n < DEPTH && !copy_submit(q, pool + n * 4096, src, 64, &c)) n++;
        double between = now();
        copy_issue(q);
        issues[i] = now() - between;
        submits[i] = (between - from) / n;
        copy_wait_all(q);
    }
    *issue_s = median(issues, SAMPLES);
    return median(submits, SAMPLES);
}

/* Seconds of asking how far a copy of 4 MB is, which goes on meanwhile. */
static double poll_s(struct copy_queue *q, char *pool, const char *src)
{
    enum { POLLS = 20 };
    double t[SAMPLES];
    int samples = 21;
    for (int i = 0; i < samples; i++) {
        copy_cookie c;
        if (copy_submit(q, pool, src, (size_t)4 << 20, &c)) abort();
        copy_issue(q);
        double from = now();
        for (int k = 0; k < POLLS; k++) copy_poll(q);
        t[i] = (now() - from) / POLLS;
        copy_wait_all(q);
    }
    return median(t, samples);
}

static const char *const found[] = {"", "cached_"};

/* Where the destination is cached, or is not: the times, and from which size on they are below those of memcpy. */
static void copies(const struct copy_ops *ops, struct copy_queue *q, const double *plain_s, char *pool, const char *src, bool cached)
{
    size_t crossover = 0;
    double part;
    for (size_t k = 0; k < ARRAY_LEN(sizes); k++) {
        double t = copy_s(q, pool, src, sizes[k], cached, &part);
        printf("%s_%s%s_us %.3f\n", ops->name, found[cached], size_name(sizes[k]), 1e6 * t);
        if (!cached && copy_is_async(q)) printf("%s_caller_%s_us %.3f\n", ops->name, size_name(sizes[k]), 1e6 * part);
        if (t >= plain_s[k]) crossover = 0;
        else if (!crossover) crossover = sizes[k];
    }
    printf("%s_%scrossover_bytes %zu\n", ops->name, found[cached], crossover);
}

static int engine(const struct copy_ops *ops, double (*plain_s)[ARRAY_LEN(sizes)], char *pool, const char *src)
{
    struct copy_queue *q;
    double part;
    int rc = copy_queue_open(ops, DEPTH, &q);
    if (rc) return rc != TERN_ERR_UNSUPPORTED; /* a device that is not here */
    for (int cached = 0; cached < 2; cached++) copies(ops, q, plain_s[cached], pool, src, cached);
    static const size_t chunks[] = {256, 1024, 4096, 16384, 65536};
    for (size_t k = 0; k < ARRAY_LEN(chunks); k++)
        printf("%s_chunk_%s_MBs %.0f\n", ops->name, size_name(chunks[k]), 1e-6 * chunk_rate(q, pool, src, chunks[k]));
    printf("%s_submit_ns %.1f\n", ops->name, 1e9 * submit_s(q, pool, src, &part));
    if (copy_is_async(q)) {
        struct copy_engine_cost cost;
        copy_engine_cost(q, &cost);
        printf("%s_issue_ns %.1f\n", ops->name, 1e9 * part);
        printf("%s_poll_ns %.1f\n", ops->name, 1e9 * poll_s(q, pool, src));
        copy_measured(q, &cost);
        struct copy_record found_out = copy_record_of(q);
        printf("%s_worth_bytes %zu\n", ops->name, found_out.worth[COPY_FAR]);
        printf("%s_cached_worth_bytes %zu\n", ops->name, found_out.worth[COPY_NEAR]);
    }
    copy_queue_close(q);
    return 0;
}

/* The caller on the first cpu that it may use, the engine that is a core on the others. */
static void take_cpus(void)
{
    cpu_set_t all, one;
    int first = 0;
    sched_getaffinity(0, sizeof all, &all);
    while (!CPU_ISSET(first, &all)) first++;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    CPU_CLR(first, &all);
    if (!CPU_COUNT(&all)) return;
    sched_setaffinity(0, sizeof one, &one);
    copy_core_on(&all);
}

static int engines(char *pool, const char *src)
{
    double plain_s[2][ARRAY_LEN(sizes)], part;
    int rc = 0;
    take_cpus();
    for (int cached = 0; cached < 2; cached++)
        for (size_t k = 0; k < ARRAY_LEN(sizes); k++) {
            plain_s[cached][k] = copy_s(NULL, pool, src, sizes[k], cached, &part);
            printf("memcpy_%s%s_us %.3f\n", found[cached], size_name(sizes[k]), 1e6 * plain_s[cached][k]);
        }
    for (const struct copy_ops *const *e = copy_engines; *e && !rc; e++) rc = engine(*e, plain_s, pool, src);
    return rc;
}

/* ---- a loop beside copies ---- */

enum { PASSES = 100 };
#define BESIDE ((size_t)4 << 20)
static const size_t arrays[] = {32768, 262144, (size_t)1 << 20};

struct line {
    struct line *next;
    char rest[56];
};

/* One circle through all lines of n bytes. */
static struct line *make_circle(size_t n)
{
    size_t lines = n / sizeof(struct line), *order = malloc(lines * sizeof *order);
    struct line *array = aligned_alloc(4096, n);
    if (!order || !array) abort();
    for (size_t i = 0; i < lines; i++) order[i] = i;
    for (size_t i = lines - 1; i > 0; i--) {
        size_t k = (size_t)rand() % (i + 1), other = order[k];
        order[k] = order[i];
        order[i] = other;
    }
    for (size_t i = 0; i < lines; i++) array[order[i]].next = &array[order[(i + 1) % lines]];
    free(order);
    return array;
}

static double pass(const struct line *array, size_t n)
{
    const struct line *at = array;
    double from = now();
    for (size_t i = 0; i < n / sizeof *array; i++) at = at->next;
    __asm__ volatile("" ::"r"(at) : "memory");
    return now() - from;
}

static char *next_place(char *pool)
{
    static size_t at;
    at = (at + BESIDE) % (POOL / 2);
    return pool + at;
}

/* A pass after a copy, on the same core, or while the engine copies; copy and queue NULL: after another pass. */
static double own_pass(const struct line *array, size_t n, copier *copy, struct copy_queue *q, char *pool, const char *src)
{
    double t[PASSES];
    for (int i = 0; i < PASSES; i++) {
        copy_cookie c;
        pass(array, n);
        pass(array, n);
        if (q) {
            if (copy_submit(q, next_place(pool), src, BESIDE, &c)) abort();
            copy_issue(q);
        }
        if (copy) copy(next_place(pool), src, BESIDE);
        t[i] = pass(array, n);
        if (q) copy_wait_all(q);
    }
    return median(t, PASSES);
}

static struct {
    const struct line *array;
    size_t n;
    cpu_set_t cpus;
    _Atomic bool stop;
    double s; /* a pass */
} other;

static void *loop(void *unused)
{
    static double t[100000];
    int n = 0;
    sched_setaffinity(0, sizeof other.cpus, &other.cpus);
    while (!atomic_load_explicit(&other.stop, memory_order_relaxed)) {
        t[n] = pass(other.array, other.n);
        n += n < 99999;
    }
    other.s = median(t, n);
    return unused;
}

/* A pass on another core, while this one copies 4 MB every 4 ms. */
static double other_pass(const struct line *array, size_t n, copier *copy, char *pool, const char *src)
{
    pthread_t t;
    other.array = array;
    other.n = n;
    atomic_store_explicit(&other.stop, false, memory_order_relaxed);
    if (pthread_create(&t, NULL, loop, NULL)) abort();
    for (double start = now(), next = start; now() < start + 0.15;) {
        next += 4e-3;
        if (copy) copy(next_place(pool), src, BESIDE);
        double left = next - now();
        if (left > 0) pause_us((long)(1e6 * left));
    }
    atomic_store_explicit(&other.stop, true, memory_order_relaxed);
    pthread_join(t, NULL);
    return other.s;
}

static void beside(const char *array, const char *way, const char *where, double *ratios, int n)
{
    printf("loop%s_%s%s_ratio %.3f\n", array, way, where, median(ratios, n));
    fflush(stdout);
}

static void victim_of(size_t n, struct copy_queue *q, char *pool, const char *src)
{
    enum { ROUNDS = 5 };
    struct line *array = make_circle(n);
    double own[WAYS + 1][ROUNDS], others[WAYS][ROUNDS];
    for (int r = 0; r < ROUNDS; r++) {
        for (int w = 0; w < WAYS; w++) {
            others[w][r] = 1 / other_pass(array, n, NULL, pool, src);
            others[w][r] *= other_pass(array, n, ways[w].copy, pool, src);
            own[w][r] = own_pass(array, n, ways[w].copy, NULL, pool, src) / own_pass(array, n, NULL, NULL, pool, src);
        }
        own[WAYS][r] = own_pass(array, n, NULL, q, pool, src) / own_pass(array, n, NULL, NULL, pool, src);
    }
    char name[24];
    snprintf(name, sizeof name, "%s", size_name(n));
    for (int w = 0; w < WAYS; w++) {
        beside(name, ways[w].name, "", others[w], ROUNDS);
        beside(name, ways[w].name, "_own", own[w], ROUNDS);
    }
    beside(name, "core", "_own", own[WAYS], ROUNDS);
    free(array);
}

/* The caller is on the first cpu; the loop on another core, and the engine, on the others. */
static int victims(char *pool, const char *src)
{
    struct copy_queue *q;
    sched_getaffinity(0, sizeof other.cpus, &other.cpus);
    take_cpus();
    cpu_set_t here;
    sched_getaffinity(0, sizeof here, &here);
    if (CPU_EQUAL(&here, &other.cpus)) return fprintf(stderr, "there is one cpu only\n"), 1;
    CPU_XOR(&other.cpus, &other.cpus, &here);
    if (copy_queue_open(&copy_core_ops, DEPTH, &q)) return 1;
    for (size_t k = 0; k < ARRAY_LEN(arrays); k++) victim_of(arrays[k], q, pool, src);
    copy_queue_close(q);
    return 0;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "choice";
    char *pool = aligned_alloc(4096, POOL), *src = aligned_alloc(4096, LARGEST);
    if (!pool || !src || var_open()) return 1;
    copy_open();
    memset(pool, 1, POOL);
    memset(src, 2, LARGEST);
    if (!strcmp(what, "engines")) return engines(pool, src);
    if (!strcmp(what, "victim")) return victims(pool, src);
    if (!strcmp(what, "choice")) return choices(pool, src);
    if (!strcmp(what, "tuned")) return tuned(pool, src, argc > 2 ? argv[2] : NULL);
    return fprintf(stderr, "copy_bench [choice|tuned [LARGEST]|engines|victim]\n"), 2;
}
