/* checking.c - see checking.h. */
#include "rma/checking.h"
#include "base/err.h"
#include "base/var.h"
#include "obj/info.h"
#include "pt2pt/lane.h"
#include "rma/runs.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FRAMES 24 /* of the library that a call is looked for behind */

/* What is kept of an origin. */
struct noted {
    bool has_note, has_conflict;
    struct win_note note;         /* of its next operations */
    struct win_conflict conflict; /* the first that it has not been told of */
};

struct win_checking {
    uint64_t calls, fences; /* of this process: operations called, MPI_Win_fence ended */
    struct access_log log;
    struct noted **noted;   /* by rank, NULL: nothing so far */
    bool has_said;          /* that the log is full */
};

bool checking_wanted(void) { return var_has(VAR_CHECK, "rma"); }

int checking_open(struct win *w)
{
    if (!checking_wanted()) return 0;
    struct win_checking *c = calloc(1, sizeof *c);
    struct noted **noted = calloc((size_t)w->comm->size, sizeof(struct noted *));
    if (!c || !noted) {
        free(c);
        free(noted);
        return err_set(TERN_ERR_NOMEM, "no memory to compare operations on a window");
    }
    c->noted = noted;
    w->checking = c;
    return 0;
}

void checking_close(struct win *w)
{
    struct win_checking *c = w->checking;
    if (!c) return;
    for (int32_t r = 0; r < w->comm->size; r++) free(c->noted[r]);
    free(c->noted);
    access_log_close(&c->log);
    free(c);
    w->checking = NULL;
}

static struct noted *noted_of(struct win *w, int32_t origin)
{
    struct noted **n = &w->checking->noted[origin];
    if (!*n) *n = calloc(1, sizeof **n);
    if (!*n) lane_fatal("no memory to compare operations on a window");
    return *n;
}

/* ---- calls ---- */

static const struct call {
    const char *name;
    bool gets; /* with a request, which may say that all is read */
} calls[] = {
    {"MPI_Put", false}, {"MPI_Put_c", false}, {"MPI_Rput", false}, {"MPI_Rput_c", false},
    {"MPI_Get", false}, {"MPI_Get_c", false}, {"MPI_Rget", true}, {"MPI_Rget_c", true},
    {"MPI_Accumulate", false}, {"MPI_Accumulate_c", false}, {"MPI_Raccumulate", false}, {"MPI_Raccumulate_c", false},
    {"MPI_Get_accumulate", false}, {"MPI_Get_accumulate_c", false}, {"MPI_Rget_accumulate", true}, {"MPI_Rget_accumulate_c", true},
    {"MPI_Fetch_and_op", false}, {"MPI_Compare_and_swap", false},
};

static uint8_t index_of_call(const char *name)
{
    uint8_t i = 0;
    while (i < ARRAY_LEN(calls) - 1 && strcmp(calls[i].name, name)) i++;
    return i;
}

static const char *const epochs[ACCESS_EPOCHS] = {"MPI_Win_fence", "MPI_Win_start", "MPI_Win_lock, shared", "MPI_Win_lock, exclusive",
                                                  "MPI_Win_lock_all"};

static enum access_epoch epoch_of(const struct win_target *t)
{
    switch (t->open) {
    case WIN_STARTED: return ACCESS_START;
    case WIN_LOCKED_EXCLUSIVE: return ACCESS_LOCK_EXCLUSIVE;
    case WIN_LOCKED_SHARED: return t->win->access == WIN_LOCK_ALL ? ACCESS_LOCK_ALL : ACCESS_LOCK_SHARED;
    case WIN_CLOSED: break;
    }
    return ACCESS_FENCE;
}

/* Cut so that the end remains: a place in a file, without the folders. */
static void take_place(char *place, const char *symbol)
{
    const char *slash = strrchr(symbol, '/'), *from = slash ? slash + 1 : symbol, *end = strstr(from, " [");
    size_t n = end ? (size_t)(end - from) : strlen(from);
    if (n >= ACCESS_PLACE) from += n - (ACCESS_PLACE - 1), n = ACCESS_PLACE - 1;
    memcpy(place, from, n);
}

static bool is_of_library(const void *address)
{
    Dl_info own, is;
    return dladdr((void *)(uintptr_t)is_of_library, &own) && dladdr(address, &is) && is.dli_fbase == own.dli_fbase;
}

/* Where the program has called the library: "file(function+offset)", or what is known of that. Sanitizers have a backtrace of
 * their own, which is the first frame. */
static void find_place(char place[ACCESS_PLACE])
{
    void *frame[FRAMES];
    memset(place, 0, ACCESS_PLACE);
    int n = backtrace(frame, FRAMES), i = 0;
    while (i < n && !is_of_library(frame[i])) i++;
    while (i < n && is_of_library(frame[i])) i++;
    char **symbol = i < n ? backtrace_symbols(&frame[i], 1) : NULL;
    if (symbol) take_place(place, symbol[0]);
    free(symbol);
}

