/*
 * recv.c - receiving: a receive meets a message, whichever comes first.
 */
#include "base/err.h"
#include "copy/copy.h"
#include "pt2pt/api.h"
#include "pt2pt/check.h"
#include "pt2pt/dispatch.h"
#include "pt2pt/lost.h"
#include "pt2pt/protocol.h"
#include "pt2pt/rndv/ahead.h"
#include "pt2pt/rndv/ready.h"
#include "pt2pt/say.h"
#include "transport/wire_lock.h"
#include "type/cursor.h"

#include <stdlib.h>
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
        err_set(TERN_ERR_TRUNCATE,
                "rank %d gives %llu bytes in a collective where this rank has room for %lld: do they agree on the counts?", source,
                (unsigned long long)bytes, (long long)r->bytes);
    else
        err_set(TERN_ERR_TRUNCATE,
                "the message of %llu bytes from rank %d with tag %d is longer than the receive buffer of %lld bytes",
                (unsigned long long)bytes, source, tag, (long long)r->bytes);
    return err_keep(r, TERN_ERR_TRUNCATE);
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

/* Eager bytes of one peer that may lie here, in units of the credit. A peer that heeds its quota stays far below. */
#define EXCESS 16

static bool is_member(const struct comm *c, const struct peer *from, int32_t source)
{
    return source < c->map->size && rankmap_at(c->map, source) == from->index;
}

void pt_stranger(struct peer *from, uint64_t env)
{
    pt_violation(from, "a message as if from rank %d of a communicator, with tag %d", env_source(env), env_tag(env));
}

static TERN_COLD bool is_strange(const struct pt_comm *pt, struct peer *from, uint64_t ctx, uint64_t env)
{
    if (env_possible(ctx, env) && is_member(pt->comm, from, env_source(env))) return false;
    pt_stranger(from, env);
    return true;
}

/* False: the sender is lost. */
static inline bool is_from_member(const struct pt_comm *pt, struct peer *from, uint64_t ctx, uint64_t env)
{
    bool good = !(env & MATCH_HOLE) && is_member(pt->comm, from, env_source(env));
    return likely(good) || !is_strange(pt, from, ctx, env);
}

bool pt_is_too_much(struct peer *from, size_t n)
{
    if (likely(n <= UINT32_MAX && counter_get(&from->stored) / EXCESS <= eager_store.credit)) return false;
    pt_violation(from, "%lld bytes of eager messages that nobody has received yet", (long long)counter_get(&from->stored) + (long long)n);
    return true;
}

/* From so many bytes on the payload stays where the transport has it, if it can: it costs more to copy than to keep. */
#define KEEP_LEAST 4096

static void end_loan(void *kept) { tp_release(kept); }

/* NULL: the payload is to be copied. */
static struct match_body *lent_body(struct lane *l, unsigned cookies, const void *data, size_t n)
{
    struct tp_kept *k = n < KEEP_LEAST || cookies > 1 ? NULL : tp_keep_in_place(data, n, TP_KEEP_LONG);
    if (!k) return NULL;
    struct match_body *b = match_body_lend(&l->pool, cookies, (uint32_t)n, k->data, end_loan, k);
    if (!b) lane_fatal("no memory for an unexpected message");
    return b;
}

static struct match_body *copied_body(struct lane *l, unsigned cookies, const void *data, size_t n)
{
    struct match_body *b = match_body_new(&l->pool, cookies, (uint32_t)n);
    if (!b) lane_fatal("no memory for an unexpected message");
    if (n) copy_memory(match_body_payload(b), data, n);
    return b;
}

static struct match_body *ahead_body(uint64_t msg)
{
    struct match_body *b = ahead_keep((struct ahead_msg *)(uintptr_t)msg);
    if (!b) lane_fatal("no memory for an unexpected message");
    return b;
}

