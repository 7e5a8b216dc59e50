/*
 * connect_test.c - rules of src/dpm/connect.h and connected.h for partners that do what they should not: one process accepts, the
 * other one calls again and again as strangers, cheats and dying processes would, and at last as it should. Only that last call is
 * accepted, and no call before it holds the acceptor up.
 */
#include "../transport/party.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/handshake.h"
#include "comm/talk.h"
#include "dpm/connect.h"
#include "dpm/connected.h"
#include "dpm/members.h"
#include "dpm/message.h"
#include "dpm/table.h"
#include "proc/proc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <errno.h>
#include <mpi.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* Of all processes: the port, the table that is right. */
static struct shared {
    struct port port;
    uint64_t bytes;
} *common;
static struct shared *shared(void) { return common; }

/* ---- the acceptor ---- */

static bool accept_the_good_one(const struct own_table *mine)
{
    struct endpoint *e;
    struct outcome o = {0};
    char name[PORT_NAME];
    PARTY_CHECK(!endpoint_open(&e));
    endpoint_name(e, name);
    PARTY_CHECK(!port_read(name, endpoints_crypto(), &shared()->port));
    party_meet();
    uint64_t begin = clock_ns();
    PARTY_CHECK(!connect_accept(e, mine, &o));
    uint64_t took = clock_ns() - begin;
    PARTY_CHECK(o.bytes == shared()->bytes && o.ctx);
    fprintf(stderr, "# TERN_DPM_CONNECTED=%s: accepted behind all the others after %.2f s\n", getenv("TERN_DPM_CONNECTED"), (double)took / 1e9);
    free(o.theirs);
    party_meet();
    endpoint_close(e);
    return true;
}

/* ---- callers ---- */

struct caller {
    struct endpoint *endpoint;
    struct partner *partner;
};

static bool begin_call(struct caller *c)
{
    PARTY_CHECK(!endpoint_call(&shared()->port, 0, 0, &c->endpoint, &c->partner));
    return true;
}

static void end_call_off(struct caller *c)
{
    partner_leave(c->partner);
    endpoint_close(c->endpoint);
}

static int send_it(struct caller *c, const struct dpm_message *s)
{
    size_t n;
    void *bytes = message_write(s, &n);
    int rc = bytes ? partner_send(c->partner, bytes, n) : TERN_ERR_NOMEM;
    free(bytes);
    return rc;
}

/* What comes back is of this kind. */
static bool receives(struct caller *c, enum dpm_message_kind kind, struct dpm_message *s)
{
    static uint8_t memory[4096]; /* what *s points to */
    void *bytes;
    size_t n;
    PARTY_CHECK(!partner_recv(c->partner, &bytes, &n));
    PARTY_CHECK(n <= sizeof memory);
    memcpy(memory, bytes, n);
    free(bytes);
    PARTY_CHECK(message_read(memory, n, s) && s->kind == kind);
    return true;
}

/* Says nothing that can be understood, or no table. */
static bool garbage(const struct own_table *mine)
{
    static const char *const words[] = {"", "x", "hello, is anybody there?"};
    struct caller c;
    struct dpm_message s;
    (void)mine;
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        PARTY_CHECK(begin_call(&c));
        PARTY_CHECK(!partner_send(c.partner, words[i], strlen(words[i])) && receives(&c, MESSAGE_NO, &s));
        end_call_off(&c);
    }
    PARTY_CHECK(begin_call(&c));
    PARTY_CHECK(!send_it(&c, &(struct dpm_message){.kind = MESSAGE_THANKS}) && receives(&c, MESSAGE_NO, &s));
    end_call_off(&c);
    PARTY_CHECK(begin_call(&c));
    PARTY_CHECK(!send_it(&c, &(struct dpm_message){.kind = MESSAGE_HELLO, .bytes = 24, .table = "this is no table at all."}));
    int rc = partner_flush(c.partner, 1000000000u);
    PARTY_CHECK(rc);
    end_call_off(&c);
    return true;
}

