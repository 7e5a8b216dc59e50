/*
 * arith_test.c - the table of all operators and types (GOAL-7, GOAL-8): every length, alignment and vector width gives the
 * bits that the arithmetic of one number gives, which is written down here a second time; overflow, x / 0 and infinities.
 */
#include "coll/goal/arith.h"
#include "../seed.h"
#include "coll/goal/build.h"

#include "base/err.h"
#include "base/var.h"
#include "type/element.h"
#include "type/op.h"
#include <goal.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MOST = 150 }; /* numbers: several vectors of every width, and a rest */

static uint64_t rng;

static uint64_t draw(void) { return seed_next(&rng); }

/* ---- one number --------------------------------------------------------------- */

struct kind {
    int bits;
    char form; /* 'i', 'u', 'f' */
};

static struct kind kind_of(int type)
{
    static const int whole[] = {1, 8, 16, 32, 64}, real[] = {16, 32, 64};
    if (type >= GOAL_FLOAT16) return (struct kind){real[type - GOAL_FLOAT16], 'f'};
    return type >= GOAL_UINT1 ? (struct kind){whole[type - GOAL_UINT1], 'u'} : (struct kind){whole[type], 'i'};
}

static uint64_t mask(int bits) { return bits == 64 ? UINT64_MAX : ((uint64_t)1 << bits) - 1; }

static __int128 value_of(uint64_t bits, struct kind k)
{
    bool negative = k.form == 'i' && bits >> (k.bits - 1) & 1;
    return (__int128)bits - (negative ? (__int128)1 << k.bits : 0);
}

static uint64_t whole(int op, uint64_t x, uint64_t y, struct kind k)
{
    __int128 a = value_of(x, k), b = value_of(y, k), r = 0;
    switch (op) {
    case GOAL_ADD: r = a + b; break;
    case GOAL_SUB: r = a - b; break;
    case GOAL_MULT: r = (__int128)((unsigned __int128)a * (unsigned __int128)b); break;
    case GOAL_DIV: r = b ? a / b : 0; break;
    case GOAL_MAX: r = a > b ? a : b; break;
    case GOAL_MIN: r = a < b ? a : b; break;
    case GOAL_AND: return x & y;
    case GOAL_OR: return x | y;
    case GOAL_XOR: return x ^ y;
    default: fail();
    }
    return (uint64_t)r & mask(k.bits);
}

/* In as much precision as there is; rounded once by the caller, which is exact for halves and floats made from doubles. */
static double real(int op, double a, double b)
{
    switch (op) {
    case GOAL_ADD: return a + b;
    case GOAL_SUB: return a - b;
    case GOAL_MULT: return a * b;
    case GOAL_DIV: return a / b;
    case GOAL_MAX: return a > b ? a : b; /* b where one is NaN: b is what was read */
    default: return a < b ? a : b;
    }
}

/* A half as a double, and a double as a half, by the book. */
static double from_half(uint16_t h)
{
    int e = h >> 10 & 31, m = h & 1023;
    double v = e == 31 ? (m ? NAN : INFINITY) : e ? ldexp(1024 + m, e - 25) : ldexp(m, -24);
    return h >> 15 ? -v : v;
}

static uint16_t to_half(double v)
{
    uint16_t sign = signbit(v) ? 0x8000 : 0;
    double a = fabs(v);
    if (isnan(v)) return 0x7e00;
    if (a >= 65520) return sign | 0x7c00; /* what would round to 2^16 */
    int e;
    frexp(a, &e);
    int step = a < ldexp(1, -14) ? -24 : e - 11; /* the last digit's exponent */
    double m = nearbyint(ldexp(a, -step));       /* to even */
    if (a < ldexp(1, -14)) return (uint16_t)(sign | (uint16_t)m);
    return (uint16_t)(sign + (uint16_t)((e + 14) << 10) + (uint16_t)(m - 1024)); /* carries into the exponent by itself */
}

static uint64_t floating(int op, uint64_t x, uint64_t y, int bits)
{
    if (bits == 16) return to_half(real(op, from_half((uint16_t)x), from_half((uint16_t)y)));
    if (bits == 32) {
        float a, b, r;
        memcpy(&a, &x, 4);
        memcpy(&b, &y, 4);
        r = (float)real(op, a, b);
        uint32_t out;
        memcpy(&out, &r, 4);
        return out;
    }
    double a, b, r;
    memcpy(&a, &x, 8);
    memcpy(&b, &y, 8);
    r = real(op, a, b);
    memcpy(&x, &r, 8);
    return x;
}

static bool is_nan(uint64_t x, int bits)
{
    static const uint64_t infinity[] = {[16] = 0x7c00, [32] = 0x7f800000, [64] = UINT64_C(0x7ff0000000000000)};
    return (x & mask(bits - 1)) > infinity[bits];
}

/* ---- vectors ---------------------------------------------------------------------- */

