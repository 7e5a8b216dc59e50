/* handshake.c - the steps of handshake.h. */
#include "base/handshake.h"

#include <endian.h>
#include <string.h>

#define MAGIC 0x5445524eu /* "TERN" */
#define VERSION 2

struct hello {
    uint32_t magic;
    uint16_t version, kind;
    uint64_t from_job, to_job, from, to;
    uint8_t nonce[HANDSHAKE_NONCE];
};
static_assert(sizeof(struct hello) == 72, "wire format");

struct challenge {
    uint8_t nonce[HANDSHAKE_NONCE], tag[CRYPTO_TAG];
};
static_assert(sizeof(struct challenge) == 64, "wire format");

struct verdict {
    uint32_t magic;
    uint16_t version, verdict;
};
static_assert(sizeof(struct verdict) == 8, "wire format");

enum step { HELLO, CHALLENGE, PROOF, DECISION, VERDICT, OVER };
static const uint8_t wants[] = {sizeof(struct hello), sizeof(struct challenge), CRYPTO_TAG, 0, sizeof(struct verdict), 0};

static void put(struct handshake *h, const void *bytes, size_t n)
{
    memcpy(h->out, bytes, n);
    h->out_len = (uint8_t)n;
}

static enum handshake_state bad(struct handshake *h, const char *why)
{
    h->why = why;
    h->step = OVER;
    return HANDSHAKE_BAD;
}

/* A tag that none but the two sides can make, of this handshake alone. By 'A' the acceptor and by 'C' the connector
 * show that they have the key; 'a' and 'c' are the keys of what they send, and are themselves never sent. */
static void make_tag(const struct handshake *h, uint8_t side, uint8_t tag[CRYPTO_TAG])
{
    uint8_t text[1 + sizeof h->hello + sizeof h->nonce];
    text[0] = side;
    memcpy(text + 1, h->hello, sizeof h->hello);
    memcpy(text + 1 + sizeof h->hello, h->nonce, sizeof h->nonce);
    h->crypto->tag(tag, text, sizeof text, h->key);
}

static bool tag_is_right(const struct handshake *h, uint8_t side, const uint8_t *tag)
{
    uint8_t own[CRYPTO_TAG];
    make_tag(h, side, own);
    return h->crypto->same(own, tag);
}

static void begin(struct handshake *h, const struct crypto *crypto, const uint8_t *key, enum handshake_kind kind, uint64_t to)
{
    memset(h, 0, sizeof *h);
    h->crypto = crypto;
    h->key = key;
    h->kind = (uint16_t)kind;
    h->to = to;
}

void handshake_connect(struct handshake *h, const struct crypto *crypto, const uint8_t *key, enum handshake_kind kind,
                       uint64_t from, uint64_t to)
{
    begin(h, crypto, key, kind, to);
    h->from = from;
    struct hello m = {htobe32(MAGIC), htobe16(VERSION), htobe16((uint16_t)kind), 0, 0, htobe64(from), htobe64(to), {0}};
    crypto->random(m.nonce, sizeof m.nonce);
    memcpy(h->hello, &m, sizeof m);
    put(h, &m, sizeof m);
    h->step = CHALLENGE;
}

void handshake_accept(struct handshake *h, const struct crypto *crypto, const uint8_t *key, enum handshake_kind kind,
                      uint64_t to)
{
    begin(h, crypto, key, kind, to);
    h->acceptor = true;
    h->step = HELLO;
}

bool handshake_between(struct handshake *h, uint64_t own, uint64_t other, bool (*key_of)(uint64_t, uint8_t[CRYPTO_KEY]))
{
    struct hello m;
    h->key = h->pair_key;
    h->key_of = key_of;
    h->from_job = h->acceptor ? 0 : own;
    h->to_job = h->acceptor ? own : other;
    if (h->acceptor) return true;
    memcpy(&m, h->hello, sizeof m);
    m.from_job = htobe64(own);
    m.to_job = htobe64(other);
    memcpy(h->hello, &m, sizeof m);
    put(h, &m, sizeof m);
    return key_of(other, h->pair_key);
}

