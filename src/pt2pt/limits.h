/*
 * limits.h - which sizes go which way, by the transport that a peer is reached by, which
 * says what pays with it, or by which variable that is set (tp_ops.cost).
 *
 * Threads: under the lane's lock.
 */
#ifndef TERN_PT2PT_LIMITS_H
#define TERN_PT2PT_LIMITS_H

#include "transport/peer.h"

struct limits {
    const struct tp_ops *transport;
    int64_t eager_max; /* bytes of the largest message that goes out before it is asked for */
    int64_t bulk_min;  /* bytes of the smallest one for the wire's own protocol (ways.h) */
};

void limits_open(void); /* reads the variables; after peers_open */

/* The least eager_max of all, whether they are open or not. */
int64_t limits_eager_least(void);

/* Of a peer that is connected. The first call sees to it that our first quota there is known (peer_learn_quota), and by
 * which ways large messages go (ways.h). */
const struct limits *limits_find(struct peer *) TERN_COLD;
static inline const struct limits *limits_of(struct peer *p)
{
    return likely(p->limits != NULL) ? p->limits : limits_find(p);
}

#endif
