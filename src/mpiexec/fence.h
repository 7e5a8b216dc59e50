/*
 * fence.h - fences of PMIx clients on several nodes: what the servers of the nodes gathered from their clients is put
 * together by the root, and everybody gets the whole.
 *
 *     node: all local participants are there --TREE_FENCE--> root: has it from all nodes that take part
 *     node: hands the bytes to its clients <--TREE_FENCE_DONE--'
 *
 *     TREE_FENCE       head, status, bytes             head: kind (8 bits), number of ranks (0 = all of the job),
 *     TREE_FENCE_DONE  head, status, all the bytes           ranks, ascending
 *
 * Fences of the same kind and participants are told apart by their order: a node takes part in the next one only when
 * the last one is under way, and messages keep their order.
 */
#ifndef TERN_MPIEXEC_FENCE_H
#define TERN_MPIEXEC_FENCE_H

#include "mpiexec/launch.h"

enum fence_kind { FENCE_EXCHANGE, FENCE_CONNECT, FENCE_DISCONNECT, FENCE_KINDS };

/* Called on the main thread, once. `bytes` are malloc'ed, the receiver's to free; NULL if n = 0. The status is one of
 * PMIx's (0 = all is well). */
typedef void (*fence_done_fn)(void *arg, int status, char *bytes, size_t n);

/* Main thread; takes messages from here on. */
void fence_open(struct job *);

/* Any thread: all participants on this node are there, and have contributed n bytes (copied). `ranks` ascending, nranks
 * = 0 for all of the job. */
void fence_enter(enum fence_kind, const uint32_t *ranks, uint32_t nranks, const char *bytes, size_t n, fence_done_fn,
                 void *arg);

#endif
