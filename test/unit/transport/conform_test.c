/*
 * conform_test.c - what transport.h promises, asked of every transport that is built:
 * self and mock within one process, shm, tcp and the module of test/wire between two. Each case is a function that all
 * processes of a party run; "the other" is the other process, or oneself.
 */
#include "conform.h"
#include "base/err.h"
#include "transport/peer.h"
#include "transport/wires.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

static const struct tested wires[] = {
    {"self", 1, 100000}, {"mock", 1, 100000}, {"shm", 2, 1000000}, {"tcp", 2, 200000}, {"unix", 2, 200000}};
static const struct tested *wire;
static uint64_t seed;
const struct tested *conform_wire;
uint64_t conform_seed;

static struct peer *other(void) { return peer_get(party->size - 1 - party_rank); }
struct peer *conform_other(void) { return other(); }

static unsigned char pattern(uint64_t n, size_t i) { return (unsigned char)((n * 131 + i) * 0x9e3779b1u >> 13); }

/* ---- counting messages in: number h0, h1 = 3 * h0 + bytes, payload by number ---- */

static uint64_t came, wrong;

static void take(struct peer *from, uint64_t h0, uint64_t h1, const void *data, size_t n)
{
    wrong += from != other() || h0 != came || h1 != 3 * h0 + n;
    for (size_t i = 0; i < n; i += 1 + i / 16) wrong += ((const unsigned char *)data)[i] != pattern(h0, i);
    came++;
}

static unsigned char buffer[4 << 20];

static int send_number(uint64_t number, size_t n)
{
    struct peer *p = other();
    for (size_t i = 0; i < n; i++) buffer[i] = pattern(number, i);
    return p->ep.am_short(&p->ep, AM_NUMBER, number, 3 * number + n, buffer, n);
}

static size_t pack(void *arg, void *to, size_t max)
{
    for (size_t i = 0; i < max; i++) ((unsigned char *)to)[i] = pattern(*(uint64_t *)arg, i);
    return max;
}

static void *give_sink(struct peer *from, uint64_t h0, uint64_t h1, size_t n);

static bool open_wire(void)
{
    came = wrong = 0;
    PARTY_CHECK(party_takes(take, give_sink));
    PARTY_CHECK(party_open(wire->name));
    PARTY_CHECK(other() != NULL);
    return true;
}

/* Until `n` messages came. */
static bool receive(uint64_t n)
{
    while (came < n) party_look();
    PARTY_CHECK(came == n && wrong == 0);
    return true;
}

/* As party_meet; what was sent before goes its way meanwhile. */
static void meet(void)
{
    uint32_t round = atomic_load(&party->round);
    if (atomic_fetch_add(&party->arrived, 1) + 1 == party->size) {
        atomic_store(&party->arrived, 0);
        atomic_fetch_add(&party->round, 1);
    }
    while (atomic_load(&party->round) == round) party_look();
}

void conform_meet(void) { meet(); }

/* ---- cases ---- */

/* A capability is announced if and only if it can be used; what is not optional is there. */
static bool flags_and_members(void)
{
    PARTY_CHECK(open_wire());
    const struct tp_ep *ep = &other()->ep;
    const struct tp_ops *o = ep->ops;
    PARTY_CHECK(!strcmp(o->name, wire->name));
    PARTY_CHECK(o->open && o->close && o->card && o->reach && o->ep_open && o->ep_close && o->am_short && ep->am_short);
    PARTY_CHECK(!(ep->caps & TP_CAP_BCOPY) || o->am_bcopy);
    PARTY_CHECK(!(ep->caps & TP_CAP_GETPUT) || (o->get && o->put));
    PARTY_CHECK(!(ep->caps & TP_CAP_MAP) || (o->map && o->nudge));
    PARTY_CHECK(!(ep->caps & TP_CAP_ARENA) || o->map_arena);
    PARTY_CHECK(!(ep->caps & ~(uint32_t)(TP_CAP_BCOPY | TP_CAP_GETPUT | TP_CAP_MAP | TP_CAP_ARENA | TP_CAP_ZCOPY | TP_CAP_REMOTE | TP_CAP_KEEP | TP_CAP_BULK)));
    PARTY_CHECK(!(ep->caps & TP_CAP_ZCOPY) || o->am_zcopy);
    PARTY_CHECK(!(ep->caps & TP_CAP_REMOTE) == !o->remote);
    PARTY_CHECK(!(ep->caps & TP_CAP_KEEP) == !o->keep);
    PARTY_CHECK(ep->max_short >= 64);
    PARTY_CHECK(!o->helped || !o->helped(&other()->ep)); /* nobody has a helper here */
    PARTY_CHECK(!(o->bell || o->wait_fd) == !o->idle); /* who can wake a sleeper can tell whether to sleep */
    PARTY_CHECK(o->cost.latency_ns >= o->cost.send_ns && o->cost.send_ns && o->cost.mb_per_s && o->cost.eager_max > 0);
    PARTY_CHECK(!o->progress == !o->cost.poll_ns);
    PARTY_CHECK(!o->map || o->cost.locality != TP_NETWORK);
    PARTY_CHECK(!(o->threads & ~(uint32_t)(TP_THREADS_SEND | TP_THREADS_COPY | TP_THREADS_LOOK | TP_THREADS_POLL)));
    PARTY_CHECK(!o->share || o->threads);
    return true;
}

