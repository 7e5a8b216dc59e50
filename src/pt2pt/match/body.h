/*
 * body.h - where unexpected messages lie: a pool of message bodies, one for
 * each lane, shared by all its communicators (LHS-1..4, 9).
 *
 *   body: a slot of TERN_MATCH_HEAD bytes (64..256, default one cache line) in a
 *   contiguous, line-aligned array
 *
 *     0      8      16       24       32      36                 40
 *     | next | peer | src,tag | length | held | kind,n,where,flg | n cookies | payload, or a pointer to it |
 *
 * A payload that fits behind the cookies lies in the slot, so a short message
 * costs one cache line and no malloc; a longer one lies whole in a chunk of a
 * size class (64 bytes to 8 KB by powers of two; above that, malloc), so that it
 * is unpacked in one piece. Slots and chunks are cut from 64 KB slabs; a slab
 * whose last item is freed goes back to the system while others have room. A payload
 * may also stay where the transport has it (match_body_lend).
 *
 * Memory is bounded: `used` never exceeds `limit`. The caller sees both and holds
 * senders back by credits; nothing is dropped here.
 *
 * Threads: the caller holds the lane's lock.
 */
#ifndef TERN_PT2PT_MATCH_BODY_H
#define TERN_PT2PT_MATCH_BODY_H

#include "base/list.h"

#define MATCH_HEAD_MIN 64
#define MATCH_HEAD_MAX 256
#define MATCH_COOKIES_MAX 3 /* with a payload, two; with one that is lent, one */

struct match_body {
    struct match_body *next; /* the owner's, to keep bodies in lists */
    void *peer;              /* the owner's: endpoint that the message came from */
    int32_t src, tag;        /* the owner's: envelope, for the status */
    uint64_t length;         /* the owner's: bytes of the whole message */
    uint32_t held;           /* bytes of payload kept here; set by match_body_new */
    uint8_t kind;            /* the owner's: eager, synchronous, rendezvous ... */
    uint8_t cookies;         /* how many; set by match_body_new */
    uint8_t where;           /* size class of the payload's chunk, 0: in the slot; set by match_body_new */
    uint8_t flags;           /* the owner's */
    uint64_t cookie[];       /* the owner's: what the sender's protocol wants back, e.g. a rendezvous descriptor */
};
static_assert(sizeof(struct match_body) == 40, "24 bytes of a 64-byte slot are for cookies and payload");
static_assert(offsetof(struct match_body, cookie) == 40, "drawn above");

/* Size classes of chunks: 0 are the slots of bodies, 1..8 payloads of up to 64 << (class - 1) bytes. */
#define MATCH_CLASSES 9

struct match_class {
    uint32_t size;          /* bytes of an item, a multiple of the cache line */
    struct link room, full; /* slabs with free items, the one used last first, and slabs without */
};

/* It points into itself: initialise in place, never copy. */
struct match_pool {
    size_t used, limit; /* bytes of slots and chunks handed out; bound of it */
    size_t peak;        /* highest `used` so far */
    int64_t bodies;     /* bodies handed out */
    struct link large;  /* payloads beyond all classes */
    struct link lent;   /* struct match_loan, of payloads that lie elsewhere */
    struct match_class class[MATCH_CLASSES];
};

/* An empty pool that allocates nothing yet. `head` is the slot size (TERN_MATCH_HEAD), taken into MATCH_HEAD_MIN..MAX
 * and up to a multiple of the cache line. */
void match_pool_init(struct match_pool *, size_t limit, size_t head);

/* All memory is given back, bodies still in use included. */
void match_pool_fini(struct match_pool *);

/* Largest payload that lies in the slot beside so many cookies (LHS-2: the threshold). */
size_t match_body_inline_max(const struct match_pool *, unsigned cookies);

/* A body with room for `payload` bytes and `cookies` cookies; the owner's fields are not initialised. NULL when the
 * limit or memory is reached: hold the sender back and try again after a match_body_free. */
struct match_body *match_body_new(struct match_pool *, unsigned cookies, uint32_t payload);
void match_body_free(struct match_pool *, struct match_body *);

/* As match_body_new with at most one cookie, for a payload that lies at `data` and is given back by end(owner), when the
 * body is freed. It counts as if it lay here. NULL: as there, and it is not given back. */
struct match_body *match_body_lend(struct match_pool *, unsigned cookies, uint32_t payload, const void *data,
                                   void (*end)(void *owner), void *owner);

/* Where the payload of the body lies, in one piece, aligned to 8 bytes. */
static inline void *match_body_payload(struct match_body *b)
{
    uint64_t *area = b->cookie + b->cookies;
    return likely(!b->where) ? (void *)area : (void *)(uintptr_t)*area;
}

#endif