static TERN_COLD struct match_body *new_body(struct lane *l, struct peer *from, uint64_t env, enum body_kind kind,
                                             const uint64_t cookie[3], uint64_t length, const void *data, size_t n)
{
    unsigned cookies = kind == BODY_EAGER ? 0 : kind == BODY_SYNC ? 1 : 3;
    struct match_body *b = kind == BODY_AHEAD ? ahead_body(cookie[0]) : lent_body(l, cookies, data, n);
    if (!b) b = copied_body(l, cookies, data, n);
    b->peer = from;
    b->src = env_source(env);
    b->tag = env_tag(env);
    b->length = length;
    b->kind = (uint8_t)kind;
    for (unsigned i = 0; i < b->cookies; i++) b->cookie[i] = cookie[i];
    if (kind != BODY_OFFER) pt_stored(l, from, b->held, 1);
    return b;
}

static TERN_COLD void store(struct pt_comm *pt, struct peer *from, uint64_t ctx, uint64_t env, enum body_kind kind,
                            const uint64_t cookie[3], uint64_t length, const void *data, size_t n)
{
    if (kind != BODY_AHEAD && pt_is_too_much(from, n)) return;
    struct match_body *b = new_body(pt->lane, from, env, kind, cookie, length, data, n);
    if (unlikely(pt->gone & PT_GONE_LOST) && (ctx & CTX_COLL) && !pt_tag_is_for_two(env_tag(env))) {
        pt_swallow(pt->lane, b);
        return;
    }
    if (unlikely(pt_checking)) pt_check_keep(b);
    if (unlikely(!list_empty(&pt->takers)) && !(ctx & CTX_COLL) && pt_hand_over(pt, b)) return;
    if (match_store(&pt->match[ctx & CTX_COLL], b->src, b->tag, b)) lane_fatal("no memory for an unexpected message");
    lane_stored(pt->lane);
}

void pt_drop_body(struct lane *l, struct match_body *b)
{
    if (b->kind != BODY_OFFER) pt_stored(l, b->peer, b->held, -1);
    match_body_free(&l->pool, b);
}