/* A card that is none, of another length or of somebody else, is out of reach. */
static bool foreign_cards(void)
{
    unsigned char card[512];
    PARTY_CHECK(open_wire());
    const struct tp_ops *o = other()->ep.ops;
    struct tp_dom *dom = wires_at(0)->dom;
    int n = o->card(dom, card, sizeof card);
    PARTY_CHECK(n > 0);
    PARTY_CHECK(o->reach(dom, card, (size_t)n));
    for (size_t len = 0; len < sizeof card; len++)
        if (len != (size_t)n) PARTY_CHECK(!o->reach(dom, card, len));
    memset(card, 0xa5, sizeof card);
    PARTY_CHECK(!o->reach(dom, card, (size_t)n));
    PARTY_CHECK(o->card(dom, card, (size_t)n - 1) < 0);
    return true;
}

/* Every size up to max_short arrives, by am_short and, where there is one, by am_bcopy. */
static bool sizes(void)
{
    PARTY_CHECK(open_wire());
    uint64_t number = 0, max = other()->ep.max_short, step = max > 20000 ? 61 : 1;
    for (size_t n = 0; n <= max; n = n < 300 || n > max - 70 ? n + 1 : min_size(n + step, max - 70 + 1)) {
        for (int way = 0; way < 2; way++) {
            struct peer *p = other();
            int rc;
            if (way && !(p->ep.caps & TP_CAP_BCOPY)) continue;
            do {
                rc = way ? p->ep.ops->am_bcopy(&p->ep, AM_NUMBER, number, 3 * number + n, pack, &number, n) : send_number(number, n);
                if (rc == TERN_AGAIN) party_look();
            } while (rc == TERN_AGAIN);
            PARTY_CHECK(rc == 0);
            number++;
        }
        wires_progress(64);
    }
    PARTY_CHECK(receive(number));
    meet();
    return true;
}

/* A message is copied when the call returns: the buffer is the caller's again (send_number uses the same one). Messages
 * of random sizes arrive in order, over many laps of the ring with fillers at its end. */
static bool random_sizes(void)
{
    uint64_t state = seed, limit, count = wire->messages / (PARTY_SANITIZED ? 10 : 1);
    PARTY_CHECK(open_wire());
    limit = other()->ep.max_short;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t r = party_random(&state);
        size_t n = (r >> 8) % (r % 64 ? r % 8 ? 40 : 500 : limit + 1);
        int rc;
        while ((rc = send_number(i, n)) == TERN_AGAIN) party_look();
        PARTY_CHECK(rc == 0);
        if (r % 4 == 0) wires_progress(16);
    }
    PARTY_CHECK(receive(count));
    meet();
    return true;
}

/* TERN_AGAIN reserves nothing and sends nothing: what was accepted comes, no more, and then there is room again. */
static bool again(void)
{
    PARTY_CHECK(open_wire());
    if (!other()->ep.ops->progress) return true; /* delivers at once: never "again" */
    uint64_t sent = 0;
    for (int round = 0; round < 20; round++) {
        size_t n = (size_t)round * 150;
        uint64_t accepted = 0;
        party_meet();
        while (send_number(sent, n) == 0) sent++, accepted++; /* nobody receives meanwhile */
        PARTY_CHECK(accepted > 0);
        for (int i = 0; i < 1000; i++) PARTY_CHECK(send_number(sent, n) == TERN_AGAIN);
        atomic_store(&party->sign[party_rank], sent);
        party_meet();
        PARTY_CHECK(receive(atomic_load(&party->sign[other()->index])));
        for (int i = 0; i < 100; i++) PARTY_CHECK(wires_progress(64) == 0);
        meet();
    }
    return true;
}

