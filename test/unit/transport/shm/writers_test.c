/*
 * writers_test.c - several threads write into one ring of shared memory at once: each thread's messages arrive once, whole
 * and in order, over many laps, through full rings, with records that are kept, and where the counters of the ring pass
 * 2^32.
 */
#include "../party.h"
#include "base/err.h"
#include "transport/peer.h"
#include "transport/shm/shm.h"
#include "transport/wire_lock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 8, MOST = 60000 };

static uint64_t seed;
static uint64_t came[THREADS + 1], wrong, kept_in_place; /* by the reader; the last row: of one thread, before */
static _Atomic uint64_t bad;                             /* by any thread */
static uint64_t each;                                    /* messages of a thread */
static int shm_number;                                   /* of the wire */

static unsigned char pattern(uint64_t n, size_t i) { return (unsigned char)((n * 167 + i) * 0x9e3779b1u >> 13); }

/* ---- the reader ---- */

#define KEPT 64
enum { FREE, HELD, BUSY };
static struct kept {
    _Atomic int state; /* the reader makes it HELD, a releaser BUSY and FREE */
    struct tp_kept *at;
    uint64_t h0;
} kept[KEPT];

static void release(struct kept *k)
{
    int held = HELD;
    if (!atomic_compare_exchange_strong(&k->state, &held, BUSY)) return;
    for (size_t i = 0; i < k->at->bytes; i++)
        if (((const unsigned char *)k->at->data)[i] != pattern(k->h0, i)) atomic_fetch_add(&bad, 1);
    tp_release(k->at);
    atomic_store(&k->state, FREE);
}

static void keep(uint64_t h0, const void *data, size_t n)
{
    struct kept *k = &kept[h0 % KEPT];
    if (atomic_load(&k->state) != FREE) return;
    k->at = tp_keep_in_place(data, n, TP_KEEP_BRIEFLY);
    k->h0 = h0;
    kept_in_place += k->at != NULL;
    if (k->at) atomic_store(&k->state, HELD);
}

/* h0: thread and number; h1: bytes. */
static void take(struct peer *from, uint64_t h0, uint64_t h1, const void *data, size_t n)
{
    uint64_t thread = h0 >> 48, number = h0 & 0xffffffffu;
    wrong += from != peer_table[party->size - 1 - party_rank] || thread > THREADS || h1 != n;
    if (thread <= THREADS) wrong += number != came[thread]++;
    for (size_t i = 0; i < n; i++) wrong += ((const unsigned char *)data)[i] != pattern(h0, i);
    if (n >= TP_KEEP_LEAST && number % 5 == 0) keep(h0, data, n);
}

static uint64_t all_came(void)
{
    uint64_t n = 0;
    for (int i = 0; i < THREADS; i++) n += came[i];
    return n;
}

/* ---- a ring of this process at itself, by the mapping that its reader uses: the thread sanitizer sees both ---- */

static struct shm_ep *ring;
static struct tp_ep way;

static bool open_ring(void)
{
    static TERN_ALIGNED(CACHE_LINE) struct shm_ep e;
    ring = &e;
    PARTY_CHECK(party_takes(take, NULL) && party_open("self,shm"));
    PARTY_CHECK(wires_at(1)->ops == &tp_shm);
    shm_number = 1;
    e.segment = shm_dom.segment;
    e.peer = peer_get(0);
    PARTY_CHECK(e.peer && shm_sender_enter(&e) == 0);
    e.bell = &shm_dom.segment->bell;
    way = (struct tp_ep){.ops = &tp_shm, .am_short = shm_am_short, .priv = &e, .max_short = e.segment->box_bytes / 2 - SHM_RECORD_HEAD};
    each = 40000 / (PARTY_SANITIZED ? 10 : 1);
    return true;
}

/* The ring is as it were after so many bytes, whole laps. */
static void begin_at(uint32_t bytes)
{
    struct shm_rx *r = &shm_dom.rx[ring->from >> 32];
    shm_boxes_more((uint32_t)(ring->from >> 32) + 1);
    ring->lap = r->head = r->given = bytes;
    ring->limit = bytes + ring->mask + 1;
    atomic_store(&ring->box->head, bytes);
}

