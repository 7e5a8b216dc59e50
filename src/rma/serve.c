/* serve.c - see serve.h. */
#include "rma/serve.h"
#include "base/err.h"
#include "pt2pt/api.h"
#include "pt2pt/background.h"
#include "pt2pt/lane.h"
#include "pt2pt/lost.h"
#include "rma/apply.h"
#include "rma/atomics.h"
#include "rma/checking.h"
#include "rma/landing.h"
#include "rma/outline.h"
#include "rma/wire.h"

#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#define KEPT_MOST ((size_t)16 << 20)     /* bytes that are kept of an origin: what one has under way at most, and much more */
#define ANSWERS_MOST ((size_t)256 << 10) /* bytes of answers in one message, but for one that is longer */

/* Part of a batch that waits for a lock, or comes behind such a part. */
struct kept {
    struct link link;
    size_t n, done;
    char data[];
};

/* The two locks of an exposure, and the copy engine. Origins that wait for one do not wait for those that wait for another. */
enum waits_for { THE_LOCK, THE_ACCUMULATE_LOCK, ITS_COPIES, WAITS_FOR };

/* What an origin has under way here. */
struct win_served {
    struct win_target *t;
    struct link in_waiting; /* in win_serve.waiting, while its first record waits for a lock */
    struct link kept;       /* struct kept */
    size_t kept_bytes;
    bool waits;
    enum waits_for waits_for;
    uint8_t holds;          /* 0, or 1 + enum win_lock_mode */
    copy_cookie landing;    /* of the last of its data that a copy engine has (landing.h) */
    struct landing batch;   /* the one that is done now */
    bool counts;            /* the lock request has said how many operations follow: */
    int64_t announced;      /* so many have not come yet */
    struct outlines outlines; /* runs that it has sent */
    struct win_answer refused; /* the first operation since the last unlock or flush that was; code 0: none */
    char *answers;
    size_t n, room;
};

struct win_serve {
    struct step step;     /* on while an origin waits for a lock */
    struct win *win;
    struct link waiting[WAITS_FOR]; /* by enum waits_for: struct win_served, in the order of their requests */
    struct win_target *own; /* this process as a target */
    struct win_locking lock, accumulate; /* its locks, in the seat of the target */
    _Atomic uint64_t *busy; /* and the busy word of that seat */
    uint64_t unstopped;   /* atomics_are_many, of far origins */
    int32_t shared;       /* origins that hold the lock shared, by the one hold of the seat */
    bool exclusive;       /* an origin holds it exclusively */
    uint8_t requested;    /* 0, or 1 + enum win_lock_mode: the seat is queued */
    bool accumulate_requested;
};

static struct win_serve *serve_of(struct win *);

/* ---- answers ---- */

static void send_answers(struct win_served *s)
{
    if (s->n && !s->t->peer->lost) pt_message_in(s->t->win->comm, s->t->rank, AM_RMA_ANSWERS, s->answers, s->n);
    s->n = 0;
}

/* Many small operations may have long answers. */
static char *answer_room(struct win_served *s, size_t n)
{
    if (s->n + n > ANSWERS_MOST) send_answers(s);
    if (s->n + n > s->room) {
        size_t room = 2 * (s->n + n);
        char *b = realloc(s->answers, room);
        if (!b) lane_fatal("no memory to answer an operation on a window");
        s->answers = b;
        s->room = room;
    }
    char *at = s->answers + s->n;
    s->n += n;
    memset(at + n - 8, 0, 8); /* padding, perhaps */
    return at;
}

/* Room for the data of the answer. */
static char *answer(struct win_served *s, struct win_answer a)
{
    char *at = answer_room(s, sizeof a + WIN_PADDED(a.bytes));
    memcpy(at, &a, sizeof a);
    return at + sizeof a;
}

/* ---- places ---- */

static char *refuse(struct win_served *s, int64_t at, int64_t n)
{
    const struct win *w = s->t->win;
    struct win_answer range = {.code = TERN_ERR_WIN_RANGE, .offset = at, .count = n, .there = (uint64_t)w->bytes};
    struct win_answer gone = {.code = TERN_ERR_PEER, .offset = w->because_of};
    if (!s->refused.code) s->refused = w->given_up ? gone : range;
    return NULL;
}

