/*
 * rankmap.h - from ranks of a group to process indices (transport/peer.h), without
 * a table where the indices are an arithmetic progression.
 *
 * Immutable once made; shared by groups and communicators by reference.
 */
#ifndef TERN_OBJ_RANKMAP_H
#define TERN_OBJ_RANKMAP_H

#include "base/compiler.h"
#include <stdatomic.h>

struct rankmap {
    _Atomic int32_t refs;
    int32_t size;           /* ranks */
    uint32_t first, stride; /* index of rank r is first + r * stride when table is NULL */
    uint32_t *table;        /* else index of every rank; behind this struct in the same allocation */
};

/* A progression; NULL when memory is out. */
struct rankmap *rankmap_line(int32_t size, uint32_t first, uint32_t stride);

/* From a list of indices (copied); becomes a progression where it is one. */
struct rankmap *rankmap_list(int32_t size, const uint32_t *index);

struct rankmap *rankmap_ref(struct rankmap *);
void rankmap_unref(struct rankmap *);

static inline uint32_t rankmap_at(const struct rankmap *m, int32_t rank)
{
    return likely(!m->table) ? m->first + (uint32_t)rank * m->stride : m->table[rank];
}

/* The rank with this process index, -1 if there is none. */
int32_t rankmap_find(const struct rankmap *, uint32_t index);

bool rankmap_equal(const struct rankmap *, const struct rankmap *);

#endif
