/* far.c - see far.h. */
#include "rma/far.h"
#include "base/err.h"
#include "proc/jobs.h"
#include "pt2pt/api.h"
#include "pt2pt/doubt.h"
#include "pt2pt/lane.h"
#include "pt2pt/lost.h"
#include "rma/checking.h"
#include "rma/moves.h"
#include "rma/outline.h"
#include "rma/runs.h"

#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#define FAR_BATCH ((size_t)32 << 10)      /* bytes from which on a batch goes out by itself */
#define FAR_PUT_OFF ((size_t)1 << 20)     /* the same where all is put off (PASSIVE_COPY); it goes in messages of FAR_BATCH */
#define FAR_MOVES_PUT_OFF 256             /* moves that are, at most */
#define FAR_NOTED ((size_t)4 << 10)       /* bytes of a put that is written down without the lane, at most */
#define FAR_UNANSWERED ((uint64_t)4 << 20)

/* What is fetched by one operation, in one or several pieces. */
struct fetch {
    struct type_cursor to;
    const struct type *basic; /* elements come as they lie in memory; NULL: packed bytes */
    struct type *type;        /* a reference is held */
    struct request *req;      /* NULL: none */
    uint32_t pieces;          /* that have not come */
};

/* An answer that is to come. */
struct expected {
    struct link link;
    uint32_t kind;       /* enum win_record_kind */
    uint64_t bytes;      /* of data */
    struct fetch *fetch; /* NULL: it has no data, but for ... */
    void *to;            /* ... what is copied to this place; or NULL */
};

/* A move that is put off. */
struct put_off {
    struct link link;
    struct win_op op; /* with references to its types */
};

struct win_far {
    char *batch;
    size_t n, room;
    size_t lock_at;        /* where in the batch a lock request lies that can still say how many operations follow; */
    int64_t behind_lock;   /* so many do, -1: there is none */
    struct link put_off;   /* struct put_off */
    int32_t moves_put_off;
    uint64_t asked;        /* bytes that the answers to what is in the batch have */
    uint64_t sent, over;   /* bytes so far, of operations and answers to them; and of these, what the target is known to have done */
    uint64_t lock_upto, accumulates_upto; /* `sent` when the last lock request, and the last accumulate, have gone out; 0: none */
    struct link expected;  /* in their order */
    uint32_t fetches;      /* of them that have data */
    int code;              /* the first operation that was refused since the last unlock or flush */
    struct win_answer why; /* what the target says of it */
    struct win_conflict conflict; /* the same, of TERN_ERR_WIN_CONFLICT */
    struct win_moves moves;
    struct outlines_told *outlines; /* runs that the target knows; NULL: none */
};

static void put_off_free(struct put_off *o)
{
    if (o->op.otype) type_unref(o->op.otype);
    if (o->op.rtype) type_unref(o->op.rtype);
    type_unref(o->op.ttype);
    free(o);
}

static struct win_far *far_of(struct win_target *t)
{
    if (t->far) return t->far;
    struct win_far *f = calloc(1, sizeof *f);
    if (!f) {
        err_set(TERN_ERR_NOMEM, "no memory for operations on the window at rank %d", t->rank);
        return NULL;
    }
    list_init(&f->expected);
    list_init(&f->put_off);
    f->behind_lock = -1;
    return t->far = f;
}

void far_close(struct win_target *t)
{
    struct win_far *f = t->far;
    if (!f) return;
    for (struct link *a; (a = list_pop(&f->expected));) free(container_of(a, struct expected, link));
    for (struct link *a; (a = list_pop(&f->put_off));) put_off_free(container_of(a, struct put_off, link));
    moves_close(&f->moves);
    if (f->outlines) outlines_told_close(f->outlines);
    free(f->outlines);
    free(f->batch);
    free(f);
    t->far = NULL;
}

static int lost(const struct win_target *t) { return err_set(TERN_ERR_PEER, "%s", t->peer->lost); }

/* All is put off until it has to be done. */
static bool puts_off(const struct win_target *t) { return t->win->passive == PASSIVE_COPY; }

