/* requests.h - what the entry points of requests share (requests.c, request_life.c). */
#ifndef TERN_MPI_REQUESTS_H
#define TERN_MPI_REQUESTS_H

#include "obj/request.h"

/* NULL and inactive persistent requests are complete with an empty status, and not counted by any/some. */
static inline bool is_idle(const struct request *r)
{
    return !r || (r->flags & (REQ_PERSISTENT | REQ_ACTIVE)) == REQ_PERSISTENT;
}

/* What a complete request's status says, the request staying as it is. Returns 0 or what a user's callback returned. */
int request_tell(struct request *, MPI_Status *status);

/* Reports a request's error: a code of the library's, or a positive one that a user's callback returned. */
int request_report(struct comm *, const char *call, int error);

/* The handle is none; at: its place in the array, or -1. */
int bad_request(const char *call, MPI_Request, int at) TERN_COLD;

#endif
