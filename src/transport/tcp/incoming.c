/*
 * incoming.c - listening, and incoming connections until their handshakes are complete.
 *
 * An incoming connection costs a descriptor and a struct tcp_half. There are INCOMING_MAX at most. No
 * process of the job waits long behind strangers: when all places are taken, each new connection
 * takes the place of one that has sent nothing for SILENT_NS, or has not proved within SPOKEN_NS that it
 * has the key. If there is no such connection, new ones wait in the system's queue. A
 * genuine process that loses its place so tries again at once (dial.c), so the times may
 * be short.
 *
 * A process that computes goes on with its handshake when it next enters MPI, and many such processes would take each
 * other's places for ever. So a connection that comes while fewer than half of the incoming ones are slow ones becomes
 * a slow one: it may stay for INCOMING_NS. Strangers can fill the slow half of the places; the other half changes hands
 * as above.
 *
 * When the process has no descriptors left, an incoming connection is closed by the same rules. If none
 * can be, one descriptor that was reserved serves to tell genuine connectors that there is none, one
 * after the other: they try again for a while, and then fail in words.
 *
 * Two processes may dial each other at once. Only a connector that has sent its proof can count as connected
 * at the other side. So a side that has not sent it yet gives way: it stops dialling and takes
 * the other's connection. If both have sent it, the connection of the process with the lower name (proc/jobs.h) is
 * kept. The process with the higher name welcomes it and drops its own. The one with the lower name holds the other's
 * connection until its own dialling has ended, and takes it if that fails.
 */
#include "base/clock.h"
#include "base/err.h"
#include "proc/jobs.h"
#include "proc/proc.h"
#include "transport/tcp/tcp.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define INCOMING_MAX 128
#define INCOMING_NS 5000000000u /* for the whole handshake, while there are places */
#define SILENT_NS 10000000u  /* before a newcomer takes the place of one that has not sent its hello */
#define SPOKEN_NS 100000000u /* the same of one that has */
#define DEAF_NS 100000000u
#define ACCEPTS 16 /* at a time */

/* ---- listening ---- */

/* A socket that listens at this address; a.port 0: any port, which is then set. -1: errno. */
static int listen_at(struct net_addr *a)
{
    struct sockaddr_storage s;
    int on = 1, fd = socket(a->family == 4 ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) return -1;
    if (a->family == 6) setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
    if (a->port) setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on); /* ports of connections that were */
    socklen_t n = net_addr_sock(a, &s);
    if (bind(fd, (struct sockaddr *)&s, n) || listen(fd, SOMAXCONN) || getsockname(fd, (struct sockaddr *)&s, &n)) {
        int e = errno;
        close(fd);
        errno = e;
        return -1;
    }
    struct net_addr bound;
    net_addr_from(&bound, &s);
    a->port = bound.port;
    return fd;
}

/* Tries the ports of the range, each process from another one on. */
static int listen_in(struct net_addr *a, uint16_t low, uint16_t high)
{
    unsigned count = high - low + 1u, first = low ? proc_self()->local_rank % count : 0;
    for (unsigned i = 0; i < (low ? count : 1); i++) {
        a->port = low ? (uint16_t)(low + (first + i) % count) : 0;
        int fd = listen_at(a);
        if (fd >= 0 || (errno != EADDRINUSE && errno != EACCES)) return fd;
    }
    return -1;
}

/* On every address in use. One that cannot be had is left out, unless it is the last. */
int tcp_listen(struct tcp_dom *d, unsigned first)
{
    uint16_t low, high;
    unsigned n = 0;
    int rc = net_ports(&low, &high);
    if (rc) return rc;
    while (n < TCP_ADDRS && d->listener[n].fd >= 0) n++;
    for (unsigned i = first; i < d->ifs.n; i++) {
        int fd = listen_in(&d->ifs.v[i].addr, low, high);
        if (fd < 0 && low && errno == EADDRINUSE) rc = err_set(TERN_ERR_SYSTEM, "all ports from %u to %u are in use on %s", low, high, d->host);
        else if (fd < 0) rc = err_sys("cannot listen on interface %s of %s", d->ifs.v[i].name, d->host);
        if (fd < 0) {
            d->ifs.v[i].addr.port = 0;
            continue;
        }
        d->listener[n] = (struct tcp_source){fd, TCP_LISTENER, TCP_UNWATCHED};
        if (!tcp_watch(&d->listener[n++], EPOLLIN)) return TERN_ERR_SYSTEM;
    }
    return n ? 0 : rc;
}

static void listen_for(uint32_t events)
{
    for (unsigned i = 0; i < TCP_ADDRS; i++)
        if (tcp_dom.listener[i].fd >= 0) tcp_watch(&tcp_dom.listener[i], events);
}

static void hear(void)
{
    tcp_dom.deaf_until = 0;
    listen_for(EPOLLIN);
}

static void be_deaf(uint64_t until)
{
    listen_for(0);
    tcp_due(tcp_dom.deaf_until = until);
}

