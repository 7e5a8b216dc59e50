/*
 * send.c - sending. Small contiguous messages go from the entry point to the ring
 * in one piece, without a request; all others become a request first.
 *
 * This short way takes no lock, also if threads send at the same time. While one thread at a time does, peers
 * are in peer_short_table, and a message costs plain loads and stores. Threads find the peers in peer_shared_table. A thread
 * takes its credit by one atomic subtraction, and the place of the message as the transport says (shm/writers.c: one
 * compare-and-swap).
 *
 * The order of messages is that of the program: an operation that has to wait closes the short way (peer.short_max) before
 * the call returns that parks it, and the way opens when the last of them is out. So a send that the program orders behind a
 * parked one finds the way closed, or the other one gone. Threads that the program does not order may overtake.
 */
#include "base/err.h"
#include "base/sanitizer.h"
#include "pt2pt/api.h"
#include "pt2pt/check.h"
#include "pt2pt/dispatch.h"
#include "pt2pt/limits.h"
#include "pt2pt/lost.h"
#include "pt2pt/pending.h"
#include "pt2pt/protocol.h"
#include "pt2pt/rndv/ahead.h"
#include "pt2pt/rndv/ready.h"
#include "transport/endpoint.h"
#include "type/cursor.h"

#include <stdlib.h>
#include <string.h>

/* The peer behind a rank of a communicator; NULL with words when it cannot be reached. */
static inline struct peer *peer_for(struct comm *c, int rank) { return peer_get(comm_index(c, rank)); }

/* Threads share the library, or there is no such peer yet. */
static __attribute__((noinline)) int send_short_shared(const void *buf, int64_t n, const struct type *t, uint32_t index, int tag,
                                                       struct comm *c)
{
    struct peer **table = atomic_load_explicit(&peer_shared_table, memory_order_acquire); /* pairs with wires_share */
    struct peer *p = likely(table) ? __atomic_load_n(&table[index], __ATOMIC_ACQUIRE) : NULL; /* as in peer_get */
    /* acquire: pairs with peer_set_short */
    if (unlikely(!p || !t->contig || n > __atomic_load_n(&p->short_max, __ATOMIC_ACQUIRE))) return PT_LONG_WAY;
    int64_t cost = eager_cost((size_t)n);
    if (unlikely(__atomic_fetch_sub(&p->credit, cost, __ATOMIC_RELAXED) < cost)) {
        __atomic_fetch_add(&p->credit, cost, __ATOMIC_RELAXED);
        return PT_LONG_WAY;
    }
    return p->ep.am_short(&p->ep, AM_EAGER, c->ctx, c->rank_high | (uint32_t)tag, (const char *)buf + t->true_lb, (size_t)n);
}

static inline int send_short(const void *buf, int64_t count, const struct type *t, uint32_t index, int tag, struct comm *c)
{
    struct peer *p = atomic_load_explicit(&peer_short_table, memory_order_acquire)[index];
    int64_t n = count * t->size;
    if (unlikely(!p)) return send_short_shared(buf, n, t, index, tag, c);
    if (unlikely(!t->contig || n > p->short_max)) return PT_LONG_WAY;
    int64_t credit = p->credit - eager_cost((size_t)n);
    if (unlikely(credit < 0)) return PT_LONG_WAY;
    p->credit = credit; /* a TERN_AGAIN gives it back: refund */
    int rc = p->ep.am_short(&p->ep, AM_EAGER, c->ctx, c->rank_high | (uint32_t)tag, (const char *)buf + t->true_lb, (size_t)n);
    sanitizer_released(&lane_inside); /* to share_await. Not the table, whose next store would make the sanitizer forget it */
    return rc;
}

/* For ranks that have to be looked up. Apart from the usual way, which would save registers around the look-up's call. */
static __attribute__((noinline)) int send_short_other(const void *buf, int64_t count, const struct type *t, int dest, int tag,
                                                      struct comm *c)
{
    return send_short(buf, count, t, rankmap_at_other(c->map, dest), tag, c);
}

