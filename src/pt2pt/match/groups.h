/*
 * groups.h - an index by source over one deep side of a matcher (LHS-20):
 * the entries a second time, spread over up to 64 short queues by a hash of the
 * source, so that a search for one source passes 1/64 of the entries of others.
 *
 *   all     | 17: a | 18: b | 19: hole | 20: a | 21: c | 22: MPI_ANY_SOURCE |    order number: source
 *
 *   groups  h(a) | 17 | 20 |     h(b) | 18 |     h(c) | 21 |     any | 22 |
 *
 * The entries of the side stay in its own queue, which answers MPI_ANY_SOURCE
 * and the questions of debuggers at the cost it always had; the groups answer
 * those that name a source. An entry has the same order number in both, and by
 * it is found in one from the other. Receives posted with MPI_ANY_SOURCE are a
 * group of their own.
 *
 * Order numbers are 64-bit and count entries: they do not wrap.
 *
 * Threads: the lane's lock protects it.
 */
#ifndef TERN_PT2PT_MATCH_GROUPS_H
#define TERN_PT2PT_MATCH_GROUPS_H

#include "pt2pt/match/queue.h"

#define MATCH_GROUPS_MAX 64

struct match_groups {
    uint64_t next; /* order number of the next entry */
    unsigned bits; /* 1 << bits groups are used */
    struct match_queue group[MATCH_GROUPS_MAX];
    struct match_queue any; /* receives posted with MPI_ANY_SOURCE */
};

struct match_groups *match_groups_new(unsigned bits); /* empty; NULL when memory is out */
void match_groups_free(struct match_groups *);

/* Would so many groups shorten searches of `q`: would none hold more than half of its entries? */
bool match_groups_pay(const struct match_queue *q, unsigned bits);

/* Numbers the entries of `all`, which was just widened and has no holes, and puts them into the groups, which are
 * empty. False when memory is out; the groups are empty then. */
bool match_groups_fill(struct match_groups *, struct match_queue *all);

/* Forgets all entries. Blocks that grew large are given back, others kept for the next time. */
void match_groups_clear(struct match_groups *);

/* Adds an entry under the number `next`, which the caller writes into the side's queue. False when memory is out. */
bool match_groups_push(struct match_groups *, uint64_t key);

void match_groups_remove(struct match_groups *, uint64_t key, uint64_t order);

/* Order number of the oldest message for a receive that names its source, of the oldest receive for a message;
 * MATCH_NO_ORDER if there is none. */
#define MATCH_NO_ORDER UINT64_MAX
uint64_t match_groups_find_message(const struct match_groups *, int src, int tag);
uint64_t match_groups_find_receive(const struct match_groups *, int src, int tag);

#endif
