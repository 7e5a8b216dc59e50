/*
 * nontemporal.c - copies whose stores bypass the caches, and the engine made of them.
 *
 * The destination of a large copy is seldom read before it would have been evicted
 * again, and a normal store first fetches the line it overwrites. Measured on an
 * AMD EPYC of family 26 with 32 MiB of L3 shared by two cores, in GB/s
 * (bench/copy_bench prints it again):
 *
 *               destination in cache      destination not in cache
 *      size     memcpy   non-temporal     memcpy   non-temporal
 *      16 KiB   116-169  33               27       32
 *      256 KiB  132      41               28       36
 *      1 MiB    59       42               25       41
 *      4 MiB    64       42               26       39
 *      8 MiB    62       42               26       42
 *      16 MiB   36       40               25       36
 *
 * Most programs use the same buffers again and again, and those are in the cache up
 * to a quarter of the L3: hence the default of TERN_COPY_NT, 16 MiB. rep movsb lies
 * between the two (46 at 16 MiB in cache, 27 outside).
 */
#include "copy/inline.h"

#if defined(__SSE2__)
#include <emmintrin.h>

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

void copy_nontemporal(void *dst, const void *src, size_t n)
{
    size_t head = min_size(-(uintptr_t)dst & (LINE - 1), n);
    size_t lines = (n - head) & ~(size_t)(LINE - 1);
    memcpy(dst, src, head);
    stream_lines((char *)dst + head, (const char *)src + head, lines);
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