/* A context that no communicator of several jobs has. */
static bool wrong_context(const struct own_table *mine)
{
    static const uint64_t contexts[] = {0, 2, 1 | CTX_WIDE};
    struct dpm_message s;
    for (size_t i = 0; i < ARRAY_LEN(contexts); i++) {
        struct caller c;
        PARTY_CHECK(begin_call(&c));
        PARTY_CHECK(!send_it(&c, &(struct dpm_message){.kind = MESSAGE_HELLO, .ctx = contexts[i], .bytes = mine->n, .table = mine->bytes}));
        PARTY_CHECK(receives(&c, MESSAGE_NO, &s));
        end_call_off(&c);
    }
    return true;
}

/* Says of the acceptor's own job what is not so. */
static bool wrong_job(const struct own_table *mine)
{
    static const uint8_t public[CRYPTO_KEY];
    struct table_job job = {proc_self()->job, jobs_own_size + 1, public};
    struct table_entry own = {.rank = jobs_own_name().rank, .card = "card", .card_bytes = 4};
    struct caller c;
    struct dpm_message s, hello = {.kind = MESSAGE_HELLO, .ctx = comm_meeting_ctx(1)};
    void *bytes;
    size_t n;
    (void)mine;
    PARTY_CHECK(!table_write(&job, 1, &own, 1, 0, 0, &bytes, &n));
    hello.bytes = n;
    hello.table = bytes;
    PARTY_CHECK(begin_call(&c) && !send_it(&c, &hello) && receives(&c, MESSAGE_NO, &s) && strstr(s.words, "this job"));
    free(bytes);
    end_call_off(&c);
    return true;
}

/* Dies behind its first word, with a table and without. */
static bool dies_early(const struct own_table *mine)
{
    struct caller c;
    for (int table = 0; table < 2; table++) {
        PARTY_CHECK(begin_call(&c));
        PARTY_CHECK(!send_it(&c, &(struct dpm_message){.kind = MESSAGE_HELLO, .ctx = comm_meeting_ctx(1), .bytes = mine->n, .table = table ? mine->bytes : NULL}));
        if (!table) PARTY_CHECK(partner_flush(c.partner, 1000000000u));
        end_call_off(&c);
    }
    return true;
}

/* The table is to be sent over the connection that is offered. */
static bool begin_connected(struct caller *c, uint64_t bytes, struct dpm_message *meet)
{
    PARTY_CHECK(begin_call(c));
    PARTY_CHECK(!send_it(c, &(struct dpm_message){.kind = MESSAGE_HELLO, .ctx = comm_meeting_ctx(1), .bytes = bytes}));
    return receives(c, MESSAGE_MEET, meet);
}

/* Does not come, although it could; says NO. */
static bool never_connects(const struct own_table *mine)
{
    struct caller c;
    struct dpm_message s;
    PARTY_CHECK(begin_connected(&c, mine->n, &s));
    end_call_off(&c);
    PARTY_CHECK(begin_connected(&c, mine->n, &s));
    PARTY_CHECK(!send_it(&c, &(struct dpm_message){.kind = MESSAGE_NO, .code = TERN_ERR_SYSTEM, .words = "no way there"}));
    PARTY_CHECK(partner_flush(c.partner, 1000000000u));
    end_call_off(&c);
    return true;
}

/* Sends less than it has said, more, and what is no table. */
static bool wrong_lengths(const struct own_table *mine)
{
    static const struct {
        int64_t more, sent;
    } cases[] = {{100, 0}, {0, -10}, {-10, 0}, {1 << 20, 0}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct caller c;
        struct dpm_message s;
        struct connected *k;
        PARTY_CHECK(begin_connected(&c, (uint64_t)((int64_t)mine->n + cases[i].more), &s));
        PARTY_CHECK(!connected_dial(c.partner, &s.at, &k));
        PARTY_CHECK(!connected_send(k, mine->bytes, (size_t)((int64_t)mine->n + cases[i].sent)));
        connected_close(k);
        end_call_off(&c);
    }
    return true;
}

