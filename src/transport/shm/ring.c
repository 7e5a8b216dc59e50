/*
 * ring.c - sending and receiving records (segment.h draws them).
 *
 * The sender writes between `next` and `stop` of the ring, which it knows
 * to be free; only when a record does not fit there does it look at the receiver's
 * head again, or begin another lap. A message normally touches one shared line.
 * Full rings: the sender sets box->blocked, and the receiver, when it gives space
 * back, wakes it. That handshake is the doorbell's (sleep.h): the sender's full
 * barrier is in bell_announce before it sleeps, the receiver's is a fence if the
 * sender asked for one.
 *
 * While records of a ring are kept (kept.c), `given` stays behind them.
 */
#include "transport/shm/shm.h"
#include "base/err.h"
#include "proc/jobs.h"
#include "transport/shm/copy_line.h"

#include <string.h>

/* Bytes sent so far, modulo 2^32. */
static inline uint32_t tail_of(const struct shm_ep *e) { return e->lap + (uint32_t)(e->next - e->ring); }

/* Fills the rest of the lap with a record that is skipped, so that the next one is in one piece. */
static void end_lap(struct shm_ep *e, uint32_t rest)
{
    /* release: as in publish */
    if (rest) {
        ((uint64_t *)e->next)[1] = SHM_NOTE_NONE;
        atomic_store_explicit((_Atomic uint64_t *)e->next, shm_word(rest - SHM_RECORD_HEAD, AM_PAD) | e->from,
                              memory_order_release);
    }
    e->lap += e->mask + 1;
    e->laps++;
    e->next = e->ring;
}

/* Bytes; one writer. */
uint64_t shm_sent(struct tp_ep *ep)
{
    const struct shm_ep *e = ep->priv;
    return (uint64_t)e->laps * (e->mask + 1u) + (uint64_t)(e->next - e->ring);
}

/* The reader gives its head back behind the last handler of a turn. Threads write elsewhere, and others write to a common ring. */
uint64_t shm_handled(struct tp_ep *ep)
{
    const struct shm_ep *e = ep->priv;
    if (e->common || shm_dom.threads) return UINT64_MAX;
    /* acquire: what the handlers have done there is seen */
    return shm_sent(ep) - (tail_of(e) - atomic_load_explicit(&e->box->head, memory_order_acquire));
}

void shm_mark_full(struct shm_ep *e, bool full)
{
    atomic_store_explicit(&e->full, full, memory_order_relaxed);
    if (atomic_load_explicit(&shm_dom.segment->bell.helped, memory_order_relaxed))
        atomic_store_explicit(&e->box->fenced, 1, memory_order_relaxed);
    atomic_store_explicit(&e->box->blocked, 1, memory_order_relaxed);
}

/* The mark of a full ring: the receiver wakes this process when it gives its head back. See has_room. */
bool shm_await_handled(struct tp_ep *ep)
{
    struct shm_ep *e = ep->priv;
    if (atomic_load_explicit(&shm_dom.segment->bell.helped, memory_order_relaxed))
        atomic_store_explicit(&e->box->fenced, 1, memory_order_relaxed);
    return atomic_exchange_explicit(&e->box->blocked, 1, memory_order_relaxed);
}

/* The record does not fit before `stop`: moves that, or begins another lap. False, with the box marked, when the ring is full. */
static TERN_COLD bool make_room(struct shm_ep *e, uint32_t need)
{
    uint32_t size = e->mask + 1, rest = size - (uint32_t)(e->next - e->ring);
    bool wraps = need > rest;
    /* acquire: pairs with the release in give_back; the lines below head are zeroed and ours */
    e->limit = atomic_load_explicit(&e->box->head, memory_order_acquire) + size;
    if (e->limit - tail_of(e) < need + (wraps ? rest : 0)) {
        if (e->common) e->box->blocker = (uint32_t)(e->from >> 32);
        shm_mark_full(e, !e->common);
        return false;
    }
    atomic_store_explicit(&e->full, false, memory_order_relaxed);
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

/* Messages of several lines, and those that do not fit before `stop`. */
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
    copy_line(w + 3, p, n);
    publish(e, shm_word(n, id), CACHE_LINE);
    return 0;
}

int shm_am_bcopy(struct tp_ep *ep, unsigned id, uint64_t h0, uint64_t h1, tp_pack_fn pack, void *arg, size_t n)
{
    struct shm_ep *e = ep->priv;
    if (unlikely(shm_dom.threads)) return shm_am_bcopy_shared(ep, id, h0, h1, pack, arg, n);
    uint32_t need = shm_record_bytes(n);
    if (!fits(e, need) && !make_room(e, need)) return TERN_AGAIN;
    uint64_t *w = (uint64_t *)e->next;
    w[1] = h0;
    w[2] = h1;
    n = pack(arg, w + 3, n);
    publish(e, shm_word(n, id), shm_record_bytes(n));
    return 0;
}

/* acquire and release of the lock pass `tail` and the limit of the ring from writer to writer */
bool shm_common_lock(struct shm_ep *e)
{
    uint32_t nobody = 0, own = (uint32_t)(e->from >> 32) + 1;
    return atomic_compare_exchange_strong_explicit(&e->box->lock, &nobody, own, memory_order_acquire, memory_order_relaxed);
}

