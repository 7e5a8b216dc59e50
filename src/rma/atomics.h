/*
 * atomics.h - atomic operations of a processor on the memory of a target, and how one process stops them to change many
 * elements at a time without them.
 *
 *     who changes an element by an atomic operation      who changes many (and has the accumulate lock)
 *     busy = 1                                           stopped = 1
 *                                                        a barrier in all processes of the window (membarrier)
 *     stopped?  yes: busy = 0, takes the lock            waits until nobody is busy
 *     the operation                                      changes them as it likes
 *     busy = 0                                           stopped = 0
 *
 * The first, who comes often, needs no fence between its store and its load: the barrier of the second stands for it. Each
 * process of the node, and the target on behalf of far origins, has a busy word of its own, by seats (exposure.h).
 *
 * `stopped` is set only by the one who has the accumulate lock. If that one has died, the next one who has the lock finds it set,
 * and clears it.
 *
 * Threads: a busy word belongs to one thread at a time: that in the lane, or, where one thread uses the library, that one.
 */
#ifndef TERN_RMA_ATOMICS_H
#define TERN_RMA_ATOMICS_H

#include "rma/exposure.h"

#define ATOMICS_STOP_FROM 16384 /* bytes; below, the barrier costs more (2 to 16 us while others run) than it saves (1 to 2 ns a byte) */

/* This process's part: once a process. False: the system has no such barrier. */
bool atomics_prepare(void);

/* False: stopped, and the accumulate lock is needed. */
static inline bool atomics_enter(struct win_exposure *x, _Atomic uint64_t *busy)
{
    atomic_store_explicit(busy, 1, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst); /* see above */
    if (likely(!atomic_load_explicit(&x->stopped, memory_order_acquire))) return true;
    atomic_store_explicit(busy, 0, memory_order_release);
    return false;
}

static inline void atomics_leave(_Atomic uint64_t *busy) { atomic_store_explicit(busy, 0, memory_order_release); }

/* With the accumulate lock. `busy`: of all n seats. A process that is_dead (win_lock.h) is in no operation. */
void atomics_stop(struct win_exposure *x, const _Atomic uint64_t *busy, const struct win_locking *) TERN_COLD;
static inline void atomics_go_on(struct win_exposure *x) { atomic_store_explicit(&x->stopped, 0, memory_order_release); }

#endif
