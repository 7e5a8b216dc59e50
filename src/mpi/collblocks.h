/*
 * collblocks.h - the blocks of varying size that collv.c, alltoallv.c and neighbor.c move.
 *
 * Each call exists with int arrays and with wide ones. A struct blocks is one side of
 * either; opening it checks the arguments and gives wide arrays.
 */
#ifndef TERN_MPI_COLLBLOCKS_H
#define TERN_MPI_COLLBLOCKS_H

#include "mpi/collargs.h"
#include "mpi/widen.h"

/* What the arguments of a side are called. */
struct names {
    const char *side, *buf, *counts, *displs, *type;
};

struct blocks {
    const struct names *names;
    const void *buf;
    const int *counts, *displs;                 /* the user's arrays: these ... */
    const int64_t *wide_counts, *wide_displs;   /* ... or these, which opening sets */
    MPI_Datatype datatype;                      /* of all blocks ... */
    bool each;
    const MPI_Datatype *datatypes;              /* ... or (each, for alltoallw) of every one */
    struct type *type, **types;                 /* set by opening */
    struct wide *wide; /* counts and displacements, where opening finds room for them */
};

/* Room for the arrays of one side, beside the struct, which is set to zero as a whole. */
struct blocks_room {
    struct wide wide[2];
};

/* A block for each rank, or n of them. To be closed whether it succeeded or not, or has been opened at all. */
int blocks_open(struct comm *, const char *call, struct blocks *, struct blocks_room *);
int blocks_open_some(struct comm *, const char *call, int n, struct blocks *, struct blocks_room *);
void blocks_close(struct blocks *);

#endif
