/*
 * window_fuzz.c - a process of a window that has gone mad: it sends batches of operations, and answers, that are right, nearly
 * right or noise (rma/wire.h).
 *
 * This process is rank 0: the target, and an origin whose operations the mad one answers. Rank 1 is the mad one. What it
 * sends is given to the handlers, in memory of exactly its size; what is sent to it comes by a connection. A model
 * (window_model.h) takes the same, and says what memory, answers and locks must be. When rank 1 has been given up it comes
 * again as if new, to another window. Rank 2 is honest, and must be served as if rank 1 were not there.
 */
#include "fuzz.h"
#include "fuzz_job.h"
#include "window_model.h"

#include "base/err.h"
#include "base/var.h"
#include "coll/coll.h"
#include "obj/group.h"
#include "proc/proc.h"
#include "pt2pt/api.h"
#include "pt2pt/lanes.h"
#include "pt2pt/lost.h"
#include "pt2pt/protocol.h"
#include "rma/apply.h"
#include "rma/atomics.h"
#include "rma/epoch.h"
#include "rma/far.h"
#include "rma/near.h"
#include "rma/rma.h"
#include "transport/tcp/tcp.h"
#include "transport/wires.h"
#include "type/op.h"

#include <endian.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#define MESSAGES 1000 /* of a job */
#define LIFE 40       /* messages of a connection, at most */
#define ROOM 80000    /* bytes of memory, of which windows are made */
#define GUARD_BYTE 0xA5
#define RESULT 150000 /* bytes that an operation fetches, at most */

enum { MAD = 1, HONEST = 2, RANKS = 3 };
enum kind { CREATED, CREATED_BY_UNITS, ALLOCATED, EMPTY, DYNAMIC, DYNAMIC_EMPTY, KINDS };

static _Alignas(64) uint8_t memory[ROOM];
static struct win *w, *lonely; /* that of all, and one of this process alone */
static enum kind kind;
static struct model model;
static struct comm *world;

/* Another process. */
static struct other {
    struct peer *peer;
    struct tcp_ep *ep;
    int fd; /* its end of the connection */
    uint16_t number; /* of its next frame */
    struct model_origin as_origin;
    struct model_bytes sent, asked, answers; /* to it: what of it is no whole frame yet; operations; answers */
} mad, honest;

static struct count {
    uint64_t messages, lost, records, refused, waited, answers, fetched, good;
} * count;

static bool odd(uint64_t n) { return !fuzz_below(n); }

/* ---- the connection ---- */

static void connect_to(struct other *o)
{
    int fd[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd)) abort();
    o->ep = tcp_ep_fill(o->peer, &o->peer->ep);
    struct tcp_half *h = tcp_half_new(fd[0]);
    if (!o->ep || !h || !tcp_watch(&h->src, EPOLLIN)) abort();
    tcp_adopt(o->ep, h);
    o->peer->flags |= PEER_QUOTA_KNOWN; /* there are no cards */
    o->peer->credit = o->peer->quota_there = peer_first_quota();
    o->fd = fd[1];
    o->number = 0;
}

/* A whole message that was sent to it. */
static void hear(struct other *o, unsigned id, const uint8_t *data, size_t n)
{
    if (id == AM_RMA_OPS) model_append(&o->asked, data, n);
    if (id == AM_RMA_ANSWERS) model_append(&o->answers, data, n);
}

/* A part of a long message: the first one says what it is. */
static void hear_part(struct other *o, uint64_t at, const uint8_t *data, size_t n)
{
    static struct pt_long head;
    if (!at) {
        memcpy(&head, data, sizeof head);
        data += sizeof head;
        n -= sizeof head;
    }
    hear(o, head.id, data, n);
}

static void read_frames(struct other *o)
{
    size_t at = 0;
    for (struct tcp_frame f; o->sent.n - at >= sizeof f;) {
        memcpy(&f, o->sent.at + at, sizeof f);
        size_t n = le32toh(f.bytes), whole = sizeof f + round_up(n, 8);
        if (o->sent.n - at < whole) break;
        if (f.id == AM_PART) hear_part(o, le64toh(f.h1), o->sent.at + at + sizeof f, n);
        else hear(o, f.id, o->sent.at + at + sizeof f, n);
        at += whole;
    }
    if (at) memmove(o->sent.at, o->sent.at + at, o->sent.n - at);
    o->sent.n -= at;
}

static void drain(struct other *o)
{
    static uint8_t piece[65536];
    for (ssize_t n; (n = recv(o->fd, piece, sizeof piece, MSG_DONTWAIT)) > 0;) model_append(&o->sent, piece, (size_t)n);
    read_frames(o);
}

static void turn(void)
{
    lane_progress(lanes_first());
    drain(&mad);
    drain(&honest);
}

