/*
 * wire_lock_test.c - the locks of wires: threads exclude each other, go in again where they are, and never wait for each
 * other in a circle. A circle is a wait without end: the alarm of the party then ends the test. The two wires are the
 * domains of mock, which has one lock each.
 */
#include "party.h"
#include "base/err.h"
#include "transport/mock/mock.h"
#include "transport/peer.h"
#include "transport/remote.h"
#include "transport/endpoint.h"
#include "transport/shared.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 4, ROUNDS = 20000 };

static void ignore(struct peer *from, uint64_t h0, uint64_t h1, const void *data, size_t n)
{
    (void)from, (void)h0, (void)h1, (void)data, (void)n;
}

static bool open_two(bool share)
{
    PARTY_CHECK(party_takes(ignore, NULL) && party_open("mock"));
    PARTY_CHECK(wires_at(0)->ops == &tp_mock && wires_at(1)->ops == &tp_mock && !wires_at(2));
    if (share) wires_share();
    return true;
}

static bool run_threads(void *(*run)(void *))
{
    pthread_t t[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++) PARTY_CHECK(pthread_create(&t[i], NULL, run, (void *)i) == 0);
    for (int i = 0; i < THREADS; i++) PARTY_CHECK(pthread_join(t[i], NULL) == 0);
    return true;
}

/* ---- circles ---- */

static long plain[2]; /* each under its wire's lock */
static _Atomic long done[2], refused, bad;

/* Odd threads go from wire 1 to wire 0, the others from 0 to 1. */
static void *cross(void *arg)
{
    int first = (uintptr_t)arg % 2, second = 1 - first;
    for (int i = 0; i < ROUNDS; i++) {
        if (wire_take(first, WIRE_CALL)) atomic_fetch_add(&bad, 1);
        plain[first]++;
        if (i % 64 == 0) sched_yield(); /* with the lock */
        int rc = wire_take(second, WIRE_CALL);
        if (!rc) {
            plain[second]++;
            wire_give(second, WIRE_CALL);
            atomic_fetch_add(&done[second], 1);
        } else if (rc != TERN_AGAIN || second > first) {
            atomic_fetch_add(&bad, 1); /* in the order of their numbers they are waited for */
        } else {
            atomic_fetch_add(&refused, 1);
        }
        wire_give(first, WIRE_CALL);
        atomic_fetch_add(&done[first], 1);
    }
    return NULL;
}

static bool circles(void)
{
    PARTY_CHECK(open_two(true));
    PARTY_CHECK(run_threads(cross));
    PARTY_CHECK(!atomic_load(&bad) && !wire_is_inside());
    for (int i = 0; i < 2; i++) PARTY_CHECK(plain[i] == atomic_load(&done[i]) && plain[i] >= THREADS / 2 * ROUNDS);
    PARTY_CHECK(atomic_load(&done[1]) == THREADS * ROUNDS && atomic_load(&done[0]) == THREADS * ROUNDS - atomic_load(&refused));
    return true;
}

/* ---- one thread is refused ---- */

static _Atomic int step;

static void await(int n)
{
    while (atomic_load(&step) < n) sched_yield();
}

/* Is in wire 0 from step 1 to step 2. */
static void *be_in_the_way(void *arg)
{
    (void)arg;
    if (wire_take(0, WIRE_CALL)) atomic_fetch_add(&bad, 1);
    atomic_store(&step, 1);
    await(2);
    wire_give(0, WIRE_CALL);
    return NULL;
}

