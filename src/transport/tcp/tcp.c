/*
 * tcp.c - the TCP transport: opening and closing, events, timers.
 *
 * Connections are made at the first message (dial.c) or by the peer (incoming.c).
 * progress reads the few connections that messages came from lately directly: one recv a
 * message, without asking epoll first; epoll is asked in between, about everything. A
 * process that sleeps does so on epoll alone (wait_fd): deadlines are a descriptor there.
 */
#include "transport/tcp/tcp.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/var.h"
#include "proc/jobs.h"
#include "proc/module.h"
#include "proc/proc.h"
#include "transport/find.h"
#include "transport/wire_lock.h"

#include <errno.h>
#include <linux/sockios.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define LOOKS_AN_EPOLL 4  /* looks at the hot connections for each question to epoll */
#define LATE_NS 300000000u /* timers this late: the process was away, and its peers are not to suffer for it */
#define STARVED_NS 10000000u
#define FAREWELL_NS 1000000000u

struct tcp_dom tcp_dom = {.epoll = -1, .timer = -1, .reserve = -1};

/* ---- descriptors ---- */

bool tcp_watch(struct tcp_source *s, uint32_t events)
{
    struct epoll_event e = {.events = events, .data.ptr = s};
    if (s->events == events) return true;
    if (epoll_ctl(tcp_dom.epoll, s->events == TCP_UNWATCHED ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, s->fd, &e)) {
        err_sys("a connection cannot be watched (epoll)");
        return false;
    }
    s->events = events;
    return true;
}

struct tcp_half *tcp_half_new(int fd)
{
    struct tcp_half *h = calloc(1, sizeof *h);
    if (!h) {
        close(fd);
        errno = ENOMEM;
        return NULL;
    }
    h->src = (struct tcp_source){fd, TCP_HALF, TCP_UNWATCHED};
    list_init(&h->link);
    return h;
}

void tcp_half_free(struct tcp_half *h)
{
    if (h->src.fd >= 0) close(h->src.fd);
    h->src.fd = -1;
    if (h->reserved && tcp_reserve()) tcp_due(tcp_dom.deaf_until = 1); /* the next one may come in at once */
    h->reserved = false;
    explicit_bzero(h->hs.pair_key, sizeof h->hs.pair_key);
    list_remove(&h->link);
    list_push(&tcp_dom.dead, &h->link);
}

static void free_dead(void)
{
    for (struct link *l; (l = list_pop(&tcp_dom.dead));) free(container_of(l, struct tcp_half, link));
}

/* ---- timers ---- */

void tcp_due(uint64_t when)
{
    if (when >= tcp_dom.due) return;
    tcp_dom.due = when;
    struct itimerspec t = {.it_value = {(time_t)(when / 1000000000u), (long)(when % 1000000000u) + !when}};
    timerfd_settime(tcp_dom.timer, TFD_TIMER_ABSTIME, &t, NULL);
}

/* A quarter of the timeout since the last look at the connections. */
static void check_all(uint64_t now)
{
    if (now - tcp_dom.checked >= tcp_dom.timeout / 4) {
        tcp_dom.checked = now;
        list_each(l, next, &tcp_dom.eps) tcp_check(container_of(l, struct tcp_ep, in_all));
    }
    tcp_due(tcp_dom.checked + tcp_dom.timeout / 4);
}

static void feed_starved(void)
{
    list_each(l, next, &tcp_dom.eps) {
        struct tcp_ep *e = container_of(l, struct tcp_ep, in_all);
        if (!e->starved) continue;
        e->starved = false;
        tcp_flush(e);
    }
}

void tcp_starve(struct tcp_ep *e)
{
    e->starved = true;
    tcp_due(clock_ns() + STARVED_NS);
}

static void timers(void)
{
    uint64_t now = clock_ns(), late = now - tcp_dom.due, ring;
    if (read(tcp_dom.timer, &ring, sizeof ring) < 0 && errno != EAGAIN) return;
    if (now < tcp_dom.due) return;
    uint64_t away = late > LATE_NS ? late : 0;
    tcp_dom.due = UINT64_MAX;
    list_each(l, next, &tcp_dom.dials) tcp_due(tcp_dial_timer(tcp_dial_of(l), now, away));
    tcp_due(tcp_incoming_timer(now, away));
    feed_starved();
    check_all(now);
}

/* ---- progress ---- */

