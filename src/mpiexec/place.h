/*
 * place.h - which cpus each rank of this node is tied to. The topology is loaded only when the options ask for
 * placement, since that takes milliseconds; without them no rank is bound (doc/decisions/no-default-binding.md).
 */
#ifndef TERN_MPIEXEC_PLACE_H
#define TERN_MPIEXEC_PLACE_H

#include "mpiexec/spec.h"
#include <hwloc.h>

/* Where one rank goes. */
struct place {
    hwloc_bitmap_t cpus; /* NULL = not bound */
    int count;           /* cpus in it, 0 = not bound */
    int l3, numa;        /* logical index of the one it lies in, -1 = several or unknown */
};

/* Does the specification need the topology? */
bool place_wanted(const struct place_spec *);

/* Loads the topology of this machine restricted to the cpus this process may use. 0 or an exit code. */
int place_topology(hwloc_topology_t *);

/* Ranks of each host by ppr:N:socket and the like, into *ppn; it stays as it is where the options do not say that. Other
 * hosts count as having as many units as this one. 0 or an exit code. */
int place_per_host(const struct place_spec *, int *ppn);

/* Fills places[0..n). `threads` is OMP_NUM_THREADS of the ranks, 0 = not set: the cores a rank gets when the options
 * do not say. Pure: for tests with synthetic topologies. 0 or an exit code. */
int place_ranks(hwloc_topology_t, const struct place_spec *, int threads, struct place *places, int n);

/* "core 2 (cpus 4,5)" into buf. */
void place_words(hwloc_topology_t, const struct place *, char *buf, size_t size);

#endif
