/*
 * requests.c - entry points: completion of requests (MPI-5.0 sections 3.7 to 3.9). What else is done with them:
 * request_life.c.
 *
 * What happens at completion is the same for all kinds of requests (retire); only
 * the waiting differs.
 */
#include "mpi/requests.h"
#include "mpi/grequest.h"
#include "mpi/report.h"
#include "pt2pt/api.h"
#include "pt2pt/call_log.h"

#include <stdlib.h>

/* The class of a request's error: a code of the library's, or a positive one that a user's callback returned. */
static int class_of(int error) { return error < 0 ? error_class(error) : error; }

/* The words of an error, which another thread may have found out. That the collectives of the communicator have come to their end,
 * or that a process is lost, is known there; whose loss ends an operation of all members is the communicator's to say. */
static TERN_COLD void recall(const struct request *r)
{
    int error = r->result.error;
    bool of_all = r->kind == REQ_COLL;
    if (of_all && err_is_of_peer(error)) pt_recall_member(r->comm);
    else pt_recall(r);
    if (of_all && error == TERN_ERR_DISAGREE) pt_call_log_failed(r->comm);
}

/* Takes a completed request's result into `status`; the request goes, or becomes inactive. Its reference to its communicator
 * goes to `refs`. Returns its error, see class_of. */
static inline int retire_counting(struct request *r, MPI_Request *h, MPI_Status *status, struct pt_refs *refs)
{
    if (unlikely(is_grequest(r))) {
        *h = MPI_REQUEST_NULL;
        return grequest_retire(r, status);
    }
    status_set(status, &r->result, r->result.cancelled);
    int error = r->result.error;
    if (unlikely(error)) recall(r);
    if (r->flags & REQ_PERSISTENT) {
        r->flags &= (uint8_t)~REQ_ACTIVE;
        return error;
    }
    *h = MPI_REQUEST_NULL;
    if (likely(!(r->flags & REQ_SHARED))) {
        if (refs) pt_retire_counting(r, refs);
        else pt_retire(r);
    }
    return error;
}

static inline int retire(struct request *r, MPI_Request *h, MPI_Status *status) { return retire_counting(r, h, status, NULL); }

/* Retires one request for a call that has a single one, and reports its error. */
static int retire_one(const char *call, struct request *r, MPI_Request *h, MPI_Status *status)
{
    struct comm *c = r->comm ? comm_ref(r->comm) : NULL;
    int rc = request_report(c, call, retire(r, h, status));
    if (c) comm_unref(c);
    return rc;
}

MPI_ALIAS(Wait);
int PMPI_Wait(MPI_Request *request, MPI_Status *status)
{
    if (unlikely(!request)) return bad_null(NULL, "MPI_Wait", "request");
    struct request *r = request_of(*request);
    if (unlikely(!r && *request != MPI_REQUEST_NULL)) return bad_request("MPI_Wait", *request, -1);
    if (unlikely(is_idle(r))) {
        status_empty(status);
        return MPI_SUCCESS;
    }
    if (likely(!pt_wait(r) && !is_grequest(r))) {
        retire(r, request, status);
        return MPI_SUCCESS;
    }
    return retire_one("MPI_Wait", r, request, status);
}

MPI_ALIAS(Test);
int PMPI_Test(MPI_Request *request, int *flag, MPI_Status *status)
{
    if (unlikely(!request || !flag)) return bad_null(NULL, "MPI_Test", request ? "flag" : "request");
    struct request *r = request_of(*request);
    if (unlikely(!r && *request != MPI_REQUEST_NULL)) return bad_request("MPI_Test", *request, -1);
    if (is_idle(r)) {
        *flag = 1;
        status_empty(status);
        return MPI_SUCCESS;
    }
    if (!request_is_complete(r)) pt_progress_once(r->comm);
    *flag = request_is_complete(r);
    return *flag ? retire_one("MPI_Test", r, request, status) : MPI_SUCCESS;
}

/* ---- several ---- */

/* Where a handle array's entries are looked at as requests: on the stack when short. */
struct set {
    int n;
    struct request **req;
    struct pt_refs refs; /* of those that were retired; given back by set_close */
    struct request *few[64];
};

