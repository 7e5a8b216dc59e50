/*
 * exchange_test.c - what an exchange of two groups costs: datagrams for a few children; tables of 10 000 processes over a network that
 * loses, doubles and reorders; and a spawn of 100 000 processes as it was worked out on paper: bytes, messages and depth of each phase.
 * The two roots are endpoints on a simulated network, and send what connect.c has them send.
 *
 * On paper, for n processes on h hosts, whose launcher serves one of them itself and has w daemons below each vertex; D bytes describe
 * the job, T(n) are its table, p processes spawn it. Level k of the tree has n_k = w^k vertices, but for the last one.
 *
 *     launch    description    h - 1 messages of 16 + D bytes       from each vertex to its children
 *               ready          sum of k n_k messages of 16 bytes    from each daemon up to the root, a message a link
 *               start          h - 1 messages of 16 bytes           down again
 *     roots     HELLO, TABLE   T(n) and T(p) bytes                  datagrams, or a connection (connected.h)
 *               THANKS
 *     groups    verdict, table 2 (n - 1) messages, T(p) bytes each; 2 (p - 1), T(n) each: log2 n and log2 p deep
 *
 * The launch is as deep as the tree three times. The root and each daemon send the description and the start to their children; the first
 * daemon of level 1 sends most, as it passes on the reports of all daemons below it as well. A root tells VERDICT bytes before the table.
 * What members tell their roots before that, and the start of the agents, are not counted.
 */
#include "net.h"

#include "base/err.h"
#include "comm/talk.h"
#include "dpm/message.h"
#include "dpm/table.h"
#include "mpiexec/tree_shape.h"
#include "transport/dgram/faults.h"

#include "../mpiexec/on_paper.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MTU = 2048, CARD = 171, PER_NODE = 16, OWN_BYTES = 14 };

/* ---- a table ---- */

/* The world of a job of n processes, 16 on a node; cards of a node differ in 6 bytes and in 8. */
static void *make_table(uint32_t n, size_t *bytes)
{
    static const uint8_t public[CRYPTO_KEY];
    struct table_job job = {"a.job.of.some.name", n, public};
    struct table_entry *e = calloc(n, sizeof *e);
    uint8_t *cards = calloc(n, CARD);
    void *t = NULL;
    assert_true(e && cards);
    for (uint32_t i = 0; i < n; i++) {
        uint8_t *card = cards + (size_t)i * CARD;
        uint32_t node = i / PER_NODE, local = i % PER_NODE;
        for (size_t k = 0; k < CARD; k++) card[k] = (uint8_t)((node * 0x9e3779b1u) >> k % 4 * 8);
        for (size_t k = 0; k < OWN_BYTES; k++) card[k < 6 ? 40 + k : 90 + k] ^= (uint8_t)local;
        e[i] = (struct table_entry){0, i, node, CARD, card};
    }
    assert_int_equal(table_write(&job, 1, e, n, 0, 0, &t, bytes), 0);
    free(e);
    free(cards);
    return t;
}

/* On paper: what is told once; a whole card for each node; 4 + 1 + (2 + 6) + (2 + 8) bytes for each other process. */
static size_t table_bytes(uint32_t n)
{
    size_t nodes = (n + PER_NODE - 1) / PER_NODE, once = 20 + (4 + sizeof "a.job.of.some.name" + 4 + CRYPTO_KEY) + 12;
    return once + nodes * (CARD + 6) + (n - nodes) * 23;
}

/* ---- the roots ---- */

struct root {
    struct dgram *ep;
    struct dgram_peer *peer;
    struct dgram_message out[2];
    void *sent[2];
    unsigned n, under_way;
    void *table; /* that of this side */
    size_t bytes;
    struct table theirs;
    bool knows, thanked;
};
static struct root roots[2]; /* caller, acceptor */

static void done(struct dgram_message *m, int rc)
{
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < 2; k++)
            if (&roots[i].out[k] == m && !rc) roots[i].under_way--;
}

static void send_message(struct root *r, struct dpm_message s)
{
    size_t n;
    void *bytes = r->sent[r->n] = message_write(&s, &n);
    assert_non_null(bytes);
    r->out[r->n] = (struct dgram_message){.data = bytes, .n = n, .done = done};
    r->under_way++;
    assert_int_equal(dgram_send(r->peer, &r->out[r->n++]), 0);
}

