/*
 * helper_watch.h - what a caller that comes back soon and the helper that watches tell each other (helper.h).
 *
 * The helper naps, and looks after each nap whether callers have left the library in the meantime. When nobody has done so
 * for long it ends the watch, and sleeps until it is woken. A caller that leaves at that moment either finds that it does not
 * watch any more, and wakes it, or is seen:
 *
 *     caller                                helper, behind a nap
 *     left++                                state: ON -> ENDING
 *     gives the lane back, full barrier     full barrier
 *     state is not ON: makes it so, and     left is what it was before the nap: -> OFF; else -> ON
 *       wakes the helper
 *
 * Inside the lane, either side makes it OFF at any time.
 */
#ifndef TERN_PT2PT_HELPER_WATCH_H
#define TERN_PT2PT_HELPER_WATCH_H

#include "base/compiler.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum watch_state { WATCH_OFF, WATCH_ON, WATCH_ENDING };

struct helper_watch {
    _Atomic uint32_t state; /* enum watch_state */
    _Atomic uint32_t left;  /* how often callers have left it to the helper that watches; written inside the lane */
};

static inline bool watch_is_on(const struct helper_watch *w) { return atomic_load_explicit(&w->state, memory_order_relaxed) != WATCH_OFF; }
static inline uint32_t watch_left(const struct helper_watch *w) { return atomic_load_explicit(&w->left, memory_order_relaxed); }

/* Inside. */
static inline void watch_stop(struct helper_watch *w) { atomic_store_explicit(&w->state, WATCH_OFF, memory_order_relaxed); }

/* The caller leaves: inside, and when it has given the lane back. True: it wakes the helper, which watches from then on. */
static inline void watch_leave(struct helper_watch *w) { atomic_store_explicit(&w->left, watch_left(w) + 1, memory_order_relaxed); }
static inline bool watch_calls(struct helper_watch *w)
{
    atomic_thread_fence(memory_order_seq_cst); /* pairs with the one in watch_end */
    if (likely(atomic_load_explicit(&w->state, memory_order_relaxed) == WATCH_ON)) return false;
    atomic_store_explicit(&w->state, WATCH_ON, memory_order_relaxed);
    return true;
}

static inline void watch_change(struct helper_watch *w, uint32_t from, enum watch_state to)
{
    atomic_compare_exchange_strong_explicit(&w->state, &from, to, memory_order_relaxed, memory_order_relaxed);
}

/* The helper ends its watch, unless somebody has left since `left` was what it is told. */
static inline void watch_end(struct helper_watch *w, uint32_t left)
{
    watch_change(w, WATCH_ON, WATCH_ENDING);
    atomic_thread_fence(memory_order_seq_cst); /* pairs with the one in watch_calls */
    watch_change(w, WATCH_ENDING, watch_left(w) == left ? WATCH_OFF : WATCH_ON);
}

#endif
