/*
 * cache.c - a small array of entries with their hashes in an array of their own: a look-up
 * compares the entry found last, then the hashes, then one key.
 */
#include "coll/cache.h"

#include "base/err.h"
#include <stdlib.h>
#include <string.h>

struct entry {
    struct coll_shape shape;
    struct goal_prog *prog;
    void *idle;
    uint64_t used; /* tick of the last use */
};

struct coll_cache {
    unsigned cap, count, last; /* entries possible, in use, found last */
    uint64_t tick, hits, misses, evictions;
    void (*free_idle)(void *);
    uint32_t *hash;
    struct entry *entry;
};

struct coll_cache *coll_cache_open(unsigned entries, void (*free_idle)(void *))
{
    struct coll_cache *c = calloc(1, sizeof *c + entries * (sizeof(struct entry) + sizeof(uint32_t)));
    if (!c) return NULL;
    c->cap = entries;
    c->free_idle = free_idle;
    c->entry = (struct entry *)(c + 1);
    c->hash = (uint32_t *)(c->entry + entries);
    return c;
}

static void drop(struct coll_cache *c, struct entry *e)
{
    goal_unref(e->prog);
    if (e->idle) c->free_idle(e->idle);
    memset(e, 0, sizeof *e);
}

void coll_cache_close(struct coll_cache *c)
{
    if (!c) return;
    for (unsigned i = 0; i < c->count; i++) drop(c, &c->entry[i]);
    free(c);
}

static uint32_t hash_of(const struct coll_shape *s)
{
    uint64_t word[sizeof *s / 8], h = 0;
    memcpy(word, s, sizeof word);
    for (size_t i = 0; i < ARRAY_LEN(word); i++) h = (h ^ word[i]) * UINT64_C(0x9e3779b97f4a7c15);
    return (uint32_t)(h >> 32);
}

static bool same(const struct coll_shape *a, const struct coll_shape *b) { return memcmp(a, b, sizeof *a) == 0; }

static struct entry *find(struct coll_cache *c, const struct coll_shape *s, uint32_t hash)
{
    if (c->count && same(&c->entry[c->last].shape, s)) return &c->entry[c->last];
    for (unsigned i = 0; i < c->count; i++)
        if (c->hash[i] == hash && same(&c->entry[i].shape, s)) {
            c->last = i;
            return &c->entry[i];
        }
    return NULL;
}

/* An empty entry: a new one, or that of the program used longest ago. */
static unsigned make_room(struct coll_cache *c)
{
    if (c->count < c->cap) return c->count++;
    unsigned oldest = 0;
    for (unsigned i = 1; i < c->count; i++)
        if (c->entry[i].used < c->entry[oldest].used) oldest = i;
    drop(c, &c->entry[oldest]);
    c->evictions++;
    return oldest;
}

int coll_cache_get(struct coll_cache *c, const struct coll_shape *s, const struct coll_given *v, struct goal_prog **prog_p,
                   void **idle_p)
{
    uint32_t hash = hash_of(s);
    struct entry *e = find(c, s, hash);
    if (e) {
        c->hits++;
    } else {
        struct goal_prog *prog;
        int rc = coll_compile(s, v, &prog);
        if (rc) return rc;
        c->misses++;
        c->last = make_room(c);
        c->hash[c->last] = hash;
        e = &c->entry[c->last];
        *e = (struct entry){.shape = *s, .prog = prog};
    }
    e->used = ++c->tick;
    *prog_p = goal_ref(e->prog);
    *idle_p = e->idle;
    e->idle = NULL;
    return 0;
}

void coll_cache_put(struct coll_cache *c, const struct coll_shape *s, void *idle)
{
    struct entry *e = find(c, s, hash_of(s));
    if (e && !e->idle) e->idle = idle;
    else c->free_idle(idle);
}

void coll_cache_stats(const struct coll_cache *c, struct coll_cache_stats *stats)
{
    *stats = (struct coll_cache_stats){c->hits, c->misses, c->evictions, c->count};
}
