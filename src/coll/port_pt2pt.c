/*
 * port_pt2pt.c - see port_pt2pt.h.
 *
 * A message's tag, from the highest bit on:
 *
 *     | 0 | 0 | seq modulo 2^14 | tag of the operation, 16 bits |   of the collectives that follow each other
 *     | 1 | number, 15 bits     | tag of the operation, 16 bits |   of a persistent collective (persist.c)
 *
 * The tag of the operation is mixed with the sign of the call (pt2pt/call_log.h), so
 * that no message meets another call. So the messages of collectives that are pending on a communicator at the same
 * time cannot meet, nor meet those of comm/talk.h (0, 1). INT32_MIN and MPI_ANY_TAG are no tags (match.h), so numbers
 * are neither 0 nor all ones.
 *
 * On an intercommunicator the messages within the own group go over the group's own communicator (comm.within), with a
 * number of that one's: each collective takes one of both.
 *
 * Messages of several pieces go through a packed copy of their own.
 *
 * Threads: everything here but coll_frame_new/free runs under the lane's lock.
 */
#include "coll/port_pt2pt.h"

#include "base/err.h"
#include "coll/cache.h"
#include "coll/coll.h"
#include "copy/copy.h"
#include "pt2pt/api.h"
#include "pt2pt/lane.h"
#include "transport/wire_lock.h"
#include "type/cursor.h"
#include "type/op.h"
#include <stdlib.h>
#include <string.h>

enum { PERSISTENT = 1 << 15 }; /* in goal_frame.tag, the upper half of a tag */

struct message {
    struct request req;
    const struct goal_op *op;
    char *bounce; /* packed copy of several pieces, or NULL */
};

struct coll_frame {
    struct goal_frame *goal;
    struct comm *comm;
    bool kept;            /* in the communicator's cache when it is idle; else it is for one run */
    uint16_t sign;        /* of the call that the run belongs to */
    int within_tag;       /* as goal->tag, for messages within the own group of an intercommunicator */
    struct message msg[]; /* by goal_op.index */
};

/* ---- local work ------------------------------------------------------------ */

static struct type_cursor cursor_at(const struct goal_buf *b)
{
    struct type_cursor c;
    type_cursor_init(&c, b->type, (b->skip + b->len + b->type->size - 1) / b->type->size, b->buf);
    type_cursor_seek(&c, (size_t)b->skip);
    return c;
}

static void copy_between_types(const struct goal_buf *from, const struct goal_buf *to)
{
    struct type_cursor in = cursor_at(from), out = cursor_at(to);
    char room[4096];
    for (size_t left = (size_t)from->len; left;) {
        size_t n = type_pack(&in, room, min_size(left, sizeof room));
        type_unpack(&out, room, n);
        left -= n;
    }
}

static int port_copy(struct goal_frame *f, const struct goal_buf *from, const struct goal_buf *to)
{
    (void)f;
    if (!from->type && !to->type) {
        copy_memory(to->buf, from->buf, (size_t)from->len);
    } else if (!to->type) {
        struct type_cursor c = cursor_at(from);
        type_pack(&c, to->buf, (size_t)from->len);
    } else if (!from->type) {
        struct type_cursor c = cursor_at(to);
        type_unpack(&c, from->buf, (size_t)from->len);
    } else {
        copy_between_types(from, to);
    }
    return 0;
}

static bool has_user_op(const struct goal_frame *f) { return f->op && f->op->index == OP_USER; }

static TERN_COLD bool leave_to_a_turn(struct lane *l, struct request *r)
{
    if (lane_is_no_caller()) lane_defer(l, r);
    else if (wire_is_inside()) lane_do_later(l, r);
    else return false;
    return true;
}

/*
 * What follows the end of a request may be a user's operator. It does not run in the helper of a program without threads,
 * nor in a thread that has a wire's lock: it may take long, and would hold up messages for all others. True: `done` is called
 * again, in a turn of the lane, where it may.
 */
static inline bool ends_later(const struct coll_frame *c, struct request *r)
{
    if (likely(!this_is_the_helper && !wires_threaded) || !has_user_op(c->goal)) return false;
    return leave_to_a_turn(c->comm->lane, r);
}

/* A copy that was put off, in the lane's turn. */
static void copy_done(struct request *r)
{
    struct message *m = container_of(r, struct message, req);
    struct coll_frame *c = r->owner;
    if (!ends_later(c, r)) goal_op_done(c->goal, m->op, goal_copy_now(c->goal, m->op));
}

