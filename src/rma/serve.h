/*
 * serve.h - what others want of this process's part of a window by messages: their operations, locks, posts and completes.
 *
 * The records of an origin are done in their order. One that needs a lock that is not to be had waits, and what that origin
 * sends after it is kept. The lock is requested in the seat of the target; for several origins that wait, one after the other.
 *
 *     AM_RMA_OPS --> done at once ---------------------------> answers
 *                |-> the lock is held by others: kept ... the lock is granted, the step runs --> done --> answers
 *
 * Threads: lane of the window's communicator.
 */
#ifndef TERN_RMA_SERVE_H
#define TERN_RMA_SERVE_H

#include "rma/target.h"

void serve_on_ops(struct win *, struct peer *from, const void *data, size_t n);

/* The peer is lost: its locks are given back, and what is kept of it is dropped. */
void serve_peer_end(struct win_target *);

/* The window's end: nobody has anything under way. */
void serve_close(struct win *);

#endif
