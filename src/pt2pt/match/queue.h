/*
 * queue.h - one queue of match entries in arrival order, laid out so that
 * a search reads nothing but envelopes: eight of them to a cache line, none of
 * what they stand for.
 *
 *   one block of memory, `cap` entries (a multiple of 8 when on the heap):
 *
 *       keys   | src,tag | src,tag | hole    | src,tag | hole ...   8 bytes each, the only thing searched
 *       whats  | body    | body    | NULL    | body    | NULL ...   read at a hit
 *       order  | 17      | 23      | 24      | 42      |     ...    rising; a third column of deep queues
 * (groups.h) ^head                         ^tail - 1
 *
 * Invariants:
 *   - every slot that holds no live entry has the key MATCH_HOLE and a NULL what,
 *     outside head..tail too, so that a search may read whole cache lines;
 *   - keys[head] and keys[tail - 1] are live; an empty queue has head == tail == 0;
 *   - at most half of head..tail (and 16 more) are holes: a removal that breaks
 *     this closes the gaps, which therefore costs a constant per removal.
 * What the entries stand for is never moved (LHS-9).
 *
 * Threads: none of its own; the lane's lock protects it.
 */
#ifndef TERN_PT2PT_MATCH_QUEUE_H
#define TERN_PT2PT_MATCH_QUEUE_H

#include "pt2pt/match/key.h"

/* Entries that lie in struct match itself: depth 0-2 and the message looked for allocate nothing and touch two lines.
 */
#define MATCH_INLINE 4

/* Entries compared one by one before the vector code is called: the first ones are what FIFO traffic wants, and a call
 * costs as much as four compares (bench/match_bench, queue_FORM_n0 to n8). */
#define MATCH_SCALAR 4

struct match_queue {
    uint64_t *keys; /* start of the block above */
    uint32_t head, tail;
    uint32_t live;
    uint32_t cap : 25;
    uint32_t ordered : 1; /* there is the third column */
    uint32_t grouped : 1; /* of a side's own queue: its groups are in use */
    uint32_t judged : 5;  /* of a side's own queue: at how many lengths it was asked whether groups pay */
};
static_assert(sizeof(struct match_queue) == 24, "two queues and two pointers fill one cache line");

#define MATCH_CAP_MAX (UINT32_C(1) << 24)
#define MATCH_NONE UINT32_MAX

static inline void **match_queue_whats(const struct match_queue *q) { return (void **)(q->keys + q->cap); }
static inline uint64_t *match_queue_order(const struct match_queue *q) { return q->keys + 2 * (size_t)q->cap; }

/* An empty queue over `home`, 2 * MATCH_INLINE words that it uses until it outgrows them. */
void match_queue_init(struct match_queue *, uint64_t *home);

/* An empty queue with order numbers, which allocates its block with the first entry. */
void match_queue_init_ordered(struct match_queue *);

/* Gives the memory back; whatever the queue held is forgotten. It has no block then, as after
 * match_queue_init_ordered. */
void match_queue_fini(struct match_queue *);

/* Moves the entries to a block with three columns, the third not filled in, without holes and with room for one more.
 * False when memory is out; the queue is as before then. */
bool match_queue_widen(struct match_queue *);

/* Forgets all entries; the block is kept. */
void match_queue_clear(struct match_queue *);

/* The entry that stands for `what`, wherever it is. MATCH_NONE if none. */
uint32_t match_queue_find_what(const struct match_queue *, const void *what);

/* The live entry of this order number, which is there. */
uint32_t match_queue_find_order(const struct match_queue *, uint64_t order);

/* Out of line halves of the four below; not called from elsewhere. */
bool match_queue_make_room(struct match_queue *);
void match_queue_close_gaps(struct match_queue *);
uint32_t match_queue_far_masked(const struct match_queue *, uint32_t from, uint64_t key, uint64_t mask);
uint32_t match_queue_far_either(const struct match_queue *, uint32_t from, uint64_t key, uint64_t wild);

/* Appends an entry. False when memory is out; the queue is as before then. */
static inline bool match_queue_push(struct match_queue *q, uint64_t key, void *what)
{
    if (unlikely(q->tail == q->cap) && !match_queue_make_room(q)) return false;
    q->keys[q->tail] = key;
    match_queue_whats(q)[q->tail] = what;
    q->tail++;
    q->live++;
    return true;
}

/* Holes beyond half of the entries that are tolerated: in short queues closing gaps costs more than passing them. */
#define MATCH_HOLES_SPARED 16

/* Removes the live entry `at` and returns what it stood for. Indexes found earlier are void afterwards. */
static inline void *match_queue_remove(struct match_queue *q, uint32_t at)
{
    void *what = match_queue_whats(q)[at];
    q->keys[at] = MATCH_HOLE;
    match_queue_whats(q)[at] = NULL;
    if (--q->live == 0) {
        q->head = q->tail = 0;
        return what;
    }
    while (q->keys[q->head] == MATCH_HOLE) q->head++;
    while (q->keys[q->tail - 1] == MATCH_HOLE) q->tail--;
    if (unlikely(q->tail - q->head > 2 * q->live + MATCH_HOLES_SPARED)) match_queue_close_gaps(q);
    return what;
}

/* The oldest entry whose key, under `mask`, is `key`: a wildcard leaves its half out of the mask. MATCH_NONE if none.
 */
static inline uint32_t match_queue_find_masked(const struct match_queue *q, uint64_t key, uint64_t mask)
{
    uint32_t near = q->tail - q->head < MATCH_SCALAR ? q->tail : q->head + MATCH_SCALAR;
    for (uint32_t i = q->head; i < near; i++)
        if (match_fits_masked(q->keys[i], key, mask)) return i;
    return near == q->tail ? MATCH_NONE : match_queue_far_masked(q, near, key, mask);
}

/* The oldest entry each half of whose key is that of `key` or that of `wild`. MATCH_NONE if none. */
static inline uint32_t match_queue_find_either(const struct match_queue *q, uint64_t key, uint64_t wild)
{
    uint32_t near = q->tail - q->head < MATCH_SCALAR ? q->tail : q->head + MATCH_SCALAR;
    for (uint32_t i = q->head; i < near; i++)
        if (match_fits_either(q->keys[i], key, wild)) return i;
    return near == q->tail ? MATCH_NONE : match_queue_far_either(q, near, key, wild);
}

#endif