static uint64_t get(const unsigned char *v, size_t i, int bits)
{
    uint64_t x = 0;
    if (bits == 1) return v[i / 8] >> i % 8 & 1;
    memcpy(&x, v + i * (size_t)bits / 8, (size_t)bits / 8);
    return x;
}

static void put(unsigned char *v, size_t i, int bits, uint64_t x)
{
    if (bits == 1) v[i / 8] = (unsigned char)((v[i / 8] & ~(1u << i % 8)) | x << i % 8);
    else memcpy(v + i * (size_t)bits / 8, &x, (size_t)bits / 8);
}

/* Any bits, or a value at which something happens. */
static uint64_t interesting(struct kind k)
{
    static const uint64_t half[] = {0, 0x8000, 1, 0x3ff, 0x400, 0x3c00, 0xbc00, 0x7bff, 0x7c00, 0xfc00, 0x7e00};
    uint64_t top = (uint64_t)1 << (k.bits - 1);
    if (draw() & 1) return draw() & mask(k.bits);
    if (k.form != 'f') {
        const uint64_t ends[] = {0, 1, mask(k.bits), top, top - 1, 2 & mask(k.bits)};
        return ends[draw() % ARRAY_LEN(ends)];
    }
    uint16_t h = (uint16_t)half[draw() % ARRAY_LEN(half)];
    double d = from_half(h);
    float f = (float)d;
    uint64_t x = h;
    if (k.bits == 32) memcpy(&x, &f, 4), x &= mask(32);
    if (k.bits == 64) memcpy(&x, &d, 8);
    return x;
}

static void one_length(int op, int type, size_t n)
{
    struct kind k = kind_of(type);
    size_t bytes = n * (size_t)k.bits / 8, shift_in = draw() % 9, shift_out = draw() % 9;
    unsigned char a[MOST * 8 + 9], b[MOST * 8 + 9], before[MOST * 8 + 9];
    for (size_t i = 0; i < n; i++) {
        put(a + shift_in, i, k.bits, interesting(k));
        put(b + shift_out, i, k.bits, interesting(k));
    }
    b[shift_out + bytes] = 0x5a;
    memcpy(before, b, sizeof b);
    bool same = draw() % 8 == 0; /* with itself */
    const unsigned char *in = same ? before + shift_out : a + shift_in;
    assert_int_equal(goal_arith(ARITH_CODE(op, type), same ? b + shift_out : a + shift_in, b + shift_out, bytes), 0);
    for (size_t i = 0; i < n; i++) {
        uint64_t x = get(before + shift_out, i, k.bits), y = get(in, i, k.bits), got = get(b + shift_out, i, k.bits);
        uint64_t want = k.form == 'f' ? floating(op, x, y, k.bits) : whole(op, x, y, k);
        bool nans = k.form == 'f' && is_nan(want, k.bits) && is_nan(got, k.bits);
        if (got != want && !nans)
            fail_msg("%s %s, %s: %llx and %llx give %llx instead of %llx", goal_operator_name((unsigned)op),
                     goal_number_name((unsigned)type), op_vector_name(), (unsigned long long)x, (unsigned long long)y,
                     (unsigned long long)got, (unsigned long long)want);
    }
    assert_int_equal(b[shift_out + bytes], 0x5a);
}

static void table(void)
{
    for (int op = 0; op < GOAL_OPERATORS; op++)
        for (int type = 0; type < GOAL_TYPES; type++) {
            if (!goal_arith_known(ARITH_CODE(op, type)) || (type == GOAL_FLOAT16 && !HAVE_FLOAT16)) continue;
            for (size_t n = 0; n <= MOST; n++)
                if (kind_of(type).bits > 1 || n % 8 == 0) one_length(op, type, n);
        }
}

static void all_widths_are_as_one_number(void **state)
{
    static const char *const widths[] = {"scalar", "avx2", "avx512"};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(widths); i++) {
        op_close();
        assert_int_equal(var_set(VAR_OP_VECTOR, widths[i]), 0);
        if (op_open()) printf("# %s\n", err_words());
        else table();
    }
}

static void what_goes_together(void **state)
{
    (void)state;
    int known = 0;
    for (unsigned code = 0; code < 65536; code++) known += goal_arith_known(code);
    assert_int_equal(known, GOAL_OPERATORS * GOAL_TYPES - 3 * 3); /* no bits of floating numbers */
    assert_int_equal(goal_arith_unit(ARITH_CODE(GOAL_ADD, GOAL_INT1)), 1);
    assert_int_equal(goal_arith_unit(ARITH_CODE(GOAL_ADD, GOAL_FLOAT64)), 8);
    assert_string_equal(goal_operator_name(GOAL_MULT), "mult");
    assert_string_equal(goal_number_name(GOAL_UINT16), "uint16");
    assert_null(goal_operator_name(GOAL_OPERATORS));
    assert_null(goal_number_name(GOAL_TYPES));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_goes_together),
        cmocka_unit_test(all_widths_are_as_one_number),
    };
    rng = seed_open();
    if (var_open() || type_open() || op_open()) return 1;
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("arithmetic of schedules", tests, NULL, NULL);
}
