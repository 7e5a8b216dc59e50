/*
 * guard.h - the guard: a small process that outlives the launcher if that is killed, and then ends the job.
 *
 *     launcher ---- pipe (nothing is ever written) ----> guard: end of file = the launcher is gone
 *         \______ shared page: name, groups, directory ______/
 *
 * It has its own session, no open files, another name and an empty environment, so that neither the terminal's signals
 * nor `pkill mpiexec` nor a sweep of another job finds it. Ranks also get SIGKILL from the kernel when the launcher
 * dies (start.c); the guard ends what they have started and removes the job's directory.
 */
#ifndef TERN_MPIEXEC_GUARD_H
#define TERN_MPIEXEC_GUARD_H

#include "mpiexec/sweep.h"
#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

struct guard_page {
    _Atomic uint32_t armed; /* 0 = the launcher has cleaned up itself */
    char job[64];
    char dir[PATH_MAX]; /* the job's directory, "" = none */
    struct sweep_groups groups;
};

struct guard {
    struct guard_page *page;
    int fd; /* our end of the pipe */
    pid_t pid;
};

/* Starts the guard; to be called while there is one thread. 0 or an exit code after saying why. */
int guard_open(struct guard *, const char *job, int ranks);

/* Starts one already, which guard_open takes if it is for no more than so many ranks: the page of a job that is not named yet. */
#define GUARD_READY 256
void guard_make_ready(int ranks);

/* Makes the job's directory, known to the guard before it exists. False: no directory can be made anywhere. */
bool guard_make_dir(struct guard *);

/* Removes the directory, dismisses the guard and waits for its end. */
void guard_close(struct guard *);

#endif