void shm_common_unlock(struct shm_ep *e) { atomic_store_explicit(&e->box->lock, 0, memory_order_release); }

int shm_am_common(struct tp_ep *ep, unsigned id, uint64_t h0, uint64_t h1, const void *p, size_t n)
{
    struct shm_ep *e = ep->priv;
    if (unlikely(!atomic_load_explicit(&e->admitted, memory_order_relaxed)) && !shm_sender_admitted(e)) return TERN_AGAIN;
    if (!shm_common_lock(e)) return TERN_AGAIN;
    e->lap = e->box->tail & ~e->mask;
    e->next = e->stop = e->ring + (e->box->tail & e->mask); /* nothing is known to be free: others wrote since */
    int rc = send_any(e, id, h0, h1, p, n);
    e->box->tail = tail_of(e);
    shm_common_unlock(e);
    return rc;
}

static inline bool is_common(const struct shm_rx *r) { return r == &shm_dom.rx[shm_dom.boxes]; }

int shm_leave(struct tp_ep *ep)
{
    const struct shm_ep *e = ep->priv;
    return shm_way_of(e)(ep, AM_PAD, SHM_NOTE_LEAVE, 0, NULL, 0);
}

/* The sender waits for room: wake it. */
static TERN_COLD void unblock(const struct shm_rx *r)
{
    atomic_store_explicit(&r->box->blocked, 0, memory_order_relaxed);
    const struct peer *from = is_common(r) ? shm_sender_peer(r->box->blocker) : r->peer;
    struct peer *p = from ? peer_get(from->index) : NULL;
    if (p && p->ep.ops->nudge) p->ep.ops->nudge(&p->ep, true);
}

void shm_give_back(struct shm_rx *r, uint32_t head)
{
    /* release: the line starts are zeroed before the sender may write there again */
    atomic_store_explicit(&r->box->head, head, memory_order_release);
    r->given = head;
    if (atomic_load_explicit(&r->box->fenced, memory_order_relaxed))
        atomic_thread_fence(memory_order_seq_cst); /* pairs with bell_announce of the sender */
    if (unlikely(atomic_load_explicit(&r->box->blocked, memory_order_relaxed))) unblock(r);
}

static void give_back(struct shm_rx *r) { shm_give_back(r, r->head); }

static inline void zero_lines(char *at, uint32_t bytes)
{
    for (uint32_t i = 0; i < bytes; i += CACHE_LINE)
        atomic_store_explicit((_Atomic uint64_t *)(at + i), 0, memory_order_relaxed); /* ordered by give_back */
}

void shm_zero_record(const struct shm_rx *r, uint32_t head, uint32_t bytes)
{
    zero_lines(r->ring + (head & shm_dom.mask), bytes);
}

/* Who wrote a record; NULL: the box is not to be read now, or (common ring) the record is nobody's. */
static TERN_COLD struct peer *sender_of(struct shm_rx *r, uint64_t word)
{
    uint32_t news = jobs_news();
    if (is_common(r)) return shm_sender_peer(shm_word_sender(word));
    if (r->unknown == news) return NULL;
    r->peer = shm_sender_peer((uint32_t)(r - shm_dom.rx));
    r->unknown = r->peer ? 0 : news;
    return r->peer;
}

static inline void consume(struct shm_rx *r, char *at, uint32_t need)
{
    if (unlikely(r->keeps)) {
        shm_kept_consume(r, need);
        return;
    }
    zero_lines(at, need);
    r->head += need;
    if (r->head - r->given > shm_dom.mask / 2) give_back(r);
}

/* A record for the transport itself. False: the ring is free, and may be another sender's already. */
static TERN_COLD bool take_note(struct shm_rx *r, char *at, uint64_t word)
{
    bool leaves = ((const uint64_t *)at)[1] == SHM_NOTE_LEAVE;
    uint32_t entry = is_common(r) ? shm_word_sender(word) : (uint32_t)(r - shm_dom.rx);
    consume(r, at, shm_record_bytes(shm_word_bytes(word)));
    if (leaves) shm_sender_said_last(entry);
    if (leaves && (!is_common(r) || entry >= shm_dom.boxes)) shm_sender_free(entry);
    return !leaves || is_common(r);
}

/* Is there a record to read? acquire: pairs with the release in publish */
static inline bool has_record(const struct shm_rx *r, uint32_t mask)
{
    return atomic_load_explicit((_Atomic uint64_t *)(r->ring + (r->head & mask)), memory_order_acquire);
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
        if (unlikely(id == AM_PAD)) {
            if (take_note(r, at, word)) continue;
            return n;
        }
        const uint64_t *w = (const uint64_t *)at;
        struct peer *from = likely(r->peer != NULL) ? r->peer : sender_of(r, word);
        if (likely(from != NULL)) tp_handlers[id](from, w[1], w[2], w + 3, bytes);
        else if (!is_common(r)) break;
        n++;
        consume(r, at, need);
    }
    if (n && r->given != r->head && likely(!r->keeps)) give_back(r);
    return n;
}

