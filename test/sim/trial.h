/*
 * trial.h - one collective in the simulator: its buffers, what the standard says shall be in them at the end, and
 * whether it is. Contents are random by seed; neighbourhoods and two groups have tests of their own.
 */
#ifndef TERN_TEST_TRIAL_H
#define TERN_TEST_TRIAL_H

#include "coll/alg/alg.h"
#include "sim.h"

enum { TRIAL_RANKS = 64, TRIAL_WORDS = 512 };

struct trial {
    int alg, P, root;
    int64_t elems; /* of the buffer or of a block; in v-collectives, scale of the lengths */
    int64_t esize; /* bytes of an element */
    bool in_place, ordered, gap;
    bool loose; /* the operator counts as one that commutes but does not: of the results only that all ranks' are alike */
    int64_t segment;
    int radix, nodes, domains;
    unsigned mixed; /* COLL_MIXED, COLL_SHUFFLED */
    int32_t node[TRIAL_RANKS], domain[TRIAL_RANKS];
    uint64_t seed;
};

/* What is varied systematically; size 0 is nothing, 1 a few elements, 2 several segments. */
enum { TRIAL_IN_PLACE = 1, TRIAL_ORDERED = 2, TRIAL_SIZE = 4, TRIAL_OPTIONS = 12 };

/* A trial, what is not given drawn at random: gaps, radix, nodes, domains, segment. False: there is no such case. */
bool trial_draw(struct trial *, int alg, int P, int root, unsigned options, uint64_t state);

/* May the algorithm be used for it? */
bool trial_fits(const struct trial *);

bool trial_has_root(enum coll_kind);

/* Something that is done to the programs before they run. */
struct trial_change {
    void (*make)(void *ctx, struct goal_prog *prog[]);
    void *ctx;
};

/* Runs it. False, and what is wrong, if the result is not what it shall be. change may be NULL. */
bool trial_run(const struct trial *, const struct trial_change *change, char words[TRIAL_WORDS]);

/* Only the programs, the caller's. */
bool trial_compile(const struct trial *, struct goal_prog *prog[TRIAL_RANKS]);

extern int64_t trial_programs; /* run so far */

#endif