/* Are n bytes attached, in one piece or in several that touch? */
static bool all_attached(const struct win *w, int64_t at, int64_t n)
{
    do {
        const struct win_memory *m = memory_of_own(w, (uint64_t)at, 1);
        if (!m) return false;
        int64_t rest = (int64_t)(m->address + m->bytes) - at;
        at += rest;
        n -= rest;
    } while (n > 0);
    return true;
}

/* Where n bytes lie that a record names; NULL: not within the memory, which is noted. */
static char *place(struct win_served *s, const struct win_record *r, int64_t offset, int64_t n)
{
    const struct win *w = s->t->win;
    int64_t at, end;
    if (n < 0 || __builtin_mul_overflow(r->displacement, (int64_t)w->unit, &at) || __builtin_add_overflow(at, offset, &at) ||
        __builtin_add_overflow(at, n, &end))
        return refuse(s, INT64_MAX, n);
    bool dynamic = w->flavor == MPI_WIN_FLAVOR_DYNAMIC, inside = at >= 0 && end <= (int64_t)w->bytes;
    if (w->given_up || !(dynamic ? all_attached(w, at, n) : inside)) return refuse(s, at, n);
    return dynamic ? (char *)(uintptr_t)at : (char *)w->base + at;
}

/* The part of a run that is changed in one way: `count` elements; where it lies, which the caller knows to be within the
 * memory. An element that lies in two pieces of attached memory is a part of its own. */
struct part {
    char *at;
    int64_t count;
    bool atomic; /* by atomic operations of the processor (apply.h) */
};

static struct part first_part(const struct win *w, const struct type *basic, char *at, int64_t count)
{
    if (w->flavor != MPI_WIN_FLAVOR_DYNAMIC)
        return (struct part){at, count, w->near.exposure->memory.common && apply_can_be_atomic(basic, at)};
    const struct win_memory *m = memory_of_own(w, (uint64_t)(uintptr_t)at, 1);
    int64_t whole = (int64_t)(m->address + m->bytes - (uint64_t)(uintptr_t)at) / basic->extent;
    if (!whole) return (struct part){at, 1, false};
    return (struct part){at, min_int64(whole, count), m->common && apply_can_be_atomic(basic, at)};
}

/* The runs of a record, one after the other. */
struct places {
    const struct win_record *r;
    const char *runs;
    uint32_t next;
};

static bool next_place(struct places *p, struct win_run *run)
{
    const struct win_record *r = p->r;
    if (p->next == (r->runs ? r->runs : 1)) return false;
    if (r->runs) memcpy(run, p->runs + p->next * sizeof *run, sizeof *run);
    else *run = (struct win_run){r->offset, r->count};
    p->next++;
    return true;
}

static const struct type *type_of_record(const struct win_record *r)
{
    const struct type *t = r->type ? type_of((MPI_Datatype)(uintptr_t)r->type) : NULL;
    return t && t->predefined && t->committed && t->size > 0 ? t : NULL;
}

/* All places of a record lie within the memory: none is touched unless they do. */
static bool all_inside(struct win_served *s, const struct win_record *r, const char *runs, int64_t each)
{
    struct places p = {r, runs, 0};
    struct win_run run;
    while (next_place(&p, &run))
        if (run.count > INT64_MAX / each || !place(s, r, run.offset, run.count * each)) return false;
    return true;
}

/* ---- operations ---- */

static void put(struct win_served *s, const struct win_record *r, const char *runs, const char *data)
{
    struct places p = {r, runs, 0};
    struct win_run run;
    while (next_place(&p, &run)) {
        char *to = place(s, r, run.offset, run.count);
        if (s->t->win->lands) landing_put(&s->batch, to, data, (size_t)run.count);
        else memcpy(to, data, (size_t)run.count);
        data += run.count;
    }
}

static void get(struct win_served *s, const struct win_record *r, const char *runs, char *to)
{
    struct places p = {r, runs, 0};
    struct win_run run;
    while (next_place(&p, &run)) {
        memcpy(to, place(s, r, run.offset, run.count), (size_t)run.count);
        to += run.count;
    }
}

static const struct op *op_of_record(const struct win_record *r)
{
    const char *name = op_name_of(r->op);
    return name ? op_by_index(r->op) : NULL;
}

