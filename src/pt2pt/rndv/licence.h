/*
 * licence.h - early receivers over wires that carry fragments (PRO-18, PRO-23 to PRO-26; see ready.h for those inside a node): a large
 * receive that is posted before its message gives the sender a licence to send one large message without being asked to.
 *
 *     receiver                                          sender
 *     posts the receive
 *       AM_LICENCE (context, tag; label, room) ------>  keeps that
 *     computes                                          MPI_Send: takes the first one that is large enough
 *                                          <----------  AM_RTS, which names the label
 *                                          <----------  AM_FRAG to the label, as if there had been a CTS
 *     the RTS meets a receive, as any does; the label now means that one
 *
 * A licence is for a message, not for a receive, so nothing has to be known about what the receiver will find: whatever receive the
 * message meets, its fragments go there. If it meets none, or one with gaps or less room, they wait in a buffer, as those of small
 * messages do.
 *
 *     GIVEN ----> USED        its RTS has come
 *       |           ^
 *       +----> REVOKED        the receive is over: AM_LICENCE with room 0. The sender says the same if it has not used it, and gone it is
 *       |           ^
 *       +----> PASSED         the receive has met a message that crossed it: the CTS takes the licence back. The sender has seen that when
 *                             the first fragment comes, so at the end of the receive it is gone, if it is not USED
 *
 * One that is revoked has cost three messages for nothing (small messages to large receives): after each of them a receiver gives none for
 * twice as many receives as before, until one is used.
 *
 * Not for synchronous sends, which are over when they are matched, and not between jobs, whose connections end.
 *
 * Threads: under the lane's lock.
 */
#ifndef TERN_PT2PT_RNDV_LICENCE_H
#define TERN_PT2PT_RNDV_LICENCE_H

#include "pt2pt/protocol.h"

struct licence;

/* A receive has been posted that may be large. */
void licence_give(struct request *) TERN_COLD;

/* REQ_LICENCE: a receive that has given one meets another message that is to come in fragments: what the CTS says of it. */
uint64_t licence_pass(struct request *);

/* ... is over, or will not be asked for fragments. */
void licence_end(struct request *) TERN_COLD;

/* The send of a large message goes out, if there is a licence for it. */
bool licence_send(struct request *);

/* A CTS has taken this one back. */
void licence_withdrawn(struct lane *, const struct peer *, uint64_t label);

/* An RTS that names a licence: NULL: there is no such one, and the sender is lost. Its message then meets a receive, or waits for one, or
 * is wanted by none. */
struct licence *licence_use(struct lane *, struct peer *, uint64_t ctx, uint64_t env, const struct pt_rts *);
void licence_meet(struct licence *, struct request *);
void licence_keep(struct licence *);
void licence_drop(struct licence *);

/* What has been heard of is void: the peer is lost, the context has gone. licences_close: and what has been given, at the end of the lane. */
void licences_lost(struct lane *, const struct peer *);
void licences_forget(struct lane *, uint64_t ctx);
void licences_close(struct lane *);

#endif
