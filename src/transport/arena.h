/*
 * arena.h - memory of this process that peers on the node can map: what
 * MPI_Alloc_mem gives out where there are peers. A copy from or into it needs no
 * system call and no permission beyond that of the segments.
 *
 *   an arena:      | unused page | block | free | block | ... free |         size, doubles when used up
 *
 *   own memfd:     | arena |                                                 the file grows with it
 *   node memory:   | segments of all ranks | arena | arena | ... |           room for one of each rank (arena_room)
 *                                          ^ arena_note.offset of the first
 *
 *   here:          mapped at the front of one reserved address range, so blocks never move
 *   at a peer:     mapped whole, and more of it when it has grown (tp_ops.map_arena)
 *
 * A byte has a place: its distance from the start of the arena, never 0. The arena is
 * a memfd of its own, or, where ranks cannot open each other's descriptors, this rank's
 * part of the node memory (shm/memory.c); arena_note.offset says where it starts. No
 * file has a name, so nothing is left behind when the process dies, however it dies.
 * The book-keeping is private memory, which a peer that writes astray cannot reach.
 *
 * Pages are the system's when nobody has touched them, and again when more than
 * ARENA_WARM bytes have been freed.
 *
 * Threads: any (a lock inside).
 */
#ifndef TERN_TRANSPORT_ARENA_H
#define TERN_TRANSPORT_ARENA_H

#include "base/compiler.h"
#include <stdatomic.h>

#define ARENA_MIN ((size_t)16 << 10)   /* smaller blocks never travel alone: ordinary memory serves them better */
#define ARENA_WARM ((size_t)32 << 20)  /* freed bytes kept for the next allocation; as glibc's malloc, at most */
#define ARENA_HUGE ((size_t)2 << 20)   /* blocks from here on begin at a border of a large page */

/* What peers are told of the arena, in the segment. */
struct arena_note {
    _Atomic uint64_t id;     /* of the file (memfile_id_of) */
    _Atomic uint64_t offset; /* of the arena in it */
    _Atomic uint64_t bytes;  /* so far */
    _Atomic uint32_t fd;     /* descriptor of the file + 1, 0 while there is none; set last (release) */
    uint32_t pad;
};
static_assert(sizeof(struct arena_note) == 32, "shared layout");

/* Room in a file that peers have already: [offset, offset + bytes) of fd, taken instead of a memfd of this process's
 * own if *apart says, when the first block is asked for, that peers cannot open descriptors of each other. */
struct arena_room {
    int fd;
    uint64_t offset, bytes;
    const _Atomic uint32_t *apart;
};
void arena_offer(const struct arena_room *);

/* From now on the note for the peers at `where` is kept up to date. NULL: there are no peers any more. The memory
 * itself stays as long as a block of it is in use. */
void arena_publish(struct arena_note *where);

/* A block at a multiple of `align` (a power of two; that of a page at least); NULL without words: not to be had. */
void *arena_alloc(size_t bytes, size_t align);

enum arena_result { ARENA_FREED, ARENA_FOREIGN /* no memory of the arena */, ARENA_WRONG /* in it, and no block */ };
enum arena_result arena_free(void *);

extern TERN_HIDDEN _Atomic uintptr_t arena_base, arena_bytes; /* of the part that is mapped; 0 before the first block */

/* The place of the byte at p if [p, p + n) lies in the arena, else 0. */
static inline uint64_t arena_place(const void *p, size_t n)
{
    /* relaxed: who has a block got it after these were set */
    uintptr_t at = (uintptr_t)p - atomic_load_explicit(&arena_base, memory_order_relaxed);
    uintptr_t bytes = atomic_load_explicit(&arena_bytes, memory_order_relaxed);
    return at < bytes && n <= bytes - at ? at : 0;
}

#endif
