/*
 * signals.h - a part of a thread's work in which it handles no signal. A thread that is made there blocks all signals for good: no
 * handler of the program's, or of the launcher's, runs in it. Not around what may wait long, which could not be interrupted.
 *
 * Threads: any.
 */
#ifndef TERN_BASE_SIGNALS_H
#define TERN_BASE_SIGNALS_H

#include <pthread.h>
#include <signal.h>

static inline void signals_block(sigset_t *before)
{
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, before);
}

static inline void signals_restore(const sigset_t *before) { pthread_sigmask(SIG_SETMASK, before, NULL); }

#endif