/* ---- the batch ---- */

/* Room for so many bytes more, at least 8, behind what is there; the last ones, which may be padding, are zero. */
static char *more(struct win_far *f, size_t n)
{
    if (f->n + n > f->room) {
        size_t room = f->n + n < 1024 ? 1024 : 2 * (f->n + n);
        char *b = realloc(f->batch, room);
        if (!b) {
            err_set(TERN_ERR_NOMEM, "no memory for %zu bytes of operations on a window", room);
            return NULL;
        }
        f->batch = b;
        f->room = room;
    }
    char *at = f->batch + f->n;
    f->n += n;
    memset(at + n - 8, 0, 8);
    return at;
}

/* Whole records, of so many bytes at most if there is more than one. */
static size_t first_part(const struct win_far *f, size_t from, size_t most)
{
    size_t n = 0;
    while (from + n < f->n) {
        struct win_record r;
        memcpy(&r, f->batch + from + n, sizeof r);
        size_t next = sizeof r + WIN_PADDED(r.bytes);
        if (n && n + next > most) break;
        n += next;
    }
    return n;
}

/* `sent`, once the batch has gone out. */
static uint64_t upto(const struct win_far *f) { return f->sent + f->n + f->asked; }

/* Messages of moderate length: a transport can hold those in place for a copy engine (landing.h). */
static int send_batch(struct win_target *t)
{
    struct win_far *f = t->far;
    uint64_t all = upto(f);
    size_t at = 0;
    int rc = 0;
    t->win->sends++;
    for (size_t n; !rc && at < f->n; at += rc ? 0 : n) {
        n = f->n - at <= FAR_BATCH ? f->n - at : first_part(f, at, FAR_BATCH);
        rc = pt_message_in(t->win->comm, t->rank, AM_RMA_OPS, f->batch + at, n);
    }
    if (unlikely(rc)) memmove(f->batch, f->batch + at, f->n - at); /* what has not gone out does so the next time */
    f->n -= at;
    if (!f->n) f->asked = 0;
    f->sent = all - f->n - f->asked;
    f->behind_lock = -1;
    return rc;
}

static int add(struct win_target *t, const struct win_record *r, const void *data)
{
    struct win_far *f = far_of(t);
    if (!f) return err_code();
    size_t padded = WIN_PADDED(r->bytes);
    char *at = more(f, sizeof *r + padded);
    if (!at) return TERN_ERR_NOMEM;
    memcpy(at, r, sizeof *r);
    if (data) memcpy(at + sizeof *r, data, r->bytes);
    return 0;
}

/* Takes out what was added since the batch had n bytes. */
static void take_back(struct win_far *f, size_t n) { f->n = n; }

static int expect(struct win_far *f, uint32_t kind, uint64_t bytes, struct fetch *fetch, void *to)
{
    struct expected *e = malloc(sizeof *e);
    if (!e) return err_set(TERN_ERR_NOMEM, "no memory for an operation on a window");
    *e = (struct expected){.kind = kind, .bytes = bytes, .fetch = fetch, .to = to};
    list_push(&f->expected, &e->link);
    f->asked += bytes;
    if (fetch) f->fetches++, fetch->pieces++;
    return 0;
}

/* A record without data that is answered, perhaps by n bytes. */
static int ask(struct win_target *t, enum win_record_kind kind, void *to, size_t n)
{
    struct win_record r = {.kind = (uint8_t)kind};
    struct win_far *f = far_of(t);
    if (!f) return err_code();
    size_t before = f->n;
    int rc = add(t, &r, NULL);
    if (!rc && (rc = expect(f, kind, n, NULL, to))) take_back(f, before);
    return rc ? rc : send_batch(t);
}

/* ---- waiting ---- */

static bool nothing_expected(void *target)
{
    const struct win_target *t = target;
    return t->peer->lost || list_empty(&t->far->expected);
}
static bool nothing_fetched(void *target)
{
    const struct win_target *t = target;
    return t->peer->lost || !t->far->fetches;
}

