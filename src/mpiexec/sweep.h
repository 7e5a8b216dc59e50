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

/* Kills processes of the ranks' groups and marked ones, except zombies; returns how many it found. */
int sweep_strays(const struct sweep_groups *, const char *job);

#endif
