/*
 * recv.c - receiving: a receive meets a message, whichever comes first.
 */
#include "base/err.h"
#include "copy/copy.h"
#include "pt2pt/api.h"
#include "pt2pt/check.h"
#include "pt2pt/lost.h"
#include "pt2pt/protocol.h"
#include "type/cursor.h"

#include <string.h>

static TERN_COLD void deliver_general(struct request *r, const void *data, size_t n)
{
    struct type_cursor c;
    type_cursor_init(&c, r->type, r->count, r->buf);
    type_unpack(&c, data, n);
}

TERN_COLD int pt_too_long(const struct request *r, int32_t source, int32_t tag, uint64_t bytes)
{
    if (r->ctx & CTX_COLL)
        return err_set(
            TERN_ERR_TRUNCATE,
            "rank %d gives %llu bytes in a collective where this rank has room for %lld: do they agree on the counts?",
            source, (unsigned long long)bytes, (long long)r->bytes);
    return err_set(TERN_ERR_TRUNCATE,
                   "the message of %llu bytes from rank %d with tag %d is longer than the receive buffer of %lld bytes",
                   (unsigned long long)bytes, source, tag, (long long)r->bytes);
}

void pt_deliver(struct request *r, int32_t source, int32_t tag, const void *data, size_t n)
{
    int error = 0;
    r->result.source = source;
    r->result.tag = tag;
    if (unlikely(pt_checking)) error = pt_check_receive(r, source, tag, n);
    if (unlikely(n > (size_t)r->bytes)) {
        error = pt_too_long(r, source, tag, n);
        n = (size_t)r->bytes;
    }
    r->result.bytes = (int64_t)n;
    if (likely(r->type->contig)) {
        char *to = (char *)r->buf + r->type->true_lb;
        if (n == 8) memcpy(to, data, 8);
        else if (n && data != to) copy_memory(to, data, n); /* equal: a sink */
    } else {
        deliver_general(r, data, n);
    }
    lane_finish(r, error);
}

/* ---- messages that come ---- */

/* Contexts that messages have come for and no communicator was made for yet: many more than there can be honestly. */
#define EARLY_MAX 65536

/* Eager bytes of one peer that may lie here, in units of the credit. A peer that heeds its quota stays far below. */
#define EXCESS 16

static bool is_member(const struct comm *c, const struct peer *from, int32_t source)
{
    return source < c->map->size && rankmap_at(c->map, source) == from->index;
}

/* Negative tags are the library's own (coll/port_pt2pt.c). */
static inline bool env_possible(uint64_t ctx, uint64_t env)
{
    return env_source(env) >= 0 && (env_tag(env) >= 0 || (ctx & CTX_COLL));
}

/* The matching state for a message, NULL if it cannot be, or its sender was given up. */
static TERN_COLD struct pt_comm *context_of_stranger(struct peer *from, struct pt_comm *pt, uint64_t ctx, uint64_t env)
{
    if (from->lost) return NULL;
    if (!pt) lane_fatal("no memory for the messages of a communicator");
    if (pt->comm && env_possible(ctx, env) && is_member(pt->comm, from, env_source(env))) return pt;
    bool early = !pt->comm && env_possible(ctx, env); /* who sent it is checked in pt_check_early */
    if (early && lane0.ctx_early <= EARLY_MAX) return pt;
    if (early) pt_violation(from, "messages for %u unknown communicators", lane0.ctx_early);
    else pt_violation(from, "a message as if from rank %d of a communicator, with tag %d", env_source(env), env_tag(env));
    return NULL;
}

static inline struct pt_comm *context(struct peer *from, uint64_t ctx, uint64_t env)
{
    struct pt_comm *pt = likely(!from->lost) ? lane_ctx(&lane0, ctx) : NULL;
    bool good = pt && pt->comm && !(env & MATCH_HOLE) && is_member(pt->comm, from, env_source(env));
    return likely(good) ? pt : context_of_stranger(from, pt, ctx, env);
}

