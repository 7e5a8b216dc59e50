/*
 * endpoint.h - the members of an endpoint's transport, called by any thread.
 *
 * While one thread at a time uses the transports each of these is the member itself behind one branch. Once threads share
 * them, the member is called under the lock of its wire, unless the transport leaves it to any thread (wire_lock.h).
 *
 * A thread that is in the handler of another wire does not always wait for that lock. Then the member is not called, and the
 * result is one that the member may have as well, as it says here.
 *
 * am_short is not here: tp_ep.am_short is exchanged where it needs a lock. nudge is not, as any thread may call it.
 *
 * Threads: any.
 */
#ifndef TERN_TRANSPORT_ENDPOINT_H
#define TERN_TRANSPORT_ENDPOINT_H

#include "base/err.h"
#include "transport/wire_lock.h"

/* Not called: TERN_AGAIN. */
static inline int ep_bcopy(struct tp_ep *ep, unsigned id, uint64_t h0, uint64_t h1, tp_pack_fn pack, void *arg, size_t n)
{
    int rc = wire_enter(ep, TP_THREADS_SEND);
    if (unlikely(rc)) return rc;
    rc = ep->ops->am_bcopy(ep, id, h0, h1, pack, arg, n);
    wire_leave(ep, TP_THREADS_SEND);
    return rc;
}

static inline int ep_zcopy(struct tp_ep *ep, unsigned id, uint64_t h0, uint64_t h1, const void *p, size_t n, struct tp_op *op)
{
    int rc = wire_enter(ep, 0);
    if (unlikely(rc)) return rc;
    rc = ep->ops->am_zcopy(ep, id, h0, h1, p, n, op);
    wire_leave(ep, 0);
    return rc;
}

static inline int ep_bulk_send(struct tp_ep *ep, uint64_t tag, const void *p, size_t n, struct tp_op *op)
{
    int rc = wire_enter(ep, 0);
    if (unlikely(rc)) return rc;
    rc = ep->ops->bulk_send(ep, tag, p, n, op);
    wire_leave(ep, 0);
    return rc;
}

static inline int ep_bulk_recv(struct tp_ep *ep, uint64_t tag, void *p, size_t n, struct tp_op *op)
{
    int rc = wire_enter(ep, 0);
    if (unlikely(rc)) return rc;
    rc = ep->ops->bulk_recv(ep, tag, p, n, op);
    wire_leave(ep, 0);
    return rc;
}

/* Perhaps not called. */
static inline void ep_expect(struct tp_ep *ep, uint64_t n)
{
    if (!ep->ops->expect || unlikely(wire_enter(ep, 0))) return;
    ep->ops->expect(ep, n);
    wire_leave(ep, 0);
}

/* Not called: TERN_ERR_UNSUPPORTED, as when the system refuses. Large copies are made outside of handlers. */
static inline int ep_get(struct tp_ep *ep, const struct iovec *local, int nl, const struct iovec *remote, int nr)
{
    if (unlikely(wire_enter(ep, TP_THREADS_COPY))) return TERN_ERR_UNSUPPORTED;
    int rc = ep->ops->get(ep, local, nl, remote, nr);
    wire_leave(ep, TP_THREADS_COPY);
    return rc;
}

static inline int ep_put(struct tp_ep *ep, const struct iovec *local, int nl, const struct iovec *remote, int nr)
{
    if (unlikely(wire_enter(ep, TP_THREADS_COPY))) return TERN_ERR_UNSUPPORTED;
    int rc = ep->ops->put(ep, local, nl, remote, nr);
    wire_leave(ep, TP_THREADS_COPY);
    return rc;
}

/* Not called: NULL. */
static inline void *ep_map(struct tp_ep *ep, uint64_t offset, size_t n)
{
    if (unlikely(wire_enter(ep, TP_THREADS_LOOK))) return NULL;
    void *at = ep->ops->map(ep, offset, n);
    wire_leave(ep, TP_THREADS_LOOK);
    return at;
}

static inline void *ep_map_arena(struct tp_ep *ep, uint64_t place, size_t n)
{
    if (unlikely(wire_enter(ep, 0))) return NULL;
    void *at = ep->ops->map_arena(ep, place, n);
    wire_leave(ep, 0);
    return at;
}

/* Of a peer that is connected. Not called, or unknown: false. */
static inline bool ep_has_left(struct tp_ep *ep)
{
    if (!ep->ops->left || unlikely(wire_enter(ep, TP_THREADS_LOOK))) return false;
    bool left = ep->ops->left(ep);
    wire_leave(ep, TP_THREADS_LOOK);
    return left;
}

/* tp_ops.helped or .sees; false, if that is not known. */
static inline bool ep_asks(struct tp_ep *ep, bool (*question)(struct tp_ep *))
{
    if (!question || unlikely(wire_enter(ep, TP_THREADS_LOOK))) return false;
    bool yes = question(ep);
    wire_leave(ep, TP_THREADS_LOOK);
    return yes;
}
static inline bool ep_is_helped(struct tp_ep *ep) { return ep_asks(ep, ep->ops->helped); }
static inline bool ep_sees(struct tp_ep *ep) { return ep_asks(ep, ep->ops->sees); }

/* 0: it is cut, or there was nothing to cut. TERN_AGAIN: the caller tries again, outside of the handler. */
static inline int ep_sever(struct tp_ep *ep)
{
    int rc = ep->ops && ep->ops->sever ? wire_enter(ep, 0) : 0;
    if (rc || !ep->ops || !ep->ops->sever) return rc;
    ep->ops->sever(ep);
    wire_leave(ep, 0);
    return 0;
}

#endif
