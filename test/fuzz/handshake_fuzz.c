/*
 * handshake_fuzz.c - bytes that are no handshake, or nearly one, to both sides of
 * src/base/handshake.h: none is taken for genuine, none is written beyond.
 */
#include "fuzz.h"

#include "base/handshake.h"

#include <stdlib.h>
#include <string.h>

static const uint8_t key[CRYPTO_KEY] = "a key of thirty-two bytes, no m";

/* Feeds n bytes from memory that ends with them, in pieces of any size; what is left over is dropped. */
static enum handshake_state feed(struct handshake *h, const uint8_t *bytes, size_t n)
{
    enum handshake_state s = HANDSHAKE_MORE;
    uint8_t *own = malloc(n + 1);
    if (!own) abort();
    memcpy(own, bytes, n);
    for (size_t at = 0; at < n && s == HANDSHAKE_MORE && handshake_wants(h);) {
        size_t some = 1 + fuzz_below(handshake_wants(h));
        if (some > n - at) some = n - at;
        s = handshake_input(h, own + at, some);
        at += some;
        h->out_len = 0;
        FUZZ_RULE(h->have < HANDSHAKE_OUT, "no more is kept than a step needs");
    }
    free(own);
    return s;
}

static void check_bad(const struct handshake *h, enum handshake_state s)
{
    FUZZ_RULE(s == HANDSHAKE_BAD || s == HANDSHAKE_MORE, "nothing genuine in garbage");
    FUZZ_RULE(s != HANDSHAKE_BAD || (h->why && *h->why), "what is bad is said in words");
}

static void garbage(void)
{
    struct handshake h;
    uint8_t bytes[4 * HANDSHAKE_OUT];
    size_t n = fuzz_below(sizeof bytes);
    fuzz_bytes(bytes, n);
    if (fuzz_below(2))
        handshake_accept(&h, &tern_crypto_sodium, key, HANDSHAKE_RANK, UINT64_MAX);
    else
        handshake_connect(&h, &tern_crypto_sodium, key, HANDSHAKE_RANK, 1, 2);
    check_bad(&h, feed(&h, bytes, n));
    if (handshake_wants(&h) == 0) check_bad(&h, handshake_input(&h, bytes, 0)); /* asked again when it is over */
    FUZZ_RULE(handshake_input(&h, bytes, HANDSHAKE_OUT + 1) == HANDSHAKE_BAD, "more than is wanted is refused");
}

/* One message of a genuine handshake is changed on its way. */
static void nearly(void)
{
    struct handshake c, a, *ends[4][2] = {{&c, &a}, {&a, &c}, {&c, &a}, {&a, &c}};
    enum handshake_state s = HANDSHAKE_MORE;
    unsigned changed = (unsigned)fuzz_below(5); /* 4: none */
    bool cut = false;
    handshake_connect(&c, &tern_crypto_sodium, key, HANDSHAKE_TREE, 1, 2);
    handshake_accept(&a, &tern_crypto_sodium, key, HANDSHAKE_TREE, 2);
    for (unsigned m = 0; m < 4 && s != HANDSHAKE_BAD && !cut; m++) {
        uint8_t bytes[HANDSHAKE_OUT];
        size_t n = ends[m][0]->out_len;
        memcpy(bytes, ends[m][0]->out, n);
        ends[m][0]->out_len = 0;
        if (m == changed) fuzz_mutate(bytes, n);
        size_t wants = handshake_wants(ends[m][1]);
        FUZZ_RULE(wants == n, "each side wants what the other has to say");
        s = handshake_input(ends[m][1], bytes, n);
        if (m == 2 && s == HANDSHAKE_ASK) handshake_answer(&a, VERDICT_WELCOME);
    }
    if (changed == 4)
        FUZZ_RULE(s == HANDSHAKE_DONE && c.verdict == VERDICT_WELCOME, "a genuine one succeeds");
    else if (changed < 3)
        FUZZ_RULE(s == HANDSHAKE_BAD, "a changed one fails"); /* the verdict has no tag */
}

int main(void)
{
    static const struct fuzz_part parts[] = {
        {"random bytes are no handshake", garbage, 1},
        {"a handshake that was changed fails", nearly, 4},
    };
    return fuzz_main(parts, 2, 40000);
}
