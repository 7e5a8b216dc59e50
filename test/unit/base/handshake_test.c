/* handshake_test.c - rules of src/base/handshake.h. */
#include "base/handshake.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const uint8_t key[CRYPTO_KEY] = "a key of thirty-two bytes, no m", other_key[CRYPTO_KEY] = "another";
static const struct crypto *const sodium = &tern_crypto_sodium;

/* Hands what `from` has to say to `to`, `piece` bytes at a time. */
static enum handshake_state pass(struct handshake *from, struct handshake *to, size_t piece)
{
    enum handshake_state s = HANDSHAKE_MORE;
    uint8_t text[HANDSHAKE_OUT];
    size_t n = from->out_len;
    memcpy(text, from->out, n);
    from->out_len = 0;
    for (size_t at = 0; at < n && s == HANDSHAKE_MORE;) {
        size_t some = n - at < piece ? n - at : piece;
        if (some > handshake_wants(to)) some = handshake_wants(to);
        if (!some) break;
        s = handshake_input(to, text + at, some);
        at += some;
    }
    return s;
}

/* Both sides have the same two keys for the data, one for each direction, of this handshake alone. */
static void keys_for_the_data(void **state)
{
    uint8_t keys[2][4][CRYPTO_KEY];
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct handshake c, a;
        handshake_connect(&c, sodium, key, HANDSHAKE_SEALED, 7, 9);
        handshake_accept(&a, sodium, key, HANDSHAKE_SEALED, 9);
        assert_int_equal(pass(&c, &a, 64), HANDSHAKE_MORE);
        assert_int_equal(pass(&a, &c, 64), HANDSHAKE_MORE);
        assert_int_equal(pass(&c, &a, 64), HANDSHAKE_ASK);
        for (int k = 0; k < 4; k++) handshake_key(k % 2 ? &a : &c, k < 2, keys[i][k]);
        assert_memory_equal(keys[i][0], keys[i][3], CRYPTO_KEY); /* c sends, a receives */
        assert_memory_equal(keys[i][1], keys[i][2], CRYPTO_KEY);
        assert_memory_not_equal(keys[i][0], keys[i][1], CRYPTO_KEY);
    }
    for (int k = 0; k < 4; k++) assert_memory_not_equal(keys[0][k], keys[1][k], CRYPTO_KEY);
}

static void both_agree(void **state)
{
    (void)state;
    for (size_t piece = 1; piece <= 64; piece++) {
        struct handshake c, a;
        handshake_connect(&c, sodium, key, HANDSHAKE_RANK, 7, 9);
        handshake_accept(&a, sodium, key, HANDSHAKE_RANK, piece % 2 ? 9 : UINT64_MAX);
        assert_int_equal(pass(&c, &a, piece), HANDSHAKE_MORE);
        assert_int_equal(pass(&a, &c, piece), HANDSHAKE_MORE);
        assert_int_equal(pass(&c, &a, piece), HANDSHAKE_ASK);
        assert_int_equal(a.from, 7);
        assert_int_equal(a.to, 9);
        enum handshake_verdict v = piece % 3 == 0 ? VERDICT_TIE : piece % 3 == 1 ? VERDICT_WELCOME : VERDICT_LEAVING;
        handshake_answer(&a, v);
        assert_int_equal(pass(&a, &c, piece), HANDSHAKE_DONE);
        assert_int_equal(c.verdict, v);
        assert_int_equal(handshake_wants(&c), 0);
        assert_int_equal(handshake_wants(&a), 0);
    }
}

/* Up to the connector's proof; true if the acceptor takes it. */
static bool meet(const uint8_t *ck, enum handshake_kind kc, uint64_t to, const uint8_t *ak, const char **why)
{
    struct handshake c, a;
    handshake_connect(&c, sodium, ck, kc, 1, to);
    handshake_accept(&a, sodium, ak, HANDSHAKE_RANK, 2);
    if (pass(&c, &a, 64) == HANDSHAKE_BAD) return *why = a.why, false;
    if (pass(&a, &c, 64) == HANDSHAKE_BAD) return *why = c.why, false;
    return pass(&c, &a, 64) == HANDSHAKE_ASK;
}

static void strangers_are_told_apart(void **state)
{
    (void)state;
    const char *why = NULL;
    assert_true(meet(key, HANDSHAKE_RANK, 2, key, &why));
    assert_false(meet(other_key, HANDSHAKE_RANK, 2, key, &why));
    assert_string_equal(why, "the other side has another key");
    assert_false(meet(key, HANDSHAKE_TREE, 2, key, &why));
    assert_string_equal(why, "a connection of another kind");
    assert_false(meet(key, HANDSHAKE_RANK, 3, key, &why));
    assert_string_equal(why, "meant for another process");
}