/* The largest message fits whatever the place in the ring that the ones before it have led to. */
static bool largest_fits_anywhere(void)
{
    PARTY_CHECK(open_wire());
    if (wire->processes == 1) return true;
    uint64_t number = 0;
    for (int i = 0; i < 600; i++) {
        party_meet();
        PARTY_CHECK(send_number(number++, 0) == 0);
        party_meet();
        PARTY_CHECK(receive(number));
        meet();
        PARTY_CHECK(send_number(number++, other()->ep.max_short) == 0);
        party_meet();
        PARTY_CHECK(receive(number));
        meet();
    }
    return true;
}

/* One call of progress delivers about what it was asked for, so that nobody starves. */
static bool budget(void)
{
    PARTY_CHECK(open_wire());
    if (!other()->ep.ops->progress) return true;
    uint64_t sent = 0;
    for (; sent < 40; sent++) PARTY_CHECK(send_number(sent, 0) == 0);
    party_meet();
    int n;
    while (!(n = wires_progress(8))) {} /* where a connection has to be made first */
    PARTY_CHECK(n >= 1 && n <= 16);
    PARTY_CHECK(came == (uint64_t)n);
    PARTY_CHECK(receive(sent));
    meet();
    return true;
}

/* ---- from where it lies to where it goes ---- */

enum { LONG_MAX = 3 << 20 };
static unsigned char *sink_memory;
static uint64_t ops_done;

static void *give_sink(struct peer *from, uint64_t h0, uint64_t h1, size_t n)
{
    wrong += from != other() || h1 != 3 * h0 + n;
    return h0 % 3 || n > other()->ep.max_short ? sink_memory : NULL;
}

static void op_done(struct tp_op *op, int rc)
{
    (void)op;
    wrong += rc != 0;
    ops_done++;
}

/* Messages of all lengths from the sender's own memory, among short ones, in order, into the receiver's own memory or not. */
static bool from_memory_to_memory(void)
{
    enum { COUNT = 300 };
    static struct tp_op ops[COUNT];
    uint64_t state = seed, number = 0;
    PARTY_CHECK(open_wire());
    if (!(other()->ep.caps & TP_CAP_ZCOPY)) return true;
    struct peer *p = other();
    sink_memory = malloc(LONG_MAX);
    unsigned char *memory = malloc(LONG_MAX + COUNT);
    PARTY_CHECK(sink_memory && memory);
    for (uint64_t i = 0; i < COUNT; i++) {
        uint64_t r = party_random(&state);
        size_t n = (r >> 8) % (r % 4 ? r % 3 ? 300 : 70000 : LONG_MAX);
        int rc;
        ops[i].done = op_done;
        while (ops_done < i) party_look(); /* its memory is used again */
        for (size_t k = 0; k < n; k++) memory[k] = pattern(number, k);
        while ((rc = p->ep.ops->am_zcopy(&p->ep, AM_NUMBER, number, 3 * number + n, memory, n, &ops[i])) == TERN_AGAIN)
            party_look();
        PARTY_CHECK(rc == 0);
        number++;
        for (uint64_t more = r % 5; more; more--) {
            while ((rc = send_number(number, (r >> 20) % 2000)) == TERN_AGAIN) party_look();
            PARTY_CHECK(rc == 0);
            number++;
        }
    }
    PARTY_CHECK(receive(number));
    while (ops_done < COUNT) party_look();
    PARTY_CHECK(ops_done == COUNT && !wrong);
    meet();
    free(memory);
    return true;
}

/* Splits [base, base + bytes) into at most 60 pieces. */
static int split(struct iovec *v, unsigned char *base, size_t bytes, uint64_t *state)
{
    int n = 0;
    while (bytes) {
        size_t k = n == 59 ? bytes : min_size(bytes, 1 + party_random(state) % 9000);
        v[n++] = (struct iovec){base, k};
        base += k;
        bytes -= k;
    }
    return n;
}

