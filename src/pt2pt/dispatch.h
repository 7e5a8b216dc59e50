/*
 * dispatch.h - between a transport and the handler of a message: finds the lane that the message belongs to.
 *
 * A message names a context, a request of this process, or nothing but its sender:
 *
 *     PT_BY_CONTEXT   h0 is a context, and the message waits if that has no communicator yet (early.h)
 *     PT_ABOUT        h0 is a context; the handler is told if it has no communicator
 *     PT_BY_ID        h0 is the id of a request (ids.h)
 *     PT_BY_LANE      h0 is not what was sent, but the struct lane that was found for it
 *     PT_BY_PEER      concerns the processes: the first lane
 *
 * What a peer that is lost has sent is dropped.
 *
 * While one thread at a time uses the transports, handlers are called here, and the caller is in the lane. Once threads share
 * them the lane is looked for (deliver.h), and the message may wait for it. A layer above whose handlers are to have a lane as
 * well has constants of its own, and its tp_handler_fn call dispatch.
 *
 * Threads: by transports.
 */
#ifndef TERN_PT2PT_DISPATCH_H
#define TERN_PT2PT_DISPATCH_H

#include "pt2pt/contexts.h"
#include "pt2pt/lanes.h"
#include "transport/peer.h"
#include "transport/wire_lock.h"

/* `pt` is NULL for messages that name no context, or, by PT_ABOUT, one without a communicator. The rest is as for
 * tp_handler_fn (transport/am.h). */
typedef void (*pt_handler_fn)(struct lane *, struct pt_comm *pt, struct peer *from, uint64_t h0, uint64_t h1, const void *data,
                              size_t n);

enum pt_where { PT_BY_CONTEXT, PT_ABOUT, PT_BY_ID, PT_BY_LANE, PT_BY_PEER };

/* A kind of message: a constant. */
struct pt_kind {
    unsigned id; /* enum pt_am */
    enum pt_where where;
    pt_handler_fn handler;
};

/* A message for a context that is not known: it is kept (early.c). False, once threads share the transports: the context's
 * communicator has been made meanwhile. */
bool early_put(const struct pt_kind *, struct peer *from, uint64_t h0, uint64_t h1, const void *data, size_t n) TERN_COLD;

/* deliver.c: once threads share the transports; and for a context that is not that of the last message, or then. */
void dispatch_shared(const struct pt_kind *, struct peer *from, uint64_t h0, uint64_t h1, const void *data, size_t n);
void dispatch_looked_up(const struct pt_kind *, struct peer *from, uint64_t h0, uint64_t h1, const void *data, size_t n);

/* No context is the last once threads share the transports, or a peer was lost (contexts_no_last). */
static inline __attribute__((always_inline)) void dispatch_to_context(const struct pt_kind *k, struct peer *from, uint64_t h0,
                                                                      uint64_t h1, const void *data, size_t n)
{
    struct pt_comm *pt = context_last;
    if (unlikely(pt->ctx != (h0 & ~CTX_COLL))) dispatch_looked_up(k, from, h0, h1, data, n);
    else k->handler(pt->lane, pt, from, h0, h1, data, n);
}

static inline void dispatch_in_lane(const struct pt_kind *k, struct peer *from, uint64_t h0, uint64_t h1, const void *data, size_t n)
{
    if (unlikely(wires_threaded)) dispatch_shared(k, from, h0, h1, data, n);
    else if (likely(!from->lost))
        k->handler(k->where == PT_BY_ID ? lanes_of_id(h0) : lanes_first(), NULL, from, h0, h1, data, n);
}

/* The tp_handler_fn of a message is a call of this. Inline, so that nothing of the kind is left to be looked up. */
static inline __attribute__((always_inline)) void dispatch(const struct pt_kind *k, struct peer *from, uint64_t h0, uint64_t h1,
                                                           const void *data, size_t n)
{
    sanitizer_acquired(&lanes_told);
    if (k->where == PT_BY_CONTEXT || k->where == PT_ABOUT) dispatch_to_context(k, from, h0, h1, data, n);
    else dispatch_in_lane(k, from, h0, h1, data, n);
}

#endif