static void doubt(void *target)
{
    struct win_target *t = target;
    struct lane *l = t->win->comm->lane;
    struct peer *p = pt_gone_by(l, t->peer->index);
    if (!p || p->lost || !pt_is_final(p)) return;
    err_set(TERN_ERR_PEER, "%s has ended its part of the job while operations on its window are under way", jobs_long_words(p->index));
    pt_lose(p);
}

static int await(struct win_target *t, bool (*ready)(void *))
{
    lane_wait_doubting(t->win->comm->lane, ready, t, doubt);
    return t->peer->lost ? lost(t) : 0;
}

/* What the target has refused. */
static int refused(struct win_target *t)
{
    struct win_far *f = t->far;
    int code = f->code;
    f->code = 0;
    if (!code) return 0;
    if (code == TERN_ERR_WIN_CONFLICT) return checking_words(t, &f->conflict);
    if (code == TERN_ERR_WIN_RANGE && t->win->flavor == MPI_WIN_FLAVOR_DYNAMIC)
        return err_set(code, "an operation on %lld bytes at address 0x%llx of rank %d, which it has not attached to the window",
                       (long long)f->why.count, (long long)f->why.offset, t->rank);
    if (code == TERN_ERR_WIN_RANGE)
        return err_set(code, "an operation on %lld bytes at %lld of the window's memory at rank %d, which has %llu", (long long)f->why.count,
                       (long long)f->why.offset, t->rank, (unsigned long long)f->why.there);
    if (code == TERN_ERR_PEER) return win_target_gives_up(t, f->why.offset);
    return err_set(code, "rank %d has refused an operation on its window", t->rank);
}

/* All that was started is done at the target then; what it has refused is told by the next refused(). */
static int ask_and_await(struct win_target *t, enum win_record_kind kind, void *to, size_t n)
{
    int rc = ask(t, kind, to, n);
    if (rc) return rc;
    struct win_far *f = t->far;
    uint64_t sent = f->sent; /* other threads may send more meanwhile */
    rc = await(t, nothing_expected);
    if (!rc && sent > f->over && kind != WIN_KEY) f->over = sent; /* that one says nothing of what was refused */
    return rc;
}

static int end_with(struct win_target *t, enum win_record_kind kind)
{
    int rc = ask_and_await(t, kind, NULL, 0);
    return rc ? rc : refused(t);
}

bool far_accumulates(const struct win_target *t) { return t->far && t->far->accumulates_upto > t->far->over; }

/* ---- operations ---- */

/* A piece of an operation: what goes into one record. */
struct piece {
    struct win_record r;
    struct win_run runs[WIN_PIECE_RUNS];
    int64_t elements; /* or bytes */
};

/* The runs of the target's type, relative to the place of the operation, of so many elements (or bytes) at most. */
static void divide(struct win_runs *w, struct piece *p, int64_t most)
{
    uint32_t n = 0;
    p->elements = 0;
    while (n < WIN_PIECE_RUNS && p->elements < most) {
        char *at;
        int64_t count = win_runs_next(w, most - p->elements, &at);
        if (!count) break;
        p->runs[n++] = (struct win_run){(int64_t)(intptr_t)at, count};
        p->elements += count;
    }
    p->r.count = p->elements;
    p->r.runs = (uint16_t)(n == 1 ? 0 : n);
    p->r.offset = n == 1 ? p->runs[0].offset : 0;
}

/* The same, of runs that the target knows, or is told of by this. *number: which, -1: it is not. */
static void divide_known(struct win_far *f, const struct outline_of *of, struct win_runs *w, struct piece *p, int64_t most, int *number)
{
    bool suits = !of->type->contig && of->piece < OUTLINE_PIECES;
    if (suits && !f->outlines) f->outlines = calloc(1, sizeof *f->outlines); /* without, they travel each time */
    *number = suits && f->outlines ? outline_find(f->outlines, of) : -1;
    if (*number >= 0) {
        const struct outline_told *o = &f->outlines->told[*number];
        p->r.runs = o->runs;
        p->r.outline = OUTLINE_KNOWN | (uint16_t)*number;
        p->r.count = p->elements = o->elements;
        type_cursor_seek(&w->c, w->c.pos + (size_t)(o->elements * (w->basic ? w->basic->size : 1)));
        return;
    }
    divide(w, p, most);
    if (!suits || !f->outlines || p->r.runs < OUTLINE_FROM) return;
    *number = outline_tell(f->outlines, of, p->r.runs, p->elements);
    p->r.outline = OUTLINE_NEW | (uint16_t)*number;
}

