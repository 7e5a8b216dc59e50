/* window_model.c - see window_model.h. */
#include "window_model.h"

#include "base/err.h"
#include "type/cursor.h"
#include "type/op.h"

#include <stdlib.h>
#include <string.h>

/* ---- bytes ---- */

void model_append(struct model_bytes *b, const void *data, size_t n)
{
    if (b->n + n > b->room) {
        b->room = 2 * (b->n + n);
        b->at = realloc(b->at, b->room);
        if (!b->at) abort();
    }
    if (n) memcpy(b->at + b->n, data, n);
    b->n += n;
}

void model_open(struct model *m, uint8_t *real, size_t room)
{
    *m = (struct model){.real = real, .room = room, .unit = 1, .copy = malloc(room + 1)};
    if (!m->copy) abort();
    if (room) memcpy(m->copy, real, room);
}

void model_close(struct model *m) { free(m->copy); }

void model_origin_open(struct model *m, int which, struct model_origin *o)
{
    *o = (struct model_origin){.m = m};
    m->origin[which] = o;
}

void model_origin_close(struct model_origin *o)
{
    free(o->kept.at);
    free(o->answers.at);
    for (int i = 0; i < OUTLINES; i++) free(o->outline[i].runs);
    *o = (struct model_origin){.m = o->m};
}

const uint8_t *model_differs(const struct model *m)
{
    if (!m->room || !memcmp(m->real, m->copy, m->room)) return NULL;
    size_t i = 0;
    while (m->real[i] == m->copy[i]) i++;
    return m->real + i;
}

/* ---- places ---- */

/* A record, and what comes with it. */
struct parsed {
    struct win_record r;
    const uint8_t *runs, *data;
    size_t data_bytes;
    const struct type *basic; /* of the kinds that have elements */
    const struct op *op;
    int64_t each, elements;   /* bytes of one, how many in all runs */
};

static struct win_run run_of(const struct parsed *p, uint32_t i)
{
    struct win_run run = {p->r.offset, p->r.count};
    if (p->r.runs) memcpy(&run, p->runs + i * sizeof run, sizeof run);
    return run;
}

static uint32_t runs_of(const struct parsed *p) { return p->r.runs ? p->r.runs : 1; }

static bool is_in_piece(const struct model *m, __int128 at)
{
    for (int i = 0; i < m->pieces; i++) {
        __int128 begin = m->dynamic ? (__int128)(uintptr_t)m->piece[i].at : 0;
        if (at >= begin && at < begin + m->piece[i].bytes) return true;
    }
    return false;
}

static bool all_inside(const struct model *m, __int128 at, int64_t n)
{
    if (!m->dynamic) return at >= 0 && at + n <= m->piece[0].bytes;
    for (int64_t i = 0; i < n || !i; i++) /* of no bytes, the place is looked at */
        if (!is_in_piece(m, at + i)) return false;
    return true;
}

/* Where the place of a run is in the copy; NULL: not in the window, and what the target then says is noted. */
static uint8_t *place(struct model_origin *o, const struct parsed *p, const struct win_run *run)
{
    const struct model *m = o->m;
    int64_t n = run->count * p->each;
    __int128 scaled = (__int128)p->r.displacement * m->unit, at = scaled + run->offset;
    bool too_large = scaled != (int64_t)scaled || at != (int64_t)at || at + n > INT64_MAX;
    if (!too_large && all_inside(m, at, n)) {
        if (!m->dynamic && !m->piece[0].at) return NULL; /* nothing, in a window without memory: neither done nor noted */
        uint8_t *real = m->dynamic ? (uint8_t *)(uintptr_t)at : m->piece[0].at + at;
        return m->copy + (real - m->real);
    }
    if (!o->refused.code)
        o->refused = (struct win_answer){.code = TERN_ERR_WIN_RANGE, .offset = too_large ? INT64_MAX : (int64_t)at, .count = n,
                                         .there = m->dynamic ? 0 : (uint64_t)m->piece[0].bytes};
    return NULL;
}

static bool is_inside(struct model_origin *o, const struct parsed *p)
{
    for (uint32_t i = 0; i < runs_of(p); i++) {
        struct win_run run = run_of(p, i);
        if (!place(o, p, &run)) return false;
    }
    return true;
}

