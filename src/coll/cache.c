/*
 * cache.c - a small array of entries with their hashes in an array of their own: a look-up
 * compares the entry found last, then the hashes, then one key. Entries in use are the first
 * `count` ones: the last moves to where one was dropped.
 */
#include "coll/cache.h"

#include <stdlib.h>
#include <string.h>

struct entry {
    struct coll_shape shape;
    int64_t *blocks; /* n of them, its own; NULL: the key has none */
    size_t n;
    struct goal_prog *prog;
    void *idle;
    size_t idle_bytes; /* of the frame, also while it is away: it counts as held, and that saves counting twice a call */
    uint64_t used; /* tick of the last use */
};

struct coll_cache {
    unsigned cap, count, last; /* entries possible, in use, found last */
    uint64_t tick, hits, misses, evictions;
    void (*free_idle)(void *);
    uint32_t *hash;
    struct entry *entry;
};

static size_t bound = (size_t)16 << 20;
static _Atomic size_t held; /* by all caches, on different lanes perhaps; a mere sum, so relaxed */

static void hold(size_t bytes) { atomic_fetch_add_explicit(&held, bytes, memory_order_relaxed); }
static void let_go(size_t bytes) { atomic_fetch_sub_explicit(&held, bytes, memory_order_relaxed); }
static bool has_room(size_t bytes) { return atomic_load_explicit(&held, memory_order_relaxed) + bytes <= bound; }

void coll_cache_bound(size_t bytes) { bound = bytes; }

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

static size_t bytes_of(const struct goal_prog *prog, size_t blocks) { return sizeof *prog + prog->head.bytes + blocks * 8; }

static void drop(struct coll_cache *c, unsigned i)
{
    struct entry *e = &c->entry[i];
    let_go(bytes_of(e->prog, e->n) + e->idle_bytes);
    goal_unref(e->prog);
    free(e->blocks);
    if (e->idle) c->free_idle(e->idle);
    if (i != --c->count) {
        *e = c->entry[c->count];
        c->hash[i] = c->hash[c->count];
    }
    c->last = 0;
}

void coll_cache_clear(struct coll_cache *c)
{
    while (c->count) drop(c, c->count - 1);
}

void coll_cache_close(struct coll_cache *c)
{
    if (!c) return;
    coll_cache_clear(c);
    free(c);
}

static uint64_t mix(uint64_t h, uint64_t word)
{
    h = (h ^ word) * UINT64_C(0x9e3779b97f4a7c15);
    return h ^ h >> 29;
}

static uint32_t hash_of(const struct coll_key *k)
{
    uint64_t word[sizeof *k->shape / 8], h = 0;
    memcpy(word, k->shape, sizeof word);
    for (size_t i = 0; i < ARRAY_LEN(word); i++) h = mix(h, word[i]);
    for (size_t i = 0; i < k->n; i++) h = mix(h, (uint64_t)k->blocks[i]);
    return (uint32_t)(h >> 32);
}

static bool is(const struct entry *e, const struct coll_key *k)
{
    return memcmp(&e->shape, k->shape, sizeof e->shape) == 0 && e->n == k->n &&
           (!k->n || memcmp(e->blocks, k->blocks, k->n * sizeof *k->blocks) == 0);
}

static struct entry *find(struct coll_cache *c, const struct coll_key *k)
{
    if (c->count && likely(is(&c->entry[c->last], k))) return &c->entry[c->last];
    uint32_t hash = hash_of(k);
    for (unsigned i = 0; i < c->count; i++)
        if (c->hash[i] == hash && is(&c->entry[i], k)) {
            c->last = i;
            return &c->entry[i];
        }
    return NULL;
}

bool coll_cache_find(struct coll_cache *c, const struct coll_key *k, struct goal_prog **prog_p, void **idle_p)
{
    struct entry *e = find(c, k);
    if (!e) {
        c->misses++;
        return false;
    }
    c->hits++;
    e->used = ++c->tick;
    *prog_p = e->idle ? NULL : goal_ref(e->prog);
    *idle_p = e->idle;
    e->idle = NULL;
    return true;
}

/* Drops what was used longest ago, but for `keep`, until there is room for so many bytes; false if it does not help. */
static bool make_room(struct coll_cache *c, const struct goal_prog *keep, size_t bytes)
{
    while (!has_room(bytes) || (!keep && c->count == c->cap)) {
        unsigned oldest = c->count;
        for (unsigned i = 0; i < c->count; i++)
            if (c->entry[i].prog != keep && (oldest == c->count || c->entry[i].used < c->entry[oldest].used)) oldest = i;
        if (oldest == c->count) return false;
        drop(c, oldest);
        c->evictions++;
    }
    return true;
}

void coll_cache_add(struct coll_cache *c, const struct coll_key *k, struct goal_prog *prog)
{
    size_t bytes = bytes_of(prog, k->n);
    if (!make_room(c, NULL, bytes)) return;
    int64_t *blocks = k->n ? malloc(k->n * sizeof *blocks) : NULL;
    if (k->n && !blocks) return;
    if (k->n) memcpy(blocks, k->blocks, k->n * sizeof *blocks);
    hold(bytes);
    c->last = c->count++;
    c->hash[c->last] = hash_of(k);
    c->entry[c->last] =
        (struct entry){.shape = *k->shape, .blocks = blocks, .n = k->n, .prog = goal_ref(prog), .used = ++c->tick};
}

static struct entry *of_program(struct coll_cache *c, const struct goal_prog *prog)
{
    if (c->count && likely(c->entry[c->last].prog == prog)) return &c->entry[c->last];
    for (unsigned i = 0; i < c->count; i++)
        if (c->entry[i].prog == prog) return &c->entry[i];
    return NULL;
}

void coll_cache_put(struct coll_cache *c, const struct goal_prog *prog, void *idle, size_t bytes)
{
    struct entry *e = of_program(c, prog);
    bool kept = e && !e->idle;
    if (kept && unlikely(e->idle_bytes != bytes)) {
        let_go(e->idle_bytes);
        e->idle_bytes = 0;
        kept = make_room(c, prog, bytes);
        e = of_program(c, prog); /* it may have moved */
        if (kept) hold(e->idle_bytes = bytes);
    }
    if (kept) e->idle = idle;
    else c->free_idle(idle);
}

void coll_cache_stats(const struct coll_cache *c, struct coll_cache_stats *stats)
{
    *stats = (struct coll_cache_stats){c->hits, c->misses, c->evictions, c->count,
                                       atomic_load_explicit(&held, memory_order_relaxed)};
}
