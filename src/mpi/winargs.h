/*
 * winargs.h - what the calls on windows check alike.
 */
#ifndef TERN_MPI_WINARGS_H
#define TERN_MPI_WINARGS_H

#include "mpi/report.h"
#include "rma/rma.h"

int bad_win(const char *call, MPI_Win) TERN_COLD; /* reports why it is no window */
int bad_target(const struct win *, const char *call, const char *name, int rank) TERN_COLD; /* the rank is not in the window */

static inline bool target_ok(const struct win *w, int rank) { return likely((uint32_t)rank < (uint32_t)w->comm->size); }

#endif
