/* op_test.c - every operator on every type it has, in every vector width, against plain C (6.9 of MPI-5.0). */
#include "base/err.h"
#include "base/var.h"
#include "reference.h"
#include "type/element.h"
#include "type/op.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ---- what the standard allows, written down once more ---- */

static const MPI_Datatype c_integer[] = {MPI_INT,
                                         MPI_LONG,
                                         MPI_SHORT,
                                         MPI_UNSIGNED_SHORT,
                                         MPI_UNSIGNED,
                                         MPI_UNSIGNED_LONG,
                                         MPI_LONG_LONG_INT,
                                         MPI_LONG_LONG,
                                         MPI_UNSIGNED_LONG_LONG,
                                         MPI_CHAR, /* more than the standard's table, as everywhere */
                                         MPI_SIGNED_CHAR,
                                         MPI_UNSIGNED_CHAR,
                                         MPI_INT8_T,
                                         MPI_INT16_T,
                                         MPI_INT32_T,
                                         MPI_INT64_T,
                                         MPI_UINT8_T,
                                         MPI_UINT16_T,
                                         MPI_UINT32_T,
                                         MPI_UINT64_T,
                                         NULL};
static const MPI_Datatype f_integer[] = {MPI_INTEGER,  MPI_INTEGER1,  MPI_INTEGER2, MPI_INTEGER4,
                                         MPI_INTEGER8, MPI_INTEGER16, NULL};
static const MPI_Datatype floating[] = {MPI_FLOAT, MPI_DOUBLE, MPI_REAL,  MPI_DOUBLE_PRECISION, MPI_LONG_DOUBLE,
                                        MPI_REAL2, MPI_REAL4,  MPI_REAL8, MPI_REAL16,           NULL};
static const MPI_Datatype logical[] = {MPI_LOGICAL,  MPI_C_BOOL,   MPI_CXX_BOOL,  MPI_LOGICAL1, MPI_LOGICAL2,
                                       MPI_LOGICAL4, MPI_LOGICAL8, MPI_LOGICAL16, NULL};
static const MPI_Datatype complex_[] = {MPI_COMPLEX,
                                        MPI_C_COMPLEX,
                                        MPI_C_FLOAT_COMPLEX,
                                        MPI_C_DOUBLE_COMPLEX,
                                        MPI_C_LONG_DOUBLE_COMPLEX,
                                        MPI_CXX_FLOAT_COMPLEX,
                                        MPI_CXX_DOUBLE_COMPLEX,
                                        MPI_CXX_LONG_DOUBLE_COMPLEX,
                                        MPI_DOUBLE_COMPLEX,
                                        MPI_COMPLEX4,
                                        MPI_COMPLEX8,
                                        MPI_COMPLEX16,
                                        MPI_COMPLEX32,
                                        NULL};
static const MPI_Datatype byte[] = {MPI_BYTE, NULL};
static const MPI_Datatype multi[] = {MPI_AINT, MPI_OFFSET, MPI_COUNT, NULL};
static const MPI_Datatype pair[] = {
    MPI_FLOAT_INT,       MPI_DOUBLE_INT, MPI_LONG_INT,          MPI_2INT,     MPI_SHORT_INT,
    MPI_LONG_DOUBLE_INT, MPI_2REAL,      MPI_2DOUBLE_PRECISION, MPI_2INTEGER, NULL};

static const struct allowed {
    MPI_Op op;
    const MPI_Datatype *lists[6];
} allowed[] = {
    {MPI_MAX, {c_integer, f_integer, floating, multi}},
    {MPI_MIN, {c_integer, f_integer, floating, multi}},
    {MPI_SUM, {c_integer, f_integer, floating, complex_, multi}},
    {MPI_PROD, {c_integer, f_integer, floating, complex_, multi}},
    {MPI_LAND, {c_integer, logical, multi}},
    {MPI_LOR, {c_integer, logical, multi}},
    {MPI_LXOR, {c_integer, logical, multi}},
    {MPI_BAND, {c_integer, f_integer, byte, multi}},
    {MPI_BOR, {c_integer, f_integer, byte, multi}},
    {MPI_BXOR, {c_integer, f_integer, byte, multi}},
    {MPI_MINLOC, {pair}},
    {MPI_MAXLOC, {pair}},
};

