/* watch.h - the life of the job, watched and judged by the root: doc in watch.c. */
#ifndef TERN_MPIEXEC_WATCH_H
#define TERN_MPIEXEC_WATCH_H

#include "mpiexec/launch.h"

/* Makes the event loop, and catches signals from here on: of a launcher, before it has its job. 0 or an exit code after saying why. */
int watch_prepare(struct job *);

/* Does so, if it was not done, and takes messages of the nodes from here on. */
int watch_open(struct job *);

/* Waits until the daemons of all other hosts have made ready. 0 or an exit code after saying why. */
int watch_ready(void);

/* The ranks may start: tells the daemons so. */
void watch_start(void);

/* Our own ranks could not all be started, which has been said. The job's exit code will be this one. */
void watch_give_up(int code);

/* A spawned job has begun: the end waits for it, too. It has ended, with this exit code. */
void watch_hold(void);
void watch_release(int code);

/* The process that has spawned the jobs has failed, which has been said: ends them all. The exit code will be this one. */
void watch_fail(int code);

/* A spawned job has failed, with this exit code, and was to be the end of all (info key tern_failure). */
void watch_fail_with(int code);

/* May jobs be spawned? Not before the start, and not when the end has begun. */
bool watch_running(void);

/* Until the end of the job. Returns its exit code. */
int watch_run(void);

#endif