static bool open_stranger(const struct net_addr *at, const void *says, size_t n, int *fd)
{
    struct sockaddr_storage to;
    socklen_t size = net_addr_sock(at, &to);
    *fd = socket(to.ss_family, SOCK_STREAM, 0);
    PARTY_CHECK(*fd >= 0);
    int rc = connect(*fd, (struct sockaddr *)&to, size) ? errno : 0;
    if (rc) fprintf(stderr, "# a stranger cannot connect: %s\n", strerror(rc));
    PARTY_CHECK(!rc);
    PARTY_CHECK(!n || send(*fd, says, n, MSG_NOSIGNAL) == (ssize_t)n);
    return true;
}

/* Strangers connect before the partner does: silent ones, and such as talk. It goes on all the same. */
static bool among_strangers(const struct own_table *mine)
{
    static uint8_t noise[500];
    struct caller c;
    struct dpm_message s;
    struct connected *k;
    void *bytes = NULL;
    int fd[20];
    for (size_t i = 0; i < sizeof noise; i++) noise[i] = (uint8_t)(i * 7);
    PARTY_CHECK(begin_connected(&c, mine->n, &s));
    for (size_t i = 0; i < ARRAY_LEN(fd); i++) PARTY_CHECK(open_stranger(&s.at, noise, i % 3 * 40, &fd[i]));
    PARTY_CHECK(!connected_dial(c.partner, &s.at, &k));
    PARTY_CHECK(!connected_send(k, mine->bytes, mine->n));
    PARTY_CHECK(!connected_recv(k, s.bytes, &bytes) && s.bytes);
    free(bytes);
    connected_close(k);
    for (size_t i = 0; i < ARRAY_LEN(fd); i++) close(fd[i]);
    end_call_off(&c); /* without thanks: it has died */
    return true;
}

/* The partner has said its hello when many more strangers come, and keeps its place although it takes its time. */
static bool strangers_push_in(const struct own_table *mine)
{
    struct timespec while_they_come = {0, 60000000};
    struct caller c;
    struct dpm_message s;
    struct handshake h;
    uint8_t key[CRYPTO_KEY], bytes[HANDSHAKE_OUT];
    int fd[100], own;
    PARTY_CHECK(begin_connected(&c, mine->n, &s));
    partner_key(c.partner, true, key);
    handshake_connect(&h, endpoints_crypto(), key, HANDSHAKE_TABLE, 1, 2);
    PARTY_CHECK(open_stranger(&s.at, h.out, h.out_len, &own));
    h.out_len = 0;
    size_t n = handshake_wants(&h);
    PARTY_CHECK(recv(own, bytes, n, MSG_WAITALL) == (ssize_t)n && handshake_input(&h, bytes, n) == HANDSHAKE_MORE);
    for (size_t i = 0; i < ARRAY_LEN(fd); i++) PARTY_CHECK(open_stranger(&s.at, NULL, 0, &fd[i]));
    nanosleep(&while_they_come, NULL);
    PARTY_CHECK(send(own, h.out, h.out_len, MSG_NOSIGNAL) == (ssize_t)h.out_len);
    h.out_len = 0;
    n = handshake_wants(&h);
    PARTY_CHECK(recv(own, bytes, n, MSG_WAITALL) == (ssize_t)n && handshake_input(&h, bytes, n) == HANDSHAKE_DONE);
    PARTY_CHECK(h.verdict == VERDICT_WELCOME);
    for (size_t i = 0; i < ARRAY_LEN(fd); i++) close(fd[i]);
    close(own);
    end_call_off(&c);
    return true;
}

/* Between the caller and the acceptor: the first two connections are closed, the third one goes on to the acceptor. */
struct gate {
    struct net_addr at, to;
    int listener;
};

static bool open_gate(struct gate *g, const struct net_addr *to)
{
    struct sockaddr_storage a;
    *g = (struct gate){*to, *to, -1};
    g->at.port = 0;
    socklen_t n = net_addr_sock(&g->at, &a);
    g->listener = socket(a.ss_family, SOCK_STREAM, 0);
    PARTY_CHECK(!bind(g->listener, (struct sockaddr *)&a, n) && !listen(g->listener, 5));
    PARTY_CHECK(!getsockname(g->listener, (struct sockaddr *)&a, &n));
    net_addr_from(&g->at, &a);
    return true;
}

