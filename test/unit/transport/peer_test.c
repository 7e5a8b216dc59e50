/* peer_test.c - the address book: made at first use, chosen by cost, refusing in words what cannot be. */
#include "party.h"
#include "base/err.h"
#include "base/var.h"
#include "proc/proc.h"
#include "transport/mock/mock.h"
#include "transport/peer.h"
#include "transport/wires.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool first_use(void)
{
    PARTY_CHECK(party_open("self,shm"));
    PARTY_CHECK(peer_count == 3);
    for (uint32_t i = 0; i < 3; i++) PARTY_CHECK(peer_table[i] == NULL);
    struct peer *p = peer_of_sender((party_rank + 1) % 3);
    PARTY_CHECK(p && p->index == (party_rank + 1) % 3 && !p->ep.ops); /* known, not connected */
    PARTY_CHECK(peer_of_sender(p->index) == p);
    PARTY_CHECK(peer_get(p->index) == p && p->ep.ops == &tp_shm);
    PARTY_CHECK(p->credit == var_int(VAR_EAGER_STORE) / 4); /* two others share half of it */
    PARTY_CHECK(peer_get(party_rank)->ep.ops == &tp_self); /* the nearest way to oneself */
    PARTY_CHECK(peer_table[(party_rank + 2) % 3] == NULL);
    PARTY_CHECK((uintptr_t)p % CACHE_LINE == 0);
    return true;
}

static int64_t credit_of(uint32_t rank) { return rank ? 1 << 20 : 4096; }

/* Regression: the quota of a sender came from its own variables, so a receiver with less to give was sent too much. */
static bool quotas(void)
{
    uint32_t other = 1 - party_rank;
    setenv("TERN_EAGER_CREDIT", party_rank ? "1M" : "4K", 1);
    PARTY_CHECK(party_open("self,shm"));
    struct peer *p = peer_of_sender(other);
    PARTY_CHECK(p->quota == credit_of(party_rank) && p->quota_there == 0 && p->credit == 0);
    if (party_rank) peer_learn_quota(p); /* as where the peer has connected to us */
    PARTY_CHECK(peer_get(other) == p);
    PARTY_CHECK(p->quota_there == credit_of(other) && p->credit == credit_of(other));
    peer_learn_quota(p);
    PARTY_CHECK(p->credit == credit_of(other));
    return true;
}

static void receivers_say_the_quota(void **state)
{
    (void)state;
    assert_true(party_run(2, quotas));
}

static bool nobody(void)
{
    PARTY_CHECK(party_open("self,shm"));
    PARTY_CHECK(peer_of_sender(3) == NULL);
    PARTY_CHECK(strstr(err_words(), "3"));
    PARTY_CHECK(peer_connect(UINT32_MAX) == NULL);
    return true;
}

static bool only_self(void)
{
    PARTY_CHECK(party_open("self"));
    PARTY_CHECK(peer_get(party_rank) != NULL);
    err_clear();
    PARTY_CHECK(peer_connect(1 - party_rank) == NULL);
    PARTY_CHECK(strstr(err_words(), "TERN_TRANSPORTS=self") && strstr(err_words(), party_rank ? "rank 0" : "rank 1"));
    PARTY_CHECK(peer_of_sender(1 - party_rank)->ep.ops == NULL);
    PARTY_CHECK(wires_progress(64) == 0 && wires_idle(true) && wires_bell());
    return true;
}

static void nothing(struct peer *from, uint64_t h0, uint64_t h1, const void *data, size_t n) { (void)from, (void)h0, (void)h1, (void)data, (void)n; }

/* Rank 2 knows a message that the others do not, as one of another version of the library may. */
static bool another_version(void)
{
    if (party_rank == 2) PARTY_CHECK(party_takes(nothing, NULL));
    PARTY_CHECK(party_open("self,shm"));
    PARTY_CHECK(!peer_connect(2) == (party_rank != 2));
    PARTY_CHECK(party_rank == 2 || (strstr(err_words(), "rank 2") && strstr(err_words(), "other messages")));
    PARTY_CHECK(!peer_connect(0) == (party_rank == 2));
    return true;
}

/* Rank 2 has the same message as the others, with a struct of another size, as a build of another commit may. */
static bool another_size(void)
{
    struct tp_am m = {AM_NUMBER, "number", nothing, NULL, false, party_rank == 2 ? 32 : 24};
    PARTY_CHECK(tp_am_register(&m, 1) == 0);
    PARTY_CHECK(party_open("self,shm"));
    PARTY_CHECK(!peer_connect(2) == (party_rank != 2));
    PARTY_CHECK(party_rank == 2 || (strstr(err_words(), "rank 2") && strstr(err_words(), "other messages")));
    PARTY_CHECK(party_rank == 2 || peer_connect(1 - party_rank));
    return true;
}

