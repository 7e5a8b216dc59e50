/*
 * measure.h - what copies cost on this machine: measured when somebody needs it, in some 100 us, and then known to the process.
 *
 * Threads: any.
 */
#ifndef TERN_COPY_MEASURE_H
#define TERN_COPY_MEASURE_H

#include "copy/copy.h"

/* ns for 1024 bytes, of pieces of 32 KB. */
struct copy_memory_cost {
    float read[2];        /* by where the data are: reading a word of each line */
    float cached[2][2];   /* memcpy, by where the source is, and where the destination */
    float nontemporal[2][2]; /* stores that bypass the caches */
};

/* NULL: caches cannot be emptied here (x86 can). The first call measures. */
const struct copy_memory_cost *copy_memory_cost(void);

/* For tests: this in place of what is measured; NULL: as before. */
void copy_memory_cost_is(const struct copy_memory_cost *);

/* Of an engine with COPY_ASYNC; nothing is outstanding. In 0.5 to 1 ms. */
void copy_engine_cost(struct copy_queue *, struct copy_engine_cost *);

/*
 * Opens a queue of the engine that pays for batches of up to `most` bytes: one that works on its own, measured (a device; another core
 * if `other_core`), else the caller's own copies. 0, or a code with words.
 */
int copy_queue_open_best(bool other_core, size_t most, size_t depth, struct copy_queue **q_p);

int copy_ascending(const void *, const void *); /* of floats, for qsort */

#endif
