/*
 * compiler.h - the few compiler facilities used everywhere, by readable names.
 */
#ifndef TERN_BASE_COMPILER_H
#define TERN_BASE_COMPILER_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One cache line of every machine Tern is built for; shared structures are laid out by it. */
#define CACHE_LINE 64

#define likely(x)   __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

#define TERN_COLD     __attribute__((cold, noinline))
#define TERN_INLINED  inline __attribute__((always_inline)) /* hot, and its callers give it constants */
#define TERN_PRINTF(f, a) __attribute__((format(printf, f, a)))
#define TERN_ALIGNED(n)   __attribute__((aligned(n)))
#define TERN_EXPORT   __attribute__((visibility("default")))
/* On the declaration of a variable that hot code reads: no detour through the global offset table. */
#define TERN_HIDDEN   __attribute__((visibility("hidden")))

/* The struct of type `type` whose member `member` lies at `ptr`. */
#define container_of(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

#define ARRAY_LEN(a) (sizeof(a) / sizeof *(a))

static inline size_t round_up(size_t n, size_t to) /* to: a power of two */
{
    return (n + to - 1) & ~(to - 1);
}

static inline size_t min_size(size_t a, size_t b) { return a < b ? a : b; }
static inline int64_t min_int64(int64_t a, int64_t b) { return a < b ? a : b; }
static inline size_t max_size(size_t a, size_t b) { return a > b ? a : b; }

/* Tells the processor that this is a spin loop. */
static inline void cpu_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

#endif
