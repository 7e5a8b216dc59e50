/*
 * directory.h - the PMIx server's upcalls for published names. The names are those of the registry (registry.h), so
 * clients of all nodes and of all jobs of this mpiexec see them, and ranks that ask their launcher without PMIx do.
 * A value that is a string is published as it is; any other, packed by the PMIx library, in hexadecimal:
 *
 *     0x01, hexadecimal digits of the packed value
 *
 * The upcalls are called by the PMIx library on its thread, with the signatures of its server module; their ends are
 * called on the main thread. The questions of a call are asked one after the other, those of a lookup that waits together.
 */
#ifndef TERN_MPIEXEC_DIRECTORY_H
#define TERN_MPIEXEC_DIRECTORY_H

#include <event2/event.h>
#include <pmix_server.h>

/* Main thread, before the upcalls. */
void directory_open(struct event_base *);

/* A rank of this node has ended: its lookups that wait are given up. Main thread. */
void directory_rank_ended(uint32_t rank);

/* A key that is taken is refused with PMIX_ERR_DUPLICATE_KEY, and nothing of the call is published then. Empty
 * keys, those of 256 bytes and more, and values of more than the registry takes, are PMIX_ERR_BAD_PARAM. Range and
 * persistence are not looked at. */
pmix_status_t directory_publish(const pmix_proc_t *, const pmix_info_t info[], size_t ninfo, pmix_op_cbfunc_t,
                                void *arg);

/* Those of the keys that are known; PMIX_ERR_NOT_FOUND if none is. PMIX_WAIT: waits until so many are (0: all).
 * PMIX_TIMEOUT: for so many seconds at most (0: without end), then PMIX_ERR_TIMEOUT. */
pmix_status_t directory_lookup(const pmix_proc_t *, char **keys, const pmix_info_t info[], size_t ninfo,
                               pmix_lookup_cbfunc_t, void *arg);

/* What this process has published of the keys (NULL: all that it has). An empty key is PMIX_ERR_BAD_PARAM. */
pmix_status_t directory_unpublish(const pmix_proc_t *, char **keys, const pmix_info_t info[], size_t ninfo,
                                  pmix_op_cbfunc_t, void *arg);

#endif
