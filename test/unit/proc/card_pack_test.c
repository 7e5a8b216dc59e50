/* card_pack_test.c - rules of src/proc/card_pack.h: what is packed is found again; what is no pack is refused. */
#include "../seed.h"
#include "proc/card_pack.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

enum { CARDS = 200, ROUNDS = 300 };

static uint64_t seed;

static uint64_t below(uint64_t n) { return seed_next(&seed) % n; }

/* Cards of which each is like an earlier one in all but some runs of bytes. */
static struct {
    size_t n;
    uint8_t bytes[CARD_MAX];
} cards[CARDS];
static uint32_t places[CARDS];
static uint8_t pack[CARDS * (CARD_MAX + CARD_PACK_EXTRA)];

static void make_cards(unsigned n, unsigned alike)
{
    for (unsigned i = 0; i < n; i++) {
        unsigned of = i ? (unsigned)below(i) : 0;
        cards[i].n = i && below(10) ? cards[of].n : 1 + below(CARD_MAX);
        if (i && below(10) < alike) memcpy(cards[i].bytes, cards[of].bytes, CARD_MAX);
        else for (size_t k = 0; k < CARD_MAX; k++) cards[i].bytes[k] = (uint8_t)below(256);
        for (uint64_t changes = below(6); changes; changes--) {
            size_t at = below(cards[i].n), run = 1 + below(20);
            for (size_t k = at; k < at + run && k < cards[i].n; k++) cards[i].bytes[k] ^= (uint8_t)below(3);
        }
    }
}

/* Each with the last whole one as base, or one of the others, or none. */
static size_t pack_cards(unsigned n)
{
    struct ask_out o = {.bytes = pack, .room = sizeof pack};
    struct card_base known[CARDS];
    unsigned wholes = 0;
    for (unsigned i = 0; i < n; i++) {
        bool whole;
        unsigned of = wholes ? below(2) ? wholes - 1 : (unsigned)below(wholes) : 0;
        size_t before = o.n;
        places[i] = card_pack_put(&o, 0, wholes && below(20) ? &known[of] : NULL, cards[i].bytes, cards[i].n, &whole);
        assert_int_equal(places[i], before);
        assert_true(o.n - before <= cards[i].n + CARD_PACK_EXTRA);
        if (whole) known[wholes++] = (struct card_base){places[i], (uint32_t)cards[i].n, cards[i].bytes};
    }
    assert_false(o.bad);
    return o.n;
}

static void packed_is_found(void **state)
{
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        unsigned n = 1 + (unsigned)below(CARDS);
        make_cards(n, (unsigned)below(11));
        size_t bytes = pack_cards(n);
        assert_int_equal(card_pack_check(pack, bytes, n), bytes);
        assert_int_equal(card_pack_check(pack, bytes + 7, n), bytes); /* what follows is somebody else's */
        void *memory = malloc(bytes);
        memcpy(memory, pack, bytes);
        struct card_pack *p = card_pack_open(memory, memory, bytes);
        assert_non_null(p);
        for (unsigned k = 0; k < 2 * n; k++) {
            unsigned i = k < n ? k : (unsigned)below(n);
            uint8_t card[CARD_MAX];
            assert_int_equal(card_pack_get(p, places[i], card), cards[i].n);
            assert_memory_equal(card, cards[i].bytes, cards[i].n);
            assert_int_equal(card_pack_next(p, places[i]), i + 1 < n ? places[i + 1] : bytes);
        }
        card_pack_unref(card_pack_ref(p));
        card_pack_unref(p);
    }
}

/* n cards that differ in 6 bytes at one place and 2 at another take 4 + 1 + 2 + 6 + 2 + 2 bytes each. */
static void alike_cards_are_short(void **state)
{
    struct ask_out o = {.bytes = pack, .room = sizeof pack};
    struct card_base base;
    bool whole;
    (void)state;
    make_cards(1, 0);
    cards[0].n = 171;
    for (unsigned i = 0; i < CARDS; i++) {
        uint8_t card[CARD_MAX];
        memcpy(card, cards[0].bytes, CARD_MAX);
        for (unsigned k = 0; k < 8; k++) card[k < 6 ? 50 + k : 114 + k] ^= (uint8_t)(i % 255 + 1);
        if (!i) memcpy(cards[0].bytes, card, CARD_MAX);
        size_t before = o.n;
        uint32_t place = card_pack_put(&o, 0, i ? &base : NULL, i ? card : cards[0].bytes, 171, &whole);
        if (!i) base = (struct card_base){place, 171, cards[0].bytes};
        assert_true(whole == !i);
        if (i && i % 255) assert_int_equal(o.n - before, 17);
        if (!i) assert_int_equal(o.n - before, 171 + CARD_PACK_EXTRA);
    }
}

/* Any start of a pack, and a pack with a changed byte: refused, or what is found lies within. A pack at the end of its memory. */
static void damaged(void **state)
{
    unsigned refused = 0;
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        unsigned n = 1 + (unsigned)below(30);
        make_cards(n, 9);
        size_t bytes = pack_cards(n), cut = below(bytes);
        uint8_t *own = malloc(bytes);
        memcpy(own, pack, bytes);
        uint8_t *start = malloc(cut + 1);
        memcpy(start, pack, cut);
        assert_int_equal(card_pack_check(start, cut, n), 0);
        free(start);
        own[below(bytes)] ^= (uint8_t)(1 + below(255));
        size_t all = card_pack_check(own, bytes, n);
        refused += !all;
        assert_true(all <= bytes);
        if (!all) {
            free(own);
            continue;
        }
        struct card_pack *p = card_pack_open(own, own, bytes);
        uint32_t place = 0;
        for (unsigned i = 0; i < n; i++, place = card_pack_next(p, place)) {
            uint8_t card[CARD_MAX];
            assert_in_range(card_pack_get(p, place, card), 1, CARD_MAX);
        }
        assert_int_equal(place, all);
        card_pack_unref(p);
    }
    assert_in_range(refused, 1, ROUNDS - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packed_is_found),
        cmocka_unit_test(alike_cards_are_short),
        cmocka_unit_test(damaged),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    seed = seed_open();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
