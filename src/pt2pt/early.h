/*
 * early.h - messages that come before their communicator has been made here, while its other processes use it already.
 *
 *     early_put (dispatch.h)     early_open, when the communicator is made
 *     context -> message, message, message -> handled in the order in which they came
 *
 * They count as unreceived (peer.stored), and the contexts are bounded: a process that sends for more of them than there
 * can be is lost.
 *
 * Threads: under the lane's lock, and the queues under the lock of the table of contexts (contexts.h) as well, once threads share
 * the transports. A thread that finds no communicator queues the message with that lock; the thread that makes the
 * communicator posts the queue to its lane (deliver.h) before the first other thread finds it. So nothing overtakes.
 */
#ifndef TERN_PT2PT_EARLY_H
#define TERN_PT2PT_EARLY_H

#include "pt2pt/contexts.h"
#include "pt2pt/dispatch.h"

extern TERN_HIDDEN uint32_t early_contexts; /* those that messages wait for */

/* Hands what has come for a communicator to the messages' handlers, while one thread at a time uses the transports. */
void early_open(struct pt_comm *) TERN_COLD;

/* The same as mail of the communicator's lane, which is opened later, once threads share the transports. With contexts_lock. */
void early_post(const struct pt_comm *) TERN_COLD;

/* The sender takes back a synchronous or offered message: true if it was here, and is gone. */
bool early_cancel(struct lane *, struct peer *from, uint64_t ctx, uint64_t send) TERN_COLD;

/* Collectives of a communicator that is gone here: their messages go, and the senders are answered. */
void early_swallow(struct lane *, uint64_t ctx) TERN_COLD;

/* Drops what the peer should still wait for: the connection is closed. */
void early_drop_offers(const struct peer *) TERN_COLD;

void early_close(void); /* drops all */

#endif
