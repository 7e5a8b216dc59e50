/* near.c - see near.h. */
#include "rma/near.h"
#include "base/err.h"
#include "copy/copy.h"
#include "pt2pt/lane.h"
#include "rma/apply.h"
#include "rma/atomics.h"
#include "rma/dock.h"
#include "rma/letters.h"
#include "rma/mail.h"
#include "rma/runs.h"
#include "transport/endpoint.h"
#include "transport/peer.h"

#include <mpi.h>
#include <stdlib.h>

#define SMALL ((size_t)512)      /* bytes of elements that are worked on at a time: on the stack, ... */
#define CHUNK ((size_t)64 << 10) /* ... and else */
#define PIECES 64                /* of memory in one call of the system */

/* ---- locks ---- */

static const struct win_locking *locking(const struct win_target *t, int which) { return which ? &t->accumulate : &t->lock; }

struct turn {
    struct win_target *t;
    int which;
};

static bool is_free(void *turn)
{
    const struct turn *u = turn;
    return !u->t->taking[u->which];
}

static bool is_granted(void *turn)
{
    const struct turn *u = turn;
    return u->t->peer->lost || win_lock_is_granted(locking(u->t, u->which));
}

static int await_grant(struct win_target *t, int which, enum win_lock_mode mode)
{
    struct lane *l = t->win->comm->lane;
    struct turn u = {t, which};
    t->taking[which] = true;
    lane_wait(l, is_granted, &u, NULL);
    t->taking[which] = false;
    lane_changed(l); /* for other threads of this process that want it */
    if (!t->peer->lost) {
        win_lock_granted(locking(t, which));
        return 0;
    }
    win_lock_withdraw(locking(t, which), mode);
    return err_set(TERN_ERR_PEER, "%s", t->peer->lost);
}

/* Several threads may be told that it is free, and one comes first. It may have taken the lock of an epoch for all of them. */
static bool is_taken_by_another(struct win_target *t, int which)
{
    struct turn u = {t, which};
    while (t->taking[which]) lane_wait(t->win->comm->lane, is_free, &u, NULL);
    return !which && t->held;
}

int near_take(struct win_target *t, int which, enum win_lock_mode mode)
{
    const struct win_locking *k = locking(t, which);
    if (unlikely(t->taking[which]) && is_taken_by_another(t, which)) return 0;
    if (mode == WIN_LOCK_EXCLUSIVE ? win_lock_try_exclusive(k) : win_lock_try_shared(k)) return 0;
    return win_lock_request(k, mode) ? 0 : await_grant(t, which, mode);
}

void near_give(struct win_target *t, int which, enum win_lock_mode mode)
{
    if (mode == WIN_LOCK_EXCLUSIVE) win_lock_give_exclusive(locking(t, which));
    else win_lock_give_shared(locking(t, which));
}

/* ---- which way ---- */

/* The memory of an operation, and the place there that its displacement names. */
struct place {
    const struct win_memory *m;
    int64_t offset; /* from the start of the memory; the type may begin before or behind it */
};

static bool can(const struct win_target *t, const struct win_op *a, const struct win_memory *m)
{
    if (m->at) return true;
    return t->peer->ep.caps & TP_CAP_GETPUT && !(a->kind >= WIN_ACCUMULATE && m->common);
}

/* Displacements are addresses. */
static int find_attached(struct win_target *t, const struct win_op *a, struct place *p)
{
    int64_t first, span = type_span(a->ttype, a->tcount, &first);
    p->m = memory_of(t, (uint64_t)a->displacement + (uint64_t)first, (uint64_t)span);
    if (!p->m || !can(t, a, p->m)) return TERN_ERR_UNSUPPORTED;
    p->offset = (int64_t)((uint64_t)a->displacement - p->m->address);
    return 0;
}

