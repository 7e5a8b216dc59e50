/*
 * conn.c - the life of an endpoint: made, connected, and one day at its end.
 *
 * A connection that ends after its peer has taken leave (TCP_NOTE_LEAVE) is over; any
 * other end is a loss, which progress reports (tp_lost). When sending fails the peer may
 * have left before: what it has said is read first, and the end of that decides.
 *
 * TCP_USER_TIMEOUT is not used: it also ends connections whose receiver is alive and
 * does not read for that long, because it computes (doc/decisions/tcp.md). tcp_check
 * looks for acknowledgements instead.
 */
#include "base/err.h"
#include "proc/jobs.h"
#include "transport/tcp/tcp.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/sockios.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

/* Looks in turn without a sign of the peer, while it owes us acknowledgements, until it is given up. */
#define STALLS_MAX 4
/* Questions about room that nobody answered. */
#define PROBES_MAX 6

struct tcp_ep *tcp_ep_new(struct peer *peer)
{
    struct tcp_ep *e = calloc(1, sizeof *e);
    if (!e) {
        err_set(TERN_ERR_NOMEM, "no memory to connect to %s", jobs_words(peer->index));
        return NULL;
    }
    e->src = (struct tcp_source){-1, TCP_CONN, TCP_UNWATCHED};
    e->state = TCP_DIALLING;
    e->peer = peer;
    list_init(&e->out.longs);
    list_init(&e->in_lost);
    list_push(&tcp_dom.eps, &e->in_all);
    return e;
}

static void keep_alive(int fd)
{
    int on = 1, s = (int)(tcp_dom.timeout / 1000000000u), idle = s > 1 ? s / 2 : 1, between = s > 8 ? s / 8 : 1, count = 4;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &between, sizeof between);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof count);
}

static void name_ends(struct tcp_ep *e)
{
    struct sockaddr_storage s = {0};
    struct net_addr a = {.family = 4};
    socklen_t n = sizeof s;
    if (!getpeername(e->src.fd, (struct sockaddr *)&s, &n)) net_addr_from(&a, &s);
    inet_ntop(a.family == 6 ? AF_INET6 : AF_INET, a.bytes, e->far, sizeof e->far);
    snprintf(e->near, sizeof e->near, "%s", tcp_addr_near(&tcp_dom, e->src.fd));
}

void tcp_adopt(struct tcp_ep *e, struct tcp_half *h)
{
    e->src = (struct tcp_source){h->src.fd, TCP_CONN, 0};
    h->src.fd = -1;
    bool good = !tcp_dom.sealed || tcp_seal_begin(e, &h->hs);
    tcp_half_free(h);
    e->state = TCP_OPEN;
    keep_alive(e->src.fd);
    name_ends(e);
    tcp_settled(e, tcp_out_empty(e));
    if (!good || !tcp_watch(&e->src, EPOLLIN))
        tcp_lose(e, good ? TERN_ERR_SYSTEM : TERN_ERR_NOMEM);
    else tcp_flush(e);
    tcp_due(tcp_dom.checked + tcp_dom.timeout / STALLS_MAX);
}

/* Nothing comes or goes any more. */
static void shut(struct tcp_ep *e, int code)
{
    if (e->src.fd >= 0) close(e->src.fd);
    e->src.fd = -1;
    tcp_hot_remove(e);
    tcp_in_drop(e);
    tcp_out_drop(e, code);
    tcp_seal_end(e);
}

void tcp_leave(struct tcp_ep *e)
{
    if (e->state >= TCP_LEFT) return;
    e->state = TCP_LEFT;
    tcp_dial_cancel(e);
    shut(e, tcp_refusal(e));
    list_push(&tcp_dom.lost, &e->in_lost); /* for tp_left */
}

void tcp_lose(struct tcp_ep *e, int code)
{
    if (e->state >= TCP_LEFT) return;
    e->state = TCP_LOST;
    e->code = code;
    e->words = strdup(err_words());
    tcp_dial_cancel(e);
    shut(e, code);
    list_push(&tcp_dom.lost, &e->in_lost);
}

