/*
 * memory.h - the memory of a window at one process: one piece, or, in a dynamic window, what that process has attached.
 *
 * Its owner shows it to the processes of its node: one piece in its exposure (exposure.h), what is attached in a table in its
 * segment.
 *
 *     win_exposure.attached    | version | place of the table |       one word; no place: nothing is shown
 *     table                    | n | struct win_region | struct win_region | ...
 *
 * A table does not change. Each attachment makes a new one, and the word says so; so nobody waits for anybody. A process that has
 * copied a table looks at the word again: if it is another one, what was copied may have been overwritten, and is copied again.
 *
 * What is not shown, for want of shared memory, is reached by messages, as is an operation on several pieces (near.h).
 *
 * Threads: under the lane of the window's communicator.
 */
#ifndef TERN_RMA_MEMORY_H
#define TERN_RMA_MEMORY_H

#include "base/compiler.h"

#include <mpi.h>
#include <stdint.h>

struct peer;
struct remote_key;
struct remote_mem;
struct win;
struct win_exposure;
struct win_region;
struct win_target;

/* A piece of memory, as its owner or an origin has it. */
struct win_memory {
    char *at;               /* it is mapped here; NULL: it is not */
    uint64_t address;       /* in its owner */
    uint64_t bytes;
    uint64_t serial;        /* which attachment it is */
    bool common;            /* all processes of the node reach it by loads and stores (apply.h) */
    struct remote_key *key; /* of an origin that has mapped it, else NULL */
    struct remote_mem *mem; /* of an owner that others map it from, else NULL */
};

/* What is attached: by address. */
struct win_attached {
    struct win_memory *of;
    int32_t n, room;
    uint64_t serial; /* owner: of the last attachment */
    uint64_t word;   /* origin: the one of which it is a copy */
    void *table;     /* owner: what others see, NULL: nothing */
    size_t table_bytes;
};

/* Prepares memory of this process for others: describes it, and registers it where they can map it. `near`: others are. */
int memory_show(struct win_memory *, bool near, struct win_region *);
void memory_hide(struct win_memory *);

/* Memory of a target that is on this node, by its description. */
int memory_open(struct win_target *, const struct win_region *, struct win_memory *);
void memory_close(struct win_memory *);

/* MPI_Win_attach, MPI_Win_detach. TERN_ERR_WIN_ATTACH: it overlaps with what is attached, or is not attached. */
int memory_attach(struct win *, void *base, MPI_Aint bytes);
int memory_detach(struct win *, const void *base);

/* The piece that this process has attached where [address, address + bytes) begins, and all of that lies in; NULL: none. */
const struct win_memory *memory_of_own(const struct win *, uint64_t address, uint64_t bytes);

/* The same of a target on this node; NULL: none is known. */
const struct win_memory *memory_of(struct win_target *, uint64_t address, uint64_t bytes);

/* The end: of the window, or of a target. */
void attached_close(struct win_attached *);

#endif
