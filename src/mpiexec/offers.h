/*
 * offers.h - descriptors of the memory of ranks of this node, for processes of this job or another one that want to map it.
 * A process asks for a file; it is answered with a ticket, good for one use within some seconds, for which the launcher
 * hands out the descriptor at its socket (ASK_FILE, ASK_TAKE). The way of the question, through the launchers of both jobs,
 * cannot carry a descriptor, since part of it is TCP.
 *
 * The memory of the node is the launcher's own. A file that a rank has made for itself is taken from the rank, whose
 * process the launcher finds by the lock of its rank (src/proc/native.c): the launcher is its ancestor, so it may do what
 * processes that are siblings, or in name spaces of their own, may not.
 *
 * Threads: the main one only.
 */
#ifndef TERN_MPIEXEC_OFFERS_H
#define TERN_MPIEXEC_OFFERS_H

#include "mpiexec/asks.h"
#include "mpiexec/launch.h"

void offers_open(struct job *);

/* Answers with a ticket for the file of memory that the rank, one of this node, has open as `fd`; refused in words if that
 * is not the file with this key (memfile_key), or cannot be had. */
void offers_make(const struct asker *, uint64_t socket_id, uint32_t rank, uint32_t fd, uint64_t key);

/* The descriptor for a ticket, the caller's to close; -1: there is none. */
int offers_take(const void *ticket, size_t n);

#endif
