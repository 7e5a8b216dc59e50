/*
 * dgram_fuzz.c - datagrams that nobody of the library has made, to endpoints of
 * src/transport/dgram/dgram.h: random ones, changed ones, and ones that are genuine by their tag
 * but say anything.
 */
#include "fuzz.h"

#include "dgram/net.h"
#include "dgram/circle.h"

#include <stdlib.h>
#include <string.h>

#define INJECTED 200 /* datagrams in one case */

static uint8_t key[CRYPTO_KEY]; /* of the packets, made of circle_key as dgram_open does */

static void parse(void)
{
    uint8_t bytes[300], *own;
    struct dgram_packet p;
    struct dgram_card c;
    size_t n = fuzz_below(sizeof bytes);
    fuzz_bytes(bytes, n);
    if (n > 20 && fuzz_below(4)) {
        bytes[16] = 1;
        bytes[17] = (uint8_t)fuzz_below(7);
        bytes[19] = (uint8_t)fuzz_below(DGRAM_CARD + 8);
        if (n > 56) bytes[54] = bytes[55] = 0;
    }
    if (!(own = malloc(n + 1))) abort();
    memmove(own + 1, bytes, n); /* ends with them */
    if (dgram_packet_parse(own + 1, n, &p)) {
        FUZZ_RULE(p.data + p.n == own + 1 + n && p.card + p.card_len == p.data, "card and data are in the packet");
        FUZZ_RULE(p.type >= DGRAM_DATA && p.type <= DGRAM_GONE, "types are checked");
        FUZZ_RULE(!dgram_packet_genuine(own + 1, n, &p, &tern_crypto_sodium, key), "random bytes are not genuine");
    }
    if (dgram_card_read(own + 1, n, &c))
        FUZZ_RULE(c.addr.n <= DGRAM_ADDR && c.mtu >= DGRAM_MTU_MIN, "cards are checked");
    free(own);
}

static struct {
    size_t n;
    uint8_t bytes[2048];
} tape[64];
static unsigned taped;

static void record(unsigned from, unsigned to, const void *bytes, size_t n)
{
    (void)from;
    (void)to;
    if (n > sizeof tape[0].bytes) return;
    unsigned at = taped++ % 64;
    tape[at].n = n;
    memcpy(tape[at].bytes, bytes, n);
}

static void open_pair(void)
{
    net_reset();
    circle_seed = fuzz_seed;
    circle_pair(fuzz_below(2) ? "loss=10,dup=10,reorder=10" : "", NULL);
    taped = 0;
    net_tap = record;
    member_send_some(0, 1, 5, 8000);
    member_send_some(1, 0, 5, 8000);
}

/* While two talk, a third sends what it has heard, changed or not, and noise. */
static void strangers(void)
{
    open_pair();
    for (unsigned i = 0; i < INJECTED; i++) {
        uint8_t bytes[2048];
        size_t n = 1 + fuzz_below(sizeof bytes);
        circle_run(20000);
        if (taped && fuzz_below(8)) {
            unsigned at = (unsigned)fuzz_below(taped < 64 ? taped : 64);
            n = tape[at].n;
            memcpy(bytes, tape[at].bytes, n);
            if (fuzz_below(2)) fuzz_mutate(bytes, n);
            if (!fuzz_below(8)) n = 1 + fuzz_below(n);
        } else {
            fuzz_bytes(bytes, n);
        }
        net_tap = NULL;
        net_inject(40, (unsigned)fuzz_below(2), bytes, n);
        net_tap = record;
    }
    circle_run(300 * SECOND);
    FUZZ_RULE(circle_right(), "what two say to each other arrives once and in order");
    FUZZ_RULE(members[0].strangers + members[1].strangers == 0, "nobody else says anything");
    circle_stop(NULL);
}

/* Numbers near those that matter. */
static uint64_t number(void)
{
    uint64_t r = fuzz_below(4);
    return r == 0 ? fuzz_random() : r == 1 ? fuzz_below(4) : r == 2 ? fuzz_below(200) : (uint64_t)0 - fuzz_below(200);
}

static uint64_t some_id(const uint64_t own[2])
{
    uint64_t r = fuzz_below(8);
    return r < 2 ? own[r] : r; /* few others, so that they meet again */
}

static void inject_nonsense(const uint64_t ids[2])
{
    static const uint8_t data[512];
    uint8_t bytes[1024], card[DGRAM_CARD];
    unsigned to = (unsigned)fuzz_below(2);
    struct dgram_packet k = {.type = (uint8_t)(1 + fuzz_below(5)),
                             .flags = (uint8_t)fuzz_below(8),
                             .window = (uint16_t)number(),
                             .epoch = (uint32_t)fuzz_below(3),
                             .left = (uint32_t)number(),
                             .from = some_id(ids),
                             .to = fuzz_below(8) ? ids[to] : some_id(ids),
                             .seq = number(),
                             .ack = number(),
                             .got = {fuzz_below(2) ? some_id(ids) : number(), number()},
                             .data = data};
    struct dgram_card c = {
        k.from, (uint32_t)fuzz_below(3), (uint16_t)number(), DGRAM_TEST, {1, {(uint8_t)fuzz_below(3)}}};
    if (k.type == DGRAM_DATA) k.n = fuzz_below(3) ? fuzz_below(sizeof data) : 0;
    if (fuzz_below(2) && k.type == DGRAM_DATA) k.left = (uint32_t)(k.n + fuzz_below(3) * fuzz_below(1000));
    if (k.flags & DGRAM_FIRST) {
        k.card = card;
        k.card_len = (uint8_t)dgram_card_write(card, &c);
        if (!fuzz_below(8)) k.card_len = (uint8_t)(1 + fuzz_below(k.card_len));
    }
    memcpy(bytes + DGRAM_HEADER + k.card_len, data, k.n);
    size_t n = dgram_packet_write(bytes, &k, 32, &tern_crypto_sodium, key);
    net_inject((unsigned)fuzz_below(3), to, bytes, n);
}

/* Whoever has the key can spoil the exchange, but it ends, and nothing else is hurt. */
static void insiders(void)
{
    uint64_t ids[2];
    uint8_t bytes[DGRAM_CARD];
    struct dgram_card c;
    open_pair();
    for (unsigned i = 0; i < 2; i++) {
        if (!dgram_card_read(bytes, dgram_card(members[i].ep, bytes), &c)) abort();
        ids[i] = c.id;
    }
    for (unsigned i = 0; i < INJECTED; i++) {
        inject_nonsense(ids);
        if (fuzz_below(2)) circle_run(NET_TRIP);
        if (!fuzz_below(50)) member_send_some(0, 1, 1, 100);
    }
    circle_run(300 * SECOND);
    FUZZ_RULE(circle_under_way() == 0, "every message is done, or failed, in bounded time");
    circle_stop(NULL);
}

int main(void)
{
    static const char purpose[] = "Tern datagrams 1";
    static const struct fuzz_part parts[] = {
        {"packets are taken apart within their bounds", parse, 1},
        {"strangers have no effect", strangers, INJECTED},
        {"nonsense by who has the key does no harm", insiders, INJECTED},
    };
    tern_crypto_sodium.tag(key, purpose, sizeof purpose, circle_key);
    return fuzz_main(parts, 3, 40000);
}