/* In memory of its own, of which not a byte more may be read. */
static void say(struct other *o, unsigned id, uint64_t ctx, const void *data, size_t n)
{
    void *own = malloc(n + !n);
    if (!own) abort();
    if (n) memcpy(own, data, n);
    tp_handlers[id](o->peer, ctx, 0, own, n);
    free(own);
    if (o == &mad) count->messages++;
}

/* By the connection: for calls that wait. */
static void write_frame(struct other *o, unsigned id, uint64_t ctx, const void *data, size_t n)
{
    struct tcp_frame f = {htole32((uint32_t)n), (uint8_t)id, 0, htole16(o->number++), htole64(ctx), 0};
    if (n % 8 || send(o->fd, &f, sizeof f, 0) != sizeof f || send(o->fd, data, n, 0) != (ssize_t)n) abort();
}

/* ---- windows ---- */

static void attach(uint8_t *at, int64_t n)
{
    if (win_attach(w, at, n)) abort();
    model.piece[model.pieces++] = (struct model_piece){at, n};
}

/* Pieces that touch, and such as do not. */
static void attach_pieces(void)
{
    model.dynamic = true;
    if (kind == DYNAMIC_EMPTY) return;
    attach(memory + 1003, 2000);
    attach(memory + 3003, 4093);
    attach(memory + 7096, 1);
    attach(memory + 8192, 70000);
}

/* It is made by this process alone, and then is one of all: only one of them is there. */
/* The answer to WIN_KEY: as in serve.c, but that the memory is registered before it is asked for. And what is fetched comes by
 * records. */
static void say_key(int64_t bytes)
{
    struct win_key *k = &model.key;
    w->moves_from = INT64_MAX;
    k->unit = model.unit;
    if (kind >= DYNAMIC || !bytes) return;
    if (!w->shown.mem && remote_reg(w->base, (size_t)bytes, REMOTE_READ | REMOTE_WRITE | REMOTE_ATOMIC, &w->shown.mem)) abort();
    k->key_bytes = (uint32_t)remote_key_pack(w->shown.mem, k->key, sizeof k->key);
}

static void open_window(void)
{
    void *base = kind == EMPTY ? NULL : memory + 1024;
    int64_t bytes = kind == EMPTY ? 0 : 70001, unit = kind == CREATED_BY_UNITS ? 24 : 1;
    int rc = 0;
    fuzz_bytes(memory, sizeof memory);
    memset(memory, GUARD_BYTE, 1000);
    memset(memory + 79000, GUARD_BYTE, 1000);
    if (kind >= DYNAMIC) rc = win_dynamic(comm_self(), NULL, &w);
    else if (kind == ALLOCATED) rc = win_allocate(comm_self(), bytes, unit, NULL, &base, &w);
    else rc = win_create(comm_self(), base, bytes, unit, NULL, &w);
    if (rc) abort();
    w->near.alone = false; /* as if there were neighbours, who hold the accumulate lock now and then (take_a_lock) */
    if (kind == ALLOCATED) fuzz_bytes(base, (size_t)bytes);
    model_open(&model, kind == ALLOCATED ? base : memory, kind == ALLOCATED ? (size_t)bytes : ROOM);
    model.unit = unit;
    if (kind >= DYNAMIC) attach_pieces();
    else model.piece[model.pieces++] = (struct model_piece){base, bytes};
    say_key(bytes);
    world->win = w;
    w->comm->win = NULL;
}

/* In two steps, between which the mad one comes back. */
static struct comm *own_comm;
static void let_all_in(void)
{
    own_comm = w->comm;
    w->comm = world;
}

/* What was sent to the honest one is complete. */
static void flush_honest(void)
{
    static const struct win_answer flushed = {.kind = WIN_FLUSH};
    if (!honest.asked.n) return;
    write_frame(&honest, AM_RMA_ANSWERS, world->ctx, &flushed, sizeof flushed);
    FUZZ_RULE(!far_flush(win_target(w, HONEST)), "what was sent to an honest peer is flushed");
    turn();
    honest.asked.n = 0;
}

static void close_window(void)
{
    flush_honest();
    w->comm = own_comm;
    own_comm->win = w;
    world->win = NULL;
    win_free(w);
    model_close(&model);
}

/* ---- records ---- */

static const MPI_Datatype types[] = {MPI_BYTE, MPI_INT8_T, MPI_INT16_T, MPI_INT32_T, MPI_INT64_T, MPI_FLOAT, MPI_DOUBLE, MPI_LONG_DOUBLE,
                                     MPI_C_FLOAT_COMPLEX, MPI_C_DOUBLE_COMPLEX, MPI_DOUBLE_INT, MPI_SHORT_INT, MPI_LONG_DOUBLE_INT,
                                     MPI_2INT, MPI_C_BOOL, MPI_AINT, MPI_CHAR};

