/*
 * explore.h - runs code of several processes in all orders of their atomic operations.
 *
 * A test defines the macros below, which replace those of stdatomic.h, by including this file, and then includes the source
 * file that it explores. Each process is a function on a stack of its own. Before each atomic operation it gives way to the
 * explorer, which goes on with one of the processes: by depth-first search all choices are made, one after the other, with
 * at most `switches` of them away from a process that could have gone on. One that looks again and again (explore_pause) goes
 * on when another one has changed something. In a program that may lose a process, that one ends at each of its operations in
 * turn.
 *
 * What is explored is the order of operations, not of memory: each operation is seen by all at once.
 */
#ifndef TERN_TEST_EXPLORE_H
#define TERN_TEST_EXPLORE_H

#include "base/compiler.h"

#include <stdatomic.h>

#define EXPLORE_MOST 4 /* processes */

struct explore {
    int n;                               /* processes */
    void (*begin)(void);                 /* before each run */
    void (*run[EXPLORE_MOST])(void);     /* a process each */
    void (*end)(void);                   /* after each run: all processes have ended, or died */
    int mortal;                          /* the process that may die, -1: none. The last one then runs when it is dead */
    int switches;                        /* away from a process that could go on, at most, besides a death */
};

/* Can it be done here? If not, the test is skipped, with the reason: main returns 0. */
bool explore_works(void);

/* Makes all runs; how many. Fails the test, with the choices of the run in words, where processes wait for each other
 * without end. */
long explore(const struct explore *);

void explore_step(void);  /* before an atomic operation */
void explore_pause(void); /* nothing to do before another process changes something */
bool explore_changed(bool did); /* the operation has changed something, if `did`, which is returned */
int explore_dead(void);   /* the process that has died in this run, -1: none so far */

#undef atomic_load_explicit
#undef atomic_store_explicit
#undef atomic_fetch_add_explicit
#undef atomic_fetch_sub_explicit
#undef atomic_fetch_or_explicit
#undef atomic_fetch_and_explicit
#undef atomic_compare_exchange_strong_explicit
#undef atomic_compare_exchange_weak_explicit
#define atomic_load_explicit(at, order) (explore_step(), __atomic_load_n(at, order))
#define atomic_store_explicit(at, value, order) (explore_step(), __atomic_store_n(at, value, order), explore_changed(true))
#define atomic_fetch_add_explicit(at, value, order) (explore_step(), explore_changed(true), __atomic_fetch_add(at, value, order))
#define atomic_fetch_sub_explicit(at, value, order) (explore_step(), explore_changed(true), __atomic_fetch_sub(at, value, order))
#define atomic_fetch_or_explicit(at, value, order) (explore_step(), explore_changed(true), __atomic_fetch_or(at, value, order))
#define atomic_fetch_and_explicit(at, value, order) (explore_step(), explore_changed(true), __atomic_fetch_and(at, value, order))
#define atomic_compare_exchange_strong_explicit(at, expected, value, order, other) \
    (explore_step(), explore_changed(__atomic_compare_exchange_n(at, expected, value, 0, order, other)))
#define atomic_compare_exchange_weak_explicit(at, expected, value, order, other) \
    (explore_step(), explore_changed(__atomic_compare_exchange_n(at, expected, value, 0, order, other)))

#endif