/* Who is refused is refused nothing by the transport, which would say that all can sleep. */
static bool refusal(void)
{
    pthread_t t;
    PARTY_CHECK(open_two(true));
    struct peer *p = peer_get(0);
    PARTY_CHECK(p && p->ep.dom == wires_at(0)->dom && p->ep.am_short != tp_mock.am_short);
    PARTY_CHECK(pthread_create(&t, NULL, be_in_the_way, NULL) == 0);
    await(1);
    PARTY_CHECK(wire_poll(0, 64) == 0 && !wire_idle(0, true) && wire_idle(1, false)); /* polling only tries */
    PARTY_CHECK(wire_take(1, WIRE_CALL) == 0);
    PARTY_CHECK(p->ep.am_short(&p->ep, AM_NUMBER, 1, 2, "12345678", 8) == TERN_AGAIN);
    PARTY_CHECK(wire_take(0, WIRE_POLL) == TERN_AGAIN && peer_close(0) == TERN_AGAIN);
    wire_give(1, WIRE_CALL);
    PARTY_CHECK(!wire_is_inside());
    atomic_store(&step, 2);
    PARTY_CHECK(pthread_join(t, NULL) == 0);
    PARTY_CHECK(wire_idle(0, false));
    PARTY_CHECK(!wire_idle(0, true)); /* the one that was refused tries again first */
    PARTY_CHECK(p->ep.am_short(&p->ep, AM_NUMBER, 1, 2, "12345678", 8) == 0);
    PARTY_CHECK(wire_poll(1, 64) == 0 && wire_poll(0, 64) == 1);
    return true;
}

/* ---- members that are not called ---- */

static size_t pack_nothing(void *arg, void *to, size_t max)
{
    (void)arg, (void)to, (void)max;
    atomic_fetch_add(&bad, 1);
    return 0;
}

static void never_done(struct tp_op *op, int rc)
{
    (void)op, (void)rc;
    atomic_fetch_add(&bad, 1);
}

/* In wire 1, while another thread is in wire 0. */
static bool refuses(struct tp_ep *ep)
{
    char byte = 1;
    uint64_t place;
    struct iovec there = {&byte, 1}, here = {&byte, 1};
    struct tp_op op = {.done = never_done};
    void *block = shared_alloc(8, &place);
    struct mock_count before = mock_count;
    PARTY_CHECK(ep_bcopy(ep, AM_NUMBER, 1, 2, pack_nothing, NULL, 8) == TERN_AGAIN);
    PARTY_CHECK(ep_bulk_send(ep, 7, &byte, 1, &op) == TERN_AGAIN && ep_bulk_recv(ep, 7, &byte, 1, &op) == TERN_AGAIN);
    PARTY_CHECK(ep_get(ep, &here, 1, &there, 1) == TERN_ERR_UNSUPPORTED && ep_put(ep, &here, 1, &there, 1) == TERN_ERR_UNSUPPORTED);
    PARTY_CHECK(!ep_map(ep, place, 8) && !ep_has_left(ep) && !ep_is_helped(ep));
    PARTY_CHECK(ep_sever(ep) == TERN_AGAIN && mock_count.severed == before.severed);
    PARTY_CHECK(mock_count.copies == before.copies && mock_count.bulk == before.bulk && !memcmp(mock_count.sent, before.sent, sizeof before.sent));
    shared_free(block, 8);
    return true;
}

static size_t pack_number(void *arg, void *to, size_t max)
{
    memcpy(to, arg, 8);
    return min_size(max, 8);
}

/* In no wire. */
static bool works(struct tp_ep *ep)
{
    uint64_t number = 5, copy = 0, place;
    struct iovec there = {&number, 8}, here = {&copy, 8};
    void *block = shared_alloc(8, &place);
    PARTY_CHECK(ep_bcopy(ep, AM_NUMBER, 1, 2, pack_number, &number, 8) == 0);
    PARTY_CHECK(ep_get(ep, &here, 1, &there, 1) == 0 && copy == 5);
    PARTY_CHECK(ep_map(ep, place, 8) == block);
    shared_free(block, 8);
    PARTY_CHECK(wires_progress(64) == 1 && wires_progress_cheap(64) == 0 && wires_quiet(false) && wires_idle(false));
    PARTY_CHECK(ep_sever(ep) == 0 && mock_count.severed == 1);
    return !wire_is_inside();
}

