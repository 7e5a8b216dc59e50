/*
 * quiet.h - waits until whatever the other threads of this process were doing at a moment is over, without a word from
 * them: for a switch that their fast paths read without a lock.
 *
 * What takes a few hundred instructions without a system call is over when its thread has run for a millisecond since,
 * or sleeps in the kernel, or has ended. Longer work has to be counted by whoever does it, and asked about afterwards.
 * After the wait all other threads see what the caller wrote before it.
 */
#ifndef TERN_BASE_QUIET_H
#define TERN_BASE_QUIET_H

struct quiet;

/* Before anything is switched. 0; or TERN_ERR_NOMEM, or TERN_ERR_SYSTEM when the system does not list the threads of this
 * process, with words. */
int quiet_open(struct quiet **);

/* Returns when all that the other threads were doing when it was called is over. Several milliseconds, or more where
 * threads wait for a core. Any thread. */
void quiet_await(struct quiet *);
void quiet_close(struct quiet *);

#endif
