/*
 * credit.h - eager credit: how much of eager messages may lie here unreceived.
 *
 * Threads: pt_credit_open by one; the rest by any, with a lane. The counters of a peer (credit, due, stored) are plain while
 * one thread at a time uses the library. Once threads share it they are changed by atomic operations, as threads that send
 * on the short way hold no lock (send.c). The order is relaxed: they count bytes, and nothing else hangs on them.
 *
 * What has been stored and consumed is then counted in a tally of the lane first, plainly and for one peer at a time, and
 * told to the peer's counters when it is more than a small part of the quota. So the counters are behind by a part of the
 * quota that is bounded for all lanes together (TALLY_SHIFT). Peers of other jobs, whose memory may go, have no tally.
 */
#ifndef TERN_PT2PT_CREDIT_H
#define TERN_PT2PT_CREDIT_H

#include "transport/peer.h"
#include "transport/wire_lock.h"

struct lane;

/* What an eager message of n bytes costs its sender's credit. */
static inline int64_t eager_cost(size_t n) { return (int64_t)n + 64; }

/* Of the process. */
extern TERN_HIDDEN struct eager_store {
    int64_t credit; /* TERN_EAGER_CREDIT: the largest quota of a peer */
    int64_t bytes;  /* TERN_EAGER_STORE: of all peers */
    int64_t spare;  /* those that are in no peer's quota */
} eager_store;

/* Eager bytes of a peer that one lane has not told the peer's counters yet. The lane's lock. */
struct tally {
    struct peer *of;          /* of this job; NULL: none so far */
    int64_t stored, consumed; /* `stored` may be negative: less than before */
    int64_t most;             /* of each, either way */
};

void pt_credit_open(void); /* reads the variables; after peers_open */
void pt_credit_forget(const struct peer *); /* one that is freed next */
void pt_give_credit(struct lane *, struct peer *) TERN_COLD; /* peer.due has run out */

/* A counter of a peer: adds n, and returns what it is then. */
static inline int64_t counter_add(int64_t *counter, int64_t n)
{
    if (unlikely(wires_threaded)) return __atomic_add_fetch(counter, n, __ATOMIC_RELAXED);
    return *counter += n;
}
static inline int64_t counter_get(const int64_t *counter) { return __atomic_load_n(counter, __ATOMIC_RELAXED); }

/* Takes the credit for an eager message of n bytes. False: there is too little. For a moment another thread may find too
 * little because of that, and offers its message; none finds too much. */
static inline bool credit_take(struct peer *p, size_t n)
{
    if (likely(counter_add(&p->credit, -eager_cost(n)) >= 0)) return true;
    counter_add(&p->credit, eager_cost(n));
    return false;
}
static inline void credit_return(struct peer *p, size_t n) { counter_add(&p->credit, eager_cost(n)); } /* it was not sent */

/* A message was offered, and its receive waited: was it for want of credit? */
void pt_offered(struct lane *, struct peer *, uint64_t bytes);

/* pt_consumed and pt_stored once threads share the library; bytes of credit. */
void pt_count_consumed(struct lane *, struct peer *, int64_t bytes);
void pt_count_stored(struct lane *, struct peer *, int64_t bytes);

/* The lane's tally goes to the counters of its peer. */
void pt_settle_tally(struct lane *);

/* The peer's eager bytes have been consumed here; gives them back now and then. */
static inline void pt_consumed(struct lane *l, struct peer *p, size_t n)
{
    if (unlikely(wires_threaded)) pt_count_consumed(l, p, eager_cost(n));
    else if (unlikely((p->due -= eager_cost(n)) < 0)) pt_give_credit(l, p);
}

/* An eager message of the peer is stored until it is received (by 1), or has been (by -1). */
static inline void pt_stored(struct lane *l, struct peer *p, size_t n, int by)
{
    if (unlikely(wires_threaded)) pt_count_stored(l, p, by * eager_cost(n));
    else p->stored += by * eager_cost(n);
}

#endif
