/*
 * remote.c - registered memory, packed keys, and the way that an operation goes.
 *
 * Registered memory has an id: the slot in the table in its lower half, in its upper half how often that slot has been
 * used. So an id never comes again, and an old one is known to be old. Slots are kept until the end: keys of this
 * process itself look at `live` in them.
 *
 * A packed key, little endian:
 *
 *     | magic 4 | access 2 | alignment 2 | id 8 | bytes 8 | name length 1 | wire | length 1 | its part | ... | 0 |
 */
#include "transport/remote.h"
#include "base/err.h"
#include "copy/copy.h"
#include "proc/jobs.h"
#include "transport/amo.h"
#include "transport/emulate/emulate.h"
#include "transport/endpoint.h"
#include "transport/peer.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

#define MAGIC 0x7e524b31u
#define SLOTS_MAX (1u << 20)

struct packed {
    uint32_t magic;
    uint16_t access, align;
    uint64_t id, bytes;
};
static_assert(sizeof(struct packed) == 24, "wire format");

bool remote_by_wires = true;
static struct remote_mem **slots;
static uint32_t slot_count;
static struct remote_mem *unused; /* slots */
static struct lock table_lock;    /* a leaf: slots, and whether they are used */

/* ---- the table ---- */

int remote_open(void) { return emulate_open(); }

void remote_close(void)
{
    for (uint32_t i = 0; i < slot_count; i++) free(slots[i]);
    free(slots);
    slots = NULL;
    unused = NULL;
    slot_count = 0;
    emulate_close();
}

static uint32_t slot_of(uint64_t id) { return (uint32_t)id; }
static uint32_t use_of(uint64_t id) { return (uint32_t)(id >> 32); }

/* The slot's, if its memory is registered by this id; with the lock. */
static struct remote_mem *find(uint64_t id)
{
    struct remote_mem *m = slot_of(id) < slot_count ? slots[slot_of(id)] : NULL;
    return m && m->id == id && atomic_load_explicit(&m->live, memory_order_relaxed) == id ? m : NULL;
}

struct remote_mem *remote_find(uint64_t id)
{
    leaf_take(&table_lock);
    struct remote_mem *m = find(id);
    leaf_give(&table_lock);
    return m;
}

bool remote_was(uint64_t id)
{
    leaf_take(&table_lock);
    const struct remote_mem *m = slot_of(id) < slot_count ? slots[slot_of(id)] : NULL;
    bool was = m && use_of(id) && use_of(id) <= use_of(m->id) && !find(id);
    leaf_give(&table_lock);
    return was;
}

static struct remote_mem *add_slot(void)
{
    bool full = !(slot_count & (slot_count - 1)); /* a power of two, or 0 */
    if (slot_count == SLOTS_MAX) return NULL;
    if (full) {
        struct remote_mem **more = realloc(slots, (slot_count ? 2 * slot_count : 1) * sizeof *more);
        if (!more) return NULL;
        slots = more;
    }
    struct remote_mem *m = calloc(1, sizeof *m);
    if (!m) return NULL;
    m->slot = slot_count;
    m->id = slot_count;
    slots[slot_count++] = m;
    return m;
}

static struct remote_mem *unused_slot(void)
{
    struct remote_mem *m = unused;
    if (!m) return add_slot();
    unused = m->unused;
    return m;
}

/* A slot for this memory, which counts as registered from now on: peers that use it are told of it by a message. */
static struct remote_mem *take_slot(void *base, size_t bytes, uint32_t access)
{
    leaf_take(&table_lock);
    struct remote_mem *m = unused_slot();
    if (m) {
        m->id = (uint64_t)(use_of(m->id) + 1) << 32 | m->slot;
        m->base = base;
        m->bytes = bytes;
        m->access = access;
        atomic_store_explicit(&m->live, m->id, memory_order_relaxed);
    }
    leaf_give(&table_lock);
    return m;
}

static void give_slot_back(struct remote_mem *m)
{
    leaf_take(&table_lock);
    m->unused = unused;
    unused = m;
    leaf_give(&table_lock);
}

