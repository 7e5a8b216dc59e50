/*
 * way.h - the ways of a collective inside a node, as data. Rules say which way a call should take (table.h, select.h); whether
 * it can is known in node/ (possible.c).
 */
#ifndef TERN_COLL_WAY_H
#define TERN_COLL_WAY_H

#include "coll/alg/alg.h"

enum coll_way {
    COLL_WAY_NONE, /* nothing is said of it */
    COLL_WAY_SLOTS,
    COLL_WAY_WIDE,
    COLL_WAY_ONCE,
    COLL_WAY_MESSAGES,
    COLL_WAYS
};

/* Which calls something is about. */
enum coll_calls { COLL_CALLS_ANY, COLL_CALLS_BLOCKING, COLL_CALLS_NONBLOCKING };

struct coll_way_info {
    const char *name;               /* in rules, hints and variables */
    uint32_t blocking, nonblocking; /* operations that have it, a bit each */
    const char *meaning;
};
extern const struct coll_way_info coll_ways[COLL_WAYS];

/* Has the operation that way, for these calls (COLL_CALLS_ANY: for some)? */
static inline bool coll_way_is_of(enum coll_way w, enum coll_kind kind, enum coll_calls calls)
{
    uint32_t kinds = 0;
    if (calls != COLL_CALLS_NONBLOCKING) kinds |= coll_ways[w].blocking;
    if (calls != COLL_CALLS_BLOCKING) kinds |= coll_ways[w].nonblocking;
    return kinds >> kind & 1;
}

/* The way of that name, COLL_WAY_NONE if these calls of the operation have none. */
enum coll_way coll_way_find(enum coll_kind, enum coll_calls, const char *name);

/* Ways in the order in which they are to be tried; behind the last one come messages. */
struct coll_way_list {
    uint8_t n, way[COLL_WAYS]; /* enum coll_way, each once, COLL_WAY_MESSAGES never */
    int32_t slices;            /* of COLL_WAY_WIDE, as in struct coll_choice */
};

/* Puts it behind those that are there, unless it is one of them. */
static inline void coll_way_add(struct coll_way_list *l, enum coll_way way, int32_t slices)
{
    for (unsigned i = 0; i < l->n; i++)
        if (l->way[i] == way) return;
    if (way == COLL_WAY_WIDE) l->slices = slices;
    l->way[l->n++] = (uint8_t)way;
}

#endif
