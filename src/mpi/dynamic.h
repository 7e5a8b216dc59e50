/* dynamic.h - the communicator with the processes that have spawned this one (MPI_Comm_get_parent). */
#ifndef TERN_MPI_DYNAMIC_H
#define TERN_MPI_DYNAMIC_H

#include "obj/comm.h"

/* In MPI_Init, when there is MPI_COMM_WORLD. Collective over it, where it was spawned. 0, or a code with words. */
int dynamic_open(void);

/* The world ends, and this communicator with it: MPI_COMM_NULL from then on, though a session may go on. */
void dynamic_close(void);

/* The communicator is being let go by the user. */
void dynamic_forget(const struct comm *);

#endif
