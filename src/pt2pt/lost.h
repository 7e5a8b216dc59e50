/*
 * lost.h - peers that there is no way to any more: their process died, the connection
 * broke, or what they sent cannot be.
 *
 *     died   its process has ended without MPI_Finalize
 *     lost   nothing comes or goes any more, for whatever reason (peer.lost)
 *     left   lost, after it has taken its leave (PEER_LEFT)
 *     over   alive, in MPI_Finalize: it starts nothing more (PEER_OVER)
 *
 *     at once, pt_lose               nothing more is sent to the peer or taken from it; the words are kept
 *     next turn, end_lost_peers      every operation that only the peer could have completed ends with TERN_ERR_PEER
 *                                    and those words: sends to it, large messages to and from it, posted receives
 *                                    that name it, and those from any source on communicators that it is in
 *     from then on                   sends to it and receives that name it fail at once
 *
 * The operations end one turn of progress later than the loss is noted: ending an operation starts others (schedules),
 * which must not happen inside a transport or a walk over a list, where the loss may have been found.
 *
 * Messages that had come completely can still be received. A receive from any source on a communicator with a lost
 * member fails, unless its message is there: it may wait for the lost process. Receives that name a living process, and
 * communicators without the lost process, go on.
 *
 * Collective operations need all members. On a communicator with a lost member they are over (call_log.h): their
 * receives fail, and so do waits in the memory of a node. Messages that come for them are taken and dropped, so that
 * the ranks that fail do not leave the senders waiting. Messages between two processes in the collective half
 * (pt_tag_is_for_two) go on, so that the survivors can make a communicator of their own.
 *
 * A loss is found by a transport, whose connection breaks, or told: by the launcher (hear_deaths) or by the system
 * (pt_hear_ends). The latter two also tell of processes without a connection that could break: a process may wait for a
 * process that it has no connection to, or that it shares memory with.
 *
 * The system does not say how a process has ended. Its transport does (tp_ops.how_ended), but not of one that had ended
 * before its memory was mapped here. That one has died: nobody leaves in order before all have come to the last
 * barrier of MPI_Finalize. From there on it may have done either. It is not lost then, but marked (PEER_ENDED), and
 * all that it has sent is delivered. If its part of the barrier is there, it has left. If a wait that lasts (doubt.h)
 * finds that its part is missing, or that of one that has left since its own barrier failed, then those that are marked
 * have died. Those that are still marked when MPI_Finalize ends are lost as well: sessions that go on may wait for them.
 *
 * A peer that has left in order is gone as well, but the others may go on: sends to it, and large messages that it had
 * not finished, end in the same way. Receives that name it end when a thread waits for them (doubt.h), since the
 * program may still cancel them. Receives from any source, and collectives, are not ended.
 *
 * Threads: under the lane's lock, but for pt_lose, pt_leave and pt_violation, once threads share the transports: there a thread
 * that polls finds a loss in no lane. A lane hears of it by its step, opens its inbox first, and so handles what the peer had
 * sent whole before it ends the rest.
 */
#ifndef TERN_PT2PT_LOST_H
#define TERN_PT2PT_LOST_H

#include "pt2pt/api.h"
#include "pt2pt/lane.h"

/* Of the process: losses have numbers, and each lane ends what it has of a lost peer by itself (lane.losses_seen). */
extern TERN_HIDDEN struct losses {
    struct lock lock;        /* of the list; a leaf */
    struct link list;        /* struct peer.in_lost, in the order of their numbers: some lane has not seen them yet */
    _Atomic uint32_t number; /* of the last */
    _Atomic uint32_t count;  /* peers lost so far that had not left */
} losses;

/* Has the lane ended what it has of this peer? Until then what the peer had sent before is delivered. Lock held. */
bool lost_is_known(const struct lane *, const struct peer *);

/* Have all lanes? */
bool lost_is_over(const struct peer *);

/* The peer is lost, for the reason in err_words(). Later calls for the same peer do nothing. May be called by a
 * handler, and, once threads share the transports, by any thread, in a lane or not. */
void pt_lose(struct peer *) TERN_COLD;

/* The same for one that has taken its leave, and all of whose messages have been delivered. */
void pt_leave(struct peer *) TERN_COLD;

/* The peer sent a message that breaks the protocol, in words like "a fragment without a receive": it is lost. */
void pt_violation(struct peer *, const char *fmt, ...) TERN_PRINTF(2, 3) TERN_COLD;

/* Of processes that have ended without taking their leave, as the watcher tells (proc/watcher.h): messages that they have
 * sent completely are delivered, and their peers are lost. How many ends have been looked at, those in order included. */
int pt_hear_ends(void) TERN_COLD;

/* The last barrier cannot be completed, or MPI_Finalize ends: the peers marked PEER_ENDED are lost. False: there are none.
 * Lock held. */
bool pt_marked_have_died(void) TERN_COLD;

/* Delivers what has come: at most 100 turns of progress, in which peers may be lost as well. */
void pt_take_last(void) TERN_COLD;

/* Ends one operation because `p` is lost, has left or is over. */
void pt_end_lost(struct request *, struct peer *p) TERN_COLD;

/* The code of that, with words that say what to look for in the program: TERN_ERR_PEER, or TERN_ERR_ABSENT if the peer
 * has left or is over. */
int pt_lost_words(const struct request *, const struct peer *p) TERN_COLD;

/* A receive or probe from `source` in context `ctx` found nothing: 0 if it may wait, else TERN_ERR_PEER or
 * TERN_ERR_ABSENT with words. *who_p is the lost peer that it would wait for, NULL: none. */
int pt_source_lost(struct pt_comm *, uint64_t ctx, int source, int tag, struct peer **who_p) TERN_COLD;

/* A communicator is made: members may be lost already, or out of reach. */
void pt_lost_members(struct pt_comm *) TERN_COLD;

/* Collectives of a communicator are over: ends their receives with that code and its words, and drops the messages that
 * came for them. The sends of this process are not ended here, but when their receivers drop them. */
void pt_end_collectives(struct pt_comm *, int error) TERN_COLD;

/* Drops an unexpected message of a context whose collectives have failed: its sender is answered, so that its send
 * ends. */
void pt_swallow(struct lane *, struct match_body *) TERN_COLD;

void lost_open_process(struct lane *first);
void lost_open(struct lane *);
void lost_close_process(void);      /* no end wakes the first lane any more */
void pt_lost_close(void);           /* frees the words of all lost peers */
void pt_lost_forget(struct peer *); /* frees those of a peer whose struct is freed next */

#endif
