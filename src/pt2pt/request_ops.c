/*
 * request_ops.c - waiting for requests, persistent ones, letting go, cancelling.
 */
#include "base/err.h"
#include "proc/jobs.h"
#include "pt2pt/api.h"
#include "pt2pt/dispatch.h"
#include "pt2pt/doubt.h"
#include "pt2pt/early.h"
#include "pt2pt/lost.h"
#include "pt2pt/pending.h"
#include "pt2pt/protocol.h"
#include "pt2pt/rndv/ready.h"
#include "pt2pt/say.h"

#include <string.h>

/* ---- waiting ---- */

static bool one_complete(void *arg) { return request_is_complete(arg); }
static void doubt_one(void *arg) { pt_doubt_requests(1, (struct request *const *)&arg, true); }

/* The lane that a request ends in. A generalized one has no communicator. */
static struct lane *lane_awaited(const struct request *r) { return likely(r->comm != NULL) ? lane_of(r) : lanes_first(); }

static bool mark_one(void *arg, const struct waiter *w)
{
    struct lane *l = lane_awaited(arg);
    lane_enter(l);
    bool over = waits_mark(arg, w);
    lane_out(l);
    return over;
}

const struct awaiting pt_awaiting = {one_complete, mark_one, doubt_one};

static TERN_COLD int failure(const struct request *r)
{
    pt_recall(r);
    return r->result.error;
}

static __attribute__((noinline)) int wait_long(struct request *r)
{
    if (r->flags & REQ_KEPT) r->hooks->look(r);
    if (!request_is_complete(r)) lane_await_outside(lane_awaited(r), &pt_awaiting, r);
    if (unlikely(r->result.error)) pt_recall(r);
    return r->result.error;
}

/* Apart from the rest, which needs registers: most often the request is complete. */
int pt_wait(struct request *r)
{
    if (!request_is_complete(r)) return wait_long(r);
    return unlikely(r->result.error) ? failure(r) : 0;
}

/* Words are per thread, and this one may not be the one that found out, or have failed otherwise since. */
void pt_recall(const struct request *r)
{
    err_recall(r, r->result.error);
    if (!err_is_of_peer(r->result.error)) return;
    if (r->peer && (r->peer->lost || r->peer->flags & PEER_OVER)) pt_lost_words(r, r->peer);
    else if (r->peer && err_code() != r->result.error) /* the helper has found its memory gone, before it was lost */
        err_set(r->result.error, "%s has died", jobs_long_words(r->peer->index));
}

struct many {
    int n, left; /* those behind the first `left` are known to be complete (all) */
    struct request *const *req;
};

/* From the last one on, which most often ends last: of a thread that sleeps only the last open one is marked, and tells it. */
static bool all_complete(void *arg)
{
    struct many *m = arg;
    while (m->left && (!m->req[m->left - 1] || request_is_complete(m->req[m->left - 1]))) m->left--;
    return !m->left;
}

static bool mark_all(void *arg, const struct waiter *w)
{
    struct many *m = arg;
    return all_complete(m) || mark_one(m->req[m->left - 1], w);
}

static bool any_complete(void *arg)
{
    const struct many *m = arg;
    for (int i = 0; i < m->n; i++)
        if (m->req[i] && request_is_complete(m->req[i])) return true;
    return false;
}

static bool mark_any(void *arg, const struct waiter *w)
{
    const struct many *m = arg;
    for (int i = 0; i < m->n; i++)
        if (m->req[i] && mark_one(m->req[i], w)) return true;
    return false;
}

static void doubt_all(void *arg)
{
    const struct many *m = arg;
    pt_doubt_requests(m->n, m->req, true);
}

static void doubt_any(void *arg)
{
    const struct many *m = arg;
    pt_doubt_requests(m->n, m->req, false);
}

static const struct awaiting await_all = {all_complete, mark_all, doubt_all};
static const struct awaiting await_any = {any_complete, mark_any, doubt_any};

/* Of requests of which one was not complete a moment ago; another thread may have ended it since. */
static struct lane *lane_of_many(int n, struct request *const req[])
{
    const struct request *r = NULL;
    for (int i = 0; i < n; i++) {
        if (!req[i]) continue;
        r = req[i];
        if (!request_is_complete(r)) break;
    }
    return lane_awaited(r);
}

void pt_wait_many(int n, struct request *const req[], bool all)
{
    struct many m = {n, n, req};
    const struct awaiting *what = all ? &await_all : &await_any;
    if (!what->ready(&m)) lane_await_outside(lane_of_many(n, req), what, &m);
}

bool pt_waits_among_threads(void) { return waits_threaded(); }

void pt_progress_once(struct comm *c)
{
    if (unlikely(!c)) {
        lanes_look();
        return;
    }
    struct lane *l = c->lane;
    if (unlikely(lane_mode())) {
        lane_poll_outside(l);
        return;
    }
    lane_enter_alone();
    lane_poll(l);
    lane_leave(l);
}

