/*
 * rankmap.h - from ranks of a group to process indices (transport/peer.h) and back.
 *
 * A map takes the smallest of three forms that fits:
 *
 *     a progression      first + rank * stride, the stride maybe negative; 64 bytes for any number of ranks
 *     runs of ranks      a few progressions one after another (rankrun.h), if they take no more than a table
 *     a table            4 bytes a rank; and about 9 more from the first rankmap_find on
 *
 *     rank -> index      at once          binary search among the runs       at once
 *     index -> rank      a division       binary search among their keys     hash table
 *
 * The keys of the runs are sorted by (step, index modulo step, lowest index): indices of the same step and residue are
 * on one grid, where runs of a group do not overlap. So an index is looked for once for each step that occurs.
 *
 * A map with processes of other jobs holds a reference to each of those jobs, so that an index in it means the same
 * process as long as the map is there.
 *
 * Immutable once made; shared by groups and communicators by reference, and by threads.
 */
#ifndef TERN_OBJ_RANKMAP_H
#define TERN_OBJ_RANKMAP_H

#include "base/compiler.h"
#include "obj/rankrun.h"
#include "proc/jobs.h"
#include <stdatomic.h>

/* Where a run is in the order for searching. */
struct rank_key {
    uint32_t step, residue, low; /* of its indices */
    uint32_t run;
};

struct rankmap {
    _Atomic int32_t refs;
    int32_t size;                 /* ranks */
    uint32_t first;               /* index of rank r is first + r * stride ... */
    int32_t stride;
    uint32_t runs;                /* ... if this is 1; if it is more: so many in `run` and `key`; 0: see `table` */
    uint32_t grids;               /* different (step, residue) among the keys */
    const struct rank_run *run;   /* behind this struct in the same allocation, as are the next two */
    const struct rank_key *key;
    const uint32_t *table;        /* index of every rank, else NULL */
    _Atomic(int32_t *) inverse;   /* of the table: ranks by hash of their index, -1 where none is; made when first needed */
    struct job_list *jobs;        /* other jobs that processes of it belong to, NULL: none */
};
static_assert(sizeof(struct rankmap) <= CACHE_LINE, "what a group of a million ranks costs, mostly");

/* A progression; NULL when memory is out. */
struct rankmap *rankmap_line(int32_t size, uint32_t first, int32_t stride);

/* From a list of indices (copied), or of runs (freed, with `run` NULL afterwards); in the form that is the smallest. */
struct rankmap *rankmap_list(int32_t size, const uint32_t *index);
struct rankmap *rankmap_runs(struct run_list *);

struct rankmap *rankmap_ref(struct rankmap *);
void rankmap_unref(struct rankmap *);

static inline bool rankmap_is_line(const struct rankmap *m) { return likely(m->runs == 1); }
static inline uint32_t rankmap_at_line(const struct rankmap *m, int32_t rank)
{
    return m->first + (uint32_t)rank * (uint32_t)m->stride;
}
uint32_t rankmap_at_other(const struct rankmap *, int32_t rank);

/* The process index of a rank. */
static inline uint32_t rankmap_at(const struct rankmap *m, int32_t rank)
{
    return rankmap_is_line(m) ? rankmap_at_line(m, rank) : rankmap_at_other(m, rank);
}

/* The run that a rank is in, of a map with several. */
const struct rank_run *rankmap_run_of(const struct rankmap *, int32_t rank);

/* The rank with this process index, -1 if there is none. */
int32_t rankmap_find(const struct rankmap *, uint32_t index);
int32_t rankmap_find_once(const struct rankmap *, uint32_t index); /* the same for a single question: O(n) rather than a hash table */

bool rankmap_equal(const struct rankmap *, const struct rankmap *);

/* The i-th of the map's runs; a map with a table has none (runs is 0). */
static inline struct rank_run rankmap_run(const struct rankmap *m, uint32_t i)
{
    return m->runs > 1 ? m->run[i] : (struct rank_run){0, m->size, m->first, m->stride};
}

/* The first key at or behind `from` that is greater than (step, residue, low); m->runs if none is. For maps of runs. */
uint32_t rankmap_key_above(const struct rankmap *m, uint32_t from, uint32_t step, uint32_t residue, uint32_t low);

/* Memory that the map takes. */
size_t rankmap_bytes(const struct rankmap *);

/* Are there processes of other jobs in it? Members of those jobs find the same of theirs. */
static inline bool rankmap_has_others(const struct rankmap *m) { return unlikely(m->jobs != NULL); }

/* Are there processes of one and the same other job in both? */
bool rankmap_shares_job(const struct rankmap *, const struct rankmap *);

/* How another process is told of a map whose processes are all of one job: by their ranks, as runs or a list. One of several jobs is not
 * told of so: there is more to tell than who they are (dpm/table.h). */
struct rankmap_form {
    uint64_t job; /* jobs_id; 0: several, and the rest means nothing but for the size */
    int32_t size;
    uint32_t runs; /* 0: a list */
};
static_assert(sizeof(struct rankmap_form) == 16, "sent as it is");

struct rankmap_form rankmap_form_of(const struct rankmap *);
size_t rankmap_packed(const struct rankmap_form *); /* bytes */
void rankmap_pack(const struct rankmap *, void *to);
/* NULL with words: memory is out, or it has processes that are not known here. */
struct rankmap *rankmap_unpack(const struct rankmap_form *, const void *from);

#endif
