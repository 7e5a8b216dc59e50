/*
 * hints.h - what programs promise about their use of a communicator, and what the
 * library tells about it (MPI-5.0 sections 7.4.4 and 11.4.3).
 *
 * A communicator keeps in struct comm.info the hints that it was given and that are
 * known here with a value that makes sense; others are ignored, and so not returned.
 * Known hints with a default are returned also when they were never given. A new
 * communicator has none, whatever it was made from: the standard does not propagate
 * them, not even by MPI_Comm_dup.
 *
 * tern_lane is taken only while the communicator is being made (comm_reserve): by MPI_Comm_dup_with_info and
 * MPI_Comm_idup_with_info.
 *
 * Threads: the hints of a communicator are set by one thread at a time, as the standard
 * wants of collective calls, and may be asked for by others meanwhile: the object is
 * replaced as a whole, so they get all of the old hints or all of the new ones.
 */
#ifndef TERN_OBJ_HINTS_H
#define TERN_OBJ_HINTS_H

#include "obj/comm.h"
#include "obj/info.h"

/* The kinds of memory that buffers may be of: any that the processor reaches. */
#define MEMORY_KINDS "mpi,system"

/* Are all kinds of a list like "system,mpi:alloc_mem" among them? */
bool memory_kinds_known(const char *list);

/* Takes over the known ones of these hints (NULL: none); those not mentioned stay as they are. 0 or TERN_ERR_NOMEM. */
int comm_hints_set(struct comm *, struct info *);

/*
 * A layer above knows further hints (one layer at a time; NULL, NULL: no more): `known` says whether it takes this one,
 * `changed` is called when a communicator has been given some.
 */
void comm_hints_extend(bool (*known)(const char *key, const char *value), void (*changed)(struct comm *));

/* All hints in use, as a new info object; NULL with words when memory is out. */
struct info *comm_hints_used(const struct comm *);

#endif
