/*
 * rankrun.h - runs: arithmetic progressions of process indices, of which the compact
 * forms of rank maps (rankmap.h) are made, and lists of them as they grow.
 *
 *     rank        run.rank   +1               +2                    ... run.count ranks
 *     index       first      first + stride   first + 2 * stride    ...
 *
 * Strides may be negative, never 0; that of a run of one rank is 1. Two neighbours in
 * a run differ by less than 2^31.
 */
#ifndef TERN_OBJ_RANKRUN_H
#define TERN_OBJ_RANKRUN_H

#include "base/compiler.h"

struct rank_run {
    int32_t rank; /* of the first */
    int32_t count;
    uint32_t first;
    int32_t stride;
};
static_assert(sizeof(struct rank_run) == 16, "sent as it is (rankmap_pack)");

static inline uint32_t run_at(const struct rank_run *r, int32_t i) { return r->first + (uint32_t)i * (uint32_t)r->stride; }
static inline uint32_t run_step(const struct rank_run *r) { return (uint32_t)(r->stride < 0 ? -r->stride : r->stride); }
static inline uint32_t run_low(const struct rank_run *r) { return r->stride < 0 ? run_at(r, r->count - 1) : r->first; }
static inline uint32_t run_high(const struct rank_run *r) { return r->stride < 0 ? r->first : run_at(r, r->count - 1); }

/* The place of an index in the run, from 0; -1: it is not there. */
static inline int32_t run_find(const struct rank_run *r, uint32_t index)
{
    int64_t d = (int64_t)index - r->first;
    if (d % r->stride) return -1;
    int64_t i = d / r->stride;
    return i >= 0 && i < r->count ? (int32_t)i : -1;
}

/* Places in a run: at, at + step ... */
struct run_cut {
    int32_t at, step, count;
};

/* The places in `a` of what is in `b` as well; false: nothing is. Takes no longer for long runs than for short ones. */
bool run_common(const struct rank_run *a, const struct rank_run *b, struct run_cut *);

/* A list of runs that is written from the front. Zeroed, it is empty. */
struct run_list {
    struct rank_run *run;
    uint32_t n, room;
    int32_t size; /* ranks in all */
    bool failed;  /* memory ran out: the list is of no use */
};

/* Adds a run at the end; it becomes part of the last one where it continues it. Single indices become runs, too. */
void runs_add(struct run_list *, uint32_t first, int32_t stride, int32_t count);
void runs_free(struct run_list *);

#endif
