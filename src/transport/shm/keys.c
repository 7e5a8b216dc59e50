/*
 * keys.c - registered memory of peers on the node (transport/remote.h).
 *
 * Peers map memory that lies in the owner's arena or segment, and use loads, stores and atomic instructions. They read
 * and write other memory by cross-memory attach, where the system allows it. Atomic operations on that go by messages;
 * they are atomic with those of peers that have the same memory mapped, as the owner executes them with the same
 * instructions.
 *
 * A word in the owner's shared heap says that the memory is still registered. Peers look at it before each operation.
 */
#include "base/err.h"
#include "transport/arena.h"
#include "transport/shared.h"
#include "transport/shm/shm.h"

#include <stdlib.h>
#include <string.h>

struct mem {
    uintptr_t base;
    uint64_t bytes;
    _Atomic uint64_t *live; /* NULL: the heap is used up, and nobody is told */
    uint64_t live_off;
};

/* The part of a packed key; read and written on one machine. */
struct packed_key {
    uint64_t address;  /* in the owner's memory */
    uint64_t place;    /* of the arena, 0: it is not there */
    uint64_t offset;   /* in the segment, 0: it is not there */
    uint64_t live_off; /* of the word in the segment, 0: there is none */
};
static_assert(sizeof(struct packed_key) == 32, "wire format");

static int mem_reg(struct tp_dom *dom, uint64_t id, void *base, size_t bytes, uint32_t access, void **mem)
{
    (void)dom, (void)access;
    struct mem *m = malloc(sizeof *m);
    if (!m) return err_set(TERN_ERR_NOMEM, "no memory to register memory");
    *m = (struct mem){.base = (uintptr_t)base, .bytes = bytes};
    if (shared_is_public()) m->live = shared_alloc(sizeof *m->live, &m->live_off);
    /* relaxed: peers get the key by a message */
    if (m->live) atomic_store_explicit(m->live, id, memory_order_relaxed);
    *mem = m;
    return 0;
}

static void mem_dereg(struct tp_dom *dom, void *mem)
{
    struct mem *m = mem;
    (void)dom;
    if (m->live) {
        atomic_store_explicit(m->live, 0, memory_order_relaxed);
        shared_free((void *)(uintptr_t)m->live, sizeof *m->live);
    }
    free(m);
}

static uint64_t offset_in_segment(const struct mem *m)
{
    uint64_t at = m->base - (uintptr_t)shm_dom.segment;
    return at < shm_dom.segment->bytes && m->bytes <= shm_dom.segment->bytes - at ? at : 0;
}

static int key_pack(struct tp_dom *dom, const void *mem, void *buf, size_t cap)
{
    const struct mem *m = mem;
    (void)dom;
    struct packed_key part = {m->base, arena_place((void *)m->base, m->bytes), offset_in_segment(m),
                              m->live ? m->live_off : 0};
    if (cap < sizeof part) return err_set(TERN_ERR_INTERN, "no room for a key of shm");
    memcpy(buf, &part, sizeof part);
    return (int)sizeof part;
}

/* Where the memory is mapped here; NULL: it is not. */
static char *mapped(struct tp_ep *ep, const struct packed_key *part, uint64_t bytes)
{
    if (part->offset) return tp_shm.map(ep, part->offset, bytes);
    return part->place && (ep->caps & TP_CAP_ARENA) ? shm_map_arena(ep, part->place, bytes) : NULL;
}

static int key_open(struct tp_ep *ep, const void *packed, size_t n, struct remote_key *k)
{
    struct packed_key part;
    if (n != sizeof part) return err_set(TERN_ERR_ARG, "a key of shm has %zu bytes, not %zu", sizeof part, n);
    memcpy(&part, packed, n);
    if (part.live_off % sizeof *k->live || part.address % 8 != k->align)
        return err_set(TERN_ERR_ARG, "a key of shm that no process has made");
    k->live = part.live_off ? tp_shm.map(ep, part.live_off, sizeof *k->live) : NULL;
    k->at = mapped(ep, &part, k->bytes);
    if (k->at && (uintptr_t)k->at % 8 == k->align) return 0;
    k->at = NULL;
    k->priv = part.address;
    k->direct = ep->caps & TP_CAP_GETPUT;
    return 0;
}

static int key_put(struct tp_ep *ep, struct remote_key *k, uint64_t offset, const void *local, size_t n,
                   struct tp_op *op)
{
    struct iovec here = {(void *)(uintptr_t)local, n}, there = {(void *)(uintptr_t)(k->priv + offset), n};
    (void)op;
    int rc = ep->caps & TP_CAP_GETPUT ? shm_put(ep, &here, 1, &there, 1) : TERN_ERR_UNSUPPORTED;
    return rc ? rc : TERN_DONE;
}

static int key_get(struct tp_ep *ep, struct remote_key *k, uint64_t offset, void *local, size_t n, struct tp_op *op)
{
    struct iovec here = {local, n}, there = {(void *)(uintptr_t)(k->priv + offset), n};
    (void)op;
    int rc = ep->caps & TP_CAP_GETPUT ? shm_get(ep, &here, 1, &there, 1) : TERN_ERR_UNSUPPORTED;
    return rc ? rc : TERN_DONE;
}

const struct tp_remote shm_remote = {
    .mem_reg = mem_reg,
    .mem_dereg = mem_dereg,
    .key_pack = key_pack,
    .key_open = key_open,
    .put = key_put,
    .get = key_get,
};