static bool deliver(void *arg, struct dgram_peer *peer, const void *data, size_t n)
{
    struct root *r = arg;
    struct dpm_message s;
    r->peer = peer;
    assert_true(message_read(data, n, &s));
    if (s.kind == MESSAGE_THANKS) {
        r->thanked = true;
        return true;
    }
    assert_int_equal(table_open(&r->theirs, s.table, s.bytes), 0);
    r->knows = true;
    if (s.kind == MESSAGE_HELLO) send_message(r, (struct dpm_message){.kind = MESSAGE_TABLE, .ctx = 2, .bytes = r->bytes, .table = r->table});
    else send_message(r, (struct dpm_message){.kind = MESSAGE_THANKS});
    return true;
}

static void open_root(unsigned i, uint32_t n, const char *faults)
{
    static const uint8_t key[CRYPTO_KEY];
    char words[128];
    struct dgram_params p = {.patience = 20000000000u, .window = DGRAM_WINDOW, .seq_bits = 32, .secret = key,
                             .crypto = &tern_crypto_sodium, .arg = &roots[i], .deliver = deliver};
    roots[i] = (struct root){0};
    p.wire = net_open(i, MTU);
    snprintf(words, sizeof words, "seed=%u,%s", 77 + i, faults);
    assert_int_equal(faults_wrap(&p.wire, *faults ? words : ""), 0);
    assert_int_equal(dgram_open(&roots[i].ep, &p), 0);
    roots[i].table = make_table(n, &roots[i].bytes);
}

static uint64_t packets;

static void count(unsigned from, unsigned to, const void *bytes, size_t n)
{
    (void)from;
    (void)to;
    (void)bytes;
    (void)n;
    packets++;
}

/* Until all is sent and acknowledged; the simulated time that it takes, ns. */
static uint64_t exchange(uint32_t children, uint32_t parents, const char *faults)
{
    uint8_t card[DGRAM_CARD];
    net_reset();
    packets = 0;
    net_tap = count;
    open_root(0, children, faults);
    open_root(1, parents, faults);
    uint64_t begin = net_now;
    assert_int_equal(dgram_peer_open(roots[0].ep, card, dgram_card(roots[1].ep, card), &roots[0].peer), 0);
    send_message(&roots[0], (struct dpm_message){.kind = MESSAGE_HELLO, .ctx = 1, .bytes = roots[0].bytes, .table = roots[0].table});
    while (!roots[1].thanked || roots[0].under_way || roots[1].under_way) {
        uint64_t at = net_next();
        for (int i = 0; i < 2; i++) at = min_size(at, dgram_next_timeout(roots[i].ep));
        assert_true(at - begin < 100000000000u || at < begin);
        if (at > net_now) net_now = at;
        for (int i = 0; i < 2; i++) dgram_progress(roots[i].ep, net_now);
    }
    assert_true(roots[0].knows && roots[1].knows && roots[0].theirs.size == parents && roots[1].theirs.size == children);
    return net_now - begin;
}

static void close_roots(void)
{
    for (int i = 0; i < 2; i++) {
        dgram_close(roots[i].ep);
        table_close(&roots[i].theirs);
        free(roots[i].table);
        for (int k = 0; k < 2; k++) free(roots[i].sent[k]);
    }
}

/* Segments of a message with a table; a sender that has not been heard of leaves room for its card. */
static uint64_t segments(size_t table, bool first)
{
    size_t each = MTU - DGRAM_HEADER - (first ? DGRAM_CARD : 0), n = 4 + 8 + 8 + table;
    return (n + each - 1) / each;
}

/* ---- the tests ---- */

/* HELLO, TABLE, THANKS and its acknowledgement: four datagrams as long as a table fits into one, and no connection. */
static void datagrams_of_few_children(void **state)
{
    (void)state;
    for (uint32_t n = 1; n <= 64; n++) {
        exchange(n, 1, "");
        uint64_t hello = segments(table_bytes(n), true), table = segments(table_bytes(1), false);
        struct dgram_stats s[2] = {dgram_stats(roots[0].ep), dgram_stats(roots[1].ep)};
        assert_int_equal(roots[0].bytes, table_bytes(n));
        assert_int_equal(s[0].segments, hello + 1);
        assert_int_equal(s[1].segments, table);
        assert_int_equal(s[0].resent + s[1].resent, 0);
        if (hello == 1) assert_int_equal(packets, 4);
        assert_in_range(packets, hello + table + 2, 2 * hello + table + 2);
        if (!(n & (n - 1))) print_message("# %u children: a table of %zu bytes, %llu datagrams\n", n, table_bytes(n), (unsigned long long)packets);
        close_roots();
    }
}

