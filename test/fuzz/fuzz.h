/*
 * fuzz.h - what the fuzzers of what comes over a wire share: random numbers, and how many
 * cases there are.
 *
 * TERN_FUZZ_CASES   how many (each program has a default of its own)
 * TERN_FUZZ_SEED    the first case's seed; case i has seed + i
 */
#ifndef TEST_FUZZ_H
#define TEST_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

extern uint64_t fuzz_seed; /* of this case */

uint64_t fuzz_random(void);
uint64_t fuzz_below(uint64_t n); /* 0 .. n - 1 */
void fuzz_bytes(void *bytes, size_t n);

/* Changes n bytes a little: bits, bytes, runs, numbers at the ends of their ranges. Always changes something. */
void fuzz_mutate(uint8_t *bytes, size_t n);

/* A rule that does not hold: printed with the case's seed, and the program fails. */
void fuzz_failed(const char *rule, int line);
#define FUZZ_RULE(cond, words) ((cond) ? (void)0 : fuzz_failed(words, __LINE__))

bool fuzz_ok(void); /* no rule of this part has failed so far */

struct fuzz_part {
    const char *name; /* what it shows, as a test's name */
    void (*run)(void); /* one case */
    unsigned each;     /* the cases are divided by this: for slow parts */
};

/* main() of a fuzzer; returns the exit status. Memory in use at the end of a part must be what it was at the beginning. */
int fuzz_main(const struct fuzz_part *parts, unsigned n, uint64_t cases);

#endif
