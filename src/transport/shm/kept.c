/*
 * kept.c - records that stay in their ring beyond their handler (transport/keep.h).
 *
 *     |  free  | kept | consumed | kept | consumed | not read | free |
 *              ^ given                             ^ head
 *
 * The head that the sender is told stays at the first record that is kept, so the sender comes to a stop when it has
 * filled the rest; what is consumed behind it is given back with it. The word of a kept record is zero at once: the
 * reader, should it come round to it, finds nothing there. The payload's lines are zeroed when the record is given back.
 *
 * At most a quarter of a ring is kept. Nothing is kept in the common ring, where it would hold up all senders, nor
 * TP_KEEP_LONG, since the release might wait for a message that has no room.
 *
 * A release, by any thread, changes the state of the record and rings this process's bell; progress does the rest.
 */
#include "transport/shm/shm.h"
#include "base/err.h"

#include <stdlib.h>

enum kept_state { KEPT_HELD, KEPT_RELEASED, KEPT_CLOSED };

struct shm_kept {
    struct link link;
    uint32_t head, bytes; /* of the record */
    _Atomic uint32_t state; /* enum kept_state; whoever leaves KEPT_HELD second frees this */
};

/* acquire and release: the reads of the bytes come before they are zeroed */
static uint32_t leave_held(struct shm_kept *k, enum kept_state state)
{
    return atomic_exchange_explicit(&k->state, state, memory_order_acq_rel);
}

static void end_keep(struct tp_kept *kept)
{
    struct shm_kept *k = kept->held;
    if (leave_held(k, KEPT_RELEASED) == KEPT_CLOSED) {
        free(k);
        return;
    }
    bell_check(&shm_dom.segment->bell, true); /* pairs with bell_announce: a sleeper looks at shm_kept_waits after it */
    bell_check_again(&shm_dom.segment->bell);
}

/* The box whose next record these bytes lie in; NULL: none, or in that of all. */
static struct shm_rx *box_of(uintptr_t data, size_t n)
{
    uintptr_t first = (uintptr_t)shm_ring_at(shm_dom.segment, 0), ring = (uintptr_t)shm_dom.mask + 1;
    uintptr_t box = data < first ? UINTPTR_MAX : (data - first) / ring;
    if (box >= shm_dom.boxes) return NULL;
    struct shm_rx *r = &shm_dom.rx[box];
    uintptr_t payload = (uintptr_t)r->ring + (r->head & shm_dom.mask) + SHM_RECORD_HEAD;
    return data >= payload && data + n <= (uintptr_t)r->ring + ring ? r : NULL;
}

int shm_keep(struct tp_dom *dom, const void *data, size_t n, enum tp_keep_time time, struct tp_kept *kept)
{
    (void)dom;
    struct shm_rx *r = time == TP_KEEP_BRIEFLY ? box_of((uintptr_t)data, n) : NULL;
    if (!r) return TERN_AGAIN;
    _Atomic uint64_t *word = (_Atomic uint64_t *)(r->ring + (r->head & shm_dom.mask));
    uint64_t w = atomic_load_explicit(word, memory_order_relaxed);
    uint32_t bytes = shm_record_bytes(shm_word_bytes(w));
    if (!w || (uintptr_t)data + n > (uintptr_t)word + bytes) return TERN_AGAIN; /* kept already, or not its bytes */
    if (r->kept_bytes + bytes > (shm_dom.mask + 1) / 4) return TERN_AGAIN;
    struct shm_kept *k = malloc(sizeof *k);
    if (!k) return TERN_AGAIN;
    *k = (struct shm_kept){.head = r->head, .bytes = bytes};
    if (!r->keeps) list_init(&r->kept);
    list_push(&r->kept, &k->link);
    r->keeps++;
    r->kept_bytes += bytes;
    shm_dom.keeps++;
    atomic_store_explicit(word, 0, memory_order_relaxed);
    kept->held = k;
    kept->end = end_keep;
    return 0;
}

static struct shm_kept *first(const struct shm_rx *r) { return container_of(r->kept.next, struct shm_kept, link); }

/* Pairs with the release in leave_held. */
static bool is_released(const struct shm_kept *k)
{
    return atomic_load_explicit(&k->state, memory_order_acquire) == KEPT_RELEASED;
}

bool shm_kept_waits(const struct shm_rx *r) { return is_released(first(r)); }

static void drop_first(struct shm_rx *r)
{
    struct shm_kept *k = first(r);
    shm_zero_record(r, k->head, k->bytes);
    list_remove(&k->link);
    r->keeps--;
    r->kept_bytes -= k->bytes;
    shm_dom.keeps--;
    free(k);
}

/* Gives back all that nothing kept lies before. */
static void look(struct shm_rx *r)
{
    while (r->keeps && is_released(first(r))) drop_first(r);
    uint32_t head = r->keeps ? first(r)->head : r->head;
    if (r->given != head) shm_give_back(r, head);
    if (!r->keeps && r->ends) shm_sender_free((uint32_t)(r - shm_dom.rx));
}

void shm_kept_look(void)
{
    for (uint32_t i = 0; i < shm_dom.boxes && shm_dom.keeps; i++)
        if (shm_dom.rx[i].keeps) look(&shm_dom.rx[i]);
}

static bool is_last_kept(const struct shm_rx *r)
{
    return container_of(r->kept.prev, struct shm_kept, link)->head == r->head;
}

void shm_kept_consume(struct shm_rx *r, uint32_t need)
{
    if (!is_last_kept(r)) shm_zero_record(r, r->head, need);
    r->head += need;
    look(r);
}

void shm_kept_close(void)
{
    for (uint32_t i = 0; shm_dom.rx && i < shm_dom.boxes; i++) {
        struct shm_rx *r = &shm_dom.rx[i];
        while (r->keeps) {
            struct shm_kept *k = first(r);
            list_remove(&k->link);
            r->keeps--;
            if (leave_held(k, KEPT_CLOSED) == KEPT_RELEASED) free(k);
        }
    }
}
