/*
 * progress_party_test.c - two processes exchange datagrams while both do nothing but wait: the wait sleeps on the datagram
 * layer's descriptor and time, beside the doorbell and with tcp or without, and uses next to no time of a core.
 */
#include "party.h"

#include "base/clock.h"
#include "base/err.h"
#include "obj/errhandler.h"
#include "obj/group.h"
#include "obj/request.h"
#include "pt2pt/api.h"
#include "pt2pt/lane.h"
#include "pt2pt/lanes.h"
#include "transport/dgram/dgram.h"
#include "transport/dgram/faults.h"
#include "transport/dgram/udp.h"
#include "transport/progress.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { ROUNDS = 100, LONGEST = 6000 };

static const char *transports, *faults;
static uint64_t seed;

static struct {
    struct dgram *ep;
    struct dgram_peer *peer;
    uint64_t came, done;
    bool wrong;
} me;

/* Words of the party's page. */
enum { CARD = 0 /* 16 words each */, SENT = 32, OVER = 34 };

static uint32_t other(void) { return 1 - party_rank; }

/* ---- messages: number i, of a length and with bytes that follow from it ---- */

static size_t length_of(uint64_t i) { return 16 + (size_t)(i * 7919 % LONGEST); }

static void write_message(uint8_t *bytes, uint64_t i)
{
    for (size_t k = 0; k < length_of(i); k++) bytes[k] = (uint8_t)(i * 31 + k * 7);
}

static bool deliver(void *arg, struct dgram_peer *peer, const void *data, size_t n)
{
    uint8_t right[16 + LONGEST];
    (void)arg;
    (void)peer;
    write_message(right, me.came);
    if (n != length_of(me.came) || memcmp(data, right, n)) me.wrong = true;
    me.came++;
    return true;
}

static void done(struct dgram_message *m, int rc)
{
    if (rc) me.wrong = true;
    me.done++;
    free(m);
}

static bool send_number(uint64_t i)
{
    struct dgram_message *m = malloc(sizeof *m + length_of(i));
    *m = (struct dgram_message){.data = m + 1, .n = length_of(i), .done = done};
    write_message((uint8_t *)(m + 1), i);
    lane_enter(lanes_first());
    int rc = dgram_send(me.peer, m);
    lane_leave(lanes_first());
    PARTY_CHECK(!rc);
    return true;
}

/* ---- waiting ---- */

static bool has_come(void *n) { return me.came >= *(uint64_t *)n; }
static bool is_done(void *n) { return me.done >= *(uint64_t *)n; }
static bool other_is_over(void *n) { return atomic_load(&party->sign[OVER + other()]) >= *(uint64_t *)n; }

static void wait_for(bool (*ready)(void *), uint64_t n)
{
    lane_enter(lanes_first());
    lane_wait(lanes_first(), ready, &n, NULL);
    lane_leave(lanes_first());
}

/* Tells the other one by its doorbell, and waits for the other's, while the datagram layer answers for what was lost. */
static void part(uint64_t n)
{
    atomic_store(&party->sign[OVER + party_rank], n);
    lane_enter(lanes_first());
    peer_wake(other());
    lane_leave(lanes_first());
    wait_for(other_is_over, n);
}

/* ---- endpoints ---- */

static unsigned descriptors(void)
{
    DIR *d = opendir("/proc/self/fd");
    unsigned n = 0;
    while (readdir(d)) n++;
    closedir(d);
    return n;
}

static bool open_endpoint(void)
{
    static const uint8_t secret[CRYPTO_KEY] = "known to both of the processes";
    struct dgram_params params;
    char words[128];
    dgram_params_init(&params);
    params.crypto = &tern_crypto_sodium;
    params.secret = secret;
    params.deliver = deliver;
    snprintf(words, sizeof words, "seed=%llu,%s", (unsigned long long)seed + party_rank, faults);
    PARTY_CHECK(!udp_open("127.0.0.1", 0, 0, 0, &params.wire));
    PARTY_CHECK(!faults_wrap(&params.wire, *faults ? words : ""));
    PARTY_CHECK(!dgram_open(&me.ep, &params));
    PARTY_CHECK(!pt_progress_open(dgram_step(me.ep)));
    return true;
}

/* Each learns the other's card. */
static bool meet(void)
{
    uint8_t *cards = (uint8_t *)&party->sign[CARD];
    static_assert(DGRAM_CARD < 128, "16 words each");
    cards[128 * party_rank] = (uint8_t)dgram_card(me.ep, cards + 128 * party_rank + 1);
    party_meet();
    const uint8_t *card = cards + 128 * other();
    PARTY_CHECK(!dgram_peer_open(me.ep, card + 1, card[0], &me.peer));
    return true;
}

static void close_endpoint(void)
{
    pt_progress_close(dgram_step(me.ep));
    dgram_close(me.ep);
}

static bool open_layers(void)
{
    PARTY_CHECK(party_open(transports));
    errh_open();
    group_open(0);
    PARTY_CHECK(!request_open());
    PARTY_CHECK(!type_open());
    PARTY_CHECK(!pt_open(false));
    return true;
}

static void close_layers(void)
{
    party_meet();
    pt_close();
    type_close();
    group_close();
}

