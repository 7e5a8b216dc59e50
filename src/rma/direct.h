/*
 * direct.h - operations on memory that is mapped here, while the target is open: done at once, and without the lane.
 *
 * They look only at the target that was used last, and at data in one piece. Whatever is otherwise is left to win_access, which
 * does all operations and words the errors.
 *
 * Threads: any.
 */
#ifndef TERN_RMA_DIRECT_H
#define TERN_RMA_DIRECT_H

#include "pt2pt/lane.h"
#include "rma/apply.h"
#include "rma/atomics.h"
#include "rma/epoch.h"

#include <string.h>

/* Do `count` elements lie in one piece that begins at their address? */
static inline bool direct_is_plain(const struct type *t) { return likely(t->contig) && !t->true_lb; }

/* The memory of (count x t) at the target, NULL: not by this way. *common: as apply.h says. */
static inline char *direct_place(const struct win *w, int rank, int64_t displacement, int64_t count, const struct type *t, bool *common)
{
    struct win_target *x = win_target_last(w, rank);
    if (!x || !win_target_is_open(w, x) || !direct_is_plain(t)) return NULL;
    const struct win_memory *m = &x->memory;
    uint64_t bytes = (uint64_t)(count * t->size);
    int64_t at;
    if (!m->at || __builtin_mul_overflow(displacement, x->unit, &at) || at < 0) return NULL;
    if ((uint64_t)at > m->bytes || bytes > m->bytes - (uint64_t)at) return NULL;
    *common = m->common;
    return m->at + at;
}

static inline void direct_copy(void *to, const void *from, size_t n)
{
    if (likely(n == 8)) memcpy(to, from, 8);
    else memcpy(to, from, n);
}

/* Put and get; `data` and (count x t) are of this process. False: nothing was done. */
static inline bool direct_put(const struct win *w, int rank, int64_t displacement, int64_t tcount, const struct type *ttype,
                              const void *data, const struct type *t)
{
    bool common;
    char *at = direct_is_plain(t) ? direct_place(w, rank, displacement, tcount, ttype, &common) : NULL;
    if (at) direct_copy(at, data, (size_t)(tcount * ttype->size));
    return at;
}

static inline bool direct_get(const struct win *w, int rank, int64_t displacement, int64_t tcount, const struct type *ttype, void *data,
                              const struct type *t)
{
    bool common;
    char *at = direct_is_plain(t) ? direct_place(w, rank, displacement, tcount, ttype, &common) : NULL;
    if (at) direct_copy(data, at, (size_t)(tcount * ttype->size));
    return at;
}

/*
 * Where n elements of a predefined type lie that may be changed now, until direct_leave: by atomic operations, or, *alone, by any
 * (apply.h). NULL: not by this way.
 */
static inline char *direct_enter(const struct win *w, int rank, int64_t displacement, int64_t n, const struct type *t, bool *alone)
{
    bool common = false;
    if (unlikely(lane_mode()) || !t->predefined) return NULL;
    char *at = direct_place(w, rank, displacement, n, t, &common);
    if (!at) return NULL;
    const struct win_target *x = win_target_last(w, rank);
    *alone = x->open == WIN_LOCKED_EXCLUSIVE;
    if (*alone) return at;
    if (!common || n * t->size >= ATOMICS_MANY || !apply_can_be_atomic(t, at)) return NULL;
    return atomics_enter(x->exposure, x->busy) ? at : NULL;
}

static inline void direct_leave(const struct win *w, int rank, bool alone)
{
    if (!alone) atomics_leave(win_target_last(w, rank)->busy);
}

#endif
