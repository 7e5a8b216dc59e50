/* memory.c - see memory.h. */
#include "rma/memory.h"
#include "base/err.h"
#include "rma/exposure.h"
#include "rma/target.h"
#include "transport/arena.h"
#include "transport/endpoint.h"
#include "transport/peer.h"

#include <stdlib.h>
#include <string.h>

#define SHOWN_MOST 1024 /* pieces that are shown: a table is 192 KB then */

struct table {
    uint64_t n, pad[7];
    struct win_region at[];
};
static_assert(sizeof(struct table) == CACHE_LINE, "shared layout");

#define PLACE_BITS 40 /* of a multiple of CACHE_LINE */
#define PLACE_MASK (((uint64_t)1 << PLACE_BITS) - 1)

/* ---- one piece ---- */

int memory_show(struct win_memory *m, bool near, struct win_region *r)
{
    *r = (struct win_region){.address = m->address, .bytes = m->bytes, .serial = m->serial};
    m->common = !near || !m->bytes || arena_place(m->at, (size_t)m->bytes);
    r->common = m->common;
    if (!near || !m->bytes || !m->common) return 0;
    int rc = remote_reg(m->at, (size_t)m->bytes, REMOTE_READ | REMOTE_WRITE | REMOTE_ATOMIC, &m->mem);
    int n = rc ? rc : remote_key_pack(m->mem, r->key, sizeof r->key);
    if (n < 0) return n;
    r->key_bytes = (uint32_t)n;
    return 0;
}

void memory_hide(struct win_memory *m)
{
    if (m->mem) remote_dereg(m->mem);
    m->mem = NULL;
}

int memory_open(struct win_target *t, const struct win_region *r, struct win_memory *m)
{
    *m = (struct win_memory){.address = r->address, .bytes = r->bytes, .serial = r->serial, .common = r->common};
    if (t->rank == t->win->comm->rank) {
        m->at = (char *)(uintptr_t)r->address;
        return 0;
    }
    if (!r->key_bytes) return 0;
    int rc = r->key_bytes > sizeof r->key ? TERN_ERR_ARG : remote_key_open(t->peer, r->key, r->key_bytes, &m->key);
    if (!rc) m->at = m->key->at;
    return rc;
}

void memory_close(struct win_memory *m)
{
    if (m->key) remote_key_close(m->key);
    m->key = NULL;
}

/* ---- several ---- */

/* The number of pieces that begin at or before the address. */
static int32_t count_upto(const struct win_attached *a, uint64_t address)
{
    int32_t low = 0, high = a->n;
    while (low < high) {
        int32_t middle = (low + high) / 2;
        if (a->of[middle].address <= address) low = middle + 1;
        else high = middle;
    }
    return low;
}

static const struct win_memory *find(const struct win_attached *a, uint64_t address, uint64_t bytes)
{
    int32_t i = count_upto(a, address) - 1;
    while (i >= 0 && !a->of[i].bytes) i--;
    if (i < 0) return NULL;
    const struct win_memory *m = &a->of[i];
    return address - m->address <= m->bytes && bytes <= m->bytes - (address - m->address) ? m : NULL;
}

static int have_room(struct win_attached *a, int32_t n)
{
    if (n <= a->room) return 0;
    int32_t room = 2 * n;
    struct win_memory *more = realloc(a->of, (size_t)room * sizeof *more);
    if (!more) return err_set(TERN_ERR_NOMEM, "no memory for what is attached to a window");
    a->of = more;
    a->room = room;
    return 0;
}

static void drop_table(struct win_attached *a)
{
    if (a->table) peer_shared_free(a->table, a->table_bytes);
    a->table = NULL;
}

void attached_close(struct win_attached *a)
{
    for (int32_t i = 0; i < a->n; i++) {
        memory_close(&a->of[i]);
        memory_hide(&a->of[i]);
    }
    drop_table(a);
    free(a->of);
    *a = (struct win_attached){0};
}

/* ---- the owner ---- */

static void describe(const struct win_memory *m, struct win_region *r)
{
    *r = (struct win_region){.address = m->address, .bytes = m->bytes, .serial = m->serial, .common = m->common};
    int n = m->mem ? remote_key_pack(m->mem, r->key, sizeof r->key) : 0;
    if (n > 0) r->key_bytes = (uint32_t)n;
}

/* Shows what is attached now. */
static void publish(struct win *w)
{
    struct win_attached *a = &w->attached, before = *a;
    struct win_exposure *x = w->near.exposure;
    uint64_t place = 0, version = atomic_load_explicit(&x->attached, memory_order_relaxed) >> PLACE_BITS;
    bool shown = w->near.shared && a->n && a->n <= SHOWN_MOST;
    a->table_bytes = sizeof(struct table) + (size_t)a->n * sizeof(struct win_region);
    struct table *t = shown ? peer_shared_alloc(a->table_bytes, &place) : NULL;
    if (t) {
        t->n = (uint64_t)a->n;
        for (int32_t i = 0; i < a->n; i++) describe(&a->of[i], &t->at[i]);
    }
    a->table = t;
    place = t ? place / CACHE_LINE : 0;
    /* release: the table is there before the word that names it */
    atomic_store_explicit(&x->attached, (version + 1) << PLACE_BITS | place, memory_order_release);
    drop_table(&before);
}

