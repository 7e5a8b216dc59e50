/*
 * disconnect.h - the end of a communicator by MPI_Comm_disconnect (11.10.4): all its members have done with it when the
 * call returns, and if it was the last one between them and processes of other jobs, those peers are closed.
 *
 * Peers are closed without this as well, when no communicator needs them (pt2pt/closing.h). What is added here is that
 * the call waits for it, if that can be waited for: if no process of the communicator needs the others any more.
 */
#ifndef TERN_COMM_DISCONNECT_H
#define TERN_COMM_DISCONNECT_H

#include "obj/comm.h"

/* The groups of the communicator, which outlive it for comm_disconnect_wait. */
struct disconnecting {
    struct rankmap *map, *local; /* NULL: nothing is waited for */
};

/*
 * Collective, in place of a barrier, when nothing is under way on the communicator: will its peers of other jobs be
 * closed once it is let go? `goes`: this process lets it go. 0, or the code of the collective operation, with words;
 * then nothing is to be waited for.
 */
int comm_disconnect_agree(struct comm *, bool goes, struct disconnecting *);

/* Called after the communicator has been let go: returns when its peers have been closed here, or are lost. */
void comm_disconnect_wait(struct disconnecting *);

#endif
