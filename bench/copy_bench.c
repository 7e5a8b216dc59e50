/*
 * copy_bench.c - plain copies: memcpy, stores that bypass the caches, and the
 * processor's string move; to a destination in the cache and to one that is not.
 * These figures set TERN_COPY_NT.
 */
#include "copy/copy.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define POOL ((size_t)512 << 20) /* far more than any cache */

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

int main(void)
{
    static const struct {
        const char *name;
        copier *copy;
    } ways[] = {{"memcpy", plain}, {"nontemporal", copy_nontemporal}, {"string", string_move}};
    char *pool = aligned_alloc(4096, POOL), *src = aligned_alloc(4096, (size_t)32 << 20);
    if (!pool || !src) return 1;
    memset(pool, 1, POOL);
    memset(src, 2, (size_t)32 << 20);
    for (int fresh = 0; fresh < 2; fresh++) {
        printf("destination %s the cache, GB/s\n", fresh ? "outside" : "in");
        for (size_t n = 4096; n <= (size_t)32 << 20; n *= 2) {
            printf("%9zu", n);
            for (size_t w = 0; w < ARRAY_LEN(ways); w++)
                if (ways[w].copy) printf("  %s %6.1f", ways[w].name, rate(ways[w].copy, pool, src, n, fresh));
            printf("\n");
        }
    }
    return 0;
}
