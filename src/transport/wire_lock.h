/*
 * wire_lock.h - threads in the transports: the locks that the library has for each wire.
 *
 * Until wires_share is called one thread at a time uses the transports, and no lock is taken. From then on a transport
 * says which of its members any thread may be in (tp_ops.threads); for all others a wire has two locks:
 *
 *     poll    progress, idle, keep, peer_close           only tried by threads that look for messages (wire_poll)
 *     call    connecting, mapping, all that sends and that no flag of the transport frees
 *
 * They are one lock where the transport does not say that the two halves may run side by side (TP_THREADS_POLL).
 *
 * Order: a lane, a wire's poll lock, a wire's call lock, the leaf locks of tables (leaf_take). A thread that
 * has a poll lock, in a handler, only tries lanes. The call lock of a wire with two locks is a leaf: it is always waited
 * for. Wires with one lock are waited for in the order of their numbers: a handler of one of them that sends by another
 * of a lower number gets TERN_AGAIN if a thread is in that. Within a wire that a thread is in, it goes in again.
 *
 * Calls of members of an endpoint are in endpoint.h. Sending needs none of it: tp_ep.am_short is exchanged where the
 * transport needs a lock for it.
 */
#ifndef TERN_TRANSPORT_WIRE_LOCK_H
#define TERN_TRANSPORT_WIRE_LOCK_H

#include "base/lock.h"
#include "transport/wires.h"

/* Threads share the transports. Set by wires_share, for good; read by threads in a lane, or behind wires_are_shared (peer.h). */
extern TERN_HIDDEN bool wires_threaded;

/* From now on threads use the transports, those that are open and those that open later. By one thread, while no other is
 * in a transport or sends. */
void wires_share(void) TERN_COLD;
void wires_unshare(void); /* the transports are closed */

/*
 * Around the call of a member of an endpoint's transport, by any thread: `member` is the flag that names the member,
 * or 0 (am_zcopy, bulk transfers, map_arena, remote, sever). 0; or TERN_AGAIN, only to threads that are in another wire:
 * not now, and then the caller does not leave. Nothing happens while one thread is all there is.
 */
int wire_enter_locked(const struct tp_ep *, uint32_t member) TERN_COLD;
void wire_leave_locked(const struct tp_ep *, uint32_t member) TERN_COLD;
static inline int wire_enter(const struct tp_ep *ep, enum tp_threads member)
{
    return likely(!wires_threaded) ? 0 : wire_enter_locked(ep, member);
}
static inline void wire_leave(const struct tp_ep *ep, enum tp_threads member)
{
    if (unlikely(wires_threaded)) wire_leave_locked(ep, member);
}

/* The same by the number of a wire (wires_at), for members of its domain. WIRE_POLL may be asked for by a thread that is
 * in no wire; others get TERN_AGAIN if another thread polls. */
enum wire_part { WIRE_CALL = 1, WIRE_POLL = 2, WIRE_ALL = 3 };
int wire_take(int number, enum wire_part);
void wire_give(int number, enum wire_part);
bool wire_is_inside(void); /* is this thread in a wire? */

/* By any thread: progress of one wire, and whether it is idle (tp_ops). 0, and false, if another thread is there, or if this
 * one is in a handler. */
int wire_poll(int number, int budget);
bool wire_idle(int number, bool want_room);

/* Times that a look at a wire found another thread polling it; and that a thread waited for one of the wire's locks, and how
 * long in all. By a thread that is in no wire. */
struct wire_waits {
    uint64_t busy, waits, waited_ns;
};
struct wire_waits wire_waited(int number) TERN_COLD;
/* Set by the layer above, or NULL: called behind each look of wire_poll, with the wire's lock. */
extern TERN_HIDDEN void (*wire_poll_over)(void);

/* The wire that this thread polls, which its handlers are called by; NULL: none. */
const struct wire *wire_polled(void);

/* What tp_ep.am_short of a new endpoint is to be, whose transport sends by `own`. */
typedef int (*tp_short_fn)(struct tp_ep *, unsigned, uint64_t, uint64_t, const void *, size_t);
tp_short_fn wire_short(const struct tp_ops *, tp_short_fn own);

/*
 * A lock for tables of this layer, taken last and for a moment, and only from leaf_share on. The thread that calls leaf_share then
 * waits until what the only other one was doing is over (base/quiet.h), and takes no such lock before that: so one that was not
 * taken before leaf_share is nobody's when it is to be given back behind it.
 */
extern TERN_HIDDEN _Atomic bool leaf_shared; /* relaxed: ordered by the quiet */
void leaf_share(void) TERN_COLD;
static inline void leaf_take(struct lock *l)
{
    if (unlikely(atomic_load_explicit(&leaf_shared, memory_order_relaxed))) lock_take(l);
}
static inline void leaf_give(struct lock *l)
{
    if (unlikely(atomic_load_explicit(&leaf_shared, memory_order_relaxed)) && lock_is_held(l)) lock_give(l);
}

#endif
