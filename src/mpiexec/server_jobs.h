/*
 * server_jobs.h - what the PMIx server of a node tells its clients of other jobs that this launcher runs (registry.h),
 * and of deaths in its own job:
 *
 *     PMIx_Get of a reserved key, or tern.pair       from the registry; the job becomes known to the server, with its
 *                                                    size, and with the key of its connections to this job
 *     PMIx_Get of what a process of it has put       from the server of that process's node
 *     PMIx_Query_info of PMIX_QUERY_PROC_TABLE       its processes that have ended
 *     events                                         the ends of its processes, and of the job, to all clients
 *
 * The registry is asked of a job when a client first asks, and tells of the ends of its processes from then on. When
 * the job has ended, it is forgotten.
 *
 * Threads: the main one, unless another is named.
 */
#ifndef TERN_MPIEXEC_SERVER_JOBS_H
#define TERN_MPIEXEC_SERVER_JOBS_H

#include "mpiexec/asks.h"
#include "mpiexec/launch.h"

#include <pmix_server.h>

/* The server runs. */
void server_jobs_open(struct job *);

/* Upcalls of the PMIx library, on its thread: `p` is no process of this job; the query is one for a table of processes.
 */
pmix_status_t server_jobs_modex(const pmix_proc_t *p, pmix_modex_cbfunc_t, void *arg);
pmix_status_t server_jobs_table(const pmix_query_t *, pmix_info_cbfunc_t, void *arg);

/* Answers ASK_MODEX with the data of a rank of this node, when the rank has committed it; refuses when there is no
 * server, or the rank has ended. */
void server_jobs_give(const struct asker *, uint32_t rank);

/* A rank of this node has ended: the clients of this node are told, and who waits for what it would have put is refused.
 * `joined`: it had called PMIx_Init, or MPI_Init. */
void server_jobs_rank_ended(uint32_t rank, bool joined);

/* A rank of this job has died, and the job goes on: tells the clients. */
void server_jobs_tell_death(uint32_t rank);

#endif
