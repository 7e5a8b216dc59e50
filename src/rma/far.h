/*
 * far.h - operations by messages: what an origin has started at a target that it cannot reach by itself.
 *
 * Operations are collected in a batch, which goes out when it is full, and at the end of an epoch or at a flush, together with
 * the lock before it and the unlock behind it: an epoch of a few small operations is one message each way. What the origin
 * puts is copied, so its buffers are free on return. What it gets is there when the answer has come.
 *
 * At most FAR_UNANSWERED bytes are sent until the target has answered that all of it is done.
 *
 * Threads: lane of the window's communicator.
 */
#ifndef TERN_RMA_FAR_H
#define TERN_RMA_FAR_H

#include "rma/op.h"

/* Starts an operation. `req`: the request that is to be completed at its end, NULL: none. 0 or a code with words. */
int far_start(struct win_target *, const struct win_op *, struct request *req);

/* Writes a small put into the batch, if that is all there is to do. By a caller, while threads do not share the lanes; the lane need
 * not be held. */
bool far_note(struct win_target *, const struct win_op *);

/* Accumulates were started there that may not be done yet: others on the same memory must not overtake them. */
bool far_accumulates(const struct win_target *);

int far_lock(struct win_target *, enum win_lock_mode); /* goes out with what follows it */
int far_unlock(struct win_target *);                    /* and waits until all is done there */
int far_flush(struct win_target *);       /* waits until all that was started is done there */
int far_flush_local(struct win_target *); /* waits until all that is fetched is here */
int far_post(struct win_target *);        /* MPI_Win_post: to an origin */
int far_complete(struct win_target *);    /* MPI_Win_complete; waits as far_flush_local does */

void far_peer_end(struct win_target *); /* the peer is lost: ends what is under way */
void far_close(struct win_target *);    /* nothing is under way */

/* The handler of answers. */
void far_on_answers(struct win *, struct peer *from, const void *data, size_t n);

#endif