static struct model_bytes batch;
static bool calm; /* it is for an honest one: only what can be */

static bool strange(uint64_t n) { return !calm && odd(n); }

static int64_t some_number(void)
{
    static const int64_t numbers[] = {0, 1, -1, 7, 8, 65535, 65536, 65537, 70000, 70001, 70002, INT32_MAX, INT64_MAX, INT64_MAX - 7, INT64_MIN,
                                      INT64_MAX / 24, INT64_MAX / 24 + 1, INT64_MIN / 24, (int64_t)1 << 62, (int64_t)1 << 60};
    return odd(4) ? (int64_t)fuzz_random() : numbers[fuzz_below(ARRAY_LEN(numbers))];
}

/* Bytes of a run: few, mostly. */
static int64_t some_bytes(void) { return odd(200) ? (int64_t)WIN_PIECE : odd(20) ? (int64_t)fuzz_below(20000) : (int64_t)fuzz_below(100); }

/* A place in the window where n bytes are, if there are so many: in units and bytes. */
static void some_place(int64_t n, int64_t align, int64_t *displacement, int64_t *offset)
{
    const struct model_piece *p = model.pieces ? &model.piece[odd(3) ? fuzz_below((uint64_t)model.pieces) : (uint64_t)model.pieces - 1] : NULL;
    int64_t room = p && p->bytes > n ? p->bytes - n : 0, at = (int64_t)fuzz_below((uint64_t)room + 1);
    if (odd(30)) at = room + (int64_t)fuzz_below(3) - 1;
    else if (p && odd(10)) at = p->bytes - (int64_t)fuzz_below((uint64_t)min_int64(n, 40) + 1); /* goes on in the next piece, if there is one */
    if (p && !odd(4)) at -= (int64_t)(((uintptr_t)p->at + (uintptr_t)at) % (uintptr_t)align);
    if (at < 0) at = 0;
    if (p && model.dynamic) at += (int64_t)(uintptr_t)p->at;
    *offset = odd(2) ? at : (int64_t)fuzz_below(100);
    *displacement = (at - *offset) / model.unit;
    *offset = at - *displacement * model.unit;
}

/* Runs that the target was told to keep, as far as the sender knows. */
static struct {
    uint16_t runs;
    int64_t count;
} told[2][OUTLINES]; /* by `calm` */

/* Names runs that the target has, perhaps. */
static bool add_known(struct win_record *r)
{
    uint16_t number = (uint16_t)fuzz_below(strange(50) ? OUTLINES + 2 : OUTLINES);
    if (number >= OUTLINES || (!told[calm][number].runs && !strange(20))) return false;
    r->outline = OUTLINE_KNOWN | number;
    r->runs = told[calm][number].runs;
    r->count = told[calm][number].count;
    return true;
}

static void add_runs(struct win_record *r)
{
    int64_t first = r->offset;
    if (odd(4) && add_known(r)) return;
    r->runs = (uint16_t)(1 + fuzz_below(odd(20) ? 200 : 5));
    for (uint32_t i = 0; i < r->runs; i++) {
        struct win_run run = {first + (int64_t)fuzz_below(200) * (odd(3) ? 1 : 16), (int64_t)fuzz_below(6)};
        if (strange(200)) run.count = some_number();
        if (strange(200)) run.offset = some_number();
        r->count = (int64_t)((uint64_t)r->count + (uint64_t)run.count);
        model_append(&batch, &run, sizeof run);
    }
    r->bytes = r->runs * sizeof(struct win_run);
    if (odd(2)) return;
    uint16_t number = (uint16_t)fuzz_below(strange(100) ? OUTLINES + 2 : OUTLINES);
    r->outline = OUTLINE_NEW | number;
    if (number >= OUTLINES) return;
    told[calm][number].runs = r->runs;
    told[calm][number].count = r->count;
}

/* How many elements the runs in the batch name, if they can be. */
static int64_t elements_of(const struct win_record *r, int64_t each)
{
    if (r->count < 0 || r->count > (int64_t)WIN_PIECE) return 0;
    return r->count * each;
}

static void add_data(struct win_record *r, int64_t n)
{
    static uint8_t data[32 * WIN_PIECE];
    if (n < 0 || n > (int64_t)sizeof data) n = 0;
    if (odd(2)) fuzz_bytes(data, (size_t)n);
    else if (n) memset(data, (int)fuzz_below(3), (size_t)n);
    model_append(&batch, data, (size_t)n);
    r->bytes += (uint64_t)n;
}

