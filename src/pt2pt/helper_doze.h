/*
 * helper_doze.h - the helper's sleep, and what wakes it: only what callers have called it for.
 *
 * A process without sockets: the bell's futex, in a set of the helper's own (BELL_HELPER). With sockets: a set of
 * descriptors that wakes once after each call,
 *
 *     bell's socket --+
 *     epoll of tcp ---+--> `all` --(once)--> `called`: the helper waits here
 *
 * so that what arrives while callers look by themselves wakes nobody. A call takes one system call, and wakes the
 * helper only if there is something already.
 */
#ifndef TERN_PT2PT_HELPER_DOZE_H
#define TERN_PT2PT_HELPER_DOZE_H

#include "base/sleep.h"

int doze_open(struct bell *); /* 0, or a code with words */
void doze_close(void);

/* Has the helper been called, and nothing happened since? By who holds the lane, as doze_call and doze_recall; or by the
 * owner who has just lent it. */
bool doze_is_called(const struct bell *);

/* From now on the helper is woken by what comes. With barrier (A) of sleep.h: look for what has come before. */
void doze_call(struct bell *);
void doze_recall(struct bell *);

/* Wakes it in any case. By any thread. */
void doze_rouse(struct bell *);

/* The helper's sleep: until something has come after `ticket` for which it was called, or most_ns are over. */
void doze(struct bell *, uint32_t ticket, uint64_t most_ns);

#endif