int pt_send_short(const void *buf, int64_t count, const struct type *t, int dest, int tag, struct comm *c)
{
    if (unlikely(!rankmap_is_line(c->map))) return send_short_other(buf, count, t, dest, tag, c);
    return send_short(buf, count, t, rankmap_at_line(c->map, dest), tag, c);
}

/* The ring was full: the credit that pt_send_short took is not used. A helper may be in the lane. */
static void refund(struct comm *c, int64_t count, const struct type *t, int dest)
{
    lane_enter(c->lane);
    credit_return(peer_table[comm_index(c, dest)], (size_t)(count * t->size));
    lane_leave(c->lane);
}

static size_t pack_cursor(void *arg, void *to, size_t max) { return type_pack(arg, to, max); }

/* A synchronous message starts with the sender's request, so that the match can be reported. */
struct sync_pack {
    uint64_t send;
    struct type_cursor cursor;
};

static size_t pack_sync(void *arg, void *to, size_t max)
{
    struct sync_pack *s = arg;
    memcpy(to, &s->send, sizeof s->send);
    return sizeof s->send + type_pack(&s->cursor, (char *)to + sizeof s->send, max - sizeof s->send);
}

/* Largest message packed through a buffer, for transports that cannot pack in place. */
#define BOUNCE_MAX 16384

/* Not on the stack, which may be all that a thread has; and not one for all: what the message brings about may send. */
static int send_bounced(struct peer *p, unsigned id, uint64_t h0, uint64_t h1, tp_pack_fn pack, void *arg, size_t n)
{
    char *buf = malloc(min_size(n, BOUNCE_MAX));
    if (!buf && n) return err_set(TERN_ERR_NOMEM, "no memory to pack a message of %zu bytes", n);
    n = pack(arg, buf, min_size(n, BOUNCE_MAX));
    int rc = p->ep.am_short(&p->ep, id, h0, h1, buf, n);
    free(buf);
    return rc;
}

/* Hands `n` bytes of pack's to the transport. */
static int send_packed(struct peer *p, unsigned id, uint64_t h0, uint64_t h1, tp_pack_fn pack, void *arg, size_t n)
{
    if (p->ep.caps & TP_CAP_BCOPY) return ep_bcopy(&p->ep, id, h0, h1, pack, arg, n);
    return send_bounced(p, id, h0, h1, pack, arg, n);
}

static int eager_attempt(struct request *r)
{
    struct peer *p = r->peer;
    uint64_t env = env_pack(r->comm->rank, r->tag);
    struct sync_pack s = {.send = r->id};
    type_cursor_init(&s.cursor, r->type, r->count, r->buf);
    int rc;
    if (r->mode == PT_SYNC) {
        ids_await(&lane_of(r)->ids, r, AWAIT_ACK);
        rc = send_packed(p, AM_EAGER_SYNC, r->ctx, env, pack_sync, &s, (size_t)r->bytes + sizeof s.send);
        if (rc) ids_await_no_more(&lane_of(r)->ids, r, AWAIT_ACK);
    } else if (r->type->contig)
        rc = p->ep.am_short(&p->ep, AM_EAGER, r->ctx, env, s.cursor.buf, (size_t)r->bytes);
    else
        rc = send_packed(p, AM_EAGER, r->ctx, env, pack_cursor, &s.cursor, (size_t)r->bytes);
    if (!rc && (r->mode == PT_SYNC || r->ctx & CTX_COLL)) peer_look_again(p); /* others wait for what follows upon it */
    if (!rc && r->mode != PT_SYNC) lane_finish(r, 0); /* a synchronous one waits for AM_ACK */
    return rc;
}

/* Bytes of the largest eager message to this peer at this moment. */
static inline int64_t eager_max_now(const struct lane *l, struct peer *p)
{
    int64_t most = limits_of(p)->eager_max;
    return likely(most <= l->eager_now) || !pt_send_is_call(p) ? most : l->eager_now;
}

