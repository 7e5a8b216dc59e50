/*
 * ready.h - early receivers (PRO-18, PRO-23 to PRO-26): a large receive that is posted before its message says so to the sender, whose
 * message then goes straight to its memory, while the receiver computes. (Not MPI_Rsend's ready mode: here it is the receiver that
 * says that it is ready.)
 *
 *     receiver                                  sender
 *     posts the receive, and leaves a
 *     transfer in its shared segment
 *       AM_READY (context, tag, where) ------>  keeps that
 *     computes                                  MPI_Send: takes the transfer, and says where the data lies
 *                         <-------------------  AM_RTS, which names the transfer
 *                                               copies chunks, until all are done
 *     looks: the RTS meets the receive,
 *     as any does; copies what is left
 *
 * The receiver decides which message a receive gets, by the order of its receives and of the messages. The sender may write a message
 * into the memory of a receive only if it knows for certain that the receiver will match these two:
 *
 *   - The receive names its source and its tag, and all receives that were posted before it and match the same message have left
 *     transfers as well. So the sender can take transfers in the order in which the receives were posted.
 *   - The receiver has handled all messages that the sender has sent (tp_ops.handled), and the transfer is still open. So none of those
 *     messages has matched the receive. Messages that have taken a transfer, and messages of this file, cannot match it either, so they
 *     need not have been handled (`mark`): the sender can take several transfers while the receiver computes.
 *
 * Otherwise the message is offered as any other (protocol.h), and the receive withdraws its transfer when it meets the offer. The offer of
 * a message and the announcement of its receive may cross. Then the sender takes the transfer in place of its offer (take_late), unless
 * the receiver has withdrawn it: only one of the two can happen. The receiver withdraws the transfer first and accepts the offer after
 * that. So when the sender finds a transfer withdrawn, it replaces none of the offers that it made before (`withdrawn_at`): one of
 * them may be the one that was accepted.
 *
 * There are no sequence numbers. The number of handled messages says the same, and costs small messages nothing.
 *
 * All this is done only while one thread at a time is in the transports. Where threads share them, a message may have been read from the
 * wire and not have met its receive yet.
 *
 * Threads: under the lane's lock.
 */
#ifndef TERN_PT2PT_RNDV_READY_H
#define TERN_PT2PT_RNDV_READY_H

#include "pt2pt/protocol.h"
#include "type/type.h"

/* r->cookie of a send that was offered: tp_ops.sent before that. */
enum { READY_SENT = 3 };

/* The least receive that is announced, in bytes: larger than all that is eager; set by ready_open. */
extern TERN_HIDDEN int64_t ready_least;
void ready_open(void);

/* A nonblocking operation of the user's, or a send, begins. If it is large, messages are delivered first, as the other side may have
 * announced a receive since the last turn, and this process may compute next. This is not a whole turn of progress: that would copy
 * chunks of earlier messages one by one, and many messages that are under way together are copied faster. */
void ready_hear_large(const struct request *);
static inline void ready_hear(const struct request *r)
{
    if (unlikely(r->count * r->type->size >= ready_least)) ready_hear_large(r);
}

/* A receive has been posted that may be large. Announces it to its sender, if that is possible. */
void ready_announce(struct request *) TERN_COLD;

/* A receive that is announced meets another message, or ends without one. */
void ready_withdraw(struct request *) TERN_COLD;

/* The process with this index does not look at one of our transfers any more. */
void ready_closed(uint32_t index);

/* A receive that is announced is to be cancelled. False: its message is on its way. */
bool ready_cancel(struct request *) TERN_COLD;

/* A receive that is announced meets this message. True: the message has taken its transfer, which ready_meet then returns. False: it has
 * not, and the transfer is withdrawn. */
bool ready_is_taken_by(struct request *, const struct pt_rts *);
struct pt_offer *ready_meet(struct request *);

/* Sends that were offered take transfers that have been announced since, or that they may take now as the receiver has handled more.
 *   ready_offered   a message has been offered to a peer that has peer.ready
 *   ready_look      takes what can be taken. True: there was something to look at
 *   ready_waits     true: nothing can be taken now, and receivers wake this process when they have handled more */
void ready_offered(struct peer *);
bool ready_look(void);
bool ready_waits(void);

/* The struct of one peer goes; ready_close: those of all peers. */
void ready_forget(struct peer *);
void ready_close(void);

/* By the sender of a large message that has not been offered yet.
 *   ready_take        the transfer of the receive that the message will meet, mapped and filled in, and *at as pt_rts.offer; NULL: none
 *   ready_taken       the RTS of the send has gone out, and the transfer is r->xfer
 *   ready_give_back   the RTS could not go out */
struct pt_offer *ready_take(struct request *, uint64_t *at);
void ready_taken(struct request *);
void ready_give_back(struct pt_offer *) TERN_COLD;

/* Threads are about to share the transports: receives of this communicator withdraw what they have announced. */
void ready_end(struct pt_comm *) TERN_COLD;

#endif