/* Does one of n elements that begin at an address lie in two pieces? */
static bool spans_pieces(const struct model *m, const struct parsed *p, uintptr_t at, int64_t n)
{
    for (int i = 0; m->dynamic && i < m->pieces; i++) {
        uintptr_t end = (uintptr_t)m->piece[i].at + (uintptr_t)m->piece[i].bytes;
        if (end > at && end < at + (uintptr_t)(n * p->each) && (end - at) % (uintptr_t)p->each) return true;
    }
    return false;
}

/* Elements that begin at an address can be changed by atomic operations of a processor (rma/apply.h). */
static bool is_atomic(const struct type *t, uintptr_t at)
{
    bool size = t->size == 1 || t->size == 2 || t->size == 4 || t->size == 8;
    return size && t->klass != CLASS_PAIR && at % (uintptr_t)t->size == 0;
}

static uintptr_t real_place(const struct model *m, const uint8_t *at) { return (uintptr_t)(m->real + (at - m->copy)); }

/* All others are changed under the accumulate lock. */
static bool needs_lock(struct model_origin *o, const struct parsed *p)
{
    for (uint32_t i = 0; i < runs_of(p); i++) {
        struct win_run run = run_of(p, i);
        uintptr_t real = real_place(o->m, place(o, p, &run));
        if (run.count && (!is_atomic(p->basic, real) || spans_pieces(o->m, p, real, run.count))) return true;
    }
    return false;
}

/* ---- records ---- */

static bool changes(const struct parsed *p) { return p->r.kind == WIN_ACCUMULATE || p->r.kind == WIN_GET_ACCUMULATE; }

static bool is_comparable(const struct type *t)
{
    return (t->klass & (CLASS_CINT | CLASS_FINT | CLASS_LOGICAL | CLASS_BYTE | CLASS_MULTI)) != 0;
}

/* The bytes of data that such a record has; -1: there is no such record. */
static int64_t data_of(const struct parsed *p)
{
    bool counted = p->r.kind < WIN_LOCK;
    if (p->r.kind == WIN_PUT) return p->elements;
    if (!counted) return p->r.runs || p->r.count ? -1 : 0;
    if (p->r.kind == WIN_GET) return 0;
    if (!p->basic) return -1;
    if (p->r.kind == WIN_COMPARE_AND_SWAP) return is_comparable(p->basic) && p->elements == 1 && !p->r.runs ? 2 * p->basic->size : -1;
    if (!p->op || !op_valid(p->op, p->basic)) return -1;
    return p->op->index == OP_NO_OP ? 0 : p->elements * p->each;
}

static bool parse_elements(struct parsed *p)
{
    const struct type *t = p->r.type ? type_of((MPI_Datatype)(uintptr_t)p->r.type) : NULL;
    if (t && t->predefined && t->committed && t->size > 0 && p->r.kind >= WIN_ACCUMULATE) p->basic = t;
    if (op_name_of(p->r.op)) p->op = op_by_index(p->r.op);
    p->each = p->basic ? p->basic->extent : 1;
    for (uint32_t i = 0; i < runs_of(p); i++) {
        struct win_run run = run_of(p, i);
        if (run.count < 0 || run.count > (int64_t)WIN_PIECE) return false;
        p->elements += run.count;
        if (p->elements * p->each > (int64_t)WIN_PIECE) return false;
    }
    return true;
}

static void keep_runs(struct model_outline *o, const uint8_t *runs, uint16_t n)
{
    free(o->runs);
    o->n = n;
    o->runs = malloc(n * sizeof(struct win_run));
    if (!o->runs) abort();
    memcpy(o->runs, runs, n * sizeof(struct win_run));
}

/* Runs that are kept from now on, or were. */
static bool parse_outline(struct parsed *p, struct model_origin *o)
{
    bool fresh = p->r.outline & OUTLINE_NEW, known = p->r.outline & OUTLINE_KNOWN;
    uint16_t number = p->r.outline & OUTLINE_NUMBER;
    if (!p->r.outline) return true;
    if (fresh == known || !p->r.runs || number >= OUTLINES) return false;
    if (fresh) keep_runs(&o->outline[number], p->runs, p->r.runs);
    else p->runs = o->outline[number].n == p->r.runs ? o->outline[number].runs : NULL;
    return p->runs;
}

