/*
 * ends_test.c - rules of src/transport/dgram/dgram.h for peers that die, restart, are forgotten,
 * or never were: both sides learn of it in bounded time, and memory does not grow.
 */
#include "net.h"
#include "circle.h"

#include "base/err.h"
#include "transport/dgram/past.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <string.h>

static void nobody_answers(void **state)
{
    (void)state;
    circle_pair("", NULL);
    uint8_t card[DGRAM_CARD];
    size_t n = dgram_card(members[1].ep, card);
    member_close(1);
    uint64_t begin = net_now;
    member_send_some(0, 1, 3, 5000);
    while (circle_under_way() && net_now < begin + 100 * SECOND) circle_run(SECOND / 10);
    assert_int_equal(members[0].failed[1], 3);
    assert_int_equal(members[0].lost, 1);
    assert_in_range(net_now - begin, 19 * SECOND, 22 * SECOND);
    assert_non_null(strstr(members[0].words, "no answer from station 1"));
    circle_run(100 * SECOND);
    assert_true(dgram_next_timeout(members[0].ep) == UINT64_MAX);
    member_send(0, 1, 5);
    assert_int_equal(members[0].failed[1], 4);
    dgram_forget(members[0].peers[1]);
    assert_int_equal(dgram_peer_open(members[0].ep, card, n, &members[0].peers[1]), TERN_ERR_PEER);
}

/* Dies in the middle: both sides learn of it. */
static void peer_dies(void **state)
{
    (void)state;
    for (unsigned dead = 0; dead < 2; dead++) {
        net_reset();
        circle_pair("", NULL);
        member_send(0, 1, 10000000);
        circle_run(SECOND / 1000);
        assert_true(member_stats(0).segments > 10);
        assert_int_equal(circle_under_way(), 1);
        uint64_t begin = net_now;
        if (dead) {
            member_close(1);
            while (!members[0].lost && net_now < begin + 100 * SECOND) circle_run(SECOND / 10);
            assert_int_equal(members[0].failed[1], 1);
        } else {
            struct dgram *quiet = members[0].ep;
            dgram_wire_of(quiet)->ops->close(dgram_wire_of(quiet)); /* which may be done again */
            members[0].ep = NULL;
            while (!members[1].lost && net_now < begin + 100 * SECOND) circle_run(SECOND / 10);
            assert_non_null(strstr(members[1].words, "fell silent"));
            members[0].ep = quiet;
        }
        assert_in_range(net_now - begin, 19 * SECOND, 42 * SECOND);
        circle_stop(NULL);
    }
}

/* One is stopped for a while, then both are for long, in the middle of a message: time in which nobody looks is no silence. */
static void both_are_stopped(void **state)
{
    (void)state;
    for (unsigned first = 0; first < 2; first++) {
        net_reset();
        circle_pair("", NULL);
        member_send(0, 1, 10000000);
        circle_run(SECOND / 1000);
        for (int i = 0; i < 150; i++) dgram_progress(members[!first].ep, net_now += SECOND / 10);
        net_now += 100 * SECOND;
        circle_run(30 * SECOND);
        assert_int_equal(members[0].lost + members[1].lost, 0);
        assert_true(circle_right());
        circle_stop(NULL);
    }
}

/* A process that looks seldom finds out all the same that its peer is gone. */
static void rare_looks(void **state)
{
    (void)state;
    circle_pair("", NULL);
    member_close(1);
    member_send(0, 1, 5);
    for (int i = 0; i < 25 && !members[0].lost; i++) dgram_progress(members[0].ep, net_now += 5 * SECOND);
    assert_int_equal(members[0].failed[1], 1);
}

/* A peer made by hand, at station 1. */
static struct dgram_packet by_hand = {.type = DGRAM_ACK, .window = 10};

static void say(void)
{
    static const char purpose[] = "Tern datagrams 1";
    uint8_t key[CRYPTO_KEY], bytes[DGRAM_HEADER];
    tern_crypto_sodium.tag(key, purpose, sizeof purpose, circle_key);
    net_inject(1, 0, bytes, dgram_packet_write(bytes, &by_hand, 32, &tern_crypto_sodium, key));
}

static void answer_questions(unsigned from, unsigned to, const void *bytes, size_t n)
{
    struct dgram_packet k;
    if (from || to != 1 || !dgram_packet_parse(bytes, n, &k) || k.type != DGRAM_PROBE) return;
    by_hand.seq = k.seq;
    say();
}