/* ---- the owner ---- */

/* The thread is in no wire, so none refuses it. */
static int register_with(int number, struct remote_mem *m)
{
    const struct wire *w = wires_at(number);
    m->wire[number] = NULL;
    if (!w->ops->remote) return 0;
    wire_take(number, WIRE_CALL);
    int rc = w->ops->remote->mem_reg(w->dom, m->id, m->base, m->bytes, m->access, &m->wire[number]);
    wire_give(number, WIRE_CALL);
    return rc == TERN_ERR_UNSUPPORTED ? 0 : rc;
}

static void deregister_with(int number, struct remote_mem *m)
{
    const struct wire *w = wires_at(number);
    if (!m->wire[number]) return;
    wire_take(number, WIRE_CALL);
    w->ops->remote->mem_dereg(w->dom, m->wire[number]);
    wire_give(number, WIRE_CALL);
}

static void deregister(struct remote_mem *m)
{
    atomic_store_explicit(&m->live, 0, memory_order_relaxed);
    for (int i = 0; i < (int)ARRAY_LEN(m->wire) && wires_at(i); i++) deregister_with(i, m);
    memset(m->wire, 0, sizeof m->wire);
    give_slot_back(m);
}

int remote_reg(void *base, size_t bytes, uint32_t access, struct remote_mem **mem)
{
    if (bytes > REMOTE_BYTES_MAX || (uintptr_t)base > UINTPTR_MAX - bytes)
        return err_set(TERN_ERR_ARG, "memory of %zu bytes at %p cannot be registered: it is no memory", bytes, base);
    if (access & ~(uint32_t)(REMOTE_READ | REMOTE_WRITE | REMOTE_ATOMIC))
        return err_set(TERN_ERR_INTERN, "memory is registered for unknown uses (%#x)", access);
    struct remote_mem *m = take_slot(base, bytes, access);
    if (!m) return err_set(TERN_ERR_NOMEM, "no memory to register memory");
    for (int i = 0; i < (int)ARRAY_LEN(m->wire) && wires_at(i); i++) {
        int rc = register_with(i, m);
        if (!rc) continue;
        deregister(m);
        return rc;
    }
    *mem = m;
    return 0;
}

void remote_dereg(struct remote_mem *m)
{
    deregister(m);
    emulate_deregistered(m->id);
}

/* Adds the part of one transport behind n bytes; how many there are then, or a code. */
static int pack_part(const struct wire *w, const void *state, uint8_t *buf, size_t n, size_t cap)
{
    size_t name = strlen(w->ops->name);
    if (n + name + 3 > cap) return err_set(TERN_ERR_INTERN, "no room for the key of registered memory");
    int len = w->ops->remote->key_pack(w->dom, state, buf + n + name + 2, min_size(cap - n - name - 3, 255));
    if (len < 0) return len;
    buf[n] = (uint8_t)name;
    memcpy(buf + n + 1, w->ops->name, name);
    buf[n + 1 + name] = (uint8_t)len;
    return (int)(n + name + 2) + len;
}

int remote_key_pack(const struct remote_mem *m, void *buf, size_t cap)
{
    const struct wire *w;
    struct packed head = {htole32(MAGIC), htole16((uint16_t)m->access), htole16((uint16_t)((uintptr_t)m->base % 8)),
                          htole64(m->id), htole64(m->bytes)};
    if (cap < sizeof head + 1) return err_set(TERN_ERR_INTERN, "no room for the key of registered memory");
    memcpy(buf, &head, sizeof head);
    int n = sizeof head;
    for (int i = 0; i < (int)ARRAY_LEN(m->wire) && (w = wires_at(i)) && n > 0; i++)
        if (m->wire[i]) n = pack_part(w, m->wire[i], buf, (size_t)n, cap);
    if (n > 0) ((uint8_t *)buf)[n++] = 0;
    return n;
}

/* ---- the origin: keys ---- */