/* alone: nobody else changes elements meanwhile. */
static void change(struct win_served *s, const struct win_record *r, const char *runs, const char *data, char *before, bool alone)
{
    const struct type *basic = type_of_record(r);
    const struct op *op = r->kind == WIN_COMPARE_AND_SWAP ? NULL : op_of_record(r);
    struct places p = {r, runs, 0};
    struct win_run run;
    while (next_place(&p, &run)) {
        char *at = place(s, r, run.offset, run.count * basic->extent);
        for (struct part part; run.count; at += part.count * basic->extent, run.count -= part.count) {
            part = first_part(s->t->win, basic, at, run.count);
            part.atomic &= !alone;
            if (!op) (part.atomic ? swap_atomic : swap_alone)(basic, at, data, data + basic->size, before);
            else (part.atomic ? apply_atomic : apply_alone)(op, basic, at, op->index == OP_NO_OP ? NULL : data, before, part.count);
            data += part.count * basic->extent;
            if (before) before += part.count * basic->extent;
        }
    }
}

/* Can all elements of the record be changed by atomic operations? */
static bool is_atomic(struct win_served *s, const struct win_record *r, const char *runs)
{
    const struct type *basic = type_of_record(r);
    struct places p = {r, runs, 0};
    struct win_run run;
    while (next_place(&p, &run)) {
        char *at = place(s, r, run.offset, run.count * basic->extent);
        for (struct part part; run.count; at += part.count * basic->extent, run.count -= part.count) {
            part = first_part(s->t->win, basic, at, run.count);
            if (!part.atomic) return false;
        }
    }
    return true;
}

/* ---- locks ---- */

static void stop_waiting(struct win_served *s)
{
    list_remove(&s->in_waiting);
    s->waits = false;
}

/* Returns false. */
static bool wait_for(struct win_serve *v, struct win_served *s, enum waits_for what)
{
    if (s->waits && s->waits_for == what) return false;
    stop_waiting(s);
    s->waits = true;
    s->waits_for = what;
    list_push(&v->waiting[what], &s->in_waiting);
    lane_step_on(v->win->comm->lane, &v->step);
    return false;
}

/* All that came in this batch so far is the engine's to copy from now on; false: the origin waits until it has done so. */
static bool has_landed(struct win_serve *v, struct win_served *s)
{
    if (likely(!s->landing && !s->batch.last)) return true;
    if (s->batch.last) s->landing = landing_end(&s->batch);
    if (!landing_is_over(s->landing)) return wait_for(v, s, ITS_COPIES);
    s->landing = 0;
    return true;
}

static bool is_first(const struct win_serve *v, const struct win_served *s, enum waits_for what)
{
    return list_empty(&v->waiting[what]) || v->waiting[what].next == &s->in_waiting;
}

static bool others_queue(const struct win_serve *v)
{
    return atomic_load_explicit(&v->lock.lock->word, memory_order_relaxed) & WIN_LOCK_QUEUED;
}

/* The seat gets the lock, or is queued for it. */
static bool seat_takes(struct win_serve *v, enum win_lock_mode mode)
{
    if (v->requested) {
        if (!win_lock_is_granted(&v->lock)) return false;
        win_lock_granted(&v->lock);
        v->requested = 0;
        return true;
    }
    if (win_lock_request(&v->lock, mode)) return true;
    v->requested = (uint8_t)(1 + mode);
    return false;
}

static bool may_take(struct win_serve *v, const struct win_served *s, enum win_lock_mode mode)
{
    if (!is_first(v, s, THE_LOCK) || v->exclusive) return false;
    if (v->shared) return mode == WIN_LOCK_SHARED && !others_queue(v);
    return seat_takes(v, mode);
}

/* The lock for an origin; false: it waits for it. */
static bool take_lock(struct win_serve *v, struct win_served *s, enum win_lock_mode mode)
{
    if (!may_take(v, s, mode)) return wait_for(v, s, THE_LOCK);
    if (mode == WIN_LOCK_SHARED) v->shared++;
    else v->exclusive = true;
    s->holds = (uint8_t)(1 + mode);
    return true;
}

static void give_lock(struct win_serve *v, struct win_served *s)
{
    if (!s->holds) return;
    if (s->holds == 1 + WIN_LOCK_EXCLUSIVE) {
        v->exclusive = false;
        win_lock_give_exclusive(&v->lock);
    } else if (!--v->shared) {
        win_lock_give_shared(&v->lock);
    }
    s->holds = 0;
}

