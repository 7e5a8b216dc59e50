/*
 * hash.h - an intrusive hash table of a fixed number of lists, for things that are found by a number: the lists of a thousand of
 * them are four long. A table is zeroed at first; an element embeds a struct hash_link and is found back with container_of.
 *
 * Threads: the caller has a lock.
 */
#ifndef TERN_BASE_HASH_H
#define TERN_BASE_HASH_H

#include "base/compiler.h"

enum { HASH_BITS = 8 }; /* half a page: at the start of a process every page that is touched counts */

struct hash_link {
    struct hash_link *next;
    uint64_t key;
};

struct hash {
    struct hash_link *list[1 << HASH_BITS];
};

static inline struct hash_link **hash_list(struct hash *h, uint64_t key)
{
    return &h->list[key * 0x9e3779b97f4a7c15u >> (64 - HASH_BITS)];
}

/* Several elements may have the same key. */
static inline void hash_add(struct hash *h, struct hash_link *l, uint64_t key)
{
    struct hash_link **list = hash_list(h, key);
    *l = (struct hash_link){*list, key};
    *list = l;
}

static inline void hash_remove(struct hash *h, struct hash_link *l)
{
    struct hash_link **at = hash_list(h, l->key);
    while (*at != l) at = &(*at)->next;
    *at = l->next;
}

/* The element with this key that was added last; hash_more: the next one, with the same key. NULL: there is none. */
static inline struct hash_link *hash_same(struct hash_link *l, uint64_t key)
{
    while (l && l->key != key) l = l->next;
    return l;
}

static inline struct hash_link *hash_find(struct hash *h, uint64_t key) { return hash_same(*hash_list(h, key), key); }
static inline struct hash_link *hash_more(struct hash_link *l) { return hash_same(l->next, l->key); }

/* A key for a text. */
static inline uint64_t hash_text(const char *text)
{
    uint64_t h = 14695981039346656037u;
    for (; *text; text++) h = (h ^ (uint8_t)*text) * 1099511628211u;
    return h;
}

#endif
