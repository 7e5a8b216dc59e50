/* header_test.c - envelopes read from headers of several layouts by their descriptions alone (LHS-5). */
#include "pt2pt/match/header.h"
#include "base/err.h"
#include "pt2pt/match/match.h"
#include "pt2pt/protocol.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* Three layouts: narrow and little-endian; big-endian with a length that counts a 12-byte header; wide and scattered. */
static const struct layout {
    struct match_header format;
    size_t bytes;
    uint8_t header[24];
} layouts[] = {
    {{{0, 2}, {2, 2}, {4, 2}, 0, false}, 6, {0x01, 0x02, 0x03, 0x04, 0x05, 0x06}},
    {{{8, 4}, {0, 4}, {4, 4}, 12, true}, 12, {0, 0, 0x04, 0x03, 0, 0, 0x06, 0x11, 0, 0, 0x02, 0x01}},
    {{{16, 8}, {1, 3}, {4, 8}, 0, false}, 24,
     {0xff, 0x03, 0x04, 0, 0x05, 0x06, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0x01, 0x02, 0, 0, 0, 0, 0, 0}},
};

static void three_layouts_one_code(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(layouts); i++) {
        struct match_envelope e = {0};
        assert_int_equal(match_header_read(&layouts[i].format, layouts[i].header, layouts[i].bytes, &e), 0);
        assert_int_equal(e.source, 0x0201);
        assert_int_equal(e.tag, 0x0403);
        assert_int_equal(e.length, 0x0605);
    }
}

static void foreign_headers_feed_the_matcher(void **state)
{
    (void)state;
    struct match m;
    int receive;
    match_init(&m);
    for (size_t i = 0; i < ARRAY_LEN(layouts); i++) {
        struct match_envelope e = {0};
        assert_int_equal(match_post(&m, 0x0201, 0x0403, &receive), 0);
        assert_int_equal(match_header_read(&layouts[i].format, layouts[i].header, layouts[i].bytes, &e), 0);
        assert_ptr_equal(match_arrive(&m, e.source, e.tag), &receive);
    }
    match_fini(&m);
}

static void own_header_is_described_truly(void **state)
{
    (void)state;
    uint64_t words[2] = {0x1122334455667788u, env_pack(77, 1234567)};
    struct match_envelope e = {0};
    assert_int_equal(match_header_read(&match_header_own, words, sizeof words, &e), 0);
    assert_int_equal(e.source, 77);
    assert_int_equal(e.tag, 1234567);
}

static void bad_headers_are_refused_in_words(void **state)
{
    (void)state;
    struct match_envelope e = {.source = 5, .tag = 6, .length = 7};
    const struct layout *big = &layouts[1];
    uint8_t header[12];
    for (size_t n = 0; n < big->bytes; n++)
        assert_int_equal(match_header_read(&big->format, big->header, n, &e), TERN_ERR_ARG);
    assert_non_null(strstr(err_words(), "shorter"));
    memcpy(header, big->header, sizeof header);
    header[8] = 0x80; /* source beyond 31 bits */
    assert_int_equal(match_header_read(&big->format, header, sizeof header, &e), TERN_ERR_ARG);
    memcpy(header, big->header, sizeof header);
    memset(header + 4, 0, 3);
    header[7] = 11; /* a length of less than the header that it counts */
    assert_int_equal(match_header_read(&big->format, header, sizeof header, &e), TERN_ERR_ARG);
    struct match_header wide = big->format;
    wide.tag.bytes = 9;
    assert_int_equal(match_header_read(&wide, big->header, big->bytes, &e), TERN_ERR_ARG);
    assert_true(e.source == 5 && e.tag == 6 && e.length == 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(three_layouts_one_code),
        cmocka_unit_test(foreign_headers_feed_the_matcher),
        cmocka_unit_test(own_header_is_described_truly),
        cmocka_unit_test(bad_headers_are_refused_in_words),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
