/*
 * recv.c - receiving: a receive meets a message, whichever comes first.
 */
#include "base/err.h"
#include "copy/copy.h"
#include "pt2pt/api.h"
#include "pt2pt/check.h"
#include "pt2pt/protocol.h"
#include "type/cursor.h"

#include <string.h>

static TERN_COLD void give_credit(struct peer *p)
{
    uint64_t owed = (uint64_t)p->owed;
    p->owed = 0;
    lane_control(p, AM_CREDIT, owed, 0, NULL, 0);
}

void pt_consumed(struct peer *p, size_t n)
{
    p->owed += eager_cost(n);
    if (unlikely(p->owed > lane0.credit / 2)) give_credit(p);
}

static TERN_COLD void deliver_general(struct request *r, const void *data, size_t n)
{
    struct type_cursor c;
    type_cursor_init(&c, r->type, r->count, r->buf);
    type_unpack(&c, data, n);
}

void pt_deliver(struct request *r, int32_t source, int32_t tag, const void *data, size_t n)
{
    int error = 0;
    r->result.source = source;
    r->result.tag = tag;
    if (unlikely(pt_checking)) error = pt_check_receive(r, source, tag, n);
    if (unlikely(n > (size_t)r->bytes)) {
        error = TERN_ERR_TRUNCATE;
        n = (size_t)r->bytes;
    }
    r->result.bytes = (int64_t)n;
    if (likely(r->type->contig)) {
        if (n == 8) memcpy((char *)r->buf + r->type->true_lb, data, 8);
        else if (n) memcpy((char *)r->buf + r->type->true_lb, data, n);
    } else {
        deliver_general(r, data, n);
    }
    lane_finish(r, error);
}

/* ---- messages that come ---- */

static TERN_COLD void store(struct pt_comm *pt, struct peer *from, uint64_t ctx, uint64_t env, enum body_kind kind,
                            const uint64_t cookie[3], uint64_t length, const void *data, size_t n)
{
    struct match_body *b = match_body_new(&lane0.pool, kind == BODY_EAGER ? 0 : kind == BODY_SYNC ? 1 : 3, (uint32_t)n);
    if (!b) lane_fatal("no memory for an unexpected message");
    b->peer = from;
    b->src = env_source(env);
    b->tag = env_tag(env);
    b->length = length;
    b->kind = (uint8_t)kind;
    for (unsigned i = 0; i < b->cookies; i++) b->cookie[i] = cookie[i];
    if (n) memcpy(match_body_payload(b), data, n);
    if (unlikely(pt_checking)) pt_check_keep(b);
    if (match_store(&pt->match[ctx & CTX_COLL], b->src, b->tag, b)) lane_fatal("no memory for an unexpected message");
}

static inline struct pt_comm *context(uint64_t ctx)
{
    struct pt_comm *pt = lane_ctx(&lane0, ctx);
    if (unlikely(!pt)) lane_fatal("no memory for the messages of a communicator");
    return pt;
}

void pt_on_eager(struct peer *from, uint64_t h0, uint64_t h1, const void *data, size_t n)
{
    struct pt_comm *pt = context(h0);
    struct request *r = match_arrive(&pt->match[h0 & CTX_COLL], env_source(h1), env_tag(h1));
    if (unlikely(!r)) {
        store(pt, from, h0, h1, BODY_EAGER, NULL, n, data, n);
        return;
    }
    pt_consumed(from, n);
    pt_deliver(r, env_source(h1), env_tag(h1), data, n);
}

void pt_on_eager_sync(struct peer *from, uint64_t h0, uint64_t h1, const void *data, size_t n)
{
    uint64_t send[3] = {0};
    memcpy(send, data, sizeof send[0]);
    data = (const char *)data + sizeof send[0];
    n -= sizeof send[0];
    struct pt_comm *pt = context(h0);
    struct request *r = match_arrive(&pt->match[h0 & CTX_COLL], env_source(h1), env_tag(h1));
    if (!r) {
        store(pt, from, h0, h1, BODY_SYNC, send, n, data, n);
        return;
    }
    pt_consumed(from, n);
    lane_control(from, AM_ACK, send[0], 0, NULL, 0);
    pt_deliver(r, env_source(h1), env_tag(h1), data, n);
}

