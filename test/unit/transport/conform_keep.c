/*
 * conform_keep.c - messages whose handlers keep their data (transport/keep.h): the bytes stay as they were sent while
 * more messages come, whether the transport holds them or they are copied, and go back at last.
 */
#include "conform.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/sleep.h"
#include "transport/keep.h"
#include "transport/wires.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { KEPT_MAX = 512 };

static struct one {
    struct tp_kept *kept; /* NULL: free */
    uint64_t number;
    size_t skipped; /* bytes of the message ahead of those that are kept */
} ones[KEPT_MAX];

static uint64_t came, wrong, in_place, copied, random_state;
static enum tp_keep_time keep_time;
static uint64_t keep_most; /* one of three messages is kept, and not more than so many */
static bool keep_all;

static unsigned char pattern(uint64_t n, size_t i) { return (unsigned char)((n * 257 + i) * 0x9e3779b1u >> 11); }

/* Releases the message. How many of its bytes are not those that were sent. */
static uint64_t release(struct one *o)
{
    const unsigned char *data = o->kept->data;
    uint64_t differ = 0;
    for (size_t i = 0; i < o->kept->bytes; i++) differ += data[i] != pattern(o->number, o->skipped + i);
    tp_release(o->kept);
    o->kept = NULL;
    return differ;
}

static void let_go(struct one *o) { wrong += release(o); }

static void take(struct peer *from, uint64_t h0, uint64_t h1, const void *data, size_t n)
{
    wrong += from != conform_other() || h0 != came || h1 != n;
    came++;
    if (in_place + copied == keep_most || (!keep_all && party_random(&random_state) % 3)) return;
    struct one *o = &ones[keep_all ? h0 % KEPT_MAX : party_random(&random_state) % KEPT_MAX];
    if (o->kept) let_go(o);
    o->number = h0;
    o->skipped = min_size(n, party_random(&random_state) % 3 * 8);
    o->kept = tp_keep((const char *)data + o->skipped, n - o->skipped, keep_time);
    wrong += !o->kept || o->kept->bytes != n - o->skipped;
    bool held = o->kept->end != NULL;
    wrong += held != (o->kept->data == (const char *)data + o->skipped);
    in_place += held;
    copied += !held;
}

static bool open_wire(enum tp_keep_time time, uint64_t most)
{
    memset(ones, 0, sizeof ones);
    came = wrong = in_place = copied = 0;
    random_state = conform_seed + party_rank;
    keep_time = time;
    keep_most = most;
    keep_all = most <= KEPT_MAX;
    PARTY_CHECK(party_takes(take, NULL));
    PARTY_CHECK(party_open(conform_wire->name));
    PARTY_CHECK(conform_other() != NULL);
    return true;
}

static int send_number(uint64_t number, size_t n)
{
    static unsigned char bytes[65536];
    struct peer *p = conform_other();
    for (size_t i = 0; i < n; i++) bytes[i] = pattern(number, i);
    return p->ep.am_short(&p->ep, AM_NUMBER, number, n, bytes, n);
}

static void let_all_go(void)
{
    for (size_t i = 0; i < KEPT_MAX; i++)
        if (ones[i].kept) let_go(&ones[i]);
}

static bool receive(uint64_t n)
{
    uint64_t end = clock_ns() + 30000000000u;
    while (came < n && clock_ns() < end) party_look();
    PARTY_CHECK(came == n && wrong == 0);
    return true;
}

/* Some messages are kept for random times, and released out of order, while others come: over many laps of a ring, and
 * through many buffers. What is kept holds the sender up now and then, and the release lets it go on. */
bool kept_bytes_stay(void)
{
    uint64_t count = conform_wire->messages / (PARTY_SANITIZED ? 100 : 10);
    PARTY_CHECK(open_wire(TP_KEEP_BRIEFLY, UINT64_MAX));
    size_t most = min_size(conform_other()->ep.max_short, 9000);
    for (uint64_t i = 0; i < count; i++) {
        uint64_t r = party_random(&random_state);
        size_t n = (r >> 8) % (r % 8 ? 1200 : most + 1);
        int rc;
        while ((rc = send_number(i, n)) == TERN_AGAIN) {
            party_look();
            struct one *o = &ones[party_random(&random_state) % KEPT_MAX];
            if (o->kept) let_go(o);
        }
        PARTY_CHECK(rc == 0);
        if (r % 4 == 0) wires_progress(16);
        if (r % 1000 == 0) let_all_go();
    }
    uint64_t end = clock_ns() + 30000000000u;
    while (came < count && clock_ns() < end) {
        party_look();
        let_all_go();
    }
    let_all_go();
    PARTY_CHECK(came == count && wrong == 0 && copied > 0);
    PARTY_CHECK(!in_place == !(conform_other()->ep.caps & TP_CAP_KEEP));
    conform_meet();
    return true;
}

/* All that comes is kept, and nothing is released before everything is there: several times what rings and buffers
 * have room for. */
bool kept_for_long_stops_nobody(void)
{
    enum { COUNT = KEPT_MAX, BYTES = 4000 };
    PARTY_CHECK(open_wire(TP_KEEP_LONG, COUNT));
    for (uint64_t i = 0; i < COUNT; i++) {
        int rc;
        while ((rc = send_number(i, BYTES)) == TERN_AGAIN) party_look();
        PARTY_CHECK(rc == 0);
    }
    PARTY_CHECK(receive(COUNT));
    conform_meet();
    let_all_go();
    PARTY_CHECK(wrong == 0);
    return true;
}

static void *release_later(void *arg)
{
    usleep(20000);
    return release(arg) ? arg : NULL; /* `wrong` is the other thread's */
}

/* One message is kept, and more come than there is room for beside it. The receiver sleeps when nothing comes any more;
 * the release by another thread lets the rest come. */
bool release_wakes(void)
{
    enum { COUNT = 3000, BYTES = 1000 };
    PARTY_CHECK(open_wire(TP_KEEP_BRIEFLY, 1));
    if (conform_wire->processes == 1) return true; /* who sends does not sleep */
    for (uint64_t i = 0; i < COUNT && party_rank; i++) {
        int rc;
        while ((rc = send_number(i, BYTES)) == TERN_AGAIN) party_look();
        PARTY_CHECK(rc == 0);
    }
    uint64_t start = clock_ns();
    pthread_t thread;
    bool started = false;
    while (came < COUNT && !party_rank) {
        int n = wires_progress(64);
        if (came && !started) {
            PARTY_CHECK(ones[0].kept);
            PARTY_CHECK(!pthread_create(&thread, NULL, release_later, &ones[0]));
            started = true;
        }
        if (n) continue;
        struct bell *bell = wires_bell();
        uint32_t ticket = bell_announce(bell);
        if (wires_idle(false)) wires_sleep(bell, ticket, NULL, 20000000000u);
        bell_stay(bell);
        PARTY_CHECK(clock_ns() - start < 15000000000u);
    }
    void *differs = NULL;
    if (started) PARTY_CHECK(!pthread_join(thread, &differs) && !differs);
    let_all_go();
    PARTY_CHECK(wrong == 0 && (party_rank || started));
    conform_meet();
    return true;
}