/* ---- what it costs ---- */

struct cost {
    uint64_t ns, cpu_ns, sleeps;
};

static struct cost cost_now(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (struct cost){clock_ns(), ((uint64_t)u.ru_utime.tv_sec + (uint64_t)u.ru_stime.tv_sec) * 1000000000u +
                                         ((uint64_t)u.ru_utime.tv_usec + (uint64_t)u.ru_stime.tv_usec) * 1000u,
                         (uint64_t)u.ru_nvcsw};
}

static struct cost cost_since(struct cost c)
{
    struct cost now = cost_now();
    return (struct cost){now.ns - c.ns, now.cpu_ns - c.cpu_ns, now.sleeps - c.sleeps};
}

static uint64_t datagrams_sent(void)
{
    struct dgram_stats s = dgram_stats(me.ep);
    return s.segments + s.resent + s.acks;
}

/* ---- the tests ---- */

/* In turn. Every sleep is ended by a datagram or by the time of a retransmission, but for a few. */
static bool take_turns(void)
{
    struct cost c = cost_now();
    for (uint64_t i = 0; i < ROUNDS; i++) {
        if (party_rank == 0) PARTY_CHECK(send_number(i));
        wait_for(has_come, i + 1);
        if (party_rank == 1) PARTY_CHECK(send_number(i));
    }
    wait_for(is_done, ROUNDS);
    atomic_store(&party->sign[SENT + party_rank], datagrams_sent());
    part(1);
    c = cost_since(c);
    struct dgram_stats s = dgram_stats(me.ep);
    uint64_t events = atomic_load(&party->sign[SENT + other()]) + datagrams_sent() + s.rounds;
    fprintf(stderr, "# rank %u, %s, \"%s\": %d messages each way in %.1f ms, %.1f ms of a core, %llu sleeps, %llu events, %llu sent again\n",
            party_rank, transports, faults, ROUNDS, (double)c.ns / 1e6, (double)c.cpu_ns / 1e6, (unsigned long long)c.sleeps,
            (unsigned long long)events, (unsigned long long)s.resent);
    PARTY_CHECK(!me.wrong && me.came == ROUNDS && me.done == ROUNDS);
    PARTY_CHECK(c.sleeps < 2 * events + c.ns / 100000000u + 20);
    if (*faults) PARTY_CHECK(s.resent > 0 && c.cpu_ns < c.ns / 2);
    return true;
}

/* Rank 0 waits for a message that comes after a while: it sleeps once, or a few times. */
static bool wait_long(void)
{
    struct cost c = cost_now();
    if (party_rank == 1) {
        usleep(200000);
        PARTY_CHECK(send_number(ROUNDS));
        wait_for(is_done, ROUNDS + 1);
    } else {
        wait_for(has_come, ROUNDS + 1);
        c = cost_since(c);
        PARTY_CHECK(c.cpu_ns < c.ns / 10);
        PARTY_CHECK(c.sleeps < 30);
    }
    part(2);
    return true;
}

static bool exchange(void)
{
    PARTY_CHECK(open_layers());
    part(0); /* the processes know each other */
    unsigned before = descriptors();
    PARTY_CHECK(open_endpoint() && meet());
    PARTY_CHECK(take_turns() && wait_long());
    close_endpoint();
    PARTY_CHECK(descriptors() == before);
    PARTY_CHECK(wires_beyond_node() || !bell_has_socket(wires_bell()));
    part(3); /* which wakes as it did before */
    close_layers();
    return true;
}

static void sleepers_exchange_datagrams(void **state)
{
    static const char *const wires[] = {"self,shm", "self,shm,tcp"}, *const kinds[] = {"", "loss=20,dup=5"};
    (void)state;
    for (unsigned w = 0; w < ARRAY_LEN(wires); w++)
        for (unsigned f = 0; f < ARRAY_LEN(kinds); f++) {
            transports = wires[w];
            faults = kinds[f];
            assert_true(party_run(2, exchange));
        }
}

/* An endpoint for each connection, and doorbells in between: whichever way a process sleeps, the other wakes it. A sleep
 * that is not ended by the doorbell lasts half a second. */
static bool come_and_go(void)
{
    PARTY_CHECK(open_layers());
    uint64_t begin = clock_ns();
    for (uint64_t i = 1; i <= ROUNDS; i++) {
        bool opens = i % 2 == party_rank || i % 3 == 0;
        if (opens) PARTY_CHECK(open_endpoint());
        part(3 * i);
        part(3 * i + 1);
        if (opens) close_endpoint();
        part(3 * i + 2);
    }
    PARTY_CHECK(clock_ns() - begin < 3 * ROUNDS * UINT64_C(100000000));
    close_layers();
    return true;
}

static void doorbells_wake_before_and_after(void **state)
{
    (void)state;
    transports = "self,shm";
    faults = "";
    assert_true(party_run(2, come_and_go));
    setenv("TERN_SPIN", "never", 1);
    assert_true(party_run(2, come_and_go));
    unsetenv("TERN_SPIN");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sleepers_exchange_datagrams),
        cmocka_unit_test(doorbells_wake_before_and_after),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    seed = party_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
