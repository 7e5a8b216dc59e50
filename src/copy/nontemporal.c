/*
 * nontemporal.c - copies whose stores bypass the caches, and the engine made of them.
 *
 * A normal store first fetches the line that it overwrites, and writes back another one later. These do neither, but who reads what
 * was copied finds it in memory, not in a cache. When that is better is found out in choose.c; bench/copy_bench prints figures.
 *
 * With AVX-512 a store is a whole line.
 */
#include "copy/inline.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define LINE 64

/* dst on a line border, n a multiple of a line. */
static void stream_lines(char *dst, const char *src, size_t n)
{
    for (size_t i = 0; i < n; i += LINE) {
        const __m128i *from = (const void *)(src + i);
        __m128i *to = (void *)(dst + i);
        __m128i a = _mm_loadu_si128(from), b = _mm_loadu_si128(from + 1);
        __m128i c = _mm_loadu_si128(from + 2), d = _mm_loadu_si128(from + 3);
        _mm_stream_si128(to, a);
        _mm_stream_si128(to + 1, b);
        _mm_stream_si128(to + 2, c);
        _mm_stream_si128(to + 3, d);
    }
}

__attribute__((target("avx512f"))) static void stream_whole_lines(char *dst, const char *src, size_t n)
{
    for (size_t i = 0; i < n; i += LINE) _mm512_stream_si512((void *)(dst + i), _mm512_loadu_si512(src + i));
}

void copy_nontemporal(void *dst, const void *src, size_t n)
{
    size_t head = min_size(-(uintptr_t)dst & (LINE - 1), n);
    size_t lines = (n - head) & ~(size_t)(LINE - 1);
    memcpy(dst, src, head);
    if (__builtin_cpu_supports("avx512f")) stream_whole_lines((char *)dst + head, (const char *)src + head, lines);
    else stream_lines((char *)dst + head, (const char *)src + head, lines);
    memcpy((char *)dst + head + lines, (const char *)src + head + lines, n - head - lines);
    _mm_sfence(); /* streaming stores are weakly ordered; whoever is told next must find them done */
}

#else /* elsewhere memcpy chooses its stores itself */

void copy_nontemporal(void *dst, const void *src, size_t n) { memcpy(dst, src, n); }

#endif

static void issue(void *state) { inline_work(state, copy_nontemporal); }

const struct copy_ops copy_nontemporal_ops = {
    .name = "nontemporal",
    .open = inline_open,
    .close = inline_close,
    .push = inline_push,
    .issue = issue,
    .finished = inline_finished,
};
