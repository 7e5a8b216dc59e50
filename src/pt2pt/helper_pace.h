/*
 * helper_pace.h - how long the helper goes on looking behind something that it found, and how long it sleeps at most: learnt
 * from how soon it was woken. By the helper's thread.
 */
#ifndef TERN_PT2PT_HELPER_PACE_H
#define TERN_PT2PT_HELPER_PACE_H

#include "base/sleep.h"

/* Before the thread begins. `spare`: it has a core to look on with. */
void helper_pace_open(bool spare);

/* A look found nothing: shall it be followed by another? `since`: when the first of them was; 0: it was this one. */
bool helper_looks_on(uint64_t *since);

/* Sleeps (helper_sleep.h), and learns from it. */
void helper_nap(struct bell *, uint32_t ticket);

/* A nap of the helper that watches, unless the bell has rung since `ticket`: twice as long as the last one. True: no longer one
 * follows. helper_watch_over: the next one is short again. */
bool helper_watch_nap(struct bell *, uint32_t ticket);
void helper_watch_over(void);

#endif