static bool share_ring(void)
{
    wires_share();
    shm_share_ep(ring);
    list_push(&shm_dom.eps, &ring->in_all);
    way.am_short = shm_way_of(ring);
    PARTY_CHECK(way.am_short == shm_am_shared);
    return true;
}

/* A packer that leaves a part of the place. */
struct packing {
    uint64_t h0;
    size_t n;
};

static size_t pack(void *arg, void *to, size_t max)
{
    const struct packing *p = arg;
    if (p->n > max) atomic_fetch_add(&bad, 1);
    for (size_t i = 0; i < p->n; i++) ((unsigned char *)to)[i] = pattern(p->h0, i);
    return p->n;
}

static int send_one(struct tp_ep *ep, uint64_t thread, uint64_t number, uint64_t r, bool packs)
{
    static _Thread_local unsigned char memory[MOST];
    struct packing p = {.h0 = thread << 48 | number};
    size_t limit = min_size(ep->max_short, MOST);
    p.n = (r >> 8) % (r % 32 ? r % 4 ? 41 : 600 : limit + 1);
    if (packs && r % 16 == 3) {
        size_t room = p.n + (r >> 40) % 300;
        return ep->ops->am_bcopy(ep, AM_NUMBER, p.h0, p.n, pack, &p, min_size(room, limit));
    }
    pack(&p, memory, p.n > sizeof memory ? sizeof memory : p.n);
    return ep->am_short(ep, AM_NUMBER, p.h0, p.n, memory, p.n);
}

static void *write_all(void *arg)
{
    uint64_t thread = (uintptr_t)arg, state = seed + thread;
    for (uint64_t i = 0; i < each; i++) {
        uint64_t r = party_random(&state);
        int rc;
        if (thread % 2) release(&kept[r % KEPT]);
        while ((rc = send_one(&way, thread, i, r, true)) == TERN_AGAIN) {
            release(&kept[party_random(&state) % KEPT]);
            sched_yield();
        }
        if (rc) atomic_fetch_add(&bad, 1);
    }
    return NULL;
}

static bool start(pthread_t t[], void *(*run)(void *))
{
    for (uintptr_t i = 0; i < THREADS; i++) PARTY_CHECK(pthread_create(&t[i], NULL, run, (void *)i) == 0);
    return true;
}

static bool join(pthread_t t[])
{
    for (int i = 0; i < THREADS; i++) PARTY_CHECK(pthread_join(t[i], NULL) == 0);
    return true;
}

static uint32_t first_byte; /* of the ring, when it begins */

static bool eight_writers(void)
{
    pthread_t t[THREADS];
    uint64_t state = seed;
    PARTY_CHECK(open_ring());
    begin_at(first_byte);
    for (uint64_t i = 0; i < 10; i++) PARTY_CHECK(send_one(&way, THREADS, i, (party_random(&state) & ~31ull) | 1, false) == 0);
    PARTY_CHECK(share_ring()); /* in the middle of a lap, and with messages in it */
    PARTY_CHECK(start(t, write_all));
    while (all_came() < THREADS * each && !wrong && !atomic_load(&bad)) {
        if (!wire_poll(shm_number, 1 + (int)(party_random(&state) % 64))) sched_yield();
        if (party_random(&state) % 8 == 0) release(&kept[party_random(&state) % KEPT]);
    }
    PARTY_CHECK(!wrong && !atomic_load(&bad));
    PARTY_CHECK(join(t));
    for (int i = 0; i < KEPT; i++) release(&kept[i]);
    while (wire_poll(shm_number, 64)) {}
    for (int i = 0; i < THREADS; i++) PARTY_CHECK(came[i] == each);
    PARTY_CHECK(came[THREADS] == 10 && !atomic_load(&bad) && kept_in_place > 0 && !shm_dom.keeps);
    PARTY_CHECK(atomic_load(&ring->reserved) > (uint64_t)first_byte + 100 * (ring->mask + 1)); /* many laps */
    for (uint32_t i = 0; i <= ring->mask; i += CACHE_LINE) PARTY_CHECK(*(uint64_t *)(ring->ring + i) == 0);
    return true;
}

