/*
 * sweep.h - finding and ending the processes of a job: the ranks' process groups, and strays that left them.
 *
 * Each rank is the leader of a process group of its own, so the group's number is its pid. Processes that left it, for
 * another group or a session, still carry SWEEP_MARK in their environment.
 */
#ifndef TERN_MPIEXEC_SWEEP_H
#define TERN_MPIEXEC_SWEEP_H

#include <stdatomic.h>
#include <stdint.h>

#define SWEEP_MARK "TERN_JOB_NAME" /* variable with the job's name in the environment of all its processes */

/* The groups (= pids) of the ranks; 0 where the rank and its group are gone, so that a number that the
 * system gave to somebody else is never signalled. Shared between launcher and guard. */
struct sweep_groups {
    _Atomic int32_t count;
    _Atomic int32_t id[];
};

/* Sends `sig` (0 = just looks) to every group; returns how many are still there. */
int sweep_signal(const struct sweep_groups *, int sig);

/* Kills processes of the ranks' groups and marked ones, except zombies; returns how many it found. Looks at all processes
 * of the machine: for the guard, which is nobody's parent. */
int sweep_all(const struct sweep_groups *, const char *job);

/* The same among the caller's descendants, which are few where many jobs live side by side (300 that end together on 2 cores:
 * seconds, not 10 minutes): for a launcher, which is the reaper (PR_SET_CHILD_SUBREAPER) of its ranks' orphans, so that all
 * strays are among them. On a system that does not tell the children of a process it looks at all. */
int sweep_descendants(const struct sweep_groups *, const char *job);

#endif
