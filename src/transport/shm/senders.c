/*
 * senders.c - the entries of senders in a segment (segment.h): taken by the sender, given a meaning and free again by
 * the receiver.
 *
 * An entry proves nothing about its sender. Its name is looked up in the tables of this process, and while it is not
 * found there, nothing of that sender is delivered.
 */
#include "base/err.h"
#include "proc/jobs.h"
#include "proc/proc.h"
#include "transport/shm/shm.h"

#include <sys/mman.h>
#include <unistd.h>

/* ---- the sender's side ---- */

static bool try_entry(struct shm_segment *s, uint32_t i, uint32_t from)
{
    /* acquire: pairs with the release in shm_sender_free; the ring is empty */
    return atomic_compare_exchange_strong_explicit(&shm_sender_at(s, i)->state, &from, SHM_TAKEN, memory_order_acquire,
                                                   memory_order_relaxed);
}

/* One that others have left; s->senders: none. */
static uint32_t take_old(struct shm_segment *s)
{
    uint32_t given = atomic_load_explicit(&s->given, memory_order_relaxed), i = 0;
    if (!atomic_load_explicit(&s->freed, memory_order_relaxed)) return s->senders;
    while (i < given && !try_entry(s, i, SHM_FREE)) i++;
    if (i == given) return s->senders;
    atomic_fetch_sub_explicit(&s->freed, 1, memory_order_relaxed);
    return i;
}

static uint32_t take_fresh(struct shm_segment *s)
{
    uint32_t i = atomic_load_explicit(&s->given, memory_order_relaxed);
    do {
        if (i >= s->senders) return s->senders;
        /* acq_rel: the receiver's acquire of `given` sees the box as it was made */
    } while (!atomic_compare_exchange_weak_explicit(&s->given, &i, i + 1, memory_order_acq_rel, memory_order_relaxed));
    return try_entry(s, i, SHM_FRESH) ? i : s->senders;
}

/* The receiver may be asleep, while this process waits until it is let in, and does not sleep. */
static void ask(const struct shm_ep *e)
{
    /* release: pairs with the acquire in shm_senders_admit */
    atomic_fetch_add_explicit(&e->segment->asked, 1, memory_order_release);
    bell_check(e->bell, e->fence);
}

static void sign(const struct shm_ep *e, uint32_t i)
{
    struct shm_segment *s = e->segment;
    struct shm_sender *at = shm_sender_at(s, i);
    bool of_other = s->name.job != jobs_own_name().job;
    at->pid = (uint32_t)getpid();
    at->host = shm_dom.host;
    at->name = jobs_own_name();
    /* release: pairs with the acquire in shm_sender_peer. Processes of one job know each other. */
    atomic_store_explicit(&at->state, of_other ? SHM_HELD : SHM_ADMITTED, memory_order_release);
    if (of_other && i >= s->boxes) ask(e);
}

int shm_sender_enter(struct shm_ep *e)
{
    struct shm_segment *s = e->segment;
    uint32_t i = take_old(s), box;
    if (i == s->senders) i = take_fresh(s);
    if (i == s->senders)
        return err_set(TERN_ERR_ABSENT, "%s has %u senders in its shared memory, and no room for another",
                       jobs_words(e->peer->index), s->senders);
    e->common = i >= s->boxes;
    box = e->common ? s->boxes : i;
    e->from = (uint64_t)i << 32;
    e->box = shm_box_at(s, box);
    e->ring = shm_ring_at(s, box);
    e->mask = s->box_bytes - 1;
    e->limit = s->box_bytes;
    e->next = e->ring;
    e->stop = e->ring + s->box_bytes;
    if (atomic_load_explicit(&shm_dom.segment->bell.fenced, memory_order_relaxed))
        atomic_store_explicit(&e->box->fenced, 1, memory_order_relaxed);
    sign(e, i);
    return 0;
}

bool shm_sender_admitted(struct shm_ep *e)
{
    const struct shm_sender *at = shm_sender_at(e->segment, (uint32_t)(e->from >> 32));
    bool admitted = atomic_load_explicit(&at->state, memory_order_relaxed) == SHM_ADMITTED;
    atomic_store_explicit(&e->admitted, admitted, memory_order_relaxed);
    return admitted;
}

/* ---- the receiver's side ---- */

/* acquire: pairs with the release in sign */
static uint32_t state_of(const struct shm_sender *at) { return atomic_load_explicit(&at->state, memory_order_acquire); }

static bool is_held(const struct shm_sender *at)
{
    uint32_t state = state_of(at);
    return state == SHM_HELD || state == SHM_ADMITTED;
}

static void fill_in(uint32_t box)
{
    shm_dom.rx[box].ring = shm_ring_at(shm_dom.segment, box);
    shm_dom.rx[box].box = shm_box_at(shm_dom.segment, box);
}

void shm_boxes_more(uint32_t given)
{
    while (shm_dom.ready < given && shm_dom.ready < shm_dom.boxes) fill_in(shm_dom.ready++);
    if (given > shm_dom.boxes) fill_in(shm_dom.boxes);
}

