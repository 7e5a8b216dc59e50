/*
 * share.c - which threads may be in a lane: its lock, the helper's way in (drawn in lane.h), and how
 * a lane that one thread at a time used without the lock becomes one that threads share, while a
 * thread may be anywhere: outside, in the middle of a call, or asleep in a receive.
 *
 * The thread that makes the lanes shared takes the locks of all, and sets LANE_THREADED in their mode; from then
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
 * Threads share the library when all of these are switched:
 *
 *     switch                             set by       from then on
 *     lanes_mode & LANE_THREADED         share_begin  a section takes the lock of its lane
 *     handles (handle_set_threaded)      share_begin  references are counted atomically; a helper needs that, too
 *     leaf_shared                        share_begin  locks of tables are taken
 *     waits.threaded                     share_begin  the end of a request looks for a thread that waits
 *     peer_short_table: one without any  share_begin  a short send without atomic operations finds no peer
 *     wires_threaded                     wires_share  locks of wires are taken
 *     peer_shared_table                  wires_share  a short send finds its peer there; wires_are_shared
 *
 * Between share_begin and the end of wires_share the thread that does it holds all lanes.
 *
 * This happens once in a process: when a second thread calls that may do so at the same time (MPI_THREAD_MULTIPLE,
 * src/mpi/life.c), or a session of such threads comes after others said that they do not (MPI_THREAD_SINGLE, FUNNELED or
 * SERIALIZED).
 */
#include "base/quiet.h"
#include "base/sleep.h"
#include "pt2pt/helper_habit.h"
#include "pt2pt/lane.h"
#include "pt2pt/lanes.h"
#include "pt2pt/rndv/ready.h"
#include "pt2pt/share.h"
#include "transport/wire_lock.h"

#include <time.h>

/* ---- who is inside ---- */

_Atomic uint32_t lanes_mode;
_Atomic int32_t lane_inside;
char lanes_detached, lanes_told;

_Thread_local bool this_is_the_helper;

/* Threads do not share the lanes, and the calling one is in a section: so it is in all that it enters within. */
static bool is_alone_inside(void)
{
    return unlikely(atomic_load_explicit(&lane_inside, memory_order_relaxed)) && !this_is_the_helper;
}

static void count(int by)
{
    int32_t n = atomic_load_explicit(&lane_inside, memory_order_relaxed) + by;
    atomic_store_explicit(&lane_inside, n, memory_order_release); /* see lane_out */
}

/* Sections lie in each other: the last reference to a communicator may go while its lane is held. A thread is named by the
 * address of a variable of its own. Relaxed: a thread finds its own name only if it has written it. */
static void set_holder(struct lane *l, const void *thread) { atomic_store_explicit(&l->holder, thread, memory_order_relaxed); }
static const void *this_thread(void) { return &this_is_the_helper; }
static bool holds(const struct lane *l) { return atomic_load_explicit(&l->holder, memory_order_relaxed) == this_thread(); }

/* ---- one thread and the helper: the lock of the first lane is that of all ---- */

static void give_lock(struct lane *first)
{
    set_holder(first, NULL);
    while (!lock_give(&first->lock)) continue; /* what was left for the holder says that the lock is wanted, as there is no mail */
}

/* Only the other one of the two can have the lock; the helper makes way if it finds that it is wanted. False: threads share the
 * lanes by now. */
static bool take_from_helper(void)
{
    struct lane *first = lanes_first();
    if (!lock_try(&first->lock) && !lock_note(&first->lock)) lock_take(&first->lock);
    bool alone = !lane_threaded();
    if (likely(alone)) set_holder(first, this_thread());
    else give_lock(first);
    return alone;
}

/* True: the section is one of a process in which threads do not share the lanes. */
static bool come_in_alone(void)
{
    if (this_is_the_helper) { /* within the section that lane_try began */
        if (lane_threaded()) return false;
        lanes_first()->depth++;
        return true;
    }
    if (!is_alone_inside()) {
        if (lane_threaded() || !take_from_helper()) return false;
        habit_returns();
    }
    count(1);
    return true;
}

/* This thread leaves nothing to a helper. */
static bool can_go_without(void) { return lane_mode() == LANE_LOCKED && !(background_any() && background_is_helped()); }

static void caller_leaves(void)
{
    struct lane *first = lanes_first();
    bool last = atomic_load_explicit(&lane_inside, memory_order_relaxed) == 1, held = holds(first);
    if (last && held && can_go_without()) {
        /* relaxed: the helper looks with the lock, which is given back behind it; no other thread does */
        atomic_fetch_and_explicit(&lanes_mode, ~(uint32_t)LANE_LOCKED, memory_order_relaxed);
        peer_short_open(true);
    }
    count(-1);
    if (last && held) give_lock(first);
}

static void leave_alone(void)
{
    if (!this_is_the_helper) caller_leaves();
    else if (!--lanes_first()->depth) give_lock(lanes_first());
}

/* ---- threads: each lane has its lock ---- */

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
    lock_take(&l->lock);
    come_in(l, depth);
}

/* For threads that wait, before the lane is given back: their conditions are looked at here, and they are told when the lock
 * is free. The listener hears of steps that were turned on while it sleeps. */
static void look_for_waiters(struct lane *l, struct link *over)
{
    if (l->changed) {
        l->changed = false;
        if (unlikely(!list_empty(&l->waiters))) waits_look(&l->waiters, over);
    }
    if (unlikely(waits_at_bell()) && l->steps.active.prev != l->slept_with && !list_empty(&l->steps.active)) {
        l->slept_with = l->steps.active.prev;
        bell_ring(wires_bell());
    }
}

