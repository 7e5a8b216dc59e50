/*
 * exec.c - the interpreter.
 *
 * One loop takes operations from the frame's queue and starts them. Whatever finishes
 * an operation (the loop itself, or the port through goal_op_done, from inside a call
 * of ours or later) adds the successors that have met all their predecessors to the
 * queue; only the outermost caller runs the loop, so nothing recurses. Counters count
 * up from zero: starting a frame again clears one small array.
 *
 * The block has been made by the builder or passed goal_verify; nothing is checked here
 * that those have checked.
 */
#include "coll/goal/exec.h"

#include "base/err.h"
#include "coll/goal/arith.h"
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- frames ------------------------------------------------------------- */

struct goal_frame *goal_frame_new(struct goal_prog *prog, const struct goal_port *port)
{
    const struct goal_head *h = &prog->head;
    size_t slots = h->slot_count * sizeof(struct goal_slot);
    size_t array = (size_t)h->op_count * sizeof(uint32_t);
    struct goal_frame *f = calloc(1, sizeof *f + slots + 2 * array);
    if (!f) return NULL;
    f->block = h;
    f->port = port;
    f->slot = (struct goal_slot *)(f + 1);
    f->met = (uint32_t *)(f->slot + h->slot_count);
    f->ready = f->met + h->op_count;
    f->prog = goal_ref(prog);
    if (h->scratch && !(h->flags & GOAL_TYPED_SCRATCH) && goal_bind_scratch(f, NULL, 1, 1, 0, 1)) {
        goal_frame_free(f);
        return NULL;
    }
    return f;
}

void goal_frame_free(struct goal_frame *f)
{
    if (!f) return;
    free(f->scratch);
    goal_unref(f->prog);
    free(f);
}

int goal_bind_scratch(struct goal_frame *f, struct type *type, int64_t size, int64_t extent, int64_t true_lb,
                      int64_t true_extent)
{
    int64_t n = size == 1 ? f->block->scratch : f->block->scratch / size;
    if (!n || f->block->slot_count <= GOAL_SCRATCH) return 0;
    int64_t stride = extent < 0 ? -extent : extent;
    size_t room = round_up((size_t)((n - 1) * stride + true_extent), CACHE_LINE);
    if (room > f->scratch_room) {
        void *p = aligned_alloc(CACHE_LINE, room);
        if (!p) return err_set(TERN_ERR_NOMEM, "no memory for %zu bytes of scratchpad of a collective", room);
        free(f->scratch);
        f->scratch = p;
        f->scratch_room = room;
    }
    char *base = (char *)f->scratch + (extent < 0 ? (n - 1) * stride : 0) - true_lb;
    f->slot[GOAL_SCRATCH] = (struct goal_slot){base, type, size, extent};
    return 0;
}

/* ---- local operations ---------------------------------------------------- */

/*
 * copy, reduce - the bytes of the pieces read, one piece after the other, are copied to (or, by the operator,
 * combined from the left into) the pieces written. The two lists may be cut differently; both have the same length.
 */
static int run_lists(struct goal_frame *f, const struct goal_op *op,
                     int (*work)(struct goal_frame *, const struct goal_buf *, const struct goal_buf *))
{
    const struct goal_piece *in = op->piece, *out = in + op->n_in, *end = in + op->n_in;
    int64_t in_pos = 0, out_pos = 0;
    if (likely(op->n_in == 1 && op->n_out == 1)) {
        struct goal_buf from = goal_piece_buf(f, in), to = goal_piece_buf(f, out);
        return work(f, &from, &to);
    }
    while (in < end) {
        int64_t in_left = goal_piece_len(in) - in_pos, out_left = goal_piece_len(out) - out_pos;
        int64_t n = in_left < out_left ? in_left : out_left;
        struct goal_buf from = goal_locate(&f->slot[goal_piece_slot(in)], in->off + in_pos, n);
        struct goal_buf to = goal_locate(&f->slot[goal_piece_slot(out)], out->off + out_pos, n);
        int rc = work(f, &from, &to);
        if (unlikely(rc)) return rc;
        in_pos += n;
        out_pos += n;
        if (n == in_left) in++, in_pos = 0;
        if (n == out_left && in < end) out++, out_pos = 0;
    }
    return 0;
}

int goal_copy_now(struct goal_frame *f, const struct goal_op *op) { return run_lists(f, op, f->port->copy); }

/* reduce3 - third piece = first piece op second piece. */
static int run_reduce3(struct goal_frame *f, const struct goal_op *op)
{
    struct goal_buf a = goal_piece_buf(f, op->piece), b = goal_piece_buf(f, op->piece + 1);
    struct goal_buf out = goal_piece_buf(f, op->piece + 2);
    return f->port->reduce3(f, &a, &b, &out);
}

