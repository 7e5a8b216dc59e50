/*
 * count.h - what has been copied by which means, and how well the ends of engines were predicted: for TERN_STATS
 * (pt2pt/stats.h).
 *
 * Counted are copies of 1 MB and more and their parts (choose.h), and all that is done by queues (copy.h) or in their
 * place. A memcpy of something smaller is not. Queues count for themselves, and add it here when they are closed.
 *
 * Threads: any.
 */
#ifndef TERN_COPY_COUNT_H
#define TERN_COPY_COUNT_H

#include "base/compiler.h"
#include <stdatomic.h>

enum copy_means { COPY_BY_MEMCPY, COPY_BY_NONTEMPORAL, COPY_BY_ENGINE, COPY_MEANS };

/* Of one engine that works on its own. */
struct copy_record {
    const char *engine; /* its name; NULL: there was none */
    float issue_ns[2];  /* what issuing a batch costs the caller: at first, and as estimated at last */
    size_t worth[2];    /* bytes of the least batch that is left to it, by enum copy_place; SIZE_MAX: none is */
    /* Ends that were observed: how many, and the sums of their times from the issue on. */
    uint64_t ends;
    double predicted_ns, observed_ns;
    uint64_t corrections; /* ends that have moved the prediction */
    uint64_t trials;      /* of batches that it has lost, to see whether it is fast again */
};

struct copy_counts {
    uint64_t copies[COPY_MEANS], bytes[COPY_MEANS];
    struct copy_record last; /* of the last queue that was closed */
};
struct copy_counts copy_counts(void);

/* Two atomic additions, some 10 ns: of copies that take no less than 200. */
extern TERN_HIDDEN _Atomic uint64_t copies_counted[COPY_MEANS][2];
static inline void copy_count(enum copy_means m, uint64_t copies, uint64_t bytes)
{
    /* relaxed: nothing is ordered by them */
    atomic_fetch_add_explicit(&copies_counted[m][0], copies, memory_order_relaxed);
    atomic_fetch_add_explicit(&copies_counted[m][1], bytes, memory_order_relaxed);
}

void copy_count_engine(const struct copy_record *); /* in place of the last one */

#endif
