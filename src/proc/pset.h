/*
 * pset.h - process sets: names for groups of processes, from which sessions begin
 * (MPI-5.0 section 11.3.2).
 *
 *     mpi://WORLD   all processes of the job      } upper and lower case are the same
 *     mpi://SELF    this process                  } in names that begin with mpi://
 *     tern://node   the processes of this node
 *     others        the launcher's: mpiexec --pset NAME, or what PMIx tells
 *
 * A name has a number, which stays; new sets are behind the others.
 *
 * Threads: any, after proc_open.
 */
#ifndef TERN_PROC_PSET_H
#define TERN_PROC_PSET_H

#include "obj/rankmap.h"

/* How many there are now. 0 or a code. */
int pset_count(int *count_p);

/* The name of the n-th, which pset_count counted; valid until pset_close. */
const char *pset_name_of(int n);

/* Its processes; the caller gets a reference. TERN_ERR_NOT_FOUND: there is no such set. */
int pset_find(const char *name, struct rankmap **out);

void pset_close(void);

#endif
