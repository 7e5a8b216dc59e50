/*
 * dgram_test.c - rules of src/transport/dgram/dgram.h, in simulated time over a simulated network:
 * everything arrives, whatever the network does, and within bounds. The figures printed are
 * for doc/decisions/datagrams.md.
 */
#include "net.h"
#include "circle.h"

#include "base/err.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <string.h>
#include <stdio.h>

#define ALL_FAULTS "loss=20,dup=20,reorder=20,corrupt=5,delay_us=200"

/* ---- faults ---- */

static void both_ways(const char *faults)
{
    net_reset();
    circle_pair(faults, NULL);
    member_send_some(0, 1, 40, 30000);
    member_send_some(1, 0, 40, 30000);
    circle_run(600 * SECOND);
    if (!circle_right()) print_message("faults: %s\n", faults);
    assert_int_equal(circle_under_way(), 0);
    assert_true(circle_right());
    circle_stop(NULL);
}

static void each_fault_at_each_rate(void **state)
{
    static const char *const kinds[] = {"loss", "dup", "reorder", "corrupt"}, *const types[] = {"all", "data", "ack"};
    char words[128];
    (void)state;
    both_ways("");
    for (unsigned kind = 0; kind < ARRAY_LEN(kinds); kind++)
        for (unsigned type = 0; type < ARRAY_LEN(types); type++)
            for (unsigned rate = 5; rate <= 20; rate += 5) {
                snprintf(words, sizeof words, "%s=%u,types=%s", kinds[kind], rate, types[type]);
                both_ways(words);
            }
}

static void all_faults_at_once(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 20; i++, circle_seed++) both_ways(ALL_FAULTS);
}

/* 10 000 ranks of 100 bytes. */
static void cross_table(const char *faults)
{
    size_t bytes = 10000 * 100;
    uint64_t begin;
    net_reset();
    circle_pair(faults, NULL);
    begin = net_now;
    member_send(0, 1, bytes);
    while (circle_under_way()) circle_run(SECOND / 1000);
    struct dgram_stats s = member_stats(0);
    print_message(
        "# 1 MB, faults \"%s\": %llu segments, %llu sent again, %llu timers, %.1f ms at a round trip of 0.1 ms\n",
        faults, (unsigned long long)s.segments, (unsigned long long)s.resent, (unsigned long long)s.rounds,
        (double)(net_now - begin) / 1e6);
    circle_run(SECOND);
    assert_true(circle_right());
    assert_in_range(s.segments, bytes / CIRCLE_MTU, bytes / (CIRCLE_MTU - DGRAM_HEADER - DGRAM_CARD) + 1);
    if (!*faults) assert_int_equal(s.resent, 0);
    assert_true(s.resent < 2 * s.segments);
    circle_stop(NULL);
}

static void table_of_10000_ranks(void **state)
{
    (void)state;
    cross_table("");
    cross_table("loss=1");
    cross_table("loss=5");
    cross_table("loss=20");
    cross_table("dup=20");
    cross_table("reorder=20");
    cross_table(ALL_FAULTS);
}

/* Numbers of 8 bits wrap at every 256th segment. */
static void numbers_wrap(void **state)
{
    struct dgram_params params = circle_params();
    (void)state;
    params.seq_bits = 8;
    params.window = 127;
    for (unsigned i = 0; i < 4; i++, circle_seed++) {
        net_reset();
        circle_pair(i ? ALL_FAULTS : "", &params);
        member_send_some(0, 1, 100, 100000);
        member_send_some(1, 0, 100, 10000);
        circle_run(600 * SECOND);
        assert_true(circle_right());
        assert_true(member_stats(0).segments > 4 * 256);
        circle_stop(NULL);
    }
}

/* A receiver that takes few datagrams at a time loses the others; the sender slows down. */
static void full_receiver(void **state)
{
    (void)state;
    circle_pair("", NULL);
    net_queue = 8;
    member_send(0, 1, 4000000);
    circle_run(60 * SECOND);
    struct dgram_stats s = member_stats(0);
    print_message("# 4 MB into a queue of 8: %llu segments, %llu sent again\n", (unsigned long long)s.segments,
                  (unsigned long long)s.resent);
    assert_true(circle_right());
    assert_true(net_overrun > 0);
    assert_true(s.resent < s.segments / 2);
}