/* ---- incoming connections ---- */

/* It is none any more; a newcomer may have its place at once. */
static void uncount(const struct tcp_half *h)
{
    if (h->stage == HALF_ASKING) return;
    tcp_dom.incoming_count--;
    tcp_dom.slow_count -= h->slow;
    if (tcp_dom.deaf_until) tcp_due(tcp_dom.deaf_until = 1);
}

static void turn_out(struct tcp_half *h)
{
    uncount(h);
    tcp_half_free(h);
}

/* Until when no newcomer takes its place. */
static uint64_t safe_until(const struct tcp_half *h)
{
    if (h->slow) return h->deadline;
    return h->deadline - INCOMING_NS + (handshake_spoken(&h->hs) ? SPOKEN_NS : SILENT_NS);
}

static struct tcp_half *least_safe(void)
{
    struct tcp_half *least = NULL;
    list_each(l, next, &tcp_dom.incoming) {
        struct tcp_half *h = container_of(l, struct tcp_half, link);
        if (h->stage != HALF_ASKING && (!least || safe_until(h) < safe_until(least))) least = h;
    }
    return least;
}

/* What the other side has said and we have not read yet counts. True if it is more than it was. */
static bool moves_on(struct tcp_half *h)
{
    bool spoken = handshake_spoken(&h->hs);
    tcp_incoming_event(h, EPOLLIN);
    return h->src.fd < 0 || h->stage == HALF_ASKING || handshake_spoken(&h->hs) != spoken;
}

/* One connection less, if one may be turned out now: 0, else when to try again. */
static uint64_t turn_out_one(uint64_t now)
{
    unsigned count = tcp_dom.incoming_count;
    while (tcp_dom.incoming_count && tcp_dom.incoming_count >= count) {
        struct tcp_half *h = least_safe();
        if (safe_until(h) > now) return safe_until(h);
        if (!moves_on(h)) turn_out(h);
    }
    return tcp_dom.incoming_count < count ? 0 : now + DEAF_NS;
}

bool tcp_reserve(void)
{
    if (tcp_dom.reserve < 0) tcp_dom.reserve = fcntl(tcp_dom.epoll, F_DUPFD_CLOEXEC, 0);
    return tcp_dom.reserve >= 0;
}

static int accept_one(int listener) { return accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC); }

/* The descriptor kept back is that connection's. -1 when somebody has it already. */
static int accept_reserved(int listener)
{
    if (tcp_dom.reserve < 0) return -1;
    close(tcp_dom.reserve);
    tcp_dom.reserve = -1;
    int fd = accept_one(listener);
    if (fd < 0) tcp_reserve();
    return fd;
}

/* Out of descriptors: that of another connection, or the one kept back. */
static int accept_scarce(int listener, bool *reserved)
{
    int fd = turn_out_one(clock_ns()) ? -1 : accept_one(listener);
    *reserved = fd < 0;
    return fd < 0 ? accept_reserved(listener) : fd;
}

static void receive_incoming(int fd, bool reserved)
{
    struct tcp_half *h = tcp_half_new(fd);
    if (!h) {
        if (reserved) tcp_reserve();
        return;
    }
    h->reserved = reserved;
    h->stage = HALF_TALKING;
    h->deadline = clock_ns() + INCOMING_NS;
    handshake_accept(&h->hs, tcp_dom.crypto, tcp_dom.key, tcp_kind(), proc_self()->rank);
    handshake_between(&h->hs, jobs_own_name().job, 0, tcp_key_of);
    h->slow = 2 * tcp_dom.slow_count < tcp_dom.incoming_count;
    list_push(&tcp_dom.incoming, &h->link);
    tcp_dom.incoming_count++;
    tcp_dom.slow_count += h->slow;
    tcp_due(h->deadline);
    if (tcp_watch(&h->src, EPOLLIN)) tcp_incoming_event(h, EPOLLIN); /* its first words are often here already */
    else turn_out(h);
}

void tcp_accept(struct tcp_source *listener)
{
    for (int i = 0; i < ACCEPTS; i++) {
        uint64_t now = clock_ns(), full = tcp_dom.incoming_count < INCOMING_MAX ? 0 : turn_out_one(now);
        if (full || tcp_keyed()) {
            be_deaf(full ? full : now + DEAF_NS);
            return;
        }
        bool reserved = false;
        int fd = accept_one(listener->fd);
        bool none_left = fd < 0 && (errno == EMFILE || errno == ENFILE);
        if (none_left) fd = accept_scarce(listener->fd, &reserved);
        if (fd >= 0)
            receive_incoming(fd, reserved);
        else if (errno == EAGAIN && !none_left)
            return;
        else if (none_left || errno == ENOBUFS || errno == ENOMEM) {
            be_deaf(now + DEAF_NS);
            return;
        }
    }
}