/* A connector that cannot make the proof, but goes on as if. */
static void wrong_proof(void **state)
{
    (void)state;
    struct handshake c, a;
    uint8_t zeros[CRYPTO_TAG] = {0};
    handshake_connect(&c, sodium, other_key, HANDSHAKE_RANK, 1, 2);
    handshake_accept(&a, sodium, key, HANDSHAKE_RANK, 2);
    assert_int_equal(pass(&c, &a, 64), HANDSHAKE_MORE);
    /* the acceptor's own tag, sent back to it */
    assert_int_equal(handshake_input(&a, a.out + HANDSHAKE_NONCE, CRYPTO_TAG), HANDSHAKE_BAD);
    assert_string_equal(a.why, "wrong key");
    handshake_accept(&a, sodium, key, HANDSHAKE_RANK, 2);
    handshake_connect(&c, sodium, other_key, HANDSHAKE_RANK, 1, 2);
    assert_int_equal(pass(&c, &a, 64), HANDSHAKE_MORE);
    assert_int_equal(handshake_input(&a, zeros, sizeof zeros), HANDSHAKE_BAD);
}

/* Both messages of a recorded connector, to a fresh acceptor. */
static void replay(void **state)
{
    (void)state;
    struct handshake c, a;
    uint8_t hello[HANDSHAKE_OUT], proof[HANDSHAKE_OUT];
    handshake_connect(&c, sodium, key, HANDSHAKE_RANK, 1, 2);
    memcpy(hello, c.out, sizeof hello);
    handshake_accept(&a, sodium, key, HANDSHAKE_RANK, 2);
    assert_int_equal(pass(&c, &a, 64), HANDSHAKE_MORE);
    assert_int_equal(pass(&a, &c, 64), HANDSHAKE_MORE);
    memcpy(proof, c.out, sizeof proof);
    assert_int_equal(pass(&c, &a, 64), HANDSHAKE_ASK);
    handshake_accept(&a, sodium, key, HANDSHAKE_RANK, 2);
    assert_int_equal(handshake_input(&a, hello, handshake_wants(&a)), HANDSHAKE_MORE);
    assert_int_equal(handshake_input(&a, proof, handshake_wants(&a)), HANDSHAKE_BAD);
}

/* Any one bit changed on the way, in any message, is found out. */
static void every_bit_counts(void **state)
{
    (void)state;
    for (int message = 0; message < 3; message++)
        for (size_t bit = 0; bit < 8 * HANDSHAKE_OUT; bit++) {
            struct handshake c, a, *ends[3][2] = {{&c, &a}, {&a, &c}, {&c, &a}};
            enum handshake_state s = HANDSHAKE_MORE;
            bool changed = false;
            handshake_connect(&c, sodium, key, HANDSHAKE_RANK, 1, 2);
            handshake_accept(&a, sodium, key, HANDSHAKE_RANK, 2);
            for (int m = 0; m < 3 && s == HANDSHAKE_MORE; m++) {
                if (m == message && bit / 8 < ends[m][0]->out_len) {
                    ends[m][0]->out[bit / 8] ^= (uint8_t)(1 << bit % 8);
                    changed = true;
                }
                s = pass(ends[m][0], ends[m][1], 64);
            }
            assert_int_equal(s, changed ? HANDSHAKE_BAD : HANDSHAKE_ASK);
        }
}

static void random_bytes(void **state)
{
    (void)state;
    unsigned seed = (unsigned)time(NULL);
    print_message("seed %u\n", seed);
    srandom(seed);
    for (int i = 0; i < 100000; i++) {
        struct handshake h;
        uint8_t text[HANDSHAKE_OUT];
        if (i % 2) handshake_accept(&h, sodium, key, HANDSHAKE_RANK, UINT64_MAX);
        else handshake_connect(&h, sodium, key, HANDSHAKE_RANK, 1, 2);
        for (size_t k = 0; k < sizeof text; k++) text[k] = (uint8_t)random();
        enum handshake_state s = HANDSHAKE_MORE;
        while (s == HANDSHAKE_MORE && handshake_wants(&h)) s = handshake_input(&h, text, handshake_wants(&h));
        assert_int_equal(s, HANDSHAKE_BAD);
        assert_non_null(h.why);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_agree),
        cmocka_unit_test(keys_for_the_data),
        cmocka_unit_test(strangers_are_told_apart),
        cmocka_unit_test(wrong_proof),
        cmocka_unit_test(replay),
        cmocka_unit_test(every_bit_counts),
        cmocka_unit_test(random_bytes),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