/* Behind a message that is under way: it brings somebody here. */
static bool port_put_off(struct goal_frame *f, const struct goal_op *op)
{
    struct coll_frame *c = f->ctx;
    struct message *m = &c->msg[op->index];
    int64_t len = 0;
    for (unsigned i = 0; i < op->n_in; i++) len += goal_piece_len(&op->piece[i]);
    if (likely(!lane_puts_off(c->comm->lane, len)) || f->in_flight == 1) return false;
    m->op = op;
    m->req.kind = REQ_NONE;
    m->req.owner = c;
    m->req.done = copy_done;
    lane_do_later(c->comm->lane, &m->req);
    return true;
}

TERN_COLD static int split_element(int64_t size)
{
    return err_set(TERN_ERR_PROGRAM, "a schedule splits an element of %lld bytes", (long long)size);
}

/* How many elements of the frame's datatype operands of `len` bytes have, none of which begins inside of one. */
static inline int elements(const struct goal_frame *f, int64_t len, int64_t skips, int64_t *n)
{
    int64_t size = f->type->size;
    *n = len / size;
    return likely(!skips && *n * size == len) ? 0 : split_element(size);
}

static int port_reduce(struct goal_frame *f, const struct goal_buf *in, const struct goal_buf *inout)
{
    int64_t n;
    int rc = elements(f, in->len, in->skip | inout->skip, &n);
    return rc ? rc : op_apply(f->op, in->buf, inout->buf, n, f->type);
}

static int port_reduce3(struct goal_frame *f, const struct goal_buf *a, const struct goal_buf *b,
                        const struct goal_buf *out)
{
    int64_t n;
    int rc = elements(f, a->len, a->skip | b->skip | out->skip, &n);
    return rc ? rc : op_apply3(f->op, a->buf, b->buf, out->buf, n, f->type);
}

/* ---- messages --------------------------------------------------------------- */

/* Moves the pieces of an operation to or from one packed buffer. */
static void move_pieces(struct goal_frame *f, const struct goal_op *op, char *packed, bool gather)
{
    for (unsigned i = 0; i < (unsigned)op->n_in + op->n_out; i++) {
        struct goal_buf piece = goal_piece_buf(f, &op->piece[i]), flat = {packed, NULL, 0, piece.len};
        if (gather) port_copy(f, &piece, &flat);
        else port_copy(f, &flat, &piece);
        packed += piece.len;
    }
}

TERN_COLD static int bounce(struct goal_frame *f, struct message *m, unsigned pieces, struct goal_buf *buf)
{
    int64_t len = 0;
    for (unsigned i = 0; i < pieces; i++) len += goal_piece_len(&m->op->piece[i]);
    m->bounce = malloc((size_t)len + 1);
    if (!m->bounce) return err_set(TERN_ERR_NOMEM, "no memory for %lld bytes of a collective's message", (long long)len);
    if (m->op->type == GOAL_OP_SEND) move_pieces(f, m->op, m->bounce, true);
    *buf = (struct goal_buf){m->bounce, NULL, 0, len};
    return 0;
}

static void unbounce(struct goal_frame *f, struct message *m)
{
    if (m->op->type == GOAL_OP_RECV && !m->req.result.error) move_pieces(f, m->op, m->bounce, false);
    free(m->bounce);
    m->bounce = NULL;
}

/* Of runs that are waited for where they are started. */
static void run_done(struct goal_frame *f) { (void)f; /* the waiter looks at f->active */ }

static void message_done(struct request *r)
{
    struct message *m = container_of(r, struct message, req);
    struct coll_frame *c = r->owner;
    if (ends_later(c, r)) return;
    r->done = NULL; /* what still has one is pending, for port_cancel */
    if (unlikely(m->bounce)) unbounce(c->goal, m);
    goal_op_done(c->goal, m->op, r->result.error);
}

/* The tag of a message, from that of the run and that of the operation. */
static inline int tag_of(const struct coll_frame *c, int run, const struct goal_op *op)
{
    return (int)((uint32_t)run << 16 | (op->tag ^ c->sign));
}

/* Where the message of an operation goes: communicator, rank, and the run's tag there. */
struct way {
    struct comm *comm;
    int rank, tag;
};