/* `name`: what the call calls n. */
static int set_open(struct set *s, const char *call, const char *name, int n, const MPI_Request h[])
{
    s->n = n;
    s->req = s->few;
    s->refs = (struct pt_refs){NULL, 0};
    if (unlikely(n < 0)) return bad_count_named(NULL, call, n, name);
    if (unlikely(n && !h)) return bad_null(NULL, call, "array_of_requests");
    if (n > (int)ARRAY_LEN(s->few) && !(s->req = malloc((size_t)n * sizeof *s->req)))
        return report(NULL, call, MPI_ERR_NO_MEM, "no memory for %d requests", n);
    for (int i = 0; i < n; i++) {
        s->req[i] = h[i] == MPI_REQUEST_NULL ? NULL : request_of(h[i]);
        if (unlikely(!s->req[i] && h[i] != MPI_REQUEST_NULL)) {
            if (s->req != s->few) free(s->req);
            return bad_request(call, h[i], i);
        }
        if (is_idle(s->req[i])) s->req[i] = NULL;
    }
    return MPI_SUCCESS;
}

static void set_close(struct set *s)
{
    pt_give_refs(&s->refs);
    if (s->req != s->few) free(s->req);
}

static bool set_has_any(const struct set *s)
{
    for (int i = 0; i < s->n; i++)
        if (s->req[i]) return true;
    return false;
}

/* The first complete one at or after `from`, -1 if there is none. */
static int set_next(const struct set *s, int from)
{
    for (int i = from; i < s->n; i++)
        if (s->req[i] && request_is_complete(s->req[i])) return i;
    return -1;
}

static MPI_Status *status_at(MPI_Status *array, int i) { return array == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : array + i; }

/* Retires entry i of a call with several statuses: MPI_ERROR is set, as MPI_ERR_IN_STATUS will be returned. */
static int retire_at(struct set *s, int i, MPI_Request h[], MPI_Status *status)
{
    int error = retire_counting(s->req[i], &h[i], status, &s->refs);
    if (status != MPI_STATUS_IGNORE) status->MPI_ERROR = class_of(error);
    return error;
}

static TERN_COLD int in_status(const char *call)
{
    return report(NULL, call, MPI_ERR_IN_STATUS, "an operation failed; the error codes are in the statuses (%s)", err_words());
}

/* The end of a successful MPI_Testall. */
static int retire_all(const char *call, struct set *s, MPI_Request h[], MPI_Status statuses[])
{
    int failed = 0;
    for (int i = 0; i < s->n; i++) {
        if (likely(s->req[i] != NULL)) {
            failed |= retire_at(s, i, h, status_at(statuses, i));
        } else {
            status_empty(status_at(statuses, i));
        }
    }
    return unlikely(failed) ? in_status(call) : MPI_SUCCESS;
}

/* Waits for those behind entry i that can be waited for, the last one first: most often it ends last, and a thread that sleeps
 * is woken once and not for each. */
static TERN_COLD void wait_from_last(int i, int count, MPI_Request h[])
{
    for (int k = count - 1; k > i; k--) {
        struct request *r = handle_at(h[k]);
        if (handle_is(r, HANDLE_REQUEST) && !is_idle(r) && !request_is_complete(r)) pt_wait(r);
    }
}

/* Waits for one entry of MPI_Waitall and retires it; *failed collects errors, *refs references. In order, one pass: by the time the
 * first is complete most others are. */
static inline int wait_at(int i, int count, MPI_Request h[], MPI_Status *status, int *failed, struct pt_refs *refs)
{
    struct request *r = handle_at(h[i]);
    if (unlikely(!handle_is(r, HANDLE_REQUEST))) {
        r = request_of(h[i]);
        if (!r && h[i] != MPI_REQUEST_NULL) return bad_request("MPI_Waitall", h[i], i);
    }
    if (unlikely(is_idle(r))) {
        status_empty(status);
        return MPI_SUCCESS;
    }
    if (!request_is_complete(r)) {
        if (pt_waits_among_threads()) wait_from_last(i, count, h);
        pt_wait(r);
    }
    int error = retire_counting(r, &h[i], status, refs);
    if (status != MPI_STATUS_IGNORE) status->MPI_ERROR = class_of(error);
    *failed |= error;
    return MPI_SUCCESS;
}