static void large_tables_cross(void **state)
{
    static const char *const faults[] = {"", "loss=20,dup=20,reorder=20"};
    (void)state;
    for (unsigned i = 0; i < ARRAY_LEN(faults); i++) {
        uint64_t ns = exchange(10000, 10000, faults[i]);
        uint64_t once = segments(table_bytes(10000), true) + segments(table_bytes(10000), false) + 1;
        uint64_t sent = dgram_stats(roots[0].ep).segments + dgram_stats(roots[1].ep).segments;
        print_message("# two tables of 10000 processes, %zu bytes each, faults \"%s\": %llu segments, %llu datagrams, %.1f ms\n", roots[0].bytes,
                      faults[i], (unsigned long long)sent, (unsigned long long)packets, (double)ns / 1e6);
        /* the segments of the first table grow when the other side has been heard */
        assert_in_range(sent, once - segments(table_bytes(10000), true) / 20, once);
        close_roots();
    }
}

/* The spread of a group: who has it after how many steps, where each process sends to one other in a step. */
static void spread(int32_t n, int64_t *messages, int32_t *depth)
{
    int32_t *at = malloc((size_t)n * sizeof *at);
    assert_non_null(at);
    for (int32_t r = 0; r < n; r++) at[r] = -1;
    at[0] = 0;
    *messages = *depth = 0;
    for (int32_t r = 0; r < n; r++) {
        int32_t bit = talk_lowest_bit(r, n), step = at[r];
        assert_true(step >= 0); /* its parent is a lower rank */
        while (bit >>= 1) {
            if (r + bit >= n) continue;
            assert_int_equal(at[r + bit], -1); /* nobody has it twice */
            at[r + bit] = ++step;
            ++*messages;
        }
        *depth = r && at[r] > *depth ? at[r] : *depth;
    }
    free(at);
}

static int32_t log2_up(int64_t n)
{
    int32_t bits = 0;
    while ((int64_t)1 << bits < n) bits++;
    return bits;
}

/* ---- the launch of many ---- */

enum { HEAD = 16, VERDICT = 32, ONCE = 2048, HOST_NAME = 8 }; /* ONCE: bytes of arguments and environment */

/* What goes over the links of a tree of daemons, and what each vertex sends of it. */
struct launch {
    struct tree_shape shape;
    int64_t *sent; /* by vertex */
    int64_t messages, bytes;
    int depth;
};

static void send_link(struct launch *l, int from, int64_t bytes)
{
    l->sent[from]++;
    l->messages++;
    l->bytes += HEAD + bytes;
}

/* From each vertex to its children. */
static void send_down(struct launch *l, int64_t bytes)
{
    for (int v = 0, first = 0; v < l->shape.vertices; v++)
        for (int n = tree_children(&l->shape, v, &first); n; n--) send_link(l, v, bytes);
}

/* From each daemon to the root, link by link. */
static void report_up(struct launch *l)
{
    for (int v = 1; v < l->shape.vertices; v++) {
        int depth = 0;
        for (int at = v; at; at = tree_parent(&l->shape, at), depth++) send_link(l, at, 0);
        l->depth = depth > l->depth ? depth : l->depth;
    }
}

static struct launch launch_of(int width, int hosts, int64_t description)
{
    struct launch l = {.shape = {width, hosts}, .sent = calloc((size_t)hosts, sizeof *l.sent)};
    assert_non_null(l.sent);
    send_down(&l, description);
    report_up(&l);
    send_down(&l, 0);
    return l;
}

static int64_t paper_launch(int64_t width, int64_t hosts, int *depth)
{
    int64_t reports = 0;
    for (*depth = 0; paper_level(width, hosts, *depth + 1); ++*depth) reports += (*depth + 1) * paper_level(width, hosts, *depth + 1);
    return 2 * (hosts - 1) + reports;
}

static void launch_as_on_paper(const struct launch *l, int64_t description)
{
    int64_t width = l->shape.width, hosts = l->shape.vertices, most = 0;
    int64_t root = 2 * min_int64(width, hosts - 1), first = 2 * min_int64(width, paper_level(width, hosts, 2)) + paper_below_first(width, hosts);
    int depth;
    for (int v = 0; v < hosts; v++) most = l->sent[v] > most ? l->sent[v] : most;
    assert_int_equal(l->messages, paper_launch(width, hosts, &depth));
    assert_int_equal(l->depth, depth);
    assert_int_equal(l->bytes, HEAD * l->messages + (hosts - 1) * description);
    assert_int_equal(l->sent[0], root);
    if (hosts > 1) assert_int_equal(l->sent[1], first);
    assert_int_equal(most, first > root ? first : root);
}

