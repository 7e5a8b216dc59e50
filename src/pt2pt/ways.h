/*
 * ways.h - by which way a large message goes. All ways are one table, in the order in which they are preferred:
 *
 *   way       needs of the wire      needs of the message                         what is done
 *   mapped    map, map_arena         in one piece at both sides, and one of       either side copies, or both
 *                                    them in memory that the other can map        (rndv/offer.c)
 *   direct    map, get, put          in one piece at both sides                   the same, by the system
 *   bulk      bulk_send, bulk_recv   in one piece at both sides, and              the wire's own protocol
 *                                    tp_cost.bulk_min bytes at least              (rndv/bulk.c)
 *   in_place  am_zcopy               in one piece at the sender                   fragments from where it lies
 *                                                                                 (rndv/stream.c)
 *   packed    -                      -                                            fragments through the wire's buffers
 *
 * Each peer has a row of it, peer.ways: the ways that the wire to it has and that the variables allow (TERN_BULK; with
 * TERN_CMA and TERN_ARENA off, the wire lacks the capability). The row is made when the first message goes to the peer,
 * or comes from it. A wire may withdraw a capability later, so capabilities are looked at again for each message.
 *
 * Nothing here fails: packed is a way for every message over every wire.
 *
 * The sender names the best way for its side (pt_rts.offer), and the receiver takes it, or asks for fragments. Which
 * fragments, the sender decides. Of the needs of mapped ways_best knows only whether the message is in one piece here: where its ends lie
 * is found when they meet, and then the way is direct, or fragments.
 *
 * Threads: under the lane's lock.
 */
#ifndef TERN_PT2PT_WAYS_H
#define TERN_PT2PT_WAYS_H

#include "transport/peer.h"

enum way { WAY_MAPPED, WAY_DIRECT, WAY_BULK, WAY_IN_PLACE, WAY_PACKED, WAYS };

/* Makes the row of a peer that is connected. */
void ways_learn(struct peer *);

/* Can messages go this way to or from the peer, which may not be connected? */
bool ways_has(struct peer *, enum way);

/* The best way for a message of so many bytes to a peer that is connected; the best from `first` on. */
enum way ways_best(struct peer *, enum way first, bool one_piece, int64_t bytes);

#endif
