/*
 * start_attr.h - how a program is started (posix_spawn) that is to be apart from the process which starts it: in a process group of its
 * own, with signals as it should find them.
 *
 * Threads: any, with different ones.
 */
#ifndef TERN_BASE_START_ATTR_H
#define TERN_BASE_START_ATTR_H

#include <signal.h>
#include <spawn.h>

struct start_attr {
    posix_spawn_file_actions_t files; /* none at first: the caller adds them */
    posix_spawnattr_t attr;
};

/* The program begins with the signal mask `mask`, and with the standard action for all signals in `standard`, ignored ones included. */
void start_attr_open(struct start_attr *, const sigset_t *mask, const sigset_t *standard);
void start_attr_close(struct start_attr *);

/* The same with no signal masked, and the standard action for all. */
void start_attr_open_fresh(struct start_attr *);

#endif