/* False: there is no such record. */
static bool parse(struct parsed *p, struct model_origin *o, const uint8_t *at, size_t n)
{
    *p = (struct parsed){0};
    if (n < sizeof p->r) return false;
    memcpy(&p->r, at, sizeof p->r);
    n -= sizeof p->r;
    if (p->r.bytes > n || p->r.bytes + (8 - p->r.bytes % 8) % 8 > n) return false;
    uint64_t runs = p->r.outline & OUTLINE_KNOWN ? 0 : (uint64_t)p->r.runs * sizeof(struct win_run);
    if (p->r.kind >= WIN_RECORD_KINDS || p->r.runs > WIN_PIECE_RUNS || runs > p->r.bytes) return false;
    p->runs = at + sizeof p->r;
    p->data = p->runs + runs;
    p->data_bytes = (size_t)(p->r.bytes - runs);
    return parse_outline(p, o) && parse_elements(p) && data_of(p) == (int64_t)p->data_bytes;
}

static void answer(struct model_origin *o, const struct parsed *p, bool refused, uint64_t bytes)
{
    struct win_answer a = refused ? o->refused : (struct win_answer){.bytes = bytes};
    a.kind = p->r.kind;
    model_append(&o->answers, &a, sizeof a);
}

static void pad(struct model_bytes *b)
{
    static const uint8_t zero[8];
    model_append(b, zero, (8 - b->n % 8) % 8);
}

static void replace(const struct type *t, uint8_t *at, const uint8_t *data, int64_t n)
{
    type_copy_across(at, n, t, data, n, t); /* a pair has gaps, which stay */
}

/* One run of elements, through copies that are aligned as memory is. `alone`: one by one, as a processor does it. What comes of
 * two numbers that are none depends on that. */
static void change_run(const struct parsed *p, uint8_t *at, const uint8_t *data, int64_t n, bool alone)
{
    size_t step = alone ? 1 : (size_t)n;
    size_t bytes = (size_t)(n * p->each);
    uint8_t *a = malloc(bytes + 1), *b = malloc(bytes + 1);
    if (!a || !b) abort();
    memcpy(a, at, bytes);
    if (p->op->index != OP_NO_OP) memcpy(b, data, bytes);
    if (p->op->index == OP_REPLACE) replace(p->basic, a, b, n);
    else if (p->op->index != OP_NO_OP)
        for (size_t i = 0; i < (size_t)n; i += step)
            op_kernel_of(p->op, p->basic)(a + i * (size_t)p->each, b + i * (size_t)p->each, a + i * (size_t)p->each, step);
    memcpy(at, a, bytes);
    free(a);
    free(b);
}

static void do_runs(struct model_origin *o, const struct parsed *p)
{
    const uint8_t *data = p->data;
    bool fetches = p->r.kind == WIN_GET || p->r.kind >= WIN_GET_ACCUMULATE, by_processor = o->holds != 1 + WIN_LOCK_EXCLUSIVE;
    for (uint32_t i = 0; i < runs_of(p); i++) {
        struct win_run run = run_of(p, i);
        uint8_t *at = place(o, p, &run);
        size_t n = (size_t)(run.count * p->each);
        if (!n) continue;
        if (fetches) model_append(&o->answers, at, n);
        if (p->r.kind == WIN_PUT) memcpy(at, data, n);
        if (p->r.kind == WIN_COMPARE_AND_SWAP && !memcmp(at, data, n)) memcpy(at, data + n, n);
        if (changes(p)) change_run(p, at, data, run.count, by_processor && is_atomic(p->basic, real_place(o->m, at)));
        data += n;
    }
    if (fetches) pad(&o->answers);
}

