/*
 * build.h - making programs: operations are added and ordered by edges, then the
 * whole is sealed into a block (goal.h).
 *
 * Errors stick: after the first one (memory, an argument out of range) every call
 * does nothing and goal_seal returns it; so builders of collectives need no checks
 * between their lines.
 *
 * Threads: one thread at a time per builder.
 */
#ifndef TERN_COLL_GOAL_BUILD_H
#define TERN_COLL_GOAL_BUILD_H

#include "coll/goal/goal.h"

struct goal_build; /* opaque */

/* A place in a buffer: slot (enum goal_slot_name or beyond) and byte of packed data. */
struct goal_mem {
    int slot;
    int64_t off;
};

struct goal_part { /* one element of a scatter/gather list */
    struct goal_mem at;
    int64_t len;
};

typedef int goal_id;    /* names an operation of the builder; 0, 1, 2 ... in order of creation */
#define GOAL_NONE (-1)  /* "no operation": edges from or to it are not made */

static inline struct goal_mem goal_mem(int slot, int64_t off) { return (struct goal_mem){slot, off}; }

static inline struct goal_mem goal_plus(struct goal_mem m, int64_t bytes)
{
    return (struct goal_mem){m.slot, m.off + bytes};
}

/* A builder for the program of `rank` in a communicator of `size`. flags: enum goal_head_flag. NULL: memory is out. */
struct goal_build *goal_build_open(int rank, int size, unsigned flags);
void goal_build_close(struct goal_build *); /* NULL is fine */

/* Reserves bytes of the scratchpad, 64-aligned in packed bytes when it holds plain bytes. Returns the place. */
struct goal_mem goal_scratch(struct goal_build *, int64_t bytes);

/* Messages: len bytes to or from rank `peer`; tag 0..65535, unique between two ranks within the program. */
goal_id goal_send(struct goal_build *, int peer, int tag, struct goal_mem from, int64_t len);
goal_id goal_recv(struct goal_build *, int peer, int tag, struct goal_mem to, int64_t len);
goal_id goal_sendv(struct goal_build *, int peer, int tag, const struct goal_part *, int n);
goal_id goal_recvv(struct goal_build *, int peer, int tag, const struct goal_part *, int n);

/* Local operations, by the operator and datatype of the frame; lengths are multiples of the datatype's size. */
goal_id goal_copy(struct goal_build *, struct goal_mem from, struct goal_mem to, int64_t len);
goal_id goal_copyv(struct goal_build *, const struct goal_part *from, int n_from, const struct goal_part *to, int n_to);
goal_id goal_reduce(struct goal_build *, struct goal_mem in, struct goal_mem inout, int64_t len); /* inout = in op inout */
goal_id goal_reducev(struct goal_build *, const struct goal_part *in, int n_in, const struct goal_part *inout, int n_inout);
goal_id goal_reduce3(struct goal_build *, struct goal_mem a, struct goal_mem b, struct goal_mem out,
                     int64_t len); /* out = a op b; out overlaps neither */

/* Arithmetic on plain numbers (ARITH_CODE of arith.h): inout = inout op in. Each piece holds whole numbers. */
goal_id goal_arithv(struct goal_build *, unsigned code, const struct goal_part *in, int n_in, const struct goal_part *inout,
                    int n_inout);

goal_id goal_join(struct goal_build *);                     /* nothing; a point for edges to meet */
goal_id goal_stamp(struct goal_build *, struct goal_mem to); /* int64_t nanoseconds, monotonic clock (GOAL-9) */

/* `op` may start only when `before` has finished (or, second form, has been started). */
void goal_after(struct goal_build *, goal_id op, goal_id before);
void goal_after_start(struct goal_build *, goal_id op, goal_id before);

/*
 * A stage: a program for some of the ranks as a part of this one. Between open and close peers count the members of the
 * stage, tags begin at `tag`, and slots 0 and 1 lie where `slot` says; so that a builder made for all ranks of a
 * communicator serves the ranks of a node, or one of each. close puts all of it behind `before` and returns the
 * operation that ends it. Stages do not nest; `ranks` is the caller's until close.
 */
struct goal_stage {
    const int *ranks; /* of the members */
    int size, tag;
    struct goal_mem slot[2];
};
void goal_stage_open(struct goal_build *, const struct goal_stage *);
goal_id goal_stage_close(struct goal_build *, goal_id before);

/* How many operations there are; the sticky error, and setting it. */
int goal_count(const struct goal_build *);
int goal_build_error(const struct goal_build *);
void goal_build_fail(struct goal_build *, int code);

/*
 * Ends the building: the program, with one reference, in traversal order. TERN_ERR_PROGRAM with words when
 * the edges form a cycle. The builder is spent and only good for goal_build_close.
 */
int goal_seal(struct goal_build *, struct goal_prog **prog_p);

#endif