/* As far as its size goes. */
static bool fits_eager(const struct request *r)
{
    struct peer *p = r->peer;
    int64_t room = (int64_t)p->ep.max_short;
    if (!(p->ep.caps & TP_CAP_BCOPY) && room > BOUNCE_MAX) room = BOUNCE_MAX;
    room -= (int64_t)sizeof(uint64_t); /* synchronous sends put their request in front */
    return r->bytes <= eager_max_now(lane_of(r), p) && r->bytes <= room;
}

static int attempt(struct request *r)
{
    int rc = unlikely(pt_checking) ? pt_check_announce(r) : 0;
    if (rc) return rc;
    return r->xfer ? pt_offer_send_rts(r) : eager_attempt(r);
}

/* An attempt failed for good. */
static TERN_COLD void failed(struct request *r, int rc)
{
    struct peer *p = r->peer;
    if (rc != TERN_ERR_NOMEM) pt_lose(p); /* without memory nothing was sent, and nothing is wrong with the peer */
    pt_offer_discard(r);
    lane_finish(r, rc);
}

/* ---- one that waits for room ---- */

static struct request *send_of(struct pending *op) { return container_of(op, struct request, pending); }

static bool attempt_parked(struct lane *l, struct peer *p, struct pending *op)
{
    (void)l, (void)p;
    int rc = attempt(send_of(op));
    if (rc && rc != TERN_AGAIN) failed(send_of(op), rc);
    return rc != TERN_AGAIN;
}

static void end_parked(struct lane *l, struct peer *p, struct pending *op)
{
    (void)l;
    pt_offer_discard(send_of(op));
    pt_end_lost(send_of(op), p);
}

static void park(struct lane *l, struct request *r);

/* It goes out by the new connection. */
static void park_anew(struct lane *l, uint32_t index, struct pending *op)
{
    struct request *r = send_of(op);
    struct peer *p = peer_get(index);
    if (!p || p->lost) {
        int rc = p ? pt_lost_words(r, p) : TERN_ERR_PEER;
        pt_offer_discard(r);
        lane_finish(r, rc);
        return;
    }
    r->peer = p;
    if (r->id) ids_of(&l->ids, r)->peer = p;
    if (!r->xfer) counter_add(&p->credit, -eager_cost((size_t)r->bytes));
    park(l, r);
}

static const struct pending_ops parked = {.attempt = attempt_parked, .end = end_parked, .anew = park_anew};

static void park(struct lane *l, struct request *r)
{
    int rc = pending_park(l, r->peer, &r->pending, &parked);
    if (likely(!rc)) return;
    if (!r->xfer) credit_return(r->peer, (size_t)r->bytes);
    failed(r, rc);
}

void pt_send_begin(struct request *r)
{
    struct lane *l = lane_of(r);
    int rc = pending_is_clear(l, r->peer) ? attempt(r) : TERN_AGAIN;
    if (rc == TERN_AGAIN) park(l, r);
    else if (rc) failed(r, rc);
}

/* ---- one that is put off ---- */

/* It goes as it would have gone at once: as a small one, or ahead, or it is offered. */
static bool attempt_put_off(struct lane *l, struct peer *p, struct pending *op)
{
    struct request *r = send_of(op);
    bool small = fits_eager(r) && credit_take(p, (size_t)r->bytes);
    if (!small && ahead_send(r, true)) return true;
    if (small) r->xfer = NULL;
    else pt_offer_make(r);
    op->ops = &parked;
    return attempt_parked(l, p, op);
}

static const struct pending_ops put_off = {.attempt = attempt_put_off, .end = end_parked, .anew = park_anew};

void pt_send_put_off(struct request *r)
{
    int rc = pending_park(lane_of(r), r->peer, &r->pending, &put_off);
    if (unlikely(rc)) failed(r, rc);
    else lane_puts_off_send(lane_of(r));
}

