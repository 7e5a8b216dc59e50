/*
 * copy_bench.c - plain copies: memcpy, stores that bypass the caches, and the
 * processor's string move; to a destination in the cache and to one that is not.
 * These figures set TERN_COPY_NT.
 *
 * `copy_bench engines`: copies by engines instead (RMA-16), one at a time, to a destination outside the cache, on lines
 * "key value". E is an engine (inline, nontemporal, core); `core` copies on another cpu than the caller's, if there are two.
 *     memcpy_SIZE_us       the plain call
 *     E_SIZE_us            from the submission until the queue says that the copy has finished
 *     core_caller_SIZE_us  of that, the time in which the caller submits and issues
 *     E_submit_ns          submitting a copy, without the issue
 *     core_issue_ns        issuing a batch while the engine sleeps
 *     E_crossover_bytes    the least size from which on the engine is quicker than memcpy; 0: there is none
 */
#include "base/err.h"
#include "copy/copy.h"

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

static void plain(void *dst, const void *src, size_t n) { memcpy(dst, src, n); }

#if defined(__x86_64__)
static void string_move(void *dst, const void *src, size_t n)
{
    __asm__ volatile("rep movsb" : "+D"(dst), "+S"(src), "+c"(n) : : "memory");
}
#else
#define string_move NULL
#endif

typedef void copier(void *dst, const void *src, size_t n);

/* GB/s; the destination goes through the whole pool if `fresh`. */
static double rate(copier *copy, char *pool, const char *src, size_t n, bool fresh)
{
    size_t runs = min_size(POOL / 2 / n, 20000);
    double least = 1e9;
    for (int round = 0; round < 5; round++) {
        double t = now();
        for (size_t i = 0; i < runs; i++) copy(pool + (fresh ? i * n : 0), src, n);
        t = now() - t;
        if (t < least) least = t;
    }
    return 1e-9 * (double)(n * runs) / least;
}

static void by_size(char *pool, const char *src)
{
    static const struct {
        const char *name;
        copier *copy;
    } ways[] = {{"memcpy", plain}, {"nontemporal", copy_nontemporal}, {"string", string_move}};
    for (int fresh = 0; fresh < 2; fresh++) {
        printf("destination %s the cache, GB/s\n", fresh ? "outside" : "in");
        for (size_t n = 4096; n <= LARGEST; n *= 2) {
            printf("%9zu", n);
            for (size_t w = 0; w < ARRAY_LEN(ways); w++)
                if (ways[w].copy) printf("  %s %6.1f", ways[w].name, rate(ways[w].copy, pool, src, n, fresh));
            printf("\n");
        }
    }
}

/* ---- engines ---- */

enum { SAMPLES = 101, DEPTH = 64 };
static const size_t sizes[] = {256, 1024, 4096, 16384, 65536, 262144, (size_t)1 << 20, (size_t)4 << 20, (size_t)16 << 20};

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

static void pause_us(long us)
{
    struct timespec t = {.tv_nsec = us * 1000};
    nanosleep(&t, NULL);
}

/* Seconds of a copy, and of the caller's part of it. No queue: memcpy. */
static double copy_s(struct copy_queue *q, char *pool, const char *src, size_t n, double *caller_s)
{
    static size_t at; /* the destination wanders through the pool */
    double whole[SAMPLES], caller[SAMPLES];
    int samples = n >= (size_t)4 << 20 ? 21 : SAMPLES;
    for (int i = 0; i < samples; i++) {
        copy_cookie c;
        char *to = pool + at;
        at = (at + n) % (POOL / 2);
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

static int engine(const struct copy_ops *ops, const double *plain_s, char *pool, const char *src)
{
    struct copy_queue *q;
    size_t crossover = 0;
    double part;
    int rc = copy_queue_open(ops, DEPTH, &q);
    if (rc) return rc != TERN_ERR_UNSUPPORTED; /* a device that is not here */
    for (size_t k = 0; k < ARRAY_LEN(sizes); k++) {
        double t = copy_s(q, pool, src, sizes[k], &part);
        printf("%s_%s_us %.3f\n", ops->name, size_name(sizes[k]), 1e6 * t);
        if (copy_is_async(q)) printf("%s_caller_%s_us %.3f\n", ops->name, size_name(sizes[k]), 1e6 * part);
        if (t >= plain_s[k]) crossover = 0;
        else if (!crossover) crossover = sizes[k];
    }
    printf("%s_submit_ns %.1f\n", ops->name, 1e9 * submit_s(q, pool, src, &part));
    if (copy_is_async(q)) printf("%s_issue_ns %.1f\n", ops->name, 1e9 * part);
    printf("%s_crossover_bytes %zu\n", ops->name, crossover);
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
    double plain_s[ARRAY_LEN(sizes)], part;
    int rc = 0;
    take_cpus();
    for (size_t k = 0; k < ARRAY_LEN(sizes); k++) {
        plain_s[k] = copy_s(NULL, pool, src, sizes[k], &part);
        printf("memcpy_%s_us %.3f\n", size_name(sizes[k]), 1e6 * plain_s[k]);
    }
    for (const struct copy_ops *const *e = copy_engines; *e && !rc; e++) rc = engine(*e, plain_s, pool, src);
    return rc;
}

int main(int argc, char **argv)
{
    char *pool = aligned_alloc(4096, POOL), *src = aligned_alloc(4096, LARGEST);
    if (!pool || !src) return 1;
    memset(pool, 1, POOL);
    memset(src, 2, LARGEST);
    if (argc > 1 && !strcmp(argv[1], "engines")) return engines(pool, src);
    by_size(pool, src);
    return 0;
}