static void other_versions_are_not_connected(void **state)
{
    (void)state;
    assert_true(party_run(3, another_size));
    assert_true(party_run(3, another_version));
}

static bool shm_to_oneself(void)
{
    PARTY_CHECK(party_open("shm"));
    PARTY_CHECK(peer_get(party_rank)->ep.ops == &tp_shm);
    return true;
}

/* ---- several domains of one transport ---- */

static uint64_t heard;
static void hear(struct peer *from, uint64_t h0, uint64_t h1, const void *data, size_t n)
{
    (void)data;
    heard += from->index == party_rank && h0 == 5 && h1 == 6 && n == 0;
}

/* The table of costs has its least in [here][there]. */
static bool choose(uint32_t here, uint32_t there)
{
    for (uint32_t i = 0; i < MOCK_DOMAINS * MOCK_DOMAINS; i++) mock_script.latency_ns[i / 2][i % 2] = 100 - i;
    mock_script.latency_ns[here][there] = 10;
    struct peer *p = peer_connect(party_rank);
    PARTY_CHECK(p && p->ep.ops == &tp_mock && p->ep.dom == wires_at((int)here)->dom);
    for (heard = 0; wires_progress(64);) continue;
    PARTY_CHECK(p->ep.am_short(&p->ep, AM_NUMBER, 5, 6, NULL, 0) == 0 && !wires_idle(false));
    PARTY_CHECK(wires_at(!here)->ops->progress(wires_at(!here)->dom, 64) == 0); /* it goes by that domain only */
    PARTY_CHECK(wires_progress(64) == 1 && heard == 1 && wires_idle(false));
    PARTY_CHECK(peer_close(party_rank) == 0);
    return true;
}

static bool two_domains(void)
{
    PARTY_CHECK(party_takes(hear, NULL));
    PARTY_CHECK(party_open("mock"));
    PARTY_CHECK(!strcmp(wires_at(0)->name, "mock:a") && !strcmp(wires_at(1)->name, "mock:b") && !wires_at(2));
    for (uint32_t i = 0; i < MOCK_DOMAINS * MOCK_DOMAINS; i++) PARTY_CHECK(choose(i / 2, i % 2));
    return true;
}

static bool one_of_two(void)
{
    PARTY_CHECK(party_open("self,mock:b"));
    PARTY_CHECK(!strcmp(wires_at(1)->name, "mock:b") && !wires_at(2));
    return true;
}

static void the_cheapest_domain_is_taken(void **state)
{
    (void)state;
    setenv("TERN_MOCK_DOMAINS", "2", 1);
    assert_true(party_run(1, two_domains));
    assert_true(party_run(1, one_of_two));
    unsetenv("TERN_MOCK_DOMAINS");
}

static struct tp_kept *kept;
static const void *shown;
static void keep_it(struct peer *from, uint64_t h0, uint64_t h1, const void *data, size_t n)
{
    (void)from, (void)h0, (void)h1;
    shown = data;
    kept = tp_keep(data, n, TP_KEEP_BRIEFLY);
}

/* Only the wire that a message comes by has its bytes: the others are not asked for them. */
static bool kept_by_its_wire(void)
{
    static char bytes[1000];
    PARTY_CHECK(party_takes(keep_it, NULL));
    PARTY_CHECK(party_open("mock"));
    for (uint32_t here = 0; here < MOCK_DOMAINS; here++) {
        mock_script.latency_ns[here][0] = 10;
        mock_script.latency_ns[!here][0] = mock_script.latency_ns[0][1] = mock_script.latency_ns[1][1] = 100;
        struct peer *p = peer_connect(party_rank);
        PARTY_CHECK(p && p->ep.dom == wires_at((int)here)->dom);
        mock_count.asked_to_keep = 0;
        PARTY_CHECK(p->ep.am_short(&p->ep, AM_NUMBER, 0, 0, bytes, sizeof bytes) == 0);
        PARTY_CHECK(wires_progress(64) == 1);
        PARTY_CHECK(kept && kept->data == shown && mock_count.asked_to_keep == 1);
        tp_release(kept);
        PARTY_CHECK(peer_close(party_rank) == 0);
    }
    return true;
}

static void only_its_wire_is_asked_to_keep_a_message(void **state)
{
    (void)state;
    setenv("TERN_MOCK_DOMAINS", "2", 1);
    assert_true(party_run(1, kept_by_its_wire));
    unsetenv("TERN_MOCK_DOMAINS");
}

