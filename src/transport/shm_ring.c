/*
 * shm_ring.c - sending and receiving records (shm_segment.h draws them).
 *
 * The sender knows the receiver's head only as it last looked (limit); it looks
 * again when that is not enough, so a message normally touches one shared line.
 * Full rings: the sender sets box->blocked, and the receiver, when it gives space
 * back, wakes it. That handshake is the doorbell's (sleep.h): the sender's full
 * barrier is in bell_announce before it sleeps, the receiver's is a fence if the
 * sender asked for one.
 */
#include "transport/shm.h"
#include "base/err.h"
#include "proc/proc.h"

#include <string.h>

/* The ring looks full with the head last seen. Looks again; marks the box when it is so. */
static TERN_COLD bool look_again(struct shm_ep *e, uint32_t need)
{
    /* acquire: pairs with the release in give_back; the lines below head are zeroed and ours */
    e->limit = atomic_load_explicit(&e->box->head, memory_order_acquire) + e->mask + 1;
    if (e->limit - e->tail >= need) {
        e->full = false;
        return true;
    }
    if (!e->common) e->full = true;
    if (e->common) e->box->owner = e->from;
    atomic_store_explicit(&e->box->blocked, 1, memory_order_relaxed);
    return false;
}

/* Fills the rest of the lap with a record that is skipped, so that the next one is in one piece. */
static TERN_COLD bool pad_lap(struct shm_ep *e, uint32_t need)
{
    uint32_t rest = e->mask + 1 - (e->tail & e->mask);
    if (e->limit - e->tail < rest + need && !look_again(e, rest + need)) return false;
    _Atomic uint64_t *word = (_Atomic uint64_t *)(e->ring + (e->tail & e->mask));
    /* release: as in publish */
    atomic_store_explicit(word, shm_word(rest - SHM_RECORD_HEAD, AM_PAD, e->from), memory_order_release);
    e->tail += rest;
    return true;
}

/* Where a record of `need` bytes may be written; NULL when there is no room. */
static inline char *room(struct shm_ep *e, uint32_t need)
{
    if (unlikely(e->limit - e->tail < need) && !look_again(e, need)) return NULL;
    if (unlikely((e->tail & e->mask) + need > e->mask + 1) && !pad_lap(e, need)) return NULL;
    return e->ring + (e->tail & e->mask);
}

static inline void publish(struct shm_ep *e, char *at, uint64_t word, uint32_t need)
{
    /* release: the payload is written before the word says so; pairs with the acquire in poll_box */
    atomic_store_explicit((_Atomic uint64_t *)at, word, memory_order_release);
    e->tail += need;
}

int shm_am_short(struct tp_ep *ep, unsigned id, uint64_t h0, uint64_t h1, const void *p, size_t n)
{
    struct shm_ep *e = ep->priv;
    uint32_t need = shm_record_bytes(n);
    char *at = room(e, need);
    if (unlikely(!at)) return -1; /* TERN_AGAIN */
    uint64_t *w = (uint64_t *)at;
    w[1] = h0;
    w[2] = h1;
    if (n == 8) memcpy(w + 3, p, 8);
    else memcpy(w + 3, p, n);
    publish(e, at, shm_word(n, id, e->from), need);
    bell_check(e->bell, e->fence);
    return 0;
}

int shm_am_bcopy(struct tp_ep *ep, unsigned id, uint64_t h0, uint64_t h1, tp_pack_fn pack, void *arg, size_t n)
{
    struct shm_ep *e = ep->priv;
    uint32_t need = shm_record_bytes(n);
    char *at = room(e, need);
    if (unlikely(!at)) return -1; /* TERN_AGAIN */
    uint64_t *w = (uint64_t *)at;
    w[1] = h0;
    w[2] = h1;
    n = pack(arg, w + 3, n);
    publish(e, at, shm_word(n, id, e->from), shm_record_bytes(n));
    bell_check(e->bell, e->fence);
    return 0;
}

int shm_am_common(struct tp_ep *ep, unsigned id, uint64_t h0, uint64_t h1, const void *p, size_t n)
{
    struct shm_ep *e = ep->priv;
    /* acquire and release of the lock pass `tail` and the limit of the ring from writer to writer */
    if (atomic_exchange_explicit(&e->box->lock, 1, memory_order_acquire)) return -1; /* TERN_AGAIN */
    e->tail = e->box->tail;
    e->limit = atomic_load_explicit(&e->box->head, memory_order_acquire) + e->mask + 1;
    int rc = shm_am_short(ep, id, h0, h1, p, n);
    e->box->tail = e->tail;
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