static void find_stranger(void *what, int src, int tag, void *arg)
{
    struct pt_comm *pt = ((void **)arg)[0];
    struct match_body *b = what, **found = &((struct match_body **)arg)[1];
    (void)tag;
    if (!is_member(pt->comm, b->peer, src)) *found = b;
}

void pt_check_early(struct pt_comm *pt)
{
    for (int half = 0; half < 2; half++)
        for (;;) {
            void *arg[2] = {pt, NULL};
            match_each(&pt->match[half].unexpected, find_stranger, arg);
            struct match_body *b = arg[1];
            if (!b) break;
            pt_violation(b->peer, "a message as if from rank %d of a communicator", b->src);
            match_withdraw(&pt->match[half], b);
            pt_drop_body(b);
        }
}

/* From so many bytes on the payload stays where the transport has it, if it can: it costs more to copy than to keep. */
#define KEEP_LEAST 4096

static void end_loan(void *kept) { tp_release(kept); }

/* NULL: the payload is to be copied. */
static struct match_body *lent_body(unsigned cookies, const void *data, size_t n)
{
    struct tp_kept *k = n < KEEP_LEAST || cookies > 1 ? NULL : tp_keep_in_place(data, n, TP_KEEP_LONG);
    if (!k) return NULL;
    struct match_body *b = match_body_lend(&lane0.pool, cookies, (uint32_t)n, k->data, end_loan, k);
    if (!b) lane_fatal("no memory for an unexpected message");
    return b;
}

static struct match_body *copied_body(unsigned cookies, const void *data, size_t n)
{
    struct match_body *b = match_body_new(&lane0.pool, cookies, (uint32_t)n);
    if (!b) lane_fatal("no memory for an unexpected message");
    if (n) copy_memory(match_body_payload(b), data, n);
    return b;
}

static TERN_COLD struct match_body *new_body(struct peer *from, uint64_t env, enum body_kind kind, const uint64_t cookie[3],
                                             uint64_t length, const void *data, size_t n)
{
    unsigned cookies = kind == BODY_EAGER ? 0 : kind == BODY_SYNC ? 1 : 3;
    struct match_body *b = lent_body(cookies, data, n);
    if (!b) b = copied_body(cookies, data, n);
    b->peer = from;
    b->src = env_source(env);
    b->tag = env_tag(env);
    b->length = length;
    b->kind = (uint8_t)kind;
    for (unsigned i = 0; i < b->cookies; i++) b->cookie[i] = cookie[i];
    if (kind != BODY_OFFER) from->stored += eager_cost(n);
    return b;
}

static TERN_COLD void store(struct pt_comm *pt, struct peer *from, uint64_t ctx, uint64_t env, enum body_kind kind,
                            const uint64_t cookie[3], uint64_t length, const void *data, size_t n)
{
    if (n > UINT32_MAX || from->stored / EXCESS > lane0.credit) {
        pt_violation(from, "%lld bytes of eager messages that nobody has received yet", (long long)from->stored + (long long)n);
        return;
    }
    struct match_body *b = new_body(from, env, kind, cookie, length, data, n);
    if (unlikely(pt->gone & PT_GONE_LOST) && (ctx & CTX_COLL) && !pt_tag_is_for_two(env_tag(env))) {
        pt_swallow(b);
        return;
    }
    if (unlikely(pt_checking)) pt_check_keep(b);
    if (match_store(&pt->match[ctx & CTX_COLL], b->src, b->tag, b)) lane_fatal("no memory for an unexpected message");
    lane_stored(&lane0);
}

void pt_drop_body(struct match_body *b)
{
    if (b->kind != BODY_OFFER) ((struct peer *)b->peer)->stored -= eager_cost(b->held);
    match_body_free(&lane0.pool, b);
}

void pt_free_body(struct match_body *b)
{
    if (b->kind != BODY_OFFER) pt_consumed(b->peer, b->held);
    pt_drop_body(b);
}