static bool is_allowed(const struct allowed *row, const struct type *t)
{
    for (int l = 0; row->lists[l]; l++)
        for (const MPI_Datatype *d = row->lists[l]; *d; d++)
            if (type_of(*d) == t) return t->size >= 0;
    return false;
}

/* Calls fn for every predefined type. */
static void each_type(void (*fn)(const struct allowed *row, struct type *t), const struct allowed *row)
{
    for (uintptr_t h = 0x200; h < 0x300; h++) {
        struct type *t = type_of((MPI_Datatype)h);
        if (t) fn(row, t);
    }
}

/* ---- plain C ---- */

static bool is_signed(int kind) { return kind >= KIND_I8 && kind <= KIND_I128; }

typedef unsigned __int128 u128;

static u128 load(const char *p, size_t n, bool sign)
{
    u128 x = 0;
    memcpy(&x, p, n);
    if (sign && n < 16 && (p[n - 1] & 0x80)) x |= ~(u128)0 << (8 * n);
    return x;
}

static void ref_integer(enum op_index op, bool sign, size_t n, const char *a, const char *b, char *out)
{
    u128 x = load(a, n, sign), y = load(b, n, sign), r = 0;
    bool less = sign ? (__int128)x < (__int128)y : x < y;
    switch (op) {
    case OP_SUM:
        r = x + y;
        break;
    case OP_PROD:
        r = x * y;
        break;
    case OP_MIN:
        r = less ? x : y;
        break;
    case OP_MAX:
        r = less ? y : x;
        break;
    case OP_BAND:
        r = x & y;
        break;
    case OP_BOR:
        r = x | y;
        break;
    case OP_BXOR:
        r = x ^ y;
        break;
    case OP_LAND:
        r = x && y;
        break;
    case OP_LOR:
        r = x || y;
        break;
    case OP_LXOR:
        r = !x != !y;
        break;
    default:
        fail();
    }
    memcpy(out, &r, n);
}

/* volatile: each step is rounded to T and nothing is fused. */
#define REAL(T, name)                                                                                                  \
    static T name##_step(enum op_index op, T x, T y)                                                                   \
    {                                                                                                                  \
        volatile T r;                                                                                                  \
        if (op == OP_SUM)                                                                                              \
            r = x + y;                                                                                                 \
        else if (op == OP_PROD)                                                                                        \
            r = x * y;                                                                                                 \
        else if (op == OP_MIN)                                                                                         \
            r = x < y ? x : y;                                                                                         \
        else                                                                                                           \
            r = x > y ? x : y;                                                                                         \
        return r;                                                                                                      \
    }                                                                                                                  \
    static void name(enum op_index op, bool cplx, const char *a, const char *b, char *out)                             \
    {                                                                                                                  \
        T x[2], y[2], r[2];                                                                                            \
        size_t n = cplx ? 2 * sizeof(T) : sizeof(T);                                                                   \
        memcpy(x, a, n);                                                                                               \
        memcpy(y, b, n);                                                                                               \
        r[0] = name##_step(op, x[0], y[0]);                                                                            \
        if (cplx && op == OP_SUM) r[1] = name##_step(op, x[1], y[1]);                                                  \
        if (cplx && op == OP_PROD) {                                                                                   \
            r[0] = name##_step(OP_SUM, r[0], -name##_step(OP_PROD, x[1], y[1]));                                       \
            r[1] = name##_step(OP_SUM, name##_step(OP_PROD, x[0], y[1]), name##_step(OP_PROD, x[1], y[0]));            \
        }                                                                                                              \
        memcpy(out, r, n);                                                                                             \
    }
REAL(float, ref_f32)
REAL(double, ref_f64)
REAL(long double, ref_fl)
#if HAVE_FLOAT16
REAL(_Float16, ref_f16)
#endif
#if HAVE_FLOAT128
REAL(__float128, ref_f128)
#endif

