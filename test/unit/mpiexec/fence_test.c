/* fence_test.c - fences over nodes: the root's gathering and a node's part; the test carries the messages. */
#include "mpiexec/fence.h"
#include "mpiexec/post.h"
#include "mpiexec/tree.h"
#include "mpiexec/wire.h"
#include "mpiexec/words.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* Three nodes of two ranks each: 0 1 | 2 3 | 4 5. This process is the root, and serves node 0. */
#define NODES 3
#define SIZE 6

tree_handler_fn tree_handlers[TREE_TYPES];

static struct job job;
static struct sent {
    int to;
    size_t n;
    unsigned char bytes[1024];
} sent[64];
static int nsent;

void tree_send(int to, enum tree_type type, const void *bytes, size_t n)
{
    if (to == TREE_ROOT || to == 0) { /* to oneself: at once */
        assert_true(tree_handlers[type](0, bytes, n));
        return;
    }
    assert_int_equal(type, TREE_FENCE_DONE);
    assert_true(nsent < (int)ARRAY_LEN(sent) && n <= sizeof sent[0].bytes);
    sent[nsent] = (struct sent){.to = to, .n = n};
    memcpy(sent[nsent++].bytes, bytes, n);
}

static int set_up(void **state)
{
    static struct node nodes[NODES];
    static struct rank ranks[SIZE];
    (void)state;
    job = (struct job){.size = SIZE,
                       .nnodes = NODES,
                       .node = 0,
                       .root = true,
                       .nodes = nodes,
                       .ranks = ranks,
                       .base = event_base_new()};
    for (int i = 0; i < NODES; i++) nodes[i] = (struct node){.nranks = 2, .own = i == 0};
    for (int r = 0; r < SIZE; r++) ranks[r] = (struct rank){.rank = r, .node = r / 2, .local = r % 2};
    fence_open(&job);
    return !post_open(job.base);
}

static int begin(void **state)
{
    (void)state;
    nsent = 0;
    return 0;
}

/* ---- another node's messages ---- */

static bool message(int from, enum fence_kind kind, const uint32_t *ranks, uint32_t n, int status, const char *text)
{
    struct wire_out w = {0};
    wire_put8(&w, (uint8_t)kind);
    wire_put32(&w, n);
    for (uint32_t i = 0; i < n; i++) wire_put32(&w, ranks[i]);
    wire_put32(&w, (uint32_t)status);
    wire_put_raw(&w, text, strlen(text));
    bool taken = tree_handlers[TREE_FENCE](from, w.bytes, w.n);
    wire_free(&w);
    return taken;
}

static bool enters(int from, const char *text) { return message(from, FENCE_EXCHANGE, NULL, 0, 0, text); }

/* The status and the text of a result. */
static int result(const struct sent *s, char *text)
{
    struct wire_in w = wire_of(s->bytes, s->n);
    wire_get8(&w);
    for (uint32_t n = wire_get_count(&w, 4); n; n--) wire_get32(&w);
    int status = (int)wire_get32(&w);
    assert_false(w.bad);
    memcpy(text, w.at, wire_left(&w));
    text[wire_left(&w)] = 0;
    return status;
}

/* ---- our own node ---- */

struct own {
    int calls, status;
    char text[256];
};

static void own_done(void *arg, int status, char *bytes, size_t n)
{
    struct own *o = arg;
    o->calls++;
    o->status = status;
    assert_true(n < sizeof o->text);
    memcpy(o->text, bytes ? bytes : "", n);
    o->text[n] = 0;
    free(bytes);
}

static void own_enters(struct own *o, const uint32_t *ranks, uint32_t n, const char *text)
{
    fence_enter(FENCE_EXCHANGE, ranks, n, text, strlen(text), own_done, o);
    event_base_loop(job.base, EVLOOP_NONBLOCK);
}

/* The text has each of the parts once, in any order. */
static void assert_parts(const char *text, const char *a, const char *b, const char *c)
{
    assert_int_equal(strlen(text), strlen(a) + strlen(b) + strlen(c));
    assert_true(strstr(text, a) && strstr(text, b) && strstr(text, c));
}

static void all_get_all(void **state)
{
    struct own own = {0};
    char text[1024];
    (void)state;
    assert_true(enters(2, "two,"));
    own_enters(&own, NULL, 0, "zero,");
    assert_int_equal(own.calls, 0);
    assert_int_equal(nsent, 0);
    assert_true(enters(1, "one,"));
    assert_int_equal(own.calls, 1);
    assert_int_equal(own.status, 0);
    assert_parts(own.text, "zero,", "one,", "two,");
    assert_int_equal(nsent, 1);
    assert_int_equal(sent[0].to, TREE_ALL);
    assert_int_equal(result(&sent[0], text), 0);
    assert_parts(text, "zero,", "one,", "two,");
}

/* A node may be in the next fence while others are in the last. */
static void the_next_fence_is_another(void **state)
{
    struct own first = {0}, second = {0};
    (void)state;
    assert_true(enters(1, "a1"));
    assert_true(enters(1, "b1"));
    assert_true(enters(2, "a2"));
    own_enters(&first, NULL, 0, "a0");
    assert_int_equal(first.calls, 1);
    assert_parts(first.text, "a0", "a1", "a2");
    own_enters(&second, NULL, 0, "b0");
    assert_int_equal(second.calls, 0);
    assert_true(enters(2, "b2"));
    assert_int_equal(second.calls, 1);
    assert_parts(second.text, "b0", "b1", "b2");
    assert_int_equal(first.calls, 1);
}

