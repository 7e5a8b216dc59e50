/*
 * lost.h - peers that there is no way to any more: their process died, the connection
 * broke, or what they sent cannot be.
 *
 *     died   its process has ended without MPI_Finalize
 *     lost   nothing comes or goes any more, for whatever reason (peer.lost)
 *     left   lost, after it has taken its leave (PEER_LEFT)
 *     over   alive, in MPI_Finalize: it starts nothing more (PEER_OVER)
 *
 *     at once, pt_lose               nothing more goes out or is taken in; the words are kept
 *     next turn, pt_end_lost_peers   everything that only the peer could have ended, ends with TERN_ERR_PEER and those
 *                                    words: sends to it, large messages to and from it, posted receives that name it,
 *                                    and those from any source on communicators that it is in
 *     from then on                   sends to it and receives that name it fail at once
 *
 * Between the two lies the return to lane_progress: ending an operation starts others (schedules), which must not
 * happen in the middle of whatever found out.
 *
 * Messages that had come whole can still be received. A receive from any source on a communicator with a lost member
 * fails, unless its message is there: the lost one may be the one that it waits for. Receives that name a process that
 * lives, and communicators without the lost one, go on.
 *
 * Collective operations need all: on a communicator with a lost member they are over (call_log.h): receives of theirs fail,
 * and so do waits in the memory of a node; what comes for them is taken off its senders' hands and dropped, so that those
 * who fail do not leave others waiting for them. Messages between two processes in the collective half
 * (pt_tag_is_for_two) go on, so that those who live can make a communicator of their own.
 *
 * A loss is found by a transport, whose connection breaks, or told: by the launcher (pt_hear_deaths) or by the system
 * (pt_hear_ends). A process may wait for another one that it has no connection to, or that it shares memory with.
 *
 * A peer that has left in order is gone as well, but is no loss to the others: sends to it and what it was to go on
 * with end in the same way; receives that name it end when somebody waits for them (doubt.h), since they may still be
 * cancelled, and those from any source and collectives not at all.
 *
 * Threads: under the lane's lock.
 */
#ifndef TERN_PT2PT_LOST_H
#define TERN_PT2PT_LOST_H

#include "pt2pt/api.h"
#include "pt2pt/lane.h"

/* The words are err_words(). Once; later calls do nothing. */
void pt_lose(struct peer *) TERN_COLD;

/* The same for one that has taken its leave, and all of whose messages have been delivered. */
void pt_leave(struct peer *) TERN_COLD;

/* The peer sent what cannot be, in words like "a fragment without a receive": it is given up. */
void pt_violation(struct peer *, const char *fmt, ...) TERN_PRINTF(2, 3) TERN_COLD;

/* Deaths have been told since the last call (proc_deaths): what the dead have sent whole is delivered, and they are lost.
 * How many. By progress, lock held. */
int pt_hear_deaths(struct lane *) TERN_COLD;

/* The same for processes that have ended without taking their leave, as the watcher tells (proc/watcher.h). */
int pt_hear_ends(void) TERN_COLD;

/* Delivers what has come: at most 100 turns of progress, in which peers may be lost as well. */
void pt_take_last(void) TERN_COLD;

/* Ends what the peers given up since the last call leave behind; how many of them. */
int pt_end_lost_peers(struct lane *) TERN_COLD;

/* Ends one operation with the loss of `p`, or since it has left or is over; and the words of that, which say what to
 * look for in the program: TERN_ERR_PEER, or TERN_ERR_ABSENT. */
void pt_end_lost(struct request *, struct peer *p) TERN_COLD;
int pt_lost_words(const struct request *, const struct peer *p) TERN_COLD;

/* A receive or probe from `source` in context `ctx` found nothing: 0 if it may wait, else TERN_ERR_PEER or TERN_ERR_ABSENT
 * with words. */
int pt_source_lost(struct pt_comm *, uint64_t ctx, int source, int tag, struct peer **who_p) TERN_COLD;

/* A communicator is made: members may be lost already, or out of reach. */
void pt_lost_members(struct pt_comm *) TERN_COLD;

/* Collectives of a communicator are over: ends their receives with that code and its words, and drops what came for
 * them: sends end when their receivers do so. */
void pt_end_collectives(struct pt_comm *, int error) TERN_COLD;

/* A body of a context whose collectives have failed: its sender is let go, and it is freed. */
void pt_swallow(struct match_body *) TERN_COLD;

void pt_lost_close(void); /* frees the words */
void pt_lost_forget(struct peer *); /* those of a peer that is freed next */

#endif