static int find_place(struct win_target *t, const struct win_op *a, struct place *p)
{
    const struct win_memory *m = p->m = &t->memory;
    int64_t first, span = type_span(a->ttype, a->tcount, &first), low, high;
    if (t->win->flavor == MPI_WIN_FLAVOR_DYNAMIC) return find_attached(t, a, p);
    bool inside = !__builtin_mul_overflow(a->displacement, t->unit, &p->offset) && !__builtin_add_overflow(p->offset, first, &low) &&
                  !__builtin_add_overflow(low, span, &high) && low >= 0 && (uint64_t)high <= m->bytes;
    if (!inside && span)
        return err_set(TERN_ERR_WIN_RANGE,
                       "%lld bytes at displacement %lld (times %lld) are not within the window's memory at rank %d, which has %llu",
                       (long long)span, (long long)a->displacement, (long long)t->unit, t->rank, (unsigned long long)m->bytes);
    return can(t, a, m) ? 0 : TERN_ERR_UNSUPPORTED;
}

/* ---- put and get by the system ---- */

/* The next pieces of both, of the same bytes in all: at most `most`. */
static size_t match_pieces(struct type_cursor *a, struct iovec *ia, int *na, struct type_cursor *b, struct iovec *ib, int *nb, size_t most)
{
    struct type_cursor begin = *a;
    *na = *nb = PIECES;
    size_t n = type_iov(a, ia, na, most);
    size_t m = type_iov(b, ib, nb, n);
    if (m == n) return n;
    *a = begin;
    *na = PIECES;
    return type_iov(a, ia, na, m);
}

static int copy_by_system(struct win_target *t, struct type_cursor *here, struct type_cursor *there, bool put)
{
    struct iovec mine[PIECES], its[PIECES];
    int n, m;
    while (match_pieces(here, mine, &n, there, its, &m, (size_t)1 << 30)) {
        int rc = put ? ep_put(&t->peer->ep, mine, n, its, m) : ep_get(&t->peer->ep, mine, n, its, m);
        if (rc) return rc;
    }
    return 0;
}

/* In one piece on both sides. TERN_ERR_UNSUPPORTED: it is not, or is too much for a letter. */
static int move_by_letter(struct win_target *t, const struct win_op *a, uint64_t address, size_t n)
{
    const struct type *own = a->kind == WIN_PUT ? a->otype : a->rtype;
    if (n > LETTERS_MOST || !own->contig) return TERN_ERR_UNSUPPORTED;
    if (a->kind == WIN_PUT) return letters_put(t, address, (const char *)a->origin + own->true_lb, n);
    return letters_get(t, address, (char *)a->result + own->true_lb, n);
}

static int move_private(struct win_target *t, const struct win_op *a, const struct place *p)
{
    struct type_cursor here, there;
    bool put = a->kind == WIN_PUT, whole = a->ttype->contig;
    int64_t n = a->tcount * a->ttype->size, done = 0;
    uint64_t address = p->m->address + (uint64_t)p->offset;
    int rc = whole ? move_by_letter(t, a, address + (uint64_t)a->ttype->true_lb, (size_t)n) : TERN_ERR_UNSUPPORTED;
    if (rc != TERN_ERR_UNSUPPORTED) return rc;
    if (put) type_cursor_init(&here, a->otype, a->ocount, a->origin);
    else type_cursor_init(&here, a->rtype, a->rcount, a->result);
    type_cursor_init(&there, a->ttype, a->tcount, (void *)(uintptr_t)address);
    rc = whole ? dock_do(t, a, address + (uint64_t)a->ttype->true_lb, n, put ? &here : NULL, put ? NULL : &here, &done) : 0;
    type_cursor_seek(&there, (size_t)done);
    return rc || done == n ? rc : copy_by_system(t, &here, &there, put);
}

/* ---- put and get by loads and stores ---- */

static void move_mapped(const struct win_op *a, const struct place *p)
{
    char *at = p->m->at + p->offset;
    if (a->kind == WIN_PUT) type_copy_across(at, a->tcount, a->ttype, a->origin, a->ocount, a->otype);
    else type_copy_across(a->result, a->rcount, a->rtype, at, a->tcount, a->ttype);
}

