/* udp_test.c - rules of src/transport/dgram/udp.h, over loopback, bare and below the datagram layer. */
#include "circle.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/var.h"
#include "transport/dgram/udp.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <arpa/inet.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static bool have_ipv6(void)
{
    struct dgram_wire *w;
    if (udp_open("::1", 0, 0, 1400, &w)) return false;
    w->ops->close(w);
    return true;
}

/* ---- the wire ---- */

struct seen {
    unsigned n;
    size_t len;
    uint8_t bytes[16];
    struct dgram_addr from;
};

static void see(void *arg, const struct dgram_addr *from, void *bytes, size_t n)
{
    struct seen *s = arg;
    s->n++;
    s->len = n;
    s->from = *from;
    memcpy(s->bytes, bytes, min_size(n, sizeof s->bytes));
}

static void wait_for(struct dgram_wire *w)
{
    struct pollfd p = {.fd = w->fd, .events = POLLIN};
    assert_int_equal(poll(&p, 1, 10000), 1);
}

static void one_by_one(const char *address)
{
    struct dgram_wire *a, *b;
    struct seen s = {0};
    assert_int_equal(udp_open(address, 0, 0, 1400, &a), 0);
    assert_int_equal(udp_open(address, 0, 0, 9000, &b), 0);
    assert_true(b->ops->valid(b, &a->own));
    assert_int_equal(a->ops->poll(a, 1, 64, see, &s), 0);
    for (unsigned size = 1; size <= 9000; size += 2999) {
        memset(b->ops->room(b), (int)size & 255, size);
        b->ops->send(b, &a->own, size);
        b->ops->flush(b, 1);
        wait_for(a);
        assert_int_equal(a->ops->poll(a, 1, 64, see, &s), 1);
        assert_int_equal(s.len, size);
        assert_int_equal(s.bytes[0], size & 255);
        assert_memory_equal(&s.from, &b->own, sizeof s.from);
    }
    assert_int_equal(b->trouble, 0);
    a->ops->close(a);
    b->ops->close(b);
}

static void datagrams(void **state)
{
    (void)state;
    one_by_one("127.0.0.1");
    if (have_ipv6())
        one_by_one("::1");
    else
        print_message("# no IPv6 here\n");
}

/* More than a batch, to two places, in order at each. */
static void batches(void **state)
{
    struct dgram_wire *a, *b, *c;
    struct seen to_b = {0}, to_c = {0};
    (void)state;
    assert_int_equal(udp_open("127.0.0.1", 0, 0, 1400, &a), 0);
    assert_int_equal(udp_open("127.0.0.1", 0, 0, 1400, &b), 0);
    assert_int_equal(udp_open("127.0.0.1", 0, 0, 1400, &c), 0);
    for (uint8_t i = 0; i < 50; i++) {
        memset(a->ops->room(a), i, 100);
        a->ops->send(a, i % 3 ? &b->own : &c->own, 100);
    }
    a->ops->flush(a, 1);
    assert_true(a->ops->due(a) == UINT64_MAX);
    wait_for(b);
    wait_for(c);
    b->ops->poll(b, 1, 64, see, &to_b);
    c->ops->poll(c, 1, 64, see, &to_c);
    assert_int_equal(to_b.n + to_c.n, 50);
    assert_int_equal(to_b.bytes[0], 49);
    assert_int_equal(to_c.bytes[0], 48);
    a->ops->close(a);
    b->ops->close(b);
    c->ops->close(c);
}

/* What the system refuses is lost, and only that; the reason is kept. */
static void refused(void **state)
{
    struct dgram_wire *a, *b;
    struct seen s = {0};
    struct dgram_addr outside = {7, {4, 16, 0, 192, 0, 2, 1}}; /* cannot be reached from loopback */
    (void)state;
    assert_int_equal(udp_open("127.0.0.1", 0, 0, 1400, &a), 0);
    assert_int_equal(udp_open("127.0.0.1", 0, 0, 1400, &b), 0);
    for (uint8_t i = 0; i < 3; i++) {
        memset(a->ops->room(a), i, 10);
        a->ops->send(a, i == 1 ? &outside : &b->own, 10);
    }
    a->ops->flush(a, 1);
    wait_for(b);
    b->ops->poll(b, 1, 64, see, &s);
    assert_int_equal(s.n, 2);
    assert_int_not_equal(a->trouble, 0);
    assert_true(dgram_addr_same(&a->trouble_to, &outside));
    a->ops->close(a);
    b->ops->close(b);
}