#define LOC(V, I, name)                                                                                                \
    static void name(enum op_index op, const char *a, const char *b, char *out)                                        \
    {                                                                                                                  \
        struct {                                                                                                       \
            V v;                                                                                                       \
            I i;                                                                                                       \
        } x, y, r;                                                                                                     \
        memcpy(&x, a, sizeof x);                                                                                       \
        memcpy(&y, b, sizeof y);                                                                                       \
        if (x.v == y.v)                                                                                                \
            r.v = x.v, r.i = x.i < y.i ? x.i : y.i;                                                                    \
        else if (op == OP_MINLOC ? x.v < y.v : x.v > y.v)                                                              \
            r.v = x.v, r.i = x.i;                                                                                      \
        else                                                                                                           \
            r.v = y.v, r.i = y.i;                                                                                      \
        memcpy(out, &r.v, sizeof r.v);                                                                                 \
        memcpy(out + ((char *)&r.i - (char *)&r), &r.i, sizeof r.i);                                                   \
    }
LOC(float, int, loc_f32_i)
LOC(double, int, loc_f64_i)
LOC(long, int, loc_l_i)
LOC(int, int, loc_i_i)
LOC(short, int, loc_s_i)
LOC(long double, int, loc_fl_i)
LOC(float, float, loc_f32_f32)
LOC(double, double, loc_f64_f64)

static void ref_op(enum op_index op, const struct type *t, const char *a, const char *b, char *out)
{
    switch (t->kind) {
    case KIND_F32:
    case KIND_C32:
        ref_f32(op, t->kind == KIND_C32, a, b, out);
        break;
    case KIND_F64:
    case KIND_C64:
        ref_f64(op, t->kind == KIND_C64, a, b, out);
        break;
    case KIND_FL:
    case KIND_CL:
        ref_fl(op, t->kind == KIND_CL, a, b, out);
        break;
#if HAVE_FLOAT16
    case KIND_F16:
    case KIND_C16:
        ref_f16(op, t->kind == KIND_C16, a, b, out);
        break;
#endif
#if HAVE_FLOAT128
    case KIND_F128:
    case KIND_C128:
        ref_f128(op, t->kind == KIND_C128, a, b, out);
        break;
#endif
    case KIND_F32_I:
        loc_f32_i(op, a, b, out);
        break;
    case KIND_F64_I:
        loc_f64_i(op, a, b, out);
        break;
    case KIND_L_I:
        loc_l_i(op, a, b, out);
        break;
    case KIND_I_I:
        loc_i_i(op, a, b, out);
        break;
    case KIND_S_I:
        loc_s_i(op, a, b, out);
        break;
    case KIND_FL_I:
        loc_fl_i(op, a, b, out);
        break;
    case KIND_F32_F32:
        loc_f32_f32(op, a, b, out);
        break;
    case KIND_F64_F64:
        loc_f64_f64(op, a, b, out);
        break;
    default:
        ref_integer(op, is_signed(t->kind), (size_t)t->size, a, b, out);
    }
}

/* ---- operands ---- */

#define MOST 300
#define WIDEST 32 /* bytes of the largest element */

/* Small numbers of the kind, so that results are exact enough to tell operators apart and equal values occur. */
static void make_number(const struct type *t, char *p)
{
    double small = (double)random_int(-9, 9) + (random_u64() & 1 ? 0.0 : 0.3);
    float f = (float)small;
    long double l = small;
    int i = (int)random_int(0, 3);
    switch (t->kind) {
    case KIND_C32:
    case KIND_F32_F32:
        memcpy(p + 4, &f, 4);
        memcpy(p, &f, 4);
        break;
    case KIND_F32:
    case KIND_F32_I:
        memcpy(p, &f, 4);
        break;
    case KIND_C64:
    case KIND_F64_F64:
        memcpy(p + 8, &small, 8);
        memcpy(p, &small, 8);
        break;
    case KIND_F64:
    case KIND_F64_I:
        memcpy(p, &small, 8);
        break;
    case KIND_CL:
        memcpy(p + sizeof l, &l, sizeof l);
        memcpy(p, &l, sizeof l);
        break;
    case KIND_FL:
    case KIND_FL_I:
        memcpy(p, &l, sizeof l);
        break;
#if HAVE_FLOAT16
    case KIND_F16:
    case KIND_C16:
        for (int k = 0; k < t->size / 2; k++) {
            _Float16 h = (_Float16)(small + k);
            memcpy(p + 2 * k, &h, 2);
        }
        break;
#endif
#if HAVE_FLOAT128
    case KIND_F128:
    case KIND_C128:
        for (int k = 0; k < t->size / 16; k++) {
            __float128 q = (__float128)small / 3 + k;
            memcpy(p + 16 * k, &q, 16);
        }
        break;
#endif
    default:
        random_fill(p, (size_t)t->extent);
    }
    if (t->kind >= KIND_F32_I && t->kind <= KIND_FL_I) memcpy(p + t->true_extent - 4, &i, 4);
    if (t->kind == KIND_L_I || t->kind == KIND_S_I || t->kind == KIND_I_I)
        memset(p, (int)random_int(-1, 1), (size_t)(t->true_extent - 4));
    if ((t->klass & CLASS_LOGICAL) && random_u64() & 1) memset(p, 0, (size_t)t->size);
    if (t->klass == CLASS_LOGICAL && t->kind == KIND_U8) *p = *p & 1;
}