/* We may be in the midst of a delivery: the connection is closed by progress. */
void tcp_sever(struct tp_ep *ep)
{
    struct tcp_ep *e = ep->priv;
    if (e->state >= TCP_LEFT) return;
    e->state = TCP_LOST;
    e->code = TERN_ERR_PEER;
    e->words = strdup(err_words());
    e->severed = true;
    tcp_settled(e, false); /* nothing goes straight out any more */
    list_push(&tcp_dom.lost, &e->in_lost);
}

void tcp_shut_severed(struct tcp_ep *e)
{
    tcp_dial_cancel(e);
    shut(e, tcp_refusal(e));
}

/* Neither side knows when the other says its leave; whoever has said its own and sees the end of the connection is done. */
int tcp_peer_close(struct tp_dom *dom, struct peer *p)
{
    (void)dom;
    struct tcp_ep *e = p->ep.ops == &tp_tcp ? p->ep.priv : NULL;
    if (!e || e->state >= TCP_LEFT) return e && !list_empty(&e->in_lost) ? TERN_AGAIN : 0;
    if (e->state == TCP_DIALLING) return tcp_out_empty(e) && !tcp_dial_proved(e) ? 0 : TERN_AGAIN; /* no word was said */
    int rc = e->said_last ? 0 : tcp_am_short(&p->ep, AM_PAD, TCP_NOTE_LEAVE, 0, NULL, 0);
    if (rc) return rc == TERN_AGAIN ? rc : 0;
    e->said_last = true;
    tcp_flush(e);
    if (e->state == TCP_OPEN && tcp_out_empty(e)) shutdown(e->src.fd, SHUT_WR);
    return TERN_AGAIN;
}

/* " on h2" */
static const char *on_host(const struct tcp_ep *e, char text[80])
{
    snprintf(text, 80, e->host[0] ? " on %s" : "%s", e->host);
    return text;
}

int tcp_refusal(const struct tcp_ep *e)
{
    char host[80];
    if (e->state == TCP_LEFT) return err_set(TERN_ERR_PEER, "%s%s has left the job", jobs_words(e->peer->index), on_host(e, host));
    return err_set(e->code, "%s", e->words ? e->words : "the connection was lost");
}

void tcp_ended(struct tcp_ep *e, int error)
{
    char host[80], reason[128];
    if (e->leaving || e->said_last) {
        tcp_leave(e);
        return;
    }
    err_set(TERN_ERR_PEER, "the connection to %s%s (%s over %s) was lost: %s", jobs_words(e->peer->index), on_host(e, host), e->far,
            e->near, error ? strerror_r(error, reason, sizeof reason) : "it was closed by the other side, whose process has probably died");
    jobs_note_loss(e->peer->index);
    tcp_lose(e, TERN_ERR_PEER);
}

/* Called every quarter of the timeout. */
void tcp_check(struct tcp_ep *e)
{
    struct tcp_info info = {0};
    socklen_t n = sizeof info;
    int waiting = 0;
    if (e->state != TCP_OPEN || ioctl(e->src.fd, SIOCOUTQ, &waiting) || !waiting ||
        getsockopt(e->src.fd, IPPROTO_TCP, TCP_INFO, &info, &n)) {
        e->stalled = 0;
        return;
    }
    uint64_t silent = (uint64_t)info.tcpi_last_ack_recv * 1000000u;
    /* Where the other side has no room it is asked at ever longer intervals: count the questions. */
    bool dumb = info.tcpi_unacked ? silent > tcp_dom.timeout / STALLS_MAX : info.tcpi_probes >= PROBES_MAX;
    e->stalled = dumb ? (uint8_t)(e->stalled + 1) : 0;
    if (e->stalled > STALLS_MAX) tcp_ended(e, ETIMEDOUT);
}