/* One that says that segments have come, but not in the end, and answers every question: found by dgram_fuzz. */
static void peer_contradicts_itself(void **state)
{
    uint8_t card[DGRAM_CARD];
    struct dgram_card own, its = {4711, 1, CIRCLE_MTU, DGRAM_TEST, {1, {1}}};
    (void)state;
    member_open(0, net_open(0, CIRCLE_MTU), "", NULL);
    assert_true(dgram_card_read(card, dgram_card(members[0].ep, card), &own));
    assert_int_equal(dgram_peer_open(members[0].ep, card, dgram_card_write(card, &its), &members[0].peers[1]), 0);
    for (int i = 0; i < 8; i++) member_send(0, 1, 100);
    circle_run(1);
    by_hand.from = its.id;
    by_hand.to = own.id;
    by_hand.ack = 5;
    say();
    by_hand.ack = 3;
    by_hand.got[0] = UINT64_MAX;
    say();
    by_hand.got[0] = 0;
    net_tap = answer_questions;
    circle_run(60 * SECOND);
    assert_int_equal(members[0].done[1], 5);
    assert_int_equal(members[0].failed[1], 3);
}

/* A new process at the old one's address is not the old one. */
static void peer_restarts(void **state)
{
    (void)state;
    circle_pair("", NULL);
    member_send(0, 1, 10000000);
    circle_run(SECOND / 1000);
    member_close(1);
    member_open(1, net_open(1, CIRCLE_MTU), "", NULL);
    uint64_t begin = net_now;
    while (!members[0].lost && net_now < begin + 100 * SECOND) circle_run(SECOND / 10);
    assert_int_equal(members[0].failed[1], 1);
    assert_true(net_now - begin < 2 * SECOND);
    assert_non_null(strstr(members[0].words, "another one has its address"));
    assert_int_equal(members[1].came[0], 0);
    memset(members[0].sent, 0, sizeof members[0].sent);
    memset(members[0].failed, 0, sizeof members[0].failed);
    member_meet(0, 1);
    member_send_some(0, 1, 20, 10000);
    member_meet(1, 0);
    member_send_some(1, 0, 20, 10000);
    circle_run(10 * SECOND);
    assert_true(circle_right());
}

/* Whoever is forgotten learns it, and that what it sent before has arrived. */
static void forgetting(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 20; i++, circle_seed++) {
        net_reset();
        circle_pair("loss=50,types=ack", NULL);
        member_send_some(0, 1, 10, 5000);
        while (members[1].came[0] < 10) circle_run(NET_TRIP);
        member_forget(1, 0);
        circle_run(30 * SECOND);
        assert_int_equal(members[0].done[1], 10);
        member_send(0, 1, 10);
        uint64_t begin = net_now;
        while (circle_under_way()) circle_run(SECOND / 100);
        assert_int_equal(members[0].failed[1], 1);
        assert_true(net_now - begin < 2 * SECOND);
        assert_non_null(strstr(members[0].words, "has disconnected"));
        assert_int_equal(members[1].came[0], 10);
        circle_stop(NULL);
    }
}

static uint64_t questions;

static void count_questions(unsigned from, unsigned to, const void *bytes, size_t n)
{
    questions += !from && to == 1 && dgram_packet_type(bytes, n) == DGRAM_PROBE;
}

/* A peer that nothing is sent to is asked now and then while it is watched, and given up when it does not answer. */
static void watching(void **state)
{
    (void)state;
    circle_pair("loss=20", NULL);
    member_send(0, 1, 100);
    circle_run(10 * SECOND);
    assert_true(circle_right());
    net_tap = count_questions;
    questions = 0;
    circle_run(100 * SECOND);
    assert_int_equal(questions, 0);
    dgram_watch(members[0].peers[1], true);
    circle_run(1000 * SECOND);
    assert_in_range(questions, 500, 2000);
    assert_int_equal(members[0].lost + members[1].lost, 0);
    uint64_t begin = net_now;
    for (unsigned i = 0; i < 20; i++) { /* 0.6 s in all, 6 s at worst in 300 runs; 30 s and more if losses waited for the lull */
        member_send_some(0, 1, 10, 5000);
        while (circle_under_way()) circle_run(SECOND / 100);
    }
    assert_true(net_now - begin < 20 * SECOND);
    dgram_watch(members[0].peers[1], false);
    circle_run(10 * SECOND);
    questions = 0;
    circle_run(1000 * SECOND);
    assert_int_equal(questions, 0);
    dgram_watch(members[0].peers[1], true);
    member_close(1);
    begin = net_now;
    while (!members[0].lost && net_now < begin + 100 * SECOND) circle_run(SECOND / 10);
    assert_int_equal(members[0].lost, 1);
    assert_in_range(net_now - begin, 19 * SECOND, 22 * SECOND);
    circle_run(100 * SECOND);
    assert_true(dgram_next_timeout(members[0].ep) == UINT64_MAX);
}