static bool next_refusal(struct dgram_wire *w, struct dgram_addr *to)
{
    struct seen s = {0};
    for (uint64_t end = clock_ns() + 10 * SECOND; clock_ns() < end;) {
        w->ops->poll(w, clock_ns(), 64, see, &s);
        if (w->ops->refused(w, to)) return true;
    }
    return false;
}

/* The host says that a socket is closed, and whose it was; datagrams to others go on. */
static void nobody_listens(const char *address)
{
    struct dgram_wire *a, *gone[2], *there;
    struct dgram_addr closed[2], to[2];
    struct seen s = {0};
    assert_int_equal(udp_open(address, 0, 0, 1400, &a), 0);
    assert_int_equal(udp_open(address, 0, 0, 1400, &there), 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(udp_open(address, 0, 0, 1400, &gone[i]), 0);
        closed[i] = gone[i]->own;
    }
    for (int i = 0; i < 2; i++) gone[i]->ops->close(gone[i]);
    assert_false(a->ops->refused(a, &to[0]));
    for (int i = 0; i < 6; i++) {
        memset(a->ops->room(a), i, 10);
        a->ops->send(a, i < 2 ? &closed[i] : &there->own, 10);
        a->ops->flush(a, clock_ns());
    }
    for (int i = 0; i < 2; i++) assert_true(next_refusal(a, &to[i]));
    for (int i = 0; i < 2; i++) assert_memory_equal(&to[i], &closed[i], sizeof to[i]);
    a->ops->poll(a, clock_ns(), 64, see, &s);
    assert_false(a->ops->refused(a, &to[0]));
    struct pollfd p = {.fd = a->fd, .events = POLLIN};
    assert_int_equal(poll(&p, 1, 0), 0); /* nothing is left that would end a sleep */
    there->ops->poll(there, clock_ns(), 64, see, &s);
    assert_int_equal(s.n, 4);
    assert_int_equal(a->trouble, 0);
    assert_true(a->ops->near(a, &closed[0]));
    a->ops->close(a);
    there->ops->close(there);
}

static void closed_sockets(void **state)
{
    (void)state;
    nobody_listens("127.0.0.1");
    if (have_ipv6()) nobody_listens("::1");
}

static void addresses(void **state)
{
    struct dgram_wire *w = NULL, *v4;
    static const char *const bad[] = {"0.0.0.0", "::", "localhost", "", "fe80::1", "127.0.0.1.1"};
    char text[64];
    (void)state;
    for (unsigned i = 0; i < ARRAY_LEN(bad); i++) assert_int_equal(udp_open(bad[i], 0, 0, 1400, &w), TERN_ERR_ARG);
    assert_int_equal(udp_open("192.0.2.1", 0, 0, 1400, &w), TERN_ERR_SYSTEM);
    assert_non_null(strstr(err_words(), "192.0.2.1"));
    assert_int_equal(udp_open("127.0.0.1", 0, 0, 255, &w), TERN_ERR_ARG);
    assert_int_equal(udp_open("127.0.0.1", 0, 0, 9001, &w), TERN_ERR_ARG);
    assert_null(w);
    assert_int_equal(udp_open("127.0.0.1", 0, 0, 0, &v4), 0);
    assert_int_equal(v4->mtu, 2048);
    struct dgram_addr port0 = {7, {4, 0, 0, 127, 0, 0, 1}}, v6 = {19, {6, 1}}, is = {7, {4, 4, 1, 10, 0, 0, 9}};
    assert_false(v4->ops->valid(v4, &port0));
    assert_false(v4->ops->valid(v4, &v6));
    assert_false(v4->ops->near(v4, &is));
    v4->ops->text(v4, &is, text, sizeof text);
    assert_string_equal(text, "10.0.0.9 port 1025");
    v4->ops->close(v4);
}

