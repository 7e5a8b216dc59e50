/* ids.c - see ids.h. */
#include "pt2pt/ids.h"
#include "base/err.h"
#include "transport/wire_lock.h"

#include <stdlib.h>

#define NONE UINT32_MAX

static_assert(IDS_FIRST * ((UINT64_C(1) << IDS_BLOCKS) - 1) <= UINT64_C(1) << IDS_BITS, "entries have numbers of so many bits");

void ids_open(struct ids *t, uint32_t lane) { *t = (struct ids){.free = NONE, .lane = lane}; }

void ids_close(struct ids *t)
{
    for (int b = 0; b < IDS_BLOCKS; b++) free(t->block[b]);
    ids_open(t, t->lane);
}

/* Block b starts at number IDS_FIRST * (2^b - 1). */
static struct id_entry *at(const struct ids *t, uint32_t number)
{
    uint32_t n = number / IDS_FIRST + 1, b = 31 - (uint32_t)__builtin_clz(n);
    return t->block[b] + (number - IDS_FIRST * ((UINT32_C(1) << b) - 1));
}

static bool grow(struct ids *t)
{
    uint32_t b = 31 - (uint32_t)__builtin_clz(t->made / IDS_FIRST + 1), n = (uint32_t)IDS_FIRST << b;
    struct id_entry *e = b < IDS_BLOCKS ? calloc(n, sizeof *e) : NULL;
    if (!e) return false;
    for (uint32_t i = 0; i < n; i++)
        e[i] =
            (struct id_entry){.generation = 1, .self = t->made + i, .next_free = i + 1 < n ? t->made + i + 1 : t->free};
    t->block[b] = e;
    t->free = t->made;
    t->made += n;
    return true;
}

static int give(struct ids *t, struct request *r, uint32_t awaits)
{
    if (r->id) {
        ids_of(t, r)->awaits |= awaits;
        return 0;
    }
    if (t->free == NONE && !grow(t))
        return err_set(TERN_ERR_NOMEM, "no memory for the id of one more request beside %u that peers know", t->used);
    struct id_entry *e = at(t, t->free);
    t->free = e->next_free;
    t->used++;
    e->request = r;
    e->peer = r->peer;
    e->awaits = awaits;
    r->id = (uint64_t)e->generation << 32 | (uint64_t)t->lane << IDS_BITS | e->self;
    return 0;
}

int ids_give(struct ids *t, struct request *r, uint32_t awaits)
{
    leaf_take(&t->lock);
    int rc = give(t, r, awaits);
    leaf_give(&t->lock);
    return rc;
}

static uint32_t number_of(uint64_t id) { return (uint32_t)id & ((UINT32_C(1) << IDS_BITS) - 1); }

static struct id_entry *entry(const struct ids *t, uint64_t id)
{
    uint32_t number = number_of(id);
    if (number >= t->made || ids_lane(id) != t->lane) return NULL;
    struct id_entry *e = at(t, number);
    return e->generation == id >> 32 ? e : NULL;
}

struct id_entry *ids_find(struct ids *t, uint64_t id, const struct peer *from, uint32_t what)
{
    struct id_entry *e = entry(t, id);
    return e && e->peer == from && (e->awaits & what) ? e : NULL;
}

void ids_lock(struct ids *t) { leaf_take(&t->lock); }
void ids_unlock(struct ids *t) { leaf_give(&t->lock); }

struct id_entry *ids_of(struct ids *t, const struct request *r) { return at(t, number_of(r->id)); }

void ids_await(struct ids *t, const struct request *r, uint32_t what) { ids_of(t, r)->awaits |= what; }
void ids_await_no_more(struct ids *t, const struct request *r, uint32_t what) { ids_of(t, r)->awaits &= ~what; }

static void free_entry(struct ids *t, struct id_entry *e)
{
    if (!++e->generation) e->generation = 1;
    e->request = NULL;
    e->peer = NULL;
    e->awaits = 0;
    e->next_free = t->free;
    t->free = e->self;
    t->used--;
}

void ids_drop(struct ids *t, struct request *r)
{
    leaf_take(&t->lock);
    struct id_entry *e = ids_of(t, r);
    r->id = 0;
    e->request = NULL;
    e->awaits &= AWAIT_CANCELLED;
    if (!e->awaits) free_entry(t, e);
    leaf_give(&t->lock);
}

void ids_free(struct ids *t, struct id_entry *e)
{
    leaf_take(&t->lock);
    free_entry(t, e);
    leaf_give(&t->lock);
}

struct id_entry *ids_next(struct ids *t, const struct peer *peer, uint32_t *number)
{
    for (; *number < t->made; ++*number) {
        struct id_entry *e = at(t, *number);
        if (peer ? e->peer == peer : e->peer != NULL) return e;
    }
    return NULL;
}