/* Writes a record with its runs, and room for data behind them, which is returned; NULL with words: memory is out. */
static char *write_record(struct win_far *f, struct piece *p, size_t data)
{
    size_t runs = p->r.outline & OUTLINE_KNOWN ? 0 : p->r.runs * sizeof(struct win_run);
    p->r.bytes = runs + data;
    char *at = more(f, sizeof p->r + WIN_PADDED(p->r.bytes));
    if (!at) return NULL;
    memcpy(at, &p->r, sizeof p->r);
    if (runs) memcpy(at + sizeof p->r, p->runs, runs);
    return at + sizeof p->r + runs;
}

static void take_data(const struct win_op *a, struct type_cursor *from, char *to, int64_t n)
{
    if (a->kind == WIN_COMPARE_AND_SWAP) {
        memcpy(to, a->compare, (size_t)a->basic->size);
        memcpy(to + a->basic->size, a->origin, (size_t)a->basic->size);
    } else if (a->kind == WIN_PUT) {
        type_pack(from, to, (size_t)n);
    } else if (a->kind != WIN_GET && a->op->index != OP_NO_OP) {
        win_elements_out(from, a->basic, to, n);
    }
}

/* Bytes of data that n elements have in a record. */
static size_t data_bytes(const struct win_op *a, int64_t n)
{
    if (a->kind == WIN_PUT) return (size_t)n;
    if (a->kind == WIN_GET || (a->op && a->op->index == OP_NO_OP)) return 0;
    if (a->kind == WIN_COMPARE_AND_SWAP) return 2 * (size_t)a->basic->size;
    return (size_t)(n * a->basic->extent);
}

static int add_piece(struct win_target *t, const struct win_op *a, struct piece *p, struct type_cursor *from, struct fetch *fetch)
{
    struct win_far *f = t->far;
    size_t before = f->n;
    char *data = write_record(f, p, data_bytes(a, p->elements));
    if (!data) return TERN_ERR_NOMEM;
    uint64_t back = (uint64_t)(p->elements * (a->basic ? a->basic->extent : 1));
    int rc = fetch ? expect(f, a->kind, back, fetch, NULL) : 0;
    if (rc) {
        take_back(f, before);
        return rc;
    }
    take_data(a, from, data, p->elements);
    if (f->behind_lock >= 0) f->behind_lock++;
    return 0;
}

/* The target has it in its log, or has refused it. An operation with a request cannot fail any more: the next flush does. */
static int await_seen(struct win_target *t, const struct request *req)
{
    int rc = ask(t, WIN_SEEN, NULL, 0);
    if (!rc) rc = await(t, nothing_expected); /* nothing is flushed by that: the next flush goes out */
    return rc || req ? rc : refused(t);
}

/* Sends what has become enough; waits when too much is unanswered. */
static int keep_going(struct win_target *t)
{
    struct win_far *f = t->far;
    int rc = f->n >= (puts_off(t) ? FAR_PUT_OFF : FAR_BATCH) ? send_batch(t) : 0;
    if (rc || upto(f) - f->over < FAR_UNANSWERED) return rc;
    if (unlikely(t->win->checking)) return await_seen(t, NULL); /* the program has not flushed */
    return ask_and_await(t, WIN_FLUSH, NULL, 0);
}

static struct fetch *fetch_new(const struct win_op *a, struct request *req)
{
    struct fetch *h = malloc(sizeof *h);
    if (!h) {
        err_set(TERN_ERR_NOMEM, "no memory for an operation on a window");
        return NULL;
    }
    *h = (struct fetch){.basic = a->basic, .type = a->rtype, .req = req, .pieces = 1}; /* one more until all are asked for */
    type_ref(a->rtype);
    type_cursor_init(&h->to, a->rtype, a->rcount, a->result);
    return h;
}

