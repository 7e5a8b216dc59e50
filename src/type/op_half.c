/*
 * op_half.c - the kernels of half precision numbers for x86-64 processors that convert
 * them (F16C, since about 2013), eight at a time. Others convert each by a function.
 *
 * Sums and products are made in single precision and rounded once, which is exact: a
 * float has more than twice the digits. Results equal those of the plain kernels.
 */
#include "type/element.h"
#include "type/op_kernels.h"

#if defined(__x86_64__) && HAVE_FLOAT16
#include <immintrin.h>
#include <string.h>

#define TARGET __attribute__((target("avx,f16c"), optimize("O3")))
#define STEP 8 /* numbers in a vector */

static bool usable(void) { return __builtin_cpu_supports("avx") && __builtin_cpu_supports("f16c"); }

typedef __m256 combine_fn(__m256 x, __m256 y);

TARGET static inline __m256 load(const char *p)
{
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i_u *)p));
}

/* To half precision, to nearest even. */
TARGET static inline __m128i narrow(__m256 x) { return _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT); }

TARGET static inline __m256 rounded(__m256 x) { return _mm256_cvtph_ps(narrow(x)); }

TARGET static inline __m256 add(__m256 x, __m256 y) { return _mm256_add_ps(x, y); }
TARGET static inline __m256 multiply(__m256 x, __m256 y) { return _mm256_mul_ps(x, y); }
TARGET static inline __m256 least(__m256 x, __m256 y) { return _mm256_min_ps(x, y); } /* y if one is no number, as x < y ? x : y */
TARGET static inline __m256 greatest(__m256 x, __m256 y) { return _mm256_max_ps(x, y); }

/* Four complex products; each product of two parts is rounded, as in the plain kernel. */
TARGET static inline __m256 multiply_complex(__m256 x, __m256 y)
{
    __m256 p = rounded(_mm256_mul_ps(_mm256_moveldup_ps(x), y));
    __m256 q = rounded(_mm256_mul_ps(_mm256_movehdup_ps(x), _mm256_permute_ps(y, 0xb1)));
    return _mm256_addsub_ps(p, q);
}

/* The loop over n numbers; inlined with `combine` known. The rest goes through vectors of its own. */
TARGET static inline __attribute__((always_inline)) void each(const char *a, const char *b, char *o, size_t n, combine_fn *combine)
{
    size_t i = 0;
    for (; i + STEP <= n; i += STEP)
        _mm_storeu_si128((__m128i_u *)(o + 2 * i), narrow(combine(load(a + 2 * i), load(b + 2 * i))));
    if (i == n) return;
    char x[2 * STEP] = {0}, y[2 * STEP] = {0};
    memcpy(x, a + 2 * i, 2 * (n - i));
    memcpy(y, b + 2 * i, 2 * (n - i));
    _mm_storeu_si128((__m128i_u *)x, narrow(combine(load(x), load(y))));
    memcpy(o + 2 * i, x, 2 * (n - i));
}

TARGET static void sum(const void *a, const void *b, void *o, size_t n) { each(a, b, o, n, add); }
TARGET static void product(const void *a, const void *b, void *o, size_t n) { each(a, b, o, n, multiply); }
TARGET static void minimum(const void *a, const void *b, void *o, size_t n) { each(a, b, o, n, least); }
TARGET static void maximum(const void *a, const void *b, void *o, size_t n) { each(a, b, o, n, greatest); }
TARGET static void sum_complex(const void *a, const void *b, void *o, size_t n) { each(a, b, o, 2 * n, add); }
TARGET static void product_complex(const void *a, const void *b, void *o, size_t n) { each(a, b, o, 2 * n, multiply_complex); }

const struct op_kernels op_half = {
    "half",
    usable,
    &op_scalar,
    {
        [OP_SUM] = {[KIND_F16] = sum, [KIND_C16] = sum_complex},
        [OP_PROD] = {[KIND_F16] = product, [KIND_C16] = product_complex},
        [OP_MIN] = {[KIND_F16] = minimum},
        [OP_MAX] = {[KIND_F16] = maximum},
    },
};
#else
static bool usable(void) { return true; } /* has nothing, so anything goes */
const struct op_kernels op_half = {.name = "half", .usable = usable, .narrower = &op_scalar};
#endif