/* Other threads look at it: written only if it is another one. */
static inline void hint(_Atomic bool *at, bool value)
{
    if (unlikely(atomic_load_explicit(at, memory_order_relaxed) != value)) atomic_store_explicit(at, value, memory_order_relaxed);
}

static bool try_give(struct lane *l, struct link *over)
{
    look_for_waiters(l, over);
    hint(&l->working, !list_empty(&l->steps.active));
    hint(&l->waited_in, !list_empty(&l->waiters));
    l->depth = 0;
    set_holder(l, NULL);
    if (!lock_give(&l->lock)) return false;
    if (here == l) here = NULL;
    return true;
}

/* Mail may have come until the last moment. */
static void give(struct lane *l)
{
    struct link over = LIST_INIT(over);
    if (l->depth > 1) {
        l->depth--;
        return;
    }
    while (!try_give(l, &over)) {
        set_holder(l, this_thread());
        l->depth = 1;
        lane_drain(l);
    }
    if (unlikely(!list_empty(&over))) waits_tell_all(&over);
}

/* ---- sections ---- */

static bool is_shared(void) { return likely(lane_threaded()) && !is_alone_inside(); }

void lane_lock(struct lane *l)
{
    if (is_shared() || !come_in_alone()) take(l, 1);
}

void lane_unlock(struct lane *l)
{
    if (is_shared()) give(l);
    else leave_alone();
}

bool lane_is_outermost(const struct lane *l)
{
    return is_alone_inside() ? atomic_load_explicit(&lane_inside, memory_order_relaxed) == 1 : l->depth == 1;
}

void lane_catch_up(struct lane *l)
{
    if (!is_alone_inside()) return;
    int32_t depth = atomic_load_explicit(&lane_inside, memory_order_relaxed);
    count(-depth);
    if (holds(lanes_first())) give_lock(lanes_first());
    take(l, depth); /* a lane_leave will come for each */
}

bool lane_note(struct lane *l)
{
    if (!lock_note(&l->lock)) return false;
    come_in(l, 1);
    return true;
}

/* Where threads do not share the lanes: the helper, or its caller while that may be inside. */
static bool try_alone(struct lane *first)
{
    if (!lock_try(&first->lock)) return false;
    if (!atomic_load_explicit(&lanes_mode, memory_order_acquire)) {
        give_lock(first);
        return false;
    }
    set_holder(first, this_thread());
    if (this_is_the_helper) first->depth = 1;
    else count(1);
    return true;
}

bool lane_try(struct lane *l)
{
    if (unlikely(!lane_threaded())) return try_alone(lanes_first());
    if (!lock_try(&l->lock)) return false;
    come_in(l, 1);
    return true;
}

bool lane_is_mine(struct lane *l) { return is_alone_inside() || holds(lane_threaded() ? l : lanes_first()); }

/* ---- the helper and its caller, alone ---- */

void lane_leave_and_let_helper_in(void)
{
    count(-1);
    peer_short_open(false);
    /* release: pairs with the acquire in try_alone */
    atomic_fetch_or_explicit(&lanes_mode, LANE_LOCKED, memory_order_release);
}

bool lanes_have_helper(void)
{
    return !lane_threaded() && atomic_load_explicit(&lanes_first()->holder, memory_order_relaxed);
}

bool lane_wanted(const struct lane *l)
{
    const struct lane *held = lane_threaded() ? l : lanes_first();
    return lock_is_wanted(&held->lock) || atomic_load_explicit(&waits.waiting, memory_order_relaxed);
}

void lanes_forget_helper(void)
{
    struct lane *first = lanes_first();
    if (lane_threaded() || holds(first)) return;
    first->lock = (struct lock)LOCK_INIT;
    first->depth = 0;
    set_holder(first, NULL);
    atomic_store_explicit(&lanes_mode, 0, memory_order_relaxed);
}

/* ---- from one thread at a time to threads ---- */

void share_begin(void)
{
    atomic_fetch_or_explicit(&lanes_mode, LANE_THREADED, memory_order_seq_cst);
    handle_set_threaded(true);
    leaf_share();
    atomic_store_explicit(&waits.threaded, true, memory_order_relaxed); /* seen by others behind the quiet */
    peer_short_open(false);
}

void share_await(struct quiet *others)
{
    if (!others) return;
    quiet_await(others);
    /* acquire: pairs with the release in lane_out and, as far as the sanitizer sees, behind a short send */
    while (atomic_load_explicit(&lane_inside, memory_order_acquire)) nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    peer_short_open(false); /* the thread may just have taken LANE_LOCKED away */
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
    for (uint32_t i = 0; i < peers_end(); i++) {
        struct peer *p = peer_known(i);
        if (!p) continue;
        p->sunk = p->arriving;
        p->arriving = NULL;
    }
}

static void end_ready(void)
{
    struct lane *l;
    for (uint32_t i = 0; (l = lanes_at(i)); i++)
        list_each (a, next, &l->contexts) ready_end(container_of(a, struct pt_comm, in_lane));
}

/* Others may poll as soon as the wires are shared: so all else is done before. */
void share_wires(void)
{
    peer_short_open(false); /* sends without a lock find their peers in peer_shared_table from now on */
    contexts_no_last();
    end_ready();
    move_arriving();
    wires_share();
}
