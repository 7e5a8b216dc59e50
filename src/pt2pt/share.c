/*
 * share.c - which threads may be in a lane: its lock, the helper's way in (drawn in lane.h), and how
 * a lane that one thread at a time used without the lock becomes one that threads share, while a
 * thread may be anywhere: outside, in the middle of a call, or asleep in a receive.
 *
 * The thread that makes the lanes shared takes the locks of all, and sets LANE_THREADED in their modes; from then
 * on all threads take the lock. Sends on the short way, which takes no lock, find no peers any more. What a thread
 * began before goes on without the lock, and the locks are not given back until it is over. Two things tell that:
 *
 *   quiet        what is outside of sections - a short send, a reference counted - is a few
 *                hundred instructions without a loop (base/quiet.h)
 *   lane_inside  counts the sections (lane_enter) that the thread is in, whatever their lanes; one that waits
 *                notices, and queues for the lock (lane_catch_up)
 *
 * Until then nobody else comes in, so a thread that finds `lane_inside` set is the one it counts. A thread asleep in
 * a wait is not inside. It is woken, and finds that its announcement and its places in gates have been taken back for it.
 *
 * This happens once in a process, and only when threads come that call at the same time
 * (a session, most of the time) after others said that they do not
 * (MPI_THREAD_SINGLE, FUNNELED or SERIALIZED).
 */
#include "base/quiet.h"
#include "base/sleep.h"
#include "pt2pt/lane.h"
#include "pt2pt/share.h"
#include "transport/wire_lock.h"

#include <time.h>

/* ---- the lock ---- */

_Atomic int32_t lane_inside;

/* The calling thread is in a section that it entered without a lock, and so is in any lane that it enters within. */
static bool goes_without(void) { return unlikely(atomic_load_explicit(&lane_inside, memory_order_relaxed)); }

static void count(int by)
{
    int32_t n = atomic_load_explicit(&lane_inside, memory_order_relaxed) + by;
    atomic_store_explicit(&lane_inside, n, memory_order_release); /* see lane_out */
}

_Thread_local bool this_is_the_helper;

/* Sections lie in each other: the last reference to a communicator may go while its lane is held. A thread is named by the
 * address of a variable of its own. Relaxed: a thread finds its own name only if it has written it. */
static void set_holder(struct lane *l, const void *thread) { atomic_store_explicit(&l->holder, thread, memory_order_relaxed); }
static const void *this_thread(void) { return &this_is_the_helper; }
static bool holds(struct lane *l) { return atomic_load_explicit(&l->holder, memory_order_relaxed) == this_thread(); }

/* Where one thread at a time calls, only the helper can have the lock, and makes way if it finds that it is wanted. Threads
 * that share the lane do not ask: the helper gives up the lock after each turn (helper.c). */
static void take_lock(struct lane *l)
{
    if (lane_threaded(l)) lock_take(&l->lock);
    else if (!lock_try(&l->lock) && !lock_note(&l->lock)) lock_take(&l->lock);
}

static void give_lock(struct lane *l)
{
    while (!lock_give(&l->lock)) continue; /* what was left for the holder says that the lock is wanted, as there is no mail */
}

static _Thread_local struct lane *here __attribute__((tls_model("initial-exec")));

struct lane *lane_here(void) { return here; }

/* With the lock: what was left before is seen first. */
static void come_in(struct lane *l, int32_t depth)
{
    if (!here) here = l;
    set_holder(l, this_thread());
    l->depth = depth;
    if (unlikely(!inbox_is_empty(&l->inbox))) lane_drain(l);
}

static void take(struct lane *l, int32_t depth)
{
    if (holds(l)) {
        l->depth += depth;
        return;
    }
    take_lock(l);
    come_in(l, depth);
}

/* This thread leaves nothing to a helper. The helper itself cannot tell: the caller looks at `mode` without the lock. */
static bool can_go_without(const struct lane *l)
{
    return lane_mode(l) == LANE_LOCKED && !this_is_the_helper && !(background_any() && background_is_helped());
}

/* For threads that wait, before the lane is given back: their conditions are looked at here, and they are told when the lock
 * is free. The listener hears of steps that were turned on while it sleeps. */
static void look_for_waiters(struct lane *l, struct link *over)
{
    if (l->changed) {
        l->changed = false;
        waits_look(&l->waiters, over);
    }
    if (unlikely(waits_at_bell()) && l->steps.active.prev != l->slept_with && !list_empty(&l->steps.active)) {
        l->slept_with = l->steps.active.prev;
        bell_ring(wires_bell());
    }
}

