/*
 * writers.c - several threads of this process write into one ring, without a lock (tp_ops.share).
 *
 *     reserve     a thread takes the place of its record by moving `reserved` on with compare-and-swap, as far as
 *                 `allowed` lets it: up to there the ring is free
 *     write       header words and payload, which no other thread touches
 *     publish     the word of the record, by the store that a single writer uses too
 *
 *     |  free  | published | reserved | published | reserved |  free  |
 *              ^ head, which the reader moves                ^ reserved    ^ allowed = head last seen + ring
 *
 * The reader stops at the first record that is not published, so records come in the order of their places, and each
 * thread's in the order that it sent them. A thread that is preempted between reserving and publishing holds up the
 * reader of this ring, and no writer. A thread that ends there, as by a jump out of a signal handler, stops the ring for
 * good.
 *
 * Both counters are of bytes since the beginning, in 64 bits: none comes again, so a compare-and-swap that succeeds saw
 * the present. `allowed` only rises. A thread that finds too little reads the receiver's head, and raises it.
 *
 * The payload of the record that lay at a place before is ordered before the next one's: its word is published
 * (release), read (acquire) and zeroed by the receiver, who gives the place back by `head` (release); the thread that
 * raises `allowed` has read that (acquire) and hands it on (release) to those who reserve (acquire).
 *
 * The sender does not give back the pages of such a ring (trim.c), as it cannot know that none of its threads writes.
 */
#include "base/err.h"
#include "base/sanitizer.h"
#include "transport/shm/copy_line.h"
#include "transport/shm/shm.h"

static uint64_t load(const _Atomic uint64_t *counter, memory_order order) { return atomic_load_explicit(counter, order); }

static char *place(const struct shm_ep *e, uint64_t at) { return e->ring + (at & e->mask); }

static uint32_t rest_of_lap(const struct shm_ep *e, uint64_t at) { return e->mask + 1 - (uint32_t)(at & e->mask); }

/* The record at `at` is written but for its word. */
static inline void publish(struct shm_ep *e, char *at, uint64_t word)
{
    sanitizer_released(e);
    /* release: the payload is written before the word says so; pairs with the acquire in poll_box */
    sanitizer_store_release((_Atomic uint64_t *)at, word | e->from);
}

/* A record that is skipped, of so many bytes with its head. */
static void pad(struct shm_ep *e, uint64_t at, uint32_t bytes)
{
    ((uint64_t *)place(e, at))[1] = SHM_NOTE_NONE;
    publish(e, place(e, at), shm_word(bytes - SHM_RECORD_HEAD, AM_PAD));
}

/* Raises `allowed` by what the receiver has given back. False: nothing, and no other thread has raised it either. */
static bool look_at_head(struct shm_ep *e)
{
    uint64_t allowed = load(&e->allowed, memory_order_acquire);
    /* acquire: pairs with the release in shm_give_back. Read after `allowed`, so it is not before the head that this
     * came of; and at most a ring's length behind that, or the exchange fails */
    uint32_t limit = atomic_load_explicit(&e->box->head, memory_order_acquire) + e->mask + 1;
    uint64_t now = allowed + (uint32_t)(limit - (uint32_t)allowed);
    sanitizer_acquired(e);
    if (now == allowed) return load(&e->allowed, memory_order_relaxed) != allowed;
    /* release: pairs with the acquire in reserve */
    atomic_compare_exchange_strong_explicit(&e->allowed, &allowed, now, memory_order_release, memory_order_relaxed);
    return true;
}

/* Takes `need` bytes in one piece, and fills the rest of a lap that has no room for them. False, with the box marked: the
 * ring is full. */
static bool reserve(struct shm_ep *e, uint32_t need, uint64_t *at)
{
    for (uint64_t t = load(&e->reserved, memory_order_relaxed);;) {
        uint32_t rest = rest_of_lap(e, t), skip = need > rest ? rest : 0;
        /* acquire: pairs with the release in look_at_head. `reserved` was less than what this is compared with */
        if ((int64_t)(load(&e->allowed, memory_order_acquire) - t) < (int64_t)need + skip) {
            if (look_at_head(e)) {
                t = load(&e->reserved, memory_order_relaxed);
                continue;
            }
            shm_mark_full(e, true);
            return false;
        }
        if (!atomic_compare_exchange_weak_explicit(&e->reserved, &t, t + skip + need, memory_order_relaxed, memory_order_relaxed))
            continue;
        if (skip) pad(e, t, skip);
        *at = t + skip;
        return true;
    }
}

/* Of any length. */
static __attribute__((noinline)) int send_any(struct shm_ep *e, unsigned id, uint64_t h0, uint64_t h1, const void *p, size_t n)
{
    uint64_t at;
    if (!reserve(e, shm_record_bytes(n), &at)) return TERN_AGAIN;
    uint64_t *w = (uint64_t *)place(e, at);
    w[1] = h0;
    w[2] = h1;
    if (n) memcpy(w + 3, p, n);
    publish(e, (char *)w, shm_word(n, id));
    bell_check(e->bell, e->fence);
    return 0;
}

int shm_am_shared(struct tp_ep *ep, unsigned id, uint64_t h0, uint64_t h1, const void *p, size_t n)
{
    struct shm_ep *e = ep->priv;
    if (unlikely(n > CACHE_LINE - SHM_RECORD_HEAD)) return send_any(e, id, h0, h1, p, n);
    uint64_t t = load(&e->reserved, memory_order_relaxed);
    do { /* a line always fits into its lap; the orders are those of reserve */
        if (unlikely((int64_t)(load(&e->allowed, memory_order_acquire) - t) < CACHE_LINE)) return send_any(e, id, h0, h1, p, n);
    } while (unlikely(!atomic_compare_exchange_weak_explicit(&e->reserved, &t, t + CACHE_LINE, memory_order_relaxed,
                                                             memory_order_relaxed)));
    uint64_t *w = (uint64_t *)place(e, t);
    w[1] = h0;
    w[2] = h1;
    copy_line(w + 3, p, n);
    publish(e, (char *)w, shm_word(n, id));
    bell_check(e->bell, e->fence);
    return 0;
}

/* What pack leaves of the place is skipped. */
int shm_am_bcopy_shared(struct tp_ep *ep, unsigned id, uint64_t h0, uint64_t h1, tp_pack_fn pack, void *arg, size_t n)
{
    struct shm_ep *e = ep->priv;
    uint32_t need = shm_record_bytes(n), used;
    uint64_t at;
    if (!reserve(e, need, &at)) return TERN_AGAIN;
    uint64_t *w = (uint64_t *)place(e, at);
    w[1] = h0;
    w[2] = h1;
    n = pack(arg, w + 3, n);
    used = shm_record_bytes(n);
    if (used < need) pad(e, at + used, need - used);
    publish(e, (char *)w, shm_word(n, id));
    bell_check(e->bell, e->fence);
    return 0;
}

void shm_share_ep(struct shm_ep *e)
{
    uint32_t tail = e->lap + (uint32_t)(e->next - e->ring), room = e->limit - tail;
    if (e->common) return; /* it has a lock, which other processes take as well */
    atomic_store_explicit(&e->reserved, tail, memory_order_relaxed);
    atomic_store_explicit(&e->allowed, (uint64_t)tail + room, memory_order_relaxed);
}
