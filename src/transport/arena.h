/*
 * arena.h - memory of this process that peers on the node can map: what
 * MPI_Alloc_mem gives out where there are peers. A copy from or into it needs no
 * system call and no permission beyond that of the segments.
 *
 *   the memfd:   | unused page | block | free | block | ... free              | size, doubles when used up
 *   here:        mapped at the front of one reserved address range, so blocks never move
 *   at a peer:   mapped whole, once more when it has grown (tp_ops.window)
 *
 * A byte of it has a place: its offset in the memfd, never 0. No file has a name, so
 * nothing is left behind when the process dies, however it dies. The book-keeping is
 * private memory, which a peer that writes astray cannot reach.
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

/* Peers are told where the memory is by *where: 0, or the descriptor of the memfd + 1. NULL: there are no peers any
 * more. The memory itself stays as long as a block of it is in use. */
void arena_publish(_Atomic uint32_t *where);

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
