/* access_log.c - see access_log.h. */
#include "rma/access_log.h"
#include "rma/wire.h"
#include "type/op.h"

#include <stdlib.h>
#include <string.h>

/* ---- conflicts ---- */

static bool only_reads(const struct access *a)
{
    return a->kind == WIN_GET || (a->kind == WIN_GET_ACCUMULATE && a->op == OP_NO_OP);
}

static enum access_clash of_accumulates(const struct access *a, const struct access *b, const struct access_rules *r)
{
    if (a->type != b->type) return CLASH_TYPES;
    if (a->phase != b->phase) return CLASH_ELEMENTS;
    if (a->origin == b->origin && !r->unordered) return CLASH_NONE;
    if (a->kind == WIN_COMPARE_AND_SWAP || b->kind == WIN_COMPARE_AND_SWAP || a->op == b->op) return CLASH_NONE;
    return !r->same_op && (a->op == OP_NO_OP || b->op == OP_NO_OP) ? CLASH_NONE : CLASH_OPERATORS;
}

enum access_clash access_clash(const struct access *a, const struct access *b, const struct access_rules *r)
{
    bool apart = a->end <= b->begin || b->end <= a->begin;
    if (apart || (only_reads(a) && only_reads(b))) return CLASH_NONE;
    if (a->origin == b->origin && a->last == b->last) return CLASH_NONE; /* pieces of one call */
    if (a->kind == WIN_PUT || b->kind == WIN_PUT) return CLASH_PUT;
    if (a->kind == WIN_GET || b->kind == WIN_GET) return CLASH_GET;
    return of_accumulates(a, b, r);
}

/* ---- the log ---- */

/* Makes one of the two of them, if that says the same. */
static bool join(struct access *to, const struct access *a)
{
    bool touch = a->begin <= to->end && to->begin <= a->end;
    bool alike = a->origin == to->origin && a->kind == to->kind && a->op == to->op && a->type == to->type && a->phase == to->phase &&
                 a->call == to->call && a->epoch == to->epoch && a->flushed == to->flushed;
    if (!touch || !alike || memcmp(a->place, to->place, sizeof a->place)) return false;
    if (a->begin < to->begin) to->begin = a->begin;
    if (a->end > to->end) to->end = a->end;
    to->last = a->last;
    return true;
}

static void drop_oldest(struct access_log *l)
{
    int32_t n = ACCESS_MOST / 4;
    l->n -= n;
    memmove(l->of, l->of + n, (size_t)l->n * sizeof *l->of);
    l->dropped = true;
}

static bool have_room(struct access_log *l)
{
    if (l->n == ACCESS_MOST) drop_oldest(l);
    if (l->n < l->room) return true;
    int32_t room = l->room ? 2 * l->room : 16;
    struct access *more = realloc(l->of, (size_t)room * sizeof *more);
    if (!more) return false;
    l->of = more;
    l->room = room;
    return true;
}

enum access_clash access_log_add(struct access_log *l, const struct access *a, const struct access_rules *r, struct access *other)
{
    enum access_clash clash = CLASH_NONE;
    access_log_fence(l, a->fences);
    if (a->fences < l->fences || a->begin >= a->end) return CLASH_NONE;
    bool joined = false;
    for (int32_t i = 0; i < l->n; i++) {
        enum access_clash why = clash ? CLASH_NONE : access_clash(&l->of[i], a, r);
        if (why) *other = l->of[i], clash = why;
        joined = joined || (!a->brief && join(&l->of[i], a));
    }
    if (joined || a->brief) return clash;
    if (have_room(l)) l->of[l->n++] = *a;
    else l->dropped = true;
    return clash;
}

/* ---- what goes ---- */

/* What an end of something is about. */
struct ending {
    int32_t origin;
    uint64_t upto;
};

static void keep_if(struct access_log *l, bool (*stays)(struct access *, const struct ending *), const struct ending *e)
{
    int32_t n = 0;
    for (int32_t i = 0; i < l->n; i++)
        if (stays(&l->of[i], e)) l->of[n++] = l->of[i];
    l->n = n;
}

static bool stays_behind_flush(struct access *a, const struct ending *e)
{
    if (a->origin != e->origin) return true;
    a->flushed = true;
    return a->epoch < ACCESS_LOCK_SHARED;
}

void access_log_flush(struct access_log *l, int32_t origin) { keep_if(l, stays_behind_flush, &(struct ending){.origin = origin}); }

static bool is_no_old_read(struct access *a, const struct ending *e)
{
    return a->origin != e->origin || a->epoch < ACCESS_LOCK_SHARED || !only_reads(a) || a->last > e->upto;
}

void access_log_reads_over(struct access_log *l, int32_t origin, uint64_t upto)
{
    if (upto) keep_if(l, is_no_old_read, &(struct ending){origin, upto});
}

static bool is_behind_fence(struct access *a, const struct ending *e) { return a->fences >= e->upto; }

void access_log_fence(struct access_log *l, uint64_t fences)
{
    if (fences <= l->fences) return;
    l->fences = fences;
    keep_if(l, is_behind_fence, &(struct ending){.upto = fences});
}

static bool is_of_no_exposure(struct access *a, const struct ending *e)
{
    (void)e;
    return a->epoch != ACCESS_START;
}

void access_log_end_exposure(struct access_log *l) { keep_if(l, is_of_no_exposure, NULL); }

static bool is_of_another(struct access *a, const struct ending *e) { return a->origin != e->origin; }

void access_log_forget(struct access_log *l, int32_t origin) { keep_if(l, is_of_another, &(struct ending){.origin = origin}); }

void access_log_close(struct access_log *l)
{
    free(l->of);
    *l = (struct access_log){0};
}
