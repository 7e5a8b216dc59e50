/*
 * packet.h - what is in a datagram of dgram.h, and how it is known to be genuine.
 *
 *      0  tag        16   of everything else, under the endpoints' key; see below
 *     16  version 1 | type 1 | flags 1 | bytes of card 1 | epoch 4
 *     24  from        8   id of the sending endpoint
 *     32  to          8   id of the endpoint it is for
 *     40  seq         4   DATA: number of this segment; PROBE, ACK: number of the question
 *     44  ack         4   all segments before this one have come
 *     48  left        4   DATA: bytes of the message from this segment's first byte on
 *     52  window 2 | 0 2  segments that the sender of this packet takes beyond `ack`
 *     56  got        16   bit i: segment ack + 1 + i has come, too; GONE: who is gone
 *     72  card            of the sender, in packets that introduce it (FIRST)
 *         payload         DATA: a piece of a message
 *
 * in network order. seq and ack are the low bits of 64-bit numbers; the receiver completes
 * them by what it expects. The tag is made over the packet with the two complete numbers
 * in the tag's place: so a packet whose numbers were completed wrongly, because it is
 * older than the low bits tell, has a wrong tag.
 */
#ifndef TERN_TRANSPORT_DGRAM_PACKET_H
#define TERN_TRANSPORT_DGRAM_PACKET_H

#include "base/crypto.h"
#include "transport/dgram/wire.h"

#define DGRAM_HEADER 72
#define DGRAM_WINDOW 128 /* segments that `got` can speak of, and one */
#define DGRAM_CARD 64    /* bytes of the longest card */
#define DGRAM_MTU_MIN 256

enum dgram_type {
    DGRAM_DATA = 1,  /* a segment */
    DGRAM_ACK = 2,   /* nothing but what every packet says: what has come */
    DGRAM_PROBE = 3, /* "are you there?", to be answered with an ACK */
    DGRAM_DOOR = 4,  /* "introduce yourself again, with this epoch" */
    DGRAM_GONE = 5   /* "whom you mean is not here any more, or wants nothing of you" */
};

enum dgram_flag {
    DGRAM_FIRST = 1, /* the sender has never heard from the receiver; its card follows */
    DGRAM_START = 2, /* DATA: a message begins */
    DGRAM_ACKED = 4, /* GONE: ack is right */
    DGRAM_CROWDED = 8 /* GONE: as too many are there */
};

struct dgram_packet {
    uint8_t type, flags, card_len;
    uint16_t window;
    uint32_t epoch, left;
    uint64_t from, to;
    uint64_t seq, ack; /* as sent: complete. As parsed: the low bits, to be completed with dgram_complete */
    uint64_t got[2];
    const uint8_t *card; /* card_len bytes */
    const uint8_t *data; /* n bytes */
    size_t n;
};

/* Where a process can be reached by datagrams, as others are told. */
struct dgram_card {
    uint64_t id;    /* of the endpoint: random, never used again */
    uint32_t epoch; /* of the endpoint when the card was written: see dgram.c */
    uint16_t mtu;
    enum dgram_kind kind;
    struct dgram_addr addr;
};

/* Writes header and card of *p to `bytes`; the payload lies behind them already. Returns the length of all. */
size_t dgram_packet_write(uint8_t *bytes, const struct dgram_packet *p, unsigned seq_bits, const struct crypto *,
                          const uint8_t *key);

/* Takes n bytes apart; false: they are no packet. *p points into them. */
bool dgram_packet_parse(const uint8_t *bytes, size_t n, struct dgram_packet *p);

/* Is the tag right, with seq and ack completed? Destroys it. */
bool dgram_packet_genuine(uint8_t *bytes, size_t n, const struct dgram_packet *p, const struct crypto *,
                          const uint8_t *key);

/* The number nearest to `near` whose low `bits` bits are `low`. */
uint64_t dgram_complete(uint64_t near, uint64_t low, unsigned bits);

/* The type of what may be a packet; 0: it is too short. For the fault shim. */
unsigned dgram_packet_type(const uint8_t *bytes, size_t n);

size_t dgram_card_write(uint8_t bytes[DGRAM_CARD], const struct dgram_card *);
bool dgram_card_read(const uint8_t *bytes, size_t n, struct dgram_card *);

#endif