static void with_rings(const char *box, uint32_t first, bool (*member)(void))
{
    first_byte = first;
    setenv("TERN_SHM_BOX", box, 1);
    assert_true(party_run(1, member));
    unsetenv("TERN_SHM_BOX");
}

static void eight_threads_write_into_one_ring(void **state)
{
    (void)state;
    with_rings("4K", 0, eight_writers);
    with_rings("128K", 0, eight_writers);
}

static void counters_may_pass_their_32_bits(void **state)
{
    (void)state;
    with_rings("4K", 0u - 5 * 4096, eight_writers);
    with_rings("4K", 1u << 31, eight_writers);
}

/* ---- full ---- */

static _Atomic uint64_t accepted;

static void *fill(void *arg)
{
    uint64_t thread = (uintptr_t)arg, state = seed + thread, n = 0;
    while (send_one(&way, thread, n, party_random(&state), true) == 0) n++;
    for (int i = 0; i < 1000; i++)
        if (way.am_short(&way, AM_NUMBER, 0, 0, NULL, way.max_short) != TERN_AGAIN) atomic_fetch_add(&bad, 1);
    atomic_fetch_add(&accepted, n);
    return NULL;
}

/* What was accepted comes, no more, and then the ring is as empty as before, wherever it is. */
static bool fill_and_empty(void)
{
    pthread_t t[THREADS];
    static unsigned char memory[MOST];
    PARTY_CHECK(open_ring());
    begin_at(0);
    PARTY_CHECK(share_ring());
    for (int round = 0; round < 200 / (PARTY_SANITIZED ? 4 : 1); round++) {
        seed++;
        memset(came, 0, sizeof came);
        atomic_store(&accepted, 0);
        PARTY_CHECK(start(t, fill) && join(t));
        PARTY_CHECK(atomic_load(&ring->full) && atomic_load(&ring->box->blocked) && shm_idle(NULL, false) == false);
        for (uint64_t n = 0; n < atomic_load(&accepted);) n += (uint64_t)wire_poll(shm_number, 64);
        for (int i = 0; i < KEPT; i++) release(&kept[i]);
        PARTY_CHECK(wire_poll(shm_number, 64) == 0 && all_came() == atomic_load(&accepted) && !wrong && !atomic_load(&bad));
        PARTY_CHECK(!wire_idle(shm_number, true)); /* there is room again, */
        PARTY_CHECK(wire_idle(shm_number, true));  /* which is said once */
        for (size_t i = 0; i < way.max_short; i++) memory[i] = pattern(0, i);
        memset(came, 0, sizeof came);
        PARTY_CHECK(way.am_short(&way, AM_NUMBER, 0, way.max_short, memory, way.max_short) == 0);
        PARTY_CHECK(wire_poll(shm_number, 64) == 1 && !wrong);
        for (int i = 0; i < KEPT; i++) release(&kept[i]);
        wire_poll(shm_number, 64);
    }
    return true;
}

static void a_full_ring_refuses_all_threads(void **state)
{
    (void)state;
    with_rings("4K", 0, fill_and_empty);
    with_rings("64K", 0, fill_and_empty);
}

/* ---- asleep while there is no room ---- */

static pthread_mutex_t sleeper = PTHREAD_MUTEX_INITIALIZER;

/* One of the threads that find no room tries once more, and sleeps for all. */
static int send_or_sleep(struct tp_ep *ep, uint64_t thread, uint64_t number, uint64_t r)
{
    struct bell *b = wires_bell();
    pthread_mutex_lock(&sleeper);
    int rc = send_one(ep, thread, number, r, true);
    if (rc == TERN_AGAIN) {
        uint32_t ticket = bell_announce(b);
        rc = send_one(ep, thread, number, r, true);
        if (rc == TERN_AGAIN && wire_idle(shm_number, true)) bell_wait(b, ticket, NULL, 60000000000u);
        bell_stay(b);
    }
    pthread_mutex_unlock(&sleeper);
    return rc;
}

