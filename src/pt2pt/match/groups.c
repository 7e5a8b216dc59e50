/* groups.c - keeping and searching the groups of a deep side. */
#include "pt2pt/match/groups.h"

#include <stdlib.h>

/* Entries of a group whose block is kept when the side runs empty: 64 groups then keep 100 KB at most. */
#define KEEP_CAP 64

/* Stands in the groups' column of what entries are for; the side's own queue has the real one. */
static char in_side;

/* Fibonacci hashing: neighbouring ranks and ranks at any power of two apart fall into different groups. */
static uint32_t hash(unsigned bits, int src)
{
    return (uint32_t)((uint64_t)((uint32_t)src * UINT32_C(2654435769)) << bits >> 32);
}

static struct match_queue *group_of(struct match_groups *g, int src)
{
    return src == MATCH_ANY_SOURCE ? &g->any : &g->group[hash(g->bits, src)];
}

struct match_groups *match_groups_new(unsigned bits)
{
    struct match_groups *g = calloc(1, sizeof *g);
    if (!g) return NULL;
    g->bits = bits;
    match_queue_init_ordered(&g->any);
    for (size_t i = 0; i < MATCH_GROUPS_MAX; i++) match_queue_init_ordered(&g->group[i]);
    return g;
}

void match_groups_free(struct match_groups *g)
{
    if (!g) return;
    match_queue_fini(&g->any);
    for (size_t i = 0; i < MATCH_GROUPS_MAX; i++) match_queue_fini(&g->group[i]);
    free(g);
}

/* Entries looked at when an index is judged: the answer for all of a long queue would cost what many searches cost. */
#define SAMPLE 256u

/* So many of one group, and none of another: it has more than half of all, but for one case in 2^15. Most deep queues
 * are of one source, and the receive that is posted behind 4,096 others of it waits for the answer. */
#define SAMPLE_SAME 16u

bool match_groups_pay(const struct match_queue *q, unsigned bits)
{
    uint32_t count[MATCH_GROUPS_MAX + 1] = {0}, most = 0, seen = 0, length = q->tail - q->head;
    for (uint32_t k = 0; k < length && k < SAMPLE; k++) {
        /* scattered, so that sources that come in turns are all met */
        uint32_t i = length <= SAMPLE ? k : (uint32_t)((uint64_t)(k * 2654435761u) * length >> 32);
        uint64_t key = q->keys[q->head + i];
        if (key == MATCH_HOLE) continue;
        int src = match_key_src(key);
        uint32_t *n = &count[src == MATCH_ANY_SOURCE ? MATCH_GROUPS_MAX : hash(bits, src)];
        if (++*n > most) most = *n;
        if (++seen == SAMPLE_SAME && most == seen) return false;
    }
    return seen && most <= seen / 2;
}

static void clear(struct match_queue *q)
{
    match_queue_clear(q);
    if (q->cap > KEEP_CAP) match_queue_fini(q);
}

void match_groups_clear(struct match_groups *g)
{
    clear(&g->any);
    for (size_t i = 0; i < MATCH_GROUPS_MAX; i++) clear(&g->group[i]);
}

bool match_groups_fill(struct match_groups *g, struct match_queue *all)
{
    uint64_t *order = match_queue_order(all);
    for (uint32_t i = all->head; i < all->tail; i++) {
        order[i] = g->next;
        if (match_groups_push(g, all->keys[i])) continue;
        match_groups_clear(g);
        return false;
    }
    return true;
}

bool match_groups_push(struct match_groups *g, uint64_t key)
{
    struct match_queue *q = group_of(g, match_key_src(key));
    if (!match_queue_push(q, key, &in_side)) return false;
    match_queue_order(q)[q->tail - 1] = g->next++;
    return true;
}

void match_groups_remove(struct match_groups *g, uint64_t key, uint64_t order)
{
    struct match_queue *q = group_of(g, match_key_src(key));
    match_queue_remove(q, match_queue_find_order(q, order));
}

static uint64_t order_at(const struct match_queue *q, uint32_t at)
{
    return at == MATCH_NONE ? MATCH_NO_ORDER : match_queue_order(q)[at];
}

uint64_t match_groups_find_message(const struct match_groups *g, int src, int tag)
{
    const struct match_queue *q = &g->group[hash(g->bits, src)];
    return order_at(q, match_queue_find_masked(q, match_sought_key(src, tag), match_sought_mask(src, tag)));
}

uint64_t match_groups_find_receive(const struct match_groups *g, int src, int tag)
{
    uint64_t key = match_key(src, tag), wild = match_wild_key(tag);
    const struct match_queue *q = &g->group[hash(g->bits, src)];
    uint64_t named = order_at(q, match_queue_find_either(q, key, wild));
    uint64_t any = order_at(&g->any, match_queue_find_either(&g->any, key, wild));
    return any < named ? any : named;
}