static bool may_accumulate(struct win_serve *v, const struct win_served *s)
{
    if (!is_first(v, s, THE_ACCUMULATE_LOCK)) return false;
    if (!v->accumulate_requested) {
        v->accumulate_requested = !win_lock_request(&v->accumulate, WIN_LOCK_EXCLUSIVE);
        return !v->accumulate_requested;
    }
    if (!win_lock_is_granted(&v->accumulate)) return false;
    win_lock_granted(&v->accumulate);
    v->accumulate_requested = false;
    return true;
}

/* The accumulate lock, for one record; false: the origin waits for it. */
static bool take_accumulate(struct win_serve *v, struct win_served *s)
{
    if (s->holds == 1 + WIN_LOCK_EXCLUSIVE) return true;
    return may_accumulate(v, s) || wait_for(v, s, THE_ACCUMULATE_LOCK);
}

static void give_accumulate(struct win_serve *v, const struct win_served *s)
{
    if (s->holds != 1 + WIN_LOCK_EXCLUSIVE) win_lock_give_exclusive(&v->accumulate);
}

/* ---- records ---- */

enum outcome { DONE, WAITS, IMPOSSIBLE };

/* The bytes of data behind the runs that the record must have; -1: the record cannot be. */
static int64_t data_wanted(const struct win_record *r, int64_t elements)
{
    const struct type *basic = type_of_record(r);
    const struct op *op;
    switch (r->kind) {
    case WIN_PUT: return elements;
    case WIN_GET: return 0;
    case WIN_COMPARE_AND_SWAP: return basic && apply_can_compare(basic) && elements == 1 && !r->runs ? 2 * basic->size : -1;
    case WIN_ACCUMULATE:
    case WIN_GET_ACCUMULATE:
        op = op_of_record(r);
        if (!basic || !op || !op_valid(op, basic)) return -1;
        return op->index == OP_NO_OP ? 0 : elements * basic->extent;
    case WIN_NOTE: return r->runs || r->count ? -1 : (int64_t)sizeof(struct win_note);
    default: return r->runs || r->count ? -1 : 0;
    }
}

/* Of all runs; -1: they cannot be. */
static int64_t count_elements(const struct win_record *r, const char *runs)
{
    const struct type *basic = r->kind >= WIN_ACCUMULATE ? type_of_record(r) : NULL;
    int64_t each = basic ? basic->extent : 1, n = 0;
    struct places p = {r, runs, 0};
    struct win_run run;
    while (next_place(&p, &run)) {
        if (run.count < 0 || run.count > (int64_t)WIN_PIECE) return -1;
        n += run.count;
        if (n * each > (int64_t)WIN_PIECE) return -1;
    }
    return n;
}

/* Nobody else may change the memory now: no process reaches it but this one, which is here, or the origin has locked all out. */
static bool is_alone(const struct win_serve *v, const struct win_served *s)
{
    return v->win->near.alone || s->holds == 1 + WIN_LOCK_EXCLUSIVE;
}

/* So many elements that others' atomic operations are stopped for them (atomics.h), behind take_accumulate. */
static bool are_many(struct win_serve *v, uint64_t bytes)
{
    return v->win->near.stops && atomics_are_many(v->own->exposure, bytes, &v->unstopped);
}

static void stop_atomics(struct win_serve *v)
{
    atomics_stop(v->own->exposure, v->busy - v->accumulate.own, &v->accumulate);
    v->unstopped = 0;
}

static enum outcome do_change(struct win_serve *v, struct win_served *s, const struct win_record *r, const char *runs, const char *data)
{
    const struct type *basic = type_of_record(r);
    bool asked = s->waits && s->waits_for == THE_ACCUMULATE_LOCK; /* then it is taken, whatever has changed meanwhile */
    if (asked && !take_accumulate(v, s)) return WAITS;
    bool fetches = r->kind != WIN_ACCUMULATE, inside = all_inside(s, r, runs, basic->extent), alone = !asked && is_alone(v, s);
    uint64_t bytes = inside ? (uint64_t)(count_elements(r, runs) * basic->extent) : 0;
    bool stops = !alone && are_many(v, bytes), atomic = !alone && !stops && inside && is_atomic(s, r, runs);
    bool entered = !asked && atomic && atomics_enter(v->own->exposure, v->busy);
    bool locked = asked || (inside && !entered && !alone);
    if (locked && !asked && !take_accumulate(v, s)) return WAITS;
    if (stops) stop_atomics(v);
    struct win_answer a = {.kind = r->kind, .bytes = bytes};
    if (!inside) a = s->refused, a.kind = r->kind;
    char *before = fetches ? answer(s, a) : NULL;
    if (inside) change(s, r, runs, data, before, alone || stops);
    if (entered) atomics_leave(v->busy);
    else if (atomic) atomics_note_few(v->own->exposure);
    if (locked) give_accumulate(v, s);
    return DONE;
}

