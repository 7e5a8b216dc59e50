/*
 * collblocks.h - the blocks of varying size that collv.c, alltoallv.c and neighbor.c move.
 *
 * Each call exists with int arrays and with wide ones. A struct blocks is one side of either; opening it checks the
 * arguments and gives wide arrays.
 */
#ifndef TERN_MPI_COLLBLOCKS_H
#define TERN_MPI_COLLBLOCKS_H

#include "mpi/collargs.h"
#include "mpi/widen.h"

/* What the arguments of a side are called. */
struct names {
    const char *buf, *counts, *displs, *type;
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
    struct wide *wide;                          /* [2], set by opening: room for counts and displacements */
};

/* Those of alltoallv and alltoallw, and of what receives from all without sending to each. */
extern const struct names blocks_sent, blocks_sent_each, blocks_received, blocks_received_each, blocks_gathered;

/*
 * The last lines of the entry points that move blocks: checks the sides, puts them into the call and carries it out. `n`: how
 * many blocks a side has. One of send and recv may be NULL: that side has none here, and what the call says of it stands.
 */
int carry_out_blocks(struct use, struct comm *, struct coll_call *, struct blocks *send, int n_send, struct blocks *recv, int n_recv);

#endif
