/* transfer.c - see transfer.h. */
#include "transfer/transfer.h"
#include "copy/copy.h"
#include "transport/endpoint.h"

/* ---- claims ---- */

static uint32_t chunks_of(const struct transfer *t) { return (uint32_t)((transfer_bytes(t) + t->chunk - 1) / t->chunk); }

struct piece {
    uint64_t at, bytes;
};

/* The next chunk; false: none is left. relaxed: only who gets which one matters; the ends were acquired with `said` */
static bool claim(struct transfer *t, uint32_t chunks, struct piece *x)
{
    uint32_t i = atomic_fetch_add_explicit(&t->next, 1, memory_order_relaxed);
    if (i >= chunks) return false;
    x->at = (uint64_t)((i + (uint64_t)t->first) % chunks) * t->chunk;
    uint64_t left = transfer_bytes(t) - x->at;
    x->bytes = left < t->chunk ? left : t->chunk;
    return true;
}

/* So many more chunks are done. acq_rel: whoever adds the last one answers for the copies, and the errors, of all others */
static unsigned count(struct transfer *t, uint32_t n, uint32_t chunks)
{
    return n && atomic_fetch_add_explicit(&t->done, n, memory_order_acq_rel) + n == chunks ? TRANSFER_ENDED : 0;
}

/* Claims all chunks that are left. Returns how many these are. */
static TERN_COLD uint32_t give_up(struct transfer *t, int error, uint32_t chunks)
{
    atomic_store_explicit(&t->error, error, memory_order_relaxed); /* another one may write over it: before the transfer is over */
    uint32_t at = atomic_fetch_add_explicit(&t->next, chunks, memory_order_relaxed);
    return at < chunks ? chunks - at : 0;
}

/* Of a claimed chunk: 0, or what went wrong. */
static unsigned put_down(struct transfer *t, int error, uint32_t chunks)
{
    uint32_t n = likely(!error) ? 1 : 1 + give_up(t, error, chunks);
    return TRANSFER_MOVED | count(t, n, chunks);
}

/* ---- the end before the end ---- */

#define STOPPED (UINT32_MAX / 2) /* `next`, from here on: nothing is left to be claimed, however much there is */

void transfer_stop(struct transfer *t) { atomic_store_explicit(&t->next, STOPPED, memory_order_relaxed); }

/* acq_rel: of this and the exchange in transfer_renew, the second one finds what the first one has written. */
uint32_t transfer_retract(struct transfer *t)
{
    uint32_t claimed = atomic_exchange_explicit(&t->next, STOPPED, memory_order_acq_rel);
    return claimed < STOPPED ? claimed : 0; /* the other side has retracted before, and copies nothing since */
}

/* acquire: pairs with `count`; the copies are over */
bool transfer_is_quiet(const struct transfer *t, uint32_t claimed)
{
    uint32_t chunks = chunks_of(t);
    return atomic_load_explicit(&t->done, memory_order_acquire) >= (claimed < chunks ? claimed : chunks);
}

/* If the other side has retracted, it is over at once: what that side has found claimed was of the last use of the memory, and all of it is
 * done. relaxed: `said` comes behind it */
void transfer_renew(struct transfer *t)
{
    bool retracted = atomic_exchange_explicit(&t->next, 0, memory_order_acq_rel) >= STOPPED;
    if (unlikely(retracted)) atomic_store_explicit(&t->next, STOPPED, memory_order_relaxed);
    atomic_store_explicit(&t->done, retracted ? STOPPED : 0, memory_order_relaxed);
    atomic_store_explicit(&t->error, retracted ? TERN_ERR_PEER : 0, memory_order_relaxed);
    for (int side = 0; side < 2; side++) atomic_store_explicit(&t->end[side].helpless, 0, memory_order_relaxed);
}

/* ---- copying ---- */

bool transfer_reaches(const struct transfer *t, enum transfer_side side, const struct tp_ep *ep)
{
    return (ep->caps & TP_CAP_GETPUT) || (t->end[!side].place && (ep->caps & TP_CAP_ARENA));
}