static bool try_give(struct lane *l, struct link *over)
{
    look_for_waiters(l, over);
    atomic_store_explicit(&l->working, !list_empty(&l->steps.active), memory_order_relaxed); /* hints */
    atomic_store_explicit(&l->waited_in, !list_empty(&l->waiters), memory_order_relaxed);
    l->depth = 0;
    set_holder(l, NULL);
    if (!lock_give(&l->lock)) return false;
    if (here == l) here = NULL;
    return true;
}

/* Mail may have come until the last moment. */
static void give_shared(struct lane *l)
{
    struct link over = LIST_INIT(over);
    while (!try_give(l, &over)) {
        set_holder(l, this_thread());
        l->depth = 1;
        lane_drain(l);
    }
    waits_tell_all(&over);
}

static void give(struct lane *l)
{
    if (l->depth > 1) {
        l->depth--;
        return;
    }
    if (likely(lane_threaded(l))) {
        give_shared(l);
        return;
    }
    l->depth = 0;
    set_holder(l, NULL);
    if (here == l) here = NULL;
    if (can_go_without(l)) {
        /* relaxed: the helper looks with the lock, which is given back behind it; no other thread does */
        atomic_fetch_and_explicit(&l->mode, ~(uint32_t)LANE_LOCKED, memory_order_relaxed);
        peer_short_open(true);
    }
    give_lock(l);
}

void lane_lock(struct lane *l)
{
    if (goes_without()) count(1);
    else take(l, 1);
}

void lane_unlock(struct lane *l)
{
    if (goes_without()) count(-1);
    else give(l);
}

bool lane_is_outermost(const struct lane *l)
{
    return goes_without() ? atomic_load_explicit(&lane_inside, memory_order_relaxed) == 1 : l->depth == 1;
}

void lane_catch_up(struct lane *l)
{
    if (!goes_without()) return;
    int32_t depth = atomic_load_explicit(&lane_inside, memory_order_relaxed);
    count(-depth);
    take(l, depth); /* a lane_leave will come for each */
}

/* ---- the helper's way in ---- */

void lane_leave_locked(struct lane *l)
{
    count(-1);
    peer_short_open(false);
    /* release: pairs with the acquire in lane_try */
    atomic_fetch_or_explicit(&l->mode, LANE_LOCKED, memory_order_release);
}

bool lane_try(struct lane *l)
{
    if (!lock_try(&l->lock)) return false;
    if (!atomic_load_explicit(&l->mode, memory_order_acquire)) {
        give_lock(l);
        return false;
    }
    come_in(l, 1);
    return true;
}

bool lane_note(struct lane *l)
{
    if (!lock_note(&l->lock)) return false;
    come_in(l, 1);
    return true;
}

bool lane_is_mine(struct lane *l) { return goes_without() || holds(l); }

void lane_forget_helper(struct lane *l)
{
    if (lane_threaded(l) || holds(l)) return;
    l->lock = (struct lock)LOCK_INIT;
    l->depth = 0;
    set_holder(l, NULL);
    atomic_store_explicit(&l->mode, 0, memory_order_relaxed);
}

/* ---- from one thread at a time to threads ---- */

/* Nobody has the lock of a lane that goes without, so it is taken before anybody may look for it. Where a helper has been,
 * the thread that is inside may have it, and gives it back when it leaves, or waits. */
void lane_share(struct lane *l)
{
    bool mine = lock_try(&l->lock);
    atomic_fetch_or_explicit(&l->mode, LANE_THREADED, memory_order_seq_cst);
    if (!mine) lock_take(&l->lock);
    handle_set_threaded(true);
    atomic_store_explicit(&waits.threaded, true, memory_order_relaxed); /* seen by others behind the quiet */
    peer_short_open(false);
}

void share_await(struct quiet *others)
{
    if (!others) return;
    quiet_await(others);
    /* acquire: pairs with the release in lane_out and, as far as the sanitizer sees, behind a short send */
    while (atomic_load_explicit(&lane_inside, memory_order_acquire)) nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    peer_short_open(false); /* a thread may just have taken LANE_LOCKED away */
}

void lane_was_shared(struct lane *l)
{
    come_in(l, 1);
    progress_wake(&l->steps); /* for a thread asleep (wait.c) */
    bell_ring(wires_bell());
}

/* The receive that a message is just coming to. Its place says who may look there (transport/peer.h). */
static void move_arriving(void)
{
    for (uint32_t i = 0; i < peer_count; i++) {
        struct peer *p = peer_table[i];
        if (!p) continue;
        p->sunk = p->arriving;
        p->arriving = NULL;
    }
}

/* Others may poll as soon as the wires are shared: so all else is done before. */
void share_wires(void)
{
    peer_short_open(false); /* sends without a lock find their peers in peer_shared_table from now on */
    contexts_no_last();
    move_arriving();
    wires_share();
}
