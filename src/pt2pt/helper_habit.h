/*
 * helper_habit.h - does the thread that leaves the library now stay away? Then the helper has to be armed, and is woken by what
 * comes. A thread that comes back within microseconds, as in a window of nonblocking calls, goes on faster alone: the helper
 * would be in its way.
 *
 * It is learnt by place: how often the thread has left something in the background since it waited or stayed away last.
 *
 *     Irecv  Irecv  Isend  compute  Waitall     Irecv  Irecv  Isend  compute  Waitall
 *        1      2      3 <- away                   1      2      3 <- away
 *
 * A wait that was over before it began counts as one, or the places behind it would depend on that (helper_need_not_wait).
 * Places from the 63rd on are one.
 *
 * To look at the clock twice for each call of a window is more than it may cost, so a thread that is expected back is timed
 * one time in HABIT_TIMED, and deep in a window more seldom. Each place counts for itself: were all leaves counted in turn, a
 * loop of HABIT_TIMED of them would have the same place timed for ever, and the one where it stays away never. A thread that
 * is timed leaves in the background what it would leave if it stayed away: one that does all by itself leaves nothing, and
 * nothing would be learnt.
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
#define HABIT_TIMED 5u
#define HABIT_TIMED_DEEP 61u
#define HABIT_DEEP 8u /* places */

extern TERN_HIDDEN struct habit {
    uint32_t place;   /* that the thread left from last; 0: it has not, since it waited or stayed away */
    bool timed;       /* it is timed when it leaves */
    uint64_t left_ns; /* when it left; 0: that is not timed */
    uint8_t back[HABIT_PLACES + 1]; /* for each place, 0: it stayed away; else it came back, and has left so often since that was timed */
} habit;

void habit_open(void); /* nothing is known: it stays away */

/* Where it leaves next. */
static inline uint32_t habit_next(void) { return habit.place < HABIT_PLACES ? habit.place + 1 : HABIT_PLACES; }

/* It stays away if it leaves something in the background now. */
static inline bool habit_would_stay(void) { return !habit.back[habit_next()]; }

/* It is expected back: is it timed, this time? */
static inline bool habit_is_timed(void)
{
    uint32_t next = habit_next(), one_in = next <= HABIT_DEEP ? HABIT_TIMED : HABIT_TIMED_DEEP;
    if (habit.timed) return true;
    habit.timed = ++habit.back[next] > one_in;
    return habit.timed;
}

/* It begins something that it can do by itself, or leave in the background: true. */
static inline bool habit_leaves_it(void) { return habit_would_stay() || habit_is_timed(); }

/* It leaves something in the background. True: it stays away, as far as is known. */
static inline bool habit_leaves(void)
{
    bool stays = habit_would_stay();
    habit.left_ns = stays || habit_is_timed() ? clock_ns() : 0;
    habit.place = habit_next();
    habit.timed = false;
    return stays;
}

void habit_learn(bool away) TERN_COLD; /* the thread has stayed away from this place, or has come back */

/* It comes back, at now: nanoseconds of clock_ns. It has been timed. */
static inline void habit_returns_at(uint64_t now)
{
    habit_learn(now - habit.left_ns >= HABIT_AWAY_NS);
    habit.left_ns = 0;
}

/* It comes back. */
static inline void habit_returns(void)
{
    if (habit.left_ns) habit_returns_at(clock_ns());
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
