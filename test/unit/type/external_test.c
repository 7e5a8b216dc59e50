/* external_test.c - numbers in external32, in one piece and in many (MPI-5.0 section 14.5.2). */
#include "base/err.h"
#include "reference.h"
#include "type/element.h"
#include "type/external.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* Packs n long doubles and compares with the compiler's own 128-bit numbers, then unpacks the latter. */
static void compare_long_doubles(const long double *x, int n)
{
    unsigned char out[16 * 8];
    long double back[8] = {0};
    struct external_cursor c;
    size_t done;
    assert_int_equal(external_open(&c, type_of(MPI_LONG_DOUBLE), n, x), 0);
    assert_int_equal(external_pack(&c, out, sizeof out, &done), 0);
    assert_int_equal(done, 16 * n);
#if HAVE_FLOAT128
    for (int i = 0; i < n; i++) {
        __float128 wide = x[i];
        unsigned char bytes[16];
        memcpy(bytes, &wide, 16);
        for (int b = 0; b < 16; b++) assert_int_equal(out[16 * i + b], bytes[15 - b]);
    }
#endif
    assert_int_equal(external_open(&c, type_of(MPI_LONG_DOUBLE), n, back), 0);
    assert_int_equal(external_unpack(&c, out, 16 * (size_t)n, &done), 0);
    for (int i = 0; i < n; i++) assert_memory_equal(&back[i], &x[i], 10);
}

static void long_doubles_keep_their_values(void **state)
{
    (void)state;
    compare_long_doubles((long double[]){0, -0.0L, 1, -1.1L, 1e4932L, 3.4e-4932L, 3.6e-4951L, __builtin_infl()}, 8);
    for (int64_t i = test_count(10000); i > 0; i--) {
        long double x = (long double)random_u64() * (random_u64() & 1 ? 1 : -1);
        x = __builtin_ldexpl(x, (int)random_int(-16500, 16300));
        compare_long_doubles(&x, 1);
    }
}

#if HAVE_FLOAT128
static void unpacking_rounds_as_the_compiler_does(void **state)
{
    (void)state;
    for (int64_t i = test_count(10000); i > 0; i--) {
        unsigned char in[16], bytes[16];
        long double got = 0;
        __float128 wide;
        struct external_cursor c;
        size_t done;
        random_fill(bytes, 16);
        if (random_u64() & 1) memset(bytes, random_u64() & 1 ? 0 : 0xff, 6); /* halves and what is near them */
        if (random_u64() & 1) bytes[6] = (unsigned char)random_int(0, 3);
        memcpy(&wide, bytes, 16);
        if (wide != wide) continue;
        for (int b = 0; b < 16; b++) in[b] = bytes[15 - b];
        assert_int_equal(external_open(&c, type_of(MPI_LONG_DOUBLE), 1, &got), 0);
        assert_int_equal(external_unpack(&c, in, 16, &done), 0);
        long double expect = (long double)wide;
        assert_memory_equal(&got, &expect, 10);
    }
}
#else
static void unpacking_rounds_as_the_compiler_does(void **state)
{
    (void)state;
    print_message("# the compiler has no long double of 128 bits to compare with\n");
    skip();
}
#endif

static void what_is_no_number_remains_none(void **state)
{
    (void)state;
    unsigned char in[16] = {0x7f, 0xff, [15] = 1}; /* its only digit is one that a long double lacks */
    long double got = 0;
    struct external_cursor c;
    size_t done;
    assert_int_equal(external_open(&c, type_of(MPI_LONG_DOUBLE), 1, &got), 0);
    assert_int_equal(external_unpack(&c, in, 16, &done), 0);
    assert_true(got != got);
}

/* A struct of different numbers, one byte at a time. */
static void any_piece_will_do(void **state)
{
    (void)state;
    struct { long l; double d; short s; } a[3] = {{-1, 1.0, 2}, {7, -2.0, 3}, {9, 0.5, 4}}, b[3] = {{0, 0, 0}};
    struct type *members[] = {type_of(MPI_LONG), type_of(MPI_DOUBLE), type_of(MPI_SHORT)}, *t;
    int64_t lens[] = {1, 1, 1}, at[] = {0, 8, 16};
    unsigned char whole[42], bytes[42];
    struct external_cursor c;
    size_t n;
    assert_int_equal(type_struct(3, lens, at, members, &t), 0);
    assert_int_equal(t->external, 14);
    assert_int_equal(external_open(&c, t, 3, a), 0);
    assert_int_equal(external_pack(&c, whole, 100, &n), 0);
    assert_int_equal(n, 42);
    assert_int_equal(external_open(&c, t, 3, a), 0);
    for (int i = 0; i < 42; i++) {
        assert_int_equal(external_pack(&c, bytes + i, 1, &n), 0);
        assert_int_equal(n, 1);
    }
    assert_int_equal(external_pack(&c, bytes, 1, &n), 0);
    assert_int_equal(n, 0);
    assert_memory_equal(whole, bytes, 42);
    assert_int_equal(external_open(&c, t, 3, b), 0);
    for (int i = 0; i < 42; i++) assert_int_equal(external_unpack(&c, bytes + i, 1, &n), 0);
    for (int i = 0; i < 3; i++) assert_true(a[i].l == b[i].l && a[i].d == b[i].d && a[i].s == b[i].s);
    type_unref(t);
}

static void what_does_not_fit_is_an_error(void **state)
{
    (void)state;
    long x[100] = {0};
    unsigned char out[400];
    struct external_cursor c;
    size_t n;
    x[99] = 1L << 31;
    assert_int_equal(external_open(&c, type_of(MPI_LONG), 100, x), 0);
    assert_int_equal(external_pack(&c, out, sizeof out, &n), TERN_ERR_CONVERSION);
    assert_non_null(strstr(err_words(), "MPI_LONG"));
    x[99] = -(1L << 31);
    assert_int_equal(external_open(&c, type_of(MPI_LONG), 100, x), 0);
    assert_int_equal(external_pack(&c, out, sizeof out, &n), 0);
    assert_int_equal(external_open(&c, type_of(MPI_LONG), INT64_MAX / 2, x), TERN_ERR_COUNT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(long_doubles_keep_their_values), cmocka_unit_test(unpacking_rounds_as_the_compiler_does),
        cmocka_unit_test(what_is_no_number_remains_none), cmocka_unit_test(any_piece_will_do),
        cmocka_unit_test(what_does_not_fit_is_an_error),
    };
    if (type_open()) return 1;
    random_open();
    cmocka_set_message_output(CM_OUTPUT_TAP);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    type_close();
    handle_close();
    return failed;
}