static void *write_to_other(void *arg)
{
    uint64_t thread = (uintptr_t)arg, state = seed + thread;
    struct tp_ep *ep = &peer_get(1)->ep;
    for (uint64_t i = 0; i < each; i++) {
        uint64_t r = party_random(&state);
        int rc = send_one(ep, thread, i, r, true);
        while (rc == TERN_AGAIN) rc = send_or_sleep(ep, thread, i, r);
        if (rc) atomic_fetch_add(&bad, 1);
    }
    return NULL;
}

static bool sleeping_writers(void)
{
    pthread_t t[THREADS];
    uint64_t state = seed;
    PARTY_CHECK(party_takes(take, NULL) && party_open("shm"));
    wires_share();
    each = 4000;
    if (!party_rank) {
        PARTY_CHECK(start(t, write_to_other) && join(t));
        PARTY_CHECK(!atomic_load(&bad));
    }
    while (party_rank && all_came() < THREADS * each) {
        if (!wire_poll(shm_number, 64)) sched_yield();
        for (int i = 0; i < KEPT; i++) release(&kept[i]);
        for (uint64_t n = party_random(&state) % 4 ? 0 : party_random(&state) % 2000; n; n--) cpu_relax();
    }
    PARTY_CHECK(!wrong && !atomic_load(&bad));
    party_meet();
    return true;
}

static void sleeping_threads_are_woken_when_there_is_room(void **state)
{
    (void)state;
    setenv("TERN_SHM_BOX", "4K", 1);
    setenv("TERN_SPIN", "never", 1); /* wakers pay for the barrier */
    assert_true(party_run(2, sleeping_writers));
    setenv("TERN_SPIN", "auto", 1); /* membarrier, where there are cores enough */
    assert_true(party_run(2, sleeping_writers));
    unsetenv("TERN_SPIN");
    unsetenv("TERN_SHM_BOX");
}

/* Whether a process may sleep for want of room, when threads share the ring: nobody reads it here. */
static bool full_and_idle(void)
{
    PARTY_CHECK(party_takes(take, NULL) && party_open("shm"));
    wires_share();
    struct peer *p = peer_get(1 - party_rank);
    PARTY_CHECK(p != NULL);
    uint64_t n = 0;
    if (!party_rank) {
        struct shm_ep *e = p->ep.priv;
        PARTY_CHECK(p->ep.am_short == shm_am_shared && wire_idle(0, true));
        while (send_one(&p->ep, 0, n, 1, false) == 0) n++;
        PARTY_CHECK(n == (e->mask + 1) / CACHE_LINE);
        PARTY_CHECK(atomic_load(&e->box->blocked) == 1 && wire_idle(0, true));
        atomic_store(&e->box->blocked, 0); /* as the receiver would, answering an earlier mark */
        PARTY_CHECK(!wire_idle(0, true) && wire_idle(0, true));
        atomic_fetch_add(&e->box->head, CACHE_LINE); /* as if it had read a message */
        PARTY_CHECK(!wire_idle(0, true) && wire_idle(0, false));
        PARTY_CHECK(send_one(&p->ep, 0, n, 1, false) == 0 && send_one(&p->ep, 0, n, 1, false) == TERN_AGAIN);
        PARTY_CHECK(wire_idle(0, true));
    }
    party_meet();
    return true;
}

static void a_shared_ring_that_is_full_lets_its_writers_sleep(void **state)
{
    (void)state;
    setenv("TERN_SHM_BOX", "4K", 1);
    assert_true(party_run(2, full_and_idle));
    unsetenv("TERN_SHM_BOX");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(eight_threads_write_into_one_ring),
        cmocka_unit_test(counters_may_pass_their_32_bits),
        cmocka_unit_test(a_full_ring_refuses_all_threads),
        cmocka_unit_test(a_shared_ring_that_is_full_lets_its_writers_sleep),
        cmocka_unit_test(sleeping_threads_are_woken_when_there_is_room),
    };
    seed = party_seed();
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
