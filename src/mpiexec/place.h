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

/* Loads the topology of this machine restricted to the cpus that this process may use, and to those of --cpu-set. 0 or
 * an exit code. */
int place_topology(const struct place_spec *, hwloc_topology_t *);

/* How many cpus --cpu-set leaves of such a topology; 0: it was not given. */
int place_set_cpus(hwloc_topology_t, const struct place_spec *);

/* Counts the units that the options need to be known before ranks are mapped: map_units, order_units and cores in the
 * specification, and *ppn for ppr:N:socket and the like. Other hosts count as having as many units as this one. 0 or an
 * exit code. */
int place_count_units(struct place_spec *, int *ppn);

/* Fills places[0..n). `threads` is OMP_NUM_THREADS of the ranks, 0 = not set: the cores a rank gets when the options
 * do not say. Pure: for tests with synthetic topologies. 0 or an exit code. */
int place_ranks(hwloc_topology_t, const struct place_spec *, int threads, struct place *places, int n);

/* The place of a rank that a rank file gives these slots (NULL: none said, not bound). 0 or an exit code. */
int place_slots(hwloc_topology_t, const struct place_spec *, const char *slots, struct place *);

/* "core 2 (cpus 4,5)" into buf. */
void place_words(hwloc_topology_t, const struct place *, char *buf, size_t size);

#endif
