/*
 * hwsplit.h - which processes share which hardware: the colors of a split by types of
 * hardware (MPI-5.0 sections 7.4.2 and 9.1.3). Nothing here communicates.
 *
 * A type of hardware is a level of proc/machine.h, or the node, whose memory is shared.
 */
#ifndef TERN_COMM_HWSPLIT_H
#define TERN_COMM_HWSPLIT_H

#include "proc/machine.h"

#define HW_NODE (-1)          /* wider than all levels of a machine */
#define HW_NONE MACHINE_LEVELS /* no type of hardware */

/*
 * The type that a value of "mpi_hw_resource_type" names: "mpi_shared_memory", or hwloc's "hwloc://NUMANode", also without
 * the provider, in upper or lower case. HW_NONE: not known here.
 */
int hw_level(const char *name);

/* Its name as such a value; buf has HW_NAME bytes. */
#define HW_NAME 32
const char *hw_name(int level, char *buf);

/* The same number for all processes that use the same instance of this type and no other, not negative; -1: no such. */
int64_t hw_color(const struct machine_place *, int level);

/*
 * The widest type of which some instance is used by some but not all of these processes: n_ours places every `stride`
 * bytes, and n_theirs of them. Places with node -1 do not count. HW_NONE: there is none.
 */
int hw_dividing_level(const void *ours, int32_t n_ours, const void *theirs, int32_t n_theirs, size_t stride);

#endif