static bool is_valid_op(const struct win_record *r, const struct type *t)
{
    const struct op *op = op_name_of(r->op) ? op_by_index(r->op) : NULL;
    return op && op_valid(op, t);
}

static void add_elements(struct win_record *r)
{
    const struct type *t = type_of(types[fuzz_below(ARRAY_LEN(types))]);
    bool swap = r->kind == WIN_COMPARE_AND_SWAP;
    while (swap && !strange(20) && !apply_can_compare(t)) t = type_of(types[fuzz_below(ARRAY_LEN(types))]);
    r->type = (uint16_t)(uintptr_t)t->self;
    r->op = (uint8_t)fuzz_below(OP_USER);
    while (!swap && !strange(50) && !is_valid_op(r, t)) r->op = (uint8_t)fuzz_below(OP_USER);
    r->count = swap ? 1 : some_bytes() / t->extent;
    some_place(r->count * t->extent, t->extent, &r->displacement, &r->offset);
    if (!swap && odd(4)) r->count = 0, add_runs(r);
    add_data(r, swap ? 2 * t->size : r->op == OP_NO_OP ? 0 : elements_of(r, t->extent));
}

static void add_bytes(struct win_record *r)
{
    r->count = some_bytes();
    some_place(r->count, 8, &r->displacement, &r->offset);
    if (odd(4)) r->count = 0, add_runs(r);
    if (r->kind == WIN_PUT) add_data(r, elements_of(r, 1));
}

static void spoil_record(struct win_record *r)
{
    switch (fuzz_below(10)) {
    case 0: r->kind = (uint8_t)fuzz_below(odd(2) ? 256 : WIN_RECORD_KINDS + 1); break;
    case 1: r->op = (uint8_t)fuzz_below(odd(2) ? 256 : OP_USER + 2); break;
    case 2: r->type = (uint16_t)fuzz_random(); break;
    case 3: r->runs = (uint16_t)(odd(2) ? fuzz_random() : r->runs + fuzz_below(3) - 1); break;
    case 9: r->outline = (uint16_t)fuzz_random(); break;
    case 4: r->displacement = some_number(); break;
    case 5: r->offset = some_number(); break;
    case 6: r->count = odd(2) ? some_number() : r->count + (int64_t)fuzz_below(3) - 1; break;
    case 7: r->bytes = odd(2) ? (uint64_t)some_number() : r->bytes + fuzz_below(17) - 8; break;
    default: fuzz_mutate((uint8_t *)r, sizeof *r);
    }
}

/* One that an origin may say now, mostly. *holds: a lock; or it will, when it has said this. */
static enum win_record_kind some_kind(bool *holds)
{
    static const enum win_record_kind kinds[] = {WIN_PUT, WIN_PUT, WIN_GET, WIN_ACCUMULATE, WIN_ACCUMULATE, WIN_GET_ACCUMULATE,
                                                 WIN_COMPARE_AND_SWAP, WIN_FLUSH, WIN_LOCK, WIN_UNLOCK, WIN_KEY, WIN_POST, WIN_COMPLETE};
    for (;;) {
        enum win_record_kind k = kinds[fuzz_below(ARRAY_LEN(kinds) - 2 * calm)];
        bool fits = k == WIN_LOCK ? !*holds : k == WIN_UNLOCK ? *holds : true;
        if (!fits && !strange(40)) continue;
        *holds = k == WIN_LOCK || (*holds && k != WIN_UNLOCK);
        return k;
    }
}

static void add_record(enum win_record_kind k, bool spoilt)
{
    static const uint8_t zero[8];
    struct win_record r = {.kind = (uint8_t)k};
    size_t at = batch.n;
    model_append(&batch, &r, sizeof r);
    if (k == WIN_PUT || k == WIN_GET) add_bytes(&r);
    else if (k < WIN_LOCK) add_elements(&r);
    else if (k == WIN_LOCK) r.op = (uint8_t)fuzz_below(2);
    if (k == WIN_LOCK && strange(20)) r.displacement = (int64_t)fuzz_below(5); /* so many operations are announced */
    if (spoilt) spoil_record(&r);
    memcpy(batch.at + at, &r, sizeof r);
    model_append(&batch, zero, round_up(batch.n, 8) - batch.n);
    count->records++;
}

/* Some records, of which the last is one that ends all, perhaps. */
static void make_batch(const struct model_origin *o)
{
    calm = o == &honest.as_origin;
    bool spoilt = strange(6), holds = o->holds;
    batch.n = 0;
    for (uint64_t n = 1 + fuzz_below(odd(8) ? 40 : 4); n; n--) add_record(some_kind(&holds), spoilt && n == 1);
    if (!strange(12)) return;
    if (odd(2)) fuzz_mutate(batch.at, batch.n);
    else batch.n = fuzz_below(batch.n);
}

