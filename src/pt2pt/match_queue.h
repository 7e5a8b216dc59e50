/*
 * match_queue.h - one queue of match entries in arrival order, laid out so that
 * a search reads nothing but envelopes: eight of them to a cache line, none of
 * what they stand for.
 *
 *   one block of memory, `cap` entries (a multiple of 8 when on the heap):
 *
 *       keys   | src,tag | src,tag | hole    | src,tag | hole ...   8 bytes each, the only thing searched
 *       whats  | body    | body    | NULL    | body    | NULL ...   read at a hit
 *       order  | 17      | 23      | 24      | 42      |     ...    rising; a third column of deep queues
 * (match_groups.h) ^head                         ^tail - 1
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

#include "pt2pt/match_key.h"

/* Entries that lie in struct match itself: depth 0-2 and the message looked for allocate nothing and touch two lines.
 */
#define MATCH_INLINE 4

struct match_queue {
    uint64_t *keys; /* start of the block above */
    uint32_t head, tail;
    uint32_t live;
    uint32_t cap : 28;
    uint32_t columns : 2; /* 2, or 3 with the order numbers */
    uint32_t grouped : 1; /* of a side's own queue: its groups are in use */
};
static_assert(sizeof(struct match_queue) == 24, "two queues and two pointers fill one cache line");

#define MATCH_CAP_MAX (UINT32_C(1) << 27)
#define MATCH_NONE UINT32_MAX

static inline void **match_queue_whats(const struct match_queue *q) { return (void **)(q->keys + q->cap); }
static inline uint64_t *match_queue_order(const struct match_queue *q) { return q->keys + 2 * (size_t)q->cap; }

/* An empty queue over `home`, columns * MATCH_INLINE words that it uses until it outgrows them; home may be NULL. */
void match_queue_init(struct match_queue *, uint64_t *home, uint32_t columns);

/* Gives the memory back; whatever the queue held is forgotten. The queue is then as after init without a home. */
void match_queue_fini(struct match_queue *);

/* Appends an entry. False when memory is out; the queue is as before then. */
bool match_queue_push(struct match_queue *, uint64_t key, void *what);

/* Moves the entries to a block with three columns, the third not filled in, without holes and with room for one more.
 * False as above. */
bool match_queue_widen(struct match_queue *);

/* Forgets all entries; the block is kept. */
void match_queue_clear(struct match_queue *);

/* Removes the live entry `at` and returns what it stood for. Indexes found earlier are void afterwards. */
void *match_queue_remove(struct match_queue *, uint32_t at);

/* The oldest entry whose key, under `mask`, is `key`: a wildcard leaves its half out of the mask. MATCH_NONE if none.
 */
uint32_t match_queue_find_masked(const struct match_queue *, uint64_t key, uint64_t mask);

/* The oldest entry each half of whose key is that of `key` or that of `wild`. MATCH_NONE if none. */
uint32_t match_queue_find_either(const struct match_queue *, uint64_t key, uint64_t wild);

/* The entry that stands for `what`, wherever it is. MATCH_NONE if none. */
uint32_t match_queue_find_what(const struct match_queue *, const void *what);

/* The live entry of this order number, which is there. */
uint32_t match_queue_find_order(const struct match_queue *, uint64_t order);

#endif
