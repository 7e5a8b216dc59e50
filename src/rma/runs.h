/*
 * runs.h - the places of (count x type) in a window: runs of bytes, or of elements of the type's basic type.
 */
#ifndef TERN_RMA_RUNS_H
#define TERN_RMA_RUNS_H

#include "type/cursor.h"

struct win_runs {
    struct type_cursor c;
    const struct type *basic; /* NULL: runs of bytes */
};

/* Places relative to `base`, which may be NULL. basic: t->basic, for runs of elements. */
static inline void win_runs_init(struct win_runs *r, const struct type *t, int64_t count, void *base, const struct type *basic)
{
    type_cursor_init(&r->c, t, count, base);
    r->basic = basic;
}

/* The next run of at most `most` elements (or bytes): how many, and where it begins. 0: there is none. */
int64_t win_runs_next(struct win_runs *r, int64_t most, char **at);

/* Does the basic type have gaps, as pairs may? Then its elements in a packed buffer are shorter than those in memory. */
static inline bool win_has_gaps(const struct type *basic) { return basic->size != basic->extent; }

/* The next n elements of the type's data as they lie in memory, to `out` or from `in`. */
void win_elements_out(struct type_cursor *, const struct type *basic, void *out, int64_t n);
void win_elements_in(struct type_cursor *, const struct type *basic, const void *in, int64_t n);

#endif