/* ---- what came of it ---- */

static void compare_answers(struct other *o)
{
    struct model_bytes *should = &o->as_origin.answers, *are = &o->answers;
    for (int i = 0; i < 200 && are->n < should->n; i++) turn();
    FUZZ_RULE(are->n == should->n, "all that asks is answered, and nothing else is");
    FUZZ_RULE(are->n != should->n || !are->n || !memcmp(are->at, should->at, are->n), "answers are those of the model");
    count->answers += are->n > 0;
    are->n = should->n = 0;
}

static bool has_words(const struct peer *p) { return p->lost && strstr(p->lost, "cannot be"); }

static void compare(void)
{
    const struct win_target *t = win_target_known(w, MAD);
    const uint8_t *differs = model_differs(&model);
    FUZZ_RULE(!differs, "memory is that of the model");
    FUZZ_RULE(!mad.as_origin.impossible == !mad.peer->lost, "what cannot be ends its sender, and nothing else does");
    FUZZ_RULE(!mad.peer->lost || has_words(mad.peer), "a sender is given up with words");
    FUZZ_RULE(!honest.peer->lost, "only its sender is given up");
    if (honest.peer->lost) printf("# %s\n", honest.peer->lost);
    compare_answers(&honest);
    if (mad.peer->lost) return;
    compare_answers(&mad);
    FUZZ_RULE(!t || t->posts == mad.as_origin.posts, "posts are counted");
    FUZZ_RULE(!t || t->completes == mad.as_origin.completes, "completes are counted");
}

/* ---- locks of others ---- */

static enum { NO_LOCK, OWN_LOCK, ACCUMULATE_LOCK } held;
static enum win_lock_mode held_mode;

static void take_a_lock(void)
{
    if (held || mad.as_origin.holds || model_waits(&mad.as_origin) || honest.as_origin.holds) return;
    if (odd(2)) {
        if (near_take(win_target(w, 0), 1, WIN_LOCK_EXCLUSIVE)) abort();
        held = ACCUMULATE_LOCK;
        model.accumulate_held = true;
        model.stopped = odd(2);
        atomic_store_explicit(&w->near.exposure->stopped, model.stopped, memory_order_relaxed);
        return;
    }
    held_mode = (enum win_lock_mode)fuzz_below(2);
    if (win_lock(w, 0, held_mode, 0)) abort();
    held = OWN_LOCK;
    model.held[held_mode] = 1;
}

static void give_the_lock(void)
{
    if (held == OWN_LOCK) FUZZ_RULE(!win_unlock(w, 0), "the lock of this process is given back");
    atomics_go_on(w->near.exposure);
    if (held == ACCUMULATE_LOCK) near_give(win_target(w, 0), 1, WIN_LOCK_EXCLUSIVE);
    held = NO_LOCK;
    model.held[0] = model.held[1] = 0;
    model.accumulate_held = model.stopped = false;
    model_go_on(&mad.as_origin);
    model_go_on(&honest.as_origin);
    for (int i = 0; i < 4; i++) turn();
}

/* ---- epochs of MPI_Win_post, for both ---- */

static struct group *both;
static bool exposed;

static void expose(void)
{
    if (exposed || !odd(3)) return;
    FUZZ_RULE(!win_post(w, both, 0), "an exposure epoch begins");
    exposed = true;
}

/* It is over when both have completed, or one is lost. */
static void test_exposure(void)
{
    bool over = false, complete = mad.as_origin.completes > 0 && honest.as_origin.completes > 0;
    if (!exposed) return;
    int rc = win_test(w, &over);
    FUZZ_RULE(over == (complete || mad.peer->lost) && rc == (over && !complete ? TERN_ERR_PEER : 0), "an exposure epoch ends with each of its origins");
    if (!over) return;
    mad.as_origin.completes--;
    honest.as_origin.completes--;
    exposed = false;
}

/* So often that they cannot be counted. */
static void say_often(void)
{
    struct win_target *t = win_target(w, MAD);
    t->posts = INT32_MAX - 3;
    t->completes = INT32_MAX - 3;
    mad.as_origin.posts = mad.as_origin.completes = INT32_MAX - 3;
}

/* ---- this process as an origin ---- */

enum { FETCHES = 3 };
static struct fetch {
    struct request *r; /* NULL: none */
    uint8_t *mem;      /* GUARD bytes, `room`, GUARD bytes */
    size_t room;
} fetch[FETCHES];
enum { GUARD = 64 };

/* The answers that this process is to get: of what it has asked. */
static struct {
    struct expected {
        uint32_t kind;
        uint64_t bytes;
    } of[1000];
    int n, first;
} expected;

