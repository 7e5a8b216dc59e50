/*
 * remote_fuzz.c - a peer that has gone mad, and sends what it likes about memory: requests and answers that are right,
 * nearly right, or noise (emulate.h), while operations of ours with it are under way.
 *
 * The peer is this process itself, by the mock transport: what is sent by hand comes back as the peer's. When it has
 * been given up, the way is closed and opened again.
 */
#include "fuzz.h"
#include "fuzz_job.h"

#include "base/err.h"
#include "base/var.h"
#include "proc/proc.h"
#include "transport/emulate/emulate.h"
#include "transport/mock/mock.h"
#include "transport/peer.h"
#include "transport/progress.h"
#include "transport/wires.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define MESSAGES 2000 /* of a case */
#define LIFE 60       /* messages of one connection, at most */
#define ROOM 3000
#define GUARD 64
#define GUARD_BYTE 0xA5

enum { ALL, READ, HIDDEN, GONE, MEMS, OPS = 24 };

static _Alignas(8) uint8_t memory[MEMS][GUARD + ROOM + GUARD];
static struct remote_mem *mem[MEMS];
static uint64_t ids[MEMS];
static struct remote_key *key;
static struct peer *mad;
static bool lost;

static struct operation {
    struct tp_op op;
    bool going;
    uint8_t local[GUARD + ROOM + GUARD];
} operation[OPS];

static struct count {
    uint64_t messages, taken, losses, good, failed;
} * count;

static void note_lost(struct peer *p, int code)
{
    FUZZ_RULE(p == mad && code == TERN_ERR_PEER && *err_words() && !lost, "a loss is told once, in words");
    lost = true;
    count->losses++;
}

static void done(struct tp_op *op, int rc)
{
    struct operation *o = container_of(op, struct operation, op);
    FUZZ_RULE(o->going, "an operation ends once");
    o->going = false;
    count->good += !rc;
    count->failed += rc != 0;
}

static void check_guards(const uint8_t *p)
{
    for (size_t i = 0; i < GUARD; i++)
        FUZZ_RULE(p[i] == GUARD_BYTE && p[GUARD + ROOM + i] == GUARD_BYTE,
                  "memory beside what is registered is left alone");
}

static void check(void)
{
    for (int i = 0; i < MEMS; i++) check_guards(memory[i]);
    for (int i = READ; i < MEMS; i++)
        for (size_t j = 0; j < ROOM; j++)
            FUZZ_RULE(memory[i][GUARD + j] == 0x11, "memory that may not be written is left alone");
    for (int i = 0; i < OPS; i++) check_guards(operation[i].local);
}

/* ---- operations of ours ---- */

static void start_one(void)
{
    struct operation *o = &operation[fuzz_below(OPS)];
    uint64_t at = fuzz_below(ROOM), n = 1 + fuzz_below(ROOM - at);
    struct remote_amo amo = {(enum remote_op)fuzz_below(REMOTE_OPS), 8, fuzz_random(), 0};
    int rc;
    if (o->going) return;
    o->op.done = done;
    o->going = true;
    switch (fuzz_below(4)) {
    case 0:
        rc = remote_put(key, at, o->local + GUARD, n, &o->op);
        break;
    case 1:
        rc = remote_get(key, at, o->local + GUARD, n, &o->op);
        break;
    case 2:
        rc = remote_amo(key, at - at % 8 < ROOM - 8 ? at - at % 8 : 0, &amo, o->local + GUARD, &o->op);
        break;
    default:
        rc = remote_flush(mad, &o->op);
        break;
    }
    FUZZ_RULE(rc == 0 || rc == TERN_DONE || rc == TERN_AGAIN || rc == TERN_ERR_PEER,
              "an operation starts, or says why not");
    FUZZ_RULE(rc == 0 || o->going, "an operation that has not started does not end");
    if (rc) o->going = false;
}

/* ---- messages ---- */

static uint64_t some_id(void)
{
    uint64_t id = ids[fuzz_below(16) ? fuzz_below(2) ? ALL : READ : fuzz_below(MEMS)];
    if (fuzz_below(40)) return id;
    return fuzz_below(2) ? fuzz_random() : id ^ (uint64_t)1 << fuzz_below(64);
}

static uint64_t some_offset(void)
{
    static const uint64_t ends[] = {0, 1, ROOM - 8, ROOM - 1, ROOM, ROOM + 1, ((uint64_t)1 << 48) - 1};
    return fuzz_below(20) ? fuzz_below(ROOM - 64) & ~(uint64_t)7 : ends[fuzz_below(ARRAY_LEN(ends))];
}

/* An answer to what we may have asked for, or not. */
static size_t make_answer(uint64_t *h0, uint64_t *h1)
{
    static const uint8_t kinds[] = {EMULATE_GET, EMULATE_AMO, EMULATE_FLUSH, EMULATE_REFUSED};
    *h0 = fuzz_below(3) ? 0 : fuzz_random();
    *h1 = (uint64_t)kinds[fuzz_below(ARRAY_LEN(kinds))] << 60;
    return *h1 >> 60 == EMULATE_GET ? 1 + fuzz_below(64) : 0;
}

