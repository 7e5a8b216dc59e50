/*
 * conform_remote.c - what remote.h promises, by all ways: memory that is mapped, that the system copies, and that is
 * worked on by messages.
 */
#include "base/err.h"
#include "conform.h"
#include "transport/progress.h"
#include "transport/arena.h"
#include "transport/mock/mock.h"
#include "transport/remote.h"
#include "transport/wires.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define BYTES ((size_t)600000)
#define KEY_WORDS (REMOTE_KEY_MAX / 8)

/* ---- operations that are awaited ---- */

struct waited {
    struct tp_op op;
    int rc, times; /* how often it ended */
};

/* The others may need the processor to answer. */
static void turn(void)
{
    if (!wires_progress(64)) sched_yield();
}

static void waited_done(struct tp_op *op, int rc)
{
    struct waited *w = container_of(op, struct waited, op);
    w->rc = rc;
    w->times++;
}

static struct tp_op *begin(struct waited *w)
{
    *w = (struct waited){.op = {.done = waited_done}, .rc = 1};
    return &w->op;
}

/* The end of an operation that was started with this result. */
static int end(struct waited *w, int rc)
{
    if (rc) return rc == TERN_DONE ? 0 : rc;
    while (!w->times) turn();
    return w->rc;
}

static int put(struct remote_key *k, uint64_t at, const void *local, size_t n)
{
    struct waited w;
    int rc;
    while ((rc = remote_put(k, at, local, n, begin(&w))) == TERN_AGAIN) turn();
    return end(&w, rc);
}

static int get(struct remote_key *k, uint64_t at, void *local, size_t n)
{
    struct waited w;
    int rc;
    while ((rc = remote_get(k, at, local, n, begin(&w))) == TERN_AGAIN) turn();
    return end(&w, rc);
}

static int amo(struct remote_key *k, uint64_t at, const struct remote_amo *a, void *result)
{
    struct waited w;
    int rc;
    while ((rc = remote_amo(k, at, a, result, begin(&w))) == TERN_AGAIN) turn();
    return end(&w, rc);
}

static int flush(struct peer *p)
{
    struct waited w;
    int rc;
    while ((rc = remote_flush(p, begin(&w))) == TERN_AGAIN) turn();
    return end(&w, rc);
}

/* ---- memory and keys ---- */

enum place { PRIVATE, ARENA, HEAP, PLACES };

static unsigned char *memory_at(enum place place, size_t bytes)
{
    uint64_t offset;
    unsigned char *p = place == PRIVATE ? malloc(bytes)
                       : place == ARENA ? arena_alloc(bytes, 8)
                                        : peer_shared_alloc(bytes, &offset);
    if (p) memset(p, 0, bytes);
    return p;
}

static void memory_free(enum place place, unsigned char *p, size_t bytes)
{
    if (place == PRIVATE)
        free(p);
    else if (place == ARENA)
        arena_free(p);
    else
        peer_shared_free(p, bytes);
}

/* Shows the others the key of memory of this process. */
static bool show_key(struct remote_mem *m)
{
    uint64_t words[KEY_WORDS] = {0};
    PARTY_CHECK(remote_key_pack(m, words, sizeof words) > 0);
    for (size_t i = 0; i < KEY_WORDS; i++) atomic_store(&party->sign[party_rank % 2 * KEY_WORDS + i], words[i]);
    return true;
}

static int see_key(struct peer *p, struct remote_key **k)
{
    uint64_t words[KEY_WORDS];
    for (size_t i = 0; i < KEY_WORDS; i++) words[i] = atomic_load(&party->sign[p->index % 2 * KEY_WORDS + i]);
    return remote_key_open(p, words, sizeof words, k);
}

static bool open_remote(bool by_wires)
{
    remote_by_wires = by_wires;
    if (!strcmp(conform_wire->name, "mock")) {
        mock_script.again_percent = 20;
        mock_script.caps |= TP_CAP_ZCOPY; /* data as over a stream, here too */
        mock_script.sink_min = 1000;
        mock_script.done_late = true;
    }
    PARTY_CHECK(party_open(conform_wire->name));
    return true;
}

/* ---- against a model ---- */