/* Private memory of the other is read and written, in pieces that do not correspond. */
static bool get_and_put(void)
{
    enum { BYTES = 200000 };
    static unsigned char mine[BYTES], got[BYTES];
    uint64_t state = seed + party_rank;
    PARTY_CHECK(open_wire());
    struct peer *p = other();
    if (!(p->ep.caps & TP_CAP_GETPUT)) {
        fprintf(stderr, "# %s: no get and put here\n", wire->name);
        return true;
    }
    for (int round = 0; round < 30; round++) {
        struct iovec local[60], remote[60];
        size_t n = 1 + party_random(&state) % BYTES;
        uint64_t mark = 1000 * (uint64_t)round + party_rank, theirs = 1000 * (uint64_t)round + p->index;
        for (size_t i = 0; i < BYTES; i++) mine[i] = pattern(mark, i), got[i] = 0xee;
        atomic_store(&party->sign[party_rank], (uintptr_t)mine);
        party_meet();
        unsigned char *there = (unsigned char *)(uintptr_t)atomic_load(&party->sign[p->index]);
        PARTY_CHECK(p->ep.ops->get(&p->ep, local, split(local, got, n, &state), remote, split(remote, there, n, &state)) == 0);
        for (size_t i = 0; i < n; i++) PARTY_CHECK(got[i] == pattern(theirs, i));
        for (size_t i = n; i < BYTES; i++) PARTY_CHECK(got[i] == 0xee);
        party_meet();
        for (size_t i = 0; i < n; i++) got[i] = (unsigned char)~pattern(mark, i);
        PARTY_CHECK(p->ep.ops->put(&p->ep, local, split(local, got, n, &state), remote, split(remote, there, n, &state)) == 0);
        atomic_store(&party->sign[8 + party_rank], n);
        party_meet();
        n = atomic_load(&party->sign[8 + p->index]);
        for (size_t i = 0; i < BYTES; i++)
            PARTY_CHECK(mine[i] == (i < n ? (unsigned char)~pattern(theirs, i) : pattern(mark, i)));
        party_meet();
    }
    return true;
}

/* What one leaves in its shared memory the other sees, and the other way round. */
static bool mapped_memory(void)
{
    uint64_t offset = 0;
    PARTY_CHECK(open_wire());
    struct peer *p = other();
    if (!(p->ep.caps & TP_CAP_MAP)) return true;
    PARTY_CHECK(peer_is_mappable(p->index));
    for (int round = 0; round < 10; round++) {
        size_t n = (size_t)64 << round;
        unsigned char *block = peer_shared_alloc(n, &offset);
        PARTY_CHECK(block != NULL && offset != 0);
        for (size_t i = 0; i < n; i++) PARTY_CHECK(block[i] == 0);
        for (size_t i = 0; i < n; i++) block[i] = pattern(party_rank, i);
        atomic_store(&party->sign[party_rank], offset);
        party_meet();
        unsigned char *there = p->ep.ops->map(&p->ep, atomic_load(&party->sign[p->index]), n);
        PARTY_CHECK(there != NULL);
        for (size_t i = 0; i < n; i++) PARTY_CHECK(there[i] == pattern(p->index, i));
        party_meet();
        there[n - 1] = 77;
        p->ep.ops->nudge(&p->ep, true);
        party_meet();
        PARTY_CHECK(block[n - 1] == 77);
        party_meet();
        peer_shared_free(block, n);
    }
    return true;
}

static struct peer *leaver;
static uint64_t came_before; /* it left */
static void note_leave(struct peer *p)
{
    leaver = p;
    came_before = came;
}

static bool has_left(struct peer *p) { return p->ep.ops->left ? p->ep.ops->left(&p->ep) : leaver == p; }

/* Who closes has left, and that is known, by tp_left or when asked, of one who lives is not said, and comes behind all that
 * was sent. */
static bool leave_taking(void)
{
    enum { LAST_WORDS = 5 };
    PARTY_CHECK(open_wire());
    if (wire->processes == 1) return true;
    tp_left = note_leave;
    PARTY_CHECK(send_number(0, 8) == 0);
    PARTY_CHECK(receive(1));
    meet();
    if (party_rank) {
        PARTY_CHECK(!has_left(other()));
        meet();
        for (uint64_t i = 1; i <= LAST_WORDS; i++) PARTY_CHECK(send_number(i, 200) == 0);
        peers_close();
        exit(0);
    }
    for (int i = 0; i < 100; i++) wires_progress(64);
    PARTY_CHECK(!has_left(other()));
    meet();
    while (!has_left(other())) wires_progress(1);
    while (wires_progress(64) > 0) continue;
    PARTY_CHECK(came == 1 + LAST_WORDS && !wrong);
    PARTY_CHECK(!leaver || (leaver == other() && came_before == came));
    exit(0);
}