/* ---- all of a communicator ---- */

struct awaited {
    struct comm *comm;
    struct request *r;
};

static bool is_pending(const struct request *r, const struct comm *c)
{
    return r->h.kind == HANDLE_REQUEST && r->comm == c && !(r->flags & REQ_INTERNAL) && !request_is_complete(r);
}

/* Complete, or completed and released by another thread that waited for it as well. */
static bool no_more_pending(void *arg)
{
    const struct awaited *p = arg;
    return !is_pending(p->r, p->comm);
}

static void doubt_pending(void *arg) { doubt_one(((struct awaited *)arg)->r); }

/* Lock held. One that the user has let go would be freed at its completion; it is freed here instead. */
static void finish(struct comm *c, struct request *r)
{
    struct awaited p = {c, r};
    bool let_go = r->course & REQ_DETACHED;
    r->course &= (uint8_t)~REQ_DETACHED;
    if (r->flags & REQ_KEPT) r->hooks->look(r);
    lane_wait_doubting(c->lane, no_more_pending, &p, doubt_pending);
    if (let_go) pt_release(r);
}

/* Failures are told by the calls that complete the requests. */
void pt_finish_all(struct comm *c)
{
    uintptr_t at = 0;
    lane_enter(c->lane);
    for (struct request *r; (r = handle_next(HANDLE_REQUEST, &at));)
        if (is_pending(r, c)) finish(c, r);
    lane_leave(c->lane);
}

/* ---- persistent ---- */

static int init(uint8_t kind, struct comm *c, const void *buf, int64_t count, struct type *t, int rank, int tag,
                enum pt_mode mode, struct request **req_p)
{
    struct request *r = request_new(kind);
    if (!r) return TERN_ERR_NOMEM;
    pt_prepare(r, kind, comm_ref(c), PT_USER, buf, count, t, rank, tag, mode);
    type_ref(t);
    r->flags |= REQ_PERSISTENT;
    atomic_store_explicit(&r->complete, 1, memory_order_relaxed); /* inactive: complete, with an empty status */
    *req_p = r;
    return 0;
}

int pt_send_init(struct comm *c, const void *buf, int64_t count, struct type *t, int dest, int tag, enum pt_mode mode,
                 struct request **req_p)
{
    return init(REQ_SEND, c, buf, count, t, dest, tag, mode, req_p);
}

int pt_recv_init(struct comm *c, void *buf, int64_t count, struct type *t, int source, int tag, struct request **req_p)
{
    return init(REQ_RECV, c, buf, count, t, source, tag, PT_STANDARD, req_p);
}

int pt_start(struct request *r)
{
    if (r->flags & REQ_HOOKED) return r->hooks->start(r);
    r->flags |= REQ_ACTIVE;
    r->course &= (uint8_t)~REQ_CANCELLING;
    r->result.cancelled = false;
    r->xfer = NULL;
    if (r->rank == MPI_PROC_NULL) {
        r->result = (struct request_result){.source = MPI_PROC_NULL, .tag = MPI_ANY_TAG};
        return 0; /* complete already */
    }
    atomic_store_explicit(&r->complete, 0, memory_order_relaxed);
    lane_enter(r->comm->lane);
    lane_going(r->comm->lane);
    if (r->kind == REQ_SEND) pt_send_start(r);
    else pt_recv_start(r);
    lane_leave_to_itself(r->comm->lane, r);
    lane_leave(r->comm->lane);
    return 0;
}

/* ---- letting go ---- */

void pt_retire(struct request *r)
{
    struct comm *c = r->comm;
    type_unref(r->type);
    request_free(r);
    comm_unref(c);
}

void pt_give_refs(struct pt_refs *refs)
{
    if (refs->n) comm_unref_many(refs->comm, refs->n);
    refs->n = 0;
}

void pt_retire_counting(struct request *r, struct pt_refs *refs)
{
    if (unlikely(refs->comm != r->comm)) {
        pt_give_refs(refs);
        refs->comm = r->comm;
    }
    refs->n++;
    type_unref(r->type);
    request_free(r);
}

void pt_release(struct request *r)
{
    if (r->flags & REQ_SHARED) return;
    struct comm *c = r->comm;
    struct lane *l = c->lane;
    lane_enter(l);
    bool over = request_is_complete(r);
    if (!over) r->course |= REQ_DETACHED;
    else if (r->flags & REQ_HOOKED && r->hooks->drop) r->hooks->drop(r);
    lane_leave(l);
    if (over) pt_retire(r);
}

/* ---- generalized requests ---- */

bool pt_general_complete(struct request *r)
{
    struct lane *l = lane_awaited(r);
    lane_enter(l);
    bool alone = r->course & REQ_DETACHED;
    r->course &= (uint8_t)~REQ_DETACHED;
    lane_finish(r, 0); /* from here on a waiter may have disposed of it */
    lane_leave(l);
    return alone;
}