/* A carrier that has no room: what is to be sent waits, nobody looks again and again meanwhile, and nothing is lost. */
static void full_carrier(void **state)
{
    (void)state;
    circle_pair("", NULL);
    member_send(0, 1, 5000);
    dgram_progress(members[0].ep, net_now);
    net_full = 2; /* for the acknowledgements */
    for (int i = 0; i < 5; i++) dgram_progress(members[1].ep, net_now += NET_TRIP);
    assert_int_equal(members[1].came[0], 1);
    assert_true(dgram_next_timeout(members[1].ep) > net_now);
    assert_int_equal(member_stats(1).acks, 0);
    net_full = 1;
    member_send(0, 1, 500000);
    for (int i = 0; i < 5; i++) dgram_progress(members[0].ep, net_now += NET_TRIP);
    assert_true(dgram_next_timeout(members[0].ep) > net_now);
    net_full = 0;
    circle_run(10 * SECOND);
    assert_true(circle_right());
    assert_int_equal(members[0].lost + members[1].lost, 0);
}

static void many_to_one(void **state)
{
    (void)state;
    net_queue = 64;
    member_open(0, net_open(0, CIRCLE_MTU), "", NULL);
    for (unsigned i = 1; i < 48; i++) {
        member_open(i, net_open(i, CIRCLE_MTU), "", NULL);
        member_meet(i, 0);
        member_send_some(i, 0, 10, 50000);
    }
    circle_run(60 * SECOND);
    assert_int_equal(circle_under_way(), 0);
    assert_true(circle_right());
}

/* Members of unlike datagram lengths. */
static void unlike_mtus(void **state)
{
    (void)state;
    member_open(0, net_open(0, 9000), "", NULL);
    member_open(1, net_open(1, DGRAM_MTU_MIN), "", NULL);
    member_meet(0, 1);
    member_send(0, 1, 100000);
    circle_run(SECOND);
    member_send(1, 0, 100000);
    circle_run(SECOND);
    assert_true(circle_right());
    assert_true(member_stats(0).segments > 100000 / DGRAM_MTU_MIN);
}

/* ---- bounds ---- */

static unsigned packets;
static void count_packets(unsigned from, unsigned to, const void *bytes, size_t n)
{
    (void)from;
    (void)to;
    (void)bytes;
    (void)n;
    packets++;
}

/* One datagram each way, and one that acknowledges the second: no packets for making a connection. */
static bool answer_at_once(void *arg, struct dgram_peer *peer, const void *data, size_t n)
{
    static struct dgram_message answer = {.data = "table of the parents", .n = 20};
    (void)data;
    (void)n;
    answer.done = arg;
    assert_int_equal(dgram_send(peer, &answer), 0);
    return true;
}

static unsigned answers_done;
static void count_done(struct dgram_message *m, int rc)
{
    (void)m;
    answers_done += !rc;
}

static void one_datagram_each_way(void **state)
{
    struct dgram_params params = circle_params();
    struct dgram *parent;
    uint8_t card[DGRAM_CARD];
    (void)state;
    params.crypto = &tern_crypto_sodium;
    params.wire = net_open(1, CIRCLE_MTU);
    params.arg = (void *)(uintptr_t)count_done;
    params.deliver = answer_at_once;
    assert_int_equal(dgram_open(&parent, &params), 0);
    member_open(0, net_open(0, CIRCLE_MTU), "", NULL);
    assert_int_equal(dgram_peer_open(members[0].ep, card, dgram_card(parent, card), &members[0].peers[1]), 0);
    packets = answers_done = 0;
    net_tap = count_packets;
    member_send(0, 1, 1000);
    for (int i = 0; i < 10; i++, net_now += NET_TRIP) {
        dgram_progress(members[0].ep, net_now);
        dgram_progress(parent, net_now);
    }
    assert_int_equal(members[0].done[1], 1);
    assert_int_equal(members[0].came[1], 1);
    assert_int_equal(answers_done, 1);
    assert_int_equal(packets, 3);
    assert_true(dgram_quiet(parent, net_now));
    assert_true(dgram_next_timeout(parent) == UINT64_MAX);
    dgram_close(parent);
}

