/*
 * say.h - small messages of this layer's own: answers and questions. Those of the layers above go by pt_message (api.h).
 */
#ifndef TERN_PT2PT_SAY_H
#define TERN_PT2PT_SAY_H

#include "pt2pt/lane.h"

/* Bytes of such a message, at most: every transport takes them (tp_ep.max_short). */
#define LANE_SAY_MAX 32

/*
 * Sends a message of this layer's own, n <= LANE_SAY_MAX bytes at `data`, which are copied. If there is no room it waits
 * behind whatever else waits for the peer. Nothing is sent to a peer that is lost or is being closed: it has nothing left
 * that the message could be about. A peer that cannot be reached is lost, unless the message was AM_CREDIT. Without memory
 * the job is ended (lane_fatal). Lock held.
 */
void lane_say(struct lane *, struct peer *, unsigned id, uint64_t h0, uint64_t h1, const void *data, size_t n);

#endif