/* Entries to look at; `given` is written by others. */
static uint32_t entries_in_use(void)
{
    uint32_t given = atomic_load_explicit(&shm_dom.segment->given, memory_order_acquire);
    if (given > shm_dom.ready) shm_boxes_more(given);
    return given < shm_dom.senders ? given : shm_dom.senders;
}

/* Has the peer, which is being closed here, connected anew by this entry? It has if its last record has been read, or if
 * another ring of its own is read already. In the common ring its new entry is not admitted. */
static bool is_anew(const struct peer *p, uint32_t entry)
{
    bool other = p->flags & PEER_SAID_LAST;
    for (uint32_t i = 0; i < shm_dom.boxes && entry < shm_dom.boxes; i++) other |= i != entry && shm_dom.rx[i].peer == p;
    return other;
}

struct peer *shm_sender_peer(uint32_t entry)
{
    uint32_t index;
    if (entry >= entries_in_use()) return NULL;
    const struct shm_sender *at = shm_sender_at(shm_dom.segment, entry);
    struct proc_name name = at->name;
    if (!is_held(at) || !jobs_index_of(&name, &index)) return NULL;
    struct peer *p = peer_of_sender(index);
    if (p && unlikely(p->flags & PEER_CLOSING) && is_anew(p, entry)) return NULL;
    if (!p) proc_abort(1, err_words()); /* a message without a sender can neither be delivered nor dropped */
    return p;
}

void shm_sender_said_last(uint32_t entry)
{
    uint32_t index;
    if (entry >= entries_in_use()) return;
    struct proc_name name = shm_sender_at(shm_dom.segment, entry)->name;
    struct peer *p = jobs_index_of(&name, &index) ? peer_known(index) : NULL;
    if (p) p->flags |= PEER_SAID_LAST;
}

void shm_senders_admit(void)
{
    struct shm_segment *s = shm_dom.segment;
    uint32_t index;
    shm_dom.asked = atomic_load_explicit(&s->asked, memory_order_acquire); /* pairs with the release in ask */
    shm_dom.news = jobs_news();
    for (uint32_t i = shm_dom.boxes; i < entries_in_use(); i++) {
        struct shm_sender *at = shm_sender_at(s, i);
        struct proc_name name = at->name;
        uint32_t held = SHM_HELD;
        if (state_of(at) == SHM_HELD && jobs_index_of(&name, &index) && !peer_is_closing(index))
            atomic_compare_exchange_strong_explicit(&at->state, &held, SHM_ADMITTED, memory_order_relaxed,
                                                    memory_order_relaxed);
    }
}

/* The ring is as it was made, and its pages are the system's. */
static void reset_ring(uint32_t box)
{
    struct shm_rx *r = &shm_dom.rx[box];
    r->head = r->given = 0;
    r->peer = NULL;
    r->unknown = 0;
    r->ends = false;
    atomic_store_explicit(&r->box->fenced, 0, memory_order_relaxed);
    atomic_store_explicit(&r->box->blocked, 0, memory_order_relaxed);
    atomic_store_explicit(&r->box->head, 0, memory_order_relaxed); /* the state passes it on */
    madvise(r->ring, shm_dom.mask + 1, MADV_REMOVE);
}

void shm_sender_free(uint32_t entry)
{
    struct shm_segment *s = shm_dom.segment;
    if (entry >= entries_in_use()) return;
    if (entry < shm_dom.boxes && shm_dom.rx[entry].keeps) {
        shm_dom.rx[entry].ends = true; /* kept.c comes back to it; nothing more comes of the peer, which may be freed */
        shm_dom.rx[entry].peer = NULL;
        return;
    }
    if (entry < shm_dom.boxes) reset_ring(entry);
    /* release: who takes the entry next finds the ring empty */
    atomic_store_explicit(&shm_sender_at(s, entry)->state, SHM_FREE, memory_order_release);
    atomic_fetch_add_explicit(&s->freed, 1, memory_order_relaxed);
}

/* What a process that has died has left in a ring of its own will not be read. False: some of it is kept. */
static bool free_of_dead(uint32_t entry)
{
    struct shm_rx *r = &shm_dom.rx[entry];
    if (entry < shm_dom.boxes && r->keeps) return false;
    for (uint32_t i = 0; entry < shm_dom.boxes && i <= shm_dom.mask; i += CACHE_LINE)
        atomic_store_explicit((_Atomic uint64_t *)(r->ring + i), 0, memory_order_relaxed);
    shm_sender_free(entry);
    return true;
}

static bool sender_has_ended(const struct shm_sender *at)
{
    return at->host && at->host == shm_dom.host && proc_has_ended((pid_t)at->pid);
}

bool shm_sender_is_dead(uint32_t entry)
{
    const struct peer *p = shm_sender_peer(entry);
    if (!p || !(p->lost || p->flags & PEER_CLOSING)) return false;
    return sender_has_ended(shm_sender_at(shm_dom.segment, entry)) || (jobs_is_own(p->index) && proc_has_died(p->index));
}