void pt_free_body(struct lane *l, struct match_body *b)
{
    if (b->kind != BODY_OFFER) pt_consumed(l, b->peer, b->held);
    pt_drop_body(l, b);
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
static struct request *match_header(struct pt_comm *pt, const struct peer *from, uint64_t h0, uint64_t h1)
{
    if (!env_possible(h0, h1) || !is_member(pt->comm, from, env_source(h1))) return NULL;
    return match_arrive(&pt->match[h0 & CTX_COLL], env_source(h1), env_tag(h1));
}

static char *place(const struct request *r) { return (char *)r->buf + r->type->true_lb; }

static void *place_for(const struct request *r, size_t n)
{
    return r && r->type->contig && n <= (size_t)r->bytes ? place(r) : NULL;
}

/* Not matched now if another thread is in the lane: the transport has room for what is eager. */
static struct request *match_shared(struct peer *from, uint64_t h0, uint64_t h1)
{
    struct lane *l = context_lane(h0);
    enum deliver_hold h = l ? deliver_begin(l, true) : HOLD_NONE;
    if (!h) return NULL;
    struct pt_comm *pt = context_in(l, h0);
    struct request *r = pt ? match_header(pt, from, h0, h1) : NULL;
    deliver_end(l, h);
    return r;
}

void *pt_sink_eager(struct peer *from, uint64_t h0, uint64_t h1, size_t n)
{
    if (from->lost) return NULL;
    if (unlikely(wires_threaded)) return place_for(from->sunk = match_shared(from, h0, h1), n);
    struct pt_comm *pt = context_of(h0);
    struct request *r = pt ? match_header(pt, from, h0, h1) : NULL;
    from->arriving = r;
    return place_for(r, n);
}

/* A message whose receive was found when its header came. */
struct arrived {
    struct mail mail;
    struct request *r;
    struct peer *from;
    uint64_t h1;
    size_t n;
    bool in_place;
    char data[];
};

static void arrive(struct request *r, struct peer *from, uint64_t h1, const void *data, size_t n)
{
    pt_consumed(lane_of(r), from, n);
    pt_deliver(r, env_source(h1), env_tag(h1), data, n);
}

static void open_arrived(struct lane *l, struct mail *mail)
{
    struct arrived *a = container_of(mail, struct arrived, mail);
    (void)l;
    arrive(a->r, a->from, a->h1, a->in_place ? place(a->r) : a->data, a->n);
    free(a);
}

static void post_arrived(struct request *r, struct peer *from, uint64_t h1, const void *data, size_t n)
{
    bool in_place = data == place_for(r, n);
    struct arrived *a = malloc(sizeof *a + (in_place ? 0 : n));
    if (!a) lane_fatal("no memory for a message that waits");
    *a = (struct arrived){.mail.open = open_arrived, .r = r, .from = from, .h1 = h1, .n = n, .in_place = in_place};
    if (!in_place && n) memcpy(a->data, data, n);
    deliver_post(lane_of(r), &a->mail);
}

void pt_arrived(struct peer *from, uint64_t h1, const void *data, size_t n)
{
    struct request *r = from->sunk;
    struct lane *l = lane_of(r);
    from->sunk = NULL;
    enum deliver_hold h = deliver_begin(l, false);
    if (!h) {
        post_arrived(r, from, h1, data, n);
        return;
    }
    arrive(r, from, h1, data, n);
    deliver_end(l, h);
}

static inline __attribute__((always_inline)) void on_eager(struct lane *l, struct pt_comm *pt, struct peer *from, uint64_t h0,
                                                           uint64_t h1, const void *data, size_t n)
{
    (void)l;
    if (unlikely(!is_from_member(pt, from, h0, h1))) return;
    struct request *r = receiver(pt, from, h0, h1);
    if (unlikely(!r)) {
        store(pt, from, h0, h1, BODY_EAGER, NULL, n, data, n);
        return;
    }
    pt_consumed(lane_of(r), from, n);
    pt_deliver(r, env_source(h1), env_tag(h1), data, n);
}

static void on_eager_sync(struct lane *l, struct pt_comm *pt, struct peer *from, uint64_t h0, uint64_t h1, const void *data,
                          size_t n)
{
    uint64_t send[3] = {0};
    if (unlikely(!is_from_member(pt, from, h0, h1))) return;
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
    pt_consumed(l, from, n);
    lane_say(l, from, AM_ACK, send[0], 0, NULL, 0);
    pt_deliver(r, env_source(h1), env_tag(h1), data, n);
}

/* Of pt_rts.offer. */
static bool is_offer(uint64_t offer)
{
    return !(offer & (CACHE_LINE - 1) & ~(uint64_t)RTS_READY) || offer == RTS_BULK || offer == RTS_AHEAD;
}

/* A large message whose data follow: it costs credit, as an eager one. */
static void on_ahead(struct lane *l, struct pt_comm *pt, struct peer *from, uint64_t h0, uint64_t h1, const struct pt_rts *rts)
{
    if (pt_is_too_much(from, rts->bytes)) return;
    struct ahead_msg *a = ahead_new(l, from, rts);
    if (!a) return;
    struct request *r = match_arrive(&pt->match[h0 & CTX_COLL], env_source(h1), env_tag(h1));
    if (r) {
        pt_consumed(l, from, rts->bytes);
        ahead_meet(a, r, env_source(h1), env_tag(h1));
        return;
    }
    uint64_t cookie[3] = {(uintptr_t)a};
    store(pt, from, h0, h1, BODY_AHEAD, cookie, rts->bytes, NULL, 0);
}

static void on_rts(struct lane *l, struct pt_comm *pt, struct peer *from, uint64_t h0, uint64_t h1, const void *data, size_t n)
{
    struct pt_rts rts;
    if (unlikely(!is_from_member(pt, from, h0, h1))) return;
    if (likely(n == sizeof rts)) memcpy(&rts, data, sizeof rts);
    if (unlikely(n != sizeof rts || rts.bytes > INT64_MAX || !is_offer(rts.offer))) {
        pt_violation(from, "the offer of a large message, of %zu bytes", n);
        return;
    }
    if (rts.offer == RTS_AHEAD) {
        on_ahead(l, pt, from, h0, h1, &rts);
        return;
    }
    struct request *r = match_arrive(&pt->match[h0 & CTX_COLL], env_source(h1), env_tag(h1));
    if (r) {
        pt_offer_matched(r, from, env_source(h1), env_tag(h1), &rts);
        pt_offered(l, from, rts.bytes);
        return;
    }
    if (unlikely(rts.offer & RTS_READY)) {
        pt_violation(from, "a large message for a receive that is not ready for it");
        return;
    }
    uint64_t cookie[3] = {rts.send, rts.bytes, rts.offer};
    store(pt, from, h0, h1, BODY_OFFER, cookie, rts.bytes, NULL, 0);
}

static const struct pt_kind eager = {AM_EAGER, PT_BY_CONTEXT, on_eager};
static const struct pt_kind eager_sync = {AM_EAGER_SYNC, PT_BY_CONTEXT, on_eager_sync};
static const struct pt_kind request_to_send = {AM_RTS, PT_BY_CONTEXT, on_rts};

void pt_on_eager(struct peer *from, uint64_t h0, uint64_t h1, const void *data, size_t n)
{
    dispatch(&eager, from, h0, h1, data, n);
}

void pt_on_eager_sync(struct peer *from, uint64_t h0, uint64_t h1, const void *data, size_t n)
{
    dispatch(&eager_sync, from, h0, h1, data, n);
}

void pt_on_rts(struct peer *from, uint64_t h0, uint64_t h1, const void *data, size_t n)
{
    dispatch(&request_to_send, from, h0, h1, data, n);
}

/* ---- receives ---- */

static __attribute__((noinline)) void take_offer(struct request *r, struct match_body *b)
{
    struct pt_rts rts = {b->cookie[0], b->cookie[1], b->cookie[2]};
    struct peer *from = b->peer;
    int32_t src = b->src, tag = b->tag;
    pt_drop_body(lane_of(r), b);
    pt_offer_matched(r, from, src, tag, &rts);
}

static TERN_COLD void take_ahead(struct request *r, struct match_body *b)
{
    struct lane *l = lane_of(r);
    struct ahead_msg *a = (struct ahead_msg *)(uintptr_t)b->cookie[0];
    int32_t source = b->src, tag = b->tag;
    ahead_take(a);
    pt_free_body(l, b);
    ahead_meet(a, r, source, tag);
}

void pt_take_body(struct request *r, struct match_body *b)
{
    struct lane *l = lane_of(r);
    if (unlikely(pt_checking)) pt_check_recall(b);
    if (b->kind == BODY_OFFER) {
        take_offer(r, b);
        return;
    }
    if (b->kind == BODY_AHEAD) {
        take_ahead(r, b);
        return;
    }
    if (b->kind == BODY_SYNC) lane_say(l, b->peer, AM_ACK, b->cookie[0], 0, NULL, 0);
    pt_consumed(l, b->peer, b->held);
    pt_deliver(r, b->src, b->tag, match_body_payload(b), b->held);
    pt_drop_body(l, b);
}

/* A receive from any source is about to fail, as one of those that it may wait for is lost: not if its message has come.
 * True: it has. */
static TERN_COLD bool take_after_all(struct request *r, struct match *m)
{
    if (r->rank != MPI_ANY_SOURCE || r->ctx & CTX_COLL || !(r->comm->pt->gone & PT_GONE_SOURCE)) return false;
    if (wires_threaded) pt_take_last();
    else lane_progress(r->comm->lane);
    struct match_body *b = match_take(m, r->rank, r->tag);
    if (b) pt_take_body(r, b);
    return b != NULL;
}

/* The program may compute before the message comes. */
static TERN_COLD void announce_large(struct request *r)
{
    struct peer *from = r->rank < 0 || wires_threaded ? NULL : peer_known(comm_index(r->comm, r->rank));
    ready_announce(r);
    if (from) ahead_expect(from, r->bytes);
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
    else if (unlikely(r->bytes >= ready_least)) announce_large(r);
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
    type_ref(t);
    lane_enter(c->lane);
    pt_prepare(r, REQ_RECV, context_ref(c), PT_USER, buf, count, t, source, tag, PT_STANDARD);
    ready_hear(r);
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
    r.flags = r.course = 0;
    r.done = NULL;
    pt_prepare(&r, REQ_RECV, c, PT_USER, buf, count, t, source, tag, PT_STANDARD);
    struct lane *l = c->lane;
    lane_enter(l);
    pt_recv_start(&r);
    if (!request_is_complete(&r)) lane_await(l, &pt_awaiting, &r);
    else lane_leave(l);
    *result = r.result;
    if (unlikely(r.result.error)) pt_recall(&r);
    return r.result.error;
}