static size_t make_request(uint64_t *h0, uint64_t *h1, uint64_t *payload)
{
    enum emulate_kind kind = EMULATE_PUT + (enum emulate_kind)fuzz_below(5);
    if (fuzz_below(4))
        kind = fuzz_below(2) ? EMULATE_PUT : EMULATE_AMO_SILENT; /* the answers to others end the connection */
    bool amo = kind == EMULATE_AMO || kind == EMULATE_AMO_SILENT;
    *h0 = kind == EMULATE_FLUSH ? 0 : kind == EMULATE_GET ? some_id() : fuzz_below(30) ? ids[ALL] : some_id();
    *h1 = emulate_word(kind, amo ? (enum remote_op)fuzz_below(REMOTE_OPS) : 0, amo ? 1u << fuzz_below(4) : 1,
                       kind == EMULATE_FLUSH ? 0 : some_offset());
    if (kind == EMULATE_GET) payload[0] = fuzz_below(30) ? 1 + fuzz_below(64) : fuzz_random() >> fuzz_below(64);
    return kind == EMULATE_PUT   ? 1 + fuzz_below(fuzz_below(30) ? 64 : 2 * sizeof memory[0] / 8)
           : kind == EMULATE_GET ? 8
           : amo                 ? 16
                                 : 0;
}

static void say(void)
{
    static uint64_t payload[2 * sizeof memory[0] / 8];
    uint64_t h0, h1;
    fuzz_bytes(payload, 256);
    bool back = !fuzz_below(10);
    size_t n = back ? make_answer(&h0, &h1) : make_request(&h0, &h1, payload);
    if (!fuzz_below(40)) h1 ^= (uint64_t)1 << fuzz_below(64);
    if (!fuzz_below(40)) n = fuzz_below(100);
    if (!fuzz_below(100)) h0 = fuzz_random(), h1 = fuzz_random();
    int rc = mad->ep.am_short(&mad->ep, back ? AM_REMOTE_BACK : AM_REMOTE, h0, h1, payload, n);
    count->messages += !rc;
}

/* ---- the job ---- */

static bool connect_mad(void)
{
    unsigned char packed[REMOTE_KEY_MAX];
    lost = false;
    mad = peer_get(0);
    int n = mad ? remote_key_pack(mem[ALL], packed, sizeof packed) : -1;
    return n > 0 && !remote_key_open(mad, packed, (size_t)n, &key);
}

static void end_mad(void)
{
    for (int i = 0; i < 200 && !lost; i++) wires_progress(64);
    if (!lost) { /* it ends in another way */
        lost = true;
        mad->ep.ops->sever(&mad->ep);
        err_set(TERN_ERR_PEER, "the peer is gone");
        progress_peer_end(&progress_process, mad);
    }
    wires_progress(64); /* of a peer that is severed the wire gives back what it has */
    for (int i = 0; i < OPS; i++) FUZZ_RULE(!operation[i].going, "the loss of a peer ends all that is with it");
    FUZZ_RULE(!progress_waits(&progress_process), "nothing waits for the way to a peer that is lost");
    remote_key_close(key);
    wires_ep_close(&mad->ep);
}

static bool open_mock(void)
{
    fuzz_job(1);
    setenv("TERN_TRANSPORTS", "mock", 1);
    if (var_open() || proc_open() || peers_open()) return false;
    tp_lost = note_lost;
    mock_script.max_short = 128 + (uint32_t)fuzz_below(8000);
    mock_script.room = 4 + (uint32_t)fuzz_below(60);
    mock_script.again_percent = (uint32_t)fuzz_below(40);
    mock_script.seed = fuzz_random();
    if (fuzz_below(2)) mock_script.caps |= TP_CAP_ZCOPY;
    mock_script.done_late = fuzz_below(2);
    mock_script.sink_min = (uint32_t)fuzz_below(3) * 20;
    for (int i = 0; i < OPS; i++) memset(operation[i].local, GUARD_BYTE, sizeof operation[i].local);
    for (int i = 0; i < MEMS; i++) {
        static const uint32_t access[] = {REMOTE_READ | REMOTE_WRITE | REMOTE_ATOMIC, REMOTE_READ, 0, REMOTE_WRITE};
        memset(memory[i], GUARD_BYTE, sizeof memory[i]);
        memset(memory[i] + GUARD, 0x11, ROOM);
        if (remote_reg(memory[i] + GUARD, ROOM, access[i], &mem[i])) return false;
        ids[i] = mem[i]->id;
    }
    remote_dereg(mem[GONE]);
    return true;
}

static bool play(void)
{
    if (!open_mock()) {
        printf("# %s\n", err_words());
        return false;
    }
    for (int sent = 0; sent < MESSAGES && fuzz_ok();) {
        if (!connect_mad()) return false;
        for (int i = 0, life = 1 + (int)fuzz_below(LIFE); i < life && !lost && fuzz_ok(); i++, sent++) {
            if (fuzz_below(3)) start_one();
            say();
            if (fuzz_below(2)) wires_progress(1 + (int)fuzz_below(16));
        }
        end_mad();
        check();
    }
    count->taken += mock_count.delivered;
    peers_close();
    proc_close();
    var_close();
    return fuzz_ok();
}

static void job(void) { fuzz_fork(play, "the process lives on"); }

static void reached(void)
{
    printf("# %llu messages, %llu taken; %llu losses; %llu operations succeeded, %llu failed\n",
           (unsigned long long)count->messages, (unsigned long long)count->taken, (unsigned long long)count->losses,
           (unsigned long long)count->good, (unsigned long long)count->failed);
    FUZZ_RULE(count->taken > count->messages / 2 && count->losses > count->messages / 100 &&
                  count->good > count->messages / 100,
              "messages get to where they are judged");
}

int main(void)
{
    static const struct fuzz_part parts[] = {
        {"a peer that sends what it likes about memory harms itself only", job, MESSAGES},
        {"its messages are taken and judged", reached, UINT_MAX},
    };
    count = mmap(NULL, sizeof *count, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (count == MAP_FAILED) abort();
    setvbuf(stdout, NULL, _IOLBF, 0);
    return fuzz_main(parts, 2, 20 * MESSAGES);
}