/* Fences of some ranks concern their nodes only, and those of other ranks or kinds are others. */
static void fences_of_some(void **state)
{
    static const uint32_t low[] = {0, 3}, high[] = {3, 4};
    struct own own = {0};
    char text[1024];
    (void)state;
    own_enters(&own, low, 2, "low0,");
    assert_true(message(1, FENCE_EXCHANGE, high, 2, 0, "high1,"));
    assert_true(message(1, FENCE_CONNECT, low, 2, 0, ""));
    assert_int_equal(own.calls, 0);
    assert_true(message(1, FENCE_EXCHANGE, low, 2, 0, "low1,"));
    assert_int_equal(own.calls, 1);
    assert_parts(own.text, "low0,", "low1,", "");
    assert_true(nsent == 1 && sent[0].to == 1);
    assert_true(message(2, FENCE_EXCHANGE, high, 2, 0, "high2,"));
    assert_int_equal(nsent, 3);
    assert_true(sent[1].to == 1 && sent[2].to == 2);
    assert_int_equal(result(&sent[2], text), 0);
    assert_parts(text, "high1,", "high2,", "");
    assert_int_equal(own.calls, 1);
}

static void a_failure_is_everybodys(void **state)
{
    struct own own = {0};
    char text[1024];
    (void)state;
    own_enters(&own, NULL, 0, "zero");
    assert_true(message(1, FENCE_EXCHANGE, NULL, 0, -29, ""));
    assert_true(enters(2, "two"));
    assert_int_equal(own.calls, 1);
    assert_int_equal(own.status, -29);
    assert_string_equal(own.text, "");
    assert_int_equal(result(&sent[0], text), -29);
    assert_string_equal(text, "");
}

static void what_cannot_be_is_refused(void **state)
{
    static const uint32_t low[] = {0, 3}, twice[] = {3, 3}, wrong_way[] = {3, 0}, nobody[] = {0, SIZE};
    static const unsigned char bytes[] = {0, 0, 0, 0, 9, 0, 0, 0, 0};
    (void)state;
    assert_false(message(2, FENCE_EXCHANGE, low, 2, 0, "")); /* takes no part */
    assert_false(message(1, FENCE_EXCHANGE, twice, 2, 0, ""));
    assert_false(message(1, FENCE_EXCHANGE, wrong_way, 2, 0, ""));
    assert_false(message(1, FENCE_EXCHANGE, nobody, 2, 0, ""));
    assert_false(message(1, FENCE_KINDS, NULL, 0, 0, ""));
    assert_false(message(NODES, FENCE_EXCHANGE, NULL, 0, 0, ""));
    for (size_t n = 0; n <= sizeof bytes; n++) assert_false(tree_handlers[TREE_FENCE](1, bytes, n));
    assert_false(tree_handlers[TREE_FENCE_DONE](0, "\0\0\0\0\0\0\0\0\0", 9)); /* nobody waits for it */
    assert_false(tree_handlers[TREE_FENCE_DONE](1, "\0\0\0\0\0\0\0\0\0", 9)); /* and it is not the root */
    assert_int_equal(nsent, 0);
}

/* Many fences of random ranks, entered in any order that keeps that of each node. */
static void random_order(void **state)
{
    enum { FENCES = 60 };
    uint32_t ranks[FENCES][SIZE];
    uint32_t n[FENCES];
    int next[NODES] = {0};
    struct own own[FENCES] = {{0}};
    (void)state;
    unsigned seed = (unsigned)getpid();
    print_message("# seed %u\n", seed);
    srand(seed);
    for (int f = 0; f < FENCES; f++) {
        n[f] = 0;
        for (uint32_t r = 0; r < SIZE; r++)
            if (rand() % 2) ranks[f][n[f]++] = r;
    }
    for (int left = NODES * FENCES; left;) {
        int node = rand() % NODES, f = next[node];
        if (f == FENCES) continue;
        next[node]++;
        left--;
        bool member = !n[f];
        for (uint32_t i = 0; i < n[f]; i++) member |= ranks[f][i] / 2 == (uint32_t)node;
        if (!member) continue;
        char text[32];
        snprintf(text, sizeof text, "%d.%d,", f, node);
        nsent = 0;
        if (node)
            assert_true(message(node, FENCE_EXCHANGE, ranks[f], n[f], 0, text));
        else
            own_enters(&own[f], ranks[f], n[f], text);
    }
    for (int f = 0; f < FENCES; f++) {
        bool member = !n[f] || ranks[f][0] < 2;
        assert_int_equal(own[f].calls, member);
        for (const char *p = own[f].text; *p; p = strchr(p, ',') + 1) assert_int_equal(atoi(p), f);
        if (member) assert_non_null(strstr(own[f].text, ".0,"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(all_get_all, begin),    cmocka_unit_test_setup(the_next_fence_is_another, begin),
        cmocka_unit_test_setup(fences_of_some, begin), cmocka_unit_test_setup(a_failure_is_everybodys, begin),
        cmocka_unit_test_setup(random_order, begin),   cmocka_unit_test_setup(what_cannot_be_is_refused, begin)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, set_up, NULL);
}