/* Everything an element has is compared, except gaps and the unused bytes of the x87 format. */
static bool equal(const struct type *t, const char *x, const char *y)
{
    size_t l = sizeof(long double) == 16 && __LDBL_MANT_DIG__ == 64 ? 10 : sizeof(long double);
    if (t->kind == KIND_FL) return !memcmp(x, y, l);
    if (t->kind == KIND_CL) return !memcmp(x, y, l) && !memcmp(x + sizeof(long double), y + sizeof(long double), l);
    if (t->kind == KIND_FL_I)
        return !memcmp(x, y, l) && !memcmp(x + sizeof(long double), y + sizeof(long double), sizeof(int));
    if (t->klass != CLASS_PAIR) return !memcmp(x, y, (size_t)t->size);
    size_t first = (size_t)t->parts[0].type->size, second = (size_t)t->parts[1].type->size;
    size_t at = (size_t)t->true_extent - second;
    return !memcmp(x, y, first) && !memcmp(x + at, y + at, second);
}

struct operands {
    char a[MOST * WIDEST + 8], b[MOST * WIDEST + 8], out[MOST * WIDEST + 8], expect[MOST * WIDEST + 8];
};

static void check_kernel(const struct allowed *row, struct type *t)
{
    static struct operands o;
    struct op *op = op_of(row->op);
    if (!is_allowed(row, t)) return;
    for (int round = 0; round < 6; round++) {
        int64_t n = random_int(0, 2) ? random_int(1, MOST) : random_int(0, 9);
        char *a = o.a + random_int(0, 7), *b = o.b + random_int(0, 7), *out = o.out + random_int(0, 7);
        for (int64_t i = 0; i < n; i++) {
            make_number(t, a + i * t->extent);
            make_number(t, b + i * t->extent);
            ref_op(op->index, t, a + i * t->extent, b + i * t->extent, o.expect + i * t->extent);
        }
        memset(out, 0x5a, (size_t)(n * t->extent));
        char *result = round < 3 ? out : b;
        if (round < 3)
            assert_int_equal(op_apply3(op, a, b, out, n, t), 0);
        else
            assert_int_equal(op_apply(op, a, b, n, t), 0);
        for (int64_t i = 0; i < n; i++)
            if (!equal(t, result + i * t->extent, o.expect + i * t->extent))
                fail_msg("%s on %s, kernels %s, element %lld of %lld", op->name, type_name(t), op_vector_name(),
                         (long long)i, (long long)n);
    }
}

static const char *const widths[] = {"scalar", "avx2", "avx512"};

/* Runs fn with each set of kernels that this processor has; says which it has not. */
static void each_width(void (*fn)(void))
{
    for (size_t i = 0; i < ARRAY_LEN(widths); i++) {
        op_close();
        assert_int_equal(var_set(VAR_OP_VECTOR, widths[i]), 0);
        if (op_open()) {
            printf("# %s\n", err_words());
            continue;
        }
        assert_string_equal(op_vector_name(), widths[i]);
        fn();
    }
    op_close();
    assert_int_equal(var_set(VAR_OP_VECTOR, "auto"), 0);
    assert_int_equal(op_open(), 0);
}