/* One piece less, or the end of the asking. */
static void fetched(struct fetch *h, int code)
{
    if (code && h->req && !h->req->result.error) h->req->result.error = code;
    if (--h->pieces) return;
    if (h->req) lane_finish(h->req, h->req->result.error);
    type_unref(h->type);
    free(h);
}

static int start_pieces(struct win_target *t, const struct win_op *a, struct fetch *fetch)
{
    struct win_runs where;
    struct type_cursor from = {0};
    struct win_note note;
    struct piece *p = malloc(sizeof *p);
    if (!p) return err_set(TERN_ERR_NOMEM, "no memory for an operation on a window");
    win_runs_init(&where, a->ttype, a->tcount, NULL, a->basic);
    if (a->otype) type_cursor_init(&from, a->otype, a->ocount, a->origin);
    int64_t most = (int64_t)WIN_PIECE / (a->basic ? a->basic->extent : 1);
    int rc = 0;
    if (unlikely(t->win->checking)) checking_note(t, a, &note);
    struct outline_of of = {.type = a->ttype, .count = a->tcount, .basic = a->basic};
    for (int number; !rc; of.piece++) {
        p->r = (struct win_record){.kind = (uint8_t)a->kind, .displacement = a->displacement};
        if (a->basic) p->r.type = (uint16_t)(uintptr_t)a->basic->self;
        if (a->op) p->r.op = a->op->index;
        divide_known(t->far, &of, &where, p, most, &number);
        if (!p->elements) break;
        if (unlikely(t->win->checking)) rc = add(t, &(struct win_record){.kind = WIN_NOTE, .bytes = sizeof note}, &note);
        if (!rc) rc = add_piece(t, a, p, &from, fetch);
        if (rc && number >= 0 && p->r.outline & OUTLINE_NEW) outline_forget(t->far->outlines, number); /* it was not sent */
        if (!rc) rc = keep_going(t);
    }
    free(p);
    return rc;
}

/* Large data, by the target's key. TERN_ERR_UNSUPPORTED: not this way. */
static int move(struct win_target *t, const struct win_op *a, struct request *req)
{
    struct win_far *f = far_of(t);
    struct win_moves *m = f ? &f->moves : NULL;
    int rc = f ? 0 : err_code();
    if (f && !m->known) {
        rc = ask_and_await(t, WIN_KEY, &m->shown, sizeof m->shown);
        if (!rc) rc = moves_open(t, m);
    }
    if (!rc && f->lock_upto > f->over) rc = ask_and_await(t, WIN_FLUSH, NULL, 0);
    return rc ? rc : moves_start(t, m, a, req);
}

/* What was put off; by records what cannot be moved. */
static int by_records(struct win_target *t, const struct win_op *a, struct request *req);

static int start_put_off(struct win_target *t)
{
    struct win_far *f = t->far;
    int first = 0;
    for (struct link *l; f && (l = list_pop(&f->put_off));) {
        struct put_off *o = container_of(l, struct put_off, link);
        int rc = move(t, &o->op, NULL);
        if (rc == TERN_ERR_UNSUPPORTED) rc = by_records(t, &o->op, NULL);
        if (rc && !first) first = rc;
        put_off_free(o);
    }
    if (f) f->moves_put_off = 0;
    return first;
}

static int put_off(struct win_target *t, const struct win_op *a)
{
    struct win_far *f = far_of(t);
    struct put_off *o = f ? malloc(sizeof *o) : NULL;
    if (!o) return err_set(TERN_ERR_NOMEM, "no memory for an operation on a window");
    o->op = *a;
    if (a->otype) type_ref(a->otype);
    if (a->rtype) type_ref(a->rtype);
    type_ref(a->ttype);
    list_push(&f->put_off, &o->link);
    return ++f->moves_put_off < FAR_MOVES_PUT_OFF ? 0 : start_put_off(t);
}

