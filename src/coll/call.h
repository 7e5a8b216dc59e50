/*
 * call.h - what the arguments of a collective (struct coll_call) say, in the terms of
 * schedules: a shape, blocks, and where the slots of a frame lie.
 */
#ifndef TERN_COLL_CALL_H
#define TERN_COLL_CALL_H

#include "coll/coll.h"
#include "coll/goal/exec.h"

/* Sets of kinds, a bit each: those in which no rank sends itself anything, and those whose amount is what the receive
 * arguments say, at every rank of one group. */
enum {
    COLL_TO_OTHERS = 1u << COLL_BARRIER | 1u << COLL_BCAST | 1u << COLL_REDUCE | 1u << COLL_ALLREDUCE |
                     1u << COLL_REDUCE_SCATTER | 1u << COLL_REDUCE_SCATTER_BLOCK | 1u << COLL_SCAN | 1u << COLL_EXSCAN,
    COLL_BY_RECV = 1u << COLL_BARRIER | 1u << COLL_BCAST | 1u << COLL_REDUCE | 1u << COLL_ALLREDUCE |
                   1u << COLL_ALLGATHER | 1u << COLL_ALLTOALL | 1u << COLL_REDUCE_SCATTER_BLOCK | 1u << COLL_SCAN |
                   1u << COLL_EXSCAN
};

/* What this rank sends itself must be what it receives from itself: everything else is found out by messages. */
int coll_call_check_own(const struct comm *, const struct coll_call *);
static inline int coll_call_check(const struct comm *c, const struct coll_call *a)
{
    if (COLL_TO_OTHERS >> a->kind & 1) return 0;
    if (likely(!a->scounts && !a->rcounts && a->scount == a->rcount && a->stype == a->rtype)) return 0;
    return coll_call_check_own(c, a);
}

/* coll_shape.bytes of this call: see there. */
int64_t coll_call_bytes_long(const struct comm *, const struct coll_call *);
static inline int64_t coll_call_bytes(const struct comm *c, const struct coll_call *a)
{
    if (unlikely(!(COLL_BY_RECV >> a->kind & 1) || c->inter)) return coll_call_bytes_long(c, a);
    return a->rtype ? a->rcount * a->rtype->size : 0;
}

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
