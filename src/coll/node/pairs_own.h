/*
 * pairs_own.h - what a rank has for itself in a large nonblocking collective inside a node (pairs.h): one more
 * transfer, so that the start need not copy it, nor a rank that computes.
 *
 *   own[P]   for each of `places` operations, behind the tallies; a line each, written by that rank before its flag
 *            | claim: operation, chunks, next one | from, to, bytes, chunk | done | unused |
 *
 * The rank itself copies it before all else when it looks at the operation: so it needs no help if it has copied anything
 * in that operation. Whoever is in the library with nothing to
 * move for itself does that for those that compute, by way of a buffer of its own: at twice the price, so not before
 * the operation is over for itself. Then the line may become that of a later operation at any time: so the number is
 * claimed together with the chunk, by compare-and-swap, and the other words are read behind that. They stay as long as
 * a claimed chunk is not done.
 *
 * Whoever may still look at the lines of finished operations says so (node_done.aids): the block stays.
 *
 * Threads: everything but the lines is under the lane's lock.
 */
#ifndef TERN_COLL_NODE_PAIRS_OWN_H
#define TERN_COLL_NODE_PAIRS_OWN_H

#include "coll/node/block.h"
#include "coll/node/pairs.h"

#define NODE_OWN_CHUNK (16 << 10) /* bytes of a chunk, at least: a copy by way of the cache next to the core */
#define NODE_OWN_CHUNKS 1024      /* chunks, at most */

struct node_own {
    TERN_ALIGNED(CACHE_LINE) _Atomic uint64_t claim; /* operation << 32 | chunks << 16 | the next one */
    uint64_t from, to, bytes, chunk;
    _Atomic uint32_t done; /* chunks copied */
};
static_assert(sizeof(struct node_own) == CACHE_LINE, "shared layout");
static_assert(NODE_OWN_CHUNKS < 1 << 16, "fits its part of the word");

/* release: pairs with node_own_claim */
static inline void node_own_open(struct node_own *o, uint32_t seq, uint32_t chunks)
{
    atomic_store_explicit(&o->claim, (uint64_t)seq << 32 | (uint64_t)chunks << 16, memory_order_release);
}

/* The next chunks of an operation, `most` at most: how many, from *first_p on. 0: none is left, or the line is another
 * one's. */
static inline uint32_t node_own_claim(struct node_own *o, uint32_t seq, uint32_t most, uint32_t *first_p)
{
    uint64_t v = atomic_load_explicit(&o->claim, memory_order_relaxed);
    for (;;) {
        uint32_t next = v & 0xffff, left = (uint32_t)(v >> 16 & 0xffff) - next, n = left < most ? left : most;
        if ((uint32_t)(v >> 32) != seq || !n) return 0;
        /* acquire: pairs with node_own_open */
        if (!atomic_compare_exchange_weak_explicit(&o->claim, &v, v + n, memory_order_acquire, memory_order_relaxed))
            continue;
        *first_p = next;
        return n;
    }
}

/* n claimed chunks are there. True: they were the last ones. acq_rel: who says so answers for the copies of others, and
 * nobody who has claimed something reads the line behind this. */
static inline bool node_own_done(struct node_own *o, uint32_t n, uint32_t chunks)
{
    return atomic_fetch_add_explicit(&o->done, n, memory_order_acq_rel) + n == chunks;
}

/* The lines behind `base`, or NULL to measure; bytes. */
size_t node_own_layout(struct node *, char *base);

/* Has this rank anything for itself? */
static inline bool node_own_is(const struct node_ends *e) { return e->send[e->rank].bytes && e->recv[e->rank].bytes; }

/* If so: says where, before the flag of operation seq, and behind its tally, where it counts as one. */
void node_own_say(struct node *, uint32_t seq, const struct node_ends *);

/* Copies some of it. False: nothing is left that nobody has begun. Lock held. */
bool node_own_copy(struct node *, uint32_t seq, const struct node_ends *);

/* Operation seq is about to be finished here: from now on others are helped with theirs. Lock held. */
void node_own_aid(struct node *, uint32_t seq);

/* The node goes: no more of that. Takes the lock. */
void node_own_end(struct node *);

#endif
