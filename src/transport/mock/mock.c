/*
 * mock.c - a transport for tests, within one process: what is sent to a peer is put
 * into a queue, and comes back from that peer when progress is made, so that both
 * sides of the protocol run in one thread, in an order that a test decides. As any
 * wire it refuses messages when its queue is full; a script (mock.h) makes it refuse,
 * fail and lack capabilities as well, or leaves a peer to the test.
 *
 * TERN_TRANSPORTS=mock uses it for a process started alone. TERN_MOCK_DOMAINS=2 gives it two domains, "a" and "b", with
 * queues of their own.
 */
#include "transport/mock/mock.h"
#include "base/err.h"
#include "proc/jobs.h"
#include "transport/arena.h"
#include "transport/mock/mock_bulk.h"
#include "transport/peer.h"
#include "transport/pieces.h"
#include "transport/shared.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

struct mock_script mock_script = MOCK_SCRIPT;
struct mock_count mock_count;

struct message {
    struct link link;
    unsigned id;
    uint64_t h0, h1;
    size_t n;
    const void *from; /* where the payload lies: data, or the sender's own memory */
    struct tp_op *op; /* am_zcopy, to be told that it is done; else NULL */
    bool asked;       /* for a sink, which is: */
    void *sink;
    uint64_t data[];
};

struct mock_ep {
    struct link in_all;
    struct link queue; /* struct message */
    uint32_t queued;
    struct mock_bulks bulks;
    bool bulk_next; /* before the next message */
    struct peer *peer;
    uint64_t sent; /* messages */
    bool played;   /* by the test */
    bool awaited;  /* tp_ops.await_handled has been called */
    bool lost; /* or severed: nothing comes or goes any more */
};

struct mock_dom {
    struct link eps;
    uint32_t number;
};

static struct mock_dom doms[MOCK_DOMAINS];
static const char *const dom_names[MOCK_DOMAINS] = {"a", "b"};

/* Of all domains. */
static struct {
    struct bell bell;
    uint64_t random;
    uint32_t sends; /* since the last refusal by again_every */
    struct message *delivering; /* NULL: none, or its handler has kept it, and it may be gone */
    struct tp_dom *delivered_by;
} mock;

static _Atomic uint32_t kept; /* messages that are; relaxed: a number only */

static struct mock_dom *dom_of(struct tp_dom *d) { return (struct mock_dom *)(void *)d; }

static int mock_domains(const struct tp_env *env, char (*names)[TP_DOMAIN_NAME], int max)
{
    const char *wanted = env->variable("TERN_MOCK_DOMAINS");
    int n = wanted ? atoi(wanted) : 0;
    if (n < 0 || n > MOCK_DOMAINS || n > max)
        return err_set(TERN_ERR_ARG, "variable TERN_MOCK_DOMAINS: %s is not between 0 and %d", wanted, MOCK_DOMAINS);
    for (int i = 0; i < n; i++) memcpy(names[i], dom_names[i], strlen(dom_names[i]) + 1);
    return n;
}

/* The first that opens opens what they share. */
static int open_shared(void)
{
    if (shared_is_open()) return 0;
    bell_open(&mock.bell, true);
    mock.random = mock_script.seed;
    mock.sends = 0;
    return shared_open(NULL, 0, (uint64_t)1 << 20);
}

static int mock_open(struct tp_dom **dom_p, const struct tp_env *env, const char *domain)
{
    uint32_t number = 0;
    (void)env;
    if (mock_script.absent) return err_set(TERN_ERR_NOT_FOUND, "mock: none is here");
    while (domain && number < MOCK_DOMAINS - 1 && strcmp(domain, dom_names[number])) number++;
    struct mock_dom *d = &doms[number];
    d->number = number;
    list_init(&d->eps);
    int rc = open_shared();
    if (!rc) *dom_p = (struct tp_dom *)(void *)d;
    return rc;
}

static void mock_close(struct tp_dom *d) { (void)d; }

struct mock_card {
    struct proc_name name;
    uint64_t domain;
};