static inline struct way way_of(const struct coll_frame *c, const struct goal_op *op)
{
    struct comm *comm = c->comm;
    if (likely(!comm->inter)) return (struct way){comm, op->peer, c->goal->tag};
    if (op->peer < comm->size) return (struct way){comm->within, op->peer, c->within_tag};
    return (struct way){comm, op->peer - comm->size, c->goal->tag};
}

/* Fills the request of an operation. */
static int prepare(struct goal_frame *f, const struct goal_op *op, uint8_t kind, struct message *m)
{
    struct coll_frame *c = f->ctx;
    unsigned pieces = (unsigned)op->n_in + op->n_out;
    struct goal_buf b = {NULL, NULL, 0, 0};
    m->op = op;
    if (likely(pieces == 1)) {
        b = goal_piece_buf(f, op->piece);
    } else if (pieces) {
        int rc = bounce(f, m, pieces, &b);
        if (rc) return rc;
    }
    struct type *type = b.type ? b.type : type_of(MPI_BYTE);
    int64_t count = b.len;
    if (unlikely(pt_checking) && type->contig && (b.skip || b.len % type->size)) { /* has a type only for the check */
        b.buf = (char *)b.buf + type->true_lb + b.skip;
        b.skip = 0;
        b.type = NULL;
        type = type_of(MPI_BYTE);
    }
    if (b.type) {
        count = b.len / type->size;
        if (unlikely(b.skip || count * type->size != b.len)) return split_element(type->size);
    }
    struct way w = way_of(c, op);
    int tag = tag_of(c, w.tag, op);
    pt_prepare(&m->req, kind, w.comm, PT_COLL, b.buf, count, type, w.rank, tag, PT_STANDARD);
    m->req.done = NULL;
    m->req.owner = c;
    m->req.flags |= REQ_LAST_WORD; /* the end of the run may free the frame, and this request with it */
    return 0;
}

/* What the port answers for a request just started: done at once, or a call of message_done later. */
static int started(struct goal_frame *f, struct message *m)
{
    if (request_is_complete(&m->req)) {
        if (unlikely(m->bounce)) unbounce(f, m);
        return m->req.result.error;
    }
    m->req.done = message_done;
    return GOAL_LATER;
}

/* A small message of one piece of plain bytes, or none, needs no request. */
static inline bool sent_at_once(struct goal_frame *f, const struct goal_op *op)
{
    const struct coll_frame *c = f->ctx;
    struct goal_buf b = {NULL, NULL, 0, 0};
    if (op->n_in > 1) return false;
    if (op->n_in) b = goal_piece_buf(f, op->piece);
    struct way w = way_of(c, op);
    int tag = tag_of(c, w.tag, op);
    if (b.type || pt_send_quick(w.comm, b.buf, (size_t)b.len, w.rank, tag)) return false;
    if (f->done != run_done) pt_look_again(w.comm, w.rank);
    return true;
}

static int port_send(struct goal_frame *f, const struct goal_op *op)
{
    if (likely(sent_at_once(f, op))) return GOAL_DONE;
    struct message *m = &((struct coll_frame *)f->ctx)->msg[op->index];
    int rc = prepare(f, op, REQ_SEND, m);
    if (unlikely(rc)) return rc;
    pt_send_start(&m->req);
    return started(f, m);
}

static int port_recv(struct goal_frame *f, const struct goal_op *op)
{
    struct message *m = &((struct coll_frame *)f->ctx)->msg[op->index];
    int rc = prepare(f, op, REQ_RECV, m);
    if (unlikely(rc)) return rc;
    pt_recv_start(&m->req);
    return started(f, m);
}

/* Receives that nobody may ever answer are taken back; sends end by themselves or with their peer. */
static void port_cancel(struct goal_frame *f)
{
    struct coll_frame *c = f->ctx;
    for (uint32_t i = 0; i < f->block->op_count; i++) {
        struct message *m = &c->msg[i];
        if (m->req.kind == REQ_RECV && m->req.done) pt_cancel_locked(&m->req);
    }
}

void coll_frame_give_up(struct coll_frame *c, int rank)
{
    const struct goal_head *block = c->goal->block;
    for (uint32_t i = 0; i < block->op_count && c->goal->active; i++) {
        struct message *m = &c->msg[i];
        if (m->req.kind == REQ_RECV && m->req.done && m->req.rank == rank) {
            pt_cancel_locked(&m->req);
            return; /* the frame may be gone */
        }
    }
}

