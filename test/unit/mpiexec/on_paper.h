/* on_paper.h - what the launch of a job costs as it is worked out on paper, for the tests that count it. */
#ifndef TERN_TEST_ON_PAPER_H
#define TERN_TEST_ON_PAPER_H

#include <stddef.h>
#include <stdint.h>

/* Bytes of a job's description (describe.h): what is told once, the environment above all; for each host the length of its name and the
 * name, its slots and whether it is the root's; for each rank its host. */
static inline size_t paper_description(size_t once, size_t hosts, size_t name, size_t ranks)
{
    return once + hosts * (4 + name + 4 + 1) + ranks * 4;
}

/* How many vertices of a tree are on level k: width^k, but for the last level. */
static inline int64_t paper_level(int64_t width, int64_t vertices, int k)
{
    int64_t above = 0, full = 1;
    for (int i = 0; i < k; i++, full *= width) above += full;
    int64_t left = vertices - above;
    return left < 0 ? 0 : left < full ? left : full;
}

/* Vertices below the first vertex of level 1, itself included: the same of a tree of its own, the last level of which it has first. */
static inline int64_t paper_below_first(int64_t width, int64_t vertices)
{
    int64_t sum = 0, full = 1;
    for (int k = 1; paper_level(width, vertices, k); k++, full *= width) {
        int64_t there = paper_level(width, vertices, k);
        sum += there < full ? there : full;
    }
    return sum;
}

#endif
