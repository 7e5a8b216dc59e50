/*
 * lock.h - a lock of one word, for the threads of this process.
 *
 * A thread that finds it held looks at it for a moment, and then sleeps on the word (futex). The thread that gives it back
 * wakes one sleeper, and whoever comes first takes it: so a holder that comes back at once has no wait for others to be
 * scheduled. A sleeper that has lost the race twice asks for its turn: then the lock is handed over to a sleeper, and goes
 * to no other thread in between.
 *
 *     bits       0       1       2        3         4        5 ... 31
 *     word    | HELD | MAIL | TURN  | HANDED |  WOKEN  |  sleepers  |
 *
 *     HELD      a thread has it, or it is handed over
 *     MAIL      something was left for the holder (lock_note), who looks at it before the lock is free
 *     TURN      a sleeper asks that the lock be handed over when it is given back
 *     HANDED    it is a sleeper's: the first that looks takes it
 *     WOKEN     a sleeper is awake and has not looked at the word yet: no other is woken
 *
 * Taking it, and giving it back, is one atomic read-modify-write each while nobody waits. It is not recursive.
 *
 * Order: taking is an acquire, giving back a release, of the same word. lock_note is a release, too, and the holder that
 * finds the mail acquires.
 */
#ifndef TERN_BASE_LOCK_H
#define TERN_BASE_LOCK_H

#include "base/compiler.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum lock_bits { LOCK_HELD = 1, LOCK_MAIL = 2, LOCK_TURN = 4, LOCK_HANDED = 8, LOCK_WOKEN = 16, LOCK_SLEEPER = 32 };

struct lock {
    _Atomic uint32_t word; /* enum lock_bits; a futex word */
    uint32_t waits;        /* times that a thread found it held in lock_take; written by the holder */
    uint64_t waited_ns;    /* and how long they waited in all */
};
#define LOCK_INIT {0, 0, 0}

/* Looks at a held lock before a thread sleeps. 0 where other threads need the core. Set while no lock is in use. */
extern TERN_HIDDEN uint32_t lock_looks;

void lock_wait(struct lock *) TERN_COLD; /* lock_take, found held */
bool lock_give_on(struct lock *) TERN_COLD; /* lock_give, with more than HELD in the word */

/* True if nobody had it, and now the caller does. */
static inline bool lock_try(struct lock *l)
{
    uint32_t word = atomic_load_explicit(&l->word, memory_order_relaxed);
    while (!(word & LOCK_HELD))
        if (atomic_compare_exchange_weak_explicit(&l->word, &word, word | LOCK_HELD, memory_order_acquire, memory_order_relaxed))
            return true;
    return false;
}

static inline void lock_take(struct lock *l)
{
    uint32_t free = 0;
    if (unlikely(!atomic_compare_exchange_strong_explicit(&l->word, &free, LOCK_HELD, memory_order_acquire, memory_order_relaxed)))
        lock_wait(l);
}

/* Gives it back. False: something was left for the holder, who still has it, sees to that, and tries again. Only where
 * lock_note is used: elsewhere it is true. */
static inline bool lock_give(struct lock *l)
{
    uint32_t held = LOCK_HELD;
    return likely(atomic_compare_exchange_strong_explicit(&l->word, &held, 0, memory_order_release, memory_order_relaxed)) ||
           lock_give_on(l);
}

/* Something was left for the holder, who will find it before the lock is free. True: nobody had the lock, and now the
 * caller does, and sees to it. */
bool lock_note(struct lock *);

/* The holder asks whether a thread waits, or something was left. */
static inline bool lock_is_wanted(const struct lock *l)
{
    return atomic_load_explicit(&l->word, memory_order_relaxed) != LOCK_HELD;
}

static inline bool lock_is_held(const struct lock *l)
{
    return atomic_load_explicit(&l->word, memory_order_relaxed) & LOCK_HELD;
}

#endif
