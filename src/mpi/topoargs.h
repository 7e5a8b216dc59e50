/*
 * topoargs.h - argument checks that the calls about topologies share (topo_cart.c,
 * topo_graph.c, topo_dist.c).
 */
#ifndef TERN_MPI_TOPOARGS_H
#define TERN_MPI_TOPOARGS_H

#include "mpi/report.h"
#include "topo/topo.h"

/* The communicator of a call that asks about its topology of this kind; NULL: *rc is the reported class. */
struct comm *with_topology(const char *call, MPI_Comm, int kind, int *rc);

/* The parent of a new communicator with a topology; NULL: *rc is the reported class. */
struct comm *topology_parent(const char *call, MPI_Comm, const char *argument, int *rc);

/* The end of a call that made a communicator, or failed with a code. */
int give_topology(struct comm *, const char *call, int code, struct comm *made, MPI_Comm *newcomm);

/* A user's array is too short for the n numbers that are asked for. MPI_SUCCESS: it is long enough, and there. */
int check_room(struct comm *, const char *call, const char *name, int room, const char *array, const int *given, int n);

/* A rank outside the communicator. */
int bad_topology_rank(struct comm *, const char *call, const char *argument, int rank);

#endif