static bool forget_it(void *arg, struct dgram_peer *peer, const void *data, size_t n)
{
    uint64_t *sum = arg;
    dgram_forget(peer);
    for (size_t i = 0; i < n; i++) *sum += ((const uint8_t *)data)[i]; /* still there */
    return true;
}

static void forgotten_while_it_delivers(void **state)
{
    struct dgram_params params = circle_params();
    struct dgram *ep;
    uint8_t card[DGRAM_CARD];
    uint64_t sum = 0;
    (void)state;
    params.crypto = &tern_crypto_sodium;
    params.wire = net_open(1, CIRCLE_MTU);
    params.arg = &sum;
    params.deliver = forget_it;
    assert_int_equal(dgram_open(&ep, &params), 0);
    member_open(0, net_open(0, CIRCLE_MTU), "seed=3,reorder=50", NULL);
    assert_int_equal(dgram_peer_open(members[0].ep, card, dgram_card(ep, card), &members[0].peers[1]), 0);
    for (int i = 0; i < 5; i++) member_send(0, 1, 10000);
    for (int i = 0; i < 100; i++, net_now += NET_TRIP) {
        dgram_progress(members[0].ep, net_now);
        dgram_progress(ep, net_now);
    }
    assert_true(sum > 0);
    assert_in_range(members[0].done[1], 1, 4);
    assert_int_equal(circle_under_way(), 0);
    assert_int_equal(dgram_stats(ep).messages, 1);
    dgram_close(ep);
}

/* Many short lives: memory does not grow with them, and nobody is mistaken for another. */
static void many_forgotten(void **state)
{
    (void)state;
    member_open(0, net_open(0, CIRCLE_MTU), "", NULL);
    uint8_t first[DGRAM_CARD], last[DGRAM_CARD];
    size_t n = dgram_card(members[0].ep, first);
    for (unsigned i = 0; i < 10000; i++) {
        member_open(1, net_open(1, CIRCLE_MTU), "", NULL);
        /* with an old card now and then: the epoch may be another one by now */
        if (i % 10)
            member_meet(1, 0);
        else
            assert_int_equal(dgram_peer_open(members[1].ep, first, n, &members[1].peers[0]), 0);
        member_send(1, 0, 64);
        circle_run(SECOND);
        assert_int_equal(members[1].done[0], 1);
        assert_int_equal(members[0].came[1], 1);
        assert_int_equal(members[0].wrong, 0);
        member_forget(0, 1);
        members[0].came[1] = 0;
        member_close(1);
    }
    assert_int_equal(n, dgram_card(members[0].ep, last));
    assert_memory_not_equal(first, last, n);
}

static void memory_of_the_past_is_bounded(void **state)
{
    struct dgram_past past;
    unsigned dropped = 0;
    (void)state;
    past_open(&past);
    for (uint64_t id = 1; id <= 100000; id++) {
        struct past_peer p = {.id = id, .expected = id, .when = id * 1000}; /* all of them young */
        dropped += past_add(&past, &p, UINT64_MAX);
        assert_true(past.n <= PAST_MANY);
        assert_int_equal(past_find(&past, id)->expected, id);
    }
    assert_in_range(dropped, 1, 100000 / (PAST_MANY / 2));
    assert_null(past_find(&past, 1));
    struct past_peer late = {.id = 1, .when = UINT64_MAX};
    assert_true(past_add(&past, &late, 1)); /* all the others are old now */
    assert_int_equal(past.n, 1);
    past_close(&past);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CIRCLE_RULE(nobody_answers),
        CIRCLE_RULE(peer_dies), CIRCLE_RULE(both_are_stopped), CIRCLE_RULE(rare_looks),
        CIRCLE_RULE(peer_contradicts_itself),
        CIRCLE_RULE(peer_restarts),
        CIRCLE_RULE(forgetting),
        CIRCLE_RULE(watching),
        CIRCLE_RULE(forgotten_while_it_delivers),
        CIRCLE_RULE(many_forgotten),
        CIRCLE_RULE(memory_of_the_past_is_bounded),
    };
    circle_read_seed();
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
