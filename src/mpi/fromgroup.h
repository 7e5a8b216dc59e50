/*
 * fromgroup.h - what the two functions have in common that make communicators from
 * groups alone (MPI-5.0 sections 7.4.2 and 7.6.2): there is no communicator whose
 * error handler would be called, so they are given one.
 */
#ifndef TERN_MPI_FROMGROUP_H
#define TERN_MPI_FROMGROUP_H

#include "mpi/report.h"
#include "obj/info.h"

struct from_groups {
    const char *call;
    struct errhandler *errh;
    struct group *group;
    struct info *info; /* NULL for MPI_INFO_NULL */
    const char *tag;
};

/* The handles are those that the objects were looked up by. 0, or the reported class. */
int check_from_groups(const struct from_groups *, MPI_Errhandler, MPI_Group, MPI_Info, const char *group_argument);

/* The end of such a call: rc is that of making; `made`, NULL where this process is not a member, gets the hints. */
int give_from_groups(const struct from_groups *, int rc, struct comm *made, MPI_Comm *newcomm);

#endif