MPI_ALIAS(Waitall);
int PMPI_Waitall(int count, MPI_Request array_of_requests[], MPI_Status array_of_statuses[])
{
    int failed = 0, rc = MPI_SUCCESS;
    struct pt_refs refs = {NULL, 0};
    if (unlikely(count < 0)) return bad_count(NULL, "MPI_Waitall", count);
    if (unlikely(count && !array_of_requests)) return bad_null(NULL, "MPI_Waitall", "array_of_requests");
    for (int i = 0; i < count && likely(!rc); i++)
        rc = wait_at(i, count, array_of_requests, status_at(array_of_statuses, i), &failed, &refs);
    pt_give_refs(&refs);
    if (unlikely(rc)) return rc;
    return unlikely(failed) ? in_status("MPI_Waitall") : MPI_SUCCESS;
}

MPI_ALIAS(Testall);
int PMPI_Testall(int count, MPI_Request array_of_requests[], int *flag, MPI_Status array_of_statuses[])
{
    struct set s;
    if (!flag) return bad_null(NULL, "MPI_Testall", "flag");
    int rc = set_open(&s, "MPI_Testall", "count", count, array_of_requests);
    if (rc) return rc;
    *flag = 1;
    for (int turn = 0; turn < 2; turn++) {
        *flag = 1;
        for (int i = 0; i < count && *flag; i++) *flag = !s.req[i] || request_is_complete(s.req[i]);
        if (*flag || turn) break;
        pt_progress_once(NULL);
    }
    if (*flag) rc = retire_all("MPI_Testall", &s, array_of_requests, array_of_statuses);
    set_close(&s);
    return rc;
}

/* Completes one request of a set: index, or MPI_UNDEFINED when nothing is active. */
static int any(const char *call, int count, MPI_Request h[], bool wait, int *index, int *flag, MPI_Status *status)
{
    struct set s;
    if (!index || !flag) return bad_null(NULL, call, index ? "flag" : "indx");
    int rc = set_open(&s, call, "count", count, h);
    if (rc) return rc;
    *index = MPI_UNDEFINED;
    *flag = 1;
    if (!set_has_any(&s)) {
        status_empty(status);
    } else {
        int i = set_next(&s, 0);
        if (i < 0 && wait) pt_wait_many(count, s.req, false);
        else if (i < 0) pt_progress_once(NULL);
        if (i < 0) i = set_next(&s, 0);
        *flag = i >= 0;
        if (i >= 0) {
            *index = i;
            rc = retire_one(call, s.req[i], &h[i], status);
        }
    }
    set_close(&s);
    return rc;
}

MPI_ALIAS(Waitany);
int PMPI_Waitany(int count, MPI_Request array_of_requests[], int *index, MPI_Status *status)
{
    int flag;
    return any("MPI_Waitany", count, array_of_requests, true, index, &flag, status);
}

MPI_ALIAS(Testany);
int PMPI_Testany(int count, MPI_Request array_of_requests[], int *index, int *flag, MPI_Status *status)
{
    return any("MPI_Testany", count, array_of_requests, false, index, flag, status);
}

/* Completes all that are complete: how many, MPI_UNDEFINED when nothing is active. */
static int some(const char *call, int count, MPI_Request h[], bool wait, int *outcount, int indices[], MPI_Status statuses[])
{
    struct set s;
    int failed = 0, n = 0;
    if (!outcount || (!indices && count > 0)) return bad_null(NULL, call, outcount ? "array_of_indices" : "outcount");
    int rc = set_open(&s, call, "incount", count, h);
    if (rc) return rc;
    if (!set_has_any(&s)) {
        *outcount = MPI_UNDEFINED;
        set_close(&s);
        return MPI_SUCCESS;
    }
    if (set_next(&s, 0) < 0) {
        if (wait) pt_wait_many(count, s.req, false);
        else pt_progress_once(NULL);
    }
    for (int i = set_next(&s, 0); i >= 0; i = set_next(&s, i + 1)) {
        failed |= retire_at(&s, i, h, status_at(statuses, n));
        indices[n++] = i;
    }
    *outcount = n;
    set_close(&s);
    return failed ? in_status(call) : MPI_SUCCESS;
}