static void check_all(void)
{
    for (size_t i = 0; i < ARRAY_LEN(allowed); i++) each_type(check_kernel, &allowed[i]);
}

static void results_are_those_of_plain_c(void **state)
{
    (void)state;
    each_width(check_all);
}

/* ---- widths among each other, on any bits ---- */

#define BITS_MOST 1000
static char bits_a[BITS_MOST * WIDEST], bits_b[BITS_MOST * WIDEST];

static uint64_t hash;

/* NaNs are equal: which of two is kept is left to the compiler. */
static void hash_kernel(const struct allowed *row, struct type *t)
{
    static char out[BITS_MOST * WIDEST + 8];
    struct op *op = op_of(row->op);
    if (!is_allowed(row, t) || t->kind == KIND_FL || t->kind == KIND_CL || t->klass == CLASS_PAIR) return;
    assert_int_equal(op_apply3(op, bits_a, bits_b, out, BITS_MOST, t), 0);
    size_t step = t->kind == KIND_F64 || t->kind == KIND_C64 ? 8 : t->kind == KIND_F32 || t->kind == KIND_C32 ? 4 : 1;
    if (t->kind == KIND_F16 || t->kind == KIND_C16) step = 2;
    for (char *p = out; p < out + BITS_MOST * t->size; p += step) {
        uint64_t x = 0;
        double d;
        float f;
        memcpy(&x, p, step);
        memcpy(&d, p, 8);
        memcpy(&f, p, 4);
        if ((step == 8 && isnan(d)) || (step == 4 && isnan(f)) || (step == 2 && (x & 0x7fff) > 0x7c00)) x = 1;
        hash = (hash ^ x) * 0x100000001b3u;
    }
}

static uint64_t hashes[ARRAY_LEN(widths)];
static size_t nhashes;

static void hash_all(void)
{
    hash = 0xcbf29ce484222325u;
    for (size_t i = 0; i < ARRAY_LEN(allowed); i++) each_type(hash_kernel, &allowed[i]);
    hashes[nhashes++] = hash;
}

static void widths_agree_bit_for_bit(void **state)
{
    (void)state;
    for (int round = 0; round < 20; round++) {
        random_fill(bits_a, sizeof bits_a);
        random_fill(bits_b, sizeof bits_b);
        memset(bits_a, 0, 64); /* zeros of both signs, equal operands */
        memset(bits_b, 0, 40);
        memset(bits_b + 40, 0x80, 24);
        memcpy(bits_b + 400, bits_a + 400, 200);
        nhashes = 0;
        each_width(hash_all);
        for (size_t i = 1; i < nhashes; i++) assert_true(hashes[i] == hashes[0]);
    }
}

/* ---- the rest ---- */

static void check_validity(const struct allowed *row, struct type *t)
{
    const struct op *op = op_of(row->op);
    char x[WIDEST] = {0}, y[WIDEST] = {0};
    if (op_valid(op, t) != is_allowed(row, t)) fail_msg("%s on %s", op->name, type_name(t));
    if (!is_allowed(row, t)) assert_int_equal(op_apply(op, x, y, 1, t), TERN_ERR_OP);
}

static void operators_take_the_types_of_the_standard(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(allowed); i++) each_type(check_validity, &allowed[i]);
}

static void refusal_names_operator_and_type(void **state)
{
    (void)state;
    char x = 1, y = 2;
    struct type *t;
    assert_int_equal(op_apply(op_of(MPI_SUM), &x, &y, 1, type_of(MPI_WCHAR)), TERN_ERR_OP);
    assert_non_null(strstr(err_words(), "MPI_SUM"));
    assert_non_null(strstr(err_words(), "MPI_WCHAR"));
    assert_int_equal(y, 2);
    assert_int_equal(type_contiguous(1, type_of(MPI_INT), &t), 0);
    assert_int_equal(type_commit(t), 0);
    assert_false(op_valid(op_of(MPI_SUM), t));
    assert_true(op_valid(op_of(MPI_REPLACE), t));
    type_unref(t);
}