static void expect_asked(void)
{
    size_t at = 0;
    for (struct win_record r; mad.asked.n - at >= sizeof r; at += sizeof r + round_up((size_t)r.bytes, 8)) {
        memcpy(&r, mad.asked.at + at, sizeof r);
        int64_t each = r.type ? type_of((MPI_Datatype)(uintptr_t)r.type)->extent : 1;
        bool fetches = r.kind == WIN_GET || r.kind == WIN_GET_ACCUMULATE || r.kind == WIN_COMPARE_AND_SWAP;
        if (!fetches && r.kind != WIN_FLUSH && r.kind != WIN_UNLOCK) continue;
        if (expected.n == (int)ARRAY_LEN(expected.of)) abort();
        expected.of[expected.n++] = (struct expected){r.kind, fetches ? (uint64_t)(r.count * each) : 0};
    }
    mad.asked.n = 0;
}

static void start_fetch(struct fetch *f)
{
    static const int64_t data[3];
    struct win_op a = {.kind = odd(2) ? WIN_GET : WIN_GET_ACCUMULATE, .rank = MAD, .displacement = some_number(), .origin = data};
    struct type *t = a.kind == WIN_GET ? type_of(MPI_BYTE) : type_of(MPI_DOUBLE_INT);
    int64_t most = odd(8) ? RESULT / t->extent : 50;
    a.tcount = a.rcount = 1 + (int64_t)fuzz_below((uint64_t)most);
    a.ttype = a.rtype = a.otype = t;
    if (a.kind == WIN_GET_ACCUMULATE) a.basic = t, a.op = op_of(MPI_NO_OP);
    f->room = (size_t)(a.rcount * t->extent);
    f->mem = malloc(f->room + 2 * GUARD);
    if (!f->mem) abort();
    memset(f->mem, GUARD_BYTE, f->room + 2 * GUARD);
    a.result = f->mem + GUARD;
    FUZZ_RULE(!win_access(w, &a, &f->r), "an operation starts");
    count->fetched++;
}

static void check_fetch(struct fetch *f)
{
    static uint8_t guard[GUARD];
    memset(guard, GUARD_BYTE, GUARD);
    FUZZ_RULE(!memcmp(f->mem, guard, GUARD) && !memcmp(f->mem + GUARD + f->room, guard, GUARD), "memory beside a result is left alone");
    if (!request_is_complete(f->r)) return;
    count->good += !f->r->result.error;
    pt_release(f->r);
    free(f->mem);
    *f = (struct fetch){0};
}

static void check_fetches(void)
{
    for (int i = 0; i < FETCHES; i++)
        if (fetch[i].r) check_fetch(&fetch[i]);
}

static void begin_epoch(void)
{
    FUZZ_RULE(!win_lock(w, MAD, WIN_LOCK_SHARED, 0), "a lock is put off");
    expected.n = expected.first = 0;
}

static void start_some(void)
{
    for (int i = 0; i < FETCHES; i++)
        if (!fetch[i].r && odd(3)) start_fetch(&fetch[i]);
    for (int i = 0; i < 3; i++) turn();
    expect_asked();
}

static void add_answer(const struct expected *e, bool spoilt)
{
    static uint8_t data[WIN_PIECE + 8];
    struct win_answer a = {.kind = e->kind, .bytes = e->bytes};
    if (odd(6)) a.code = odd(4) ? TERN_ERR_OP : TERN_ERR_WIN_RANGE, a.bytes = 0, a.offset = some_number(), a.there = fuzz_random();
    uint64_t has = a.bytes;
    if (spoilt)
        switch (fuzz_below(6)) {
        case 0: a.kind = (uint32_t)fuzz_below(WIN_RECORD_KINDS + 1); break;
        case 1: a.code = (int32_t)fuzz_random(); break;
        case 2: a.code = a.code ? 0 : TERN_ERR_WIN_RANGE; break;
        case 3: a.bytes = odd(2) ? (uint64_t)some_number() : a.bytes + fuzz_below(17) - 8; break;
        case 4: has = fuzz_below(has + 1); break;
        default: fuzz_mutate((uint8_t *)&a, sizeof a);
        }
    fuzz_bytes(data, min_size(has, 64));
    model_append(&batch, &a, sizeof a);
    model_append(&batch, data, round_up((size_t)has, 8));
}

/* Is there an answer among them that was not asked for? Those before it are taken. */
static bool is_wrong(void)
{
    for (size_t at = 0; at < batch.n;) {
        struct win_answer a;
        if (batch.n - at < sizeof a || expected.first == expected.n) return true;
        const struct expected *e = &expected.of[expected.first++];
        memcpy(&a, batch.at + at, sizeof a);
        if (a.kind != e->kind || (a.code && a.code != TERN_ERR_WIN_RANGE && a.code != TERN_ERR_OP && a.code != TERN_ERR_PEER)) return true;
        if (a.bytes != (a.code ? 0 : e->bytes) || a.bytes > batch.n - at - sizeof a) return true;
        at += min_size(batch.n - at, sizeof a + round_up((size_t)a.bytes, 8));
    }
    return false;
}

