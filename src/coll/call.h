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
static inline int64_t coll_call_bytes_within(const struct comm *c, const struct coll_call *a) /* one group */
{
    if (unlikely(!(COLL_BY_RECV >> a->kind & 1))) return coll_call_bytes_long(c, a);
    return a->rtype ? a->rcount * a->rtype->size : 0;
}
static inline int64_t coll_call_bytes(const struct comm *c, const struct coll_call *a)
{
    return unlikely(c->inter) ? coll_call_bytes_long(c, a) : coll_call_bytes_within(c, a);
}

/* coll_call.root of a barrier. */
enum { COLL_LAST_BARRIER = 1 };

/* The kind that a call is noted as. Some ranks of a neighbourhood collective may carry it out as its kind for blocks of
 * lengths that differ, since their own differ, and others not: they have called the same. */
extern TERN_HIDDEN const uint8_t coll_noted_kind[COLL_KINDS];

/* Notes a call, which has been checked (pt2pt/call_log.h). */
void coll_call_open(void); /* once, before the first one */
/* With one group. The root of kinds that have none is 0. */
static inline void coll_call_note(struct pt_call_log *s, const struct coll_call *a, int64_t bytes)
{
    uint64_t what = ((uint64_t)(uint32_t)a->root << 32) + coll_noted_kind[a->kind] + 1;
    if (a->op) what += (uint64_t)a->op->index << 8;
    pt_call_log_note(s, what, bytes);
}

/* The same whatever the communicator: between two groups, what root and bytes are depends on the group. */
void coll_call_note_any(const struct comm *, const struct coll_call *);

/* The shape, but for the algorithm and its numbers (coll_select). */
void coll_call_shape(const struct comm *, const struct coll_call *, struct coll_shape *);

/* Does the program depend on arrays? */
static inline bool coll_call_has_arrays(const struct coll_call *a) { return a->scounts || a->rcounts; }

/* What goes with the shape, but for the blocks: borrowed from call and communicator. */
void coll_call_given(const struct comm *, const struct coll_call *, struct coll_given *);

/* Its blocks: columns in one allocation of *n_p numbers, the caller's; NULL columns where the call has none. NULL when
 * memory is out. */
int64_t *coll_call_blocks(const struct comm *, const struct coll_call *, struct coll_given *, size_t *n_p);

/* References to types and operator, to arrays of so many types as well: taken, and given back. */
void coll_call_hold(const struct coll_call *, int ranks);
void coll_call_let_go(const struct coll_call *, int ranks);

/* Has copies made of the arrays, which are the user's again when the call has returned: *mem_p, malloc'ed. False: memory is out. */
bool coll_call_keep_arrays(struct coll_call *, int ranks, void **mem_p);

/* Binds the slots of a frame. Types and operator are borrowed. */
int coll_call_bind(struct goal_frame *, const struct comm *, const struct coll_call *);

#endif
