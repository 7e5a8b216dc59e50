/*
 * directory.h - the PMIx server's upcalls for published names. The first node keeps the names of all (names.c); servers
 * of others pass on what their clients say:
 *
 *     TREE_NAMES_ASK   id, what (8 bits), then packed by the PMIx library: process, count, keys or infos
 *     TREE_NAMES       id, status, then packed: count, data
 *
 * The upcalls are called by the PMIx library on its thread, with the signatures of its server module.
 */
#ifndef TERN_MPIEXEC_DIRECTORY_H
#define TERN_MPIEXEC_DIRECTORY_H

#include "mpiexec/launch.h"
#include <pmix_server.h>

/* Main thread, before the server starts; takes messages from here on. */
void directory_open(struct job *);

pmix_status_t directory_publish(const pmix_proc_t *, const pmix_info_t info[], size_t ninfo, pmix_op_cbfunc_t,
                                void *arg);
pmix_status_t directory_lookup(const pmix_proc_t *, char **keys, const pmix_info_t info[], size_t ninfo,
                               pmix_lookup_cbfunc_t, void *arg);
pmix_status_t directory_unpublish(const pmix_proc_t *, char **keys, const pmix_info_t info[], size_t ninfo,
                                  pmix_op_cbfunc_t, void *arg);

#endif
