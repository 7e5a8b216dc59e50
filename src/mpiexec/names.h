/*
 * names.h - names published by PMIx clients (PMIx_Publish, _Lookup, _Unpublish) for as long as the job runs: the list,
 * which one server of the job keeps (directory.h).
 *
 * Threads: any.
 */
#ifndef TERN_MPIEXEC_NAMES_H
#define TERN_MPIEXEC_NAMES_H

#include <pmix_server.h>

/* A name that is taken is refused with PMIX_ERR_DUPLICATE_KEY, nothing of the call is published then. */
pmix_status_t names_publish(const pmix_proc_t *, const pmix_info_t info[], size_t ninfo);

/* Those of the keys that are known: *n_p elements, to be freed by names_free; PMIX_ERR_NOT_FOUND when none is. */
pmix_status_t names_lookup(char **keys, pmix_pdata_t **data_p, size_t *n_p);
void names_free(pmix_pdata_t *, size_t n);

/* Forgets the keys that this process published (NULL: all of them). */
pmix_status_t names_unpublish(const pmix_proc_t *, char **keys);

#endif
