/*
 * segment.h - layout of a rank's shared segment: what its peers on the node
 * map. It lies in a memfd (memory.c), so no file exists anywhere and nothing
 * can be left behind.
 *
 *   0        +-----------------------------------+
 *            | struct shm_segment                |  identity, doorbell, count of boxes given out
 *   box_off  +-----------------------------------+
 *            | struct shm_box [boxes + 1]        |  control lines of the rings; the last is the common one
 *   ring_off +-----------------------------------+
 *            | ring 0 | ring 1 | ... | common    |  box_bytes each
 *   heap_off +-----------------------------------+
 *            | heap                              |  peer_shared_alloc: transfer descriptors, node-local collectives
 *   bytes    +-----------------------------------+
 *
 * All of it is sparse: a ring that nobody writes costs address space only.
 *
 * A ring carries records of whole cache lines:
 *
 *     | word (8): bytes of payload, id, sender | h0 (8) | h1 (8) | payload ... |
 *
 * One writer, one reader. The reader polls the word of the line where the next
 * record will start. Invariant: in the free part of a ring the first 8 bytes of
 * every line are zero, so a line is "not yet written" until the writer stores the
 * word (release), last; the reader zeroes the line starts of a record it has
 * consumed and then gives the space back by `head` (release). A small message
 * thus moves one cache line and no shared counter.
 *
 * A ring that has been full keeps its pages. Its sender gives them back when it has waited for long (trim.c).
 *
 * The common box serves senders that came after all boxes were given out: its
 * writers take `lock`, never waiting for it.
 */
#ifndef TERN_TRANSPORT_SHM_SEGMENT_H
#define TERN_TRANSPORT_SHM_SEGMENT_H

#include "base/compiler.h"
#include "base/sleep.h"
#include "transport/arena.h"

#define SHM_MAGIC 0x7e525348u
#define SHM_RECORD_HEAD 24 /* word, h0, h1 */
#define SHM_HEAP_BYTES ((uint64_t)64 << 20) /* address space, not memory */

struct shm_segment {
    uint32_t magic, version;
    uint32_t pid, index;
    uint64_t bytes, box_off, ring_off, heap_off;
    uint32_t boxes, box_bytes;
    uint32_t pad;
    _Atomic uint32_t left; /* 1: the owner has taken its leave; set (release) after its last message */

    TERN_ALIGNED(CACHE_LINE) struct bell bell;

    TERN_ALIGNED(CACHE_LINE) _Atomic uint32_t given; /* boxes claimed so far, may exceed `boxes` */
    struct arena_note arena;
};
static_assert(sizeof(struct shm_segment) == 3 * CACHE_LINE, "shared layout");

struct shm_box {
    /* written by the sender (or under `lock`) */
    _Atomic uint32_t blocked; /* 1: the sender found the ring full; wake it when there is room */
    uint32_t owner;           /* index of the sender; of the last one that blocked in the common box */
    uint32_t fenced;          /* the owner's bell.fenced, or that it has a helper */
    _Atomic uint32_t lock;    /* common box only */
    uint32_t tail;            /* common box only: where the next record goes */

    /* written by the receiver */
    TERN_ALIGNED(CACHE_LINE) _Atomic uint32_t head; /* bytes consumed since the beginning, modulo 2^32 */
};
static_assert(sizeof(struct shm_box) == 2 * CACHE_LINE, "shared layout: writers and reader do not share a line");

/* The word of a record but for the sender in its upper half. 0 is "nothing here"; ids are never 0. */
static inline uint64_t shm_word(size_t bytes, unsigned id) { return (uint64_t)bytes | (uint64_t)id << 24; }
static inline uint32_t shm_word_bytes(uint64_t w) { return (uint32_t)w & 0xffffff; }
static inline unsigned shm_word_id(uint64_t w) { return (uint8_t)(w >> 24); }
static inline uint32_t shm_word_from(uint64_t w) { return (uint32_t)(w >> 32); }

static inline uint32_t shm_record_bytes(size_t payload)
{
    return (uint32_t)round_up(SHM_RECORD_HEAD + payload, CACHE_LINE);
}

static inline struct shm_box *shm_box_at(struct shm_segment *s, uint32_t i)
{
    return (struct shm_box *)((char *)s + s->box_off) + i;
}
static inline char *shm_ring_at(struct shm_segment *s, uint32_t i)
{
    return (char *)s + s->ring_off + (uint64_t)i * s->box_bytes;
}

#endif