static struct peer *lost_peer;
static uint64_t losses;
static void note_loss(struct peer *p, int code)
{
    wrong += code != TERN_ERR_PEER || !*err_words();
    lost_peer = p;
    losses++;
}

/* Who dies without taking its leave is reported by tp_lost, once, and sends to it fail in words. Of transports that hear
 * of it by themselves. */
static bool sudden_death(void)
{
    PARTY_CHECK(open_wire());
    if (wire->processes == 1 || other()->ep.ops->left) return true;
    tp_lost = note_loss;
    tp_left = note_leave;
    PARTY_CHECK(send_number(0, 8) == 0);
    PARTY_CHECK(receive(1));
    meet();
    if (party_rank) _exit(0);
    while (!losses) party_look();
    for (int i = 0; i < 1000; i++) wires_progress(64);
    PARTY_CHECK(losses == 1 && lost_peer == other() && !leaver && !wrong);
    err_clear();
    PARTY_CHECK(send_number(1, 8) == TERN_ERR_PEER && strstr(err_words(), "rank 1"));
    exit(0);
}

/* ---- running ---- */

static void run(bool (*member)(void))
{
    for (size_t i = 0; i < ARRAY_LEN(wires); i++) {
        conform_wire = wire = &wires[i];
        bool many = member == remote_many_origins && wire->processes > 1;
        if (!party_run(many ? 3 : wire->processes, member)) fail_msg("%s does not conform", wire->name);
    }
}

#define CASE(name)                                                                                                     \
    static void test_##name(void **state)                                                                              \
    {                                                                                                                  \
        (void)state;                                                                                                   \
        run(name);                                                                                                     \
    }
CASE(flags_and_members)
CASE(foreign_cards)
CASE(sizes)
CASE(random_sizes)
CASE(again)
CASE(largest_fits_anywhere)
CASE(budget)
CASE(from_memory_to_memory)
CASE(get_and_put)
CASE(mapped_memory)
CASE(leave_taking)
CASE(sudden_death)
CASE(kept_bytes_stay)
CASE(kept_for_long_stops_nobody)
CASE(release_wakes)
CASE(bulk_flag_and_members)
CASE(bulk_sizes)
CASE(bulk_many)
CASE(bulk_at_once)
CASE(bulk_of_another_length)
CASE(bulk_sudden_death)
CASE(bulk_then_leave)
CASE(bulk_severed)
CASE(threads_send)
CASE(threads_connect)
CASE(threads_answer)
CASE(threads_send_from_memory)
CASE(threads_copy)
CASE(remote_model)
CASE(remote_rights_and_ranges)
CASE(remote_deregistered)
CASE(remote_peer_ends)
CASE(remote_memory_grows)
CASE(remote_many_origins)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_flags_and_members), cmocka_unit_test(test_foreign_cards), cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_random_sizes),      cmocka_unit_test(test_again),         cmocka_unit_test(test_largest_fits_anywhere),
        cmocka_unit_test(test_budget),            cmocka_unit_test(test_get_and_put),   cmocka_unit_test(test_mapped_memory),
        cmocka_unit_test(test_from_memory_to_memory), cmocka_unit_test(test_leave_taking),
        cmocka_unit_test(test_sudden_death),
        cmocka_unit_test(test_kept_bytes_stay),   cmocka_unit_test(test_kept_for_long_stops_nobody),
        cmocka_unit_test(test_release_wakes),
        cmocka_unit_test(test_bulk_flag_and_members),
        cmocka_unit_test(test_bulk_sizes),
        cmocka_unit_test(test_bulk_many),
        cmocka_unit_test(test_bulk_at_once),
        cmocka_unit_test(test_bulk_of_another_length),
        cmocka_unit_test(test_bulk_sudden_death),
        cmocka_unit_test(test_bulk_then_leave),
        cmocka_unit_test(test_bulk_severed),
        cmocka_unit_test(test_threads_send),      cmocka_unit_test(test_threads_connect),
        cmocka_unit_test(test_threads_answer),    cmocka_unit_test(test_threads_send_from_memory),
        cmocka_unit_test(test_threads_copy),
        cmocka_unit_test(test_remote_model),      cmocka_unit_test(test_remote_rights_and_ranges),
        cmocka_unit_test(test_remote_deregistered), cmocka_unit_test(test_remote_peer_ends),
        cmocka_unit_test(test_remote_memory_grows), cmocka_unit_test(test_remote_many_origins),
    };
    conform_seed = seed = party_seed();
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
