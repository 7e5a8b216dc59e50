/*
 * crypto.h - the cryptography that Tern uses, as a table of functions: libsodium's, which
 * the library loads as a module when the first connection needs it, and which mpiexec
 * links (doc/decisions/dependencies.md).
 *
 * Threads: any.
 */
#ifndef TERN_BASE_CRYPTO_H
#define TERN_BASE_CRYPTO_H

#include "base/compiler.h"

#define CRYPTO_KEY 32 /* bytes of a key */
#define CRYPTO_TAG 32 /* bytes of an authentication tag */
#define CRYPTO_SEAL 16 /* bytes by which sealing makes a text longer */

struct crypto {
    /* The tag of n bytes under a key (HMAC-SHA-512-256). */
    void (*tag)(uint8_t tag[CRYPTO_TAG], const void *bytes, size_t n, const uint8_t key[CRYPTO_KEY]);
    /* Are two tags the same? Takes as long whatever they are. */
    bool (*same)(const uint8_t a[CRYPTO_TAG], const uint8_t b[CRYPTO_TAG]);
    void (*random)(void *bytes, size_t n);

    /* X25519: the public key that belongs to a secret one, and the secret that the owners of two secret keys find by each other's
     * public one. False: `other` is no public key that anybody has. */
    void (*public_of)(uint8_t public[CRYPTO_KEY], const uint8_t secret[CRYPTO_KEY]);
    bool (*agree)(uint8_t common[CRYPTO_KEY], const uint8_t secret[CRYPTO_KEY], const uint8_t other[CRYPTO_KEY]);

    /* Before seal and unseal: chooses the code for this processor. False: it cannot be used. */
    bool (*start)(void);
    /* Encrypts n bytes and appends what shows that they, and the `head` that goes with them in clear, are the right
     * ones (ChaCha20-Poly1305): n + CRYPTO_SEAL bytes. A key seals each `number` once. `to` may be `bytes`. */
    void (*seal)(uint8_t *to, const void *bytes, size_t n, uint32_t head, uint64_t number,
                 const uint8_t key[CRYPTO_KEY]);
    /* The reverse, of n + CRYPTO_SEAL bytes. False, and nothing of use in `to`: changed, or of another place. */
    bool (*unseal)(void *to, const uint8_t *bytes, size_t n, uint32_t head, uint64_t number,
                   const uint8_t key[CRYPTO_KEY]);
};

extern const struct crypto tern_crypto_sodium; /* in mpiexec, and in the module: */
#define CRYPTO_MODULE "sodium"
#define CRYPTO_SYMBOL "tern_crypto_sodium"

#endif
