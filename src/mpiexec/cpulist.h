/*
 * cpulist.h - lists of processors as users write them: the logical numbers of cores (`lstopo` prints them), or of
 * hardware threads where these count as processors.
 *
 *     0,2-3        --cpu-set, and `slot=` of a rank file
 *     1:0-2        `slot=`: cores 0 to 2 of socket 1; *:0 core 0 of every socket, 1:* all of socket 1;
 *                  several with ';' between
 */
#ifndef TERN_MPIEXEC_CPULIST_H
#define TERN_MPIEXEC_CPULIST_H

#include <hwloc.h>
#include <stdbool.h>

#define CPULIST_MAX (1 << 20) /* the highest number of a processor, and how many numbers a list may have */

/* Puts the cpus of the whole list into `set`. False: it is no list, or names a processor that the topology has not. */
bool cpulist_all(hwloc_topology_t, bool hwthreads, const char *list, hwloc_bitmap_t set);

/* The i-th number of the list, in the order it was written in, from the start again after its end. False: as of
 * cpulist_all, or cpulist_is_list refuses the list. */
bool cpulist_nth(hwloc_topology_t, bool hwthreads, const char *list, int i, hwloc_bitmap_t set);

/* `slot=` of a rank file. */
bool cpulist_slots(hwloc_topology_t, bool hwthreads, const char *slots, hwloc_bitmap_t set);

/* Is the text such a list, of at most CPULIST_MAX numbers, or such slots, on whatever machine? */
bool cpulist_is_list(const char *list);
bool cpulist_is_slots(const char *slots);

#endif
