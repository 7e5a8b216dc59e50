/*
 * usable.h - how many cpus the ranks of a node share.
 *
 * Ranks of a node decide by this number how they wait for each other; rank 0 of a communicator decides by it for all
 * how collectives inside the node are done (coll/coll.c). They do not ask each other for it, so it has to follow from
 * what all of them see alike. Tern's mpiexec tells it. Under
 * other launchers it is the number of cpus that the launcher of the node may use, cut by the cgroup's quota and by what
 * Slurm has granted. A rank's own affinity mask is no part of it: launchers, and scripts that they start, bind some
 * ranks and others not, or to different numbers of cpus.
 *
 * Threads: any.
 */
#ifndef TERN_PROC_USABLE_H
#define TERN_PROC_USABLE_H

#include "base/compiler.h"

/* For a rank that another launcher than Tern's has started: at least 1. *bound: the cpus of this process if it may run
 * on some of the launcher's only; else 0. */
uint32_t usable_by_launcher(uint32_t *bound);

/* For a process that has no launcher: its affinity mask, cut by the cgroup's quota; at least 1. */
uint32_t usable_here(void);

#endif
