/*
 * callers_test.c - rules of src/transport/dgram/dgram.h for peers that introduce themselves: newcomers are bounded in number and in
 * memory; a thousand honest ones wait as long as they like; one that is dropped is told so.
 *
 * Callers are packets with the right key that are made here; the one that hears the answers is member 0 of circle.h.
 */
#include "net.h"
#include "circle.h"

#include "base/err.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#define MTU 2048
#define HELLO 10000 /* bytes of a table that goes by datagrams */

static uint8_t key[CRYPTO_KEY]; /* that packets are tagged with */
static uint64_t callee;         /* id of the endpoint that is called */
static struct dgram *ep;
static bool busy; /* takes nothing now */
static unsigned taken;

static bool take(void *arg, struct dgram_peer *peer, const void *data, size_t n)
{
    (void)arg, (void)data;
    if (busy) return false;
    taken += n == HELLO;
    dgram_forget(peer);
    return true;
}

static void forget(void *arg, struct dgram_peer *peer, int code)
{
    (void)arg, (void)code;
    dgram_forget(peer);
}

static int start(void **state)
{
    static const char purpose[] = "Tern datagrams 1";
    circle_start(state);
    struct dgram_params p = circle_params();
    p.crypto = &tern_crypto_sodium;
    p.wire = net_open(1, MTU);
    p.deliver = take;
    p.failed = forget;
    net_queue = 100000;
    busy = true;
    taken = 0;
    if (dgram_open(&ep, &p)) return 1;
    callee = dgram_id(ep);
    tern_crypto_sodium.tag(key, purpose, sizeof purpose, circle_key);
    return 0;
}

static int stop(void **state)
{
    dgram_close(ep);
    return circle_stop(state);
}

/* The segment `seq` of a message of `total` bytes, whose first byte is number `at` of it. */
static size_t call(uint64_t id, uint64_t seq, size_t total, size_t at)
{
    static const uint8_t zeros[MTU];
    uint8_t bytes[MTU], card[DGRAM_CARD];
    struct dgram_card own = {id, 1, MTU, DGRAM_TEST, {1, {40}}};
    struct dgram_packet k = {.type = DGRAM_DATA, .flags = DGRAM_FIRST, .epoch = 1, .from = id, .to = callee, .seq = seq, .window = 10};
    k.card_len = (uint8_t)dgram_card_write(card, &own);
    k.card = card;
    k.left = (uint32_t)(total - at);
    k.n = min_size(total - at, MTU - DGRAM_HEADER - DGRAM_CARD);
    k.data = zeros;
    if (!at) k.flags |= DGRAM_START;
    memcpy(bytes + DGRAM_HEADER + k.card_len, zeros, k.n);
    net_inject(40, 1, bytes, dgram_packet_write(bytes, &k, 32, &tern_crypto_sodium, key));
    return k.n;
}

static void call_with(uint64_t id, size_t total, size_t most)
{
    size_t at = 0;
    for (uint64_t seq = 0; at < most; seq++) at += call(id, seq, total, at);
}

static void run(void)
{
    net_now += 2 * NET_TRIP;
    while (dgram_progress(ep, net_now) > 0) continue;
}

static void as_many_as_one_likes(void **state)
{
    (void)state;
    for (unsigned i = 1; i <= 3 * DGRAM_NEWCOMERS; i++) {
        call(i, 0, DGRAM_MESSAGE, 0);
        if (i % 1000 == 0) run();
    }
    run();
    struct dgram_stats s = dgram_stats(ep);
    assert_int_equal(s.newcomers, DGRAM_NEWCOMERS);
    assert_int_equal(s.dropped, 2 * DGRAM_NEWCOMERS);
    assert_true(s.newcomer_bytes <= DGRAM_NEWCOMER_BYTES);
}