static int by_records(struct win_target *t, const struct win_op *a, struct request *req)
{
    struct fetch *fetch = NULL;
    if (!far_of(t) || (win_op_fetches(a) && !(fetch = fetch_new(a, req)))) return err_code();
    int rc = start_pieces(t, a, fetch);
    if (a->kind >= WIN_ACCUMULATE) t->far->accumulates_upto = upto(t->far);
    if (fetch) fetched(fetch, rc);
    else if (req) lane_finish(req, rc); /* what goes out has been copied */
    if (!rc && unlikely(t->win->checking)) rc = await_seen(t, req);
    if (!rc && req) rc = send_batch(t); /* who waits for the request does not know of the batch */
    return rc;
}

/* Batches are written by callers alone: no message that comes, and no helper, touches them. */
bool far_note(struct win_target *t, const struct win_op *a)
{
    struct win_far *f = t->far;
    size_t n = (size_t)(a->tcount * a->ttype->size), all = sizeof(struct win_record) + WIN_PADDED(n);
    bool plain = a->kind == WIN_PUT && a->ttype->contig && a->otype->contig && n && n <= FAR_NOTED;
    if (!plain || !f || f->n + all > f->room || f->n + all >= FAR_BATCH || upto(f) + all - f->over >= FAR_UNANSWERED) return false;
    if (t->peer->lost || t->win->checking) return false;
    struct win_record r = {.kind = WIN_PUT, .displacement = a->displacement, .offset = a->ttype->true_lb, .count = (int64_t)n, .bytes = n};
    char *at = more(f, all);
    memcpy(at, &r, sizeof r);
    memcpy(at + sizeof r, (const char *)a->origin + a->otype->true_lb, n);
    if (f->behind_lock >= 0) f->behind_lock++;
    return true;
}

int far_start(struct win_target *t, const struct win_op *a, struct request *req)
{
    if (t->peer->lost) return lost(t);
    if (moves_suit(t, a)) {
        if (puts_off(t) && !req) return put_off(t, a);
        int rc = move(t, a, req);
        if (rc != TERN_ERR_UNSUPPORTED) return rc;
    }
    return by_records(t, a, req);
}

/* ---- epochs ---- */

int far_lock(struct win_target *t, enum win_lock_mode mode)
{
    struct win_record r = {.kind = WIN_LOCK, .op = (uint8_t)mode};
    int rc = t->peer->lost ? lost(t) : add(t, &r, NULL);
    if (rc) return rc;
    t->far->lock_upto = upto(t->far);
    t->far->lock_at = t->far->n - sizeof r;
    t->far->behind_lock = 0;
    return 0;
}

/* The lock request, and all that belongs to its epoch, have not been sent. */
static void announce_operations(struct win_far *f)
{
    if (f->behind_lock > 0) memcpy(f->batch + f->lock_at + offsetof(struct win_record, displacement), &f->behind_lock, sizeof f->behind_lock);
}

/* The lock goes back, also behind moves that have failed. */
int far_unlock(struct win_target *t)
{
    int started = start_put_off(t), moved = moves_flush(t, &t->far->moves);
    announce_operations(t->far);
    int rc = end_with(t, WIN_UNLOCK);
    return started ? started : moved ? moved : rc;
}

int far_flush(struct win_target *t)
{
    struct win_far *f = t->far;
    int own = unlikely(t->win->checking) ? checking_flush_own(t) : 0;
    int moved = start_put_off(t), flushed = f ? moves_flush(t, &f->moves) : 0;
    if (!moved) moved = flushed ? flushed : own;
    if (!f) return t->peer->lost ? lost(t) : moved;
    if (upto(f) == f->over && list_empty(&f->expected)) { /* flushed already, perhaps to make room: what was refused is told now */
        int before = refused(t);
        return t->peer->lost ? lost(t) : moved ? moved : before;
    }
    int rc = end_with(t, WIN_FLUSH);
    return moved ? moved : rc;
}

