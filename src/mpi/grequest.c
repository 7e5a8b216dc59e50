/*
 * grequest.c - entry points: generalized requests; see grequest.h.
 *
 * A request of kind REQ_GENERAL has the user's extra state in `buf` and the callbacks
 * in `xfer`. Its completion goes through the lane like every other, so that whoever
 * waits, asleep or not, on whatever thread, sees it.
 */
#include "mpi/grequest.h"
#include "mpi/report.h"
#include "pt2pt/api.h"

#include <stdlib.h>

struct callbacks {
    MPI_Grequest_query_function *query;
    MPI_Grequest_free_function *free;
    MPI_Grequest_cancel_function *cancel;
};

static const struct callbacks *callbacks_of(const struct request *r) { return r->xfer; }

int grequest_query(struct request *r, MPI_Status *status)
{
    MPI_Status own = {0}; /* query_fn always gets a status to fill (13.2) */
    if (status == MPI_STATUS_IGNORE) status = &own;
    int before = status->MPI_ERROR; /* the user's, in calls for a single request */
    status_empty(status);
    int rc = callbacks_of(r)->query ? callbacks_of(r)->query(r->buf, status) : MPI_SUCCESS;
    status->MPI_ERROR = before;
    return rc;
}

/* Calls free_fn; the request is gone. */
static int dispose(struct request *r)
{
    struct callbacks *c = r->xfer;
    int rc = c->free ? c->free(r->buf) : MPI_SUCCESS;
    free(c);
    request_free(r);
    return rc;
}

int grequest_retire(struct request *r, MPI_Status *status)
{
    int queried = grequest_query(r, status);
    int freed = dispose(r);
    return freed ? freed : queried;
}

int grequest_release(struct request *r) { return pt_general_release(r) ? dispose(r) : MPI_SUCCESS; }

int grequest_cancel(struct request *r)
{
    const struct callbacks *c = callbacks_of(r);
    return c->cancel ? c->cancel(r->buf, request_is_complete(r)) : MPI_SUCCESS;
}

MPI_ALIAS(Grequest_start);
int PMPI_Grequest_start(MPI_Grequest_query_function *query_fn, MPI_Grequest_free_function *free_fn,
                        MPI_Grequest_cancel_function *cancel_fn, void *extra_state, MPI_Request *request)
{
    const char *call = "MPI_Grequest_start";
    check_running(call);
    if (!request) return bad_null(NULL, call, "request");
    struct callbacks *c = malloc(sizeof *c);
    struct request *r = c ? request_new(REQ_GENERAL) : NULL;
    if (!r) {
        free(c);
        return report(NULL, call, MPI_ERR_NO_MEM, "no memory for a request");
    }
    *c = (struct callbacks){query_fn, free_fn, cancel_fn};
    r->xfer = c;
    r->buf = extra_state;
    *request = (MPI_Request)r;
    return MPI_SUCCESS;
}

MPI_ALIAS(Grequest_complete);
int PMPI_Grequest_complete(MPI_Request request)
{
    const char *call = "MPI_Grequest_complete";
    check_running(call);
    struct request *r = request_of(request);
    if (!r || !is_grequest(r))
        return report(NULL, call, MPI_ERR_REQUEST, "argument request (%p) is not a generalized request, or one that was freed",
                      (void *)request);
    if (request_is_complete(r)) return report(NULL, call, MPI_ERR_REQUEST, "the request has been completed already");
    int rc = pt_general_complete(r) ? dispose(r) : MPI_SUCCESS;
    return rc ? report(NULL, call, rc, "the request's free function returned %d", rc) : MPI_SUCCESS;
}