static void *be_gate(void *arg)
{
    struct gate *g = arg;
    char bytes[4096];
    ssize_t n = 1;
    for (int i = 0; i < 2; i++) close(accept(g->listener, NULL, NULL));
    struct pollfd p[2] = {{.fd = accept(g->listener, NULL, NULL), .events = POLLIN}, {.fd = -1, .events = POLLIN}};
    if (!open_stranger(&g->to, NULL, 0, &p[1].fd)) return NULL;
    while (n > 0 && poll(p, 2, -1) > 0)
        for (int i = 0; i < 2 && n > 0; i++)
            if (p[i].revents && (n = recv(p[i].fd, bytes, sizeof bytes, 0)) > 0) send(p[!i].fd, bytes, (size_t)n, MSG_NOSIGNAL);
    for (int i = 0; i < 2; i++) close(p[i].fd);
    return arg;
}

/* A partner that is turned out before it could show its key dials again. */
static bool turned_out(const struct own_table *mine)
{
    struct caller c;
    struct dpm_message s;
    struct connected *k;
    struct gate g;
    pthread_t thread;
    void *bytes = NULL, *passed;
    PARTY_CHECK(begin_connected(&c, mine->n, &s) && open_gate(&g, &s.at));
    PARTY_CHECK(!pthread_create(&thread, NULL, be_gate, &g));
    PARTY_CHECK(!connected_dial(c.partner, &g.at, &k));
    PARTY_CHECK(!connected_send(k, mine->bytes, mine->n) && !connected_recv(k, s.bytes, &bytes));
    free(bytes);
    connected_close(k);
    PARTY_CHECK(!pthread_join(thread, &passed) && passed == &g);
    close(g.listener);
    end_call_off(&c);
    return true;
}

/* Stays, and never says that it has heard. It is given up, and told so: what it says then does not come any more. */
static bool never_thanks(const struct own_table *mine)
{
    struct caller c;
    struct dpm_message s;
    uint64_t begin = clock_ns();
    PARTY_CHECK(begin_call(&c));
    PARTY_CHECK(!send_it(&c, &(struct dpm_message){.kind = MESSAGE_HELLO, .ctx = comm_meeting_ctx(1), .bytes = mine->n, .table = mine->bytes}));
    PARTY_CHECK(receives(&c, MESSAGE_TABLE, &s) && receives(&c, MESSAGE_NO, &s));
    PARTY_CHECK(s.code == TERN_ERR_PORT && strstr(s.words, "silent") && clock_ns() - begin < 2 * endpoints_patience());
    PARTY_CHECK(!send_it(&c, &(struct dpm_message){.kind = MESSAGE_THANKS}) && !partner_flush(c.partner, 100000000u));
    end_call_off(&c);
    return true;
}

/* Nobody answers a caller with another key. */
static bool wrong_key(const struct own_table *mine)
{
    struct port other = shared()->port;
    struct outcome o = {0};
    char name[PORT_NAME];
    other.key[3] ^= 1;
    port_write(&other, endpoints_crypto(), name);
    PARTY_CHECK(connect_call(name, mine, &o) == TERN_ERR_PORT);
    PARTY_CHECK(strstr(err_words(), "no answer from"));
    return true;
}

static bool call_well(const struct own_table *mine)
{
    struct outcome o = {0};
    char name[PORT_NAME];
    shared()->bytes = mine->n;
    port_write(&shared()->port, endpoints_crypto(), name);
    PARTY_CHECK(!connect_call(name, mine, &o) && o.ctx && o.bytes);
    free(o.theirs);
    return true;
}