static const struct goal_port port = {port_send, port_recv, port_copy, port_reduce, port_reduce3, port_cancel, port_put_off};

/* ---- frames ----------------------------------------------------------------- */

struct coll_frame *coll_frame_new(struct comm *comm, struct goal_prog *prog, bool kept)
{
    struct coll_frame *c = calloc(1, sizeof *c + prog->head.op_count * sizeof(struct message));
    struct goal_frame *f = c ? goal_frame_new(prog, &port) : NULL;
    if (!f) {
        free(c);
        return NULL;
    }
    f->ctx = c;
    c->goal = f;
    c->comm = comm;
    c->kept = kept;
    return c;
}

void coll_frame_free(void *frame)
{
    struct coll_frame *c = frame;
    if (!c) return;
    goal_frame_free(c->goal);
    free(c);
}

struct goal_frame *coll_frame_goal(struct coll_frame *c) { return c->goal; }

void coll_frame_give(struct coll_frame *c)
{
    struct goal_frame *f = c->goal;
    size_t bytes = sizeof *c + f->block->op_count * (sizeof(struct message) + 2 * sizeof(uint32_t)) + f->scratch_room;
    if (c->kept) coll_cache_put(c->comm->coll->cache, f->prog, c, bytes);
    else coll_frame_free(c);
}

/* ---- what a run in the background keeps ---- */

void coll_frame_forget(struct coll_frame *c)
{
    struct goal_frame *f = c->goal;
    for (unsigned i = 0; i < f->block->slot_count; i++)
        if (f->slot[i].type) f->slot[i] = (struct goal_slot){NULL, NULL, 1, 1};
    f->op = NULL;
    f->type = NULL;
}

void coll_frame_hold(struct coll_frame *c)
{
    struct goal_frame *f = c->goal;
    for (unsigned i = 0; i < f->block->slot_count; i++)
        if (f->slot[i].type) type_ref(f->slot[i].type);
    if (f->op) op_ref((struct op *)(uintptr_t)f->op);
    if (f->type) type_ref(f->type);
}

void coll_frame_let_go(struct coll_frame *c)
{
    struct goal_frame *f = c->goal;
    for (unsigned i = 0; i < f->block->slot_count; i++)
        if (f->slot[i].type) type_unref(f->slot[i].type);
    if (f->op) op_unref((struct op *)(uintptr_t)f->op);
    if (f->type) type_unref(f->type);
    coll_frame_forget(c);
}

/* ---- runs --------------------------------------------------------------------- */

void coll_frame_number(struct coll_frame *c, uint32_t seq)
{
    c->goal->tag = (int)(seq & 0x3fff);
    c->sign = (uint16_t)(seq >> 16);
    if (unlikely(c->comm->inter)) c->within_tag = (int)(c->comm->within->coll->seq++ & 0x3fff);
}

int coll_frame_tag(uint32_t seq) { return (int)((seq & 0x3fff) << 16 | seq >> 16); }

/* The group's own communicator has no persistent collectives but those of the intercommunicator: one number does. */
void coll_frame_keep_number(struct coll_frame *c, uint32_t number)
{
    c->goal->tag = c->within_tag = (int)(number | PERSISTENT);
}

uint32_t coll_frame_number_of(const struct coll_frame *c) { return (uint32_t)c->goal->tag & (PERSISTENT - 1); }

static bool is_over(void *arg) { return !((struct goal_frame *)arg)->active; }

void coll_frame_keep_words(const struct goal_frame *f, const struct request *r)
{
    err_recall(f, f->status);
    err_keep(r, f->status);
}

static TERN_COLD void recall(const struct coll_frame *c, const struct goal_frame *f)
{
    if (err_is_of_peer(f->status)) pt_recall_member(c->comm);
    else err_recall(f, f->status);
}

int coll_frame_run(struct coll_frame *c, uint32_t seq)
{
    struct goal_frame *f = c->goal;
    struct lane *lane = c->comm->lane;
    coll_frame_number(c, seq);
    f->done = run_done;
    lane_enter(lane);
    goal_start(f);
    lane_wait(lane, is_over, f, NULL);
    lane_leave(lane);
    if (unlikely(f->status)) recall(c, f); /* another thread may have found out */
    return f->status;
}
