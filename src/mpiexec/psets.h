/*
 * psets.h - the job's process sets (mpiexec --pset NAME): what the job block tells the ranks of Tern, and what the PMIx
 * server answers to clients of other kinds.
 */
#ifndef TERN_MPIEXEC_PSETS_H
#define TERN_MPIEXEC_PSETS_H

#include "mpiexec/launch.h"

#include <pmix_server.h>

/* The names by program as the job block has them (proc/job_block.h), to be freed; NULL and no bytes when no program has one. */
char *psets_names(const struct spec *, size_t *bytes);

/* From now on questions can be answered. */
void psets_open(const struct job *);

/* Upcall of the PMIx library, on its thread: which sets are there, who is in one. */
pmix_status_t psets_query(pmix_proc_t *, pmix_query_t *queries, size_t n, pmix_info_cbfunc_t done, void *arg);

#endif