static int unpack(struct peer *p, const void *packed, size_t n, struct remote_key *k)
{
    struct packed head = {0};
    if (n > sizeof head) memcpy(&head, packed, sizeof head);
    *k = (struct remote_key){.peer = p,
                             .id = le64toh(head.id),
                             .bytes = le64toh(head.bytes),
                             .access = le16toh(head.access),
                             .align = (uint8_t)le16toh(head.align)};
    bool good = le32toh(head.magic) == MAGIC && le16toh(head.align) < 8 && use_of(k->id) &&
                k->bytes <= REMOTE_BYTES_MAX && !(k->access & ~(uint32_t)(REMOTE_READ | REMOTE_WRITE | REMOTE_ATOMIC));
    return good ? 0
                : err_set(TERN_ERR_ARG, "what %s sent is no key of registered memory (%zu bytes)",
                          jobs_long_words(p->index), n);
}

/* What the transport to the peer makes of its part of the key. */
static int open_by_wire(struct remote_key *k, const uint8_t *parts, size_t n)
{
    size_t len;
    const struct tp_ops *ops = k->peer->ep.ops;
    if (!ops->remote || !(k->peer->ep.caps & TP_CAP_REMOTE) || !remote_by_wires) return 0;
    const uint8_t *part = wires_card_part(parts, n, ops->name, &len);
    if (!part) return 0;
    int rc = wire_enter(&k->peer->ep, 0);
    if (rc) return rc;
    rc = ops->remote->key_open(&k->peer->ep, part, len, k);
    wire_leave(&k->peer->ep, 0);
    k->opened = !rc;
    return rc == TERN_ERR_UNSUPPORTED ? 0 : rc;
}

int remote_key_open(struct peer *p, const void *packed, size_t n, struct remote_key **key)
{
    struct remote_key k;
    int rc = unpack(p, packed, n, &k);
    if (rc) return rc;
    if (!peer_is_connected(p) && !peer_connect(p->index)) return err_code();
    struct remote_key *made = malloc(sizeof *made);
    if (!made) return err_set(TERN_ERR_NOMEM, "no memory for a key of memory of %s", jobs_words(p->index));
    rc = open_by_wire(&k, (const uint8_t *)packed + sizeof(struct packed), n - sizeof(struct packed));
    if (rc) {
        free(made);
        return rc;
    }
    *made = k;
    *key = made;
    return 0;
}

void remote_key_close(struct remote_key *k)
{
    const struct tp_ops *ops = k->peer->ep.ops;
    if (k->opened && ops && ops->remote && ops->remote->key_close && !wire_enter(&k->peer->ep, 0)) {
        ops->remote->key_close(&k->peer->ep, k);
        wire_leave(&k->peer->ep, 0);
    }
    free(k);
}

/* ---- the origin: operations ---- */

static TERN_COLD int refuse(const struct remote_key *k, uint64_t offset, uint64_t n, uint32_t access)
{
    if ((k->access & access) != access)
        return err_set(TERN_ERR_ARG, "%s has not registered its memory for that (%#x, not %#x)",
                       jobs_long_words(k->peer->index), k->access, access);
    return err_set(TERN_ERR_ARG,
                   "%llu bytes at %llu are not within the %llu bytes that %s has registered",
                   (unsigned long long)n, (unsigned long long)offset, (unsigned long long)k->bytes, jobs_long_words(k->peer->index));
}

static TERN_COLD int not_registered(const struct remote_key *k)
{
    return err_set(TERN_ERR_NOT_FOUND, "the memory of %s is not registered any more", jobs_long_words(k->peer->index));
}

static TERN_COLD int gone(const struct remote_key *k) { return err_set(TERN_ERR_PEER, "%s", k->peer->lost); }

static inline int check(const struct remote_key *k, uint64_t offset, uint64_t n, uint32_t access)
{
    if (unlikely((k->access & access) != access || offset > k->bytes || n > k->bytes - offset))
        return refuse(k, offset, n, access);
    if (unlikely(!k->at && k->peer->lost)) return gone(k);
    /* relaxed: who deregisters has been told by messages that nobody uses the memory; this finds mistakes */
    if (k->live && unlikely(atomic_load_explicit(k->live, memory_order_relaxed) != k->id)) return not_registered(k);
    return 0;
}

