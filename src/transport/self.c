/*
 * self.c - the transport to the process itself: a message is delivered during the
 * call that sends it, memory is copied in place.
 */
#include "base/err.h"
#include "proc/proc.h"
#include "transport/peer.h"
#include "transport/shared.h"

#include <string.h>

static int self_open(struct tp_dom **dom)
{
    static char none;
    *dom = (struct tp_dom *)(void *)&none; /* no state */
    return 0;
}

static void self_close(struct tp_dom *dom) { (void)dom; }

/* The card is the process's rank in its job: only that very process is reached. */
static int self_card(struct tp_dom *dom, void *buf, size_t cap)
{
    (void)dom;
    uint32_t rank = proc_self()->rank;
    if (cap < sizeof rank) return err_set(TERN_ERR_INTERN, "no room for the card of self");
    memcpy(buf, &rank, sizeof rank);
    return (int)sizeof rank;
}

static int self_reach(struct tp_dom *dom, const void *card, size_t n)
{
    (void)dom;
    uint32_t rank;
    if (n != sizeof rank) return 0;
    memcpy(&rank, card, sizeof rank);
    return rank == proc_self()->rank;
}

static int self_am_short(struct tp_ep *ep, unsigned id, uint64_t h0, uint64_t h1, const void *p, size_t n)
{
    tp_handlers[id](ep->priv, h0, h1, p, n);
    return 0;
}

static int self_ep_open(struct tp_dom *dom, struct peer *peer, const void *card, size_t n, struct tp_ep *ep)
{
    (void)dom;
    (void)card;
    (void)n;
    ep->ops = &tp_self;
    ep->am_short = self_am_short;
    ep->priv = peer;
    ep->max_short = 8192;
    ep->caps = TP_CAP_GETPUT | TP_CAP_MAP;
    return 0;
}

static void self_ep_close(struct tp_dom *dom, struct tp_ep *ep)
{
    (void)dom;
    ep->ops = NULL;
}

/* Copies between two lists of pieces; overlapping buffers are the user's error but must not crash. */
static int self_move(const struct iovec *to, int nt, const struct iovec *from, int nf)
{
    size_t at_to = 0, at_from = 0;
    while (nt && nf) {
        size_t n = min_size(to->iov_len - at_to, from->iov_len - at_from);
        memmove((char *)to->iov_base + at_to, (char *)from->iov_base + at_from, n);
        at_to += n;
        at_from += n;
        if (at_to == to->iov_len) to++, nt--, at_to = 0;
        if (at_from == from->iov_len) from++, nf--, at_from = 0;
    }
    return 0;
}

static int self_get(struct tp_ep *ep, const struct iovec *local, int nl, const struct iovec *remote, int nr)
{
    (void)ep;
    return self_move(local, nl, remote, nr);
}

static int self_put(struct tp_ep *ep, const struct iovec *local, int nl, const struct iovec *remote, int nr)
{
    (void)ep;
    return self_move(remote, nr, local, nl);
}

static void *self_map(struct tp_ep *ep, uint64_t offset, size_t n)
{
    (void)ep;
    (void)n;
    return shared_at(offset);
}

static void self_nudge(struct tp_ep *ep) { (void)ep; } /* who nudges is awake */

const struct tp_ops tp_self = {
    .name = "self",
    .open = self_open,
    .close = self_close,
    .card = self_card,
    .reach = self_reach,
    .ep_open = self_ep_open,
    .ep_close = self_ep_close,
    .am_short = self_am_short,
    .get = self_get,
    .put = self_put,
    .map = self_map,
    .nudge = self_nudge,
};