int far_flush_local(struct win_target *t)
{
    struct win_far *f = t->far;
    if (unlikely(t->win->checking)) checking_flush_local(t);
    if (!f) return 0;
    int rc = start_put_off(t);
    if (!rc && f->fetches) rc = send_batch(t);
    if (!rc) rc = await(t, nothing_fetched);
    int moved = moves_local(t, &f->moves);
    return rc ? rc : moved;
}

static int tell(struct win_target *t, enum win_record_kind kind)
{
    struct win_record r = {.kind = (uint8_t)kind};
    int rc = add(t, &r, NULL);
    return rc ? rc : send_batch(t);
}

int far_post(struct win_target *t) { return tell(t, WIN_POST); }

int far_complete(struct win_target *t)
{
    int started = start_put_off(t), moved = t->far ? moves_flush(t, &t->far->moves) : 0;
    int rc = tell(t, WIN_COMPLETE);
    if (t->far) t->far->accumulates_upto = 0; /* they are done before the target posts again */
    if (!rc) rc = await(t, nothing_fetched);
    if (!rc) rc = refused(t);
    return started ? started : moved ? moved : rc;
}

void far_peer_end(struct win_target *t)
{
    struct win_far *f = t->far;
    if (!f) return;
    for (struct link *a; (a = list_pop(&f->expected));) {
        struct expected *e = container_of(a, struct expected, link);
        if (e->fetch) f->fetches--, fetched(e->fetch, TERN_ERR_PEER);
        free(e);
    }
}

/* ---- answers ---- */

/* Nothing has come for a piece that was refused. */
static void skip(struct fetch *h, uint64_t bytes)
{
    uint64_t packed = h->basic ? bytes / (uint64_t)h->basic->extent * (uint64_t)h->basic->size : bytes;
    type_cursor_seek(&h->to, h->to.pos + packed);
}

static void take_answer(struct win_target *t, const struct expected *e, const struct win_answer *w, const char *data)
{
    struct win_far *f = t->far;
    if (w->code && !f->code) {
        f->code = w->code;
        f->why = *w;
        if (w->code == TERN_ERR_WIN_CONFLICT) memcpy(&f->conflict, data, sizeof f->conflict);
    }
    if (e->to && !w->code) memcpy(e->to, data, w->bytes);
    if (!e->fetch) return;
    struct fetch *h = e->fetch;
    f->fetches--;
    if (w->code) skip(h, e->bytes);
    else if (h->basic) win_elements_in(&h->to, h->basic, data, (int64_t)w->bytes / h->basic->extent);
    else type_unpack(&h->to, data, w->bytes);
    fetched(h, w->code);
}

static bool fits(const struct win *win, const struct expected *e, const struct win_answer *w, size_t room)
{
    if (w->kind != e->kind || w->bytes > room) return false;
    if (w->code == TERN_ERR_WIN_CONFLICT) return win->checking && !e->fetch && w->bytes == sizeof(struct win_conflict);
    return w->bytes == (w->code ? 0 : e->bytes) &&
           (!w->code || w->code == TERN_ERR_WIN_RANGE || w->code == TERN_ERR_OP || w->code == TERN_ERR_PEER);
}

void far_on_answers(struct win *w, struct peer *from, const void *data, size_t n)
{
    struct win_target *t = win_target_known(w, rankmap_find(w->comm->map, from->index));
    const char *at = data;
    while (n) {
        struct win_answer a = {0};
        struct link *first = t && t->far ? t->far->expected.next : NULL;
        struct expected *e = first && first != &t->far->expected ? container_of(first, struct expected, link) : NULL;
        if (n >= sizeof a) memcpy(&a, at, sizeof a);
        if (n < sizeof a || !e || !fits(w, e, &a, n - sizeof a)) {
            pt_violation(from, "an answer about a window that was not asked for");
            return;
        }
        list_remove(&e->link);
        take_answer(t, e, &a, at + sizeof a);
        free(e);
        size_t step = min_size(n, sizeof a + WIN_PADDED(a.bytes));
        at += step;
        n -= step;
    }
    lane_changed(w->comm->lane);
}
