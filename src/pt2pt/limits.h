/*
 * limits.h - which sizes go which way, by the transport that a peer is reached by, which
 * says what pays with it, or by which variable that is set (tp_ops.cost).
 *
 * Threads: limits_of and limits_find by any thread; the rest by one at a time.
 */
#ifndef TERN_PT2PT_LIMITS_H
#define TERN_PT2PT_LIMITS_H

#include "transport/peer.h"

struct limits {
    const struct tp_ops *transport;
    int64_t eager_max; /* bytes of the largest message that is sent eagerly */
    int64_t ahead_max; /* ... of the largest whose data may follow its RTS at once (rndv/ahead.h) */
    int64_t bulk_min;   /* bytes of the smallest one for the wire's own protocol (ways.h) */
};

/* Bytes of a large message that are copied (TERN_CHUNK_CMA), or sent as a fragment from where they lie (TERN_CHUNK_STREAM), at
 * a time. */
extern TERN_HIDDEN struct limits_chunk {
    int64_t copied, streamed;
} limits_chunk;

void limits_open(void); /* reads the variables, also of copies (copy_open); after peers_open */

/* The least eager_max of all, whether they are open or not. */
int64_t limits_eager_least(void);

/* Of a peer that is connected. The first call sees to it that our first quota there is known (peer_learn_quota), and by
 * which ways large messages go (ways.h). */
const struct limits *limits_find(struct peer *) TERN_COLD;
static inline const struct limits *limits_of(struct peer *p)
{
    const struct limits *l = __atomic_load_n(&p->limits, __ATOMIC_ACQUIRE); /* pairs with the release in limits_find */
    return likely(l != NULL) ? l : limits_find(p);
}

#endif