static bool overlaps(const struct win_attached *a, uint64_t address, uint64_t bytes)
{
    int32_t i = count_upto(a, address + bytes - 1) - 1;
    while (i >= 0 && !a->of[i].bytes) i--;
    return bytes && i >= 0 && a->of[i].address + a->of[i].bytes > address;
}

int memory_attach(struct win *w, void *base, MPI_Aint bytes)
{
    struct win_attached *a = &w->attached;
    struct win_memory m = {.at = base, .address = (uint64_t)(uintptr_t)base, .bytes = (uint64_t)bytes, .serial = ++a->serial};
    struct win_region unused;
    if (overlaps(a, m.address, m.bytes))
        return err_set(TERN_ERR_WIN_ATTACH, "%lld bytes at base (%p) overlap with memory that is attached already", (long long)bytes, base);
    int rc = have_room(a, a->n + 1);
    if (!rc) rc = memory_show(&m, w->near.n > 1, &unused);
    if (rc) {
        memory_hide(&m);
        return rc;
    }
    int32_t i = count_upto(a, m.address);
    memmove(&a->of[i + 1], &a->of[i], (size_t)(a->n - i) * sizeof m);
    a->of[i] = m;
    a->n++;
    publish(w);
    return 0;
}

int memory_detach(struct win *w, const void *base)
{
    struct win_attached *a = &w->attached;
    int32_t i = count_upto(a, (uint64_t)(uintptr_t)base) - 1;
    if (i < 0 || a->of[i].at != base) return err_set(TERN_ERR_WIN_ATTACH, "no memory is attached that begins at base (%p)", base);
    memory_hide(&a->of[i]);
    memmove(&a->of[i], &a->of[i + 1], (size_t)(a->n - i - 1) * sizeof *a->of);
    a->n--;
    publish(w);
    return 0;
}

const struct win_memory *memory_of_own(const struct win *w, uint64_t address, uint64_t bytes)
{
    return find(&w->attached, address, bytes);
}

/* ---- an origin ---- */

/* Copies a table; the number of its regions, -1: the table has gone meanwhile. */
static int copy_table(struct win_target *t, uint64_t word, struct win_region **out)
{
    uint64_t place = (word & PLACE_MASK) * CACHE_LINE;
    struct table *s = ep_map(&t->peer->ep, place, sizeof *s);
    uint64_t n = s ? s->n : 0;
    if (n > SHOWN_MOST || !(s = n ? ep_map(&t->peer->ep, place, sizeof *s + n * sizeof *s->at) : NULL)) return n > SHOWN_MOST ? -1 : 0;
    struct win_region *r = malloc(n * sizeof *r);
    if (!r) return 0;
    memcpy(r, s->at, n * sizeof *r);
    atomic_thread_fence(memory_order_acquire); /* the word is looked at again behind the copy */
    if (atomic_load_explicit(&t->exposure->attached, memory_order_relaxed) == word) {
        *out = r;
        return (int)n;
    }
    free(r);
    return -1;
}

static const struct win_memory *same_in(const struct win_attached *a, const struct win_region *r)
{
    const struct win_memory *m = find(a, r->address, r->bytes);
    return m && m->serial == r->serial && m->address == r->address ? m : NULL;
}

/* What was open before stays so. */
static void take_regions(struct win_target *t, const struct win_region *r, int n)
{
    struct win_attached *a = &t->attached, next = {0};
    if (n && !have_room(&next, n))
        for (int i = 0; i < n; i++) {
            struct win_memory *m = &next.of[next.n];
            struct win_memory *had = (struct win_memory *)(uintptr_t)same_in(a, &r[i]);
            if (had) {
                *m = *had;
                had->key = NULL;
                next.n++;
            } else if (r[i].bytes && !memory_open(t, &r[i], m)) {
                next.n++;
            }
        }
    attached_close(a);
    *a = next;
}

static void refresh(struct win_target *t)
{
    for (;;) {
        struct win_region *r = NULL;
        uint64_t word = atomic_load_explicit(&t->exposure->attached, memory_order_acquire);
        int n = word & PLACE_MASK ? copy_table(t, word, &r) : 0;
        if (n < 0) continue;
        take_regions(t, r, n);
        t->attached.word = word;
        free(r);
        return;
    }
}

const struct win_memory *memory_of(struct win_target *t, uint64_t address, uint64_t bytes)
{
    if (t->rank == t->win->comm->rank) return memory_of_own(t->win, address, bytes);
    /* acquire: with the word comes what it names. An origin was told of an attachment by a message, or the like */
    if (atomic_load_explicit(&t->exposure->attached, memory_order_acquire) != t->attached.word) refresh(t);
    return find(&t->attached, address, bytes);
}
