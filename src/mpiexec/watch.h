/*
 * watch.h - the job from the start of its ranks to the end: exits, signals, time limit, and the way it is ended.
 */
#ifndef TERN_MPIEXEC_WATCH_H
#define TERN_MPIEXEC_WATCH_H

#include "mpiexec/launch.h"

/* Takes over signals. To be called before the first rank starts, so that no exit is missed. */
void watch_open(struct job *);

/* Runs the event loop until the job is over and its output is written. The exit code of the job. */
int watch_run(void);

/* Ends what was started, after the start of a later rank failed. */
void watch_give_up(void);

#endif
