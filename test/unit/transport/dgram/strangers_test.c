/*
 * strangers_test.c - rules of src/transport/dgram/dgram.h for what others send: packets of
 * another key, old ones, damaged ones and garbage have no effect.
 */
#include "net.h"
#include "circle.h"

#include "base/err.h"
#include "transport/dgram/past.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <string.h>
#include <stdlib.h>

static unsigned packets;
static void count_packets(unsigned from, unsigned to, const void *bytes, size_t n)
{
    (void)from;
    (void)to;
    (void)bytes;
    (void)n;
    packets++;
}

static struct recorded {
    unsigned from, to;
    size_t n;
    uint8_t bytes[CIRCLE_MTU];
} tape[4096];
static unsigned taped;

static void record(unsigned from, unsigned to, const void *bytes, size_t n)
{
    if (taped == ARRAY_LEN(tape) || n > CIRCLE_MTU) return;
    tape[taped] = (struct recorded){from, to, n, {0}};
    memcpy(tape[taped++].bytes, bytes, n);
}

/* Everything once more, from somewhere else. */
static void play(bool backwards)
{
    unsigned n = taped;
    net_tap = NULL;
    for (unsigned i = 0; i < n; i++) {
        const struct recorded *r = &tape[backwards ? n - 1 - i : i];
        net_inject(40, r->to, r->bytes, r->n);
        if (i % 50 == 0) circle_run(SECOND / 1000);
    }
    circle_run(SECOND);
}

static void record_exchange(void)
{
    taped = 0;
    net_tap = record;
    member_send_some(0, 1, 20, 10000);
    member_send_some(1, 0, 20, 10000);
    circle_run(10 * SECOND);
    net_tap = NULL;
    assert_true(circle_right());
    assert_true(taped > 50);
}

static void replay(void **state)
{
    (void)state;
    circle_pair("", NULL);
    record_exchange();
    play(false);
    play(true);
    assert_true(circle_right()); /* nothing came twice */
    assert_true(member_stats(1).twice > taped / 2); /* how many of them acknowledge only depends on the seed */
    member_send_some(0, 1, 20, 10000); /* in the middle of other traffic */
    play(true);
    member_send_some(1, 0, 20, 10000);
    play(false);
    circle_run(10 * SECOND);
    assert_true(circle_right());
    assert_int_equal(members[0].strangers + members[1].strangers, 0);
}

/* After the process of which they are was forgotten, and after it was forgotten that it was. */
static void replay_to_who_has_forgotten(void **state)
{
    (void)state;
    member_open(0, net_open(0, CIRCLE_MTU), "", NULL);
    member_open(1, net_open(1, CIRCLE_MTU), "", NULL);
    member_meet(0, 1);
    taped = 0;
    net_tap = record;
    member_send_some(0, 1, 20, 2000);
    circle_run(SECOND);
    assert_true(circle_right());
    member_forget(1, 0);
    play(false);
    assert_int_equal(members[1].came[0], 20);
    for (unsigned i = 0; i < PAST_SOME + 10; i++) {
        member_open(2, net_open(2, CIRCLE_MTU), "", NULL);
        member_meet(2, 1);
        member_send(2, 1, 64);
        circle_run(SECOND);
        member_forget(1, 2);
        members[1].came[2] = 0;
        member_close(2);
    }
    members[1].strangers = 0;
    play(false);
    play(true);
    assert_int_equal(members[1].came[0], 20);
    assert_int_equal(members[1].strangers, 0);
}

/* Packets of yesterday's process to today's at the same address. */
static void replay_to_the_next_process(void **state)
{
    (void)state;
    circle_pair("", NULL);
    record_exchange();
    member_close(1);
    member_open(1, net_open(1, CIRCLE_MTU), "", NULL);
    play(false);
    play(true);
    assert_int_equal(members[1].came[0], 0);
    assert_int_equal(member_stats(1).messages, 0);
}

/* With numbers of 8 bits an old packet has the number of a new one; its tag is wrong all the same. */
static void replay_after_wrap(void **state)
{
    struct dgram_params params = circle_params();
    (void)state;
    params.seq_bits = 8;
    params.window = 100;
    circle_pair("", &params);
    record_exchange();
    for (unsigned i = 0; i < 10; i++) {
        member_send_some(0, 1, 10, 20000);
        member_send_some(1, 0, 10, 20000);
        play(i % 2);
    }
    circle_run(10 * SECOND);
    assert_true(circle_right());
    assert_true(member_stats(0).refused + member_stats(1).refused > 100);
}