static bool call_in_all_ways(const struct own_table *mine)
{
    party_meet();
    PARTY_CHECK(garbage(mine));
    bool by_datagram = strcmp(getenv("TERN_DPM_CONNECTED"), "0");
    if (by_datagram) PARTY_CHECK(wrong_context(mine) && wrong_job(mine));
    PARTY_CHECK(dies_early(mine));
    PARTY_CHECK(never_connects(mine));
    PARTY_CHECK(wrong_lengths(mine));
    PARTY_CHECK(among_strangers(mine));
    PARTY_CHECK(strangers_push_in(mine));
    PARTY_CHECK(turned_out(mine));
    if (by_datagram) PARTY_CHECK(never_thanks(mine));
    PARTY_CHECK(wrong_key(mine));
    PARTY_CHECK(call_well(mine));
    party_meet();
    return true;
}

static bool member(void)
{
    MPI_Init(NULL, NULL);
    void *bytes;
    struct own_table mine = {.local = comm_self()};
    PARTY_CHECK(!members_table(mine.local, 0, &bytes, &mine.n));
    mine.bytes = bytes;
    PARTY_CHECK(party_rank ? call_in_all_ways(&mine) : accept_the_good_one(&mine));
    free(bytes);
    MPI_Finalize();
    exit(0);
}

static void only_the_good_one_is_accepted(void **state)
{
    static const char *const limits[] = {"0", "16K"};
    (void)state;
    setenv("TERN_DGRAM_TIMEOUT", "2", 1);
    for (size_t i = 0; i < ARRAY_LEN(limits); i++) {
        setenv("TERN_DPM_CONNECTED", limits[i], 1);
        assert_true(party_run(2, member));
    }
}

/* ---- by a communicator: messages of other lengths than they should have ---- */

enum { CHEAT_TAG = TALK_INTER | 3, ANNOUNCED = 100 };

/* The other root says how long its table is, and what context it would take: {bytes, ctx}; then it sends the table. */
static const struct cheat {
    size_t says, sends; /* bytes of the one, of the other: 0: nothing */
    int code;
    const char *words;
} cheats[] = {
    {8, 0, TERN_ERR_SYSTEM, "rank 1 has sent 8 bytes in place of 16"},
    {20, 0, TERN_ERR_TRUNCATE, ""},
    {16, ANNOUNCED - 1, TERN_ERR_SYSTEM, "rank 1 has sent 99 bytes in place of 100"},
    {16, ANNOUNCED + 1, TERN_ERR_TRUNCATE, ""},
};

static bool cheat(const struct cheat *k)
{
    static char table[ANNOUNCED + 1], its[65536];
    uint64_t announced[3] = {ANNOUNCED, 1, 0};
    size_t n;
    PARTY_CHECK(!talk_send(comm_world(), announced, k->says, 0, CHEAT_TAG));
    PARTY_CHECK(!talk_recv_some(comm_world(), its, sizeof its, 0, CHEAT_TAG, &n) && n == 16);
    if (!k->sends) return true;
    PARTY_CHECK(!talk_send(comm_world(), table, k->sends, 0, CHEAT_TAG));
    PARTY_CHECK(!talk_recv_some(comm_world(), its, sizeof its, 0, CHEAT_TAG, &n) && n);
    return true;
}

static bool cheated(void)
{
    MPI_Init(NULL, NULL);
    for (size_t i = 0; i < ARRAY_LEN(cheats); i++) {
        struct comm *made = comm_self();
        if (party_rank) PARTY_CHECK(cheat(&cheats[i]));
        else PARTY_CHECK(dpm_inter_create(comm_self(), 0, comm_world(), 1, CHEAT_TAG, &made) == cheats[i].code && !made);
        if (!party_rank) PARTY_CHECK(strstr(err_words(), cheats[i].words));
    }
    party_meet();
    MPI_Finalize();
    exit(0);
}

static void lengths_are_checked(void **state)
{
    (void)state;
    assert_true(party_run(2, cheated));
}

int main(void)
{
    common = mmap(NULL, sizeof *common, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (common == MAP_FAILED) return 1;
    const struct CMUnitTest tests[] = {cmocka_unit_test(only_the_good_one_is_accepted), cmocka_unit_test(lengths_are_checked)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
