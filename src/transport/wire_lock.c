/* wire_lock.c - see wire_lock.h. */
#include "transport/wire_lock.h"
#include "base/err.h"
#include "transport/peer.h"

#include <string.h>

bool wires_threaded;
_Atomic bool leaf_shared;

void leaf_share(void) { atomic_store_explicit(&leaf_shared, true, memory_order_relaxed); }
void (*wire_poll_over)(void);

static struct {
    struct lock call, poll;
    _Atomic uint64_t busy; /* looks that found another thread polling: relaxed, a mere count */
    _Atomic bool refused; /* a call, since another thread was in it: who is refused tries again before it sleeps */
} wires[WIRES_MAX];

/* What this thread is in. */
static _Thread_local struct {
    uint8_t depth[WIRES_MAX][2]; /* of each lock */
    uint32_t locks;              /* that it has */
    uint32_t single;             /* wires with one lock, by number */
    const struct wire *polled;
} mine __attribute__((tls_model("initial-exec")));

static bool is_single(int number) { return !(wires_at(number)->ops->threads & TP_THREADS_POLL); }

/* Which of its locks: 0 call, 1 poll. */
static int lock_for(int number, enum wire_part part) { return part == WIRE_POLL && !is_single(number); }
static struct lock *lock_at(int number, int which) { return which ? &wires[number].poll : &wires[number].call; }

/* No circle of threads that wait for each other comes of it, see wire_lock.h. */
static bool may_wait(int number, int which)
{
    if (which) return !mine.locks;
    return !is_single(number) || !(mine.single >> number);
}

static void note(int number, int which, bool in)
{
    uint32_t bit = is_single(number) ? 1u << number : 0;
    mine.depth[number][which] = in;
    mine.locks += in ? 1u : -1u;
    mine.single = in ? mine.single | bit : mine.single & ~bit;
}

static int take(int number, int which, bool wait)
{
    struct lock *l = lock_at(number, which);
    if (mine.depth[number][which]) {
        mine.depth[number][which]++;
        return 0;
    }
    if (!lock_try(l)) {
        if (!wait || !may_wait(number, which)) return TERN_AGAIN;
        lock_take(l);
    }
    note(number, which, true);
    return 0;
}

static void give(int number, int which)
{
    if (--mine.depth[number][which]) return;
    note(number, which, false);
    lock_give(lock_at(number, which));
}

int wire_take(int number, enum wire_part part)
{
    int rc = wires_threaded && part & WIRE_POLL ? take(number, lock_for(number, WIRE_POLL), true) : 0;
    if (rc || !wires_threaded || !(part & WIRE_CALL)) return rc;
    rc = take(number, 0, true);
    if (rc) atomic_store_explicit(&wires[number].refused, true, memory_order_relaxed); /* what the caller parks orders it */
    if (rc && part & WIRE_POLL) give(number, lock_for(number, WIRE_POLL));
    return rc;
}

void wire_give(int number, enum wire_part part)
{
    if (!wires_threaded) return;
    if (part & WIRE_CALL) give(number, 0);
    if (part & WIRE_POLL) give(number, lock_for(number, WIRE_POLL));
}

bool wire_is_inside(void) { return mine.locks; }

static int number_of(const struct tp_ep *ep)
{
    const struct wire *w;
    int i = 0;
    while ((w = wires_at(i)) && (w->ops != ep->ops || (ep->dom && w->dom != ep->dom))) i++;
    assert(w);
    return i;
}

int wire_enter_locked(const struct tp_ep *ep, uint32_t member)
{
    return ep->ops->threads & member ? 0 : wire_take(number_of(ep), WIRE_CALL);
}

void wire_leave_locked(const struct tp_ep *ep, uint32_t member)
{
    if (!(ep->ops->threads & member)) wire_give(number_of(ep), WIRE_CALL);
}

/* ---- polling ---- */

/* Into the half that polls, if no other thread is there. */
static bool try_poll(int number)
{
    if (take(number, lock_for(number, WIRE_POLL), false)) {
        atomic_fetch_add_explicit(&wires[number].busy, 1, memory_order_relaxed);
        return false;
    }
    mine.polled = wires_at(number);
    return true;
}

static void end_poll(int number)
{
    mine.polled = NULL;
    give(number, lock_for(number, WIRE_POLL));
}

int wire_poll(int number, int budget)
{
    const struct wire *w = wires_at(number);
    assert(wires_threaded);
    if (!w->ops->progress || mine.polled || !try_poll(number)) return 0;
    int n = w->ops->progress(w->dom, budget);
    if (wire_poll_over) wire_poll_over();
    end_poll(number);
    return n;
}

bool wire_idle(int number, bool want_room)
{
    const struct wire *w = wires_at(number);
    assert(wires_threaded);
    if (!w->ops->idle) return true;
    if (mine.polled || !try_poll(number)) return false;
    bool refused = want_room && atomic_exchange_explicit(&wires[number].refused, false, memory_order_relaxed);
    bool idle = !refused && w->ops->idle(w->dom, want_room);
    end_poll(number);
    return idle;
}

struct wire_waits wire_waited(int number)
{
    struct wire_waits c = {.busy = atomic_load_explicit(&wires[number].busy, memory_order_relaxed)};
    for (int which = 0; which <= lock_for(number, WIRE_POLL); which++) {
        struct lock *l = lock_at(number, which);
        lock_take(l);
        c.waits += l->waits;
        c.waited_ns += l->waited_ns;
        lock_give(l);
    }
    return c;
}

const struct wire *wire_polled(void) { return mine.polled; }

/* ---- sharing ---- */

static int am_short_locked(struct tp_ep *ep, unsigned id, uint64_t h0, uint64_t h1, const void *p, size_t n)
{
    int number = number_of(ep), rc = wire_take(number, WIRE_CALL);
    if (rc) return rc;
    rc = ep->ops->am_short(ep, id, h0, h1, p, n);
    wire_give(number, WIRE_CALL);
    return rc;
}

tp_short_fn wire_short(const struct tp_ops *ops, tp_short_fn own)
{
    return wires_threaded && !(ops->threads & TP_THREADS_SEND) ? am_short_locked : own;
}

static void share_peer(struct peer *p)
{
    p->ep.am_short = wire_short(p->ep.ops, p->ep.am_short);
    if (peer_delivers_at_once(p)) peer_set_short(p, -1);
}

void wires_share(void)
{
    const struct wire *w;
    if (wires_threaded) return;
    for (int i = 0; (w = wires_at(i)); i++)
        if (w->ops->share) w->ops->share(w->dom);
    leaf_share(); /* where nobody has done so before, one thread is all there is */
    wires_threaded = true;
    for (uint32_t i = 0; i < peers_end(); i++)
        if (peer_table[i] && peer_table[i]->ep.ops) share_peer(peer_table[i]);
    /* release: a thread that finds the table finds how the transports are used; pairs with send_short_shared */
    atomic_store_explicit(&peer_shared_table, peer_table, memory_order_release);
}

void wires_unshare(void)
{
    atomic_store_explicit(&peer_shared_table, NULL, memory_order_relaxed);
    wires_threaded = false;
    atomic_store_explicit(&leaf_shared, false, memory_order_relaxed);
    memset(wires, 0, sizeof wires);
}
