/*
 * ring.c - sending and receiving records (segment.h draws them).
 *
 * The sender writes into a window of the ring, from `next` to `stop`, which it knows
 * to be free; only when a record does not fit there does it look at the receiver's
 * head again, or begin another lap. A message normally touches one shared line.
 * Full rings: the sender sets box->blocked, and the receiver, when it gives space
 * back, wakes it. That handshake is the doorbell's (sleep.h): the sender's full
 * barrier is in bell_announce before it sleeps, the receiver's is a fence if the
 * sender asked for one.
 */
#include "transport/shm/shm.h"
#include "base/err.h"
#include "proc/proc.h"

#include <string.h>

/* Bytes sent so far, modulo 2^32. */
static inline uint32_t tail_of(const struct shm_ep *e) { return e->lap + (uint32_t)(e->next - e->ring); }

/* Fills the rest of the lap with a record that is skipped, so that the next one is in one piece. */
static void end_lap(struct shm_ep *e, uint32_t rest)
{
    /* release: as in publish */
    if (rest)
        atomic_store_explicit((_Atomic uint64_t *)e->next, shm_word(rest - SHM_RECORD_HEAD, AM_PAD) | e->from,
                              memory_order_release);
    e->lap += e->mask + 1;
    e->next = e->ring;
}

/* The record does not fit into the window: makes another one. False, with the box marked, when the ring is full. */
static TERN_COLD bool make_room(struct shm_ep *e, uint32_t need)
{
    uint32_t size = e->mask + 1, rest = size - (uint32_t)(e->next - e->ring);
    bool wraps = need > rest;
    /* acquire: pairs with the release in give_back; the lines below head are zeroed and ours */
    e->limit = atomic_load_explicit(&e->box->head, memory_order_acquire) + size;
    if (e->limit - tail_of(e) < need + (wraps ? rest : 0)) {
        e->full = !e->common;
        if (e->common) e->box->owner = (uint32_t)(e->from >> 32);
        e->box->fenced |= atomic_load_explicit(&shm_dom.segment->bell.helped, memory_order_relaxed);
        atomic_store_explicit(&e->box->blocked, 1, memory_order_relaxed);
        return false;
    }
    e->full = false;
    if (wraps) end_lap(e, rest);
    e->stop = e->next + min_size(e->limit - tail_of(e), size - (uint32_t)(e->next - e->ring));
    return true;
}

static inline bool fits(const struct shm_ep *e, uint32_t need) { return likely((size_t)(e->stop - e->next) >= need); }

/* The record at e->next is written but for its word. */
static inline void publish(struct shm_ep *e, uint64_t word, uint32_t need)
{
    /* release: the payload is written before the word says so; pairs with the acquire in poll_box */
    atomic_store_explicit((_Atomic uint64_t *)e->next, word | e->from, memory_order_release);
    e->next += need;
    bell_check(e->bell, e->fence);
}

/* Payload of at most a line's, without a call: the lengths that programs use most come first. */
static inline void copy_small(uint64_t *to, const void *p, size_t n)
{
    const char *from = p;
    char *end = (char *)to + n;
    if (likely(n == 8)) {
        memcpy(to, from, 8);
    } else if (n >= 16) {
        memcpy(to, from, 16);
        if (n > 32) memcpy(to + 2, from + 16, 16);
        memcpy(end - 16, from + n - 16, 16);
    } else if (n >= 4) {
        size_t half = n >= 8 ? 8 : 4;
        if (half == 8) memcpy(to, from, 8), memcpy(end - 8, from + n - 8, 8);
        else memcpy(to, from, 4), memcpy(end - 4, from + n - 4, 4);
    } else if (n) {
        ((char *)to)[0] = from[0];
        ((char *)to)[n / 2] = from[n / 2];
        end[-1] = from[n - 1];
    }
}

/* Messages of several lines, and those that need another window. */
static __attribute__((noinline)) int send_any(struct shm_ep *e, unsigned id, uint64_t h0, uint64_t h1, const void *p, size_t n)
{
    uint32_t need = shm_record_bytes(n);
    if (!fits(e, need) && !make_room(e, need)) return TERN_AGAIN;
    uint64_t *w = (uint64_t *)e->next;
    w[1] = h0;
    w[2] = h1;
    if (n) memcpy(w + 3, p, n);
    publish(e, shm_word(n, id), need);
    return 0;
}

int shm_am_short(struct tp_ep *ep, unsigned id, uint64_t h0, uint64_t h1, const void *p, size_t n)
{
    struct shm_ep *e = ep->priv;
    if (unlikely(n > CACHE_LINE - SHM_RECORD_HEAD || !fits(e, CACHE_LINE))) return send_any(e, id, h0, h1, p, n);
    uint64_t *w = (uint64_t *)e->next;
    w[1] = h0;
    w[2] = h1;
    copy_small(w + 3, p, n);
    publish(e, shm_word(n, id), CACHE_LINE);
    return 0;
}

int shm_am_bcopy(struct tp_ep *ep, unsigned id, uint64_t h0, uint64_t h1, tp_pack_fn pack, void *arg, size_t n)
{
    struct shm_ep *e = ep->priv;
    uint32_t need = shm_record_bytes(n);
    if (!fits(e, need) && !make_room(e, need)) return TERN_AGAIN;
    uint64_t *w = (uint64_t *)e->next;
    w[1] = h0;
    w[2] = h1;
    n = pack(arg, w + 3, n);
    publish(e, shm_word(n, id), shm_record_bytes(n));
    return 0;
}