/* Threads may sleep by the bell that there has been from the start: a transport that would bring another one is not opened
 * for other jobs. */
static bool bell_stays(void)
{
    mock_script.absent = true;
    PARTY_CHECK(party_open("self,mock"));
    const struct bell *bell = wires_bell();
    PARTY_CHECK(!wires_at(1));
    mock_script.absent = false;
    PARTY_CHECK(peers_meet_others() == 0);
    PARTY_CHECK(wires_bell() == bell && !wires_at(1));
    return true;
}

static void the_bell_stays_when_other_jobs_come(void **state)
{
    (void)state;
    assert_true(party_run(1, bell_stays));
}

/* One transport costs more to a process on another host than to one on this. */
static bool near_and_far(void)
{
    uint8_t card[512];
    char host[64] = "";
    size_t len;
    struct wire_path near;
    PARTY_CHECK(party_open("self,tcp"));
    int n = proc_card_get(1 - party_rank, card, sizeof card);
    PARTY_CHECK(n > 0 && wires_best(card, (size_t)n, &near) && near.wire->ops == &tp_tcp);
    PARTY_CHECK(near.cost.latency_ns == tp_tcp.cost.latency_ns);
    PARTY_CHECK(!gethostname(host, sizeof host - 1) && *host);
    uint8_t *part = (uint8_t *)(uintptr_t)wires_card_part(card, (size_t)n, near.wire->name, &len);
    uint8_t *name = part ? memmem(part, len, host, strlen(host)) : NULL;
    PARTY_CHECK(name);
    *name ^= 1;
    struct tp_cost far = tp_tcp.cost; /* it is out of reach where loopback is the only interface */
    tp_tcp.cost_to(near.wire->dom, part, len, &far);
    PARTY_CHECK(far.latency_ns > near.cost.latency_ns && far.eager_max == near.cost.eager_max);
    return true;
}

static void far_peers_cost_more(void **state)
{
    (void)state;
    assert_true(party_run(2, near_and_far));
}

static const char *list, *needle;

static bool refused(void)
{
    setenv("TERN_TRANSPORTS", list, 1);
    PARTY_CHECK(var_open() == 0 && proc_open() == 0);
    PARTY_CHECK(peers_open() == TERN_ERR_ARG);
    PARTY_CHECK(strstr(err_words(), "TERN_TRANSPORTS") && strstr(err_words(), needle));
    exit(0);
}

static void peers_are_made_at_first_use(void **state)
{
    (void)state;
    assert_true(party_run(3, first_use));
}

static void strangers_are_no_peers(void **state)
{
    (void)state;
    assert_true(party_run(3, nobody));
}

static void out_of_reach(void **state)
{
    (void)state;
    assert_true(party_run(2, only_self));
}

static void one_transport_will_do(void **state)
{
    (void)state;
    assert_true(party_run(2, shm_to_oneself));
}

static void bad_lists_are_refused_in_words(void **state)
{
    static const char *const bad[][2] = {{"self,smh", "smh"}, {"shm ", "'shm '"}, {",,", "no transport"}, {"shm,mock", "together"}, {"self,tcp,self", "self is in it twice"},
                                          {"self,nosuch", "tern_tp_nosuch"}, {"self,../unix", "letters, digits"},
                                          {"self,tcp:eth0", "tcp has no domain 'eth0' (it has none that have names)"},
                                          {"mock:c", "no domain 'c' (there are: a, b)"}, {"mock,mock:a", "mock:a is in it twice"},
                                          {"mock:a-domain-with-a-name", "too long"}};
    (void)state;
    setenv("TERN_MOCK_DOMAINS", "2", 1);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        list = bad[i][0];
        needle = bad[i][1];
        assert_true(party_run(1, refused));
    }
    unsetenv("TERN_MOCK_DOMAINS");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(peers_are_made_at_first_use), cmocka_unit_test(strangers_are_no_peers),
        cmocka_unit_test(out_of_reach),                cmocka_unit_test(one_transport_will_do),
        cmocka_unit_test(bad_lists_are_refused_in_words), cmocka_unit_test(receivers_say_the_quota),
        cmocka_unit_test(other_versions_are_not_connected), cmocka_unit_test(the_cheapest_domain_is_taken),
        cmocka_unit_test(far_peers_cost_more), cmocka_unit_test(only_its_wire_is_asked_to_keep_a_message),
        cmocka_unit_test(the_bell_stays_when_other_jobs_come),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
