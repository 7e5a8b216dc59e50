/*
 * op_bench.c - speed of the predefined operators for each kind of number, beside the loop
 * that a program would write (compiled with -O3 for the plain processor, and for AVX2).
 *
 * Prints GB/s of one operand of 8 KB, which the nearest cache holds, and the ratio to
 * the faster of both loops; a star marks less than 0.9 of it.
 */
#include "base/var.h"
#include "type/element.h"
#include "type/op.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BYTES ((size_t)8 << 10)

static char *a, *b;
static char first[BYTES]; /* what b holds before each run */

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

typedef void plain_fn(const void *x, void *y, size_t n);

/* A program's loop for one type, operator and width. */
#if defined(__x86_64__)
#define WIDE target("avx2")
#else
#define WIDE
#endif
#define PLAIN(name, T, expr)                                                                                           \
    static __attribute__((optimize("O3"))) void name(const void *xv, void *yv, size_t n)                               \
    {                                                                                                                  \
        const T *x = xv;                                                                                               \
        T *y = yv;                                                                                                     \
        for (size_t i = 0; i < n; i++) y[i] = (T)(expr);                                                               \
    }                                                                                                                  \
    static __attribute__((optimize("O3"), WIDE)) void name##_wide(const void *xv, void *yv, size_t n)                  \
    {                                                                                                                  \
        const T *x = xv;                                                                                               \
        T *y = yv;                                                                                                     \
        for (size_t i = 0; i < n; i++) y[i] = (T)(expr);                                                               \
    }