/* The receive for a message: one that was found when its header came, or the first that fits. */
static inline struct request *receiver(struct pt_comm *pt, struct peer *from, uint64_t h0, uint64_t h1)
{
    struct request *r = from->arriving;
    if (likely(!r)) return match_arrive(&pt->match[h0 & CTX_COLL], env_source(h1), env_tag(h1));
    from->arriving = NULL;
    return r;
}

/* Matches at once, so that the payload can go where it belongs; a receive that cannot take it as it is waits for the
 * handler all the same. From here on the receive cannot be cancelled, and ends with the message or with the peer. */
void *pt_sink_eager(struct peer *from, uint64_t h0, uint64_t h1, size_t n)
{
    struct pt_comm *pt = lane_known_ctx(&lane0, h0);
    if (from->lost || !pt || !pt->comm || !env_possible(h0, h1) || !is_member(pt->comm, from, env_source(h1))) return NULL;
    struct request *r = match_arrive(&pt->match[h0 & CTX_COLL], env_source(h1), env_tag(h1));
    from->arriving = r;
    return r && r->type->contig && n <= (size_t)r->bytes ? (char *)r->buf + r->type->true_lb : NULL;
}

void pt_on_eager(struct peer *from, uint64_t h0, uint64_t h1, const void *data, size_t n)
{
    struct pt_comm *pt = context(from, h0, h1);
    if (unlikely(!pt)) return;
    struct request *r = receiver(pt, from, h0, h1);
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
    struct pt_comm *pt = context(from, h0, h1);
    if (unlikely(!pt)) return;
    if (unlikely(n < sizeof send[0])) {
        pt_violation(from, "a synchronous message of %zu bytes", n);
        return;
    }
    memcpy(send, data, sizeof send[0]);
    data = (const char *)data + sizeof send[0];
    n -= sizeof send[0];
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
    struct pt_comm *pt = context(from, h0, h1);
    if (unlikely(!pt)) return;
    if (likely(n == sizeof rts)) memcpy(&rts, data, sizeof rts);
    if (unlikely(n != sizeof rts || rts.bytes > INT64_MAX || (rts.offer % CACHE_LINE && rts.offer != RTS_BULK))) {
        pt_violation(from, "the offer of a large message, of %zu bytes", n);
        return;
    }
    struct request *r = match_arrive(&pt->match[h0 & CTX_COLL], env_source(h1), env_tag(h1));
    if (r) {
        pt_offer_matched(r, from, env_source(h1), env_tag(h1), &rts);
        pt_offered(from, rts.bytes);
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
        pt_drop_body(b);
        pt_offer_matched(r, from, src, tag, &rts);
        return;
    }
    if (b->kind == BODY_SYNC) lane_control(from, AM_ACK, b->cookie[0], 0, NULL, 0);
    pt_consumed(from, b->held);
    pt_deliver(r, b->src, b->tag, match_body_payload(b), b->held);
    pt_drop_body(b);
}

/* A receive from any source is about to fail, as one of those that it may wait for is lost: not if its message has come.
 * True: it has. */
static TERN_COLD bool take_after_all(struct request *r, struct match *m)
{
    if (r->rank != MPI_ANY_SOURCE || r->ctx & CTX_COLL || !(r->comm->pt->gone & PT_GONE_SOURCE)) return false;
    lane_progress(r->comm->lane);
    struct match_body *b = match_take(m, r->rank, r->tag);
    if (b) pt_take_body(r, b);
    return b != NULL;
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
    int rc = 0;
    if (unlikely(r->comm->pt->gone)) {
        if (take_after_all(r, m)) return;
        rc = pt_source_lost(r->comm->pt, r->ctx, r->rank, r->tag, &r->peer);
    }
    if (likely(!rc)) rc = match_post(m, r->rank, r->tag, r);
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
    lane_leave_to_itself(c->lane, r);
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