/* Is its last record in its own ring, read or not? */
static bool has_said_leave(uint32_t entry)
{
    const struct shm_rx *r = &shm_dom.rx[entry];
    for (uint32_t at = r->head; entry < shm_dom.boxes && at - r->head <= shm_dom.mask;) {
        const char *record = r->ring + (at & shm_dom.mask);
        /* acquire: pairs with the release in publish */
        uint64_t word = atomic_load_explicit((_Atomic uint64_t *)(uintptr_t)record, memory_order_acquire);
        if (!word) return false;
        if (shm_word_id(word) == AM_PAD && ((const uint64_t *)(const void *)record)[1] == SHM_NOTE_LEAVE) return true;
        at += shm_record_bytes(shm_word_bytes(word));
    }
    return false;
}

/* Of one that is lost. It may still write, unless it has closed this peer as well. False: not now. */
static bool bar(struct shm_sender *at, uint32_t entry)
{
    if (has_said_leave(entry)) return free_of_dead(entry);
    atomic_store_explicit(&at->state, SHM_BARRED, memory_order_relaxed);
    if (entry < shm_dom.boxes) shm_dom.rx[entry].peer = NULL;
    return true;
}

static bool holds_lock(uint32_t entry)
{
    const struct shm_box *common = shm_dom.rx[shm_dom.boxes].box;
    return entry >= shm_dom.boxes && atomic_load_explicit(&common->lock, memory_order_relaxed) == entry + 1;
}

/* A ring that was barred comes back when its sender has closed this peer, or has ended: at the next look here. */
static bool is_over(const struct shm_sender *at, uint32_t entry)
{
    uint32_t state = state_of(at); /* acquire: pairs with the release in leave */
    if (entry >= shm_dom.boxes)
        return false; /* of the common ring nothing is held but the entry, which its last record frees */
    return state == SHM_ENDED || (state == SHM_BARRED && (sender_has_ended(at) || has_said_leave(entry)));
}

/* The entries of the peer here: true when it has none any more. */
static bool has_closed(const struct peer *p, const struct proc_name *name)
{
    bool closed = true;
    for (uint32_t i = 0; i < entries_in_use(); i++) {
        struct shm_sender *at = shm_sender_at(shm_dom.segment, i);
        if (is_over(at, i)) free_of_dead(i);
        if (!is_held(at) || !proc_name_same(&at->name, name) || p->flags & PEER_SAID_LAST) continue;
        if (holds_lock(i)) closed = false; /* it may hold it for ever: see take_lock_back */
        else if (sender_has_ended(at)) closed &= free_of_dead(i);
        else if (p->lost) closed &= bar(at, i);
        else closed = false;
    }
    return closed;
}

void shm_leaving(struct shm_ep *e, bool leaving)
{
    shm_dom.leaving += (uint32_t)leaving - (uint32_t)e->leaving;
    e->leaving = leaving;
}

/* One of the common ring that nothing was written by. */
static bool give_entry_back(struct shm_ep *e, uint32_t from)
{
    struct shm_sender *at = shm_sender_at(e->segment, (uint32_t)(e->from >> 32));
    if (!atomic_compare_exchange_strong_explicit(&at->state, &from, SHM_FREE, memory_order_release,
                                                 memory_order_relaxed))
        return false;
    atomic_fetch_add_explicit(&e->segment->freed, 1, memory_order_relaxed);
    return true;
}

/* The last record to it; an entry that was never admitted is simply given back. */
static int leave(struct tp_ep *ep)
{
    struct shm_ep *e = ep->priv;
    struct shm_sender *at = shm_sender_at(e->segment, (uint32_t)(e->from >> 32));
    uint32_t barred = SHM_BARRED;
    /* release: what we have written is there before the ring is emptied. It is not read: no last record is needed. */
    if (!e->common && atomic_compare_exchange_strong_explicit(&at->state, &barred, SHM_ENDED, memory_order_release,
                                                              memory_order_relaxed)) {
        e->said_last = true;
        shm_leaving(e, false);
        return 0;
    }
    bool never = e->common && !e->admitted && (give_entry_back(e, SHM_HELD) || give_entry_back(e, SHM_BARRED));
    int rc = never ? 0 : shm_leave(ep);
    e->said_last = !rc;
    shm_leaving(e, rc == TERN_AGAIN);
    return rc;
}

int shm_peer_close(struct tp_dom *dom, struct peer *p)
{
    struct proc_name name;
    (void)dom;
    if (p->ep.ops == &tp_shm) {
        struct shm_ep *e = p->ep.priv;
        bool gone = p->lost && (atomic_load_explicit(&e->segment->left, memory_order_relaxed) ||
                                (e->open_to_us && proc_has_ended(e->pid)));
        int rc = e->said_last || gone ? 0 : leave(&p->ep);
        if (rc) return rc;
    }
    return !jobs_name_of(p->index, &name) || has_closed(p, &name) ? 0 : TERN_AGAIN;
}