bool pt_general_release(struct request *r)
{
    struct lane *l = lane_awaited(r);
    lane_enter(l);
    bool over = request_is_complete(r);
    if (!over) r->course |= REQ_DETACHED;
    lane_leave(l);
    return over;
}

/* ---- cancelling ---- */

static void cancel_recv(struct request *r)
{
    struct match *m = &r->comm->pt->match[r->ctx & CTX_COLL];
    if (r->course & REQ_READY && !ready_cancel(r)) return; /* its message is on its way */
    if (!match_cancel(m, r)) return; /* matched: it will complete */
    r->result = (struct request_result){.source = MPI_ANY_SOURCE, .tag = MPI_ANY_TAG, .cancelled = true};
    lane_finish(r, 0);
}

/* A send that still waits for room here just leaves the queue; one that was offered is asked for at the receiver. */
static void cancel_send(struct request *r)
{
    struct peer *p = r->peer;
    if (pending_withdraw(lane_of(r), p, &r->pending)) {
        r->result.cancelled = true;
        if (r->xfer) pt_offer_discard(r); /* no offer was made yet */
        else credit_return(p, (size_t)r->bytes);
        lane_finish(r, 0);
        return;
    }
    uint64_t send = r->id;
    if (p->lost) return; /* its end is near */
    r->course |= REQ_CANCELLING;
    ids_of(&lane_of(r)->ids, r)->awaits |= AWAIT_CANCELLED;
    lane_say(lane_of(r), p, AM_CANCEL, r->ctx, env_pack(r->comm->rank, r->tag), &send, sizeof send);
}

void pt_cancel_locked(struct request *r)
{
    if (request_is_complete(r) || r->course & REQ_CANCELLING) return;
    if (r->kind == REQ_RECV) cancel_recv(r);
    else if (r->kind == REQ_SEND) cancel_send(r);
}

int pt_cancel(struct request *r)
{
    if (r->flags & REQ_SHARED) return 0;
    lane_enter(r->comm->lane);
    pt_cancel_locked(r);
    lane_leave(r->comm->lane);
    return 0;
}

struct search {
    struct peer *from;
    uint64_t send;
    struct match_body *found;
};

static void look_for_send(void *what, int src, int tag, void *arg)
{
    struct search *s = arg;
    struct match_body *b = what;
    (void)src, (void)tag;
    if ((b->kind == BODY_SYNC || b->kind == BODY_OFFER) && b->peer == s->from && b->cookie[0] == s->send) s->found = b;
}

static bool withdraw(struct lane *l, struct match *m, struct search *s)
{
    match_each(&m->unexpected, look_for_send, s);
    bool gone = s->found && match_withdraw(m, s->found);
    if (gone) pt_free_body(l, s->found);
    return gone;
}

static void on_cancel(struct lane *l, struct pt_comm *pt, struct peer *from, uint64_t h0, uint64_t h1, const void *data,
                      size_t n)
{
    struct search s = {.from = from};
    (void)h1;
    if (unlikely(n != sizeof s.send)) {
        pt_violation(from, "a cancel of %zu bytes", n);
        return;
    }
    memcpy(&s.send, data, sizeof s.send);
    bool gone = pt ? withdraw(l, &pt->match[h0 & CTX_COLL], &s) : early_cancel(l, from, h0, s.send);
    lane_say(l, from, AM_CANCELLED, s.send, gone, NULL, 0);
}

static const struct pt_kind cancel = {AM_CANCEL, PT_ABOUT, on_cancel};

void pt_on_cancel(struct peer *from, uint64_t h0, uint64_t h1, const void *data, size_t n)
{
    dispatch(&cancel, from, h0, h1, data, n);
}

/* A reply of "no" comes behind the message that completed the send (ACK, CTS) or with the offer already matched; the
 * request may then be over. */
static void on_cancelled(struct lane *l, struct pt_comm *pt, struct peer *from, uint64_t h0, uint64_t h1, const void *data,
                         size_t n)
{
    (void)pt, (void)data, (void)n;
    struct id_entry *e = ids_find(&l->ids, h0, from, AWAIT_CANCELLED);
    if (!e || h1 > 1 || (h1 && !(e->awaits & (AWAIT_ACK | AWAIT_CTS)))) {
        pt_violation(from, "the answer to a cancel that was not asked for");
        return;
    }
    struct request *r = e->request;
    e->awaits &= ~(uint32_t)AWAIT_CANCELLED;
    if (!h1) {
        if (!r) ids_free(&l->ids, e);
        return;
    }
    r->result.cancelled = true; /* no flag: a waiter reads those without the lock */
    pt_offer_withdraw(r);
    lane_finish(r, 0);
}

static const struct pt_kind cancelled = {AM_CANCELLED, PT_BY_ID, on_cancelled};

void pt_on_cancelled(struct peer *from, uint64_t h0, uint64_t h1, const void *data, size_t n)
{
    dispatch(&cancelled, from, h0, h1, data, n);
}