/* Tells the other side. False when it is gone. */
static bool answer(struct tcp_half *h, enum handshake_verdict v)
{
    handshake_answer(&h->hs, v);
    ssize_t n = send(h->src.fd, h->hs.out, h->hs.out_len, MSG_DONTWAIT | MSG_NOSIGNAL);
    return n == h->hs.out_len;
}

static void send_away(struct tcp_half *h, enum handshake_verdict v)
{
    answer(h, v);
    turn_out(h);
}

/* This connection is the one between the two. */
static void welcome(struct tcp_half *h, struct tcp_ep *e)
{
    if (!answer(h, VERDICT_WELCOME)) { /* it is gone; so is an endpoint that was made for it */
        turn_out(h);
        if (!e->dial) tcp_ep_forget(e);
        return;
    }
    tcp_dial_cancel(e);
    uncount(h);
    tcp_adopt(e, h);
    tcp_incoming_settle(e);
}

static struct proc_name name_of(const struct tcp_half *h)
{
    return (struct proc_name){h->hs.from_job, h->hs.from < UINT32_MAX ? (uint32_t)h->hs.from : UINT32_MAX, 0};
}

/* Is the other side the process with this index? */
static bool is_process(const struct tcp_half *h, uint32_t index)
{
    struct proc_name name = name_of(h);
    uint32_t its;
    return jobs_index_of(&name, &its) && its == index;
}

/* The endpoint of the process that has connected; NULL: it is none that could come this way. */
static struct tcp_ep *endpoint_of(const struct tcp_half *h)
{
    struct proc_name name = name_of(h);
    uint32_t index;
    if (!jobs_index_of(&name, &index) || index == proc_self()->rank) return NULL;
    struct peer *p = peer_of_sender(index);
    if (!p || (p->ep.ops && p->ep.ops != &tp_tcp)) return NULL;
    if (!p->ep.ops && !tcp_ep_fill(p, &p->ep)) return NULL;
    return p->ep.priv;
}

/* Of two connections that are made at once, is the one that this process makes kept? */
static bool prefer_own(const struct tcp_half *h)
{
    struct proc_name own = jobs_own_name(), other = name_of(h);
    return proc_name_before(&own, &other);
}

/* Its old connection is being closed here. */
static bool is_early(const struct tcp_half *h)
{
    struct proc_name name = name_of(h);
    uint32_t index;
    return jobs_index_of(&name, &index) && peer_is_closing(index);
}

/* The other side is genuine: is the connection wanted? */
static void decide(struct tcp_half *h)
{
    if (is_early(h)) { /* without a verdict it tries again */
        turn_out(h);
        return;
    }
    if (h->reserved) h->reserved = !tcp_reserve();
    if (h->reserved) { /* none has become free meanwhile */
        send_away(h, VERDICT_FULL);
        return;
    }
    struct tcp_ep *e = endpoint_of(h);
    if (!e || e->state >= TCP_LEFT) {
        send_away(h, VERDICT_LEAVING);
    } else if (e->state == TCP_OPEN) {
        send_away(h, VERDICT_TIE);
    } else if (tcp_dial_proved(e) && prefer_own(h)) {
        uncount(h);
        h->stage = HALF_ASKING;
        if (!tcp_watch(&h->src, EPOLLRDHUP)) turn_out(h);
    } else {
        welcome(h, e);
    }
}

void tcp_incoming_event(struct tcp_half *h, uint32_t events)
{
    const char *why;
    bool again;
    (void)events;
    if (h->stage == HALF_ASKING) { /* held, and it hangs up */
        turn_out(h);
        return;
    }
    switch (tcp_half_talk(h, &why, &again)) {
    case HANDSHAKE_MORE: return;
    case HANDSHAKE_ASK: decide(h); return;
    default: turn_out(h); /* a stranger, or one who thought better of it */
    }
}

void tcp_incoming_settle(struct tcp_ep *e)
{
    if (e->state == TCP_DIALLING && tcp_dial_proved(e)) return;
    struct link held = LIST_INIT(held);
    list_each(l, next, &tcp_dom.incoming) {
        struct tcp_half *h = container_of(l, struct tcp_half, link);
        if (h->stage != HALF_ASKING || !is_process(h, e->peer->index)) continue;
        list_remove(l);
        list_push(&held, l);
    }
    for (struct link *l; (l = list_pop(&held));) {
        list_push(&tcp_dom.incoming, l);
        decide(container_of(l, struct tcp_half, link));
    }
}

uint64_t tcp_incoming_timer(uint64_t now, uint64_t away)
{
    uint64_t next_due = UINT64_MAX;
    list_each(l, next, &tcp_dom.incoming) {
        struct tcp_half *h = container_of(l, struct tcp_half, link);
        if (h->stage == HALF_ASKING) continue;
        h->deadline += away;
        if (h->deadline <= now) turn_out(h);
        else if (h->deadline < next_due) next_due = h->deadline;
    }
    if (tcp_dom.deaf_until && tcp_dom.deaf_until <= now) hear();
    return tcp_dom.deaf_until && tcp_dom.deaf_until < next_due ? tcp_dom.deaf_until : next_due;
}