/* The tree of several widths, up to the spawn that is counted below. */
static void launches_as_on_paper(void **state)
{
    static const int widths[] = {2, 4, 16, 64}, hosts[] = {1, 2, 17, 18, 100, 1563, 6250};
    (void)state;
    for (unsigned w = 0; w < ARRAY_LEN(widths); w++)
        for (unsigned h = 0; h < ARRAY_LEN(hosts); h++) {
            int64_t description = (int64_t)paper_description(ONCE, (size_t)hosts[h], HOST_NAME, (size_t)hosts[h] * 64);
            struct launch l = launch_of(widths[w], hosts[h], description);
            launch_as_on_paper(&l, description);
            free(l.sent);
        }
}

/* The verdict and the table of the other group, in a group of n: messages, bytes, depth. */
static int64_t spread_to(int32_t n, size_t table, int64_t *bytes, int32_t *depth)
{
    int64_t messages;
    spread(n, &messages, depth);
    assert_int_equal(messages, n - 1);
    assert_int_equal(*depth, log2_up(n));
    *bytes = messages * (VERDICT + (int64_t)table);
    return 2 * messages;
}

/* A process of 64 spawns 100 000 on hosts of 64, from end to end. */
static void spawn_of_many(void **state)
{
    enum { PARENTS = 64, CHILDREN = 100000, PER_HOST = 64, WIDTH = 16, HOSTS = (CHILDREN + PER_HOST - 1) / PER_HOST };
    int64_t description = (int64_t)paper_description(ONCE, HOSTS, HOST_NAME, CHILDREN), bytes[2];
    int32_t depth[2], levels;
    (void)state;
    for (int32_t n = 1; n <= 300; n++) spread_to(n, 0, &bytes[0], &depth[0]);
    struct launch l = launch_of(WIDTH, HOSTS, description);
    launch_as_on_paper(&l, description);
    print_message("# launch: %d hosts, %d levels, %lld messages, %lld bytes; the root sends %lld messages, a daemon at most %lld\n", HOSTS,
                  l.depth, (long long)l.messages, (long long)l.bytes, (long long)l.sent[0], (long long)l.sent[1]);
    exchange(CHILDREN, PARENTS, "");
    int64_t roots_bytes = (int64_t)(roots[0].bytes + roots[1].bytes);
    print_message("# roots: %zu and %zu bytes, %llu datagrams if it is done by them\n", roots[0].bytes, roots[1].bytes,
                  (unsigned long long)packets);
    close_roots();
    int64_t children = spread_to(CHILDREN, table_bytes(PARENTS), &bytes[0], &depth[0]);
    int64_t parents = spread_to(PARENTS, table_bytes(CHILDREN), &bytes[1], &depth[1]), all = l.messages + 3 + children + parents;
    int64_t all_bytes = l.bytes + roots_bytes + bytes[0] + bytes[1];
    print_message("# children: %lld messages, %lld bytes, %d deep; parents: %lld messages, %lld bytes, %d deep\n", (long long)children,
                  (long long)bytes[0], depth[0], (long long)parents, (long long)bytes[1], depth[1]);
    print_message("# all: %lld messages, %lld bytes, %d deep\n", (long long)all, (long long)all_bytes, 3 * l.depth + 3 + depth[0]);
    assert_int_equal(all, paper_launch(WIDTH, HOSTS, &levels) + 3 + 2 * (CHILDREN - 1) + 2 * (PARENTS - 1));
    assert_int_equal(3 * l.depth + 3 + depth[0], 3 * levels + 3 + log2_up(CHILDREN));
    assert_int_equal(all_bytes, HEAD * l.messages + (HOSTS - 1) * description + (int64_t)(table_bytes(CHILDREN) + table_bytes(PARENTS)) +
                                    (CHILDREN - 1) * (VERDICT + (int64_t)table_bytes(PARENTS)) +
                                    (PARENTS - 1) * (VERDICT + (int64_t)table_bytes(CHILDREN)));
    free(l.sent);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(datagrams_of_few_children),
        cmocka_unit_test(large_tables_cross),
        cmocka_unit_test(launches_as_on_paper),
        cmocka_unit_test(spawn_of_many),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