static int conn_event(struct tcp_ep *e, uint32_t events, int budget)
{
    if (events & EPOLLOUT) tcp_flush(e);
    if (!(events & ~(uint32_t)EPOLLOUT) || tcp_dom.held || budget <= 0 || e->state != TCP_OPEN) return 0;
    int n = tcp_recv(e, budget);
    if (e->state == TCP_OPEN) tcp_hot_add(e);
    return n;
}

static int event(struct tcp_source *s, uint32_t events, int budget)
{
    if (s->fd < 0) return 0; /* closed by an event before this one */
    if (s->kind == TCP_CONN) return conn_event(container_of(s, struct tcp_ep, src), events, budget);
    if (s->kind == TCP_LISTENER) tcp_accept(s);
    else if (s->kind == TCP_TIMER) timers();
    else if (container_of(s, struct tcp_half, src)->dial) tcp_dial_event(container_of(s, struct tcp_half, src), events);
    else tcp_incoming_event(container_of(s, struct tcp_half, src), events);
    return 0;
}

static int ask_epoll(int budget)
{
    struct epoll_event e[32];
    int n = 0, k = epoll_wait(tcp_dom.epoll, e, (int)ARRAY_LEN(e), 0);
    for (int i = 0; i < k; i++) n += event(e[i].data.ptr, e[i].events, budget - n);
    free_dead();
    return n;
}

static TERN_COLD void report_lost(void)
{
    for (struct link *l; (l = list_pop(&tcp_dom.lost));) {
        struct tcp_ep *e = container_of(l, struct tcp_ep, in_lost);
        int code = tcp_refusal(e);
        if (e->severed) tcp_shut_severed(e);
        if (e->severed || e->peer->flags & PEER_CLOSING) continue; /* it is known */
        if (e->state == TCP_LEFT && tp_left)
            tp_left(e->peer);
        else if (e->state == TCP_LOST && tp_lost)
            tp_lost(e->peer, code);
    }
}

static int tcp_progress(struct tp_dom *dom, int budget)
{
    (void)dom;
    struct tcp_dom *d = &tcp_dom;
    int n = unlikely(d->held != NULL) ? tcp_deliver_held(budget) : 0;
    n += tcp_hot_read(budget - n);
    if (++d->turn % LOOKS_AN_EPOLL == 0 || !d->hot_count || d->unsettled || !list_empty(&d->dials) || d->incoming_count)
        n += ask_epoll(budget - n);
    if (unlikely(!list_empty(&d->lost))) report_lost();
    return n;
}

static bool tcp_idle(struct tp_dom *dom, bool want_room)
{
    (void)dom;
    (void)want_room; /* epoll watches for it */
    return !tcp_dom.held && list_empty(&tcp_dom.lost) && !tcp_hot_unmark();
}

static int tcp_wait_fd(struct tp_dom *dom)
{
    (void)dom;
    return tcp_dom.epoll;
}

static bool tcp_drained(struct tp_dom *dom)
{
    (void)dom;
    list_each(l, next, &tcp_dom.eps)
    {
        const struct tcp_ep *e = container_of(l, struct tcp_ep, in_all);
        if (!tcp_out_empty(e) && !(e->state == TCP_DIALLING && e->asks_only)) return false;
    }
    return true;
}

/* ---- endpoints ---- */

static int tcp_card(struct tp_dom *dom, void *buf, size_t cap)
{
    (void)dom;
    return tcp_card_write(&tcp_dom, buf, cap);
}

static bool tcp_reach(struct tp_dom *dom, const void *card, size_t n)
{
    (void)dom;
    struct tcp_card c;
    return tcp_card_read(&c, card, n) && tcp_card_usable(&tcp_dom, &c);
}

/* The figures of tp_tcp are those within a host. */
static void tcp_cost_to(struct tp_dom *dom, const void *card, size_t n, struct tp_cost *cost)
{
    (void)dom;
    struct tcp_card c;
    if (!tcp_card_read(&c, card, n) || !strcmp(c.host, tcp_dom.host)) return;
    cost->latency_ns = 25000;
    cost->mb_per_s = 1100;
}

struct tcp_ep *tcp_ep_fill(struct peer *peer, struct tp_ep *ep)
{
    struct tcp_ep *e = tcp_ep_new(peer);
    if (!e) return NULL;
    ep->am_short = wire_short(&tp_tcp, tcp_am_short);
    ep->priv = e;
    ep->max_short = TCP_SHORT;
    ep->caps = TP_CAP_BCOPY | TP_CAP_ZCOPY | TP_CAP_KEEP;
    __atomic_store_n(&ep->ops, &tp_tcp, __ATOMIC_RELEASE); /* pairs with peer_get: the rest is there */
    return e;
}

