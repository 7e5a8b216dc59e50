/* sodium.c - crypto.h by libsodium. */
#include "base/crypto.h"

#include <endian.h>
#include <sodium.h>
#include <string.h>

static_assert(crypto_auth_BYTES == CRYPTO_TAG && crypto_auth_KEYBYTES == CRYPTO_KEY, "sizes on the wire");
static_assert(crypto_aead_chacha20poly1305_ietf_ABYTES == CRYPTO_SEAL &&
                  crypto_aead_chacha20poly1305_ietf_KEYBYTES == CRYPTO_KEY,
              "sizes on the wire");

static void tag(uint8_t out[CRYPTO_TAG], const void *bytes, size_t n, const uint8_t key[CRYPTO_KEY])
{
    crypto_auth(out, bytes, n, key);
}

static bool same(const uint8_t a[CRYPTO_TAG], const uint8_t b[CRYPTO_TAG]) { return !sodium_memcmp(a, b, CRYPTO_TAG); }

static_assert(crypto_scalarmult_BYTES == CRYPTO_KEY && crypto_scalarmult_SCALARBYTES == CRYPTO_KEY, "sizes on the wire");

static void public_of(uint8_t public[CRYPTO_KEY], const uint8_t secret[CRYPTO_KEY]) { crypto_scalarmult_base(public, secret); }

static bool agree(uint8_t common[CRYPTO_KEY], const uint8_t secret[CRYPTO_KEY], const uint8_t other[CRYPTO_KEY])
{
    return !crypto_scalarmult(common, secret, other);
}

static bool start(void) { return sodium_init() >= 0; }

/* What is not secret, of a record: its head, and the number that no other record of the key has. */
struct open_part {
    uint32_t head;
    uint8_t nonce[crypto_aead_chacha20poly1305_ietf_NPUBBYTES];
};

static struct open_part open_part(uint32_t head, uint64_t number)
{
    struct open_part p = {.head = htole32(head)};
    number = htole64(number);
    memcpy(p.nonce + sizeof p.nonce - sizeof number, &number, sizeof number);
    return p;
}

static void seal(uint8_t *to, const void *bytes, size_t n, uint32_t head, uint64_t number,
                 const uint8_t key[CRYPTO_KEY])
{
    struct open_part p = open_part(head, number);
    crypto_aead_chacha20poly1305_ietf_encrypt(to, NULL, bytes, n, (const uint8_t *)&p.head, sizeof p.head, NULL,
                                              p.nonce, key);
}

static bool unseal(void *to, const uint8_t *bytes, size_t n, uint32_t head, uint64_t number,
                   const uint8_t key[CRYPTO_KEY])
{
    struct open_part p = open_part(head, number);
    return !crypto_aead_chacha20poly1305_ietf_decrypt(to, NULL, NULL, bytes, n + CRYPTO_SEAL, (const uint8_t *)&p.head,
                                                      sizeof p.head, p.nonce, key);
}

TERN_EXPORT extern const struct crypto tern_crypto_sodium;
const struct crypto tern_crypto_sodium = {
    .tag = tag, .same = same, .random = randombytes_buf, .public_of = public_of, .agree = agree, .start = start, .seal = seal, .unseal = unseal};
