/*
 * segment.h - layout of a rank's shared segment: what its peers on the node
 * map. It lies in a memfd (memory.c), so no file exists anywhere and nothing
 * can be left behind.
 *
 *   0        +-----------------------------------+
 *            | struct shm_segment                |  identity, doorbell, count of entries given out
 *   box_off  +-----------------------------------+
 *            | struct shm_box [boxes + 1]        |  control lines of the rings, each with its sender; the last is the
 * sender_off +-----------------------------------+  common one, whose senders lie behind it
 *            | struct shm_sender [senders-boxes] |
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
 * One writer, or several threads of one process (writers.c), and one reader. The reader polls the word of the line where the next
 * record will start. Invariant: in the free part of a ring the first 8 bytes of
 * every line are zero, so a line is "not yet written" until the writer stores the
 * word (release), last; the reader zeroes the line starts of a record it has
 * consumed and then gives the space back by `head` (release). A small message
 * thus moves one cache line and no shared counter.
 *
 * A ring that has been full keeps its pages. Its sender gives them back when it has waited for long (trim.c).
 *
 * A sender takes an entry before anything else, and writes its name there: the job, and
 * its rank in it. At the first record the receiver looks the name up in its own tables (jobs_index_of). So a
 * record carries only the number of the entry, and the receiver needs that only in the common ring.
 *
 *     FRESH --> TAKEN --> HELD --> ADMITTED          a sender of the own job is ADMITTED at once. One of another job
 *                 ^          \       /               is admitted to the common ring when the receiver knows its job
 *                 |           v     v
 *                 +-------- FREE  BARRED             FREE after the sender's last record (SHM_NOTE_LEAVE), or its death
 *                             ^     v
 *                             +-- ENDED              a sender that was given up here has closed this peer as well, and
 *                                                    writes nothing more
 *
 * A sender whose job is not known here (yet) is not read: its records stay in its ring, and it may not write into the
 * common ring. So an entry of the common ring that was never admitted is made FREE by the sender itself.
 *
 * The common box serves senders that came after all boxes were given out: its
 * writers take `lock`, never waiting for it. The lock names its holder. When the holder has died, the receiver takes
 * the lock back. Only the receiver can do that, as only it knows where the last complete record ends: where its own
 * reading stops.
 */
#ifndef TERN_TRANSPORT_SHM_SEGMENT_H
#define TERN_TRANSPORT_SHM_SEGMENT_H

#include "base/compiler.h"
#include "base/sleep.h"
#include "proc/jobs.h"
#include "transport/arena.h"

#define SHM_MAGIC 0x7e525348u
#define SHM_RECORD_HEAD 24 /* word, h0, h1 */
#define SHM_HEAP_BYTES ((uint64_t)64 << 20) /* address space, not memory */

struct shm_segment {
    uint32_t magic, version;
    struct proc_name name; /* of the owner */
    uint64_t bytes, box_off, ring_off, heap_off;
    uint32_t boxes, box_bytes;

    TERN_ALIGNED(CACHE_LINE) struct bell bell;

    TERN_ALIGNED(CACHE_LINE) _Atomic uint32_t given; /* entries that have been taken at least once */
    _Atomic uint32_t freed; /* of those, about as many as are free again */
    _Atomic uint32_t asked; /* how often a sender of another job has come to the common ring */
    uint32_t senders;
    struct arena_note arena;
    uint64_t sender_off;
    _Atomic uint32_t left; /* 1: the owner has taken its leave; set (release) after its last message */
};
static_assert(sizeof(struct shm_segment) == 3 * CACHE_LINE, "shared layout");

enum shm_sender_state { SHM_FRESH, SHM_FREE, SHM_TAKEN, SHM_HELD, SHM_ADMITTED, SHM_BARRED, SHM_ENDED };

struct shm_sender {
    _Atomic uint32_t state; /* enum shm_sender_state; HELD and ADMITTED (release) say that the rest is there */
    uint32_t pid;           /* of the sender, with its shm_card.host: is it still there? */
    uint64_t host;
    struct proc_name name;
};
static_assert(sizeof(struct shm_sender) == 32, "shared layout");

struct shm_box {
    /* written by the sender (or under `lock`) */
    _Atomic uint32_t blocked; /* 1: the sender found the ring full; wake it when there is room */
    uint32_t blocker;         /* common box only: entry of the last sender that found it full */
    _Atomic uint32_t fenced;  /* the owner's bell.fenced, or that it has a helper */
    _Atomic uint32_t lock;    /* common box only: entry of the sender that is writing, plus 1; 0: nobody */
    uint32_t tail;            /* common box only: where the next record goes */
    struct shm_sender sender; /* not in the common box; a line that the connection touches anyway */

    /* written by the receiver */
    TERN_ALIGNED(CACHE_LINE) _Atomic uint32_t head; /* bytes consumed since the beginning, modulo 2^32 */
};
static_assert(sizeof(struct shm_box) == 2 * CACHE_LINE, "shared layout: writers and reader do not share a line");

/* Of a record that is not delivered (AM_PAD): h0. */
enum shm_note { SHM_NOTE_NONE, SHM_NOTE_LEAVE };

/* The word of a record but for the number of the sender's entry in its upper half. 0 is "nothing here"; ids are never 0. */
static inline uint64_t shm_word(size_t bytes, unsigned id) { return (uint64_t)bytes | (uint64_t)id << 24; }
static inline uint32_t shm_word_bytes(uint64_t w) { return (uint32_t)w & 0xffffff; }
static inline unsigned shm_word_id(uint64_t w) { return (uint8_t)(w >> 24); }
static inline uint32_t shm_word_sender(uint64_t w) { return (uint32_t)(w >> 32); }

static inline uint32_t shm_record_bytes(size_t payload)
{
    return (uint32_t)round_up(SHM_RECORD_HEAD + payload, CACHE_LINE);
}

static inline struct shm_box *shm_box_at(struct shm_segment *s, uint32_t i)
{
    return (struct shm_box *)((char *)s + s->box_off) + i;
}
static inline struct shm_sender *shm_sender_at(struct shm_segment *s, uint32_t i)
{
    if (i < s->boxes) return &shm_box_at(s, i)->sender;
    return (struct shm_sender *)((char *)s + s->sender_off) + (i - s->boxes);
}
static inline char *shm_ring_at(struct shm_segment *s, uint32_t i)
{
    return (char *)s + s->ring_off + (uint64_t)i * s->box_bytes;
}

#endif
