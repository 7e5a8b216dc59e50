/*
 * helper_sleep.h - the helper's sleep, and what wakes it: only what comes while it is armed.
 *
 * A process without sockets: the bell's futex, in a set of the helper's own (BELL_HELPER). With sockets: a set of
 * descriptors that wakes it once each time that it is armed,
 *
 *     bell's socket --+
 *     epoll of tcp ---+--> `all` --(once)--> `armed_set`: the helper waits here
 *                         `calls` ----------------^   of threads of this process (helper_wake)
 *
 * so that what arrives while callers look by themselves wakes nobody. Arming takes one system call, and wakes the
 * helper only if there is something already.
 */
#ifndef TERN_PT2PT_HELPER_SLEEP_H
#define TERN_PT2PT_HELPER_SLEEP_H

#include "base/sleep.h"

int helper_sleep_open(struct bell *); /* for one helper, in place of the one before. 0, or a code with words */
void helper_sleep_close(void);        /* it has ended. Threads may still call it (helper_wake) */
void helper_sleep_end(void);          /* no thread does any more */

/* Is the helper armed: has nothing woken it since? By a thread that holds the lane, as helper_arm and helper_disarm, or
 * that has just left it. */
bool helper_is_armed(const struct bell *);

/* From now on the helper is woken by what comes. With barrier (A) of sleep.h: look for what has come before. */
void helper_arm(struct bell *);
void helper_disarm(struct bell *);

/* Wakes it in any case, by one system call. By any thread. */
void helper_wake(struct bell *);

/* The helper's sleep: until something has come after `ticket` for which it was armed, or most_ns are over. */
void helper_sleep(struct bell *, uint32_t ticket, uint64_t most_ns);

#endif
