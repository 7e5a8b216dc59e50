/*
 * live.h - the life of the ranks of this node, at the root and at a daemon alike: their exits, signals to them, their
 * end. What an exit means for the job is judged at the root (watch.c).
 *
 *     RUNNING --(live_end)--> ENDING --(grace)--> KILLING
 *        \_____________ all gone _____\______________\____> OVER
 *
 * In ENDING all groups have their signal (SIGTERM, or the one we got) and GRACE_MS to obey; then SIGKILL, also for
 * strays.
 */
#ifndef TERN_MPIEXEC_LIVE_H
#define TERN_MPIEXEC_LIVE_H

#include "mpiexec/launch.h"
#include "mpiexec/server.h"

/* How a rank ended. */
struct live_exit {
    int rank;
    pid_t pid;
    int status; /* as of waitpid */
    enum job_life life;
    uint32_t aborted; /* 1 + the exit code of MPI_Abort on this node, 0 = not called */
};

/* Other ranks may wait for it: it was initialised and has not finalised, or has failed before it was initialised. */
static inline bool live_is_death(const struct live_exit *e)
{
    return e->life == JOB_LIFE_INITIALISED || (e->life == JOB_LIFE_NONE && e->status);
}

struct live_calls {
    void (*exited)(const struct live_exit *); /* of ranks that ended together those killed by a signal first */
    void (*aborted)(const struct server_abort *);
    void (*over)(void); /* once: no rank, no group, and after a failure no stray is left */
};

/* Watches the processes of this one from here on; ranks may be started then. */
void live_open(struct job *, const struct live_calls *);

/* All ranks of the node have been started, or none if it has none. `over` may be called at once. */
void live_started(void);

/* Ends the ranks because something failed, which `code` is the job's exit code for; also those that are just being
 * started, and before any was. */
void live_end(int sig, int code);
void live_kill(void);

/* A rank of the job, of whichever node, has died, and the job goes on: tells the ranks of this node (block_tell_death)
 * and the clients of its PMIx server. */
void live_tell_death(int rank);

/* Passes a signal on. live_stop ends with SIGSTOP for all, and then calls `then`. */
void live_signal(int sig);
void live_stop(void (*then)(void));

#endif
