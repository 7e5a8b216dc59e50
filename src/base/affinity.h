/*
 * affinity.h - the cpus on which a process may run. Machines may have any number of cpus.
 *
 * Threads: any.
 */
#ifndef TERN_BASE_AFFINITY_H
#define TERN_BASE_AFFINITY_H

#include "base/compiler.h"

#include <sys/types.h>

/* Cpus in the affinity mask of a process (0: of the calling thread); 0: the mask is not to be seen. */
uint32_t affinity_count(pid_t);

/* May the process `inner` run only where `outer` may? False also if one of the masks is not to be seen. */
bool affinity_is_within(pid_t inner, pid_t outer);

#endif