/* What locks the others hold. */
static bool is_taken(const struct model_origin *o, int mode)
{
    int shared = o->m->held[WIN_LOCK_SHARED], exclusive = o->m->held[WIN_LOCK_EXCLUSIVE];
    for (int i = 0; i < 2; i++) {
        const struct model_origin *other = o->m->origin[i];
        if (other == o || !other) continue;
        shared += other->holds == 1 + WIN_LOCK_SHARED;
        exclusive += other->holds == 1 + WIN_LOCK_EXCLUSIVE;
    }
    return exclusive || (mode == WIN_LOCK_EXCLUSIVE && shared);
}

enum outcome { DONE, WAITS, IMPOSSIBLE };

static enum outcome do_lock(struct model_origin *o, const struct parsed *p)
{
    if (p->r.op > WIN_LOCK_EXCLUSIVE || o->holds) return IMPOSSIBLE;
    if (is_taken(o, p->r.op)) return WAITS;
    o->holds = 1 + p->r.op;
    o->counts = p->r.displacement > 0;
    o->announced = p->r.displacement;
    return DONE;
}

static enum outcome report(struct model_origin *o, const struct parsed *p)
{
    answer(o, p, true, 0);
    o->refused = (struct win_answer){0};
    return DONE;
}

static enum outcome do_operation(struct model_origin *o, const struct parsed *p)
{
    bool inside = is_inside(o, p), fetches = p->r.kind == WIN_GET || p->r.kind >= WIN_GET_ACCUMULATE;
    bool locks = inside && p->r.kind >= WIN_ACCUMULATE && o->holds != 1 + WIN_LOCK_EXCLUSIVE && (o->m->stopped || needs_lock(o, p));
    if (o->counts && !o->announced) return IMPOSSIBLE;
    if (locks && o->m->accumulate_held) return WAITS;
    if (o->counts) o->announced--;
    if (fetches) answer(o, p, !inside, (uint64_t)(p->elements * p->each));
    if (inside) do_runs(o, p);
    return DONE;
}

static enum outcome do_record(struct model_origin *o, const struct parsed *p)
{
    switch (p->r.kind) {
    case WIN_LOCK: return do_lock(o, p);
    case WIN_UNLOCK:
        if (!o->holds || (o->counts && o->announced)) return IMPOSSIBLE;
        o->holds = 0;
        o->counts = false;
        return report(o, p);
    case WIN_FLUSH: return report(o, p);
    case WIN_KEY:
        answer(o, p, false, sizeof o->m->key);
        model_append(&o->answers, &o->m->key, sizeof o->m->key);
        return DONE;
    case WIN_NOTE: /* with TERN_CHECK=rma only */
    case WIN_SEEN: return IMPOSSIBLE;
    case WIN_POST: return o->posts++ < INT32_MAX ? DONE : IMPOSSIBLE;
    case WIN_COMPLETE: return o->completes++ < INT32_MAX ? DONE : IMPOSSIBLE;
    default: return do_operation(o, p);
    }
}

/* ---- batches ---- */

/* How far the first batch is done. */
static size_t do_batch(struct model_origin *o)
{
    size_t done = 0;
    while (done < o->batch[0]) {
        struct parsed p;
        enum outcome outcome = parse(&p, o, o->kept.at + done, o->batch[0] - done) ? do_record(o, &p) : IMPOSSIBLE;
        o->impossible = outcome == IMPOSSIBLE;
        if (outcome != DONE) break;
        done += sizeof p.r + p.r.bytes + (8 - p.r.bytes % 8) % 8;
    }
    return done;
}

void model_go_on(struct model_origin *o)
{
    while (o->batches && !o->impossible) {
        size_t done = do_batch(o);
        o->kept.n -= done;
        o->batch[0] -= done;
        memmove(o->kept.at, o->kept.at + done, o->kept.n);
        if (o->batch[0]) return;
        o->batches--;
        memmove(o->batch, o->batch + 1, (size_t)o->batches * sizeof o->batch[0]);
    }
}

void model_say(struct model_origin *o, const void *batch, size_t n)
{
    if (!n) return;
    if (model_is_full(o)) abort();
    model_append(&o->kept, batch, n);
    o->batch[o->batches++] = n;
    model_go_on(o);
}

bool model_waits(const struct model_origin *o) { return o->batches && !o->impossible; }
bool model_is_full(const struct model_origin *o) { return o->batches == MODEL_BATCHES; }