/* Has the transport ceased to reach the memory? Then operations go by messages from now on. */
static bool withdrawn(bool *flag, int rc)
{
    *flag = rc != TERN_ERR_UNSUPPORTED;
    return !*flag;
}

int remote_put(struct remote_key *k, uint64_t offset, const void *local, size_t n, struct tp_op *op)
{
    int rc = check(k, offset, n, REMOTE_WRITE);
    if (unlikely(rc)) return rc;
    if (likely(k->at != NULL)) {
        copy_memory(k->at + offset, local, n);
        return TERN_DONE;
    }
    if (!n) return TERN_DONE;
    if (k->direct) {
        rc = wire_enter(&k->peer->ep, 0);
        if (unlikely(rc)) return rc;
        rc = k->peer->ep.ops->remote->put(&k->peer->ep, k, offset, local, n, op);
        wire_leave(&k->peer->ep, 0);
        if (!withdrawn(&k->direct, rc)) return rc;
    }
    return emulate_put(k, offset, local, n, op);
}

int remote_get(struct remote_key *k, uint64_t offset, void *local, size_t n, struct tp_op *op)
{
    int rc = check(k, offset, n, REMOTE_READ);
    if (unlikely(rc)) return rc;
    if (likely(k->at != NULL)) {
        copy_memory(local, k->at + offset, n);
        return TERN_DONE;
    }
    if (!n) return TERN_DONE;
    if (k->direct) {
        rc = wire_enter(&k->peer->ep, 0);
        if (unlikely(rc)) return rc;
        rc = k->peer->ep.ops->remote->get(&k->peer->ep, k, offset, local, n, op);
        wire_leave(&k->peer->ep, 0);
        if (!withdrawn(&k->direct, rc)) return rc;
    }
    return emulate_get(k, offset, local, n, op);
}

static int check_amo(const struct remote_key *k, uint64_t offset, const struct remote_amo *a)
{
    if (unlikely(!amo_is_width(a->width) || a->op >= REMOTE_OPS))
        return err_set(TERN_ERR_ARG, "there is no atomic operation %d on %u bytes", (int)a->op, a->width);
    if (unlikely((k->align + offset) % a->width))
        return err_set(TERN_ERR_ARG, "an atomic operation on %u bytes at a place that is not aligned (%llu)", a->width,
                       (unsigned long long)offset);
    return check(k, offset, a->width, REMOTE_ATOMIC);
}

int remote_amo(struct remote_key *k, uint64_t offset, const struct remote_amo *a, void *result, struct tp_op *op)
{
    int rc = check_amo(k, offset, a);
    if (unlikely(rc)) return rc;
    if (likely(k->at != NULL)) {
        uint64_t before = amo_do(k->at + offset, a);
        if (result) amo_store(result, before, a->width);
        return TERN_DONE;
    }
    if (k->direct_amo) {
        rc = wire_enter(&k->peer->ep, 0);
        if (unlikely(rc)) return rc;
        rc = k->peer->ep.ops->remote->amo(&k->peer->ep, k, offset, a, result, op);
        wire_leave(&k->peer->ep, 0);
        if (!withdrawn(&k->direct_amo, rc)) return rc;
    }
    return emulate_amo(k, offset, a, result, op);
}

/* What went by messages first; then the transport's own, as the answer comes (emulate/) or at once. */
int remote_flush(struct peer *p, struct tp_op *op)
{
    /* seq_cst: stores to mapped memory are there before anything that this process does next, loads included */
    atomic_thread_fence(memory_order_seq_cst);
    int rc = emulate_flush(p, op);
    const struct tp_remote *wire = p->ep.ops ? p->ep.ops->remote : NULL;
    if (rc != TERN_DONE || !wire || !wire->flush) return rc;
    rc = wire_enter(&p->ep, 0);
    if (unlikely(rc)) return rc;
    rc = wire->flush(&p->ep, op);
    wire_leave(&p->ep, 0);
    return rc;
}

void remote_forget(struct peer *p) { emulate_forget(p); }
