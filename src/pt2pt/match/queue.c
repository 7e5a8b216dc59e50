/* queue.c - keeping a queue of match entries dense, and searching it. */
#include "pt2pt/match/queue.h"
#include "pt2pt/match/scan.h"

#include <stdlib.h>
#include <string.h>

static void make_holes(const struct match_queue *q, uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i < to; i++) q->keys[i] = MATCH_HOLE;
    memset(match_queue_whats(q) + from, 0, (to - from) * sizeof(void *));
}

void match_queue_init(struct match_queue *q, uint64_t *home)
{
    *q = (struct match_queue){.keys = home, .cap = MATCH_INLINE};
    make_holes(q, 0, MATCH_INLINE);
}

void match_queue_init_ordered(struct match_queue *q) { *q = (struct match_queue){.ordered = 1}; }

void match_queue_fini(struct match_queue *q)
{
    if (q->cap > MATCH_INLINE) free(q->keys);
    *q = (struct match_queue){.ordered = q->ordered};
}

void match_queue_clear(struct match_queue *q)
{
    if (q->tail) make_holes(q, q->head, q->tail);
    q->head = q->tail = q->live = 0;
}

/* Copies the live entries of `from` to the front of `to`, which may be the same block; returns how many. */
static uint32_t copy_live(const struct match_queue *to, const struct match_queue *from)
{
    void **what_to = match_queue_whats(to), **what_from = match_queue_whats(from);
    uint32_t n = 0;
    for (uint32_t i = from->head; i < from->tail; i++) {
        if (from->keys[i] == MATCH_HOLE) continue;
        to->keys[n] = from->keys[i];
        what_to[n] = what_from[i];
        if (from->ordered) match_queue_order(to)[n] = match_queue_order(from)[i];
        n++;
    }
    return n;
}

void match_queue_close_gaps(struct match_queue *q)
{
    uint32_t n = copy_live(q, q);
    make_holes(q, n, q->tail);
    q->head = 0;
    q->tail = n;
}

static bool resize(struct match_queue *q, uint32_t cap, bool ordered)
{
    struct match_queue new = *q;
    new.cap = cap;
    new.ordered = ordered;
    new.keys = cap <= MATCH_CAP_MAX ? aligned_alloc(CACHE_LINE, (2 + (size_t)ordered) * cap * sizeof *new.keys) : NULL;
    if (!new.keys) return false;
    new.head = 0;
    new.tail = copy_live(&new, q);
    make_holes(&new, new.tail, cap);
    if (q->cap > MATCH_INLINE) free(q->keys);
    *q = new;
    return true;
}

bool match_queue_widen(struct match_queue *q) { return resize(q, q->live > q->cap / 2 ? q->cap * 2 : q->cap, true); }

/* A full block more than half of which is gaps or was passed by the head is used again: each entry moved pays for a
 * push that needed no room. */
bool match_queue_make_room(struct match_queue *q)
{
    if (q->live > q->cap / 2 || !q->cap) return resize(q, q->cap < 8 ? 8 : q->cap * 2, q->ordered);
    match_queue_close_gaps(q);
    return true;
}

uint32_t match_queue_far_masked(const struct match_queue *q, uint32_t from, uint64_t key, uint64_t mask)
{
    uint32_t i = match_scan->masked(q->keys, from, q->tail, key, mask);
    return i < q->tail ? i : MATCH_NONE;
}

uint32_t match_queue_far_either(const struct match_queue *q, uint32_t from, uint64_t key, uint64_t wild)
{
    uint32_t i = match_scan->either(q->keys, from, q->tail, key, wild);
    return i < q->tail ? i : MATCH_NONE;
}

uint32_t match_queue_find_what(const struct match_queue *q, const void *what)
{
    const void *const *whats = (const void *const *)match_queue_whats(q);
    for (uint32_t i = q->head; i < q->tail; i++)
        if (whats[i] == what) return i;
    return MATCH_NONE;
}

/* Numbers rise by one from entry to entry where no gap was closed, so where `order` would be without any is the first
 * guess and the lowest place it can be at. */
uint32_t match_queue_find_order(const struct match_queue *q, uint64_t order)
{
    const uint64_t *orders = match_queue_order(q);
    uint64_t back = orders[q->tail - 1] - order;
    uint32_t low = back < q->tail - q->head ? q->tail - 1 - (uint32_t)back : q->head;
    uint32_t n = q->tail - low;
    if (orders[low] == order) return low;
    while (n > 1) { /* without a branch on what is found, which could not be predicted */
        uint32_t half = n / 2;
        low += half & -(uint32_t)(orders[low + half - 1] < order);
        n -= half;
    }
    return low;
}
