/*
 * conform_threads.c - threads in a transport (transport/wire_lock.h): all send, poll and connect at once. Each thread's
 * messages arrive in the order that it sent them, each once and whole.
 */
#include "conform.h"
#include "base/err.h"
#include "transport/endpoint.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

enum { THREADS = 4, MOST = 20000 };

static uint64_t came[THREADS]; /* by the number of the sending thread: written by the thread that polls, or in self by the sender */
static _Atomic uint64_t come, wrong, owed, answers;
static uint64_t each; /* messages of a thread */

static unsigned char pattern(uint64_t n, size_t i) { return (unsigned char)((n * 193 + i) * 0x9e3779b1u >> 13); }

static void count_wrong(bool is) { atomic_fetch_add(&wrong, is); }

/* h0: thread and number; h1: number and bytes. */
static void take(struct peer *from, uint64_t h0, uint64_t h1, const void *data, size_t n)
{
    uint64_t thread = h0 >> 48, number = h0 & ~(0xffffull << 48);
    bool good = thread < THREADS && from == conform_other() && h1 == 3 * number + n;
    if (good) good = number == came[thread]++;
    for (size_t i = 0; i < n && good; i += 1 + i / 16) good = ((const unsigned char *)data)[i] == pattern(h0, i);
    count_wrong(!good);
    atomic_fetch_add(&come, 1);
}

/* By any thread. */
static void look(void)
{
    if (!wires_poll(64, true)) sched_yield();
}

static size_t pack(void *arg, void *to, size_t max)
{
    for (size_t i = 0; i < max; i++) ((unsigned char *)to)[i] = pattern(*(uint64_t *)arg, i);
    return max;
}

struct sender {
    pthread_t id;
    uint64_t thread;
    struct peer *peer;
    unsigned char memory[MOST];
};

/* One message, by one of the ways that there are; again if told so. */
static int send_one(struct sender *s, uint64_t number, size_t n, uint64_t r)
{
    struct tp_ep *ep = &s->peer->ep;
    uint64_t h0 = s->thread << 48 | number;
    if (!(ep->caps & TP_CAP_BCOPY) || r % 4) {
        pack(&h0, s->memory, n);
        return ep->am_short(ep, AM_NUMBER, h0, 3 * number + n, s->memory, n);
    }
    return ep_bcopy(ep, AM_NUMBER, h0, 3 * number + n, pack, &h0, n);
}

static void *send_all(void *arg)
{
    struct sender *s = arg;
    uint64_t state = conform_seed + s->thread;
    s->peer = conform_other(); /* the first of them connects */
    if (!s->peer) {
        count_wrong(true);
        return NULL;
    }
    for (uint64_t i = 0; i < each; i++) {
        uint64_t r = party_random(&state);
        size_t limit = min_size(s->peer->ep.max_short, MOST), n = (r >> 8) % (r % 64 ? r % 8 ? 40 : 500 : limit + 1);
        int rc;
        while ((rc = send_one(s, i, n, r >> 32)) == TERN_AGAIN) look();
        count_wrong(rc != 0);
        if (r % 8 == 0) look();
    }
    return NULL;
}

static struct sender senders[THREADS];

static bool open_wire(tp_handler_fn handler, bool connect_first)
{
    memset(came, 0, sizeof came);
    come = wrong = owed = answers = 0;
    each = conform_wire->messages / 20 / THREADS / (PARTY_SANITIZED ? 5 : 1);
    PARTY_CHECK(party_takes(handler, NULL));
    PARTY_CHECK(party_open(conform_wire->name));
    if (connect_first) PARTY_CHECK(conform_other() != NULL);
    wires_share();
    wires_share(); /* again, which changes nothing */
    return true;
}

static bool run_threads(void *(*run)(void *))
{
    for (uint64_t i = 0; i < THREADS; i++) {
        senders[i].thread = i;
        PARTY_CHECK(pthread_create(&senders[i].id, NULL, run, &senders[i]) == 0);
    }
    return true;
}

static bool join_threads(void)
{
    for (uint64_t i = 0; i < THREADS; i++) PARTY_CHECK(pthread_join(senders[i].id, NULL) == 0);
    PARTY_CHECK(!wire_is_inside() && !wire_polled());
    return true;
}

static bool send_by_threads(bool connect_first)
{
    PARTY_CHECK(open_wire(take, connect_first));
    PARTY_CHECK(run_threads(send_all));
    while (atomic_load(&come) < THREADS * each && !atomic_load(&wrong)) look();
    PARTY_CHECK(atomic_load(&wrong) == 0);
    PARTY_CHECK(join_threads());
    PARTY_CHECK(atomic_load(&wrong) == 0 && atomic_load(&come) == THREADS * each);
    for (int i = 0; i < THREADS; i++) PARTY_CHECK(senders[i].peer == conform_other() && came[i] == each);
    conform_meet();
    return true;
}

/* Threads send over connections that were there before they came. */
bool threads_send(void) { return send_by_threads(true); }

/* Threads that all send their first message at once make one connection, also if the other side does the same. */
bool threads_connect(void) { return send_by_threads(false); }

/* ---- answers from within handlers ---- */

/* h0: 0 a question, 1 its answer. What finds no room is owed. */
static void answer(struct peer *from, uint64_t h0, uint64_t h1, const void *data, size_t n)
{
    (void)h1;
    count_wrong(n != 8 || memcmp(data, "question", 8));
    if (h0) atomic_fetch_add(&answers, 1);
    else if (from->ep.am_short(&from->ep, AM_NUMBER, 1, 0, data, n)) atomic_fetch_add(&owed, 1);
}

