/*
 * schedule.h - the scheduling phase of spawning: the hosts that the processes of a new job go to. The first mpiexec chooses
 * for all jobs that do not name hosts themselves, from those that it was given, and keeps where it has put them.
 *
 *     round_robin   one process a host in turn, from the host behind the last one that was used by any job
 *     restart       the same, but each job begins with the first host: jobs of one process are all there
 *     load          each process to the host that has the fewest for its slots
 *     packed        to the first host with a free slot; without one, as load
 *     spread        as evenly over all hosts as may be, those with few processes first
 *
 * Slots are advice: no process is refused because there are too few.
 *
 * Source: DPM-6, DPM-7. Threads: the main one only.
 */
#ifndef TERN_MPIEXEC_SCHEDULE_H
#define TERN_MPIEXEC_SCHEDULE_H

#include "mpiexec/hosts.h"

enum schedule_policy { SCHEDULE_ROUND_ROBIN, SCHEDULE_RESTART, SCHEDULE_LOAD, SCHEDULE_PACKED, SCHEDULE_SPREAD };

/* Processes of one job, by host. Begin with {0}. */
struct schedule_load {
    int *on; /* [hosts]; NULL: none */
};

/* The hosts, and how many processes of the first job each has; `last` is the one that got the last of them. */
void schedule_open(const struct hosts *, const int *on, int last);

/* False: there is no such policy. */
bool schedule_policy_of(const char *word, enum schedule_policy *);

/* Places for n processes more of the job: "a:2,b", the hosts in the order they were chosen; malloc'ed. */
char *schedule_place(enum schedule_policy, int n, struct schedule_load *);

/* All hosts with their slots, "b:2,a:2", beginning with the next one in turn, for a job that is mapped in another way; the turn goes
 * on behind `used` of them. Malloc'ed. */
char *schedule_hosts(int used);

/* The job has ended. */
void schedule_release(struct schedule_load *);

#endif