static TERN_COLD void unreachable(struct request *r)
{
    if (r->peer) pt_end_lost(r, r->peer);
    else lane_finish(r, err_is_of_peer(err_code()) || err_code() == TERN_ERR_NOMEM ? err_code() : TERN_ERR_PEER);
}

void pt_send_start(struct request *r)
{
    struct lane *l = r->comm->lane;
    r->bytes = r->count * r->type->size;
    r->result = (struct request_result){.source = MPI_ANY_SOURCE, .tag = MPI_ANY_TAG};
    r->course &= (uint8_t)~(REQ_ANNOUNCED | REQ_AHEAD);
    r->peer = peer_for(r->comm, r->rank);
    if (unlikely(!r->peer || r->peer->lost)) {
        unreachable(r);
        return;
    }
    lane_open_short(r->peer);
    if (!fits_eager(r) || !credit_take(r->peer, (size_t)r->bytes)) {
        pt_offer_start(r);
        return;
    }
    int rc = r->mode == PT_SYNC ? ids_give(&l->ids, r, 0) : 0;
    if (unlikely(rc)) {
        credit_return(r->peer, (size_t)r->bytes);
        lane_finish(r, rc);
        return;
    }
    pt_send_begin(r);
}

void pt_look_again(struct comm *c, int rank) { peer_look_again(peer_table[comm_index(c, rank)]); }

static __attribute__((noinline)) int send_quick_shared(struct comm *c, const void *buf, size_t n, uint32_t index, int tag)
{
    struct peer *p = __atomic_load_n(&peer_table[index], __ATOMIC_ACQUIRE);
    if (unlikely(!p || (int64_t)n > __atomic_load_n(&p->short_max, __ATOMIC_ACQUIRE))) return PT_LONG_WAY; /* as in send_short_shared */
    if (unlikely((int64_t)n > c->lane->eager_now) && pt_send_is_call(p)) return PT_LONG_WAY;
    if (unlikely(!credit_take(p, n))) return PT_LONG_WAY;
    int rc = p->ep.am_short(&p->ep, AM_EAGER, c->ctx | PT_COLL, c->rank_high | (uint32_t)tag, buf, n);
    if (likely(!rc)) return 0;
    credit_return(p, n);
    return PT_LONG_WAY;
}

int pt_send_quick(struct comm *c, const void *buf, size_t n, int dest, int tag)
{
    uint32_t index = comm_index(c, dest);
    if (unlikely(wires_threaded)) return send_quick_shared(c, buf, n, index, tag);
    struct peer *p = peer_table[index];
    if (unlikely(!p || !p->ep.ops || peer_waiting(p) || p->lost || pt_checking)) return PT_LONG_WAY;
    if (n > p->ep.max_short || (int64_t)n > eager_max_now(c->lane, p) || p->credit < eager_cost(n)) return PT_LONG_WAY;
    p->credit -= eager_cost(n);
    int rc = p->ep.am_short(&p->ep, AM_EAGER, c->ctx | PT_COLL, c->rank_high | (uint32_t)tag, buf, n);
    if (likely(!rc)) return 0;
    p->credit += eager_cost(n);
    return PT_LONG_WAY; /* which will fail in the same way, with all that has to follow */
}

/* The short way failed for good: there is no way to the peer any more. */
static TERN_COLD int lose(struct comm *c, int dest, int rc)
{
    lane_enter(c->lane);
    pt_lose(peer_table[comm_index(c, dest)]);
    lane_leave(c->lane);
    return rc;
}

static TERN_COLD int send_slow(struct comm *c, const void *buf, int64_t count, struct type *t, int dest, int tag,
                               enum pt_mode mode)
{
    struct request r = {0};
    pt_prepare(&r, REQ_SEND, c, PT_USER, buf, count, t, dest, tag, mode);
    struct lane *l = c->lane;
    lane_enter(l);
    ready_hear(&r);
    pt_send_start(&r);
    if (!request_is_complete(&r)) lane_await(l, &pt_awaiting, &r);
    else lane_leave(l);
    if (unlikely(r.result.error)) pt_recall(&r);
    return r.result.error;
}