static void *ask_all(void *arg)
{
    struct peer *p = ((struct sender *)arg)->peer = conform_other();
    int rc = 0;
    for (uint64_t i = 0; i < each; i++) {
        while ((rc = p->ep.am_short(&p->ep, AM_NUMBER, 0, 0, "question", 8)) == TERN_AGAIN) look();
        count_wrong(rc != 0);
        look();
    }
    return NULL;
}

static void pay_one(struct peer *p)
{
    uint64_t n = atomic_load(&owed);
    if (!n || !atomic_compare_exchange_strong(&owed, &n, n - 1)) return;
    if (p->ep.am_short(&p->ep, AM_NUMBER, 1, 0, "question", 8)) atomic_fetch_add(&owed, 1);
}

/* A handler, in the wire that its thread polls, sends by that wire while other threads send as well. */
bool threads_answer(void)
{
    PARTY_CHECK(open_wire(answer, true));
    struct peer *p = conform_other();
    PARTY_CHECK(run_threads(ask_all));
    while (atomic_load(&answers) < THREADS * each && !atomic_load(&wrong)) {
        look();
        pay_one(p);
    }
    PARTY_CHECK(join_threads());
    while (atomic_load(&owed)) pay_one(p), look();
    PARTY_CHECK(atomic_load(&wrong) == 0 && atomic_load(&answers) == THREADS * each);
    conform_meet();
    while (atomic_load(&owed)) pay_one(p), look(); /* of questions that came meanwhile */
    return true;
}

/* ---- from where it lies ---- */

/* An operation of a thread's, which knows that it is done when its memory may change again. */
struct zero_copy {
    struct tp_op op;
    _Atomic int done;
};

static void note_done(struct tp_op *op, int rc)
{
    count_wrong(rc != 0);
    atomic_store(&container_of(op, struct zero_copy, op)->done, 1);
}

static void *send_from_memory(void *arg)
{
    struct sender *s = arg;
    uint64_t state = conform_seed + s->thread;
    struct tp_ep *ep = &(s->peer = conform_other())->ep;
    for (uint64_t i = 0; i < each / 4; i++) {
        struct zero_copy z = {.op = {.done = note_done}};
        uint64_t h0 = s->thread << 48 | i;
        size_t n = party_random(&state) % ep->max_short;
        int rc;
        if (n > MOST) n = MOST;
        pack(&h0, s->memory, n);
        while ((rc = ep_zcopy(ep, AM_NUMBER, h0, 3 * i + n, s->memory, n, &z.op)) == TERN_AGAIN) look();
        count_wrong(rc != 0);
        while (!rc && !atomic_load(&z.done)) look();
    }
    return NULL;
}

/* Members that the transport does not free for threads, under the wire's lock. */
bool threads_send_from_memory(void)
{
    PARTY_CHECK(open_wire(take, true));
    if (!(conform_other()->ep.caps & TP_CAP_ZCOPY)) return true;
    uint64_t all = THREADS * (each / 4);
    PARTY_CHECK(run_threads(send_from_memory));
    while (atomic_load(&come) < all && !atomic_load(&wrong)) look();
    PARTY_CHECK(join_threads());
    PARTY_CHECK(atomic_load(&wrong) == 0 && atomic_load(&come) == all);
    conform_meet();
    return true;
}

/* ---- memory ---- */

enum { BYTES = 1 << 16 };
static unsigned char region[THREADS][BYTES];

static int copy(struct tp_ep *ep, bool put, void *local, void *remote, size_t n)
{
    struct iovec here = {local, n}, there = {remote, n};
    int rc = wire_enter(ep, TP_THREADS_COPY);
    if (rc) return rc;
    rc = (put ? ep->ops->put : ep->ops->get)(ep, &here, 1, &there, 1);
    wire_leave(ep, TP_THREADS_COPY);
    return rc;
}

/* Each thread writes into its own part of the other's memory and reads it back; and shared memory is given out once. */
static void *copy_all(void *arg)
{
    struct sender *s = arg;
    struct tp_ep *ep = &conform_other()->ep;
    unsigned char *back = s->memory;
    unsigned char *there = (unsigned char *)(uintptr_t)atomic_load(&party->sign[conform_other()->index]) + s->thread * BYTES;
    uint64_t offset;
    for (uint64_t round = 0; round < 50; round++) {
        static _Thread_local unsigned char out[MOST];
        for (size_t i = 0; i < MOST; i++) out[i] = pattern(round + s->thread * 1000, i);
        count_wrong(copy(ep, true, out, there, MOST) != 0 || copy(ep, false, back, there, MOST) != 0);
        count_wrong(memcmp(out, back, MOST) != 0);
        unsigned char *block = peer_shared_alloc(128, &offset);
        count_wrong(!block || block[0] || block[127]);
        if (!block) return NULL;
        memset(block, (int)s->thread + 1, 128);
        sched_yield();
        for (size_t i = 0; i < 128; i++) count_wrong(block[i] != s->thread + 1);
        peer_shared_free(block, 128);
    }
    return NULL;
}

bool threads_copy(void)
{
    PARTY_CHECK(open_wire(take, true));
    if (!(conform_other()->ep.caps & TP_CAP_GETPUT)) return true;
    atomic_store(&party->sign[party_rank], (uintptr_t)region);
    party_meet();
    PARTY_CHECK(run_threads(copy_all));
    PARTY_CHECK(join_threads());
    PARTY_CHECK(atomic_load(&wrong) == 0);
    party_meet();
    for (uint64_t t = 0; t < THREADS; t++)
        for (size_t i = 0; i < MOST; i++) PARTY_CHECK(region[t][i] == pattern(49 + t * 1000, i));
    return true;
}
