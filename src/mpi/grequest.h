/*
 * grequest.h - generalized requests (MPI-5.0 section 13.2): operations of the user's
 * own behind an MPI_Request. What the completion calls of requests.c need of them.
 *
 * The user's callbacks run on the thread that completes, frees or cancels, without any
 * lock. Results: 0, or the code that a callback returned, which is the call's result.
 */
#ifndef TERN_MPI_GREQUEST_H
#define TERN_MPI_GREQUEST_H

#include "obj/request.h"

static inline bool is_grequest(const struct request *r) { return r->kind == REQ_GENERAL; }

/* Asks the user for the status of a complete one; `status` may be MPI_STATUS_IGNORE. */
int grequest_query(struct request *, MPI_Status *status) TERN_COLD;

/* The end of a complete one that the user has waited for: query, free. The last callback that fails gives the result. */
int grequest_retire(struct request *, MPI_Status *status) TERN_COLD;

/* MPI_Request_free: free_fn is called now, or when the operation is complete. */
int grequest_release(struct request *) TERN_COLD;

int grequest_cancel(struct request *) TERN_COLD;

#endif
