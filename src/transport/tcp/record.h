/*
 * record.h - sealed records: how the bytes of a TCP connection look on the wire with TERN_TCP_SEAL=1.
 *
 *     | n 4 | n bytes, encrypted | seal 16 | | n 4 | ...         1 <= n <= RECORD_MAX, little endian
 *
 * Each direction has a key of its own, made from the job's key and both sides' nonces (handshake_key), and its records
 * are numbered from 0 by both sides, not on the wire: a record that is changed, repeated, left out or moved does not
 * open. The length is authenticated with the rest. A stream that is cut off ends without the farewell that is its last
 * record (TCP_NOTE_LEAVE), which is a loss.
 *
 * Bytes to bytes; the sockets are seal.c's.
 */
#ifndef TERN_TRANSPORT_TCP_RECORD_H
#define TERN_TRANSPORT_TCP_RECORD_H

#include "base/crypto.h"

#define RECORD_MAX 66560 /* the longest eager message and its header are one record (64 KB + 1 KB) */
#define RECORD_HEAD 4
#define RECORD_MORE (RECORD_HEAD + CRYPTO_SEAL)
#define RECORD_WIRE (RECORD_MAX + RECORD_MORE)

/* One direction of a connection. */
struct record_way {
    const struct crypto *crypto;
    uint64_t number; /* of the next record */
    uint8_t key[CRYPTO_KEY];
};

/* Seals n bytes, which may lie at to + RECORD_HEAD; n + RECORD_MORE bytes at `to`. */
size_t record_seal(struct record_way *, uint8_t *to, const void *bytes, size_t n);

/* Bytes of the record that begins here, of which n have come; 0: not known yet. False: there is no such record. */
bool record_size(const uint8_t *bytes, size_t n, size_t *size);

/* Opens a whole record of `size` bytes: size - RECORD_MORE bytes at `to`. False: it is not the next one of this way. */
bool record_open(struct record_way *, void *to, const uint8_t *record, size_t size);

#endif