static int mock_card(struct tp_dom *d, void *buf, size_t cap)
{
    struct mock_card c = {jobs_own_name(), dom_of(d)->number};
    if (cap < sizeof c) return err_set(TERN_ERR_INTERN, "no room for the card of mock");
    memcpy(buf, &c, sizeof c);
    return (int)sizeof c;
}

static bool read_card(struct mock_card *c, const void *card, size_t n)
{
    struct proc_name own = jobs_own_name();
    if (n != sizeof *c) return false;
    memcpy(c, card, n);
    return proc_name_same(&c->name, &own) && c->domain < MOCK_DOMAINS;
}

static bool mock_reach(struct tp_dom *d, const void *card, size_t n)
{
    struct mock_card c;
    (void)d;
    return read_card(&c, card, n);
}

static void mock_cost_to(struct tp_dom *d, const void *card, size_t n, struct tp_cost *cost)
{
    struct mock_card c;
    uint32_t ns = read_card(&c, card, n) ? mock_script.latency_ns[dom_of(d)->number][c.domain] : 0;
    if (ns) cost->latency_ns = ns;
}

/* ---- messages ---- */

/* The next of a sequence of random numbers (splitmix64). */
static uint64_t next_random(void)
{
    uint64_t z = mock.random += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* True at the n-th call since *count was set to n, and from then on. */
static bool due(uint32_t *count)
{
    if (*count > 1) --*count;
    else return *count == 1;
    return false;
}

static int gone(void) { return err_set(TERN_ERR_PEER, "mock: the peer is gone"); }

static int refuse(const struct mock_ep *e)
{
    if (e->lost) return gone();
    if (due(&mock_script.fail_send)) return err_set(mock_script.error, "mock: sending fails");
    bool again = e->queued >= mock_script.room;
    if (mock_script.again_every && ++mock.sends >= mock_script.again_every) {
        mock.sends = 0;
        again = true;
    }
    if (mock_script.again_percent && next_random() % 100 < mock_script.again_percent) again = true;
    mock_count.refused += again;
    return again ? TERN_AGAIN : 0;
}

/* An empty message with room for n bytes at the end of the queue; NULL with words when memory is out. */
static struct message *append(struct mock_ep *e, unsigned id, uint64_t h0, uint64_t h1, size_t n)
{
    struct message *m = malloc(sizeof *m + n);
    if (!m) {
        err_set(TERN_ERR_NOMEM, "no memory for a message of %zu bytes", n);
        return NULL;
    }
    m->id = id;
    m->h0 = h0;
    m->h1 = h1;
    m->n = n;
    m->from = m->data;
    m->op = NULL;
    m->asked = false;
    m->sink = NULL;
    list_push(&e->queue, &m->link);
    e->queued++;
    e->sent++;
    mock_count.sent[id]++;
    bell_check(&mock.bell, true);
    return m;
}

static int mock_am_short(struct tp_ep *ep, unsigned id, uint64_t h0, uint64_t h1, const void *p, size_t n)
{
    struct mock_ep *e = ep->priv;
    int rc = refuse(e);
    if (rc) return rc;
    struct message *m = append(e, id, h0, h1, n);
    if (!m) return TERN_ERR_NOMEM;
    if (n) memcpy(m->data, p, n);
    return 0;
}

static int mock_am_bcopy(struct tp_ep *ep, unsigned id, uint64_t h0, uint64_t h1, tp_pack_fn pack, void *arg, size_t n)
{
    struct mock_ep *e = ep->priv;
    int rc = refuse(e);
    if (rc) return rc;
    struct message *m = append(e, id, h0, h1, n);
    if (!m) return TERN_ERR_NOMEM;
    m->n = pack(arg, m->data, n);
    return 0;
}

static int mock_am_zcopy(struct tp_ep *ep, unsigned id, uint64_t h0, uint64_t h1, const void *p, size_t n, struct tp_op *op)
{
    struct mock_ep *e = ep->priv;
    int rc = refuse(e);
    if (rc) return rc;
    struct message *m = append(e, id, h0, h1, mock_script.done_late ? 0 : n);
    if (!m) return TERN_ERR_NOMEM;
    if (mock_script.done_late) {
        m->n = n;
        m->from = p;
        m->op = op;
    } else {
        memcpy(m->data, p, n);
        op->done(op, 0);
    }
    return 0;
}

static void take(struct mock_ep *e, struct message *m)
{
    list_remove(&m->link);
    e->queued--;
}

/* A message that was taken out is over, with this code. */
static void drop(struct message *m, int rc)
{
    struct tp_op *op = m->op;
    free(m);
    if (op) op->done(op, rc);
}

static void drop_all(struct mock_ep *e)
{
    while (!list_empty(&e->queue)) {
        struct message *m = container_of(e->queue.next, struct message, link);
        take(e, m);
        drop(m, gone());
    }
}

/* ---- bulk transfers ---- */

static int begin_bulk(struct tp_ep *ep, const struct mock_bulk *b, bool sends)
{
    struct mock_ep *e = ep->priv;
    int rc = refuse(e);
    if (!rc) rc = mock_bulk_begin(&e->bulks, b, sends);
    if (!rc) bell_check(&mock.bell, true);
    if (!rc) bell_check_again(&mock.bell); /* the data come without a message */
    return rc;
}

static int mock_bulk_send(struct tp_ep *ep, uint64_t tag, const void *p, size_t n, struct tp_op *op)
{
    return begin_bulk(ep, &(struct mock_bulk){tag, (void *)(uintptr_t)p, n, op}, true);
}

static int mock_bulk_recv(struct tp_ep *ep, uint64_t tag, void *p, size_t n, struct tp_op *op)
{
    return begin_bulk(ep, &(struct mock_bulk){tag, p, n, op}, false);
}

static void drop_bulks(struct mock_ep *e)
{
    mock_bulks_tell_ended(&e->bulks);
    while (mock_bulks_wait(&e->bulks)) mock_bulk_fail(&e->bulks, gone());
}

static bool bulk_to_do(const struct mock_ep *e)
{
    return mock_bulks_ready(&e->bulks) || (e->lost && mock_bulks_wait(&e->bulks));
}

/* ---- losses ---- */

static void lose(struct mock_ep *e)
{
    e->lost = true;
    if (!mock_script.done_after_lost) drop_all(e);
    tp_lost(e->peer, gone());
    drop_all(e);
    drop_bulks(e);
}

/* Only the closing of the queue: the rest is progress's, as we may be in the middle of a delivery. */
static void mock_sever(struct tp_ep *ep)
{
    ((struct mock_ep *)ep->priv)->lost = !mock_script.sever_counts;
    mock_count.severed++;
}

/* ---- progress ---- */

/* The header is there, and half of the payload. */
static void ask(struct mock_ep *e, struct message *m)
{
    m->asked = true;
    m->sink = tp_sinks[m->id](e->peer, m->h0, m->h1, m->n);
    mock_count.sinks++;
    mock_count.sunk += m->sink != NULL;
    if (m->sink) memcpy(m->sink, m->from, m->n / 2);
}

static int deliver_message(struct mock_ep *e)
{
    struct message *m = container_of(e->queue.next, struct message, link);
    if (mock_script.sink_min && m->n > mock_script.sink_min && tp_sinks[m->id] && !m->asked) {
        ask(e, m);
        return 1;
    }
    if (m->sink) memcpy(m->sink, m->from, m->n);
    take(e, m); /* a handler may send, but not see this one */
    mock_count.delivered++;
    mock.delivering = m;
    tp_handlers[m->id](e->peer, m->h0, m->h1, m->sink ? m->sink : m->from, m->n);
    if (mock.delivering) drop(m, 0);
    mock.delivering = NULL;
    return 1;
}

/* Delivers the oldest message of one endpoint, asks where its payload is to go, or goes on with a bulk transfer. */
static int deliver(struct mock_ep *e)
{
    if (e->lost) {
        drop_all(e);
        drop_bulks(e);
    }
    bool bulk = bulk_to_do(e);
    if (e->played || (!bulk && list_empty(&e->queue))) return 0;
    if (mock_script.lose && !--mock_script.lose) {
        lose(e);
        return 1;
    }
    e->bulk_next = !e->bulk_next;
    return bulk && (e->bulk_next || list_empty(&e->queue)) ? mock_bulk_deliver(&e->bulks) : deliver_message(e);
}

static void mock_end_keep(struct tp_kept *k)
{
    free(k->held);
    atomic_fetch_sub_explicit(&kept, 1, memory_order_relaxed);
}

/* Only what lies in the message: a sink is the receiver's, and memory that was sent from is the sender's. */
static int mock_keep(struct tp_dom *d, const void *data, size_t n, enum tp_keep_time time, struct tp_kept *k)
{
    struct message *m = mock.delivering;
    uintptr_t at = (uintptr_t)data, own = m ? (uintptr_t)m->data : 0;
    (void)time;
    mock_count.asked_to_keep++;
    if (!m || d != mock.delivered_by || m->from != m->data || at < own || at + n > own + m->n) return TERN_AGAIN;
    if (atomic_load_explicit(&kept, memory_order_relaxed) >= mock_script.keep) return TERN_AGAIN;
    atomic_fetch_add_explicit(&kept, 1, memory_order_relaxed);
    mock_count.kept++;
    mock.delivering = NULL;
    k->held = m;
    k->end = mock_end_keep;
    return 0;
}

/* In turn from each endpoint, so that the order between two of them is as little to be relied upon as on a wire. */
static int mock_progress(struct tp_dom *d, int budget)
{
    struct link *eps = &dom_of(d)->eps;
    int n = 0, round = 1;
    mock.delivered_by = d;
    if (mock_script.deliver && (uint32_t)budget > mock_script.deliver) budget = (int)mock_script.deliver;
    while (round && n < budget) {
        round = 0;
        list_each(l, next, eps)
            if (n + round < budget) round += deliver(container_of(l, struct mock_ep, in_all));
        n += round;
    }
    return n;
}

/* ---- endpoints ---- */

static int mock_ep_open(struct tp_dom *d, struct peer *peer, const void *card, size_t n, struct tp_ep *ep)
{
    (void)card, (void)n;
    struct mock_ep *e = malloc(sizeof *e);
    if (!e) return err_set(TERN_ERR_NOMEM, "no memory to connect to %s", jobs_words(peer->index));
    *e = (struct mock_ep){.peer = peer, .played = mock_script.played};
    list_init(&e->queue);
    mock_bulks_open(&e->bulks);
    list_push(&dom_of(d)->eps, &e->in_all);
    ep->dom = d;
    ep->ops = &tp_mock;
    ep->am_short = mock_am_short;
    ep->priv = e;
    ep->max_short = mock_script.max_short;
    ep->caps = mock_script.caps;
    return 0;
}

static void mock_ep_close(struct tp_dom *d, struct tp_ep *ep)
{
    (void)d;
    struct mock_ep *e = ep->priv;
    drop_all(e);
    mock_bulks_close(&e->bulks);
    list_remove(&e->in_all);
    free(e);
    ep->ops = NULL;
}

/* ---- a peer that the test plays ---- */

static struct mock_ep *find_sent(void)
{
    for (uint32_t i = 0; i < MOCK_DOMAINS; i++)
        for (struct link *l = doms[i].eps.next; l && l != &doms[i].eps; l = l->next) {
            struct mock_ep *e = container_of(l, struct mock_ep, in_all);
            if (e->played && !list_empty(&e->queue)) return e;
        }
    return NULL;
}

bool mock_take(struct mock_message *to, void *payload, size_t room)
{
    struct mock_ep *e = find_sent();
    if (!e) return false;
    struct message *m = container_of(e->queue.next, struct message, link);
    take(e, m);
    *to = (struct mock_message){m->id, m->h0, m->h1, m->n};
    if (m->n && room) memcpy(payload, m->from, min_size(m->n, room));
    drop(m, 0);
    return true;
}

static uint64_t mock_sent(struct tp_ep *ep) { return ((struct mock_ep *)ep->priv)->sent; }

static uint64_t mock_handled(struct tp_ep *ep) { return ((struct mock_ep *)ep->priv)->played ? mock_script.handled : UINT64_MAX; }

static bool mock_await_handled(struct tp_ep *ep)
{
    struct mock_ep *e = ep->priv;
    bool before = e->awaited;
    e->awaited = true;
    mock_count.awaits_handled++;
    return before;
}

/* ---- memory ---- */

static int copy_refused(struct tp_ep *ep)
{
    if (!due(&mock_script.fail_copy)) return 0;
    if (mock_script.error == TERN_ERR_UNSUPPORTED) ep->caps &= ~(uint32_t)TP_CAP_GETPUT;
    return err_set(mock_script.error, "mock: copying fails");
}

static int mock_get(struct tp_ep *ep, const struct iovec *local, int nl, const struct iovec *remote, int nr)
{
    int rc = copy_refused(ep);
    if (!rc) pieces_copy(local, nl, remote, nr);
    mock_count.copies++;
    return rc;
}

static int mock_put(struct tp_ep *ep, const struct iovec *local, int nl, const struct iovec *remote, int nr)
{
    int rc = copy_refused(ep);
    if (!rc) pieces_copy(remote, nr, local, nl);
    mock_count.copies++;
    return rc;
}

static void *mock_map(struct tp_ep *ep, uint64_t offset, size_t n)
{
    (void)ep, (void)n;
    return shared_at(offset);
}

static void *mock_map_arena(struct tp_ep *ep, uint64_t place, size_t n)
{
    (void)n;
    mock_count.arena_maps++;
    if (mock_script.no_arena) {
        ep->caps &= ~(uint32_t)TP_CAP_ARENA;
        return NULL;
    }
    return (void *)(arena_base + place);
}

static void mock_nudge(struct tp_ep *ep, bool helper)
{
    (void)ep;
    atomic_fetch_add_explicit(&mock_count.nudges, 1, memory_order_relaxed);
    bell_check(&mock.bell, true);
    if (helper) bell_check_again(&mock.bell);
}

/* ---- sleeping ---- */

static bool mock_cores(struct tp_dom *d, bool gates, cpu_set_t *cores)
{
    (void)d;
    (void)gates;
    if (mock_script.core >= 0) CPU_SET((size_t)mock_script.core, cores);
    return mock_script.crowded;
}

static bool mock_shares_cores(const struct tp_ep *ep)
{
    (void)ep;
    return mock_script.shares_cores;
}

static struct bell *mock_bell(struct tp_dom *d)
{
    (void)d;
    return &mock.bell;
}

/* Who waits for room must try again: queues empty only by progress in this very process. */
static bool mock_idle(struct tp_dom *d, bool want_room)
{
    list_each(l, next, &dom_of(d)->eps) {
        struct mock_ep *e = container_of(l, struct mock_ep, in_all);
        if (!e->played && (e->queued || bulk_to_do(e))) return false;
    }
    return !want_room;
}

const struct tp_ops tp_mock = {
    .name = "mock",
    .cost = {.locality = TP_PROCESS, .latency_ns = 50, .send_ns = 50, .poll_ns = 40, .mb_per_s = 10000,
             .eager_max = 32 << 10, .eager_variable = "TERN_EAGER_SHM", .bulk_min = 1},
    .domains = mock_domains,
    .open = mock_open,
    .close = mock_close,
    .card = mock_card,
    .reach = mock_reach,
    .cost_to = mock_cost_to,
    .ep_open = mock_ep_open,
    .ep_close = mock_ep_close,
    .am_short = mock_am_short,
    .am_bcopy = mock_am_bcopy,
    .am_zcopy = mock_am_zcopy,
    .bulk_send = mock_bulk_send,
    .bulk_recv = mock_bulk_recv,
    .sever = mock_sever,
    .sent = mock_sent,
    .handled = mock_handled,
    .await_handled = mock_await_handled,
    .get = mock_get,
    .put = mock_put,
    .map = mock_map,
    .map_arena = mock_map_arena,
    .keep = mock_keep,
    .nudge = mock_nudge,
    .progress = mock_progress,
    .cores = mock_cores,
    .shares_cores = mock_shares_cores,
    .bell = mock_bell,
    .idle = mock_idle,
};
