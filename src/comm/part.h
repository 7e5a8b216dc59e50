/*
 * part.h - the end of an intercommunicator between two jobs (MPI_Comm_disconnect, 11.10.4): when no other communicator
 * connects the two groups, their processes close what they have of each other.
 */
#ifndef TERN_COMM_PART_H
#define TERN_COMM_PART_H

#include "obj/comm.h"

/* What is left of the communicator when it is gone. */
struct parting {
    struct comm *within;   /* of the local group; NULL: nothing is closed */
    struct rankmap *other; /* the remote group's */
};

/* Collective, in place of a barrier, when nothing is under way on the communicator: do its processes part? */
int comm_part_agree(struct comm *, struct parting *);

/* Collective over the local group, when the communicator has been let go. On return all members have parted, so that the
 * two jobs may be connected again. */
int comm_part(struct parting *);

#endif
