/*
 * shared.h - the heap inside this process's shared segment: small blocks that
 * peers on the node reach by offset. The book-keeping is private; only the owner
 * allocates and frees. Without a segment (no shm transport) the heap is private
 * memory and only this process itself can use the offsets.
 *
 * Threads: shared_alloc, shared_free and shared_at by any thread, once threads share the transports (wire_lock.h); the rest,
 * and before that all, by one at a time.
 */
#ifndef TERN_TRANSPORT_SHARED_H
#define TERN_TRANSPORT_SHARED_H

#include "base/compiler.h"

/* The heap is [segment + off, + bytes). segment NULL: private memory of `bytes`. */
int shared_open(char *segment, uint64_t off, uint64_t bytes);
void shared_close(void);

/* Zeroed, line-aligned; NULL when the heap is used up. */
void *shared_alloc(size_t bytes, uint64_t *offset);
void shared_free(void *, size_t bytes);

bool shared_is_open(void);

/* False while the heap is private memory. */
bool shared_is_public(void);

/* The segment lies at `offset` of the memory of the node (proc_shared). Behind shared_open, which forgets it. */
void shared_in_node(uint64_t offset);

/* The place of something in the segment in that memory, plus 1; 0: it does not lie there. */
uint64_t shared_node_place(const void *);

/* The address behind an offset of this process's own heap; NULL if nothing was ever allocated there. */
void *shared_at(uint64_t offset);

#endif