/* ---- accumulates ---- */

/* What is done with the elements of one operation, chunk by chunk. */
struct work {
    struct win_target *t;
    const struct win_op *a;
    const struct win_memory *m;
    struct type_cursor from, to; /* data; what was there */
    char *data, *before, *copy;  /* `chunk` bytes each */
    size_t chunk;
    bool has_data, fetches;
    bool alone; /* nobody else changes the elements */
    bool begun; /* some have been changed */
};

/* The next n elements of the origin: where they lie, or copied from there. */
static const char *next_data(struct work *k, int64_t n)
{
    const struct type *basic = k->a->basic;
    if (!k->has_data || k->a->kind == WIN_COMPARE_AND_SWAP) return k->a->origin;
    if (win_has_gaps(basic) || !k->from.type->contig) {
        win_elements_out(&k->from, basic, k->data, n);
        return k->data;
    }
    const char *at = k->from.buf + k->from.pos;
    k->from.pos += (size_t)(n * basic->size);
    return at;
}

static void change(const struct work *k, void *at, const char *data, int64_t n, bool atomic)
{
    const struct win_op *a = k->a;
    char *before = k->fetches ? k->before : NULL;
    if (a->kind == WIN_COMPARE_AND_SWAP) (atomic ? swap_atomic : swap_alone)(a->basic, at, a->compare, data, before);
    else (atomic ? apply_atomic : apply_alone)(a->op, a->basic, at, k->has_data ? data : NULL, before, n);
}

/* Elements in the target's memory: by the target, or through a copy of them here. */
static int change_private(const struct work *k, uint64_t address, const char *data, int64_t n)
{
    size_t bytes = (size_t)(n * k->a->basic->extent);
    char *before = k->fetches ? k->before : NULL;
    int rc = bytes <= LETTERS_MOST ? letters_change(k->t, k->a, address, k->has_data ? data : NULL, before, n) : TERN_ERR_UNSUPPORTED;
    if (rc != TERN_ERR_UNSUPPORTED) return rc;
    struct iovec here = {k->copy, bytes}, there = {(void *)(uintptr_t)address, bytes};
    rc = ep_get(&k->t->peer->ep, &here, 1, &there, 1);
    if (rc) return rc;
    change(k, k->copy, data, n, false);
    return win_op_changes(k->a) ? ep_put(&k->t->peer->ep, &here, 1, &there, 1) : 0;
}

static int take_accumulate(struct win_target *t) { return near_take(t, 1, WIN_LOCK_EXCLUSIVE); }

/* A run of elements, where it is mapped here. */
static int change_mapped_run(struct work *k, char *at, int64_t n)
{
    bool atomic = k->m->common && !k->alone && apply_can_be_atomic(k->a->basic, at);
    bool entered = atomic && atomics_enter(k->t->exposure, k->t->busy), locked = !entered && !k->alone;
    const char *data = next_data(k, n);
    int rc = locked ? take_accumulate(k->t) : 0;
    if (rc) return rc;
    change(k, at, data, n, atomic); /* atomic with the lock, too: perhaps they are not stopped any more */
    if (entered) atomics_leave(k->t->busy);
    else if (atomic) atomics_note_few(k->t->exposure);
    if (locked) near_give(k->t, 1, WIN_LOCK_EXCLUSIVE);
    if (k->fetches) win_elements_in(&k->to, k->a->basic, k->before, n);
    return 0;
}

/* The same at an address of the target. Nobody else changes them. */
static int change_private_run(struct work *k, uint64_t address, int64_t n)
{
    const struct type *basic = k->a->basic;
    int64_t done = 0, most = (int64_t)k->chunk / basic->extent;
    int rc = 0;
    if ((size_t)(n * basic->extent) > LETTERS_MOST)
        rc = dock_do(k->t, k->a, address, n, k->has_data ? &k->from : NULL, k->fetches ? &k->to : NULL, &done);
    for (int64_t now; !rc && done < n; done += now) {
        now = min_int64(n - done, most);
        k->begun |= done;
        rc = change_private(k, address + (uint64_t)(done * basic->extent), next_data(k, now), now);
        if (!rc && k->fetches) win_elements_in(&k->to, basic, k->before, now);
    }
    return rc;
}