static struct iovec memory_of(const struct transfer *t, enum transfer_side side, struct piece x)
{
    return (struct iovec){(void *)(uintptr_t)(t->end[side].at + x.at), x.bytes};
}

/* Through the mapping of the other's arena, if that is where its memory lies; else the system does it. */
static int copy(const struct transfer *t, enum transfer_side side, struct tp_ep *ep, struct piece x)
{
    uint64_t place = t->end[!side].place;
    struct iovec from = memory_of(t, TRANSFER_FROM, x), to = memory_of(t, TRANSFER_TO, x);
    void *there = place && (ep->caps & TP_CAP_ARENA) ? ep_map_arena(ep, place + x.at, x.bytes) : NULL;
    if (there) {
        if (side == TRANSFER_FROM) copy_part(there, from.iov_base, x.bytes, transfer_bytes(t));
        else copy_part(to.iov_base, there, x.bytes, transfer_bytes(t));
        return 0;
    }
    if (!(ep->caps & TP_CAP_GETPUT)) return TERN_ERR_UNSUPPORTED; /* no arena after all */
    return side == TRANSFER_FROM ? ep_put(ep, &from, 1, &to, 1) : ep_get(ep, &to, 1, &from, 1);
}

/* Each side says so first, and looks at the other next, so one of two that are helpless sees it. */
static TERN_COLD unsigned leave(struct transfer *t, enum transfer_side side, uint32_t chunks)
{
    atomic_store(&t->end[side].helpless, 1);
    if (!atomic_load(&t->end[!side].helpless)) return 0;
    return count(t, give_up(t, TERN_ERR_UNSUPPORTED, chunks), chunks);
}

unsigned transfer_go_on(struct transfer *t, enum transfer_side side, struct tp_ep *ep)
{
    if (!transfer_has_work(t)) return 0;
    uint32_t chunks = chunks_of(t);
    if (unlikely(!transfer_reaches(t, side, ep))) return leave(t, side, chunks);
    struct piece x;
    return claim(t, chunks, &x) ? put_down(t, copy(t, side, ep, x), chunks) : 0;
}

unsigned transfer_go_on_here(struct transfer *t)
{
    uint32_t chunks = chunks_of(t);
    struct piece x;
    if (!transfer_has_work(t) || !claim(t, chunks, &x)) return 0;
    copy_part(memory_of(t, TRANSFER_TO, x).iov_base, memory_of(t, TRANSFER_FROM, x).iov_base, x.bytes, transfer_bytes(t));
    return put_down(t, 0, chunks);
}

unsigned transfer_carry(struct transfer *t, struct tp_ep *ep, void *buffer)
{
    uint32_t chunks = chunks_of(t);
    struct piece x;
    if (!(ep->caps & TP_CAP_GETPUT) || !transfer_has_work(t) || !claim(t, chunks, &x)) return 0;
    struct iovec from = memory_of(t, TRANSFER_FROM, x), to = memory_of(t, TRANSFER_TO, x), here = {buffer, x.bytes};
    int rc = ep_get(ep, &here, 1, &from, 1);
    if (!rc) rc = ep_put(ep, &here, 1, &to, 1);
    return put_down(t, rc, chunks);
}

/* ---- life ---- */

static bool leave_open(struct transfer *t, enum transfer_life next)
{
    uint32_t open = TRANSFER_OPEN;
    return atomic_compare_exchange_strong_explicit(&t->life, &open, next, memory_order_acq_rel, memory_order_acquire);
}

bool transfer_take(struct transfer *t) { return leave_open(t, TRANSFER_TAKEN); }
bool transfer_withdraw(struct transfer *t) { return leave_open(t, TRANSFER_WITHDRAWN); }
void transfer_give_back(struct transfer *t) { atomic_store_explicit(&t->life, TRANSFER_OPEN, memory_order_release); }
void transfer_close(struct transfer *t) { atomic_store_explicit(&t->life, TRANSFER_CLOSED, memory_order_release); }