static enum outcome do_move(struct win_served *s, const struct win_record *r, const char *runs, const char *data, int64_t n)
{
    bool inside = all_inside(s, r, runs, 1);
    if (r->kind == WIN_PUT) {
        if (inside) put(s, r, runs, data);
        return DONE;
    }
    struct win_answer a = {.kind = r->kind, .bytes = (uint64_t)n};
    if (!inside) a = s->refused, a.kind = r->kind;
    char *to = answer(s, a);
    if (inside) get(s, r, runs, to);
    return DONE;
}

/* An answer that says which operation has conflicted, unless another one was refused. */
static void answer_conflict(struct win_served *s, struct win_answer a)
{
    struct win_conflict c;
    bool met = checking_conflict(s->t->win, s->t->rank, &c) && !a.code;
    if (met) a.code = TERN_ERR_WIN_CONFLICT, a.bytes = sizeof c;
    char *to = answer(s, a);
    if (met) memcpy(to, &c, sizeof c);
}

/* All since the last one is done: says so, and what was refused. */
static enum outcome do_report(struct win_served *s, const struct win_record *r)
{
    struct win_answer a = s->refused;
    a.kind = r->kind;
    s->refused = (struct win_answer){0};
    if (unlikely(s->t->win->checking)) answer_conflict(s, a);
    else answer(s, a);
    return DONE;
}

/* The memory of the window, by a key: registered when the first one asks for it. What cannot be registered has no key. */
static void make_key(struct win *w, struct win_key *k)
{
    k->unit = w->unit;
    if (w->given_up || !w->bytes || w->flavor == MPI_WIN_FLAVOR_DYNAMIC || w->together) return;
    if (!w->shown.mem && remote_reg(w->base, (size_t)w->bytes, REMOTE_READ | REMOTE_WRITE | REMOTE_ATOMIC, &w->shown.mem)) return;
    int n = remote_key_pack(w->shown.mem, k->key, sizeof k->key);
    if (n > 0) k->key_bytes = (uint32_t)n;
}

static enum outcome show_key(struct win_served *s, const struct win_record *r)
{
    struct win_key k = {0};
    make_key(s->t->win, &k);
    memcpy(answer(s, (struct win_answer){.kind = r->kind, .bytes = sizeof k}), &k, sizeof k);
    return DONE;
}

/* Something that a call may wait for has come. */
static enum outcome count_up(const struct win_serve *v, int32_t *number)
{
    if (*number == INT32_MAX) return IMPOSSIBLE;
    ++*number;
    lane_changed(v->win->comm->lane);
    return DONE;
}

static enum outcome do_synchronise(struct win_serve *v, struct win_served *s, const struct win_record *r)
{
    switch (r->kind) {
    case WIN_LOCK:
        if (r->op > WIN_LOCK_EXCLUSIVE || s->holds) return IMPOSSIBLE;
        if (!take_lock(v, s, (enum win_lock_mode)r->op)) return WAITS;
        s->counts = r->displacement > 0;
        s->announced = r->displacement;
        return DONE;
    case WIN_UNLOCK:
        if (!s->holds || (s->counts && s->announced)) return IMPOSSIBLE;
        s->counts = false;
        give_lock(v, s); /* fall through */
    case WIN_FLUSH:
        if (unlikely(v->win->checking)) checking_on_flush(v->win, s->t->rank);
        return do_report(s, r);
    case WIN_KEY: return show_key(s, r);
    case WIN_POST: return count_up(v, &s->t->posts);
    case WIN_COMPLETE: return count_up(v, &s->t->completes);
    }
    return DONE;
}

static enum outcome do_checking(struct win_serve *v, struct win_served *s, const struct win_record *r, const char *rest)
{
    if (!v->win->checking) return IMPOSSIBLE;
    if (r->kind == WIN_NOTE) return checking_on_note(v->win, s->t->rank, rest) ? DONE : IMPOSSIBLE;
    return do_report(s, r);
}

