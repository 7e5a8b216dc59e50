/*
 * budget.h - which batches are worth leaving to a copy engine that works on its own: two budgets in time, first as
 * measured at the start (measure.h), then corrected by what is observed while the program runs.
 *
 *     the caller's   issuing a batch takes the caller no longer than copying it:
 *                        submit x COPY_BATCH + issue  <=  n x own
 *     the end's      it ends no later than SLOWER times what was measured, the caller's own time and 5 us together:
 *                        (lag + n x pace) x slow  <=  (lag + n x pace) x SLOWER + n x own + 5 us
 *
 * Both are linear in n, the bytes of a batch, so they are kept as a range of bytes for each place where the source may
 * be (in a cache, in memory). It is computed when an estimate has moved, and looked up for each batch.
 *
 * Observed of one batch in SAMPLE_EVERY, and of the next one after an end that was far from its prediction, are
 *
 *     issue   how long the call took;
 *     slow    the end, to what was measured. Nobody sees an end itself: it lies between two looks. A prediction in
 *             between is right, and stays; else it is moved towards the nearer look;
 *
 * and of one in SAMPLE_EVERY of the caller's own copies of OWN_MIN bytes and more
 *
 *     own     how long it took.
 *
 * An estimate moves by an eighth of the distance to a sample, and a sample counts for four times the estimate at most,
 * or a quarter: one bad sample changes it by three eighths. An end that comes earlier moves its prediction by half:
 * what disturbs makes it later, never earlier. So a device that has become ten times as slow has lost its work after
 * some ten samples.
 *
 * An engine that has lost batches which it was worth at the start gets TRIAL of every DISTANCE of them. All are
 * sampled, and it has its work again when it is fast.
 *
 * Cost: a comparison with two numbers and a count for each batch; for a sampled one two looks at the clock (20 ns each)
 * besides the one that every issue takes, one more for each look at the engine before its end, and some divisions: 5
 * to 10 ns a batch in the mean.
 *
 * There is no clock in this file: times are told.
 *
 * Source: OMX-20, OMX-25, OMX-26. Threads: a budget belongs to one at a time.
 */
#ifndef TERN_COPY_BUDGET_H
#define TERN_COPY_BUDGET_H

#include "base/compiler.h"

#define COPY_BATCH 4 /* copies of a batch whose size is the border */

enum { SAMPLE_EVERY = 16, TRIAL = 8, DISTANCE = 256 };
#define OWN_MIN ((size_t)4 << 10)
#define SLOWER 4

enum copy_place { COPY_NEAR, COPY_FAR }; /* in a cache of this core, in none */

/* What was measured: ns. */
struct copy_engine_cost {
    float submit_ns, issue_ns; /* the caller's time: for a copy, and for starting a batch while the engine sleeps */
    float lag_ns;              /* from the issue of a batch with next to no bytes until its end */
    float pace[2];             /* for a byte, by where the source is */
    float own[2];              /* of a copy by the caller itself to memory, for a byte */
};

/* Bytes of batches: [from, to], none if to < from. */
struct budget_range {
    size_t from, to;
};

struct copy_budget {
    struct budget_range worth[2]; /* by enum copy_place */
    bool fixed;                   /* by somebody else: nothing that is observed changes it */
    unsigned until;               /* batches until one is sampled */
    unsigned refused;             /* batches that the engine has lost since the last trial */
    unsigned trying;              /* batches of the trial that are left */
    unsigned own_until;
    struct budget_range first[2]; /* as measured */
    double submit, issue, issue_first, own[2];
    double lag, pace[2], slow[2];
    /* for count.h */
    uint64_t ends, corrections, trials;
    double predicted, observed;
};

/* Nothing is measured: all is worth it, and the pace is a core's until ends are observed. */
void budget_open(struct copy_budget *);
void budget_measured(struct copy_budget *,
                     const struct copy_engine_cost *); /* from now on the ranges are as computed */
void budget_fix(struct copy_budget *, size_t least);   /* from now on they are: from so many bytes on */

/* The engine has lost it: is a trial due? */
bool budget_tries(struct copy_budget *, size_t n, enum copy_place) TERN_COLD;

/* A batch of n bytes is to be left to the engine. */
static inline bool budget_takes(struct copy_budget *b, size_t n, enum copy_place p)
{
    return likely(n >= b->worth[p].from && n <= b->worth[p].to) || budget_tries(b, n, p);
}

/* The least batch that is left to the engine; SIZE_MAX: none is. */
static inline size_t budget_least(const struct copy_budget *b, enum copy_place p)
{
    return b->worth[p].to < b->worth[p].from ? SIZE_MAX : b->worth[p].from;
}

/* One in SAMPLE_EVERY. */
static inline bool budget_is_due(unsigned *until)
{
    bool due = unlikely(!*until);
    *until = due ? SAMPLE_EVERY - 1 : *until - 1;
    return due;
}

/* The batch that is issued now is sampled; the caller's own copy is. */
static inline bool budget_samples(struct copy_budget *b) { return budget_is_due(&b->until); }
static inline bool budget_samples_own(struct copy_budget *b) { return budget_is_due(&b->own_until); }

/* ns until n bytes have been copied by the engine, which has nothing else to do, or is copying still. */
static inline uint64_t budget_predict(const struct copy_budget *b, size_t n, enum copy_place p, bool copying)
{
    return (uint64_t)(((copying ? 0 : b->lag) + (double)n * b->pace[p]) * b->slow[p]) + 1;
}

void budget_issued(struct copy_budget *, uint64_t ns);
/* A batch was to end `predicted` ns after its issue, and has ended later than `after`, by `by` at the latest. */
void budget_ended(struct copy_budget *, enum copy_place, uint64_t predicted, uint64_t after, uint64_t by);
void budget_copied(struct copy_budget *, enum copy_place, size_t n, uint64_t ns); /* by the caller */

#endif