enum { OPS = 40 }; /* at once, each in a part of the memory of its own */

struct job {
    struct waited waited;
    enum { DO_PUT, DO_GET, DO_AMO, DO_SILENT } what;
    size_t at, n;
    struct remote_amo amo;
    uint64_t result;
    unsigned char *local; /* of its part */
};

static struct job jobs[OPS];
static unsigned char model[BYTES], local[BYTES];

static uint64_t slow_amo(uint64_t v, const struct remote_amo *a)
{
    uint64_t mask = UINT64_MAX >> (64 - 8 * a->width), o = a->operand & mask;
    switch (a->op) {
    case REMOTE_ADD:
        return (v + o) & mask;
    case REMOTE_AND:
        return v & o;
    case REMOTE_OR:
        return v | o;
    case REMOTE_XOR:
        return v ^ o;
    case REMOTE_SWAP:
        return o;
    default:
        return v == (a->compare & mask) ? o : v;
    }
}

static uint64_t number_at(const unsigned char *p, size_t width)
{
    uint64_t v = 0;
    memcpy(&v, p, width); /* little endian here; elsewhere the widths below 8 would lie at the other end */
    return v;
}

static void choose(struct job *j, uint64_t *state, size_t from, size_t bytes)
{
    uint64_t r = party_random(state);
    j->what = r % 4;
    j->at = from + (r >> 8) % bytes;
    j->n = (r >> 32) % (from + bytes - j->at + 1);
    if (r % 3) j->n = min_size(j->n, (r >> 40) % 100);
    if (j->what < DO_AMO) return;
    j->amo = (struct remote_amo){(enum remote_op)(party_random(state) % REMOTE_OPS), 1u << party_random(state) % 4,
                                 party_random(state), 0};
    j->at = from + ((r >> 8) % (bytes - 8) & ~(size_t)7);
    if (party_random(state) % 2) j->amo.compare = number_at(model + j->at, j->amo.width);
    j->n = j->amo.width;
}

static int launch(struct job *j, struct remote_key *k)
{
    struct tp_op *op = begin(&j->waited);
    if (j->what == DO_PUT) return remote_put(k, j->at, j->local, j->n, op);
    if (j->what == DO_GET) return remote_get(k, j->at, j->local, j->n, op);
    j->result = 0;
    return remote_amo(k, j->at, &j->amo, j->what == DO_AMO ? &j->result : NULL, op);
}

/* The same in the model; false if the operation did not bring what the model has. */
static bool in_model(struct job *j)
{
    if (j->what == DO_PUT) memcpy(model + j->at, j->local, j->n);
    if (j->what == DO_GET) PARTY_CHECK(!memcmp(model + j->at, j->local, j->n));
    if (j->what < DO_AMO) return true;
    uint64_t before = number_at(model + j->at, j->amo.width), after = slow_amo(before, &j->amo);
    memcpy(model + j->at, &after, j->amo.width);
    PARTY_CHECK(j->what == DO_SILENT || j->result == before);
    return true;
}

static bool round_of_operations(struct remote_key *k, uint64_t *state)
{
    size_t part = BYTES / OPS & ~(size_t)7;
    for (size_t i = 0; i < BYTES; i += 1 + i / 32) local[i] = (unsigned char)party_random(state);
    for (size_t i = 0; i < OPS; i++) {
        struct job *j = &jobs[i];
        j->local = local + i * part;
        choose(j, state, i * part, part);
        int rc;
        while ((rc = launch(j, k)) == TERN_AGAIN) turn();
        PARTY_CHECK(rc == 0 || rc == TERN_DONE);
        PARTY_CHECK(rc == 0 || !j->waited.times);
        if (rc) j->waited.rc = 0, j->waited.times = 1;
    }
    PARTY_CHECK(flush(k->peer) == 0);
    for (size_t i = 0; i < OPS; i++) {
        PARTY_CHECK(end(&jobs[i].waited, 0) == 0 && jobs[i].waited.times == 1);
        PARTY_CHECK(in_model(&jobs[i]));
    }
    return true;
}

