/*
 * names.h - names published by PMIx clients (PMIx_Publish, _Lookup, _Unpublish) for as long as the job runs.
 * Called by the PMIx library on its thread only, with the signatures of its server module.
 */
#ifndef TERN_MPIEXEC_NAMES_H
#define TERN_MPIEXEC_NAMES_H

#include <pmix_server.h>

/* A name that is taken is refused with PMIX_ERR_DUPLICATE_KEY, nothing of the call is published then. */
pmix_status_t names_publish(const pmix_proc_t *, const pmix_info_t info[], size_t ninfo, pmix_op_cbfunc_t, void *arg);

/* Hands over those of the keys that are known; PMIX_ERR_NOT_FOUND when none is. */
pmix_status_t names_lookup(const pmix_proc_t *, char **keys, const pmix_info_t info[], size_t ninfo,
                           pmix_lookup_cbfunc_t, void *arg);

/* Forgets the keys that this process published (NULL: all of them). */
pmix_status_t names_unpublish(const pmix_proc_t *, char **keys, const pmix_info_t info[], size_t ninfo,
                              pmix_op_cbfunc_t, void *arg);

#endif