/* arith - as reduce, on plain numbers: what is written = what is written, operator, what is read. */
static int combine(struct goal_frame *f, const struct goal_buf *in, const struct goal_buf *inout)
{
    if (in->type || inout->type) return err_set(TERN_ERR_PROGRAM, "a schedule does arithmetic in typed memory");
    return goal_arith(f->code, in->buf, inout->buf, (size_t)in->len);
}

static int run_arith(struct goal_frame *f, const struct goal_op *op)
{
    f->code = op->tag;
    return run_lists(f, op, combine);
}

/* stamp - writes the monotonic clock's nanoseconds as 8 bytes. */
static int run_stamp(struct goal_frame *f, const struct goal_op *op)
{
    struct goal_buf to = goal_piece_buf(f, op->piece);
    struct timespec now;
    if (to.type) return err_set(TERN_ERR_PROGRAM, "a schedule writes a time stamp into typed memory");
    clock_gettime(CLOCK_MONOTONIC, &now);
    int64_t ns = now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
    memcpy(to.buf, &ns, sizeof ns);
    return 0;
}

/* ---- the loop ------------------------------------------------------------ */

/* Begins one operation: GOAL_DONE, GOAL_LATER or an error. */
static inline int begin(struct goal_frame *f, const struct goal_op *op)
{
    switch (op->type) {
    case GOAL_OP_SEND: /* the pieces, one after the other, to rank `peer` under `tag` */
        return f->port->send(f, op);
    case GOAL_OP_RECV: /* from rank `peer` under `tag`; a message shorter than the pieces leaves their rest alone */
        return f->port->recv(f, op);
    case GOAL_OP_COPY:
        if (unlikely(f->port->put_off && f->port->put_off(f, op))) return GOAL_LATER;
        return run_lists(f, op, f->port->copy);
    case GOAL_OP_REDUCE: return run_lists(f, op, f->port->reduce);
    case GOAL_OP_REDUCE3: return run_reduce3(f, op);
    case GOAL_OP_JOIN: /* nothing to do: it exists for its edges */ return GOAL_DONE;
    case GOAL_OP_STAMP: return run_stamp(f, op);
    case GOAL_OP_ARITH: return run_arith(f, op);
    default: return err_set(TERN_ERR_INTERN, "operation type %u in a checked schedule", op->type);
    }
}

static inline void release(struct goal_frame *f, const uint32_t *to, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        const struct goal_op *next = goal_op_at(f->block, to[i]);
        if (++f->met[next->index] == next->dependencies) f->ready[f->tail++] = to[i];
    }
}

/*
 * The run ends with the first error. When a message came that is not what was expected, all others still have what they
 * wait for: the rest of the run is done, so that ranks that disagree about a count do not leave each other waiting.
 */
TERN_COLD static void fail(struct goal_frame *f, int status)
{
    if (!f->status) f->status = err_keep(f, status);
    if (f->given_up || status == TERN_ERR_TRUNCATE || status == TERN_ERR_TYPE) return;
    f->given_up = true;
    f->head = f->tail = 0; /* what waits in the queue is not started any more */
    if (f->in_flight && f->port->cancel) f->port->cancel(f);
}

static inline void finish(struct goal_frame *f, const struct goal_op *op, int status)
{
    f->in_flight--;
    f->left--;
    if (unlikely(status)) fail(f, status);
    if (likely(!f->given_up)) release(f, goal_edges(op), op->n_finish);
}

/* Starts whatever is ready until nothing is; then, if the run is over, tells its owner. */
static void run(struct goal_frame *f)
{
    f->running = true;
    while (f->head < f->tail) {
        const struct goal_op *op = goal_op_at(f->block, f->ready[f->head++]);
        f->in_flight++;
        int rc = begin(f, op);
        if (likely(!f->given_up)) release(f, goal_edges(op) + op->n_finish, op->n_start);
        if (rc != GOAL_LATER) finish(f, op, rc);
    }
    f->running = false;
    if (f->in_flight || (f->left && !f->given_up)) return;
    f->active = false;
    f->done(f); /* may free the frame */
}

void goal_start(struct goal_frame *f)
{
    const struct goal_head *h = f->block;
    memset(f->met, 0, h->op_count * sizeof *f->met);
    memcpy(f->ready, goal_indep(h), h->indep_ops_count * sizeof *f->ready);
    f->head = 0;
    f->tail = h->indep_ops_count;
    f->left = h->op_count;
    f->in_flight = 0;
    f->status = 0;
    f->given_up = false;
    f->active = true;
    run(f);
}

void goal_op_done(struct goal_frame *f, const struct goal_op *op, int status)
{
    bool outer = !f->running;
    f->running = true; /* reports from inside the port's cancel do not end the run under our feet */
    finish(f, op, status);
    if (outer) run(f);
}
