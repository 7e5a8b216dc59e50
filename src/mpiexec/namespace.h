/*
 * namespace.h - the job as PMIx clients are told of it: every server registers all of it, whatever node it serves.
 */
#ifndef TERN_MPIEXEC_NAMESPACE_H
#define TERN_MPIEXEC_NAMESPACE_H

#include "mpiexec/launch.h"
#include <pmix.h>

/* What PMIx_server_register_nspace takes, *n_p elements; allocated by the library's means. */
pmix_info_t *namespace_describe(const struct job *, size_t *n_p);

#endif
