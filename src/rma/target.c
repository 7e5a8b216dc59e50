/* target.c - see target.h. */
#include "rma/target.h"
#include "base/err.h"
#include "proc/jobs.h"
#include "proc/proc.h"
#include "pt2pt/lane.h"
#include "rma/dock.h"
#include "rma/letters.h"
#include "rma/mail.h"
#include "transport/endpoint.h"
#include "transport/peer.h"
#include "transport/wires.h"

#include <stdlib.h>

struct win_target win_nobody = {.rank = -1};

/* ---- the table ---- */

static uint32_t place_of(const struct win *w, int32_t rank) { return ((uint32_t)rank * 0x9e3779b9u >> 7) & (w->room - 1); }

/* Where the rank is, or would be entered. */
static struct win_target **find(const struct win *w, int32_t rank)
{
    uint32_t at = place_of(w, rank);
    while (w->targets[at] && w->targets[at]->rank != rank) at = (at + 1) & (w->room - 1);
    return &w->targets[at];
}

struct win_target *win_target_known(const struct win *w, int32_t rank) { return w->room ? *find(w, rank) : NULL; }

/* At most half of it is in use. */
static int grow(struct win *w)
{
    struct win_target **old = w->targets;
    uint32_t before = w->room, room = before ? 2 * before : 8;
    if (2 * (w->count + 1) <= before) return 0;
    struct win_target **more = calloc(room, sizeof(struct win_target *));
    if (!more) return err_set(TERN_ERR_NOMEM, "no memory for the targets of a window");
    w->targets = more;
    w->room = room;
    for (uint32_t i = 0; i < before; i++)
        if (old[i]) *find(w, old[i]->rank) = old[i];
    free(old);
    return 0;
}

int win_targets_each(struct win *w, int (*each)(struct win_target *))
{
    for (uint32_t i = 0; i < w->room; i++) {
        int rc = w->targets[i] ? each(w->targets[i]) : 0;
        if (rc) return rc;
    }
    return 0;
}

/* ---- near ones ---- */

/* The process of a seat. */
static int32_t rank_of_seat(const struct win_target *t, uint32_t seat)
{
    const struct win_near *n = &t->win->near;
    return seat < (uint32_t)n->n ? n->rank[seat] : t->rank; /* the last seat is the target's */
}

/* It waits for a word in memory, and has no connection to this process perhaps. It may be a thread of this one, or what this
 * process serves. Lane held. */
static void wake(void *target, uint32_t seat)
{
    struct win_target *t = target;
    struct comm *c = t->win->comm;
    int32_t rank = rank_of_seat(t, seat);
    if (rank != c->rank) {
        peer_wake(comm_index(c, rank));
        return;
    }
    lane_changed(c->lane);
    bell_check(wires_bell(), true);
    bell_check_again(wires_bell());
}

static bool is_dead(void *target, uint32_t seat)
{
    struct win_target *t = target;
    uint32_t index = comm_index(t->win->comm, rank_of_seat(t, seat));
    const struct peer *p = peer_known(index);
    return (p && p->lost) || proc_has_died(index);
}

static const struct win_lock_ops lock_ops = {.wake = wake, .is_dead = is_dead};

/* The seat that has this rank; -1: it is not near. */
static int32_t seat_of(const struct win_near *n, int32_t rank)
{
    int32_t low = 0, high = n->n;
    while (low < high) {
        int32_t middle = (low + high) / 2;
        if (n->rank[middle] < rank) low = middle + 1;
        else high = middle;
    }
    return low < n->n && n->rank[low] == rank ? low : -1;
}

/* The exposure of a seat, as it is mapped here; NULL: it cannot be. */
static struct win_exposure *map_exposure(const struct win *w, int32_t seat, struct peer *p)
{
    const struct win_near *n = &w->near;
    if (seat == n->own) return n->exposure;
    if (!n->place || !n->place[seat] || !(p->ep.caps & TP_CAP_MAP)) return NULL;
    return ep_map(&p->ep, n->place[seat], exposure_bytes(n->n, win_has_mail(w)));
}

/* The memory itself: this process's, or mapped by its key. Without a key it may be reached by its address. */
static int open_memory(struct win_target *t)
{
    const struct win *w = t->win;
    const struct win_exposure *x = t->exposure;
    t->unit = x->unit;
    int rc = memory_open(t, &x->memory, &t->memory);
    if (w->together) t->memory.at = (w->block ? w->block->at : (char *)w->memory) + x->memory.address;
    return rc;
}

static int be_near(struct win_target *t, int32_t seat)
{
    const struct win_near *n = &t->win->near;
    struct win_exposure *x = map_exposure(t->win, seat, t->peer);
    if (!x) return 0;
    struct win_locking common = {.n = (uint32_t)n->n + 1, .own = (uint32_t)n->own, .ops = &lock_ops, .arg = t};
    t->exposure = x;
    t->lock = t->accumulate = common;
    t->lock.lock = &x->lock;
    t->lock.seats = x->seats;
    t->accumulate.lock = &x->accumulate;
    t->accumulate.seats = x->seats + common.n;
    t->busy = x->seats + 2 * common.n + common.own;
    t->seat = (uint32_t)seat;
    if (win_has_mail(t->win)) mail_find(t, exposure_mail(x, n->n));
    return open_memory(t);
}

/* ---- their life ---- */

static void close_target(struct win_target *t)
{
    memory_close(&t->memory);
    memory_close(&t->mailbox);
    attached_close(&t->attached);
    letters_close(t);
    dock_close(t);
    free(t);
}

static struct win_target *make(struct win *w, int32_t rank)
{
    struct peer *p = peer_get(comm_index(w->comm, rank));
    if (!p) return NULL;
    struct win_target *t = calloc(1, sizeof *t);
    if (!t) {
        err_set(TERN_ERR_NOMEM, "no memory for a target of a window");
        return NULL;
    }
    *t = (struct win_target){.rank = rank, .win = w, .peer = p};
    int32_t seat = seat_of(&w->near, rank);
    if (seat < 0 || !be_near(t, seat)) return t;
    close_target(t);
    return NULL;
}

struct win_target *win_target(struct win *w, int32_t rank)
{
    struct win_target *t = win_target_known(w, rank);
    if (!t) {
        if (grow(w) || !(t = make(w, rank))) return NULL;
        *find(w, rank) = t;
        w->count++;
    }
    if (likely(!w->checking)) atomic_store_explicit(&w->last, t, memory_order_release); /* pairs with win_target_last */
    return t;
}

int win_target_gives_up(const struct win_target *t, int64_t lost)
{
    const struct comm *c = t->win->comm;
    if (lost < 0 || lost >= comm_peers(c))
        return err_set(TERN_ERR_PEER, "rank %d has given up its part of the window, which was not made by all", t->rank);
    jobs_note_loss(comm_index(c, (int32_t)lost));
    return err_set(TERN_ERR_PEER, "rank %d has given up its part of the window, as rank %d was lost", t->rank, (int)lost);
}

int win_target_given_up(const struct win_target *t)
{
    uint32_t word = atomic_load_explicit(&t->exposure->given_up, memory_order_acquire);
    return likely(!word) ? 0 : win_target_gives_up(t, (int64_t)word - 2);
}

void win_targets_close(struct win *w)
{
    for (uint32_t i = 0; i < w->room; i++)
        if (w->targets[i]) close_target(w->targets[i]);
    free(w->targets);
    w->targets = NULL;
    w->room = w->count = 0;
    atomic_store_explicit(&w->last, &win_nobody, memory_order_relaxed);
}