static bool members(void)
{
    pthread_t t;
    PARTY_CHECK(open_two(true));
    struct peer *p = peer_get(0);
    PARTY_CHECK(p && p->ep.dom == wires_at(0)->dom);
    PARTY_CHECK(pthread_create(&t, NULL, be_in_the_way, NULL) == 0);
    await(1);
    PARTY_CHECK(wires_poll(64, true) == 0 && !wires_quiet(false) && !wires_idle(false));
    PARTY_CHECK(wire_take(1, WIRE_CALL) == 0);
    PARTY_CHECK(refuses(&p->ep));
    wire_give(1, WIRE_CALL);
    atomic_store(&step, 2);
    PARTY_CHECK(pthread_join(t, NULL) == 0);
    PARTY_CHECK(works(&p->ep) && !atomic_load(&bad));
    return true;
}

/* ---- again ---- */

static bool nested(void)
{
    PARTY_CHECK(open_two(false));
    struct peer *p = peer_get(0);
    PARTY_CHECK(p && p->ep.am_short == tp_mock.am_short);
    PARTY_CHECK(wire_enter(&p->ep, 0) == 0 && wire_take(0, WIRE_ALL) == 0 && !wire_is_inside()); /* one thread: no lock */
    wire_give(0, WIRE_ALL);
    wire_leave(&p->ep, 0);
    wires_share();
    PARTY_CHECK(wire_take(0, WIRE_ALL) == 0 && wire_enter(&p->ep, TP_THREADS_SEND) == 0 && wire_is_inside());
    PARTY_CHECK(p->ep.am_short(&p->ep, AM_NUMBER, 1, 2, "12345678", 8) == 0);
    wire_leave(&p->ep, TP_THREADS_SEND);
    PARTY_CHECK(wire_is_inside());
    wire_give(0, WIRE_ALL);
    PARTY_CHECK(!wire_is_inside() && wire_poll(0, 64) == 1);
    return true;
}

/* ---- registered memory ---- */

static struct remote_mem *known;
static uint64_t known_id;
static _Atomic bool over;

static void *find_known(void *arg)
{
    if (arg) {
        while (!atomic_load(&over))
            if (remote_find(known_id) != known || remote_was(known_id)) atomic_fetch_add(&bad, 1);
        return NULL;
    }
    static char memory[2000];
    struct remote_mem *m[sizeof memory];
    for (size_t round = 0; round < 3; round++) {
        for (size_t i = 0; i < sizeof memory; i++)
            if (remote_reg(memory + i, 1, REMOTE_READ, &m[i])) atomic_fetch_add(&bad, 1);
        for (size_t i = 0; i < sizeof memory; i++) remote_dereg(m[i]);
    }
    atomic_store(&over, true);
    return NULL;
}

/* One thread's table grows while others look memory up. */
static bool registered(void)
{
    static uint64_t word;
    PARTY_CHECK(open_two(true));
    PARTY_CHECK(remote_reg(&word, sizeof word, REMOTE_READ, &known) == 0);
    known_id = known->id;
    PARTY_CHECK(run_threads(find_known) && !atomic_load(&bad));
    remote_dereg(known);
    PARTY_CHECK(!remote_find(known_id) && remote_was(known_id));
    return true;
}

static void two(bool (*member)(void))
{
    setenv("TERN_MOCK_DOMAINS", "2", 1);
    assert_true(party_run(1, member));
}

#define CASE(name, member)                                                                                             \
    static void name(void **state)                                                                                     \
    {                                                                                                                  \
        (void)state;                                                                                                   \
        two(member);                                                                                                   \
    }
CASE(two_wires_are_not_waited_for_in_a_circle, circles)
CASE(a_refused_send_keeps_the_poller_awake, refusal)
CASE(members_are_not_called_in_a_busy_wire, members)
CASE(a_thread_goes_in_again, nested)
CASE(registered_memory_is_found_by_any_thread, registered)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_wires_are_not_waited_for_in_a_circle),
        cmocka_unit_test(a_refused_send_keeps_the_poller_awake),
        cmocka_unit_test(members_are_not_called_in_a_busy_wire),
        cmocka_unit_test(a_thread_goes_in_again),
        cmocka_unit_test(registered_memory_is_found_by_any_thread),
    };
    party_seed();
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
