/*
 * request_life.c - entry points: looking at requests, starting, freeing and cancelling them (MPI-5.0 sections 3.7.6, 3.8.4,
 * 3.9), and what their entry points have in common.
 */
#include "mpi/requests.h"
#include "mpi/grequest.h"
#include "mpi/report.h"
#include "pt2pt/api.h"

#include <stdio.h>

int bad_request(const char *call, MPI_Request h, int at)
{
    check_running(call);
    char name[48] = "request";
    if (at >= 0) snprintf(name, sizeof name, "array_of_requests[%d]", at);
    return report(NULL, call, MPI_ERR_REQUEST, "argument %s (%p) is not a request, or one that was freed", name, (void *)h);
}

int request_tell(struct request *r, MPI_Status *status)
{
    if (unlikely(is_grequest(r))) return grequest_query(r, status);
    status_set(status, &r->result, r->result.cancelled);
    return 0;
}

int request_report(struct comm *c, const char *call, int error)
{
    if (unlikely(error > 0)) return report(c, call, error, "a callback of the generalized request returned %d", error);
    return report_if(c, call, error);
}

MPI_ALIAS(Request_get_status);
int PMPI_Request_get_status(MPI_Request request, int *flag, MPI_Status *status)
{
    if (!flag) return bad_null(NULL, "MPI_Request_get_status", "flag");
    struct request *r = request == MPI_REQUEST_NULL ? NULL : request_of(request);
    if (!r && request != MPI_REQUEST_NULL) return bad_request("MPI_Request_get_status", request, -1);
    if (is_idle(r)) {
        *flag = 1;
        status_empty(status);
        return MPI_SUCCESS;
    }
    if (!request_is_complete(r)) pt_progress_once(r->comm);
    *flag = request_is_complete(r);
    return *flag ? request_report(r->comm, "MPI_Request_get_status", request_tell(r, status)) : MPI_SUCCESS;
}

/* ---- starting, freeing, cancelling ---- */

/* Other ranks depend on it (MPI-5.0 sections 6.12 and 6.13). */
static TERN_COLD int bad_for_collective(const char *call, struct request *r)
{
    return report(r->comm, call, MPI_ERR_REQUEST, "argument request is of a collective: once started, it can only be completed");
}

static int start(const char *call, MPI_Request h, int at)
{
    struct request *r = h == MPI_REQUEST_NULL ? NULL : request_of(h);
    if (!r) return bad_request(call, h, at);
    if (!(r->flags & REQ_PERSISTENT)) return report(r->comm, call, MPI_ERR_REQUEST, "the request is not persistent");
    if (r->flags & REQ_ACTIVE) return report(r->comm, call, MPI_ERR_REQUEST, "the request is active: it was started and not completed yet");
    return report_if(r->comm, call, pt_start(r));
}

MPI_ALIAS(Start);
int PMPI_Start(MPI_Request *request)
{
    if (!request) return bad_null(NULL, "MPI_Start", "request");
    return start("MPI_Start", *request, -1);
}

MPI_ALIAS(Startall);
int PMPI_Startall(int count, MPI_Request array_of_requests[])
{
    if (count < 0) return bad_count(NULL, "MPI_Startall", count);
    if (count && !array_of_requests) return bad_null(NULL, "MPI_Startall", "array_of_requests");
    for (int i = 0; i < count; i++) {
        int rc = start("MPI_Startall", array_of_requests[i], i);
        if (rc) return rc;
    }
    return MPI_SUCCESS;
}

MPI_ALIAS(Request_free);
int PMPI_Request_free(MPI_Request *request)
{
    if (!request) return bad_null(NULL, "MPI_Request_free", "request");
    struct request *r = *request == MPI_REQUEST_NULL ? NULL : request_of(*request);
    if (!r) return bad_request("MPI_Request_free", *request, -1);
    if (r->kind == REQ_COLL && !(r->flags & REQ_PERSISTENT) && !request_is_complete(r))
        return bad_for_collective("MPI_Request_free", r);
    *request = MPI_REQUEST_NULL;
    if (is_grequest(r)) return request_report(NULL, "MPI_Request_free", grequest_release(r));
    pt_release(r);
    return MPI_SUCCESS;
}

MPI_ALIAS(Cancel);
int PMPI_Cancel(MPI_Request *request)
{
    if (!request) return bad_null(NULL, "MPI_Cancel", "request");
    struct request *r = *request == MPI_REQUEST_NULL ? NULL : request_of(*request);
    if (!r) return bad_request("MPI_Cancel", *request, -1);
    if (r->kind == REQ_COLL) return bad_for_collective("MPI_Cancel", r);
    return request_report(r->comm, "MPI_Cancel", is_grequest(r) ? grequest_cancel(r) : pt_cancel(r));
}

MPI_ALIAS(Test_cancelled);
int PMPI_Test_cancelled(const MPI_Status *status, int *flag)
{
    if (!status || !flag) return bad_null(NULL, "MPI_Test_cancelled", status ? "flag" : "status");
    *flag = status->MPI_internal[2] != 0;
    return MPI_SUCCESS;
}