/* The lock of the common ring, if a sender has it that has died: all that was published in the ring is taken, then the
 * ring is empty but for what the dead one has begun, and the next record goes to where this process reads. */
static TERN_COLD void take_lock_back(struct shm_rx *r, uint32_t lock)
{
    if (!shm_sender_is_dead(lock - 1)) return;
    if (has_record(r, shm_dom.mask)) return; /* the dead one's last record is taken first, in the next turn */
    zero_lines(r->ring, shm_dom.mask + 1);
    r->box->tail = r->head;
    give_back(r);
    atomic_store_explicit(&r->box->lock, 0, memory_order_release); /* pairs with the acquire in shm_common_lock */
}

static inline void look_at_lock(struct shm_rx *r)
{
    uint32_t lock = atomic_load_explicit(&r->box->lock, memory_order_relaxed);
    if (unlikely(lock)) take_lock_back(r, lock);
}

/* Has a sender of another job come to the common ring, or has a job become known? */
static inline bool somebody_asks(void)
{
    return atomic_load_explicit(&shm_dom.segment->asked, memory_order_relaxed) != shm_dom.asked ||
           jobs_news() != shm_dom.news;
}

static TERN_COLD uint32_t more_in_use(uint32_t given)
{
    shm_boxes_more(given);
    if (given <= shm_dom.boxes) return given;
    if (unlikely(somebody_asks())) shm_senders_admit();
    return shm_dom.boxes + 1;
}

static inline uint32_t boxes_given(void) { return atomic_load_explicit(&shm_dom.segment->given, memory_order_acquire); }

/* Boxes to look at: those given out, and the common one once it is in use. */
static inline uint32_t boxes_in_use(void)
{
    uint32_t given = boxes_given();
    return likely(given <= shm_dom.ready) ? given : more_in_use(given);
}

/* Delivers from these boxes. Out of line: most looks find nothing, and save no registers for it. */
static __attribute__((noinline)) int poll_boxes(struct shm_rx *r, const struct shm_rx *end, int budget)
{
    int n = 0;
    for (; r < end; r++) n += poll_box(r, budget);
    return n;
}

/* There are new boxes, the common one is in use, or records are kept. */
static TERN_COLD int progress_fully(int budget)
{
    uint32_t boxes = boxes_in_use();
    if (shm_dom.keeps) shm_kept_look();
    int n = poll_boxes(shm_dom.rx, shm_dom.rx + boxes, budget);
    if (boxes > shm_dom.boxes) look_at_lock(&shm_dom.rx[shm_dom.boxes]);
    return n;
}

int shm_progress(struct tp_dom *dom, int budget)
{
    (void)dom;
    uint32_t given = boxes_given(), mask = shm_dom.mask;
    if (unlikely(given > shm_dom.ready || shm_dom.keeps)) return progress_fully(budget);
    struct shm_rx *r = shm_dom.rx, *end = r + given;
    while (r < end && !has_record(r, mask)) r++;
    return r < end ? poll_boxes(r, end, budget) : 0;
}

/* The ring was full. True: it may not be so any more, or its receiver is only now asked to wake this process. */
static bool has_room(struct shm_ep *e)
{
    uint32_t limit = shm_dom.threads ? (uint32_t)atomic_load_explicit(&e->allowed, memory_order_relaxed) : e->limit;
    /* Room came after the mark was set: the receiver may not have seen the mark. */
    if (atomic_load_explicit(&e->box->head, memory_order_acquire) + e->mask + 1 != limit) {
        if (shm_dom.threads) atomic_store_explicit(&e->full, false, memory_order_relaxed); /* writers.c */
        return true;
    }
    /* The receiver, answering an earlier mark, may wipe this one out: it clears the mark, then looks whether we
     * sleep; we announced the sleep, and look at the mark. One of the two sees the other. */
    return !atomic_exchange_explicit(&e->box->blocked, 1, memory_order_relaxed);
}

/* Nothing that was refused for want of room could be sent now, and receivers wake this process when it can. */
static bool all_full(void)
{
    bool full = true;
    shm_eps_lock();
    for (struct link *l = shm_dom.eps.next; full && l != &shm_dom.eps; l = l->next) {
        struct shm_ep *e = container_of(l, struct shm_ep, in_all);
        if (e->peer->lost || e->said_last) continue; /* nothing waits for room there any more */
        /* A common box may change hands at any time: its senders do not sleep while they want room. */
        full = !e->common && !(atomic_load_explicit(&e->full, memory_order_relaxed) && has_room(e));
    }
    shm_eps_unlock();
    return full;
}

bool shm_idle(struct tp_dom *dom, bool want_room)
{
    (void)dom;
    uint32_t boxes = boxes_in_use();
    if (shm_dom.leaving) return false;
    for (uint32_t i = 0; i < boxes; i++) {
        const struct shm_rx *r = &shm_dom.rx[i];
        if (has_record(r, shm_dom.mask) && r->unknown != jobs_news()) return false;
        if (unlikely(r->keeps) && shm_kept_waits(r)) return false;
    }
    return !want_room || all_full();
}
