/* circle.c - see circle.h. */
#include "circle.h"
#include "../../seed.h"
#include "net.h"

#include "base/err.h"
#include "transport/dgram/faults.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct parcel {
    struct dgram_message message;
    unsigned from, to;
    uint8_t bytes[];
};

struct label { /* the first bytes of a message, as far as it has them */
    uint64_t number;
    uint32_t from, to;
};

struct member members[CIRCLE];
const uint8_t circle_key[CRYPTO_KEY] = "a key of thirty-two bytes, no m";
uint64_t circle_seed = 1;

static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

static uint8_t byte_of(const struct label *l, size_t at)
{
    return (uint8_t)(mix(circle_seed + l->number * 1000003 + l->from * 131 + l->to + at / 8 * 7919) >> at % 8 * 8);
}

static void write_bytes(uint8_t *bytes, size_t n, const struct label *l)
{
    for (size_t i = 0; i < n; i++) bytes[i] = byte_of(l, i);
    if (n >= sizeof *l) memcpy(bytes, l, sizeof *l);
}

static bool right_bytes(const uint8_t *bytes, size_t n, const struct label *l)
{
    uint8_t *expect = malloc(n + 1);
    if (!expect) abort();
    write_bytes(expect, n, l);
    bool right = !memcmp(bytes, expect, n);
    free(expect);
    return right;
}

/* ---- call-backs ---- */

static void done(struct dgram_message *m, int rc)
{
    struct parcel *p = container_of(m, struct parcel, message);
    struct member *me = &members[p->from];
    if (rc) {
        me->failed[p->to]++;
        snprintf(me->words, sizeof me->words, "%s", err_words());
    } else {
        me->done[p->to]++;
    }
    free(p);
}

/* Who an unknown peer is, is in its message. */
static unsigned sender_of(struct member *me, struct dgram_peer *peer, const void *data, size_t n)
{
    for (unsigned j = 0; j < CIRCLE; j++)
        if (me->peers[j] == peer) return j;
    struct label l = {.from = CIRCLE - 1};
    if (n >= sizeof l) memcpy(&l, data, sizeof l);
    me->strangers++;
    unsigned from = l.from % CIRCLE;
    if (!me->peers[from]) me->peers[from] = peer;
    return from;
}

static bool deliver(void *arg, struct dgram_peer *peer, const void *data, size_t n)
{
    struct member *me = arg;
    if (me->full) return false;
    unsigned from = sender_of(me, peer, data, n);
    struct label l = {me->came[from]++, from, (uint32_t)(me - members)};
    if (!right_bytes(data, n, &l)) me->wrong++;
    return true;
}

static void failed(void *arg, struct dgram_peer *peer, int code)
{
    struct member *me = arg;
    (void)peer;
    (void)code;
    me->lost++;
    snprintf(me->words, sizeof me->words, "%s", err_words());
}

/* ---- members ---- */

struct dgram_params circle_params(void)
{
    return (struct dgram_params){.patience = 20000000000u, .window = DGRAM_WINDOW, .seq_bits = 32, .secret = circle_key};
}

void member_open(unsigned i, struct dgram_wire *wire, const char *faults, const struct dgram_params *params)
{
    struct dgram_params own = params ? *params : circle_params();
    memset(&members[i], 0, sizeof members[i]);
    own.crypto = &tern_crypto_sodium;
    own.wire = wire;
    own.arg = &members[i];
    own.deliver = deliver;
    own.failed = failed;
    if (faults_wrap(&own.wire, faults) || dgram_open(&members[i].ep, &own)) {
        printf("# %s\n", err_words());
        abort();
    }
}

void member_close(unsigned i)
{
    if (members[i].ep) dgram_close(members[i].ep);
    memset(&members[i], 0, sizeof members[i]);
}

void member_meet(unsigned i, unsigned j)
{
    uint8_t card[DGRAM_CARD];
    size_t n = dgram_card(members[j].ep, card);
    if (dgram_peer_open(members[i].ep, card, n, &members[i].peers[j])) abort();
}

void member_send(unsigned i, unsigned j, size_t n)
{
    struct member *me = &members[i];
    struct label l = {me->sent[j]++, i, j};
    struct parcel *p = malloc(sizeof *p + n);
    if (!p) abort();
    *p = (struct parcel){.message = {.data = p->bytes, .n = n, .done = done}, .from = i, .to = j};
    write_bytes(p->bytes, n, &l);
    if (!dgram_send(me->peers[j], &p->message)) return;
    me->failed[j]++;
    snprintf(me->words, sizeof me->words, "%s", err_words());
    free(p);
}

void member_send_some(unsigned i, unsigned j, unsigned count, size_t most)
{
    for (unsigned k = 0; k < count; k++) {
        uint64_t r = mix(circle_seed ^ (members[i].sent[j] << 20) ^ i << 8 ^ j);
        member_send(i, j, k ? r % (most + 1) : max_size(16, r % (most + 1))); /* the first one introduces us */
    }
}

bool circle_right(void)
{
    bool right = true;
    for (unsigned i = 0; i < CIRCLE; i++) {
        right &= !members[i].wrong;
        for (unsigned j = 0; j < CIRCLE; j++) {
            right &= members[i].done[j] == members[i].sent[j] && !members[i].failed[j];
            right &= members[j].came[i] == members[i].sent[j];
        }
    }
    return right;
}

uint64_t circle_under_way(void)
{
    uint64_t n = 0;
    for (unsigned i = 0; i < CIRCLE; i++)
        for (unsigned j = 0; j < CIRCLE; j++) n += members[i].sent[j] - members[i].done[j] - members[i].failed[j];
    return n;
}

static uint64_t next_event(void)
{
    uint64_t at = net_next();
    for (unsigned i = 0; i < CIRCLE; i++)
        if (members[i].ep) at = min_size(at, dgram_next_timeout(members[i].ep));
    return at;
}

void circle_run(uint64_t limit)
{
    uint64_t end = net_now + limit, at;
    while ((at = next_event()) <= end) {
        if (at > net_now) net_now = at;
        for (unsigned i = 0; i < CIRCLE; i++)
            if (members[i].ep) dgram_progress(members[i].ep, net_now);
    }
    net_now = end;
}

/* ---- tests in simulated time ---- */

void circle_pair(const char *faults, const struct dgram_params *params)
{
    char words[128];
    for (unsigned i = 0; i < 2; i++) {
        snprintf(words, sizeof words, "seed=%llu,%s", (unsigned long long)circle_seed + i, faults);
        member_open(i, net_open(i, CIRCLE_MTU), *faults ? words : "", params);
    }
    member_meet(0, 1);
    member_meet(1, 0);
}

void member_forget(unsigned i, unsigned j)
{
    dgram_forget(members[i].peers[j]);
    members[i].peers[j] = NULL;
}

struct dgram_stats member_stats(unsigned i) { return dgram_stats(members[i].ep); }

void circle_read_seed(void)
{
    circle_seed = seed_open();
}

int circle_start(void **state)
{
    (void)state;
    net_reset();
    return 0;
}

int circle_stop(void **state)
{
    (void)state;
    for (unsigned i = 0; i < CIRCLE; i++) member_close(i);
    net_reset();
    return 0;
}
