/*
 * ahead.h - large messages that go before they are asked for (PRO-18), over wires that carry a stream: to a receiver that computes, and by
 * a sender that computes next. Inside a node a receive that is posted says so instead (ready.h).
 *
 *     sender                                                     receiver
 *     takes eager credit for the message
 *       AM_RTS (context, source, tag; number, bytes, RTS_AHEAD) ----->  the message meets a receive, as any does,
 *                                                                       or has a buffer
 *       AM_AHEAD (context; number, offset; data) -------------------->  the data go there
 *     is over when the system has taken the last of it                  gives the credit back, as that of an eager message
 *
 * The data follow the RTS on the same connection, so the receiver knows of the message before they come, and reads them to where they
 * belong. If the receive is posted, in one piece and long enough, that is its memory, and nothing is copied. Otherwise the data need a
 * buffer and a copy; the credit bounds the memory of messages whose receive is late (credit.h).
 *
 * While the receiver computes only its helper thread, if it has one, reads from the connection. Otherwise the data lie in the buffers of
 * the two sockets. So a send ends by itself if its data fit there (some MB), and a late receiver finds the data in its host, but still
 * has to read them.
 *
 * A message is offered, and waits until it is asked for, without credit, beyond TERN_AHEAD_TCP, and while another large message is on its
 * way to the same peer. So are synchronous sends, which end when they are matched, messages of collectives, and those to other jobs,
 * as such connections end.
 *
 * Threads: under the lane's lock, but for the sink.
 */
#ifndef TERN_PT2PT_RNDV_AHEAD_H
#define TERN_PT2PT_RNDV_AHEAD_H

#include "pt2pt/protocol.h"

/* Bytes of the largest message that goes ahead, whatever the variable says: the offset has the place of a tag, which is not negative
 * (early.h). */
#define AHEAD_LARGEST ((int64_t)1 << 30)

/* This fraction of the quota is left to small messages: one in so many. */
#define AHEAD_LEAVES 4

/* A message that is coming, until its receive has it. */
struct ahead_msg;

/* The send of a large message goes out, if it may. `is_next`: it is the first of those that wait for the peer (pending.h). */
bool ahead_send(struct request *, bool is_next);

/* So much is going to come from the peer: its wire makes room (tp_ops.expect). */
void ahead_expect(struct peer *, int64_t bytes) TERN_COLD;

/* By the receiver.
 *   ahead_new    an RTS with RTS_AHEAD has come. NULL: it breaks the protocol, and the sender is lost
 *   ahead_meet   the message meets a receive: at once, or after ahead_keep and ahead_take
 *   ahead_keep   there is no receive yet: the message is kept in a body, and goes with it. NULL: there is no memory
 *   ahead_take   the body is freed next, and the message stays for ahead_meet */
struct ahead_msg *ahead_new(struct lane *, struct peer *, const struct pt_rts *);
void ahead_meet(struct ahead_msg *, struct request *, int32_t source, int32_t tag);
struct match_body *ahead_keep(struct ahead_msg *);
void ahead_take(struct ahead_msg *);

/* No more comes from the peer: ends the receives that wait for it, in this lane. */
void ahead_lost(struct lane *, struct peer *);

/* The communicator goes, with receives that wait for more. */
void ahead_forget(const struct comm *);

/* Nothing is wanted any more. Behind the lanes. */
void ahead_close(void);

#endif
