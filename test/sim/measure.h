/*
 * measure.h - what the programs of all ranks of a collective cost, found by looking at them: sizes, messages, stages;
 * and whether every message has its one counterpart.
 */
#ifndef TERN_TEST_MEASURE_H
#define TERN_TEST_MEASURE_H

#include "coll/goal/goal.h"

struct measure {
    int64_t ops, bytes, scratch; /* the largest program, block and scratchpad of a rank */
    int64_t messages, moved;     /* of all ranks: how many, and bytes in them */
    int stages;                  /* messages one behind the other on the longest way through the schedule */
};

/* NULL, or what is wrong: a message without counterpart, two of the same name, unequal lengths, a cycle over ranks. */
const char *measure_programs(int n, struct goal_prog *const prog[], struct measure *);

#endif