/* Some range of which all ports but the last are free, and then none. */
static void ports(void **state)
{
    struct dgram_wire *w[3], *more = NULL;
    unsigned low = 20000 + (unsigned)getpid() % 20000, opened = 0, tries = 0;
    (void)state;
    for (; opened < 3 && tries < 100; tries++, low += 7) {
        while (opened < 3 && !udp_open("127.0.0.1", (uint16_t)low, (uint16_t)(low + 2), 1400, &w[opened])) opened++;
        if (opened == 3) break;
        for (; opened; opened--) w[opened - 1]->ops->close(w[opened - 1]);
    }
    assert_int_equal(opened, 3);
    for (unsigned i = 0; i < 3; i++) assert_in_range(w[i]->own.bytes[1] << 8 | w[i]->own.bytes[2], low, low + 2);
    assert_int_equal(udp_open("127.0.0.1", (uint16_t)low, (uint16_t)(low + 2), 1400, &more), TERN_ERR_SYSTEM);
    assert_non_null(strstr(err_words(), "any of the ports"));
    for (unsigned i = 0; i < 3; i++) w[i]->ops->close(w[i]);
}

/* ---- below the datagram layer ---- */

static void open_member(unsigned i, const char *address, const char *faults)
{
    struct dgram_wire *w;
    char words[128];
    snprintf(words, sizeof words, "seed=%llu,%s", (unsigned long long)circle_seed + i, faults);
    assert_int_equal(udp_open(address, 0, 0, i ? 2048 : 1400, &w), 0);
    member_open(i, w, *faults ? words : "", NULL);
}

/* Sleeps in the kernel, as its owner would, until all is done. */
static void run(unsigned seconds)
{
    uint64_t end = clock_ns() + seconds * (uint64_t)1000000000u;
    while (circle_under_way() && clock_ns() < end) {
        struct pollfd p[2];
        uint64_t now = clock_ns(), at = UINT64_MAX;
        int came = 0;
        for (unsigned i = 0; i < 2; i++) {
            came += dgram_progress(members[i].ep, now);
            at = min_size(at, dgram_next_timeout(members[i].ep));
            p[i] = (struct pollfd){.fd = dgram_wire_of(members[i].ep)->fd, .events = POLLIN};
        }
        int ms = at <= now ? 0 : at - now > 1000000000u ? 1000 : (int)((at - now + 999999) / 1000000);
        if (!came) poll(p, 2, ms);
    }
}

static void exchange_over(const char *address, const char *faults, size_t bytes)
{
    open_member(0, address, faults);
    open_member(1, address, faults);
    member_meet(0, 1);
    member_meet(1, 0);
    uint64_t begin = clock_ns();
    member_send(0, 1, bytes);
    member_send_some(0, 1, 20, 10000);
    member_send_some(1, 0, 20, 10000);
    run(60);
    struct dgram_stats s = dgram_stats(members[0].ep);
    print_message("# %zu bytes over %s, faults \"%s\": %llu segments, %llu sent again, %llu timers, %.1f ms\n", bytes,
                  address, faults, (unsigned long long)s.segments, (unsigned long long)s.resent,
                  (unsigned long long)s.rounds, (double)(clock_ns() - begin) / 1e6);
    assert_true(circle_right());
    member_close(0);
    member_close(1);
}

static void exchange(void **state)
{
    (void)state;
    exchange_over("127.0.0.1", "", 1000000);
    exchange_over("127.0.0.1", "", DGRAM_MESSAGE);
    exchange_over("127.0.0.1", "loss=20", 1000000);
    exchange_over("127.0.0.1", "loss=20,dup=20,reorder=20,corrupt=1,delay_us=200", 1000000);
    if (have_ipv6()) exchange_over("::1", "loss=5", 1000000);
}