static void answer_some(void)
{
    int n = (int)fuzz_below(4), there = expected.n - expected.first;
    bool spoilt = odd(10);
    static const struct expected wrong[] = {{WIN_FLUSH, 0}, {WIN_GET, 8}, {WIN_UNLOCK, 0}};
    batch.n = 0;
    if (n > there) n = there;
    for (int i = 0; i < n; i++) add_answer(&expected.of[expected.first + i], spoilt && i == n - 1);
    if (odd(60)) add_answer(&wrong[fuzz_below(ARRAY_LEN(wrong))], false);
    if (odd(60) && batch.n) batch.n = fuzz_below(batch.n);
    if (!batch.n) return;
    bool is = is_wrong();
    say(&mad, AM_RMA_ANSWERS, world->ctx, batch.at, batch.n);
    FUZZ_RULE(!is == !mad.peer->lost, "an answer that was not asked for ends its sender, and nothing else does");
    FUZZ_RULE(!is || has_words(mad.peer), "a sender is given up with words");
    mad.as_origin.impossible |= is;
    check_fetches();
}

/* ---- the life of the mad one ---- */

/* Messages that belong to no window that it is in. */
static void say_elsewhere(void)
{
    struct comm *c = odd(2) ? comm_self() : lonely->comm;
    batch.n = 0;
    add_record(WIN_FLUSH, false);
    say(&mad, odd(2) ? AM_RMA_OPS : AM_RMA_ANSWERS, c->ctx, batch.at, batch.n);
    FUZZ_RULE(has_words(mad.peer), "who sends to a window that it is not in is given up");
    mad.as_origin.impossible = true;
}

static void say_operations(void)
{
    if (model_is_full(&mad.as_origin)) return;
    make_batch(&mad.as_origin);
    model_say(&mad.as_origin, batch.at, batch.n);
    say(&mad, AM_RMA_OPS, world->ctx | (uint64_t)odd(50), batch.at, batch.n);
    count->refused += mad.as_origin.refused.code != 0;
    count->waited += model_waits(&mad.as_origin);
}

/* It is as if the mad one were not there; but while both want the same lock. */
static void be_honest(void)
{
    if (held || model_waits(&mad.as_origin) || mad.as_origin.holds) return;
    make_batch(&honest.as_origin);
    if (exposed && honest.as_origin.completes < 1 && odd(2)) add_record(WIN_COMPLETE, false);
    model_say(&honest.as_origin, batch.at, batch.n);
    say(&honest, AM_RMA_OPS, world->ctx, batch.at, batch.n);
}

static void end_honest(void)
{
    calm = true;
    batch.n = 0;
    if (honest.as_origin.completes < 0) add_record(WIN_COMPLETE, false); /* of the epoch that failed */
    if (honest.as_origin.holds) add_record(WIN_UNLOCK, false);
    for (enum win_record_kind k = WIN_PUT; k <= WIN_COMPARE_AND_SWAP; k++) add_record(k, false);
    add_record(WIN_FLUSH, false);
    model_say(&honest.as_origin, batch.at, batch.n);
    say(&honest, AM_RMA_OPS, world->ctx, batch.at, batch.n);
    compare_answers(&honest);
    FUZZ_RULE(!model_differs(&model), "an honest peer is served behind one that is not");
    FUZZ_RULE(!honest.peer->lost, "and is not given up");
}

static void forgive(void)
{
    pt_lost_close();
    losses.count = 0;
    world->pt->lost = NULL;
    world->pt->gone = 0;
    mad.peer->credit = mad.peer->quota_there;
    mad.peer->due = mad.peer->quota / 2;
    tcp_ep_forget(mad.ep);
    mad.sent.n = mad.asked.n = mad.answers.n = 0;
}

/* All that it had, and all that waits for it, ends. */
static void end_mad(void)
{
    const struct win_exposure *x = w->near.exposure;
    close(mad.fd);
    mad.fd = -1;
    for (int i = 0; i < 1000 && !mad.peer->lost; i++) lane_progress(lanes_first());
    FUZZ_RULE(mad.peer->lost && *mad.peer->lost, "a connection ends with its peer");
    for (int i = 0; i < 3; i++) lane_progress(lanes_first());
    count->lost++;
    check_fetches();
    for (int i = 0; i < FETCHES; i++) FUZZ_RULE(!fetch[i].r, "the loss of a peer ends all that is with it");
    FUZZ_RULE(win_unlock(w, MAD) == TERN_ERR_PEER, "an epoch to a peer that is lost fails");
    test_exposure();
    model_origin_close(&mad.as_origin);
    give_the_lock();
    FUZZ_RULE(!model_differs(&model), "memory is that of the model");
    end_honest();
    FUZZ_RULE(win_target_known(w, HONEST)->completes == honest.as_origin.completes, "completes are counted");
    FUZZ_RULE(!atomic_load_explicit(&x->lock.word, memory_order_relaxed) && !atomic_load_explicit(&x->accumulate.word, memory_order_relaxed),
              "locks are given back");
}

