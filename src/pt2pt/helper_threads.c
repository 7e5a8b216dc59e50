/* helper_threads.c - see helper_threads.h. */
#include "pt2pt/helper_threads.h"
#include "base/clock.h"
#include "pt2pt/helper.h"
#include "pt2pt/helper_pace.h"
#include "pt2pt/helper_sleep.h"
#include "pt2pt/lanes.h"
#include "pt2pt/listen.h"

#include <sched.h>

static _Atomic bool up; /* the helper looks, or will do so once more before it sleeps disarmed */

/* ---- callers ---- */

/* What is left in this lane is the helper's to go on with, and nothing will ring for it. Lane held. */
static bool has_more(struct lane *l)
{
    bool more = l->left_more && progress_armed(&l->steps);
    l->left_more = false;
    more |= lane_has_put_off(l);
    return more || (progress_has_own(&l->steps) && !progress_still(&l->steps));
}

/* As in helper.c, can_be_late: a service alone has the helper woken now and then, and otherwise by itself. */
static bool can_be_late(void)
{
    static _Atomic uint64_t last;
    if (!background_only_stands_by()) return false;
    uint64_t now = clock_ns(), before = atomic_load_explicit(&last, memory_order_relaxed);
    if (background_can_be_late(now, before)) return true;
    atomic_store_explicit(&last, now, memory_order_relaxed);
    return false;
}

void helper_leave_among_threads(struct lane *l)
{
    struct bell *b = wires_bell();
    bool others = atomic_load_explicit(&waits.waiting, memory_order_relaxed); /* they do it */
    if (this_is_the_helper || others || !background_is_helped() || !lane_is_outermost(l)) {
        lane_out(l);
        return;
    }
    bool more = has_more(l);
    lane_out(l);
    atomic_thread_fence(memory_order_seq_cst); /* 1. in helper_threads.h */
    bool armed = helper_is_armed(b);
    if (armed && more) bell_ring(b);
    if (!armed && !atomic_load_explicit(&up, memory_order_relaxed) && !can_be_late()) helper_wake(b);
}

void helper_relieve_among_threads(void)
{
    struct lane *first = lanes_first();
    lane_enter(first);
    listen_disarm();
    lane_out(first);
}

/* ---- the helper ---- */

/* Relaxed: ordered by the caller's fence, or a hint. */
static bool is_needed(const _Atomic bool *stop)
{
    return background_any() && !atomic_load_explicit(&waits.waiting, memory_order_relaxed) &&
           !atomic_load_explicit(stop, memory_order_relaxed);
}

/* Until there is nothing more to do and the helper is armed, or it is not needed. */
static void look(const _Atomic bool *stop)
{
    uint64_t since = 0;
    while (is_needed(stop)) {
        if (listen_look()) {
            since = 0;
            if (helper_is_on_shared_cores()) sched_yield();
        } else if (!helper_looks_on(&since) && listen_arm()) {
            return;
        }
    }
}

void helper_run_among_threads(const _Atomic bool *stop)
{
    struct bell *b = wires_bell();
    /* acquire: pairs with the release in end_thread (helper.c) */
    while (!atomic_load_explicit(stop, memory_order_acquire)) {
        /* Before all looks: what comes after them rings. acquire: pairs with the release in bell_ring */
        uint32_t ticket = atomic_load_explicit(&b->ring, memory_order_acquire);
        atomic_store_explicit(&up, true, memory_order_relaxed);
        helper_relieve_among_threads();
        look(stop);
        atomic_store_explicit(&up, false, memory_order_relaxed);
        atomic_thread_fence(memory_order_seq_cst); /* 1. in helper_threads.h */
        if (!is_needed(stop) || helper_is_armed(b)) helper_nap(b, ticket);
    }
    helper_relieve_among_threads();
}