/* A peer whose process ends is given up long before its time is over: while something is sent to it, and while it is watched. */
static void death_is_told(void **state)
{
    (void)state;
    for (unsigned watched = 0; watched < 2; watched++) {
        open_member(0, "127.0.0.1", "");
        open_member(1, "127.0.0.1", "");
        member_meet(0, 1);
        if (watched) {
            member_send(0, 1, 100);
            run(60);
            assert_true(circle_right());
            dgram_watch(members[0].peers[1], true);
        }
        member_close(1);
        uint64_t begin = clock_ns();
        if (!watched) member_send(0, 1, 100);
        while (!members[0].lost && clock_ns() < begin + 100 * SECOND) dgram_progress(members[0].ep, clock_ns());
        assert_int_equal(members[0].lost, 1);
        assert_int_equal(members[0].failed[1], !watched);
        assert_true(clock_ns() - begin < circle_params().patience / 4);
        assert_non_null(strstr(members[0].words, "nobody listens at 127.0.0.1 port"));
        member_close(0);
    }
}

static void parameters_by_variable(void **state)
{
    static const struct {
        const char *text;
        uint64_t patience;
    } cases[] = {{"20", 20 * SECOND}, {"1", SECOND}, {"0", SECOND}, {"-5", SECOND}};
    struct dgram_params params;
    (void)state;
    for (unsigned i = 0; i < ARRAY_LEN(cases); i++) {
        assert_int_equal(var_set(VAR_DGRAM_TIMEOUT, cases[i].text), 0);
        dgram_params_init(&params);
        assert_true(params.patience == cases[i].patience);
    }
    assert_int_equal(var_set(VAR_DGRAM_TIMEOUT, "20"), 0);
}

/* The variable puts the shim under every endpoint. */
static void faults_by_variable(void **state)
{
    (void)state;
    assert_int_equal(var_set(VAR_DGRAM_FAULTS, "seed=9,loss=100,types=ack"), 0);
    open_member(0, "127.0.0.1", "");
    open_member(1, "127.0.0.1", "");
    assert_int_equal(var_set(VAR_DGRAM_FAULTS, ""), 0);
    member_meet(0, 1);
    member_send(0, 1, 100);
    run(1);
    assert_int_equal(members[1].came[0], 1);
    assert_int_equal(members[0].done[1], 0); /* no acknowledgement gets through */
    assert_int_equal(circle_under_way(), 1);
    member_close(0);
    member_close(1);
}

/* A child of fork has no socket: when the parent has closed its own, the port is free, although the child lives. */
static void not_in_a_child(void **state)
{
    struct dgram_wire *w;
    int ready[2];
    char word = 0;
    (void)state;
    assert_int_equal(udp_open("127.0.0.1", 0, 0, 1400, &w), 0);
    uint16_t port = (uint16_t)(w->own.bytes[1] << 8 | w->own.bytes[2]);
    assert_int_equal(pipe(ready), 0);
    pid_t child = fork();
    if (!child) {
        bool closed = w->fd < 0;
        alarm(60);
        (void)!write(ready[1], closed ? "y" : "n", 1);
        for (;;) pause();
    }
    assert_int_equal(read(ready[0], &word, 1), 1);
    assert_int_equal(word, 'y');
    assert_true(w->fd >= 0);
    w->ops->close(w);
    assert_int_equal(udp_open("127.0.0.1", port, port, 1400, &w), 0);
    w->ops->close(w);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    close(ready[0]);
    close(ready[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(datagrams),
        cmocka_unit_test(batches),
        cmocka_unit_test(refused),
        cmocka_unit_test(closed_sockets),
        cmocka_unit_test(not_in_a_child),
        cmocka_unit_test(addresses),
        cmocka_unit_test(ports),
        cmocka_unit_test(exchange),
        cmocka_unit_test(death_is_told),
        cmocka_unit_test(faults_by_variable),
        cmocka_unit_test(parameters_by_variable),
    };
    if (var_open()) return 1;
    cmocka_set_message_output(CM_OUTPUT_TAP);
    circle_read_seed();
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    var_close();
    return failed;
}