void checking_note(const struct win_target *t, const struct win_op *a, struct win_note *note)
{
    struct win_checking *c = t->win->checking;
    *note = (struct win_note){.number = ++c->calls, .fences = c->fences, .reads_over = t->reads_over, .call = index_of_call(a->call),
                              .epoch = (uint8_t)epoch_of(t)};
    find_place(note->place);
}

void checking_flush_local(struct win_target *t) { t->reads_over = t->win->checking->calls; }

/* ---- the log ---- */

static struct access_rules rules_of(const struct win *w)
{
    static const char *const orders[] = {"rar", "raw", "war", "waw"};
    struct access_rules r = {0};
    struct info *hints = w->info ? info_snapshot(&w->info) : NULL;
    if (!hints) return r;
    const char *ops = info_get(hints, "accumulate_ops"), *order = info_get(hints, "accumulate_ordering");
    r.same_op = ops && !strcmp(ops, "same_op");
    for (size_t i = 0; order && i < ARRAY_LEN(orders); i++) r.unordered |= !strstr(order, orders[i]);
    info_free(hints);
    return r;
}

/* The first conflict of an origin is kept. */
static void tell(struct win *w, const struct access *own, const struct access *other, enum access_clash why)
{
    struct noted *n = noted_of(w, own->origin);
    if (n->has_conflict) return;
    n->has_conflict = true;
    n->conflict = (struct win_conflict){.own = *own, .other = *other, .why = (uint32_t)why};
}

static void say_once(struct win *w)
{
    struct win_checking *c = w->checking;
    if (c->has_said || !c->log.dropped) return;
    c->has_said = true;
    fprintf(stderr, "tern: rank %d of a window: more than %d operations on its memory are under way; TERN_CHECK=rma compares the latest\n",
            w->comm->rank, ACCESS_MOST);
}

static void enter(struct win *w, const struct access *a, const struct access_rules *rules)
{
    struct access other;
    enum access_clash why = access_log_add(&w->checking->log, a, rules, &other);
    say_once(w);
    if (!why) return;
    tell(w, a, &other, why);
    if (!other.flushed && other.origin != a->origin) tell(w, &other, a, why);
}

/* What all runs of an operation have in common. */
static struct access access_of(int32_t origin, const struct win_note *n, uint8_t kind, uint8_t op, uint16_t type)
{
    struct access a = {.first = n->number, .last = n->number, .fences = n->fences, .origin = origin, .kind = kind, .op = op, .type = type,
                       .call = n->call, .epoch = n->epoch};
    a.brief = calls[n->call].gets && (kind == WIN_GET || op == OP_NO_OP) && n->epoch >= ACCESS_LOCK_SHARED;
    memcpy(a.place, n->place, sizeof a.place);
    return a;
}

/* A run, `each`: bytes of its elements. */
static void enter_run(struct win *w, struct access *a, const struct access_rules *rules, int64_t displacement, const struct win_run *run,
                      int64_t each)
{
    int64_t bytes;
    if (__builtin_mul_overflow(displacement, (int64_t)w->unit, &a->begin) || __builtin_add_overflow(a->begin, run->offset, &a->begin) ||
        __builtin_mul_overflow(run->count, each, &bytes) || __builtin_add_overflow(a->begin, bytes, &a->end))
        return;
    if (w->flavor != MPI_WIN_FLAVOR_DYNAMIC && (a->begin < 0 || a->end > (int64_t)w->bytes)) return; /* it was refused */
    a->phase = (uint8_t)((uint64_t)a->begin % (uint64_t)each);
    enter(w, a, rules);
}

bool checking_on_note(struct win *w, int32_t origin, const void *note)
{
    struct noted *n = noted_of(w, origin);
    memcpy(&n->note, note, sizeof n->note);
    n->has_note = n->note.call < ARRAY_LEN(calls) && n->note.epoch < ACCESS_EPOCHS;
    access_log_reads_over(&w->checking->log, origin, n->note.reads_over);
    return n->has_note;
}

void checking_on_op(struct win *w, int32_t origin, const struct win_record *r, const char *runs)
{
    const struct noted *n = noted_of(w, origin);
    const struct type *basic = r->kind >= WIN_ACCUMULATE ? type_of((MPI_Datatype)(uintptr_t)r->type) : NULL;
    if (!n->has_note) return;
    struct access a = access_of(origin, &n->note, r->kind, r->op, r->type);
    struct access_rules rules = rules_of(w);
    struct win_run run = {r->offset, r->count};
    int64_t each = basic ? basic->extent : 1;
    if (!r->runs) enter_run(w, &a, &rules, r->displacement, &run, each);
    for (uint32_t i = 0; i < r->runs; i++) {
        memcpy(&run, runs + i * sizeof run, sizeof run);
        enter_run(w, &a, &rules, r->displacement, &run, each);
    }
}

void checking_on_flush(struct win *w, int32_t origin) { access_log_flush(&w->checking->log, origin); }

bool checking_conflict(struct win *w, int32_t origin, struct win_conflict *out)
{
    struct noted *n = noted_of(w, origin);
    bool met = n->has_conflict;
    if (met) *out = n->conflict;
    n->has_conflict = false;
    return met;
}

