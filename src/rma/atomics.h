/*
 * atomics.h - atomic operations of a processor on the memory of a target, and how one process stops them to change many
 * elements at a time without them.
 *
 *     who changes an element by an atomic operation      who changes many (and has the accumulate lock)
 *     busy = 1                                           STOPPED already? then at once; else
 *                                                        STOPPING
 *                                                        a barrier in all processes of the window (membarrier)
 *     stopped?  yes: busy = 0, takes the lock            waits until nobody is busy
 *     the operation                                      STOPPED
 *     busy = 0                                           changes them as it likes
 *
 * The first, who comes often, needs no fence between its store and its load: the barrier of the second stands for it. Each
 * process of the node, and the target on behalf of far origins, has a busy word of its own, by seats (exposure.h).
 *
 * They stay stopped, as who changes many often does so again, and the barrier is what costs. Meanwhile all changes are made with the
 * accumulate lock. When so many in turn were of few elements, atomic operations may go on. An origin whose changes are of neither kind
 * stops them when it has changed so many bytes by atomic operations that the barrier would have been worth it.
 *
 * The state changes only by the one who has the accumulate lock. If that one has died while STOPPING, the next one begins anew.
 *
 * Threads: a busy word belongs to one thread at a time: that in the lane, or, where one thread uses the library, that one.
 */
#ifndef TERN_RMA_ATOMICS_H
#define TERN_RMA_ATOMICS_H

#include "rma/exposure.h"

/* Bytes that atomic operations are stopped for: the barrier costs 2 to 16 us while others run, and saves 1 to 2 ns a byte. */
#define ATOMICS_STOP_FROM 16384
#define ATOMICS_MANY 128 /* bytes from which the accumulate lock (80 ns with all that comes with it) costs less than atomic operations */
#define ATOMICS_FEW 64   /* changes of fewer bytes, one after the other, with the lock, 40 ns each: then atomic operations go on */

enum atomics_state { ATOMICS_GO, ATOMICS_STOPPING, ATOMICS_STOPPED };

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

/* Are so many bytes to be changed with atomic operations stopped? *unstopped: bytes that this origin has changed by such operations since
 * it last stopped them. */
static inline bool atomics_are_many(const struct win_exposure *x, uint64_t bytes, uint64_t *unstopped)
{
    if (bytes < ATOMICS_MANY) return false;
    /* relaxed: only who has the lock knows for sure, and either answer is right */
    bool stopped = atomic_load_explicit(&x->stopped, memory_order_relaxed) == ATOMICS_STOPPED;
    return stopped || (*unstopped += bytes) >= ATOMICS_STOP_FROM;
}

/* With the accumulate lock, all three. `busy`: of all n seats. A process that is_dead (win_lock.h) is in no operation. */
void atomics_stop(struct win_exposure *x, const _Atomic uint64_t *busy, const struct win_locking *);
static inline void atomics_go_on(struct win_exposure *x) { atomic_store_explicit(&x->stopped, ATOMICS_GO, memory_order_release); }
/* Few elements were changed, which are to be changed by atomic operations. */
void atomics_note_few(struct win_exposure *x);

#endif
