/* packet.c - packets and cards as bytes; see packet.h. */
#include "transport/dgram/packet.h"

#include <endian.h>
#include <string.h>

#define VERSION 1
#define TAG 16

struct header {
    uint8_t tag[TAG]; /* or seq and ack, complete */
    uint8_t version, type, flags, card_len;
    uint32_t epoch;
    uint64_t from, to;
    uint32_t seq, ack, left;
    uint16_t window, zero;
    uint64_t got[2];
};
static_assert(sizeof(struct header) == DGRAM_HEADER && offsetof(struct header, seq) == 40 &&
                  offsetof(struct header, got) == 56,
              "wire format");

struct card {
    uint64_t id;
    uint32_t epoch;
    uint16_t mtu;
    uint8_t version, kind;
};
static_assert(sizeof(struct card) == 16 && sizeof(struct card) + 1 + DGRAM_ADDR <= DGRAM_CARD, "wire format");

static void make_tag(uint8_t tag[CRYPTO_TAG], uint8_t *bytes, size_t n, const struct dgram_packet *p,
                     const struct crypto *crypto, const uint8_t *key)
{
    uint64_t complete[2] = {htobe64(p->seq), htobe64(p->ack)};
    static_assert(sizeof complete == TAG, "they take the tag's place");
    memcpy(bytes, complete, TAG);
    crypto->tag(tag, bytes, n, key);
}

size_t dgram_packet_write(uint8_t *bytes, const struct dgram_packet *p, unsigned seq_bits, const struct crypto *crypto,
                          const uint8_t *key)
{
    uint64_t mask = ((uint64_t)1 << seq_bits) - 1;
    struct header h = {
        .version = VERSION,
        .type = p->type,
        .flags = p->flags,
        .card_len = p->card_len,
        .epoch = htobe32(p->epoch),
        .from = htobe64(p->from),
        .to = htobe64(p->to),
        .seq = htobe32((uint32_t)(p->seq & mask)),
        .ack = htobe32((uint32_t)(p->ack & mask)),
        .left = htobe32(p->left),
        .window = htobe16(p->window),
        .got = {htobe64(p->got[0]), htobe64(p->got[1])},
    };
    size_t n = sizeof h + p->card_len + p->n;
    uint8_t tag[CRYPTO_TAG];
    memcpy(bytes, &h, sizeof h);
    if (p->card_len) memcpy(bytes + sizeof h, p->card, p->card_len);
    make_tag(tag, bytes, n, p, crypto, key);
    memcpy(bytes, tag, TAG);
    return n;
}

bool dgram_packet_parse(const uint8_t *bytes, size_t n, struct dgram_packet *p)
{
    struct header h;
    if (n < sizeof h) return false;
    memcpy(&h, bytes, sizeof h);
    if (h.version != VERSION || h.type < DGRAM_DATA || h.type > DGRAM_GONE || h.zero) return false;
    if (h.card_len > DGRAM_CARD || h.card_len > n - sizeof h || !h.card_len != !(h.flags & DGRAM_FIRST)) return false;
    *p = (struct dgram_packet){
        .type = h.type,
        .flags = h.flags,
        .card_len = h.card_len,
        .window = be16toh(h.window),
        .epoch = be32toh(h.epoch),
        .left = be32toh(h.left),
        .from = be64toh(h.from),
        .to = be64toh(h.to),
        .seq = be32toh(h.seq),
        .ack = be32toh(h.ack),
        .got = {be64toh(h.got[0]), be64toh(h.got[1])},
        .card = bytes + sizeof h,
        .data = bytes + sizeof h + h.card_len,
        .n = n - sizeof h - h.card_len,
    };
    return p->type == DGRAM_DATA || !p->n;
}

bool dgram_packet_genuine(uint8_t *bytes, size_t n, const struct dgram_packet *p, const struct crypto *crypto,
                          const uint8_t *key)
{
    uint8_t there[CRYPTO_TAG], own[CRYPTO_TAG];
    memcpy(there, bytes, TAG);
    make_tag(own, bytes, n, p, crypto, key);
    memcpy(there + TAG, own + TAG, CRYPTO_TAG - TAG); /* `same` compares whole tags; packets have the first half */
    return crypto->same(own, there);
}

uint64_t dgram_complete(uint64_t near, uint64_t low, unsigned bits)
{
    uint64_t range = (uint64_t)1 << bits, ahead = (low - near) & (range - 1);
    if (ahead < range / 2 || near + ahead < range) return near + ahead;
    return near + ahead - range;
}

unsigned dgram_packet_type(const uint8_t *bytes, size_t n)
{
    return n < sizeof(struct header) ? 0 : bytes[offsetof(struct header, type)];
}

size_t dgram_card_write(uint8_t bytes[DGRAM_CARD], const struct dgram_card *c)
{
    struct card w = {htobe64(c->id), htobe32(c->epoch), htobe16(c->mtu), VERSION, (uint8_t)c->kind};
    memcpy(bytes, &w, sizeof w);
    bytes[sizeof w] = c->addr.n;
    memcpy(bytes + sizeof w + 1, c->addr.bytes, c->addr.n);
    return sizeof w + 1 + c->addr.n;
}

bool dgram_card_read(const uint8_t *bytes, size_t n, struct dgram_card *c)
{
    struct card w;
    if (n <= sizeof w || n != sizeof w + 1 + bytes[sizeof w] || bytes[sizeof w] > DGRAM_ADDR) return false;
    memcpy(&w, bytes, sizeof w);
    if (w.version != VERSION || be16toh(w.mtu) < DGRAM_MTU_MIN || !w.id) return false;
    *c = (struct dgram_card){
        be64toh(w.id), be32toh(w.epoch), be16toh(w.mtu), (enum dgram_kind)w.kind, {bytes[sizeof w], {0}}};
    memcpy(c->addr.bytes, bytes + sizeof w + 1, c->addr.n);
    return true;
}
