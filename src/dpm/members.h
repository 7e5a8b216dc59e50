/*
 * members.h - what the members of a group send to its root, which makes the table of it (table.h).
 *
 * One message of each member to the root: who it is, and its card. The first member of each job adds what there is to know of
 * that. A root that has no memory receives them all the same, and fails then.
 *
 * Functions that return int return 0 or a code with words. Threads: as collective calls on the communicator.
 */
#ifndef TERN_DPM_MEMBERS_H
#define TERN_DPM_MEMBERS_H

#include "obj/comm.h"

/*
 * Collective over the intracommunicator: the root gets the table of its group, malloc'ed. The others get no table, and their own
 * error codes; the root fails if anybody has.
 */
int members_table(struct comm *, int root, void **bytes_p, size_t *n_p);

#endif