static void live(void)
{
    kind = (enum kind)fuzz_below(KINDS);
    open_window();
    let_all_in();
    connect_to(&mad);
    model_origin_open(&model, 0, &mad.as_origin);
    model_origin_open(&model, 1, &honest.as_origin);
    begin_epoch();
    memset(told, 0, sizeof told);
    exposed = false;
    for (int i = 0, life = 1 + (int)fuzz_below(LIFE); i < life && !mad.as_origin.impossible && fuzz_ok(); i++) {
        if (odd(4)) take_a_lock();
        if (odd(4)) be_honest();
        if (odd(4)) start_some();
        if (odd(8)) expose();
        if (odd(8)) test_exposure();
        if (odd(500)) say_often();
        if (odd(200)) say_elsewhere();
        else if (odd(4)) answer_some();
        else say_operations();
        if (odd(4)) give_the_lock();
        compare();
    }
    if (fuzz_ok()) end_mad();
    if (!fuzz_ok()) return;
    model_origin_close(&honest.as_origin);
    close_window();
    forgive();
}

/* ---- the job ---- */

static bool open_layers(void)
{
    fuzz_job(RANKS);
    if (var_open() || proc_open()) return false;
    errh_open();
    group_open(0);
    if (request_open() || type_open() || op_open() || coll_choose_open() || pt_register() || rma_register() || peers_open() ||
        pt_open(false) || coll_open() || comm_open(0) || comm_world_open(RANKS) || rma_open())
        return false;
    world = comm_world();
    if (tcp_dom.epoll < 0) return false;
    mad.peer = peer_of_sender(MAD);
    honest.peer = peer_of_sender(HONEST);
    struct group *all = group_new(rankmap_ref(world->map));
    if (!all || group_incl(all, 2, (const int[]){MAD, HONEST}, &both)) return false;
    group_unref(all);
    return mad.peer && honest.peer && !win_create(comm_self(), memory, 100, 1, NULL, &lonely);
}

static void close_layers(void)
{
    win_free(lonely);
    group_unref(both);
    rma_close();
    comm_close();
    coll_close();
    pt_close();
    peers_close();
    rma_unregister();
    coll_choose_close();
    op_close();
    type_close();
    request_close();
    group_close();
    proc_close();
    var_close();
    handle_close();
}

static void free_bytes(struct other *o)
{
    free(o->sent.at);
    free(o->asked.at);
    free(o->answers.at);
}

static bool play(void)
{
    if (!open_layers()) {
        printf("# %s\n", err_words());
        return false;
    }
    connect_to(&honest);
    uint64_t first = count->messages;
    while (count->messages - first < MESSAGES && fuzz_ok()) live();
    if (!fuzz_ok()) return false;
    close(honest.fd);
    free_bytes(&mad);
    free_bytes(&honest);
    free(batch.at);
    close_layers();
    return true;
}

static void job(void) { fuzz_fork(play, "rank 0 lives on"); }

static void reached(void)
{
    printf("# %llu messages, %llu records; %llu losses, %llu messages behind a refusal, %llu that waited; %llu batches of answers, %llu fetches, %llu "
           "of them good\n",
           (unsigned long long)count->messages, (unsigned long long)count->records, (unsigned long long)count->lost,
           (unsigned long long)count->refused, (unsigned long long)count->waited, (unsigned long long)count->answers,
           (unsigned long long)count->fetched, (unsigned long long)count->good);
    FUZZ_RULE(count->lost > count->messages / 100 && count->refused > count->messages / 100 && count->waited > count->messages / 200 &&
                  count->answers > count->messages / 20 && count->good > count->messages / 200,
              "messages get to where they are judged");
}

int main(void)
{
    static const struct fuzz_part parts[] = {
        {"a process of a window that sends what it likes harms itself only", job, MESSAGES},
        {"its messages are taken and judged", reached, UINT_MAX},
    };
    count = mmap(NULL, sizeof *count, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (count == MAP_FAILED) abort();
    setvbuf(stdout, NULL, _IOLBF, 0);
    return fuzz_main(parts, 2, 50 * MESSAGES);
}