static bool model_at(enum place place, uint64_t *state)
{
    struct remote_mem *m;
    struct remote_key *k;
    unsigned char *mine = memory_at(place, BYTES);
    if (!mine) {
        PARTY_CHECK(place != PRIVATE); /* no arena where there is no other process on the node */
        return true;
    }
    PARTY_CHECK(remote_reg(mine, BYTES, REMOTE_READ | REMOTE_WRITE | REMOTE_ATOMIC, &m) == 0 && show_key(m));
    party_meet();
    PARTY_CHECK(see_key(conform_other(), &k) == 0);
    PARTY_CHECK(k->bytes == BYTES);
    if (remote_by_wires && !strcmp(conform_wire->name, "shm")) PARTY_CHECK(k->at || place == PRIVATE);
    memset(model, 0, BYTES);
    for (int round = 0; round < 8; round++) PARTY_CHECK(round_of_operations(k, state));
    conform_meet();
    memset(local, 1, BYTES);
    PARTY_CHECK(get(k, 0, local, BYTES) == 0);
    PARTY_CHECK(!memcmp(local, model, BYTES)); /* no operation changed what is beside it */
    if (k->at) PARTY_CHECK(!memcmp(remote_at(k, 0, BYTES), model, BYTES) && !remote_at(k, 1, BYTES));
    conform_meet();
    remote_key_close(k);
    remote_dereg(m);
    memory_free(place, mine, BYTES);
    party_meet();
    return true;
}

/* Operations of random kinds, places and lengths bring and leave what they should, by the wire's ways and by messages.
 */
bool remote_model(void)
{
    uint64_t state = conform_seed + party_rank;
    PARTY_CHECK(open_remote(true));
    for (int way = 0; way < 2; way++) {
        remote_by_wires = !way;
        for (enum place place = PRIVATE; place < PLACES; place++)
            if (place != HEAP || peer_shared_public()) PARTY_CHECK(model_at(place, &state));
    }
    conform_meet();
    return true;
}

/* ---- what is refused ---- */

/* Without the right, outside of the memory, at a place that is not aligned: a code with words, and no message. */
bool remote_rights_and_ranges(void)
{
    static const struct {
        uint32_t access;
        int put, get, amo;
    } rights[] = {{REMOTE_READ, TERN_ERR_ARG, 0, TERN_ERR_ARG},
                  {REMOTE_WRITE, 0, TERN_ERR_ARG, TERN_ERR_ARG},
                  {REMOTE_ATOMIC, TERN_ERR_ARG, TERN_ERR_ARG, 0}};
    static const struct {
        uint64_t at, n;
    } outside[] = {{0, 101},        {100, 1},        {101, 0},         {1, 100},
                   {UINT64_MAX, 1}, {UINT64_MAX, 2}, {50, UINT64_MAX}, {(uint64_t)1 << 48, 8}};
    TERN_ALIGNED(8) static unsigned char mine[100];
    static unsigned char buffer[100];
    struct remote_amo add = {REMOTE_ADD, 8, 1, 0}, odd = {REMOTE_ADD, 3, 1, 0}, none = {REMOTE_OPS, 8, 1, 0};
    struct remote_mem *m;
    struct remote_key *k;
    PARTY_CHECK(open_remote(party_rank % 2));
    for (size_t i = 0; i < ARRAY_LEN(rights); i++) {
        PARTY_CHECK(remote_reg(mine, sizeof mine, rights[i].access, &m) == 0 && show_key(m));
        party_meet();
        PARTY_CHECK(see_key(conform_other(), &k) == 0);
        PARTY_CHECK(put(k, 92, buffer, 8) == rights[i].put);
        PARTY_CHECK(get(k, 92, buffer, 8) == rights[i].get);
        PARTY_CHECK(amo(k, 80, &add, buffer) == rights[i].amo);
        for (size_t j = 0; j < ARRAY_LEN(outside); j++) {
            err_clear();
            PARTY_CHECK(put(k, outside[j].at, buffer, outside[j].n) == TERN_ERR_ARG && *err_words());
            PARTY_CHECK(get(k, outside[j].at, buffer, outside[j].n) == TERN_ERR_ARG);
            PARTY_CHECK(amo(k, outside[j].at, &add, buffer) == TERN_ERR_ARG || outside[j].at < 93);
        }
        PARTY_CHECK(amo(k, 4, &add, buffer) == TERN_ERR_ARG && strstr(err_words(), "aligned"));
        PARTY_CHECK(amo(k, 0, &odd, buffer) == TERN_ERR_ARG && amo(k, 0, &none, buffer) == TERN_ERR_ARG);
        PARTY_CHECK(flush(conform_other()) == 0);
        conform_meet();
        remote_key_close(k);
        remote_dereg(m);
        party_meet();
    }
    PARTY_CHECK(remote_reg(mine, (size_t)1 << 60, 0, &m) == TERN_ERR_ARG);
    return true;
}

