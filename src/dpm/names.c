/* names.c - published names; see dpm.h. */
#include "base/err.h"
#include "dpm/dpm.h"
#include "proc/dynamic.h"

#include <mpi.h>

int dpm_publish(const char *service, const char *port) { return proc_publish(service, port); }

int dpm_unpublish(const char *service)
{
    int rc = proc_unpublish(service);
    return rc == TERN_ERR_NOT_FOUND || rc == TERN_ERR_ARG ? err_set(TERN_ERR_SERVICE, "%s", err_words()) : rc;
}

int dpm_lookup(const char *service, char *port)
{
    int rc = proc_lookup(service, 0, port, MPI_MAX_PORT_NAME);
    return rc == TERN_ERR_NOT_FOUND ? err_set(TERN_ERR_NAME, "%s", err_words()) : rc;
}