/* A stranger who sends a genuine introduction on from elsewhere does not get the answers. */
static unsigned to_the_stranger;
static void watch_stranger(unsigned from, unsigned to, const void *bytes, size_t n)
{
    (void)from;
    (void)bytes;
    (void)n;
    to_the_stranger += to == 40;
}

static void introduction_from_elsewhere(void **state)
{
    (void)state;
    circle_pair("", NULL);
    taped = 0;
    net_tap = record;
    member_send(0, 1, 100);
    dgram_progress(members[0].ep, net_now);
    assert_int_equal(taped, 1);
    net_open(1, CIRCLE_MTU)->own.n = 1; /* the original is lost */
    to_the_stranger = 0;
    net_tap = watch_stranger;
    net_inject(40, 1, tape[0].bytes, tape[0].n);
    circle_run(SECOND);
    assert_int_equal(to_the_stranger, 0);
    assert_true(circle_right());
}

static void wrong_key(void **state)
{
    static const uint8_t other[CRYPTO_KEY] = "another";
    struct dgram_params params = circle_params();
    (void)state;
    member_open(0, net_open(0, CIRCLE_MTU), "", &params);
    params.secret = other;
    member_open(1, net_open(1, CIRCLE_MTU), "", &params);
    member_meet(0, 1);
    packets = 0;
    member_send(0, 1, 3000);
    circle_run(SECOND);
    net_tap = count_packets;
    circle_run(60 * SECOND);
    assert_int_equal(members[0].failed[1], 1);
    assert_int_equal(members[1].came[0], 0);
    assert_true(member_stats(1).refused > 2);
    assert_int_equal(member_stats(1).acks, 0); /* no answer either */
    assert_true(dgram_next_timeout(members[1].ep) == UINT64_MAX);
}

/* Nothing is kept about what is not genuine, and nothing is answered. */
static void garbage(void **state)
{
    uint8_t bytes[CIRCLE_MTU];
    (void)state;
    srandom((unsigned)circle_seed);
    circle_pair("", NULL);
    record_exchange();
    uint64_t refused = member_stats(1).refused, acks = member_stats(1).acks, all = 20000;
    for (uint64_t i = 0; i < all; i++) {
        const struct recorded *r = &tape[(unsigned)random() % taped];
        size_t n = i % 2 ? r->n : (size_t)random() % CIRCLE_MTU;
        memcpy(bytes, r->bytes, sizeof bytes);
        if (i % 2)
            bytes[(size_t)random() % n] ^= (uint8_t)(1 << random() % 8);
        else
            for (size_t k = (size_t)random() % 32; k < n; k++) bytes[k] = (uint8_t)random();
        net_inject(40, 1, bytes, n);
        circle_run(2 * NET_TRIP);
    }
    assert_int_equal(member_stats(1).refused - refused, all);
    assert_int_equal(member_stats(1).acks, acks);
    assert_true(circle_right());
}

static void bad_cards(void **state)
{
    uint8_t card[DGRAM_CARD], own[DGRAM_CARD];
    struct dgram_peer *peer = NULL;
    (void)state;
    circle_pair("", NULL);
    size_t n = dgram_card(members[1].ep, card);
    for (size_t cut = 0; cut < n; cut++)
        assert_int_equal(dgram_peer_open(members[0].ep, card, cut, &peer), TERN_ERR_ARG);
    card[n - 1] = NET_STATIONS; /* an address that the wire has not */
    assert_int_equal(dgram_peer_open(members[0].ep, card, n, &peer), TERN_ERR_ARG);
    assert_non_null(strstr(err_words(), "cannot be reached"));
    card[n - 1] = 0; /* the address that this endpoint has now */
    assert_int_equal(dgram_peer_open(members[0].ep, card, n, &peer), TERN_ERR_PEER);
    assert_non_null(strstr(err_words(), "nobody listens at station 0"));
    assert_int_equal(dgram_peer_open(members[0].ep, own, dgram_card(members[0].ep, own), &peer), TERN_ERR_ARG);
    assert_null(peer);
    n = dgram_card(members[1].ep, card);
    assert_int_equal(dgram_peer_open(members[0].ep, card, n, &peer), 0);
    assert_ptr_equal(peer, members[0].peers[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CIRCLE_RULE(replay),
        CIRCLE_RULE(replay_to_who_has_forgotten),
        CIRCLE_RULE(replay_to_the_next_process),
        CIRCLE_RULE(replay_after_wrap),
        CIRCLE_RULE(introduction_from_elsewhere),
        CIRCLE_RULE(wrong_key),
        CIRCLE_RULE(garbage),
        CIRCLE_RULE(bad_cards),
    };
    circle_read_seed();
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
