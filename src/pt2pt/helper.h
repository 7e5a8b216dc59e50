/*
 * helper.h - the helper: one thread of a process that makes progress while the program
 * computes. It drives the lane as any caller does, and keeps out of every caller's way.
 *
 * It is asleep in the kernel, by the process's doorbell, until a message comes for an
 * operation that a caller has left to go on by itself (lane.background): a nonblocking
 * one that has not ended when its call returns. Three words say who wakes whom:
 *
 *     background   such operations; 0: nobody wakes the helper, whatever comes
 *     waiters      threads in lane_wait: they make the progress, the helper stays asleep
 *     bell.asleep  BELL_HELPER: the helper is armed (helper_sleep.h); senders ring
 *
 * A caller that waits disarms the helper. The caller that leaves the lane last, with something in the
 * background, arms it again and looks for what came meanwhile; then it opens the lane
 * (lane_lend). The helper, if it wakes in between, finds it shut and goes back to sleep:
 *
 *     caller                             helper, woken
 *     arms it, looks for work            (the waker has set asleep = 0)
 *     opens the lane, full barrier       full barrier, tries to come in
 *     asleep = 0: wakes it once more     the lane is shut: sleeps
 *
 * so that one of the two notices. Who finds the lane shut by somebody inside relies on
 * that one's leave. The helper arms itself before it sleeps, while it is still inside.
 *
 * What is found to be wrong becomes the result of the operation, for the thread that waits;
 * no error handler runs in the helper. Nor does a user's operator, while the program has said that
 * only one thread uses MPI: such schedules are left to the callers (coll/port_pt2pt.c).
 */
#ifndef TERN_PT2PT_HELPER_H
#define TERN_PT2PT_HELPER_H

#include "pt2pt/lane.h"

/* Starts the helper, if there is none. By a thread that is the lane's owner, or shares it; nobody is in a section. 0, or
 * a code with words. */
int helper_start(void);

/* Ends it, if there is one: when this returns it runs no more. Not from inside of the lane. */
void helper_stop(void);

/* A thread begins to wait in the lane: senders need not wake the helper. Needed while lane.may_be_armed. Lock held. */
void helper_relieve(struct lane *) TERN_COLD;

/* An operation counted by lane_left_behind has ended. Lock held. */
void lane_come_back(struct lane *) TERN_COLD;

/* The helper may have to run on a core where a rank waits: who waits gives it up now and then (wait.c). */
extern TERN_HIDDEN bool helper_shares_cores;

/* The helper runs on other cores than its process. */
extern TERN_HIDDEN bool helper_apart;

#endif
