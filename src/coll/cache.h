/*
 * cache.h - programs of a communicator, so that a collective called again is not compiled
 * again, and with each program one frame that was used and is idle.
 *
 * A program is known by the shape that was asked for (before an algorithm was chosen) and, for
 * the v-collectives, the blocks as well.
 *
 * Bounded twice: in entries, and in bytes over all caches of the process (coll_cache_bound). What was
 * used longest ago makes room. Programs in use elsewhere live on by their references.
 *
 * Threads: one at a time per cache.
 */
#ifndef TERN_COLL_CACHE_H
#define TERN_COLL_CACHE_H

#include "coll/alg/alg.h"

struct coll_cache;

struct coll_key {
    const struct coll_shape *shape;
    const int64_t *blocks; /* n numbers; NULL when the program depends on no arrays */
    size_t n;
};

/* Bytes that all caches of the process may hold: programs, keys and idle frames. */
void coll_cache_bound(size_t bytes);

/* A cache of at most `entries` programs; idle frames are freed by free_idle. NULL when memory is out. */
struct coll_cache *coll_cache_open(unsigned entries, void (*free_idle)(void *));
void coll_cache_close(struct coll_cache *); /* NULL is fine */
void coll_cache_clear(struct coll_cache *); /* the same, for a new beginning */

/*
 * The idle frame kept with the program, which is the caller's now and has its reference to the program, or, when there is
 * none (NULL), the program (a new reference). False: neither is here.
 */
bool coll_cache_find(struct coll_cache *, const struct coll_key *, struct goal_prog **prog_p, void **idle_p);

/* Keeps a program, of which it takes a reference; not if there is no room. */
void coll_cache_add(struct coll_cache *, const struct coll_key *, struct goal_prog *);

/* Hands in a frame of `bytes` that is idle now; it is freed if its program is not here, or has one, or there is no room. */
void coll_cache_put(struct coll_cache *, const struct goal_prog *, void *idle, size_t bytes);

struct coll_cache_stats {
    uint64_t hits, misses, evictions;
    unsigned used;
    size_t bytes; /* of all caches */
};
void coll_cache_stats(const struct coll_cache *, struct coll_cache_stats *);

#endif
