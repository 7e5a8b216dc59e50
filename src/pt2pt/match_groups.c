/* match_groups.c - spreading entries over groups by source, and the order between groups. */
#include "pt2pt/match_groups.h"

#include <stdlib.h>

/* Entries of a group whose block is kept when the side runs empty: 64 groups then keep 100 KB at most. */
#define KEEP_CAP 64

/* Fibonacci hashing: neighbouring ranks and ranks at any power of two apart fall into different groups. */
static uint32_t group_of(unsigned bits, int src)
{
    return (uint32_t)((uint64_t)((uint32_t)src * UINT32_C(2654435769)) << bits >> 32);
}

static struct match_queue *queue_of(struct match_groups *g, int src)
{
    return &g->queue[src == MATCH_ANY_SOURCE ? MATCH_GROUP_WILD : group_of(g->bits, src)];
}

struct match_queue *match_groups_of(struct match_groups *g, int src) { return queue_of(g, src); }

struct match_groups *match_groups_new(unsigned bits)
{
    struct match_groups *g = calloc(1, sizeof *g);
    if (!g) return NULL;
    g->bits = bits;
    for (size_t i = 0; i < ARRAY_LEN(g->queue); i++) match_queue_init(&g->queue[i], NULL, 3);
    return g;
}

void match_groups_free(struct match_groups *g)
{
    if (!g) return;
    for (size_t i = 0; i < ARRAY_LEN(g->queue); i++) match_queue_fini(&g->queue[i]);
    free(g);
}

bool match_groups_pay(const struct match_queue *q, unsigned bits)
{
    uint32_t count[MATCH_GROUPS_MAX + 1] = {0}, most = 0;
    for (uint32_t i = q->head; i < q->tail; i++) {
        if (q->keys[i] == MATCH_HOLE) continue;
        int src = match_key_src(q->keys[i]);
        uint32_t *n = &count[src == MATCH_ANY_SOURCE ? MATCH_GROUP_WILD : group_of(bits, src)];
        if (++*n > most) most = *n;
    }
    return most <= q->live / 2;
}

void match_groups_clear(struct match_groups *g)
{
    for (size_t i = 0; i < ARRAY_LEN(g->queue); i++) {
        match_queue_clear(&g->queue[i]);
        if (g->queue[i].cap > KEEP_CAP) match_queue_fini(&g->queue[i]);
    }
    g->busy = 0;
}

bool match_groups_fill(struct match_groups *g, const struct match_queue *q)
{
    for (uint32_t i = q->head; i < q->tail; i++) {
        if (q->keys[i] == MATCH_HOLE || match_groups_push(g, q->keys[i], match_queue_whats(q)[i])) continue;
        match_groups_clear(g);
        return false;
    }
    return true;
}

bool match_groups_push(struct match_groups *g, uint64_t key, void *what)
{
    struct match_queue *q = queue_of(g, match_key_src(key));
    size_t i = (size_t)(q - g->queue);
    if (!match_queue_push(q, key, what)) return false;
    match_queue_order(q)[q->tail - 1] = g->next;
    if (q->live == 1 && i != MATCH_GROUP_WILD) {
        g->oldest[i] = g->next;
        g->busy |= UINT64_C(1) << i;
    }
    g->next++;
    return true;
}

void *match_groups_remove(struct match_groups *g, struct match_spot s)
{
    size_t i = (size_t)(s.queue - g->queue);
    void *what = match_queue_remove(s.queue, s.at);
    if (i == MATCH_GROUP_WILD) return what;
    if (s.queue->live)
        g->oldest[i] = match_queue_order(s.queue)[s.queue->head];
    else
        g->busy &= ~(UINT64_C(1) << i);
    return what;
}

static uint64_t order_at(struct match_spot s)
{
    return s.at == MATCH_NONE ? UINT64_MAX : match_queue_order(s.queue)[s.at];
}

static size_t oldest_group(const struct match_groups *g)
{
    size_t first = (size_t)__builtin_ctzll(g->busy);
    for (uint64_t left = g->busy & (g->busy - 1); left; left &= left - 1) {
        size_t i = (size_t)__builtin_ctzll(left);
        if (g->oldest[i] < g->oldest[first]) first = i;
    }
    return first;
}

/* The oldest message of any source. The group with the oldest entry comes first, since a match there mostly rules the
 * others out. */
static struct match_spot find_any(struct match_groups *g, uint64_t key, uint64_t mask)
{
    struct match_spot best = {NULL, MATCH_NONE};
    if (!g->busy) return best;
    size_t first = oldest_group(g);
    best = (struct match_spot){&g->queue[first], match_queue_find_masked(&g->queue[first], key, mask)};
    for (uint64_t left = g->busy & ~(UINT64_C(1) << first); left; left &= left - 1) {
        size_t i = (size_t)__builtin_ctzll(left);
        if (g->oldest[i] > order_at(best)) continue;
        struct match_spot s = {&g->queue[i], match_queue_find_masked(&g->queue[i], key, mask)};
        if (order_at(s) < order_at(best)) best = s;
    }
    return best;
}

struct match_spot match_groups_find_message(struct match_groups *g, int src, int tag)
{
    uint64_t key = match_sought_key(src, tag), mask = match_sought_mask(src, tag);
    if (src == MATCH_ANY_SOURCE) return find_any(g, key, mask);
    struct match_queue *q = queue_of(g, src);
    return (struct match_spot){q, match_queue_find_masked(q, key, mask)};
}

struct match_spot match_groups_find_receive(struct match_groups *g, int src, int tag)
{
    uint64_t key = match_key(src, tag), wild = match_wild_key(tag);
    struct match_queue *q = queue_of(g, src), *w = &g->queue[MATCH_GROUP_WILD];
    struct match_spot named = {q, match_queue_find_either(q, key, wild)};
    struct match_spot any = {w, match_queue_find_either(w, key, wild)};
    return order_at(any) < order_at(named) ? any : named;
}
