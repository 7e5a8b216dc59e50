/*
 * call.h - what the arguments of a collective (struct coll_call) say, in the terms of
 * schedules: a shape, blocks, and where the slots of a frame lie.
 */
#ifndef TERN_COLL_CALL_H
#define TERN_COLL_CALL_H

#include "coll/coll.h"
#include "coll/goal/exec.h"

/* What this rank sends itself must be what it receives from itself: everything else is found out by messages. */
int coll_call_check(const struct comm *, const struct coll_call *);

/* coll_shape.bytes of this call: see there. */
int64_t coll_call_bytes(const struct comm *, const struct coll_call *);

/* The shape, but for the algorithm and its numbers (coll_select). */
void coll_call_shape(const struct comm *, const struct coll_call *, struct coll_shape *);

/* Does the program depend on arrays? */
static inline bool coll_call_has_arrays(const struct coll_call *a) { return a->scounts || a->rcounts; }

/* What goes with the shape, but for the blocks: borrowed from call and communicator. */
void coll_call_given(const struct comm *, const struct coll_call *, struct coll_given *);

/* Its blocks: columns in one allocation of *n_p numbers, the caller's; NULL columns where the call has none. NULL when
 * memory is out. */
int64_t *coll_call_blocks(const struct comm *, const struct coll_call *, struct coll_given *, size_t *n_p);

/* Binds the slots of a frame. Types and operator are borrowed. */
int coll_call_bind(struct goal_frame *, const struct comm *, const struct coll_call *);

#endif
