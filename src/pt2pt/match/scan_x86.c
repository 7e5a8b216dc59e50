/*
 * scan_x86.c - the searches with 256-bit and 512-bit vectors.
 *
 * Both questions become "which 64-bit lane of the miss vector is zero?":
 *
 *     masked:  miss = (keys ^ key) & mask
 *     either:  miss = min of 32-bit halves (keys ^ key, keys ^ wild)
 *
 * A half of the second is zero where it equals that of key or of wild, so the
 * lane is zero where both halves do. Four vectors are joined before a branch asks
 * whether any lane was zero; the loop over single lines then says which.
 */
#include "pt2pt/match/scan.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define AVX2 __attribute__((target("avx2,bmi")))
#define AVX512 __attribute__((target("avx512f,avx2,bmi")))
#define INLINE static inline __attribute__((always_inline))

static bool avx2_here(void) { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi"); }

static bool avx512_here(void) { return __builtin_cpu_supports("avx512f") && avx2_here(); }

INLINE AVX2 __m256i zero_avx2(const uint64_t *keys, __m256i a, __m256i b, bool masked)
{
    __m256i v = _mm256_load_si256((const __m256i *)keys), x = _mm256_xor_si256(v, a);
    __m256i miss = masked ? _mm256_and_si256(x, b) : _mm256_min_epu32(x, _mm256_xor_si256(v, b));
    return _mm256_cmpeq_epi64(miss, _mm256_setzero_si256());
}

INLINE AVX2 uint32_t lanes_avx2(__m256i v) { return (uint32_t)_mm256_movemask_pd(_mm256_castsi256_pd(v)); }

INLINE AVX2 uint32_t scan_avx2(const uint64_t *keys, uint32_t from, uint32_t to, uint64_t key, uint64_t other,
                               bool masked)
{
    __m256i a = _mm256_set1_epi64x((long long)key), b = _mm256_set1_epi64x((long long)other);
    size_t i = from & ~7u;
    for (; i + 16 <= to; i += 16) {
        __m256i z0 = zero_avx2(keys + i, a, b, masked), z1 = zero_avx2(keys + i + 4, a, b, masked);
        __m256i z2 = zero_avx2(keys + i + 8, a, b, masked), z3 = zero_avx2(keys + i + 12, a, b, masked);
        __m256i any = _mm256_or_si256(_mm256_or_si256(z0, z1), _mm256_or_si256(z2, z3));
        if (!_mm256_testz_si256(any, any)) break;
    }
    for (; i < to; i += 8) {
        uint32_t hits =
            lanes_avx2(zero_avx2(keys + i, a, b, masked)) | lanes_avx2(zero_avx2(keys + i + 4, a, b, masked)) << 4;
        if (hits) return (uint32_t)i + (uint32_t)__builtin_ctz(hits);
    }
    return to;
}

static AVX2 uint32_t avx2_masked(const uint64_t *keys, uint32_t from, uint32_t to, uint64_t key, uint64_t mask)
{
    return scan_avx2(keys, from, to, key, mask, true);
}

static AVX2 uint32_t avx2_either(const uint64_t *keys, uint32_t from, uint32_t to, uint64_t key, uint64_t wild)
{
    return scan_avx2(keys, from, to, key, wild, false);
}

const struct match_scan match_scan_avx2 = {
    .name = "avx2", .here = avx2_here, .group_from = 1024, .masked = avx2_masked, .either = avx2_either};

INLINE AVX512 __m512i miss_avx512(const uint64_t *keys, __m512i a, __m512i b, bool masked)
{
    __m512i v = _mm512_load_si512(keys), x = _mm512_xor_si512(v, a);
    return masked ? _mm512_and_si512(x, b) : _mm512_min_epu32(x, _mm512_xor_si512(v, b));
}

INLINE AVX512 uint32_t scan_avx512(const uint64_t *keys, uint32_t from, uint32_t to, uint64_t key, uint64_t other,
                                   bool masked)
{
    __m512i a = _mm512_set1_epi64((long long)key), b = _mm512_set1_epi64((long long)other);
    size_t i = from & ~7u;
    for (; i + 32 <= to; i += 32) {
        __m512i m0 = miss_avx512(keys + i, a, b, masked), m1 = miss_avx512(keys + i + 8, a, b, masked);
        __m512i m2 = miss_avx512(keys + i + 16, a, b, masked), m3 = miss_avx512(keys + i + 24, a, b, masked);
        __m512i least = _mm512_min_epu64(_mm512_min_epu64(m0, m1), _mm512_min_epu64(m2, m3));
        if (_mm512_testn_epi64_mask(least, least)) break;
    }
    for (; i < to; i += 8) {
        __m512i miss = miss_avx512(keys + i, a, b, masked);
        uint32_t hits = _mm512_testn_epi64_mask(miss, miss);
        if (hits) return (uint32_t)i + (uint32_t)__builtin_ctz(hits);
    }
    return to;
}

static AVX512 uint32_t avx512_masked(const uint64_t *keys, uint32_t from, uint32_t to, uint64_t key, uint64_t mask)
{
    return scan_avx512(keys, from, to, key, mask, true);
}

static AVX512 uint32_t avx512_either(const uint64_t *keys, uint32_t from, uint32_t to, uint64_t key, uint64_t wild)
{
    return scan_avx512(keys, from, to, key, wild, false);
}

const struct match_scan match_scan_avx512 = {
    .name = "avx512", .here = avx512_here, .group_from = 4096, .masked = avx512_masked, .either = avx512_either};

#endif
