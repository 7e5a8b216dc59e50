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
 * Which message is a receive's is for the receiver to find, by the order of its receives and of the messages. The sender may put
 * one into its memory only when there is no doubt what it will find:
 *
 *   - the receive names source and tag, and all receives posted before it that would take such a message have left transfers as
 *     well: so these are taken in the order in which they were posted;
 *   - the receiver has handled all messages that were sent to it (tp_ops.handled), and the transfer is still open: none of those
 *     was for it. Messages that take transfers, and those of this file, change nothing about that, so several can be taken while
 *     the receiver computes (`mark`).
 *
 * Otherwise the message is offered as any other (protocol.h), and the receive withdraws its transfer when it meets one. If the two cross,
 * the offer of a message and the word that its receive is ready, the sender takes the transfer in place of its offer (take_late), unless
 * the receiver is faster: either takes it or withdraws it, and only one can. The receiver withdraws the transfer first and takes the offer
 * next; so when a transfer is seen withdrawn, offers that were made before stay what they are (`withdrawn_at`).
 *
 * There are no sequence numbers: what has been handled tells what these would tell, and costs small messages nothing.
 *
 * Only while one thread at a time is in the transports: where threads share them a message may have been read and not met its
 * receive yet.
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

/* A nonblocking operation of the user's, or a send, begins: if it is large, what the other side has announced since the last turn is heard
 * first, as this process may compute next. No turn of progress: that would copy chunks of the messages before, one by one, where many
 * that are under way together are copied faster. */
void ready_hear_large(const struct request *);
static inline void ready_hear(const struct request *r)
{
    if (unlikely(r->count * r->type->size >= ready_least)) ready_hear_large(r);
}

/* A receive has been posted that may be large: announces it to its sender, if that is possible. */
void ready_announce(struct request *) TERN_COLD;

/* A receive that is announced meets another message, or ends without one. */
void ready_withdraw(struct request *) TERN_COLD;

/* The process with this index will not look at one of our transfers again. */
void ready_closed(uint32_t index);

/* ... is to be cancelled. False: its message is on its way. */
bool ready_cancel(struct request *) TERN_COLD;

/* ... meets this message. True: that has taken its transfer, which ready_meet then gives. False: it has not, and the transfer is withdrawn. */
bool ready_is_taken_by(struct request *, const struct pt_rts *);
struct pt_offer *ready_meet(struct request *);

/* Offers that are out: those for which transfers have been announced since, or that could be taken now, as the receiver has handled more,
 * take them. True: there was something to be looked at. ready_waits: nothing could be taken now, and receivers that handle more wake
 * this process. */
void ready_offered(struct peer *); /* another one is out, to a peer with peer.ready */
bool ready_look(void);
bool ready_waits(void);

/* The struct of one peer goes; ready_close: those of all peers. */
void ready_forget(struct peer *);
void ready_close(void);

/* The sender of a large message that has not been offered yet: the transfer of a receive that it will meet, mapped and filled in;
 * NULL: none. *at: as pt_rts.offer. ready_taken: the RTS of the send, whose transfer it is, has gone out. ready_give_back: it could not. */
struct pt_offer *ready_take(struct request *, uint64_t *at);
void ready_taken(struct request *);
void ready_give_back(struct pt_offer *) TERN_COLD;

/* Threads are about to share the transports: receives of this communicator withdraw what they have announced. */
void ready_end(struct pt_comm *) TERN_COLD;

#endif