/* One record, of n bytes in all. */
static enum outcome do_record(struct win_serve *v, struct win_served *s, const struct win_record *r, const char *rest)
{
    size_t here;
    const char *runs = r->kind < WIN_RECORD_KINDS ? outline_runs(&s->outlines, r, rest, &here) : NULL;
    if (!runs) return IMPOSSIBLE;
    int64_t elements = count_elements(r, runs);
    if (elements < 0 || data_wanted(r, elements) != (int64_t)(r->bytes - here)) return IMPOSSIBLE;
    if (r->kind != WIN_PUT && !has_landed(v, s)) return WAITS;
    if (r->kind >= WIN_NOTE) return do_checking(v, s, r, rest);
    if (r->kind >= WIN_LOCK) return do_synchronise(v, s, r);
    if (s->counts && !s->announced) return IMPOSSIBLE;
    enum outcome outcome = r->kind >= WIN_ACCUMULATE ? do_change(v, s, r, runs, rest + here) : do_move(s, r, runs, rest + here, elements);
    if (outcome != DONE) return outcome;
    if (s->counts) s->announced--;
    if (unlikely(v->win->checking)) checking_on_op(v->win, s->t->rank, r, runs);
    return DONE;
}

/* Does what it can of a batch; returns how far it has come. *outcome: of the record there. */
static size_t do_records(struct win_serve *v, struct win_served *s, const char *data, size_t n, enum outcome *outcome)
{
    size_t at = 0;
    *outcome = DONE;
    while (at < n) {
        struct win_record r;
        *outcome = IMPOSSIBLE;
        if (n - at < sizeof r) return at;
        memcpy(&r, data + at, sizeof r);
        if (r.bytes > n - at - sizeof r || WIN_PADDED(r.bytes) > n - at - sizeof r) return at;
        *outcome = do_record(v, s, &r, data + at + sizeof r);
        if (*outcome != DONE) return at;
        if (unlikely(s->waits)) stop_waiting(s); /* this one has: the next ones queue behind others */
        at += sizeof r + WIN_PADDED(r.bytes);
    }
    return at;
}

/* ---- batches ---- */

/* The same; what it puts by a copy engine is under way then. */
static size_t do_batch(struct win_serve *v, struct win_served *s, const char *data, size_t n, enum outcome *outcome)
{
    if (!v->win->lands) return do_records(v, s, data, n, outcome);
    landing_begin(&s->batch, data, n);
    size_t done = do_records(v, s, data, n, outcome);
    copy_cookie last = landing_end(&s->batch);
    if (last) s->landing = last;
    return done;
}

/* False: more than an origin has under way (far.c). */
static bool keep(struct win_served *s, const char *data, size_t n)
{
    if (s->kept_bytes + n > KEPT_MOST) return false;
    s->kept_bytes += n;
    struct kept *k = malloc(sizeof *k + n);
    if (!k) lane_fatal("no memory for operations on a window that wait for a lock");
    k->n = n;
    k->done = 0;
    memcpy(k->data, data, n);
    list_push(&s->kept, &k->link);
    return true;
}

static void drop_kept(struct win_served *s)
{
    for (struct link *a; (a = list_pop(&s->kept));) free(container_of(a, struct kept, link));
    s->kept_bytes = 0;
}

static void violation(struct win_served *s) { pt_violation(s->t->peer, "an operation on a window that cannot be"); }

/* Goes on with what is kept of an origin. True: something was done. */
static bool go_on(struct win_serve *v, struct win_served *s)
{
    enum outcome outcome = DONE;
    bool moved = false;
    while (outcome == DONE && !list_empty(&s->kept)) {
        struct kept *k = container_of(s->kept.next, struct kept, link);
        size_t n = do_batch(v, s, k->data + k->done, k->n - k->done, &outcome);
        moved |= n > 0;
        k->done += n;
        if (outcome != DONE) break;
        list_remove(&k->link);
        s->kept_bytes -= k->n;
        free(k);
    }
    send_answers(s);
    if (outcome == IMPOSSIBLE) violation(s);
    return moved;
}