static int change_all(struct work *k, int64_t offset)
{
    struct win_runs where;
    const struct win_op *a = k->a;
    char *base = k->m->at ? k->m->at : (char *)(uintptr_t)k->m->address, *at;
    int64_t most = k->m->at ? (int64_t)k->chunk / a->basic->extent : INT64_MAX;
    int rc = 0;
    win_runs_init(&where, a->ttype, a->tcount, base + offset, a->basic);
    for (int64_t n; !rc && (n = win_runs_next(&where, most, &at)) > 0;)
        rc = k->m->at ? change_mapped_run(k, at, n) : change_private_run(k, (uint64_t)(uintptr_t)at, n), k->begun |= !rc;
    if (rc != TERN_ERR_UNSUPPORTED || !k->begun) return rc;
    return err_set(TERN_ERR_SYSTEM, "a part of an accumulate to rank %d is done, and the system permits no more of it", k->t->rank);
}

/* So many elements that it is worth to stop the others' atomic operations. */
static bool are_many(struct win_target *t, const struct win_op *a, const struct win_memory *m)
{
    return t->win->near.stops && m->common && m->at &&
           atomics_are_many(t->exposure, (uint64_t)(a->tcount * a->ttype->size), &t->unstopped);
}

static void stop_atomics(struct win_target *t)
{
    atomics_stop(t->exposure, t->busy - t->accumulate.own, &t->accumulate);
    t->unstopped = 0;
}

static int accumulate(struct win_target *t, const struct win_op *a, const struct place *p)
{
    char small[3 * SMALL], *large = NULL;
    const struct win_memory m = *p->m; /* others may replace what is known of attached memory while this one waits for a lock */
    struct work k = {.t = t, .a = a, .m = &m, .alone = t->open == WIN_LOCKED_EXCLUSIVE, .fetches = win_op_fetches(a)};
    k.has_data = a->kind == WIN_COMPARE_AND_SWAP || a->op->index != OP_NO_OP;
    k.chunk = SMALL;
    if (a->tcount * a->ttype->size > (int64_t)SMALL && (large = malloc(3 * CHUNK))) k.chunk = CHUNK; /* without, it is slower */
    k.data = large ? large : small;
    k.before = k.data + k.chunk;
    k.copy = k.before + k.chunk;
    if (k.has_data && a->otype) type_cursor_init(&k.from, a->otype, a->ocount, a->origin);
    if (k.fetches) type_cursor_init(&k.to, a->rtype, a->rcount, a->result);
    bool stops = !k.alone && are_many(t, a, &m), locked = stops || (!k.alone && !m.at);
    int rc = locked ? take_accumulate(t) : 0;
    if (!rc && stops) stop_atomics(t);
    k.alone |= locked;
    if (!rc) rc = change_all(&k, p->offset);
    if (rc) err_keep(t, rc); /* who is given the lock may be dead as well */
    if (locked) near_give(t, 1, WIN_LOCK_EXCLUSIVE);
    if (rc) err_recall(t, rc);
    free(large);
    return rc;
}

int near_flush(struct win_target *t)
{
    int rc = letters_flush(t), docked = dock_flush(t);
    return rc ? rc : docked;
}

int near_do(struct win_target *t, const struct win_op *a)
{
    struct place p;
    int rc = find_place(t, a, &p);
    if (rc) return rc;
    if (!p.m->at && (rc = win_target_given_up(t))) return rc;
    if (!p.m->at) mail_look(t->win); /* two processes that put to each other help each other */
    if (a->kind >= WIN_ACCUMULATE) return accumulate(t, a, &p);
    if (!p.m->at) return move_private(t, a, &p);
    move_mapped(a, &p);
    return 0;
}