static void ep_free(struct tcp_ep *e)
{
    list_remove(&e->in_all);
    list_remove(&e->in_lost);
    free(e->words);
    free(e);
}

void tcp_ep_forget(struct tcp_ep *e)
{
    e->peer->ep.ops = NULL;
    ep_free(e);
}

int tcp_load_crypto(void)
{
    if (!tcp_dom.crypto) tcp_dom.crypto = module_load(CRYPTO_MODULE, CRYPTO_SYMBOL);
    return tcp_dom.crypto ? 0 : err_code();
}

int tcp_keyed(void)
{
    if (tcp_dom.keyed) return 0;
    int rc = tcp_load_crypto();
    if (!rc) rc = proc_secret(tcp_dom.key);
    tcp_dom.keyed = !rc;
    return rc;
}

bool tcp_key_of(uint64_t job, uint8_t key[CRYPTO_KEY])
{
    if (job != jobs_own_name().job) return !jobs_key(job, key);
    memcpy(key, tcp_dom.key, CRYPTO_KEY);
    return true;
}

static int tcp_ep_open(struct tp_dom *dom, struct peer *peer, const void *card, size_t n, struct tp_ep *ep)
{
    (void)dom;
    struct tcp_card c;
    if (!tcp_card_read(&c, card, n)) return err_set(TERN_ERR_PEER, "the tcp card of %s is none (%zu bytes)", jobs_words(peer->index), n);
    if (peer->index == proc_self()->rank)
        return err_set(TERN_ERR_PEER, "tcp does not connect a process with itself: add self to TERN_TRANSPORTS");
    if (c.sealed != tcp_dom.sealed)
        return err_set(
            TERN_ERR_PEER,
            "%s on %s runs with TERN_TCP_SEAL=%d, this process with %d: the variable has to be equal on all ranks",
            jobs_words(peer->index), c.host, c.sealed, tcp_dom.sealed);
    int rc = tcp_keyed();
    if (rc) return rc;
    struct tcp_ep *e = tcp_ep_fill(peer, ep);
    if (!e) return TERN_ERR_NOMEM;
    rc = tcp_dial(e, &c);
    if (!rc) return 0;
    tcp_ep_forget(e);
    return rc;
}

static void close_fd(int *fd)
{
    if (*fd >= 0) close(*fd);
    *fd = -1;
}

/* Gives everything back. */
static void ep_end(struct tcp_ep *e)
{
    tcp_dial_cancel(e);
    tcp_hot_remove(e);
    close_fd(&e->src.fd);
    tcp_in_drop(e);
    tcp_out_drop(e, TERN_ERR_PEER);
    tcp_seal_end(e);
    ep_free(e);
}

/* If all connections end: says farewell; tcp_close waits until it is heard. */
static void tcp_ep_close(struct tp_dom *dom, struct tp_ep *ep)
{
    (void)dom;
    struct tcp_ep *e = ep->priv;
    if (e->peer->flags & PEER_CLOSING) {
        ep->ops = NULL;
        ep_end(e);
        return;
    }
    ep->ops = NULL;
    tcp_dial_cancel(e);
    if (e->state != TCP_OPEN) return;
    tcp_am_short(ep, AM_PAD, TCP_NOTE_LEAVE, 0, NULL, 0);
    tcp_flush(e);
    if (e->state == TCP_OPEN && tcp_out_empty(e)) shutdown(e->src.fd, SHUT_WR);
}

/* ---- opening and closing ---- */

/* Has the other side's system all that was sent? What it still sends is of no interest, but unread it would make the
 * system break the connection off. */
static bool heard(struct tcp_ep *e)
{
    int left = 0;
    ssize_t n;
    if (e->src.fd < 0) return true;
    while ((n = recv(e->src.fd, tcp_dom.stage, TCP_STAGE_BYTES, MSG_DONTWAIT)) > 0) {}
    if (!n || (errno != EAGAIN && errno != EINTR)) return true; /* it has left as well, and reads no more */
    return ioctl(e->src.fd, SIOCOUTQ, &left) || !left;
}

static void await_farewells(void)
{
    uint64_t end = clock_ns() + FAREWELL_NS;
    for (bool all = false; !all;) {
        all = true;
        list_each(l, next, &tcp_dom.eps) all &= heard(container_of(l, struct tcp_ep, in_all));
        if (all || clock_ns() > end) return;
        usleep(100);
    }
}

