/*
 * exec.h - running a program: the frame (one run) and the port (who works for it).
 *
 * The interpreter knows neither MPI nor any transport: messages and local work go
 * through a port, so the same code runs inside the library, in the simulator of the
 * tests and in whatever other engine is given a block.
 *
 * A run: goal_frame_new, goal_bind for each slot the program touches, goal_start.
 * Operations without predecessors start straight from the list in the head; each
 * completion releases its successors, which start at once (GOAL-13..15). When all
 * are finished, or after an error when none is pending any more, done(frame) is
 * called, once. (A message that is longer than what was expected, or of another
 * type, is an error of the run, which goes on nevertheless.) The frame can then be started again (GOAL-16), with other buffers
 * if it is bound again; a program may have any number of frames running.
 *
 * Threads: a frame is driven by one thread at a time (callers hold the lane's lock);
 * frames of one program are independent of each other.
 */
#ifndef TERN_COLL_GOAL_EXEC_H
#define TERN_COLL_GOAL_EXEC_H

#include "coll/goal/goal.h"

struct goal_frame;
struct op;   /* of src/type; only passed on to the port */
struct type;

/*
 * What a slot of a frame is: `size` bytes of packed data an element, `extent` bytes of
 * memory from one element to the next. type NULL: plain bytes (size == extent == 1).
 */
struct goal_slot {
    char *base;
    struct type *type;
    int64_t size, extent;
};

/* Results of the port's send and recv besides negative error codes. */
enum { GOAL_DONE = 0, GOAL_LATER = 1 };

/*
 * A piece as memory: `len` bytes of packed data, which begin `skip` bytes (packed) into the element of `type` at buf.
 * type NULL: plain bytes at buf, skip 0. Pieces of messages and reductions begin and end between elements in every
 * sensible program; a port refuses others (TERN_ERR_PROGRAM).
 */
struct goal_buf {
    char *buf;
    struct type *type;
    int64_t skip, len;
};

struct goal_port {
    /*
     * Starts the message of operation `op` (op->peer, op->tag, op->piece). GOAL_DONE: finished, its buffer is
     * free (GOAL-11). GOAL_LATER: the port will call goal_op_done(frame, op, status), maybe before it returns.
     * An error ends the run. Must not block.
     */
    int (*send)(struct goal_frame *, const struct goal_op *);
    int (*recv)(struct goal_frame *, const struct goal_op *);
    /* Local work, done on return: to = from; inout = in op inout; out = a op b (out overlaps neither). */
    int (*copy)(struct goal_frame *, const struct goal_buf *from, const struct goal_buf *to);
    int (*reduce)(struct goal_frame *, const struct goal_buf *in, const struct goal_buf *inout);
    int (*reduce3)(struct goal_frame *, const struct goal_buf *a, const struct goal_buf *b, const struct goal_buf *out);
    /* After an error: messages pending shall be given up, each still reported by goal_op_done. May be NULL. */
    void (*cancel)(struct goal_frame *);
    /* Shall a copy be done later? True: the port will do it (goal_copy_now) and call goal_op_done. May be NULL: never. */
    bool (*put_off)(struct goal_frame *, const struct goal_op *);
};

struct goal_frame {
    const struct goal_head *block;
    const struct goal_port *port;
    struct goal_slot *slot; /* block->slot_count of them */
    uint32_t *met;          /* per operation: predecessors met so far in this run */
    uint32_t *ready;        /* queue of operations to start; each enters it once a run */
    uint32_t head, tail;    /* of ready */
    uint32_t left;          /* operations not yet finished */
    uint32_t in_flight;     /* started, not yet finished */
    int status;             /* first error of this run */
    bool running;           /* inside the interpreter's loop */
    bool active;            /* between goal_start and done */
    bool given_up;          /* after an error nothing is started any more */
    uint16_t code;          /* of the arithmetic that is being done */
    int tag;                /* of the run, for the port: with op->tag it identifies the message */
    const struct op *op;    /* of reductions */
    struct type *type; /* of reductions; also of a typed scratchpad */
    void *ctx;              /* the port's */
    void (*done)(struct goal_frame *); /* the run has ended with `status`; may free or restart the frame */
    void *owner;            /* of whoever set done */
    struct goal_prog *prog; /* a reference */
    void *scratch;
    size_t scratch_room;
};

/* A frame of `prog` (takes a reference) with the scratchpad of plain bytes bound. NULL: memory is out. */
struct goal_frame *goal_frame_new(struct goal_prog *prog, const struct goal_port *port);
void goal_frame_free(struct goal_frame *); /* not while active; NULL is fine */

/* Binds a slot to plain bytes: offset 0 is at base. The caller vouches for the program's range of this slot. */
static inline void goal_bind(struct goal_frame *f, unsigned slot, const void *base)
{
    if (slot < f->block->slot_count) f->slot[slot] = (struct goal_slot){(char *)base, NULL, 1, 1};
}

/* Binds a slot to elements of a datatype: element 0 is at base. size > 0. */
static inline void goal_bind_typed(struct goal_frame *f, unsigned slot, const void *base, struct type *type,
                                   int64_t size, int64_t extent)
{
    if (slot < f->block->slot_count) f->slot[slot] = (struct goal_slot){(char *)base, type, size, extent};
}

/*
 * Makes the scratchpad of a program with GOAL_TYPED_SCRATCH hold elements of a datatype: extent bytes from one
 * to the next, data of one element at [true_lb, true_lb + true_extent) from its address. TERN_ERR_NOMEM.
 */
int goal_bind_scratch(struct goal_frame *, struct type *, int64_t size, int64_t extent, int64_t true_lb,
                      int64_t true_extent);

/* Does a copy that was put off. 0 or a code. */
int goal_copy_now(struct goal_frame *, const struct goal_op *);

/* Starts a run with what is bound. done(frame) may be called before this returns. */
void goal_start(struct goal_frame *);

/* The port reports that `op`, for which it answered GOAL_LATER, has finished with status 0 or an error. */
void goal_op_done(struct goal_frame *, const struct goal_op *op, int status);

/* Where `len` bytes of packed data from byte `off` of a slot lie. */
static inline struct goal_buf goal_locate(const struct goal_slot *s, int64_t off, int64_t len)
{
    if (likely(!s->type)) return (struct goal_buf){s->base + off, NULL, 0, len};
    int64_t elem = off / s->size, skip = off % s->size;
    if (skip < 0) elem--, skip += s->size;
    return (struct goal_buf){s->base + elem * s->extent, s->type, skip, len};
}

static inline struct goal_buf goal_piece_buf(const struct goal_frame *f, const struct goal_piece *p)
{
    return goal_locate(&f->slot[goal_piece_slot(p)], p->off, goal_piece_len(p));
}

#endif
