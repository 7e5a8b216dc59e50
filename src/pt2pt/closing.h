/*
 * closing.h - peers of other jobs are closed (peer_close) when no communicator needs them any more, and what they had
 * comes back on both sides.
 *
 * A peer is needed while a communicator here has its process as a member. The last one may be freed here long before
 * the other side frees it, a new one may be made at any time, and messages may be under way. So each side says what it
 * knows, by messages that are in order with all others, and the connection is closed only while neither side needs it:
 *
 *     IDLE       I need you no more. From here on I send nothing but RESUME: what is to be sent to you waits.
 *     RESUME     I need you again, and wait for RESUMED or CLOSE.
 *     RESUMED    I have not closed, and forget that you were idle.
 *     CLOSE      You are idle, and I need you no more: my last message.
 *
 *     this side needs               the other side needs
 *     the connection                the connection
 *
 *     yes                           yes
 *     no       ------ IDLE ----->   yes                this side is idle. Then one of two things happens:
 *
 *     yes      ------ RESUME --->   yes                1. this side needs the connection again
 *     yes      <----- RESUMED ---   yes
 *
 *     no       <----- CLOSE -----   no                 2. the other side needs it no more: both close it
 *                                                       (tp_ops.peer_close)
 *
 * An idle side has nothing under way, and has begun nothing since it said IDLE. So CLOSE cuts nothing off. If the idle
 * side has said RESUME and is answered by CLOSE, since the two have crossed, its waiting sends go out by a new
 * connection, once the old one is closed. A new connection that the other side makes first waits for that too
 * (shm/senders.c, tcp/incoming.c). Messages that came by the old connection and that the program has not received yet
 * stay: they keep the struct peer that they came from.
 *
 * A lost peer is closed without a message.
 *
 * Communicators with members of other jobs are in the first lane (lanes_choose), and so is what is sent to those and
 * under way with them. A connection may be closed only while all of that is known at once, for which the locks of several
 * lanes would be needed together.
 *
 * Nothing here fails: if a message cannot be sent, the peer is lost (pt_lose).
 *
 * Threads: under the lane's lock, except for pt_await_closed.
 */
#ifndef TERN_PT2PT_CLOSING_H
#define TERN_PT2PT_CLOSING_H

#include "obj/rankmap.h"
#include "pt2pt/lane.h"

/* What AM_CLOSING says. */
enum closing_word { CLOSING_IDLE = 1, CLOSING_RESUME, CLOSING_RESUMED, CLOSING_CLOSE };

void closing_open(struct lane *);
void closing_close(void);

/* A communicator with members of other jobs has come, or has gone, and is, or is no more, in the lane's table of
 * contexts: whether a peer is needed is counted by that. */
void closing_comm_made(const struct comm *) TERN_COLD;
void closing_comm_gone(const struct comm *) TERN_COLD;

/* Something has happened to a peer that is idle, or not needed: progress looks at it. Peers of the own job are left
 * out. */
void closing_look(struct peer *) TERN_COLD;

bool closing_forget(struct peer *); /* peer_forgotten */

/*
 * Waits until the peers in the map that are not needed have been closed, or are lost. It returns only if the other
 * sides need them no more either, which the caller knows. Takes the lane's lock.
 */
void pt_await_closed(const struct rankmap *) TERN_COLD;

#endif
