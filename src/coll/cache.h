/*
 * cache.h - programs of a communicator by shape, so that a collective called again is
 * not compiled again, and with each program one frame that was used and is idle.
 *
 * Bounded: when full, the entry used longest ago makes room. Programs in use elsewhere
 * live on by their references.
 *
 * Threads: one at a time.
 */
#ifndef TERN_COLL_CACHE_H
#define TERN_COLL_CACHE_H

#include "coll/alg.h"

struct coll_cache;

/* A cache of at most `entries` programs; idle frames are freed by free_idle. NULL when memory is out. */
struct coll_cache *coll_cache_open(unsigned entries, void (*free_idle)(void *));
void coll_cache_close(struct coll_cache *); /* NULL is fine */

/*
 * The program of a shape without blocks (but with the communicator's constants), compiled if need be (a new reference), and the idle frame kept with it, which
 * is now the caller's; NULL if there is none.
 */
int coll_cache_get(struct coll_cache *, const struct coll_shape *, const struct coll_given *, struct goal_prog **prog_p,
                   void **idle_p);

/* Hands in a frame that is idle now; it is freed if the program has left the cache or has one already. */
void coll_cache_put(struct coll_cache *, const struct coll_shape *, void *idle);

struct coll_cache_stats {
    uint64_t hits, misses, evictions;
    unsigned used;
};
void coll_cache_stats(const struct coll_cache *, struct coll_cache_stats *);

#endif
