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
 * belong: a receive that is posted, in one piece and long enough, costs no copy. While the receiver computes nobody reads, but for a helper:
 * the data lie in the buffers of the two sockets. So the sender is over by itself as far as these reach (some MB), and a receiver
 * that comes late finds the data in its host, but still has to read them. Another one that is posted costs a copy and memory. One
 * that is late costs these as well, and the credit bounds them (credit.h). Without credit, beyond TERN_AHEAD_TCP, and while another one is
 * on its way to the same peer, a message is offered, and waits until it is asked for.
 *
 * Not synchronous sends, which are over when they are matched; not messages of collectives, not between jobs, whose connections end.
 *
 * Threads: under the lane's lock, but for the sink.
 */
#ifndef TERN_PT2PT_RNDV_AHEAD_H
#define TERN_PT2PT_RNDV_AHEAD_H

#include "pt2pt/protocol.h"

/* The most that goes so, in bytes, whatever the variable says: the offset has the place of a tag, which is not negative (early.h). */
#define AHEAD_LARGEST ((int64_t)1 << 30)

/* One part in so many of the credit is left to small messages. */
#define AHEAD_LEAVES 4

/* A message that is coming so; until its receive has it. */
struct ahead_msg;

/* The send of a large message goes out, if it may. `is_next`: it is the first of those that wait for the peer (pending.h). */
bool ahead_send(struct request *, bool is_next);

/* So much is going to come from the peer: its wire makes room (tp_ops.expect). */
void ahead_expect(struct peer *, int64_t bytes) TERN_COLD;

/* An RTS has come that says so. NULL: it cannot be, and the sender is lost. ahead_meet: it meets a receive, now or later. ahead_keep:
 * there is none yet, so it is kept in a body (NULL: there is no memory), until that is freed, or ahead_take has been called: then it
 * meets one. */
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