/* Of a message of 16 MB whose first bytes have come, 16 MB are not kept; of those that come, all together the bound. */
static void as_long_as_one_likes(void **state)
{
    (void)state;
    call(1, 0, DGRAM_MESSAGE, 0);
    run();
    assert_in_range(dgram_stats(ep).newcomer_bytes, MTU - DGRAM_HEADER - DGRAM_CARD, 65536);
    for (unsigned id = 2; id < 12; id++) {
        call_with(id, DGRAM_MESSAGE, DGRAM_MESSAGE / 4 * 3);
        run();
        assert_true(dgram_stats(ep).newcomer_bytes <= DGRAM_NEWCOMER_BYTES);
    }
    assert_in_range(dgram_stats(ep).newcomers, 2, 6);
}

/* Segments that came before their turn are counted as well, and all that is counted is given back. */
static void out_of_turn(void **state)
{
    (void)state;
    for (unsigned id = 1; id <= 4; id++)
        for (uint64_t seq = 5; seq; seq--) call(id, seq, HELLO, (size_t)seq * (MTU - DGRAM_HEADER - DGRAM_CARD));
    run();
    assert_in_range(dgram_stats(ep).newcomer_bytes, 4 * (HELLO - 2 * MTU), 8 * HELLO);
    for (unsigned id = 1; id <= 4; id++) call(id, 0, HELLO, 0);
    busy = false;
    run();
    assert_int_equal(taken, 4);
    assert_int_equal(dgram_stats(ep).newcomers, 0);
    assert_int_equal(dgram_stats(ep).newcomer_bytes, 0);
}

static void a_thousand_wait(void **state)
{
    (void)state;
    for (unsigned id = 1; id <= 1000; id++) call_with(id, HELLO, HELLO);
    run();
    for (unsigned s = 0; s < 100; s++) {
        net_now += SECOND;
        run();
    }
    assert_int_equal(dgram_stats(ep).newcomers, 1000);
    assert_int_equal(dgram_stats(ep).dropped, 0);
    busy = false;
    run();
    assert_int_equal(taken, 1000);
}

/* The one that has been silent for longest goes: one that has said something lately stays, until others have called since; then it is told. */
static void the_silent_one_goes(void **state)
{
    uint8_t card[DGRAM_CARD];
    (void)state;
    member_open(0, net_open(0, MTU), "", NULL);
    assert_int_equal(dgram_peer_open(members[0].ep, card, dgram_card(ep, card), &members[0].peers[1]), 0);
    member_send(0, 1, 1000);
    dgram_progress(members[0].ep, net_now);
    run();
    assert_int_equal(dgram_stats(ep).newcomers, 1);
    for (unsigned i = 1; i <= DGRAM_NEWCOMERS; i++) { /* it says something between the first half and the second one */
        call(i, 0, HELLO, 0);
        if (i % 256 == 0) run();
        if (i != DGRAM_NEWCOMERS / 2) continue;
        dgram_watch(members[0].peers[1], true);
        for (int t = 0; t < 20; t++) {
            run();
            dgram_progress(members[0].ep, net_now += SECOND / 10);
        }
        run();
    }
    run();
    dgram_progress(members[0].ep, net_now += SECOND / 100);
    assert_int_equal(dgram_stats(ep).dropped, 1);
    assert_int_equal(members[0].lost, 0);
    for (unsigned i = 1; i <= DGRAM_NEWCOMERS; i++) call(DGRAM_NEWCOMERS + i, 0, HELLO, 0);
    run();
    dgram_progress(members[0].ep, net_now += SECOND / 100);
    assert_int_equal(members[0].lost, 1);
    assert_non_null(strstr(members[0].words, "too many processes call the one at station 1"));
}

#define RULE(name) cmocka_unit_test_setup_teardown(name, start, stop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        RULE(as_many_as_one_likes), RULE(as_long_as_one_likes), RULE(out_of_turn), RULE(a_thousand_wait), RULE(the_silent_one_goes),
    };
    circle_read_seed();
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
