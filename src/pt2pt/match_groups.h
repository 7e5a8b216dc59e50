/*
 * match_groups.h - the entries of one side of a matcher spread over up to 64
 * queues by a hash of the source (LHS-20), so that a search for one source
 * passes 1/64 of the entries of the others.
 *
 *   busy     one bit per group that is not empty
 *   oldest   order number of each group's first entry: MPI_ANY_SOURCE picks by
 *            these and looks into no group that cannot hold an older match
 *   queue    the groups, then one for receives posted with MPI_ANY_SOURCE
 *
 * Order numbers are 64-bit and count entries pushed: they do not wrap.
 *
 * Threads: the lane's lock protects it.
 */
#ifndef TERN_PT2PT_MATCH_GROUPS_H
#define TERN_PT2PT_MATCH_GROUPS_H

#include "pt2pt/match_queue.h"

#define MATCH_GROUPS_MAX 64
#define MATCH_GROUP_WILD MATCH_GROUPS_MAX

struct match_groups {
    uint64_t busy;
    uint64_t next; /* order number of the next entry */
    uint64_t oldest[MATCH_GROUPS_MAX];
    struct match_queue queue[MATCH_GROUPS_MAX + 1];
    unsigned bits; /* 1 << bits groups are used */
};

/* The place of an entry; at is MATCH_NONE for none. */
struct match_spot {
    struct match_queue *queue;
    uint32_t at;
};

struct match_groups *match_groups_new(unsigned bits); /* empty; NULL when memory is out */
void match_groups_free(struct match_groups *);

/* Would so many groups shorten searches of `q`: is no group to hold more than half of its entries? */
bool match_groups_pay(const struct match_queue *q, unsigned bits);

/* Puts the entries of `q` into the groups, which are empty. False when memory is out; the groups are empty then. */
bool match_groups_fill(struct match_groups *, const struct match_queue *q);

/* Forgets all entries. Blocks that grew large are given back, others kept for the next time. */
void match_groups_clear(struct match_groups *);

bool match_groups_push(struct match_groups *, uint64_t key, void *what); /* false when memory is out */
void *match_groups_remove(struct match_groups *, struct match_spot);

/* The group that an entry or a search of this source belongs to, MATCH_ANY_SOURCE included. */
struct match_queue *match_groups_of(struct match_groups *, int src);

struct match_spot match_groups_find_message(struct match_groups *, int src, int tag);
struct match_spot match_groups_find_receive(struct match_groups *, int src, int tag);

#endif