#define FLOATS(s, T)                                                                                                   \
    PLAIN(sum_##s, T, x[i] + y[i])                                                                                     \
    PLAIN(prod_##s, T, (x[i]) * (y[i]))                                                                                \
    PLAIN(max_##s, T, x[i] > y[i] ? x[i] : y[i])
#define INTS(s, T)                                                                                                     \
    FLOATS(s, T)                                                                                                       \
    PLAIN(band_##s, T, (x[i]) & (y[i]))                                                                                \
    PLAIN(land_##s, T, x[i] && y[i])
#define COMPLEX(s, T)                                                                                                  \
    PLAIN(sum_##s, T, x[i] + y[i])                                                                                     \
    static __attribute__((optimize("O3", "cx-fortran-rules"))) void prod_##s(const void *xv, void *yv, size_t n)       \
    {                                                                                                                  \
        const T *x = xv;                                                                                               \
        T *y = yv;                                                                                                     \
        for (size_t i = 0; i < n; i++) y[i] = x[i] * y[i];                                                             \
    }
#define LOC(s, V, I)                                                                                                   \
    struct pair_##s {                                                                                                  \
        V v;                                                                                                           \
        I i;                                                                                                           \
    };                                                                                                                 \
    static __attribute__((optimize("O3"))) void maxloc_##s(const void *xv, void *yv, size_t n)                         \
    {                                                                                                                  \
        const struct pair_##s *x = xv;                                                                                 \
        struct pair_##s *y = yv;                                                                                       \
        for (size_t i = 0; i < n; i++) {                                                                               \
            if (x[i].v > y[i].v) y[i] = x[i];                                                                          \
            else if (x[i].v == y[i].v && x[i].i < y[i].i) y[i].i = x[i].i;                                             \
        }                                                                                                              \
    }

INTS(i8, int8_t)
INTS(u8, uint8_t)
INTS(i16, int16_t)
INTS(i32, int32_t)
INTS(u32, uint32_t)
INTS(i64, int64_t)
INTS(u64, uint64_t)
FLOATS(f32, float)
FLOATS(f64, double)
FLOATS(fl, long double)
COMPLEX(c32, float _Complex)
COMPLEX(c64, double _Complex)
COMPLEX(cl, long double _Complex)
LOC(f32_i, float, int)
LOC(f64_i, double, int)
LOC(l_i, long, int)
LOC(i_i, int, int)
LOC(s_i, short, int)
LOC(fl_i, long double, int)
#if HAVE_FLOAT16
FLOATS(f16, _Float16)
#endif
#if HAVE_INT128
INTS(i128, __int128)
#endif
#if HAVE_FLOAT128
FLOATS(f128, __float128)
#endif

#define ROW(type, word, op, fn) {MPI_##type, #type, MPI_##word, #op, fn, fn##_wide}
#define NUMBER(type, s) ROW(type, SUM, sum, sum_##s), ROW(type, PROD, prod, prod_##s), ROW(type, MAX, max, max_##s)
#define WHOLE(type, s) NUMBER(type, s), ROW(type, BAND, band, band_##s), ROW(type, LAND, land, land_##s)
#define CPLX(type, s) ROW(type, SUM, sum, sum_##s), {MPI_##type, #type, MPI_PROD, "prod", prod_##s, prod_##s}
#define PAIR(type, s) {MPI_##type, #type, MPI_MAXLOC, "maxloc", maxloc_##s, maxloc_##s}

static const struct line {
    MPI_Datatype type;
    const char *name;
    MPI_Op op;
    const char *op_name;
    plain_fn *plain, *wide;
} lines[] = {
    WHOLE(INT8_T, i8), WHOLE(UINT8_T, u8), WHOLE(INT16_T, i16), WHOLE(INT32_T, i32), WHOLE(UINT32_T, u32),
    WHOLE(INT64_T, i64), WHOLE(UINT64_T, u64), NUMBER(FLOAT, f32), NUMBER(DOUBLE, f64), NUMBER(LONG_DOUBLE, fl),
    CPLX(C_FLOAT_COMPLEX, c32), CPLX(C_DOUBLE_COMPLEX, c64), CPLX(C_LONG_DOUBLE_COMPLEX, cl),
    PAIR(FLOAT_INT, f32_i), PAIR(DOUBLE_INT, f64_i), PAIR(LONG_INT, l_i), PAIR(2INT, i_i), PAIR(SHORT_INT, s_i),
    PAIR(LONG_DOUBLE_INT, fl_i),
#if HAVE_FLOAT16
    NUMBER(REAL2, f16),
#endif
#if HAVE_INT128
    WHOLE(INTEGER16, i128),
#endif
#if HAVE_FLOAT128
    NUMBER(REAL16, f128),
#endif
};

/* Seconds of one run of the library's loop (fn is NULL) or a program's. */
static double once(const struct line *l, plain_fn *fn, size_t n)
{
    struct op *op = op_of(l->op);
    struct type *type = type_of(l->type);
    double t = now();
    for (int i = 0; i < 20; i++) {
        if (l->op == MPI_MAXLOC) memcpy(b, first, BYTES); /* else nobody wins from the second run on */
        if (fn) fn(a, b, n);
        else op_apply(op, a, b, (int64_t)n, type);
    }
    return (now() - t) / 20;
}

/* The best of many rounds of all three in turn: others use the machine, too. */
static void best(const struct line *l, size_t n, double least[3])
{
    plain_fn *const fns[3] = {NULL, l->plain, l->wide};
    for (int k = 0; k < 3; k++) least[k] = 1e9;
    for (int round = 0; round < 400; round++)
        for (int k = 0; k < 3; k++) {
            double t = once(l, fns[k], n);
            if (t < least[k]) least[k] = t;
        }
}

/* Ones, as no operator makes slow numbers of them, denormal or infinite ones; pairs are random in all bytes but for
 * numbers that the processor would trap on. */
static void fill(const struct line *l)
{
    memset(a, 0, BYTES);
    memset(b, 0, BYTES);
    if (l->op == MPI_MAXLOC)
        for (size_t i = 0; i < BYTES; i += 4) {
            a[i + 1] = (char)(rand() >> 7 & 63);
            first[i + 1] = (char)(rand() >> 7 & 63);
        }
    if (l->type != MPI_FLOAT && l->type != MPI_DOUBLE) return;
    for (size_t i = 0; i < BYTES / 8; i++) ((double *)a)[i] = ((double *)b)[i] = 1;
}

int main(void)
{
    if (var_open() || type_open() || op_open()) return 1;
    a = aligned_alloc(64, BYTES);
    b = aligned_alloc(64, BYTES);
    if (!a || !b) return 1;
    printf("vectors: %s\n%-26s %-7s %8s %8s %8s %6s\n", op_vector_name(), "type", "op", "GB/s", "plain", "avx2", "ratio");
    for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
        const struct line *l = &lines[i];
        size_t n = BYTES / (size_t)type_of(l->type)->extent;
        fill(l);
        double t[3];
        best(l, n, t);
        double own = t[0], plain = t[1], wide = t[2];
        double other = plain < wide ? plain : wide, gb = (double)BYTES * 1e-9;
        printf("%-26s %-7s %8.2f %8.2f %8.2f %6.2f%s\n", l->name, l->op_name, gb / own, gb / plain, gb / wide, other / own,
               other / own < 0.9 ? " *" : "");
    }
    return 0;
}