/* What is no key is refused; what is cut off as well. */
static bool no_keys(struct peer *p, struct remote_mem *m)
{
    unsigned char packed[REMOTE_KEY_MAX], other[REMOTE_KEY_MAX];
    struct remote_key *k;
    int n = remote_key_pack(m, packed, sizeof packed);
    PARTY_CHECK(n > 24 && remote_key_pack(m, packed, 20) < 0);
    PARTY_CHECK(remote_key_open(p, packed, 20, &k) == TERN_ERR_ARG);
    for (int i = 0; i < 8; i++) {
        memcpy(other, packed, sizeof other);
        other[i] ^= i < 4 ? 1 : 0x80; /* magic; rights and alignment that there are not */
        PARTY_CHECK(remote_key_open(p, other, (size_t)n, &k) == TERN_ERR_ARG && *err_words());
    }
    return true;
}

/* What is started when the memory is not registered any more ends with a code once, puts at the latest by a flush, and
 * changes nothing; a new registration has another key. */
bool remote_deregistered(void)
{
    static _Alignas(8) unsigned char mine[70000];
    static unsigned char buffer[70000];
    uint64_t result = 7;
    struct remote_amo add = {REMOTE_ADD, 8, 1, 0};
    struct remote_mem *m, *again;
    struct remote_key *k;
    PARTY_CHECK(open_remote(true));
    for (int way = 0; way < 2; way++) {
        remote_by_wires = !way;
        memset(buffer, 5, sizeof buffer);
        PARTY_CHECK(remote_reg(mine, sizeof mine, REMOTE_READ | REMOTE_WRITE | REMOTE_ATOMIC, &m) == 0 && show_key(m));
        PARTY_CHECK(no_keys(conform_other(), m));
        party_meet();
        PARTY_CHECK(see_key(conform_other(), &k) == 0);
        PARTY_CHECK(put(k, 8, buffer, 8) == 0 && flush(conform_other()) == 0 && get(k, 8, &result, 8) == 0);
        conform_meet();
        PARTY_CHECK(mine[8] == 5);
        mine[8] = 1;
        remote_dereg(m);
        PARTY_CHECK(remote_reg(mine, sizeof mine, REMOTE_READ, &again) == 0);
        party_meet();
        int first = put(k, 8, buffer, sizeof buffer - 8), second = flush(conform_other());
        PARTY_CHECK((first == TERN_ERR_NOT_FOUND && !second) || (!first && second == TERN_ERR_NOT_FOUND));
        PARTY_CHECK(flush(conform_other()) == 0);
        PARTY_CHECK(get(k, 0, buffer, sizeof buffer) == TERN_ERR_NOT_FOUND && strstr(err_words(), "registered"));
        PARTY_CHECK(amo(k, 8, &add, &result) == TERN_ERR_NOT_FOUND);
        first = amo(k, 8, &add, NULL), second = flush(conform_other());
        PARTY_CHECK((first == TERN_ERR_NOT_FOUND && !second) || (!first && second == TERN_ERR_NOT_FOUND));
        conform_meet();
        PARTY_CHECK(mine[8] == 1);
        remote_key_close(k);
        remote_dereg(again);
        party_meet();
    }
    return true;
}

/* ---- the end of a peer ---- */

static void lost(struct peer *p, int code)
{
    (void)code;
    progress_peer_end(&progress_process, p);
}