void pt_on_rts(struct peer *from, uint64_t h0, uint64_t h1, const void *data, size_t n)
{
    struct pt_rts rts;
    (void)n;
    memcpy(&rts, data, sizeof rts);
    struct pt_comm *pt = context(h0);
    struct request *r = match_arrive(&pt->match[h0 & CTX_COLL], env_source(h1), env_tag(h1));
    if (r) {
        pt_offer_matched(r, from, env_source(h1), env_tag(h1), &rts);
        return;
    }
    uint64_t cookie[3] = {rts.send, rts.bytes, rts.offer};
    store(pt, from, h0, h1, BODY_OFFER, cookie, rts.bytes, NULL, 0);
}

/* ---- receives ---- */

void pt_take_body(struct request *r, struct match_body *b)
{
    struct peer *from = b->peer;
    if (unlikely(pt_checking)) pt_check_recall(b);
    if (b->kind == BODY_OFFER) {
        struct pt_rts rts = {b->cookie[0], b->cookie[1], b->cookie[2]};
        int32_t src = b->src, tag = b->tag;
        match_body_free(&lane0.pool, b);
        pt_offer_matched(r, from, src, tag, &rts);
        return;
    }
    if (b->kind == BODY_SYNC) lane_control(from, AM_ACK, b->cookie[0], 0, NULL, 0);
    pt_consumed(from, b->held);
    pt_deliver(r, b->src, b->tag, match_body_payload(b), b->held);
    match_body_free(&lane0.pool, b);
}

void pt_recv_start(struct request *r)
{
    r->bytes = r->count * r->type->size;
    struct match *m = &r->comm->pt->match[r->ctx & CTX_COLL];
    struct match_body *b = match_take(m, r->rank, r->tag);
    if (b) {
        pt_take_body(r, b);
        return;
    }
    int rc = match_post(m, r->rank, r->tag, r);
    if (unlikely(rc)) lane_finish(r, rc);
}

static const struct request_result from_nobody = {.source = MPI_PROC_NULL, .tag = MPI_ANY_TAG};

static TERN_COLD int irecv_null(struct request **req_p)
{
    struct request *r = request_new(REQ_RECV);
    if (!r) return TERN_ERR_NOMEM;
    r->result = from_nobody;
    r->comm = comm_ref(comm_self());
    r->type = type_of(MPI_BYTE);
    atomic_store_explicit(&r->complete, 1, memory_order_relaxed);
    *req_p = r;
    return 0;
}

int pt_irecv(struct comm *c, void *buf, int64_t count, struct type *t, int source, int tag, struct request **req_p)
{
    if (unlikely(source == MPI_PROC_NULL)) return irecv_null(req_p);
    struct request *r = request_new(REQ_RECV);
    if (unlikely(!r)) return TERN_ERR_NOMEM;
    pt_prepare(r, REQ_RECV, comm_ref(c), PT_USER, buf, count, t, source, tag, PT_STANDARD);
    type_ref(t);
    lane_enter(c->lane);
    pt_recv_start(r);
    lane_leave(c->lane);
    *req_p = r;
    return 0;
}

int pt_recv(struct comm *c, void *buf, int64_t count, struct type *t, int source, int tag, struct request_result *result)
{
    if (unlikely(source == MPI_PROC_NULL)) {
        *result = from_nobody;
        return 0;
    }
    struct request r;
    r.flags = 0;
    r.done = NULL;
    pt_prepare(&r, REQ_RECV, c, PT_USER, buf, count, t, source, tag, PT_STANDARD);
    lane_enter(c->lane);
    pt_recv_start(&r);
    lane_leave(c->lane);
    int rc = pt_wait(&r);
    *result = r.result;
    return rc;
}