size_t handshake_wants(const struct handshake *h) { return (size_t)(wants[h->step] - h->have); }

bool handshake_spoken(const struct handshake *h) { return h->step != HELLO; }

static enum handshake_state take_hello(struct handshake *h)
{
    struct hello m;
    memcpy(&m, h->in, sizeof m);
    if (be32toh(m.magic) != MAGIC) return bad(h, "not a handshake of Tern");
    if (be16toh(m.version) != VERSION) return bad(h, "another version of Tern");
    if (be16toh(m.kind) != h->kind) return bad(h, "a connection of another kind");
    bool mine = be64toh(m.to_job) == h->to_job && (h->to == UINT64_MAX || be64toh(m.to) == h->to);
    if (!mine) return bad(h, "meant for another process");
    h->from_job = be64toh(m.from_job);
    if (h->key_of && !h->key_of(h->from_job, h->pair_key)) return bad(h, "of a job that is not known here");
    h->from = be64toh(m.from);
    h->to = be64toh(m.to);
    memcpy(h->hello, &m, sizeof m);
    h->crypto->random(h->nonce, sizeof h->nonce);
    struct challenge c;
    memcpy(c.nonce, h->nonce, sizeof c.nonce);
    make_tag(h, 'A', c.tag);
    put(h, &c, sizeof c);
    h->step = PROOF;
    return HANDSHAKE_MORE;
}

static enum handshake_state take_challenge(struct handshake *h)
{
    struct challenge c;
    uint8_t proof[CRYPTO_TAG];
    memcpy(&c, h->in, sizeof c);
    memcpy(h->nonce, c.nonce, sizeof h->nonce);
    if (!tag_is_right(h, 'A', c.tag)) return bad(h, "the other side has another key");
    make_tag(h, 'C', proof);
    put(h, proof, sizeof proof);
    h->step = VERDICT;
    return HANDSHAKE_MORE;
}

static enum handshake_state take_proof(struct handshake *h)
{
    if (!tag_is_right(h, 'C', h->in)) return bad(h, "wrong key");
    h->step = DECISION;
    return HANDSHAKE_ASK;
}

static enum handshake_state take_verdict(struct handshake *h)
{
    struct verdict v;
    memcpy(&v, h->in, sizeof v);
    h->verdict = be16toh(v.verdict);
    if (be32toh(v.magic) != MAGIC || h->verdict < VERDICT_WELCOME || h->verdict > VERDICT_FULL)
        return bad(h, "no verdict");
    h->step = OVER;
    return HANDSHAKE_DONE;
}

enum handshake_state handshake_input(struct handshake *h, const void *bytes, size_t n)
{
    if (n > handshake_wants(h)) return bad(h, "more bytes than awaited");
    if (n) memcpy(h->in + h->have, bytes, n);
    h->have = (uint8_t)(h->have + n);
    if (h->step == DECISION) return HANDSHAKE_ASK;
    if (h->step == OVER) return h->why ? HANDSHAKE_BAD : HANDSHAKE_DONE;
    if (h->have < wants[h->step]) return HANDSHAKE_MORE;
    h->have = 0;
    switch (h->step) {
    case HELLO: return take_hello(h);
    case CHALLENGE: return take_challenge(h);
    case PROOF: return take_proof(h);
    default: return take_verdict(h);
    }
}

void handshake_key(const struct handshake *h, bool sends, uint8_t key[CRYPTO_KEY])
{
    static_assert(CRYPTO_KEY == CRYPTO_TAG, "a tag is a key");
    make_tag(h, h->acceptor == sends ? 'a' : 'c', key);
}

void handshake_answer(struct handshake *h, enum handshake_verdict verdict)
{
    struct verdict v = {htobe32(MAGIC), htobe16(VERSION), htobe16((uint16_t)verdict)};
    h->verdict = (uint16_t)verdict;
    h->step = OVER;
    put(h, &v, sizeof v);
}
