/* peer_test.c - the address book: made at first use, chosen by cost, refusing in words what cannot be. */
#include "party.h"
#include "base/err.h"
#include "base/var.h"
#include "proc/proc.h"
#include "transport/peer.h"
#include "transport/wires.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

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

static void other_versions_are_not_connected(void **state)
{
    (void)state;
    assert_true(party_run(3, another_version));
}

static bool shm_to_oneself(void)
{
    PARTY_CHECK(party_open("shm"));
    PARTY_CHECK(peer_get(party_rank)->ep.ops == &tp_shm);
    return true;
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
                                          {"self,nosuch", "tern_tp_nosuch"}, {"self,../unix", "letters, digits"}};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        list = bad[i][0];
        needle = bad[i][1];
        assert_true(party_run(1, refused));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(peers_are_made_at_first_use), cmocka_unit_test(strangers_are_no_peers),
        cmocka_unit_test(out_of_reach),                cmocka_unit_test(one_transport_will_do),
        cmocka_unit_test(bad_lists_are_refused_in_words), cmocka_unit_test(receivers_say_the_quota),
        cmocka_unit_test(other_versions_are_not_connected),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
