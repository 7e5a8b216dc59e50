/*
 * map.h - which rank runs on which host.
 *
 * A host takes `chunk` ranks in a round: its slots, or what -ppn, -N or ppr:N:node say. Ranks fill the hosts in their
 * order (or, mapped by node, go to one after the other), and when all have their chunk, the next round begins at the
 * first: more ranks than slots are no error. That is how Hydra goes on; Open MPI would give the surplus to the hosts in
 * blocks.
 *
 *     -hosts a,b:2 -n 7             a b b a b b a
 *     -hosts a:2,b:2 -n 6           a a b b a a
 *     -hosts a:4,b:2 -n 6 -map-by node   a b a b a a
 *     -hosts a,b -ppn 2 -n 6        a a b b a a
 *
 * Programs (':') that name hosts themselves use only these, the others use all that were named; both count what is on a
 * host already, so that the second program goes on where the first ended.
 */
#ifndef TERN_MPIEXEC_MAP_H
#define TERN_MPIEXEC_MAP_H

#include "mpiexec/spec.h"

/* A host with ranks; hosts without any are left out. */
struct map_node {
    const struct host *host;
    int nranks;
    int *ranks; /* by local rank */
};

struct map {
    int nnodes;
    struct map_node *nodes; /* in the order of the hosts */
    int *node, *local;      /* [spec->size], by rank */
};

/* Settles the hosts of each program and of the job, once all options are read: what was named, else what a resource
 * manager gave, else this host; with the hosts of a rank file, without this one if --nolocal says so, in the order of
 * -order-nodes. 0 or an exit code after saying why. */
int map_hosts(struct spec *);

/* Ranks a program has if it does not say: its hosts' slots, or so many a host; 1 if nothing was named. */
int64_t map_default_size(const struct spec *, const struct app_spec *);

/* The map, when the sizes of all programs are settled. 0 or an exit code after saying why there is none: a rank file's
 * host is unknown, or there are more ranks than slots and that is not to be. */
int map_ranks(const struct spec *, struct map *);

/* Frees what map_ranks has made. */
void map_free(struct map *);

/* Prints what --display-allocation and --display-map ask for on standard output. */
void map_show(const struct spec *, const struct map *);

#endif
