/* packet_test.c - rules of src/transport/dgram/packet.h. */
#include "transport/dgram/packet.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <string.h>

static void numbers_are_completed(void **state)
{
    (void)state;
    assert_true(dgram_complete(0, 0, 8) == 0);
    assert_true(dgram_complete(0, 200, 8) == 200); /* there is nothing before 0 */
    assert_true(dgram_complete(256, 255, 8) == 255);
    assert_true(dgram_complete(250, 5, 8) == 261);
    assert_true(dgram_complete(1000, 1000 & 255, 8) == 1000);
    assert_true(dgram_complete((uint64_t)5 << 32, 0xffffffffu, 32) == ((uint64_t)5 << 32) - 1);
    for (uint64_t near = 128; near < 1000; near++)
        for (uint64_t n = near - 128; n < near + 128; n++) assert_true(dgram_complete(near, n & 255, 8) == n);
}

static const uint8_t key[CRYPTO_KEY] = "a key of thirty-two bytes, no m";

/* What is written is what is parsed, and any one bit that changes makes it not genuine, or no packet. */
static void every_bit_counts(void **state)
{
    static const uint8_t card[40] = "card", data[30] = "data";
    struct dgram_packet k = {.type = DGRAM_DATA,
                             .flags = DGRAM_FIRST | DGRAM_START,
                             .card_len = sizeof card,
                             .window = 77,
                             .epoch = 5,
                             .left = 1000,
                             .from = 0x123456789abcdefu,
                             .to = 0xfedcba987654321u,
                             .seq = ((uint64_t)3 << 32) + 9,
                             .ack = ((uint64_t)2 << 32) - 1,
                             .got = {1, (uint64_t)1 << 63},
                             .card = card,
                             .data = data,
                             .n = sizeof data},
                        p;
    uint8_t bytes[256], copy[256];
    (void)state;
    memcpy(bytes + DGRAM_HEADER + sizeof card, data, sizeof data);
    size_t n = dgram_packet_write(bytes, &k, 32, &tern_crypto_sodium, key);
    assert_int_equal(n, DGRAM_HEADER + sizeof card + sizeof data);
    for (size_t bit = 0; bit <= 8 * n; bit++) {
        memcpy(copy, bytes, n);
        if (bit < 8 * n) copy[bit / 8] ^= (uint8_t)(1 << bit % 8);
        bool good = dgram_packet_parse(copy, n, &p);
        if (good) {
            p.seq = dgram_complete(k.seq + 100, p.seq, 32);
            p.ack = dgram_complete(k.ack + 100, p.ack, 32);
            good = dgram_packet_genuine(copy, n, &p, &tern_crypto_sodium, key);
        }
        assert_int_equal(good, bit == 8 * n);
    }
    assert_true(p.seq == k.seq && p.ack == k.ack && p.from == k.from && p.to == k.to && p.left == k.left);
    assert_true(p.window == 77 && p.epoch == 5 && p.got[0] == 1 && p.got[1] == (uint64_t)1 << 63 && p.n == sizeof data);
    assert_memory_equal(p.card, card, sizeof card);
    assert_memory_equal(p.data, data, sizeof data);
    for (size_t cut = 0; cut < n; cut++) /* as many bytes as there are, so that a sanitizer sees what is read beyond */
        if (dgram_packet_parse(bytes + n - cut, cut, &p)) assert_int_equal(p.data + p.n - (bytes + n), 0);
}

/* An old packet whose low bits look new has a wrong tag. */
static void complete_numbers_count(void **state)
{
    uint8_t bytes[DGRAM_HEADER];
    struct dgram_packet k = {.type = DGRAM_DATA, .seq = 5, .ack = 7}, p;
    (void)state;
    size_t n = dgram_packet_write(bytes, &k, 8, &tern_crypto_sodium, key);
    assert_true(dgram_packet_parse(bytes, n, &p));
    p.seq = dgram_complete(256, p.seq, 8);
    assert_int_equal(p.seq, 261);
    assert_false(dgram_packet_genuine(bytes, n, &p, &tern_crypto_sodium, key));
}

static void cards(void **state)
{
    uint8_t bytes[DGRAM_CARD];
    struct dgram_card c = {77, 3, 9000, DGRAM_VERBS_UD, {DGRAM_ADDR, {1, 2, 3}}}, d;
    (void)state;
    size_t n = dgram_card_write(bytes, &c);
    assert_true(n <= DGRAM_CARD && dgram_card_read(bytes, n, &d));
    assert_memory_equal(&c.addr, &d.addr, sizeof c.addr);
    assert_true(d.id == 77 && d.epoch == 3 && d.mtu == 9000 && d.kind == DGRAM_VERBS_UD);
    for (size_t cut = 0; cut < n; cut++) assert_false(dgram_card_read(bytes, cut, &d));
    assert_false(dgram_card_read(bytes, n + 1, &d));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_completed),
        cmocka_unit_test(every_bit_counts),
        cmocka_unit_test(complete_numbers_count),
        cmocka_unit_test(cards),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