/* What is under way when the peer ends, ends with a code, once; so does what is started later. */
bool remote_peer_ends(void)
{
    enum { COUNT = 20 };
    static unsigned char mine[BYTES], buffer[COUNT][BYTES / COUNT];
    static struct waited w[COUNT + 1];
    struct remote_mem *m;
    struct remote_key *k;
    PARTY_CHECK(open_remote(false));
    tp_lost = lost;
    PARTY_CHECK(remote_reg(mine, sizeof mine, REMOTE_READ | REMOTE_WRITE, &m) == 0 && show_key(m));
    conform_meet();
    PARTY_CHECK(see_key(conform_other(), &k) == 0);
    PARTY_CHECK(get(k, 0, buffer[0], 8) == 0);
    conform_meet();
    party_meet();                                                   /* rank 1 serves nobody from here on */
    if (!strcmp(conform_wire->name, "tcp") && party_rank) _exit(0); /* without a farewell */
    if (!strcmp(conform_wire->name, "mock")) mock_script.lose = 30;
    for (size_t i = 0; i < COUNT; i++) {
        size_t at = i * sizeof buffer[0];
        int rc;
        while ((rc = i % 2 ? remote_get(k, at, buffer[i], sizeof buffer[i], begin(&w[i]))
                           : remote_put(k, at, buffer[i], sizeof buffer[i], begin(&w[i]))) == TERN_AGAIN)
            turn();
        if (rc) w[i].rc = rc == TERN_DONE ? 0 : rc, w[i].times = 1;
    }
    int rc = remote_flush(conform_other(), begin(&w[COUNT]));
    if (rc) w[COUNT].rc = rc == TERN_DONE ? 0 : rc, w[COUNT].times = 1;
    for (size_t i = 0; i <= COUNT; i++) {
        while (!w[i].times) turn();
    }
    bool ends = !strcmp(conform_wire->name, "tcp") || !strcmp(conform_wire->name, "mock");
    for (size_t i = 0; i <= COUNT; i++) PARTY_CHECK(w[i].times == 1 && (ends ? w[i].rc <= 0 : w[i].rc == 0));
    if (!ends) {
        remote_key_close(k);
        conform_meet();
        remote_dereg(m);
        return true;
    }
    PARTY_CHECK(w[COUNT].rc == TERN_ERR_PEER && w[COUNT - 1].rc == TERN_ERR_PEER);
    PARTY_CHECK(remote_get(k, 0, buffer[0], 8, begin(&w[0])) == TERN_ERR_PEER && *err_words() && !w[0].times);
    PARTY_CHECK(remote_flush(conform_other(), begin(&w[0])) == TERN_ERR_PEER);
    _exit(0); /* nothing is closed */
}

/* ---- memory that grows ---- */

/* What was mapped stays where it is while the owner's memory grows, whether its address space was reserved or not. */
bool remote_memory_grows(void)
{
    enum { STEPS = 3 };
    static const size_t sizes[STEPS] = {1 << 20, 100 << 20,
                                        300 << 20}; /* the arena begins with 64 MB; little is touched */
    struct remote_mem *m[STEPS];
    struct remote_key *k[STEPS];
    char *at[STEPS];
    uint64_t *block;
    if (strcmp(conform_wire->name, "shm")) return true;
    PARTY_CHECK(open_remote(true));
    if (party_rank && !PARTY_SANITIZED) { /* this one has no address space to spare */
        struct rlimit r = {(rlim_t)1 << 40, (rlim_t)1 << 40};
        PARTY_CHECK(setrlimit(RLIMIT_AS, &r) == 0);
    }
    for (int i = 0; i < STEPS; i++) {
        PARTY_CHECK((block = arena_alloc(sizes[i], 8)) != NULL);
        block[0] = (uint64_t)i + 10;
        PARTY_CHECK(remote_reg(block, sizes[i], REMOTE_READ | REMOTE_WRITE, &m[i]) == 0 && show_key(m[i]));
        party_meet();
        PARTY_CHECK(see_key(conform_other(), &k[i]) == 0 && k[i]->at);
        at[i] = k[i]->at;
        for (int j = 0; j <= i; j++) {
            uint64_t seen;
            PARTY_CHECK(k[j]->at == at[j] && get(k[j], 0, &seen, 8) == 0 && seen == (uint64_t)j + 10);
            PARTY_CHECK(*(uint64_t *)remote_at(k[j], 0, 8) == seen);
            seen = 100 * (uint64_t)i;
            PARTY_CHECK(put(k[j], 8, &seen, 8) == 0);
        }
        party_meet();
        PARTY_CHECK(block[1] == 100 * (uint64_t)i);
        party_meet();
    }
    for (int i = 0; i < STEPS; i++) remote_key_close(k[i]);
    party_meet();
    for (int i = 0; i < STEPS; i++) remote_dereg(m[i]);
    return true;
}

