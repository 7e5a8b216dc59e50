/*
 * remote_bench.c - operations on memory of another process (transport/remote.h), by each way: two processes, of which
 * the second does nothing but make progress. Microseconds of one operation that is awaited (a put or an amo without a
 * result: with its flush), and MB/s of large ones. Least of 5 rounds. Both spin while they wait, and yield now and
 * then: where they share a core with something, not the turns of the scheduler are measured.
 *
 * usage: remote_bench [wire ...]     default: self shm tcp
 */
#include "../test/unit/transport/party.h"
#include "base/err.h"
#include "copy/copy.h"
#include "transport/arena.h"
#include "transport/peer.h"
#include "transport/remote.h"
#include "transport/wires.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BYTES ((size_t)4 << 20)
#define KEY_WORDS (REMOTE_KEY_MAX / 8)
enum { ROUNDS = 5, DONE = 63 }; /* the sign that the second process ends at */

static const char *wire;
static struct remote_key *key;
static unsigned char *local;
static int ended;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void done(struct tp_op *op, int rc)
{
    (void)op;
    ended += rc ? -1000 : 1;
}

static struct tp_op op = {.done = done};

static void turn(void)
{
    enum { SPINS = 400 };
    static unsigned fruitless;
    if (!wires_progress(64) && ++fruitless % SPINS == 0) sched_yield();
}

/* Until the operation that was started with this result has ended. */
static bool await(int rc, int before)
{
    if (rc == TERN_DONE) return true;
    while (!rc && ended == before) turn();
    return !rc && ended == before + 1;
}

static bool flush(void) { return await(remote_flush(key->peer, &op), ended); }

static bool put(size_t n) { return await(remote_put(key, 0, local, n, &op), ended) && flush(); }
static bool get(size_t n) { return await(remote_get(key, 0, local, n, &op), ended); }

static bool fetch(size_t n)
{
    struct remote_amo add = {REMOTE_ADD, (uint32_t)n, 1, 0};
    return await(remote_amo(key, 0, &add, local, &op), ended);
}

static bool add(size_t n)
{
    struct remote_amo one = {REMOTE_ADD, (uint32_t)n, 1, 0};
    return await(remote_amo(key, 0, &one, NULL, &op), ended) && flush();
}

/* Seconds of one; negative: it failed. */
static double measure(bool (*work)(size_t), size_t n)
{
    size_t times = n <= 8 ? 2000 : max_size(((size_t)32 << 20) / n, 4);
    double least = 1e9;
    for (int round = 0; round < ROUNDS; round++) {
        double t = now();
        for (size_t i = 0; i < times; i++)
            if (!work(n)) return -1;
        t = (now() - t) / (double)times;
        if (t < least) least = t;
    }
    return least;
}

static void print(const char *way)
{
    static const size_t large[] = {64 << 10, 1 << 20, BYTES};
    printf("%-5s %-9s put %8.2f us  get %8.2f us  fetch-and-add %8.2f us  add %8.2f us\n", wire, way,
           1e6 * measure(put, 8), 1e6 * measure(get, 8), 1e6 * measure(fetch, 8), 1e6 * measure(add, 8));
    for (size_t i = 0; i < ARRAY_LEN(large); i++) {
        double mb = 1e-6 * (double)large[i], put_s = measure(put, large[i]), get_s = measure(get, large[i]);
        printf("%-5s %-9s %5zu KB  put %8.0f MB/s  get %8.0f MB/s\n", wire, way, large[i] >> 10, mb / put_s, mb / get_s);
    }
    fflush(stdout);
}

/* The second process shows its memory, and makes progress until the first has done. */
static bool serve(unsigned char *memory)
{
    uint64_t words[KEY_WORDS] = {0};
    struct remote_mem *m;
    PARTY_CHECK(memory && !remote_reg(memory, BYTES, REMOTE_READ | REMOTE_WRITE | REMOTE_ATOMIC, &m));
    PARTY_CHECK(remote_key_pack(m, words, sizeof words) > 0);
    for (size_t i = 0; i < KEY_WORDS; i++) atomic_store(&party->sign[i], words[i]);
    party_meet();
    if (party->size == 1) return true;
    while (!atomic_load(&party->sign[DONE])) turn();
    party_meet();
    atomic_store(&party->sign[DONE], 0);
    remote_dereg(m);
    return true;
}

static bool use(void)
{
    uint64_t words[KEY_WORDS];
    if (party->size > 1) party_meet();
    for (size_t i = 0; i < KEY_WORDS; i++) words[i] = atomic_load(&party->sign[i]);
    PARTY_CHECK(!remote_key_open(peer_get(party->size - 1), words, sizeof words, &key));
    print(key->at ? "mapped" : key->direct ? "direct" : "messages");
    remote_key_close(key);
    atomic_store(&party->sign[DONE], 1);
    if (party->size > 1) party_meet();
    return true;
}

/* One kind of memory, by the wire's way or by messages. */
static bool run(bool by_wires, unsigned char *memory)
{
    bool owner = party_rank == party->size - 1;
    remote_by_wires = by_wires;
    if (owner) PARTY_CHECK(serve(memory));
    return party_rank ? true : use();
}

static bool member(void)
{
    PARTY_CHECK(party_open(wire));
    copy_open();
    PARTY_CHECK((local = malloc(BYTES)) != NULL);
    memset(local, 1, BYTES);
    unsigned char *private = malloc(BYTES), *shared = arena_alloc(BYTES, 8);
    PARTY_CHECK(private != NULL);
    memset(private, 1, BYTES);
    if (shared) memset(shared, 1, BYTES);
    if (shared) PARTY_CHECK(run(true, shared));
    if (!strcmp(wire, "shm") || party->size == 1) PARTY_CHECK(run(true, private));
    return run(false, private);
}

int main(int argc, char **argv)
{
    static const char *const usual[] = {"self", "shm", "tcp"};
    int n = argc > 1 ? argc - 1 : (int)ARRAY_LEN(usual);
    for (int i = 0; i < n; i++) {
        wire = argc > 1 ? argv[i + 1] : usual[i];
        if (!party_run(!strcmp(wire, "self") || !strcmp(wire, "mock") ? 1 : 2, member)) return 1;
    }
    return 0;
}
