/*
 * match_scan_x86.c - the searches with 256-bit and 512-bit vectors.
 *
 * Both questions become "which 64-bit lane of the miss vector is zero?":
 *
 *     masked:  miss = (keys ^ key) & mask
 *     either:  miss = min of 32-bit halves (keys ^ key, keys ^ wild)
 *
 * A half of the second is zero where it equals that of key or of wild, so the
 * lane is zero where both halves do. Four vectors are examined between branches:
 * fewer leave the load ports idle, more touch lines beyond a near hit (bench/match_bench).
 */
#include "pt2pt/match_scan_x86.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define AVX2 __attribute__((target("avx2,bmi")))
#define AVX512 __attribute__((target("avx512f,avx2,bmi")))
#define INLINE static inline __attribute__((always_inline))

bool match_scan_avx2_here(void) { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi"); }

bool match_scan_avx512_here(void) { return __builtin_cpu_supports("avx512f") && match_scan_avx2_here(); }

/* Lanes of keys[0..3] that match, one bit each. */
INLINE AVX2 uint32_t hits_avx2(const uint64_t *keys, __m256i a, __m256i b, bool masked)
{
    __m256i v = _mm256_load_si256((const __m256i *)keys), x = _mm256_xor_si256(v, a);
    __m256i miss = masked ? _mm256_and_si256(x, b) : _mm256_min_epu32(x, _mm256_xor_si256(v, b));
    __m256i zero = _mm256_cmpeq_epi64(miss, _mm256_setzero_si256());
    return (uint32_t)_mm256_movemask_pd(_mm256_castsi256_pd(zero));
}

INLINE AVX2 uint32_t scan_avx2(const uint64_t *keys, uint32_t from, uint32_t to, uint64_t key, uint64_t other,
                               bool masked)
{
    __m256i a = _mm256_set1_epi64x((long long)key), b = _mm256_set1_epi64x((long long)other);
    for (uint32_t i = from & ~7u; i < to; i += 8) {
        uint32_t hits = hits_avx2(keys + i, a, b, masked) | hits_avx2(keys + i + 4, a, b, masked) << 4;
        if (hits) return i + (uint32_t)__builtin_ctz(hits);
    }
    return to;
}

AVX2 uint32_t match_scan_avx2_masked(const uint64_t *keys, uint32_t from, uint32_t to, uint64_t key, uint64_t mask)
{
    return scan_avx2(keys, from, to, key, mask, true);
}

AVX2 uint32_t match_scan_avx2_either(const uint64_t *keys, uint32_t from, uint32_t to, uint64_t key, uint64_t wild)
{
    return scan_avx2(keys, from, to, key, wild, false);
}

/* Lanes of keys[0..7] that match, one bit each. */
INLINE AVX512 uint32_t hits_avx512(const uint64_t *keys, __m512i a, __m512i b, bool masked)
{
    __m512i v = _mm512_load_si512(keys), x = _mm512_xor_si512(v, a);
    __m512i other = masked ? b : _mm512_min_epu32(x, _mm512_xor_si512(v, b));
    return masked ? _mm512_testn_epi64_mask(x, other) : _mm512_testn_epi64_mask(other, other);
}

INLINE AVX512 uint32_t scan_avx512(const uint64_t *keys, uint32_t from, uint32_t to, uint64_t key, uint64_t other,
                                   bool masked)
{
    __m512i a = _mm512_set1_epi64((long long)key), b = _mm512_set1_epi64((long long)other);
    uint32_t i = from & ~7u;
    for (; i + 32 <= to; i += 32) {
        uint32_t h0 = hits_avx512(keys + i, a, b, masked), h1 = hits_avx512(keys + i + 8, a, b, masked);
        uint32_t h2 = hits_avx512(keys + i + 16, a, b, masked), h3 = hits_avx512(keys + i + 24, a, b, masked);
        uint32_t hits = h0 | h1 << 8 | h2 << 16 | h3 << 24;
        if (hits) return i + (uint32_t)__builtin_ctz(hits);
    }
    for (; i < to; i += 8) {
        uint32_t hits = hits_avx512(keys + i, a, b, masked);
        if (hits) return i + (uint32_t)__builtin_ctz(hits);
    }
    return to;
}

AVX512 uint32_t match_scan_avx512_masked(const uint64_t *keys, uint32_t from, uint32_t to, uint64_t key, uint64_t mask)
{
    return scan_avx512(keys, from, to, key, mask, true);
}

AVX512 uint32_t match_scan_avx512_either(const uint64_t *keys, uint32_t from, uint32_t to, uint64_t key, uint64_t wild)
{
    return scan_avx512(keys, from, to, key, wild, false);
}

#endif
