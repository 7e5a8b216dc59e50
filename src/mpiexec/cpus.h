/*
 * cpus.h - how many cpus this process may use at a time: the smaller of its affinity mask and its cgroup's quota.
 */
#ifndef TERN_MPIEXEC_CPUS_H
#define TERN_MPIEXEC_CPUS_H

/* At least 1. */
int cpus_usable(void);

/* The quota in whole cpus (rounded up) of the cgroup described by the file `self` (as /proc/self/cgroup) below the
 * mount point `root` (as /sys/fs/cgroup), the parents' quotas included; 0 when there is none. For tests too. */
int cpus_cgroup_quota(const char *self, const char *root);

#endif
