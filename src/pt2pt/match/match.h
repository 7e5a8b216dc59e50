/*
 * match.h - which receive takes which message (LHS-1..14, 20, 21, 23; MPI 3.5
 * "Semantics of Point-to-Point Communication").
 *
 * One struct match serves one context of one communicator, so a search never
 * meets entries of another. It has two sides, built alike: the receives posted
 * and not yet matched, and the messages arrived and not yet expected.
 *
 *   struct match   line 0   posted: queue, groups | unexpected: queue, groups
 *                  line 1   first four posted entries
 *                  line 2   first four unexpected entries
 *
 * A side is one queue (queue.h) of 8-byte envelopes in arrival order, first
 * inside the struct, then in a block of its own; vector code searches it
 * (scan.h). When it has grown deep with entries of many sources, they are
 * indexed by groups of sources as well (groups.h), until it runs empty.
 *
 * What an entry stands for is the caller's: a request on the posted side, a
 * message body (body.h) on the unexpected side. It is not read, moved or freed here.
 *
 * Sources are ranks >= 0. Tags are any int but INT32_MIN and MATCH_ANY_TAG;
 * MATCH_ANY_TAG takes tags >= 0 only.
 *
 * Threads: the caller holds the lock of the lane that the communicator belongs to.
 * Nothing here blocks, calls MPI or knows of transports.
 */
#ifndef TERN_PT2PT_MATCH_H
#define TERN_PT2PT_MATCH_H

#include "pt2pt/match/queue.h"

struct match_groups;

struct match_side {
    struct match_queue all;
    struct match_groups *groups; /* NULL until first needed; in use while all.grouped */
};

/* 192 bytes, best placed at the start of a cache line. It points into itself: initialise in place, never copy. */
struct match {
    struct match_side posted, unexpected;
    uint64_t posted_home[2 * MATCH_INLINE];
    uint64_t unexpected_home[2 * MATCH_INLINE];
};
static_assert(sizeof(struct match) == 192, "there may be 10^5 communicators, each with two of these");
static_assert(offsetof(struct match, posted_home) == CACHE_LINE, "both sides' state shares the first line");

/*
 * Once, before any search: chooses the search code by TERN_MATCH_VECTOR and the processor, the number of groups by
 * TERN_MATCH_GROUPS. TERN_ERR_UNSUPPORTED if the processor lacks what the variable asks for, TERN_ERR_ARG for a bad
 * number of groups. Without this call the scalar code and 64 groups are used.
 */
int match_open(void);

void match_init(struct match *);
void match_fini(struct match *); /* the caller has dealt with what is still queued (match_each) */

/* Out of line halves of the four below; not called from elsewhere. */
void *match_arrive_queued(struct match *, int src, int tag);
void *match_take_queued(struct match *, int src, int tag);
void *match_peek_queued(const struct match *, int src, int tag);

/* A message arrived: the oldest posted receive that accepts it is removed and returned; NULL if there is none. */
static inline void *match_arrive(struct match *m, int src, int tag)
{
    return m->posted.all.live ? match_arrive_queued(m, src, tag) : NULL;
}

/* ... then the message is kept as `body`, not NULL. TERN_ERR_NOMEM in words, and nothing changed, when memory is out.
 */
int match_store(struct match *, int src, int tag, void *body);

/* A receive is posted (src may be MATCH_ANY_SOURCE, tag MATCH_ANY_TAG): the oldest unexpected message that fits is
 * removed and returned; NULL if there is none. Also the matching half of MPI_Mprobe. */
static inline void *match_take(struct match *m, int src, int tag)
{
    return m->unexpected.all.live ? match_take_queued(m, src, tag) : NULL;
}

/* ... then the receive waits as `req`, not NULL. Failure as in match_store. */
int match_post(struct match *, int src, int tag, void *req);

/* What match_take would return, left in place (MPI_Probe). */
static inline void *match_peek(const struct match *m, int src, int tag)
{
    return m->unexpected.all.live ? match_peek_queued(m, src, tag) : NULL;
}

/* Removes the posted receive `req`; false if it has been matched. */
bool match_cancel(struct match *, const void *req);

/* Removes the unexpected message `body` (its send was cancelled, or the peer died); false if it has been taken. */
bool match_withdraw(struct match *, const void *body);

/* Removes all posted receives that were posted with this source (MATCH_ANY_SOURCE: with that wildcard; NULL: all of them),
 * or all unexpected messages, oldest first, and calls visit for each, which must not change the matcher. How many. For the
 * loss of a peer. */
uint32_t match_take_posted(struct match *, const int *src, void (*visit)(void *what, int src, int tag, void *arg), void *arg);
uint32_t match_take_unexpected(struct match *, void (*visit)(void *what, int src, int tag, void *arg), void *arg);

static inline uint32_t match_posted_count(const struct match *m) { return m->posted.all.live; }
static inline uint32_t match_unexpected_count(const struct match *m) { return m->unexpected.all.live; }

/* Calls visit for every entry of a side, oldest first. The matcher must not be changed meanwhile. For debuggers and the
 * end of a communicator. */
void match_each(const struct match_side *, void (*visit)(void *what, int src, int tag, void *arg), void *arg);

#endif