int shm_am_common(struct tp_ep *ep, unsigned id, uint64_t h0, uint64_t h1, const void *p, size_t n)
{
    struct shm_ep *e = ep->priv;
    /* acquire and release of the lock pass `tail` and the limit of the ring from writer to writer */
    if (atomic_exchange_explicit(&e->box->lock, 1, memory_order_acquire)) return TERN_AGAIN;
    e->lap = e->box->tail & ~e->mask;
    e->next = e->stop = e->ring + (e->box->tail & e->mask); /* no window: others wrote since */
    int rc = send_any(e, id, h0, h1, p, n);
    e->box->tail = tail_of(e);
    atomic_store_explicit(&e->box->lock, 0, memory_order_release);
    return rc;
}

/* The sender waits for room: wake it. */
static TERN_COLD void unblock(struct shm_box *box)
{
    atomic_store_explicit(&box->blocked, 0, memory_order_relaxed);
    struct peer *p = peer_get(box->owner);
    if (p && p->ep.ops->nudge) p->ep.ops->nudge(&p->ep);
}

static void give_back(struct shm_rx *r)
{
    /* release: the line starts are zeroed before the sender may write there again */
    atomic_store_explicit(&r->box->head, r->head, memory_order_release);
    r->given = r->head;
    if (r->box->fenced) atomic_thread_fence(memory_order_seq_cst); /* pairs with bell_announce of the sender */
    if (unlikely(atomic_load_explicit(&r->box->blocked, memory_order_relaxed))) unblock(r->box);
}

static inline void zero_lines(char *at, uint32_t bytes)
{
    for (uint32_t i = 0; i < bytes; i += CACHE_LINE)
        atomic_store_explicit((_Atomic uint64_t *)(at + i), 0, memory_order_relaxed); /* ordered by give_back */
}

static TERN_COLD struct peer *owner_of(struct shm_rx *r, uint32_t from)
{
    struct peer *p = peer_of_sender(from);
    if (!p) proc_abort(1, err_words()); /* a message without a sender can neither be delivered nor dropped */
    if (r != &shm_dom.rx[shm_dom.segment->boxes]) r->peer = p; /* the common box has many */
    return p;
}

/* Delivers up to `budget` records of one box. */
static int poll_box(struct shm_rx *r, int budget)
{
    int n = 0;
    while (n < budget) {
        char *at = r->ring + (r->head & shm_dom.mask);
        /* acquire: pairs with the release in publish */
        uint64_t word = atomic_load_explicit((_Atomic uint64_t *)at, memory_order_acquire);
        if (!word) break;
        uint32_t bytes = shm_word_bytes(word), need = shm_record_bytes(bytes);
        unsigned id = shm_word_id(word);
        if (likely(id != AM_PAD)) {
            const uint64_t *w = (const uint64_t *)at;
            struct peer *from = likely(r->peer != NULL) ? r->peer : owner_of(r, shm_word_from(word));
            tp_handlers[id](from, w[1], w[2], w + 3, bytes);
            n++;
        }
        zero_lines(at, need);
        r->head += need;
        if (r->head - r->given > shm_dom.mask / 2) give_back(r);
    }
    if (n && r->given != r->head) give_back(r);
    return n;
}

/* Boxes to look at: those given out, and the common one once it is in use. */
static inline uint32_t boxes_in_use(const struct shm_segment *s)
{
    uint32_t given = atomic_load_explicit(&((struct shm_segment *)(uintptr_t)s)->given, memory_order_acquire);
    return likely(given <= s->boxes) ? given : s->boxes + 1;
}

int shm_progress(struct tp_dom *dom, int budget)
{
    (void)dom;
    uint32_t boxes = boxes_in_use(shm_dom.segment);
    int n = 0;
    for (uint32_t i = 0; i < boxes; i++) n += poll_box(&shm_dom.rx[i], budget);
    return n;
}

bool shm_idle(struct tp_dom *dom, bool want_room)
{
    (void)dom;
    uint32_t boxes = boxes_in_use(shm_dom.segment);
    for (uint32_t i = 0; i < boxes; i++) {
        struct shm_rx *r = &shm_dom.rx[i];
        _Atomic uint64_t *word = (_Atomic uint64_t *)(r->ring + (r->head & shm_dom.mask));
        if (atomic_load_explicit(word, memory_order_acquire)) return false;
    }
    if (!want_room) return true;
    list_each(l, next, &shm_dom.eps) {
        struct shm_ep *e = container_of(l, struct shm_ep, in_all);
        /* A common box may change hands at any time: its senders do not sleep while they want room. */
        if (e->common) return false;
        if (!e->full) continue;
        /* Room came after the mark was set: the receiver may not have seen the mark. */
        if (atomic_load_explicit(&e->box->head, memory_order_acquire) + e->mask + 1 != e->limit) return false;
        /* The receiver, answering an earlier mark, may wipe this one out: it clears the mark, then looks whether we
         * sleep; we announced the sleep, and look at the mark. One of the two sees the other. */
        if (!atomic_exchange_explicit(&e->box->blocked, 1, memory_order_relaxed)) return false;
    }
    return true;
}
