/*
 * helper_habit.h - does the thread that leaves the library now stay away? Then the helper has to be armed, and is woken by what
 * comes. A thread that comes back within microseconds, as in a window of nonblocking calls, goes on faster alone: the helper
 * would be in its way.
 *
 * It is learnt by place: how often the thread has left something in the background since it waited last. For each place one bit
 * says whether the thread stayed away the last time:
 *
 *     Irecv  Irecv  Isend  compute  Waitall     Irecv  Irecv  Isend  compute  Waitall
 *        1      2      3 <- away                   1      2      3 <- away
 *
 * Places from the 63rd on share a bit. To look at the clock twice for each call of a window is more than it may cost, so a
 * thread that is expected to come back is timed one time in HABIT_TIMED, and deep in a window more seldom. Then it leaves in the background what it would leave
 * if it stayed away: a thread that does all by itself leaves nothing, and nothing would be learnt.
 *
 * Threads: with the lock of the first lane, while threads do not share the lanes.
 */
#ifndef TERN_PT2PT_HELPER_HABIT_H
#define TERN_PT2PT_HELPER_HABIT_H

#include "base/clock.h"
#include "base/compiler.h"

#include <stdbool.h>

#define HABIT_AWAY_NS 10000u /* about what it costs to wake a thread, and what that does in between */
#define HABIT_PLACES 63u
#define HABIT_TIMED 5u /* primes, so that few loops come upon the same place each time */
#define HABIT_TIMED_DEEP 61u
#define HABIT_DEEP 8u /* places */

extern TERN_HIDDEN struct habit {
    uint64_t away;    /* a bit for each place */
    uint32_t place;   /* that the thread left from last; 0: it has not, since it waited */
    uint32_t brief;   /* how often it was expected to come back */
    bool timed;       /* it is timed when it leaves */
    uint64_t left_ns; /* when it left; 0: that is not timed */
} habit;

void habit_open(void); /* nothing is known: it stays away */

/* It stays away if it leaves something in the background now. */
static inline bool habit_would_stay(void)
{
    uint32_t next = habit.place < HABIT_PLACES ? habit.place + 1 : HABIT_PLACES;
    return habit.away >> next & 1;
}

/* Is it timed, this time? */
static inline bool habit_is_timed(void)
{
    uint32_t one_in = habit.place < HABIT_DEEP ? HABIT_TIMED : HABIT_TIMED_DEEP;
    if (!habit.timed) habit.timed = ++habit.brief % one_in == 0;
    return habit.timed;
}

/* It begins something that it can do by itself, or leave in the background: true. */
static inline bool habit_leaves_it(void) { return habit_would_stay() || habit_is_timed(); }

/* It leaves something in the background. True: it stays away, as far as is known. */
static inline bool habit_leaves(void)
{
    bool stays = habit_would_stay();
    if (habit.place < HABIT_PLACES) habit.place++;
    habit.left_ns = stays || habit_is_timed() ? clock_ns() : 0;
    habit.timed = false;
    return stays;
}

void habit_learn(bool away) TERN_COLD; /* the thread has stayed away from this place, or has come back */

/* It comes back. */
static inline void habit_returns(void)
{
    if (!habit.left_ns) return;
    habit_learn(clock_ns() - habit.left_ns >= HABIT_AWAY_NS);
    habit.left_ns = 0;
}

/* It was expected to come back, and has not. By another thread. */
static inline void habit_stayed(void)
{
    habit_learn(true);
    habit.left_ns = 0;
}

/* It waits. */
static inline void habit_waits(void) { habit.place = 0; }

#endif
