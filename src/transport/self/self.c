/*
 * self.c - the transport to the process itself: a message is delivered during the
 * call that sends it, memory is copied in place.
 */
#include "base/err.h"
#include "proc/jobs.h"
#include "transport/peer.h"
#include "transport/pieces.h"
#include "transport/remote.h"
#include "transport/shared.h"

#include <string.h>

static int self_open(struct tp_dom **dom, const struct tp_env *env, const char *domain)
{
    (void)env, (void)domain;
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

static bool self_reach(struct tp_dom *dom, const void *card, size_t n)
{
    (void)dom;
    struct proc_name name, own = jobs_own_name();
    if (n != sizeof name) return false;
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
    ep->caps = TP_CAP_GETPUT | TP_CAP_MAP | TP_CAP_REMOTE;
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

/* Registered memory is in place. */
static int self_mem_reg(struct tp_dom *dom, uint64_t id, void *base, size_t bytes, uint32_t access, void **mem)
{
    (void)dom, (void)base, (void)bytes, (void)access;
    *mem = remote_find(id);
    return 0;
}

static void self_mem_dereg(struct tp_dom *dom, void *mem) { (void)dom, (void)mem; }

static int self_key_pack(struct tp_dom *dom, const void *mem, void *buf, size_t cap)
{
    (void)dom, (void)mem, (void)buf, (void)cap;
    return 0; /* the id is enough */
}

static int self_key_open(struct tp_ep *ep, const void *packed, size_t n, struct remote_key *k)
{
    struct remote_mem *m = remote_find(k->id);
    (void)ep, (void)packed, (void)n;
    if (!m) return err_set(TERN_ERR_NOT_FOUND, "memory of this process is not registered any more");
    k->at = m->base;
    k->live = &m->live;
    k->bytes = m->bytes;
    k->access = m->access;
    return 0;
}

static const struct tp_remote self_remote = {
    .mem_reg = self_mem_reg,
    .mem_dereg = self_mem_dereg,
    .key_pack = self_key_pack,
    .key_open = self_key_open,
};

static void self_nudge(struct tp_ep *ep, bool helper) { (void)ep, (void)helper; } /* who nudges is awake */

const struct tp_ops tp_self = {
    .name = "self",
    .cost = {.locality = TP_PROCESS, .latency_ns = 20, .send_ns = 20, .poll_ns = 0, .mb_per_s = 20000,
             .eager_max = 32 << 10, .eager_variable = "TERN_EAGER_SHM"},
    .open = self_open,
    .close = self_close,
    .card = self_card,
    .reach = self_reach,
    .ep_open = self_ep_open,
    .ep_close = self_ep_close,
    .threads = TP_THREADS_SEND | TP_THREADS_COPY | TP_THREADS_LOOK,
    .am_short = self_am_short,
    .get = self_get,
    .put = self_put,
    .map = self_map,
    .remote = &self_remote,
    .nudge = self_nudge,
};