static void limits_of_messages(void **state)
{
    (void)state;
    circle_pair("", NULL);
    member_send(0, 1, DGRAM_MESSAGE);
    member_send(0, 1, 0);
    circle_run(60 * SECOND);
    assert_true(circle_right());
    member_send(0, 1, DGRAM_MESSAGE + 1);
    assert_int_equal(members[0].failed[1], 1);
    assert_non_null(strstr(members[0].words, "too long"));
}

/* Whoever does not take messages holds its peers back, without losing them or memory; then all comes in order. */
static void held_receiver(void **state)
{
    (void)state;
    circle_pair("loss=10", NULL);
    members[1].full = true;
    member_send_some(0, 1, 200, 20000);
    circle_run(100 * SECOND);
    assert_int_equal(members[1].came[0], 0);
    assert_int_equal(members[0].lost + members[1].lost, 0);
    assert_true(member_stats(0).segments <= 2 * DGRAM_WINDOW); /* the message that is held, and one window */
    uint64_t resent = member_stats(0).resent;
    circle_run(100 * SECOND);
    assert_int_equal(member_stats(0).resent, resent); /* what has come is known to have come */
    members[1].full = false;
    circle_run(60 * SECOND);
    assert_true(circle_right());
}

/* A round trip that is longer than the first timer: it is learnt, and then little is sent in vain. */
static void long_way(void **state)
{
    (void)state;
    circle_pair("delay_us=400000", NULL);
    for (int i = 0; i < 50; i++) {
        member_send(0, 1, 5000);
        circle_run(5 * SECOND);
    }
    assert_true(circle_right());
    struct dgram_stats s = member_stats(0);
    print_message("# trips of 0 to 0.8 s: %llu segments, %llu sent again\n", (unsigned long long)s.segments,
                  (unsigned long long)s.resent);
    assert_true(s.resent < s.segments / 4);
}

/* The acknowledgement of a segment that was sent twice tells no round trip: taken for one, it would make the next
 * timers far too short (Karn). */
static void trips_longer_than_the_first_timer(void **state)
{
    (void)state;
    circle_pair("", NULL);
    net_delay = 55 * SECOND / 1000;
    for (int i = 0; i < 50; i++) {
        member_send(0, 1, 5000);
        circle_run(5 * SECOND);
    }
    assert_true(circle_right());
    assert_in_range(member_stats(0).resent, 1, 10);
}

/* A process that computes for long, between sending and the next progress, does not give its peer up for that. */
static void long_computation(void **state)
{
    (void)state;
    circle_pair("", NULL);
    for (int i = 0; i < 20; i++) {
        member_send(0, 1, 100);
        dgram_progress(members[0].ep, net_now);
        dgram_progress(members[1].ep, net_now);
        net_now += 100 * SECOND;
    }
    circle_run(100 * SECOND);
    assert_true(circle_right());
}

static void wrong_parameters(void **state)
{
    struct dgram_params params = circle_params();
    struct dgram *ep = NULL;
    (void)state;
    params.crypto = &tern_crypto_sodium;
    params.seq_bits = 8;
    params.wire = net_open(0, CIRCLE_MTU);
    assert_int_equal(dgram_open(&ep, &params), TERN_ERR_ARG); /* a window of 128 needs 9 bits */
    params.seq_bits = 33;
    params.wire = net_open(0, CIRCLE_MTU);
    assert_int_equal(dgram_open(&ep, &params), TERN_ERR_ARG);
    params.seq_bits = 32;
    params.wire = net_open(0, DGRAM_MTU_MIN - 1);
    assert_int_equal(dgram_open(&ep, &params), TERN_ERR_ARG);
    assert_null(ep);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CIRCLE_RULE(each_fault_at_each_rate),
        CIRCLE_RULE(all_faults_at_once),
        CIRCLE_RULE(table_of_10000_ranks),
        CIRCLE_RULE(numbers_wrap),
        CIRCLE_RULE(full_receiver),
        CIRCLE_RULE(full_carrier),
        CIRCLE_RULE(many_to_one),
        CIRCLE_RULE(unlike_mtus),
        CIRCLE_RULE(one_datagram_each_way),
        CIRCLE_RULE(limits_of_messages),
        CIRCLE_RULE(held_receiver),
        CIRCLE_RULE(long_way),
        CIRCLE_RULE(trips_longer_than_the_first_timer),
        CIRCLE_RULE(long_computation),
        CIRCLE_RULE(wrong_parameters),
    };
    circle_read_seed();
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
