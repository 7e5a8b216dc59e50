/* sodium.c - crypto.h by libsodium. */
#include "base/crypto.h"

#include <sodium.h>

static_assert(crypto_auth_BYTES == CRYPTO_TAG && crypto_auth_KEYBYTES == CRYPTO_KEY, "sizes on the wire");

static void tag(uint8_t out[CRYPTO_TAG], const void *bytes, size_t n, const uint8_t key[CRYPTO_KEY])
{
    crypto_auth(out, bytes, n, key);
}

static bool same(const uint8_t a[CRYPTO_TAG], const uint8_t b[CRYPTO_TAG]) { return !sodium_memcmp(a, b, CRYPTO_TAG); }

TERN_EXPORT extern const struct crypto tern_crypto_sodium;
const struct crypto tern_crypto_sodium = {.tag = tag, .same = same, .random = randombytes_buf};