/* ---- several origins ---- */

enum { TIMES = 480 };

/* Adds to numbers of all widths, and changes a number under a lock, TIMES times. */
static bool be_origin(struct remote_key *k)
{
    struct remote_amo add = {REMOTE_ADD, 8, 1, 0}, lock = {REMOTE_CAS, 8, party_rank + 1u, 0},
                      unlock = {REMOTE_SWAP, 8, 0, 0};
    uint64_t before = 0, last = 0, guarded;
    for (uint64_t i = 0; i < TIMES; i++) {
        for (uint32_t width = 1, at = 8; width <= 4; at += width, width *= 2) {
            struct remote_amo one = {REMOTE_ADD, width, 1, 0};
            PARTY_CHECK(amo(k, (at + width - 1) / width * width, &one, NULL) == 0);
        }
        PARTY_CHECK(amo(k, 0, &add, &before) == 0);
        PARTY_CHECK(!i || before > last); /* amos of one process are in order */
        last = before;
        if (i % 16) continue;
        do {
            PARTY_CHECK(amo(k, 24, &lock, &before) == 0);
        } while (before);
        PARTY_CHECK(get(k, 32, &guarded, 8) == 0);
        guarded++;
        PARTY_CHECK(put(k, 32, &guarded, 8) == 0 && flush(k->peer) == 0);
        PARTY_CHECK(amo(k, 24, &unlock, &before) == 0 && before == party_rank + 1u);
    }
    return flush(k->peer) == 0;
}

/* Rank 0 has the memory, and counts there too, by the processor. The others go different ways to it. */
static bool many_at(enum place place)
{
    struct remote_mem *m = NULL;
    struct remote_key *k = NULL;
    uint64_t origins = party->size;
    unsigned char *mine = party_rank ? NULL : memory_at(place, 64);
    if (!party_rank)
        PARTY_CHECK(mine && remote_reg(mine, 64, REMOTE_READ | REMOTE_WRITE | REMOTE_ATOMIC, &m) == 0 && show_key(m));
    party_meet();
    remote_by_wires = party_rank != 2;
    if (party_rank || party->size == 1) {
        PARTY_CHECK(peer_get(0) && see_key(peer_get(0), &k) == 0);
        if (!strcmp(conform_wire->name, "shm")) PARTY_CHECK(!k->at == (party_rank == 2 || place == PRIVATE));
        PARTY_CHECK(be_origin(k));
    } else {
        for (int i = 0; i < TIMES; i++) {
            atomic_fetch_add((_Atomic uint64_t *)(void *)mine, 1);
            turn();
        }
    }
    conform_meet();
    if (!party_rank) {
        uint64_t adders = origins == 1 ? 1 : origins - 1, n = adders * TIMES;
        uint16_t two;
        uint32_t four;
        memcpy(&two, mine + 10, 2);
        memcpy(&four, mine + 12, 4);
        PARTY_CHECK(number_at(mine, 8) == origins * TIMES);
        PARTY_CHECK(mine[8] == (uint8_t)n && two == (uint16_t)n && four == (uint32_t)n);
        PARTY_CHECK(number_at(mine + 24, 8) == 0 && number_at(mine + 32, 8) == adders * ((TIMES + 15) / 16));
    }
    party_meet();
    if (k) remote_key_close(k);
    if (m) remote_dereg(m);
    if (m) memory_free(place, mine, 64);
    return true;
}

/* Atomic operations of several processes on the same numbers, each by its own way, lose nothing. */
bool remote_many_origins(void)
{
    PARTY_CHECK(open_remote(true));
    PARTY_CHECK(many_at(PRIVATE));
    if (!strcmp(conform_wire->name, "shm")) PARTY_CHECK(many_at(ARENA) && many_at(HEAP));
    return true;
}