/* The first of those that wait for a lock, and the next ones, until one goes on waiting for it. */
static int poll_list(struct win_serve *v, struct link *waiting)
{
    int n = 0;
    while (!list_empty(waiting)) {
        struct link *first = waiting->next;
        n += go_on(v, container_of(first, struct win_served, in_waiting));
        if (waiting->next == first) break;
    }
    return n;
}

static int poll_waiting(struct step *step)
{
    struct win_serve *v = container_of(step, struct win_serve, step);
    int n = 0;
    bool any = false;
    for (enum waits_for f = 0; f < WAITS_FOR; f++) n += poll_list(v, &v->waiting[f]);
    for (enum waits_for f = 0; f < WAITS_FOR; f++) any |= !list_empty(&v->waiting[f]);
    if (!any) step_off(step);
    return n;
}

static const struct step_ops waiting_ops = {.name = "origins that wait for the lock of a window, or a copy engine", .poll = poll_waiting, .idle = step_waits};

static struct win_serve *serve_of(struct win *w)
{
    if (w->serve) return w->serve;
    struct win_serve *v = calloc(1, sizeof *v);
    struct win_target *own = v ? win_target(w, w->comm->rank) : NULL;
    if (!own) lane_fatal("no memory for operations of others on a window");
    v->win = w;
    v->own = own;
    for (enum waits_for f = 0; f < WAITS_FOR; f++) list_init(&v->waiting[f]);
    v->lock = own->lock;
    v->accumulate = own->accumulate;
    v->lock.own = v->accumulate.own = own->lock.n - 1;
    v->busy = own->busy - own->lock.own + v->lock.own;
    v->step = (struct step){.ops = &waiting_ops};
    step_add(&w->comm->lane->steps, &v->step);
    return w->serve = v;
}

static struct win_served *served_of(struct win *w, struct peer *from)
{
    int32_t rank = rankmap_find(w->comm->map, from->index);
    struct win_target *t = rank >= 0 ? win_target_known(w, rank) : NULL; /* that leaves win.last to callers */
    if (!t && rank >= 0) t = win_target(w, rank);
    if (!t) return NULL;
    if (t->served) return t->served;
    struct win_served *s = calloc(1, sizeof *s);
    if (!s) lane_fatal("no memory for operations of others on a window");
    s->t = t;
    list_init(&s->in_waiting);
    list_init(&s->kept);
    return t->served = s;
}

void serve_on_ops(struct win *w, struct peer *from, const void *data, size_t n)
{
    struct win_served *s = served_of(w, from);
    enum outcome outcome = WAITS;
    size_t done = 0;
    if (!s) {
        pt_violation(from, "operations on a window that it is not in");
        return;
    }
    struct win_serve *v = serve_of(w);
    background_was_asked();
    if (list_empty(&s->kept)) done = do_batch(v, s, data, n, &outcome);
    send_answers(s);
    if (outcome == IMPOSSIBLE) violation(s);
    if (outcome != WAITS) return;
    if (!keep(s, (const char *)data + done, n - done)) violation(s);
}

/* The seat is queued for the first that waits. */
static void withdraw(struct win_serve *v, const struct win_served *s)
{
    if (s->waits_for == ITS_COPIES || !is_first(v, s, s->waits_for)) return;
    if (s->waits_for == THE_LOCK && v->requested) {
        win_lock_withdraw(&v->lock, (enum win_lock_mode)(v->requested - 1));
        v->requested = 0;
    }
    if (s->waits_for == THE_ACCUMULATE_LOCK && v->accumulate_requested) {
        win_lock_withdraw(&v->accumulate, WIN_LOCK_EXCLUSIVE);
        v->accumulate_requested = false;
    }
}

void serve_peer_end(struct win_target *t)
{
    struct win_served *s = t->served;
    if (!s) return;
    drop_kept(s);
    if (s->waits) withdraw(serve_of(t->win), s);
    stop_waiting(s);
    landing_await(s->landing); /* before others get its lock */
    s->landing = 0;
    give_lock(serve_of(t->win), s);
}

static int close_served(struct win_target *t)
{
    if (!t->served) return 0;
    drop_kept(t->served);
    outlines_close(&t->served->outlines);
    free(t->served->answers);
    free(t->served);
    t->served = NULL;
    return 0;
}

void serve_close(struct win *w)
{
    win_targets_each(w, close_served);
    if (!w->serve) return;
    step_remove(&w->serve->step);
    free(w->serve);
    w->serve = NULL;
}
