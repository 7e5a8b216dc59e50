/*
 * launcher_vars.h - which variables of the environment a launcher has made for one rank, so that no other process may inherit them:
 * neither the ranks of a launcher that runs inside of another one's job, nor the processes that a rank spawns.
 */
#ifndef TERN_PROC_LAUNCHER_VARS_H
#define TERN_PROC_LAUNCHER_VARS_H

#include "base/compiler.h"

#include <string.h>

/* Of "NAME=value". */
static inline bool is_launchers_variable(const char *assignment)
{
    static const char *const prefixes[] = {"PMI_",
                                           "PMIX_",
                                           "OMPI_COMM_WORLD_",
                                           "OMPI_UNIVERSE_SIZE=",
                                           "OMPI_MCA_orte_local_daemon_uri=",
                                           "TERN_JOB_",
                                           "MPI_LOCALRANKID=",
                                           "MPI_LOCALNRANKS=",
                                           "HYDI_CONTROL_FD="};
    if (!strncmp(assignment, "PMIX_MCA_", 9)) return false; /* the user's settings of a PMIx library */
    for (size_t i = 0; i < ARRAY_LEN(prefixes); i++)
        if (!strncmp(assignment, prefixes[i], strlen(prefixes[i]))) return true;
    return false;
}

#endif
