/* link_test.c - connections of the launcher's tree: the handshake, messages, and what a stranger or a broken process
 * may send instead. Both ends are in this process, over a pair of sockets. */
#include "mpiexec/link.h"
#include "mpiexec/tree.h"
#include "mpiexec/words.h"

#include <arpa/inet.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

static unsigned seed;
static struct event_base *base;

/* What an end has seen. */
static struct end {
    struct tree_link *link;
    int opened, messages, lost;
    bool refuse; /* every message */
    struct link_head last;
    size_t bytes;
    uint32_t sum;
    char why[128];
} ends[2];

static bool on_wanted(struct tree_link *l, uint64_t from) { return (void)l, from == 7; }
static void on_opened(struct tree_link *l) { ((struct end *)link_arg(l))->opened++; }

static bool on_message(struct tree_link *l, const struct link_head *h, const void *bytes)
{
    struct end *e = link_arg(l);
    e->messages++;
    e->last = *h;
    e->bytes += h->length;
    for (uint32_t i = 0; i < h->length; i++) e->sum += ((const uint8_t *)bytes)[i];
    return !e->refuse;
}

static void on_lost(struct tree_link *l, const char *why)
{
    struct end *e = link_arg(l);
    e->lost++;
    snprintf(e->why, sizeof e->why, "%s", why);
    e->link = NULL;
    link_close(l);
}

static const struct link_calls calls = {on_wanted, on_opened, on_message, on_lost};
static const uint8_t key[CRYPTO_KEY] = "the key of the tests", other_key[CRYPTO_KEY] = "another key";

static int set_up(void **state)
{
    (void)state;
    memset(ends, 0, sizeof ends);
    base = event_base_new();
    return !base;
}

static int tear_down(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++)
        if (ends[i].link) link_close(ends[i].link);
    event_base_free(base);
    return 0;
}

/* Until nothing happens any more. */
static void turn(void)
{
    for (int i = 0; i < 400; i++) event_base_loop(base, EVLOOP_NONBLOCK);
}

static void make_pair(int fd[2]) { assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd), 0); }

/* Two links; the connector says it is `from`. */
static void connect_ends(uint64_t from, const uint8_t *keys[2])
{
    int fd[2];
    make_pair(fd);
    ends[0].link = link_connect(base, fd[0], keys[0], from, 3, &calls, &ends[0]);
    ends[1].link = link_accept(base, fd[1], keys[1], 3, &calls, &ends[1]);
    turn();
}

/* An open link, and the raw descriptor of its other side. */
static int open_one(void)
{
    static uint8_t bytes[256];
    struct handshake h;
    int fd[2];
    make_pair(fd);
    ends[1].link = link_accept(base, fd[1], key, 3, &calls, &ends[1]);
    handshake_connect(&h, &tern_crypto_sodium, key, HANDSHAKE_TREE, 7, 3);
    for (enum handshake_state s = HANDSHAKE_MORE; s == HANDSHAKE_MORE;) {
        assert_int_equal(write(fd[0], h.out, h.out_len), h.out_len);
        h.out_len = 0;
        turn();
        ssize_t n = read(fd[0], bytes, handshake_wants(&h));
        assert_true(n > 0);
        s = handshake_input(&h, bytes, (size_t)n);
    }
    turn();
    assert_int_equal(ends[1].opened, 1);
    return fd[0];
}

static void send_head(int fd, uint32_t length, uint16_t type, uint16_t zero)
{
    struct link_head h = {.length = htonl(length), .type = htons(type), .zero = htons(zero)};
    assert_int_equal(write(fd, &h, sizeof h), sizeof h);
}

