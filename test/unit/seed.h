/* seed.h - random numbers for unit tests: the same for the same seed, which is printed. */
#ifndef TERN_TEST_SEED_H
#define TERN_TEST_SEED_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* TERN_TEST_SEED, else from the clock. Printed at once: a test may fork, or crash. */
static inline uint64_t seed_open(void)
{
    const char *given = getenv("TERN_TEST_SEED");
    uint64_t seed = given ? strtoull(given, NULL, 0) : (uint64_t)time(NULL) * 1000003u;
    printf("# TERN_TEST_SEED=%llu\n", (unsigned long long)seed);
    fflush(stdout);
    return seed;
}

/* The next number; *state begins as any seed (splitmix64). */
static inline uint64_t seed_next(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

#endif
