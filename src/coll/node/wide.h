/*
 * wide.h - large collectives inside a node through wide slots: some sets of them, one wide slot a rank, used in
 * turn, in memory that the communicator gets at the first such call.
 *
 *     wide:  | set 0: slot of rank 0 | slot of rank 1 | ... | set 1: ... |      flags and counts: as in node.h
 *
 * Data that is in the caches is copied in and out in less time than the kernel takes to copy it once, and a slot that
 * is combined is only copied in. Ranks that share cores use two sets of large slots: a slice is a switch. Ranks with a
 * core each use more and smaller ones, so that one fills slots while the other empties those before.
 *
 * Blocking calls only.
 */
#ifndef TERN_COLL_NODE_WIDE_H
#define TERN_COLL_NODE_WIDE_H

#include "coll/node/block.h"

/* Bytes of a slice of the call's vector, or of each block: whole elements where they are combined. 0: the slots are too small. */
size_t node_wide_slice(const struct comm *, const struct coll_call *);

/* Does it. Collective. False: there is no memory, go another way; or *rc_p is a code. */
bool node_wide_run(struct node *, const struct coll_call *, int64_t bytes, int *rc_p);

/* The communicator goes: rank 0 gives the memory back. Lock held. */
void node_wide_free(struct node *);

#endif