MPI_ALIAS(Waitsome);
int PMPI_Waitsome(int incount, MPI_Request array_of_requests[], int *outcount, int array_of_indices[],
                  MPI_Status array_of_statuses[])
{
    return some("MPI_Waitsome", incount, array_of_requests, true, outcount, array_of_indices, array_of_statuses);
}

MPI_ALIAS(Testsome);
int PMPI_Testsome(int incount, MPI_Request array_of_requests[], int *outcount, int array_of_indices[],
                  MPI_Status array_of_statuses[])
{
    return some("MPI_Testsome", incount, array_of_requests, false, outcount, array_of_indices, array_of_statuses);
}

/* ---- looking without completing: as the tests, but the requests stay ---- */

static int look(const struct set *s, int i, MPI_Status *status)
{
    struct request *r = s->req[i];
    int error = 0;
    if (r) error = request_tell(r, status);
    else status_empty(status);
    if (status != MPI_STATUS_IGNORE) status->MPI_ERROR = class_of(error ? error : r ? r->result.error : 0);
    return error;
}

static bool set_is_complete(const struct set *s)
{
    for (int i = 0; i < s->n; i++)
        if (s->req[i] && !request_is_complete(s->req[i])) return false;
    return true;
}

MPI_ALIAS(Request_get_status_all);
int PMPI_Request_get_status_all(int count, const MPI_Request array_of_requests[], int *flag, MPI_Status *array_of_statuses)
{
    struct set s;
    if (!flag) return bad_null(NULL, "MPI_Request_get_status_all", "flag");
    int rc = set_open(&s, "MPI_Request_get_status_all", "count", count, array_of_requests);
    if (rc) return rc;
    if (!set_is_complete(&s)) pt_progress_once(NULL);
    *flag = set_is_complete(&s);
    int failed = 0;
    for (int i = 0; i < count && *flag; i++) failed |= look(&s, i, status_at(array_of_statuses, i));
    set_close(&s);
    return failed ? in_status("MPI_Request_get_status_all") : MPI_SUCCESS;
}

MPI_ALIAS(Request_get_status_any);
int PMPI_Request_get_status_any(int count, const MPI_Request array_of_requests[], int *indx, int *flag, MPI_Status *status)
{
    const char *call = "MPI_Request_get_status_any";
    struct set s;
    if (!indx || !flag) return bad_null(NULL, call, indx ? "flag" : "indx");
    int rc = set_open(&s, call, "count", count, array_of_requests);
    if (rc) return rc;
    bool active = set_has_any(&s);
    if (active && set_next(&s, 0) < 0) pt_progress_once(NULL);
    int i = set_next(&s, 0);
    *flag = !active || i >= 0;
    *indx = i >= 0 ? i : MPI_UNDEFINED;
    if (i >= 0) rc = request_report(s.req[i]->comm, call, request_tell(s.req[i], status));
    else if (!active) status_empty(status);
    set_close(&s);
    return rc;
}

MPI_ALIAS(Request_get_status_some);
int PMPI_Request_get_status_some(int incount, const MPI_Request array_of_requests[], int *outcount, int array_of_indices[],
                                 MPI_Status *array_of_statuses)
{
    const char *call = "MPI_Request_get_status_some";
    struct set s;
    int n = 0, failed = 0;
    if (!outcount || (!array_of_indices && incount > 0)) return bad_null(NULL, call, outcount ? "array_of_indices" : "outcount");
    int rc = set_open(&s, call, "incount", incount, array_of_requests);
    if (rc) return rc;
    if (set_has_any(&s) && set_next(&s, 0) < 0) pt_progress_once(NULL);
    *outcount = set_has_any(&s) ? 0 : MPI_UNDEFINED;
    for (int i = set_next(&s, 0); i >= 0; i = set_next(&s, i + 1)) {
        failed |= look(&s, i, status_at(array_of_statuses, n));
        array_of_indices[n++] = i;
        *outcount = n;
    }
    set_close(&s);
    return failed ? in_status(call) : MPI_SUCCESS;
}
