/*
 * side.h - a buffer of a collective in the simulator: what is in it, with gaps between elements that nobody may touch, and
 * what it shall hold in the end.
 */
#ifndef TERN_TEST_SIDE_H
#define TERN_TEST_SIDE_H

#include "sim.h"

struct side {
    const struct sim_type *type; /* of its elements, the caller's */
    int64_t elems;
    int64_t low;  /* elements that lie before the address given to the collective */
    char *mem;    /* elems * extent */
    char *packed; /* what it shall hold at the end, packed */
};

void side_open(const struct sim_type *, struct side *, int64_t elems, int64_t low);
void side_close(struct side *);

/* Element i: in memory, and as it shall be in the end. */
static inline char *side_elem(const struct side *s, int64_t i) { return s->mem + i * s->type->extent; }
static inline char *side_want(const struct side *s, int64_t i) { return s->packed + i * s->type->size; }

/* A random element of `size` bytes, by the state. */
void side_value(uint64_t state, int64_t size, char *out);

/* What is wrong with it: `what` if it does not hold what it shall; NULL: nothing. */
const char *side_wrong(const struct side *, const char *what);

#endif
