/* record_test.c - rules of src/transport/tcp/record.h: what was sealed opens once, in its place, unchanged, and nothing
 * else. */
#include "transport/tcp/record.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

enum { SMALL = 40 };
static uint8_t plain[RECORD_MAX], wire[RECORD_WIRE], back[RECORD_MAX];
static struct record_way out, in;

static int set_up(void **state)
{
    (void)state;
    out = (struct record_way){.crypto = &tern_crypto_sodium, .key = "a key of thirty-two bytes, no m"};
    in = out;
    for (size_t i = 0; i < sizeof plain; i++) plain[i] = (uint8_t)(i * 7 + (i >> 8));
    return !tern_crypto_sodium.start();
}

static size_t seal_small(uint8_t *to) { return record_seal(&out, to, plain, SMALL); }

static void every_length(void **state)
{
    static const size_t lengths[] = {1, 2, 15, 16, 17, 24, 64, 4096, 65536, RECORD_MAX};
    (void)state;
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        size_t n = lengths[i], size = 0, sealed = record_seal(&out, wire, plain, n);
        assert_int_equal(sealed, n + RECORD_MORE);
        assert_true(record_size(wire, sealed, &size) && size == sealed);
        assert_true(n < SMALL || !memmem(wire, sealed, plain, SMALL)); /* not in clear */
        assert_true(record_open(&in, back, wire, size));
        assert_memory_equal(back, plain, n);
    }
}

/* The bytes may lie in the record already. */
static void in_place(void **state)
{
    (void)state;
    memcpy(wire + RECORD_HEAD, plain, SMALL);
    size_t size = record_seal(&out, wire, wire + RECORD_HEAD, SMALL);
    assert_true(record_open(&in, back, wire, size));
    assert_memory_equal(back, plain, SMALL);
}

static void every_bit_counts(void **state)
{
    size_t size = seal_small(wire), length;
    (void)state;
    for (size_t bit = 0; bit < 8 * size; bit++) {
        struct record_way w = in;
        uint8_t copy[SMALL + RECORD_MORE];
        memcpy(copy, wire, size);
        copy[bit / 8] ^= (uint8_t)(1u << bit % 8);
        if (record_size(copy, size, &length) && length == size && record_open(&w, back, copy, size))
            fail_msg("bit %zu", bit);
    }
    assert_true(record_open(&in, back, wire, size));
}

static void only_in_its_place(void **state)
{
    uint8_t second[SMALL + RECORD_MORE];
    size_t size = seal_small(wire);
    (void)state;
    seal_small(second);
    struct record_way w = in;
    assert_false(record_open(&w, back, second, size)); /* one is missing */
    assert_true(record_open(&in, back, wire, size));
    w = in;
    assert_false(record_open(&w, back, wire, size)); /* again */
    w = in;
    w.key[0] ^= 1;
    assert_false(record_open(&w, back, second, size)); /* another connection's, or the other direction's */
    assert_true(record_open(&in, back, second, size));
}

static void lengths_that_cannot_be(void **state)
{
    static const uint8_t none[4] = {0}, most[4] = {0x00, 0x04, 0x01}, more[4] = {0x01, 0x04, 0x01},
                         huge[4] = {255, 255, 255, 255};
    size_t size = 1;
    (void)state;
    assert_true(record_size(huge, 3, &size) && size == 0); /* too few bytes to know */
    assert_true(record_size(most, 4, &size) && size == RECORD_WIRE);
    assert_false(record_size(none, 4, &size));
    assert_false(record_size(more, 4, &size));
    assert_false(record_size(huge, 4, &size));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(every_length, set_up),           cmocka_unit_test_setup(in_place, set_up),
        cmocka_unit_test_setup(every_bit_counts, set_up),       cmocka_unit_test_setup(only_in_its_place, set_up),
        cmocka_unit_test_setup(lengths_that_cannot_be, set_up),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
