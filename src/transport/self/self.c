/*
 * self.c - the transport to the process itself: a message is delivered during the
 * call that sends it, memory is copied in place.
 */
#include "base/err.h"
#include "proc/jobs.h"
#include "transport/peer.h"
#include "transport/pieces.h"
#include "transport/shared.h"

#include <string.h>

static int self_open(struct tp_dom **dom)
{
    static char none;
    *dom = (struct tp_dom *)(void *)&none; /* no state */
    return 0;
}

static void self_close(struct tp_dom *dom) { (void)dom; }

/* The card is the process's name: only that very process is reached. */
static int self_card(struct tp_dom *dom, void *buf, size_t cap)
{
    (void)dom;
    struct proc_name own = jobs_own_name();
    if (cap < sizeof own) return err_set(TERN_ERR_INTERN, "no room for the card of self");
    memcpy(buf, &own, sizeof own);
    return (int)sizeof own;
}

static int self_reach(struct tp_dom *dom, const void *card, size_t n)
{
    (void)dom;
    struct proc_name name, own = jobs_own_name();
    if (n != sizeof name) return 0;
    memcpy(&name, card, sizeof name);
    return proc_name_same(&name, &own);
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

static int self_get(struct tp_ep *ep, const struct iovec *local, int nl, const struct iovec *remote, int nr)
{
    (void)ep;
    pieces_copy(local, nl, remote, nr);
    return 0;
}

static int self_put(struct tp_ep *ep, const struct iovec *local, int nl, const struct iovec *remote, int nr)
{
    (void)ep;
    pieces_copy(remote, nr, local, nl);
    return 0;
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
