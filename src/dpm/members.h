/*
 * members.h - what the members of a group tell its root, which makes the table of it (table.h).
 *
 * Two collectives: what is of fixed length, by which the root knows how much follows; then the cards. The first member of each job
 * adds what there is to be said of that.
 *
 * Functions that return int return 0 or a code with words. Threads: as collective calls on the communicator.
 */
#ifndef TERN_DPM_MEMBERS_H
#define TERN_DPM_MEMBERS_H

#include "obj/comm.h"

/*
 * Collective over the intracommunicator: the root gets the table of its group, malloc'ed. All others get nothing, and the code of
 * what failed with them; the root fails if anybody has.
 */
int members_table(struct comm *, int root, void **bytes_p, size_t *n_p);

#endif