static void test_messages(void **state)
{
    static uint8_t big[3000000];
    uint32_t sum = 0;
    (void)state;
    connect_ends(7, (const uint8_t *[]){key, key});
    assert_true(ends[0].opened == 1 && ends[1].opened == 1 && !ends[0].lost && !ends[1].lost);
    assert_true(link_from(ends[1].link) == 7);
    for (size_t i = 0; i < sizeof big; i++) sum += big[i] = (uint8_t)(i * 7 + i / 256);
    struct link_head empty = {.type = TREE_OVER, .from = 5, .to = TREE_ROOT},
                     full = {.length = sizeof big, .type = TREE_FENCE, .from = TREE_ROOT, .to = TREE_ALL};
    link_send(ends[0].link, &empty, NULL);
    turn();
    assert_int_equal(ends[1].messages, 1);
    assert_memory_equal(&ends[1].last, &empty, sizeof empty);
    link_send(ends[1].link, &full, big);
    link_send(ends[1].link, &empty, NULL);
    turn();
    assert_int_equal(ends[0].messages, 2);
    assert_int_equal(ends[0].bytes, sizeof big);
    assert_int_equal(ends[0].sum, sum);
    assert_memory_equal(&ends[0].last, &empty, sizeof empty);
    assert_int_equal(link_pending(ends[1].link), 0);
}

static void test_wrong_key(void **state)
{
    (void)state;
    connect_ends(7, (const uint8_t *[]){other_key, key});
    assert_true(!ends[0].opened && !ends[1].opened && ends[0].lost == 1 && ends[1].lost == 1);
    assert_string_equal(ends[0].why, "the other side has another key");
}

static void test_not_wanted(void **state)
{
    (void)state;
    connect_ends(8, (const uint8_t *[]){key, key});
    assert_true(!ends[0].opened && !ends[1].opened && ends[0].lost == 1 && ends[1].lost == 1);
    assert_string_equal(ends[1].why, "not wanted");
}

static void test_stranger(void **state)
{
    int fd[2];
    (void)state;
    make_pair(fd);
    ends[1].link = link_accept(base, fd[1], key, 3, &calls, &ends[1]);
    static const char words[] = "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: everything that there is, and more of it\r\n\r\n";
    assert_int_equal(write(fd[0], words, sizeof words), sizeof words);
    turn();
    assert_true(!ends[1].opened && ends[1].lost == 1 && !ends[1].messages);
    assert_string_equal(ends[1].why, "not a handshake of Tern");
    close(fd[0]);
}

/* Who makes room for others is chosen by this: a whole hello, and no less. */
static void test_has_spoken(void **state)
{
    struct handshake h;
    int fd[2];
    (void)state;
    make_pair(fd);
    ends[1].link = link_accept(base, fd[1], key, 3, &calls, &ends[1]);
    handshake_connect(&h, &tern_crypto_sodium, other_key, HANDSHAKE_TREE, 7, 3);
    assert_int_equal(write(fd[0], h.out, h.out_len - 1u), h.out_len - 1);
    turn();
    assert_false(link_has_spoken(ends[1].link));
    assert_int_equal(write(fd[0], h.out + h.out_len - 1, 1), 1);
    turn();
    assert_true(link_has_spoken(ends[1].link) && !link_is_open(ends[1].link));
    close(fd[0]);
}

static void test_end_of_a_stranger(void **state)
{
    int fd[2];
    (void)state;
    make_pair(fd);
    ends[1].link = link_accept(base, fd[1], key, 3, &calls, &ends[1]);
    close(fd[0]);
    turn();
    assert_int_equal(ends[1].lost, 1);
    assert_string_equal(ends[1].why, "Connection closed");
}

static void test_byte_by_byte(void **state)
{
    int fd = open_one();
    struct link_head h = {.length = htonl(3), .type = htons(TREE_WORDS), .to = (int32_t)htonl((uint32_t)TREE_ROOT)};
    uint8_t bytes[sizeof h + 3] = {0};
    (void)state;
    memcpy(bytes, &h, sizeof h);
    memcpy(bytes + sizeof h, "\1\2\3", 3);
    for (size_t i = 0; i < sizeof bytes; i++) {
        assert_int_equal(ends[1].messages, 0);
        assert_int_equal(write(fd, &bytes[i], 1), 1);
        turn();
    }
    assert_int_equal(ends[1].messages, 1);
    assert_int_equal(ends[1].sum, 6);
    assert_int_equal(ends[1].last.to, TREE_ROOT);
    close(fd);
}

