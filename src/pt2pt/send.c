/*
 * send.c - sending. Small contiguous messages go from the entry point to the ring
 * in one piece, without a request; all others become a request first.
 */
#include "base/err.h"
#include "pt2pt/api.h"
#include "pt2pt/check.h"
#include "pt2pt/limits.h"
#include "pt2pt/lost.h"
#include "pt2pt/protocol.h"
#include "type/cursor.h"

#include <stdlib.h>
#include <string.h>

/* The peer behind a rank of a communicator; NULL with words when it cannot be reached. */
static inline struct peer *peer_for(struct comm *c, int rank) { return peer_get(comm_index(c, rank)); }

static inline int send_short(const void *buf, int64_t count, const struct type *t, uint32_t index, int tag, struct comm *c)
{
    struct peer *p = atomic_load_explicit(&peer_short_table, memory_order_acquire)[index];
    int64_t n = count * t->size;
    if (unlikely(!p || !t->contig || n > p->short_max)) return PT_LONG_WAY;
    int64_t credit = p->credit - eager_cost((size_t)n);
    if (unlikely(credit < 0)) return PT_LONG_WAY;
    p->credit = credit; /* a TERN_AGAIN gives it back: refund */
    return p->ep.am_short(&p->ep, AM_EAGER, c->ctx, c->rank_high | (uint32_t)tag, (const char *)buf + t->true_lb, (size_t)n);
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

/* The ring was full: the credit that pt_send_short took is not used. */
static void refund(struct comm *c, int64_t count, const struct type *t, int dest)
{
    lane_enter(c->lane);
    peer_table[comm_index(c, dest)]->credit += eager_cost((size_t)(count * t->size));
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
    if (p->ep.caps & TP_CAP_BCOPY) return p->ep.ops->am_bcopy(&p->ep, id, h0, h1, pack, arg, n);
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
        ids_await(&lane0.ids, r, AWAIT_ACK);
        rc = send_packed(p, AM_EAGER_SYNC, r->ctx, env, pack_sync, &s, (size_t)r->bytes + sizeof s.send);
        if (rc) ids_await_no_more(&lane0.ids, r, AWAIT_ACK);
    } else if (r->type->contig)
        rc = p->ep.am_short(&p->ep, AM_EAGER, r->ctx, env, s.cursor.buf, (size_t)r->bytes);
    else
        rc = send_packed(p, AM_EAGER, r->ctx, env, pack_cursor, &s.cursor, (size_t)r->bytes);
    if (!rc && (r->mode == PT_SYNC || r->ctx & CTX_COLL)) peer_look_again(p); /* others wait for what follows upon it */
    if (!rc && r->mode != PT_SYNC) lane_finish(r, 0); /* a synchronous one waits for AM_ACK */
    return rc;
}

/* Bytes of the largest eager message to this peer at this moment. */
static inline int64_t eager_max_now(struct peer *p)
{
    int64_t most = limits_of(p)->eager_max;
    return likely(most <= lane0.eager_now) || !pt_send_is_call(p) ? most : lane0.eager_now;
}

static bool fits_eager(const struct request *r)
{
    struct peer *p = r->peer;
    int64_t room = (int64_t)p->ep.max_short;
    if (!(p->ep.caps & TP_CAP_BCOPY) && room > BOUNCE_MAX) room = BOUNCE_MAX;
    room -= (int64_t)sizeof(uint64_t); /* synchronous sends put their request in front */
    return r->bytes <= eager_max_now(p) && r->bytes <= room && p->credit >= eager_cost((size_t)r->bytes);
}

int pt_send_attempt(struct request *r)
{
    int rc = unlikely(pt_checking) ? pt_check_announce(r) : 0;
    if (rc) return rc;
    return r->xfer ? pt_offer_send_rts(r) : eager_attempt(r);
}

void pt_send_failed(struct request *r, int rc)
{
    struct peer *p = r->peer;
    if (rc != TERN_ERR_NOMEM) pt_lose(p); /* without memory nothing was sent, and nothing is wrong with the peer */
    pt_offer_discard(r);
    lane_finish(r, rc);
}

void pt_send_begin(struct request *r)
{
    struct peer *p = r->peer;
    int rc = p->pending ? TERN_AGAIN : pt_send_attempt(r);
    if (rc == TERN_AGAIN) lane_park(&lane0, p, r);
    else if (rc) pt_send_failed(r, rc);
}

static TERN_COLD void unreachable(struct request *r)
{
    if (r->peer) pt_end_lost(r, r->peer);
    else lane_finish(r, err_is_of_peer(err_code()) ? err_code() : TERN_ERR_PEER);
}

void pt_send_start(struct request *r)
{
    struct lane *l = r->comm->lane;
    r->bytes = r->count * r->type->size;
    r->result = (struct request_result){.source = MPI_ANY_SOURCE, .tag = MPI_ANY_TAG};
    r->flags &= (uint16_t)~REQ_ANNOUNCED;
    r->peer = peer_for(r->comm, r->rank);
    if (unlikely(!r->peer || r->peer->lost)) {
        unreachable(r);
        return;
    }
    lane_open_short(l, r->peer);
    bool eager = fits_eager(r);
    if (!eager) {
        pt_offer_start(r);
        return;
    }
    int rc = r->mode == PT_SYNC ? ids_give(&l->ids, r, 0) : 0;
    if (unlikely(rc)) {
        lane_finish(r, rc);
        return;
    }
    r->peer->credit -= eager_cost((size_t)r->bytes);
    pt_send_begin(r);
}

void pt_look_again(struct comm *c, int rank) { peer_look_again(peer_table[comm_index(c, rank)]); }

int pt_send_quick(struct comm *c, const void *buf, size_t n, int dest, int tag)
{
    struct peer *p = peer_table[comm_index(c, dest)];
    if (unlikely(!p || !p->ep.ops || p->pending || p->lost || pt_checking)) return PT_LONG_WAY;
    if (n > p->ep.max_short || (int64_t)n > eager_max_now(p) || p->credit < eager_cost(n)) return PT_LONG_WAY;
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
    lane_enter(c->lane);
    pt_send_start(&r);
    lane_leave(c->lane);
    return pt_wait(&r);
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

void pt_on_ack(struct peer *from, uint64_t h0, uint64_t h1, const void *data, size_t n)
{
    (void)h1, (void)data, (void)n;
    if (unlikely(from->lost)) return;
    struct id_entry *e = ids_find(&lane0.ids, h0, from, AWAIT_ACK);
    if (likely(e != NULL)) lane_finish(e->request, 0);
    else pt_violation(from, "it says that a synchronous message was matched, of which there is none");
}