/* ---- this process on its own memory ---- */

/* What it is to be told of. */
static int told(const struct win_target *t)
{
    struct win_conflict c;
    return checking_conflict(t->win, t->rank, &c) ? checking_words(t, &c) : 0;
}

int checking_own(const struct win_target *t, const struct win_op *op)
{
    struct win *w = t->win;
    struct win_runs runs;
    struct win_run run;
    struct win_note note;
    checking_note(t, op, &note);
    access_log_reads_over(&w->checking->log, t->rank, note.reads_over);
    const struct type *basic = op->basic;
    struct access a = access_of(t->rank, &note, (uint8_t)op->kind, op->op ? op->op->index : 0, basic ? (uint16_t)(uintptr_t)basic->self : 0);
    struct access_rules rules = rules_of(w);
    win_runs_init(&runs, op->ttype, op->tcount, NULL, basic);
    for (char *at; (run.count = win_runs_next(&runs, INT64_MAX, &at)) > 0;) {
        run.offset = (int64_t)(intptr_t)at;
        enter_run(w, &a, &rules, op->displacement, &run, basic ? basic->extent : 1);
    }
    return told(t);
}

int checking_flush_own(const struct win_target *t)
{
    if (t->rank != t->win->comm->rank) return 0;
    checking_on_flush(t->win, t->rank);
    return told(t);
}

/* ---- what ends ---- */

void checking_fence(struct win *w)
{
    lane_enter(w->comm->lane);
    access_log_fence(&w->checking->log, ++w->checking->fences);
    lane_leave(w->comm->lane);
}

void checking_end_exposure(struct win *w) { access_log_end_exposure(&w->checking->log); }

void checking_forget(struct win *w, int32_t origin)
{
    if (w->checking) access_log_forget(&w->checking->log, origin);
}

/* ---- words ---- */

static const char *const reasons[CLASHES] = {
    [CLASH_NONE] = "why is not known",
    [CLASH_PUT] = "a put must not meet another access",
    [CLASH_GET] = "a get must not meet an accumulate",
    [CLASH_TYPES] = "accumulates must have the same predefined type",
    [CLASH_ELEMENTS] = "accumulates must meet at whole elements",
    [CLASH_OPERATORS] = "accumulates must have the same operator (accumulate_ops)",
};

/* "MPI_Accumulate (MPI_SUM)" */
static void call_in_words(const struct access *a, char *to, size_t room)
{
    const char *call = a->call < ARRAY_LEN(calls) ? calls[a->call].name : "a call";
    const char *op = a->kind == WIN_ACCUMULATE || a->kind == WIN_GET_ACCUMULATE ? op_name_of(a->op) : NULL;
    const struct type *t = a->type && (op || a->kind == WIN_COMPARE_AND_SWAP) ? type_of((MPI_Datatype)(uintptr_t)a->type) : NULL;
    if (t && t->predefined) snprintf(to, room, "%s (%s%s%s)", call, op ? op : "", op ? ", " : "", type_name(t));
    else snprintf(to, room, "%s", call);
}

/* Neither longer than it is, nor what a terminal would obey. */
static void place_in_words(const struct access *a, char *to, size_t room)
{
    char place[ACCESS_PLACE + 1] = {0};
    memcpy(place, a->place, ACCESS_PLACE);
    for (char *c = place; *c; c++)
        if (*c < ' ' || *c > '~') *c = '?';
    snprintf(to, room, "%s%s", *place ? " at " : "", place);
}

static void numbers_in_words(const struct access *a, char *to, size_t room)
{
    if (a->first == a->last) snprintf(to, room, "call %llu", (unsigned long long)a->last);
    else snprintf(to, room, "calls %llu to %llu", (unsigned long long)a->first, (unsigned long long)a->last);
}

static void access_in_words(const struct access *a, bool dynamic, char *to, size_t room)
{
    char call[96], place[ACCESS_PLACE + 8], numbers[64];
    call_in_words(a, call, sizeof call);
    place_in_words(a, place, sizeof place);
    numbers_in_words(a, numbers, sizeof numbers);
    snprintf(to, room, dynamic ? "%s of rank %d (%s%s, bytes 0x%llx to 0x%llx, %s)" : "%s of rank %d (%s%s, bytes %lld to %lld, %s)", call,
             a->origin, numbers, place, (long long)a->begin, (long long)a->end - 1,
             a->epoch < ACCESS_EPOCHS ? epochs[a->epoch] : "an epoch");
}

int checking_words(const struct win_target *t, const struct win_conflict *c)
{
    char own[224], other[224];
    bool dynamic = t->win->flavor == MPI_WIN_FLAVOR_DYNAMIC;
    access_in_words(&c->own, dynamic, own, sizeof own);
    access_in_words(&c->other, dynamic, other, sizeof other);
    return err_set(TERN_ERR_WIN_CONFLICT, "%s conflicts with %s at the window's memory of rank %d: %s", own, other, t->rank,
                   reasons[c->why < CLASHES ? c->why : CLASH_NONE]);
}
