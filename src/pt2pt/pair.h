/*
 * pair.h - a send and a receive as one operation: MPI_Sendrecv and its relatives
 * (MPI-5.0 section 3.10).
 *
 * The nonblocking form is a request of kind REQ_PAIR that is complete when both
 * halves are; it says what the receive says. All results: 0 or a code with words.
 * Either side may be MPI_PROC_NULL.
 */
#ifndef TERN_PT2PT_PAIR_H
#define TERN_PT2PT_PAIR_H

#include "obj/comm.h"
#include "obj/request.h"
#include "type/type.h"

struct pair_send {
    const void *buf;
    int64_t count;
    struct type *type;
    int dest, tag;
};

struct pair_recv {
    void *buf;
    int64_t count;
    struct type *type;
    int source, tag;
};

int pair_run(struct comm *, const struct pair_send *, const struct pair_recv *, struct request_result *);
int pair_start(struct comm *, const struct pair_send *, const struct pair_recv *, struct request **req_p);

/* One buffer: what is sent is packed aside before the receive may overwrite it. */
int pair_replace(struct comm *, int dest, int sendtag, const struct pair_recv *, struct request_result *);
int pair_start_replace(struct comm *, int dest, int sendtag, const struct pair_recv *, struct request **req_p);

#endif