static void locate_prefers_the_lower_index(void **state)
{
    (void)state;
    struct {
        double v;
        int i;
    } a[3] = {{1, 5}, {2, 1}, {7, 9}}, b[3] = {{1, 3}, {3, 2}, {7, 11}};
    assert_int_equal(op_apply(op_of(MPI_MINLOC), a, b, 3, type_of(MPI_DOUBLE_INT)), 0);
    assert_int_equal(b[0].i, 3);
    assert_int_equal(b[1].i, 1);
    assert_true(b[1].v == 2);
    assert_int_equal(b[2].i, 9);
}

static void replace_and_no_op(void **state)
{
    (void)state;
    int a[4] = {1, 2, 3, 4}, b[4] = {5, 6, 7, 8};
    struct type *t;
    assert_int_equal(type_vector(2, 1, 2, TYPE_ELEMENTS, type_of(MPI_INT), &t), 0);
    assert_int_equal(type_commit(t), 0);
    assert_true(op_of(MPI_REPLACE)->rma_only && op_of(MPI_NO_OP)->rma_only && !op_of(MPI_SUM)->rma_only);
    assert_int_equal(op_apply(op_of(MPI_NO_OP), a, b, 1, t), 0);
    assert_int_equal(b[0], 5);
    assert_int_equal(op_apply(op_of(MPI_REPLACE), a, b, 1, t), 0);
    assert_int_equal(b[0], 1);
    assert_int_equal(b[1], 6);
    assert_int_equal(b[2], 3);
    type_unref(t);
}

static MPI_Datatype seen;
static int calls;

static void subtract(void *in, void *inout, int *n, MPI_Datatype *type) /* not commutative: in - inout */
{
    for (int i = 0; i < *n; i++) ((int *)inout)[i] = ((int *)in)[i] - ((int *)inout)[i];
    seen = *type;
    calls++;
}

static void subtract_c(void *in, void *inout, MPI_Count *n, MPI_Datatype *type)
{
    for (MPI_Count i = 0; i < *n; i++) ((int *)inout)[i] = ((int *)in)[i] - ((int *)inout)[i];
    seen = *type;
    calls++;
}

static void user_functions_keep_the_order_of_operands(void **state)
{
    (void)state;
    struct op *op;
    for (int large = 0; large < 2; large++) {
        int a[3] = {10, 20, 30}, b[3] = {1, 2, 3}, out[3] = {0};
        assert_int_equal(large ? op_create_c(subtract_c, false, &op) : op_create(subtract, false, &op), 0);
        MPI_Op h = op_handle(op);
        assert_ptr_equal(op_of(h), op);
        assert_false(op->commute);
        calls = 0;
        assert_int_equal(op_apply3(op, a, b, out, 3, type_of(MPI_INT)), 0);
        assert_int_equal(calls, 1);
        assert_ptr_equal(seen, MPI_INT);
        assert_int_equal(out[2], 27);
        assert_int_equal(b[2], 3);
        assert_int_equal(op_apply(op, a, b, 3, type_of(MPI_INT)), 0);
        assert_int_equal(b[0], 9);
        op_unref(op);
        assert_null(op_of(h));
    }
}

static void predefined_handles_are_those_of_the_abi(void **state)
{
    (void)state;
    for (uintptr_t h = 0x20; h < 0x40; h++) {
        struct op *op = op_of((MPI_Op)h);
        if (op) assert_ptr_equal(op_handle(op), (void *)h);
    }
    assert_null(op_of(MPI_OP_NULL));
    assert_null(op_of((MPI_Op)MPI_INT));
    assert_string_equal(op_of(MPI_LXOR)->name, "MPI_LXOR");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(predefined_handles_are_those_of_the_abi),
        cmocka_unit_test(operators_take_the_types_of_the_standard),
        cmocka_unit_test(results_are_those_of_plain_c),
        cmocka_unit_test(widths_agree_bit_for_bit),
        cmocka_unit_test(refusal_names_operator_and_type),
        cmocka_unit_test(locate_prefers_the_lower_index),
        cmocka_unit_test(replace_and_no_op),
        cmocka_unit_test(user_functions_keep_the_order_of_operands),
    };
    if (var_open() || type_open() || op_open()) return 1;
    random_open();
    cmocka_set_message_output(CM_OUTPUT_TAP);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    op_close();
    type_close();
    var_close();
    handle_close();
    return failed;
}