static void test_impossible_heads(void **state)
{
    static const struct {
        uint32_t length;
        uint16_t type, zero;
    } heads[] = {{TREE_MESSAGE_MAX + 1, TREE_WORDS, 0},
                 {UINT32_MAX, TREE_WORDS, 0},
                 {0, TREE_NONE, 0},
                 {0, TREE_TYPES, 0},
                 {0, 0xffff, 0},
                 {0, TREE_WORDS, 1}};
    for (size_t i = 0; i < ARRAY_LEN(heads); i++) {
        int fd = open_one();
        send_head(fd, heads[i].length, heads[i].type, heads[i].zero);
        turn();
        assert_int_equal(ends[1].lost, 1);
        assert_int_equal(ends[1].messages, 0);
        assert_string_equal(ends[1].why, "a message that cannot be");
        close(fd);
        tear_down(state);
        set_up(state);
    }
}

static void test_refused_message(void **state)
{
    int fd = open_one();
    (void)state;
    ends[1].refuse = true;
    send_head(fd, 0, TREE_WORDS, 0);
    send_head(fd, 0, TREE_WORDS, 0);
    turn();
    assert_int_equal(ends[1].messages, 1);
    assert_int_equal(ends[1].lost, 1);
    close(fd);
}

/* A process of the job that has gone mad: nothing is read beyond what came, and the link ends, or waits for more. */
static void test_random_frames(void **state)
{
    for (int round = 0; round < 200; round++) {
        int fd = open_one();
        uint8_t bytes[400];
        for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = rand_r(&seed) % 4 ? 0 : (uint8_t)rand_r(&seed);
        for (size_t at = 0; at < sizeof bytes && !ends[1].lost;) {
            size_t n = 1 + (size_t)rand_r(&seed) % 40;
            if (n > sizeof bytes - at) n = sizeof bytes - at;
            if (write(fd, bytes + at, n) < 0) break;
            at += n;
            for (int i = 0; i < 3; i++) event_base_loop(base, EVLOOP_NONBLOCK);
        }
        assert_true(ends[1].bytes <= sizeof bytes);
        close(fd);
        turn();
        assert_int_equal(ends[1].lost, 1);
        tear_down(state);
        set_up(state);
    }
}

int main(void)
{
    const char *given = getenv("TERN_TEST_SEED");
    seed = given ? (unsigned)strtoul(given, NULL, 10) : (unsigned)time(NULL);
    cmocka_set_message_output(CM_OUTPUT_TAP);
    printf("# TERN_TEST_SEED=%u\n", seed);
    signal(SIGPIPE, SIG_IGN);
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(test_messages, set_up, tear_down),
                                       cmocka_unit_test_setup_teardown(test_wrong_key, set_up, tear_down),
                                       cmocka_unit_test_setup_teardown(test_not_wanted, set_up, tear_down),
                                       cmocka_unit_test_setup_teardown(test_stranger, set_up, tear_down),
                                       cmocka_unit_test_setup_teardown(test_has_spoken, set_up, tear_down),
                                       cmocka_unit_test_setup_teardown(test_end_of_a_stranger, set_up, tear_down),
                                       cmocka_unit_test_setup_teardown(test_byte_by_byte, set_up, tear_down),
                                       cmocka_unit_test_setup_teardown(test_impossible_heads, set_up, tear_down),
                                       cmocka_unit_test_setup_teardown(test_refused_message, set_up, tear_down),
                                       cmocka_unit_test_setup_teardown(test_random_frames, set_up, tear_down)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