/* `tried`: what pt_send_short said. */
int pt_send_long(struct comm *c, const void *buf, int64_t count, struct type *t, int dest, int tag, enum pt_mode mode,
                 int tried)
{
    if (tried == TERN_AGAIN) refund(c, count, t, dest);
    else if (tried != PT_LONG_WAY) return lose(c, dest, tried);
    return dest == MPI_PROC_NULL ? 0 : send_slow(c, buf, count, t, dest, tag, mode);
}

static inline int try_short(struct comm *c, const void *buf, int64_t count, struct type *t, int dest, int tag,
                            enum pt_mode mode)
{
    return dest == MPI_PROC_NULL || mode == PT_SYNC ? PT_LONG_WAY : pt_send_short(buf, count, t, dest, tag, c);
}

int pt_send(struct comm *c, const void *buf, int64_t count, struct type *t, int dest, int tag, enum pt_mode mode)
{
    int rc = try_short(c, buf, count, t, dest, tag, mode);
    return likely(!rc) ? 0 : pt_send_long(c, buf, count, t, dest, tag, mode, rc);
}

/* A send that failed at its start is no request of the user's: said now, the error is not hidden behind receives that wait
 * for what others could not send either. */
static TERN_COLD int take_back(struct request *r)
{
    int rc = r->result.error;
    pt_recall(r); /* what has been cleaned up since then may have left other words */
    type_unref(r->type);
    comm_unref(r->comm);
    request_free(r);
    return rc;
}

static TERN_COLD int isend_slow(struct comm *c, const void *buf, int64_t count, struct type *t, int dest, int tag,
                                enum pt_mode mode, struct request **req_p)
{
    struct request *r = request_new(REQ_SEND);
    if (!r) return TERN_ERR_NOMEM;
    pt_prepare(r, REQ_SEND, comm_ref(c), PT_USER, buf, count, t, dest, tag, mode);
    type_ref(t);
    lane_enter(c->lane);
    lane_going(c->lane);
    ready_hear(r);
    pt_send_start(r);
    lane_leave_to_itself(c->lane, r);
    lane_leave(c->lane);
    if (unlikely(request_is_complete(r) && r->result.error)) return take_back(r);
    *req_p = r;
    return 0;
}

int pt_isend_long(struct comm *c, const void *buf, int64_t count, struct type *t, int dest, int tag, enum pt_mode mode,
                  int tried, struct request **req_p)
{
    if (tried == TERN_AGAIN) refund(c, count, t, dest);
    else if (tried != PT_LONG_WAY) return lose(c, dest, tried);
    if (dest != MPI_PROC_NULL) return isend_slow(c, buf, count, t, dest, tag, mode, req_p);
    *req_p = request_done;
    return 0;
}

int pt_isend(struct comm *c, const void *buf, int64_t count, struct type *t, int dest, int tag, enum pt_mode mode,
             struct request **req_p)
{
    int rc = try_short(c, buf, count, t, dest, tag, mode);
    if (unlikely(rc)) return pt_isend_long(c, buf, count, t, dest, tag, mode, rc, req_p);
    *req_p = request_done;
    return 0;
}

/* ---- what comes back ---- */

static void on_ack(struct lane *l, struct pt_comm *pt, struct peer *from, uint64_t h0, uint64_t h1, const void *data, size_t n)
{
    (void)pt, (void)h1, (void)data, (void)n;
    struct id_entry *e = ids_find(&l->ids, h0, from, AWAIT_ACK);
    if (likely(e != NULL)) lane_finish(e->request, 0);
    else pt_violation(from, "it says that a synchronous message was matched, of which there is none");
}

static const struct pt_kind acknowledgement = {AM_ACK, PT_BY_ID, on_ack};

void pt_on_ack(struct peer *from, uint64_t h0, uint64_t h1, const void *data, size_t n)
{
    dispatch(&acknowledgement, from, h0, h1, data, n);
}