static void tcp_close(struct tp_dom *dom)
{
    (void)dom;
    struct tcp_dom *d = &tcp_dom;
    for (unsigned i = 0; i < TCP_ADDRS; i++) close_fd(&d->listener[i].fd);
    await_farewells();
    list_each(l, next, &d->incoming) tcp_half_free(container_of(l, struct tcp_half, link));
    list_each(m, next_m, &d->eps) {
        ep_end(container_of(m, struct tcp_ep, in_all));
    }
    free_dead();
    close_fd(&d->epoll);
    close_fd(&d->timer);
    close_fd(&d->reserve);
    while (d->spares) free(d->spare[--d->spares]);
    tcp_stage_unref(d->stage);
    tcp_stage_unref(d->stage_spare);
    tcp_seal_close(d);
    explicit_bzero(d, sizeof *d);
    d->epoll = d->timer = d->reserve = -1;
}

/* All processes that there will be are on this node, and shared memory reaches them. */
static bool superfluous(const struct tp_env *env)
{
    const struct proc_info *me = proc_self();
    if (env->others) return false;
    bool sure = proc_shared() || !strcmp(me->bootstrap, "single"); /* elsewhere a process may be out of reach */
    return sure && me->nodes == 1 && tp_list_shares(var_text(VAR_TRANSPORTS));
}

static int open_descriptors(struct tcp_dom *d)
{
    d->epoll = epoll_create1(EPOLL_CLOEXEC);
    d->timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    d->timer_src = (struct tcp_source){d->timer, TCP_TIMER, TCP_UNWATCHED};
    if (d->epoll < 0 || d->timer < 0 || !tcp_reserve()) return err_sys("tcp cannot be opened");
    if (!tcp_watch(&d->timer_src, EPOLLIN)) return TERN_ERR_SYSTEM;
    d->stage = tcp_stage_new();
    return d->stage ? 0 : err_set(TERN_ERR_NOMEM, "no memory for tcp");
}

static int tcp_open(struct tp_dom **dom, const struct tp_env *env, const char *domain)
{
    (void)domain;
    struct tcp_dom *d = &tcp_dom;
    if (superfluous(env))
        return err_set(TERN_ERR_NOT_FOUND, "tcp is not opened: all processes of the job are on one node, where shm reaches them");
    list_init(&d->eps);
    list_init(&d->dials);
    list_init(&d->incoming);
    list_init(&d->dead);
    list_init(&d->lost);
    for (unsigned i = 0; i < TCP_ADDRS; i++) d->listener[i].fd = -1;
    d->due = UINT64_MAX;
    d->checked = clock_ns();
    int64_t s = var_int(VAR_TCP_TIMEOUT);
    if (s < 1 || s > 86400) return err_set(TERN_ERR_ARG, "variable TERN_TCP_TIMEOUT: %lld is not between 1 and 86400 seconds", (long long)s);
    d->timeout = (uint64_t)s * 1000000000u;
    int rc = tcp_addr_open(d, env->others);
    if (!rc) rc = tcp_seal_open(d);
    if (!rc) rc = open_descriptors(d);
    if (!rc) rc = tcp_listen(d, 0);
    if (rc) {
        tcp_close(NULL);
        return rc;
    }
    *dom = (struct tp_dom *)d;
    return 0;
}

/* The processes of the own job have connections over the loopback interface, and keep them. */
static int tcp_others(struct tp_dom *dom)
{
    struct tcp_dom *d = &tcp_dom;
    unsigned first = d->ifs.n;
    (void)dom;
    int rc = tcp_addr_more(d);
    return rc || d->ifs.n == first ? rc : tcp_listen(d, first);
}

const struct tp_ops tp_tcp = {
    .name = "tcp",
    .cost = {.locality = TP_NETWORK, .latency_ns = 8000, .send_ns = 3000, .poll_ns = 320, .mb_per_s = 2500,
             .eager_max = 64 << 10, .eager_variable = "TERN_EAGER_TCP", .ahead_variable = "TERN_AHEAD_TCP"},
    .open = tcp_open,
    .close = tcp_close,
    .card = tcp_card,
    .others = tcp_others,
    .reach = tcp_reach,
    .cost_to = tcp_cost_to,
    .ep_open = tcp_ep_open,
    .ep_close = tcp_ep_close,
    .peer_close = tcp_peer_close,
    .am_short = tcp_am_short,
    .sever = tcp_sever,
    .am_bcopy = tcp_am_bcopy,
    .am_zcopy = tcp_am_zcopy,
    .expect = tcp_expect,
    .keep = tcp_keep,
    .progress = tcp_progress,
    .idle = tcp_idle,
    .wait_fd = tcp_wait_fd,
    .drained = tcp_drained,
};
