/*
 * dial.c - connecting to a peer: its addresses are tried one after the other, the next when
 * one has failed or has not answered for a fifth of a second. All attempts go on
 * until the first handshake is complete. An address may lead to a stranger, or to
 * another process; the handshake finds that out.
 *
 * The timeout concerns the network only. A peer that computes goes on with the handshake when it next
 * enters MPI, however long that takes: while a connection is open, dialling does not time out. A
 * connection that the peer closes during the handshake is tried again, at first at once and then
 * at longer intervals: a peer closes it when all its places for incoming connections are taken (incoming.c), or when it
 * does not know this process yet. Such tries end after PATIENCE times the timeout. Their number is no measure, as a
 * process that computes makes few.
 */
#include "base/clock.h"
#include "base/err.h"
#include "proc/jobs.h"
#include "proc/proc.h"
#include "transport/tcp/tcp.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define STAGGER_NS 200000000u
#define RETRY_NS 100000000u
#define DROPPED_NS 1000000u /* after a connection that was closed without a verdict; twice as long each time */
#define PATIENCE 6 /* times the timeout, while connections are made and closed without a verdict */

struct attempt {
    bool tried, live, final; /* final: there is no use in trying it again */
    bool ours;               /* it failed for want of something here */
    unsigned drops; /* connections in turn that were closed without a verdict */
    uint64_t retry_at;
    char near[IFNAMSIZ], why[80];
};

struct tcp_dial {
    struct link in_all;
    struct tcp_ep *e;
    struct tcp_card card;
    struct attempt attempt[TCP_ADDRS];
    struct link halves;
    uint64_t next_at, deadline;
    uint64_t patience; /* no connection that is closed without a verdict moves the deadline beyond this */
};

struct tcp_dial *tcp_dial_of(struct link *in_all) { return container_of(in_all, struct tcp_dial, in_all); }

/* ---- the handshake, for both sides ---- */

static bool say(struct tcp_half *h)
{
    if (!h->hs.out_len) return true;
    ssize_t n = send(h->src.fd, h->hs.out, h->hs.out_len, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n != h->hs.out_len) return false; /* a few bytes into an empty socket */
    if (h->dial && h->hs.out_len == CRYPTO_TAG) h->stage = HALF_PROVED;
    h->hs.out_len = 0;
    return true;
}

enum handshake_state tcp_half_talk(struct tcp_half *h, const char **why, bool *again)
{
    enum handshake_state s = HANDSHAKE_MORE;
    uint8_t bytes[HANDSHAKE_OUT];
    *again = true;
    while (s == HANDSHAKE_MORE) {
        *why = "closed by the other side during the handshake";
        if (!say(h)) return HANDSHAKE_BAD;
        ssize_t n = recv(h->src.fd, bytes, handshake_wants(&h->hs), MSG_DONTWAIT);
        if (n < 0 && (errno == EAGAIN || errno == EINTR)) return HANDSHAKE_MORE;
        if (n <= 0) {
            if (n < 0) *why = strerror(errno);
            return HANDSHAKE_BAD;
        }
        s = handshake_input(&h->hs, bytes, (size_t)n);
    }
    *why = h->hs.why;
    *again = false;
    return s;
}

/* ---- attempts ---- */

static void end_half(struct tcp_half *h)
{
    h->dial->attempt[h->which].live = false;
    tcp_half_free(h);
}

static uint64_t pause_before_retry(const struct attempt *a)
{
    return a->drops && a->drops < 8 ? (uint64_t)DROPPED_NS << (a->drops - 1) : RETRY_NS;
}

static void note(struct tcp_dial *d, unsigned i, int fd, const char *why, bool again)
{
    struct attempt *a = &d->attempt[i];
    if (fd >= 0) snprintf(a->near, sizeof a->near, "%s", tcp_addr_near(&tcp_dom, fd));
    snprintf(a->why, sizeof a->why, "%s", why);
    a->final = !again;
    a->retry_at = clock_ns() + pause_before_retry(a);
    tcp_due(a->retry_at);
}

static void begin_handshake(struct tcp_half *h, uint32_t index)
{
    struct proc_name name;
    jobs_name_of(index, &name);
    handshake_connect(&h->hs, tcp_dom.crypto, tcp_dom.key, tcp_kind(), proc_self()->rank, name.rank);
    handshake_between(&h->hs, jobs_own_name().job, name.job, tcp_key_of); /* the peer refers to its job, so it is known */
}

/* True when a connection to the address is on its way. */
static bool try_address(struct tcp_dial *d, unsigned i)
{
    struct sockaddr_storage s;
    const struct net_addr *a = &d->card.addr[i];
    socklen_t n = net_addr_sock(a, &s);
    d->attempt[i].tried = true;
    int fd = socket(s.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    struct tcp_half *h = fd >= 0 ? tcp_half_new(fd) : NULL;
    if (!h || (connect(fd, (struct sockaddr *)&s, n) && errno != EINPROGRESS)) {
        d->attempt[i].ours = !h;
        note(d, i, h ? fd : -1, strerror(errno), false);
        if (h) tcp_half_free(h);
        return false;
    }
    h->stage = HALF_CONNECTING;
    h->dial = d;
    h->which = i;
    begin_handshake(h, d->e->peer->index);
    list_push(&d->halves, &h->link);
    d->attempt[i].live = true;
    if (tcp_watch(&h->src, EPOLLOUT)) return true;
    note(d, i, fd, "epoll failed", false);
    end_half(h);
    return false;
}

static bool startable(const struct attempt *a, uint64_t now, bool hurry)
{
    if (a->live || a->final) return false;
    return a->tried ? a->retry_at <= now : hurry;
}

/* Starts what is due: of the addresses never tried one at a time. */
static void start_some(struct tcp_dial *d, uint64_t now)
{
    for (unsigned i = 0; i < d->card.count; i++) {
        bool hurry = list_empty(&d->halves) || now >= d->next_at;
        if (startable(&d->attempt[i], now, hurry) && try_address(d, i)) d->next_at = now + STAGGER_NS;
    }
}

/* Does any of them stand? Then the other side may only be busy. */
static bool stands(const struct tcp_dial *d)
{
    list_each(l, next, (struct link *)(uintptr_t)&d->halves)
        if (container_of(l, struct tcp_half, link)->stage != HALF_CONNECTING) return true;
    return false;
}

static bool is_over(const struct tcp_dial *d, uint64_t now)
{
    if (stands(d)) return false;
    if (now >= d->deadline) return true;
    if (!list_empty(&d->halves)) return false;
    for (unsigned i = 0; i < d->card.count; i++)
        if (!d->attempt[i].final) return false;
    return true;
}

/* TERN_ERR_SYSTEM when nothing is known of the other side. */
static int put_in_words(const struct tcp_dial *d)
{
    char text[400], addr[64];
    size_t n = 0;
    bool ours = true;
    text[0] = 0;
    for (unsigned i = 0; i < d->card.count && n < sizeof text; i++) {
        const struct attempt *a = &d->attempt[i];
        ours &= a->ours;
        net_addr_text(&d->card.addr[i], addr, sizeof addr);
        int k = snprintf(text + n, sizeof text - n, "%s%s%s%s: %s", i ? "; " : "", addr, a->near[0] ? " over " : "", a->near,
                         a->why[0] ? a->why : "no answer");
        n += k > 0 ? (size_t)k : 0;
    }
    return err_set(ours ? TERN_ERR_SYSTEM : TERN_ERR_PEER, "no connection to %s on %s: %s", jobs_words(d->e->peer->index), d->card.host,
                   text);
}

/* ---- dialling ---- */

/* Learns from what failed, frees what is left. */
static void end_dial(struct tcp_dial *d)
{
    for (unsigned i = 0; i < d->card.count; i++)
        if (d->attempt[i].tried && d->attempt[i].final) tcp_addr_learn(d->card.host, &d->card.addr[i], false);
    list_each(l, next, &d->halves) tcp_half_free(container_of(l, struct tcp_half, link));
    list_remove(&d->in_all);
    d->e->dial = NULL;
    free(d);
}

int tcp_dial(struct tcp_ep *e, struct tcp_card *card)
{
    uint64_t now = clock_ns();
    struct tcp_dial *d = calloc(1, sizeof *d);
    if (!d) return err_set(TERN_ERR_NOMEM, "no memory to connect to %s", jobs_words(e->peer->index));
    tcp_addr_rank(&tcp_dom, card);
    snprintf(e->host, sizeof e->host, "%s", card->host);
    d->e = e;
    d->card = *card;
    d->deadline = now + tcp_dom.timeout;
    d->patience = now + PATIENCE * tcp_dom.timeout;
    list_init(&d->halves);
    list_push(&tcp_dom.dials, &d->in_all);
    e->dial = d;
    start_some(d, now);
    if (is_over(d, now)) {
        int rc = put_in_words(d);
        end_dial(d);
        return rc;
    }
    tcp_due(now + RETRY_NS);
    return 0;
}

void tcp_dial_cancel(struct tcp_ep *e)
{
    if (e->dial) end_dial(e->dial);
}

bool tcp_dial_proved(const struct tcp_ep *e)
{
    if (e->dial)
        list_each(l, next, &e->dial->halves)
            if (container_of(l, struct tcp_half, link)->stage == HALF_PROVED) return true;
    return false;
}

/* After something has failed, or time has passed. The dial may be over after this. */
static void go_on(struct tcp_dial *d, uint64_t now)
{
    struct tcp_ep *e = d->e;
    start_some(d, now);
    if (!is_over(d, now)) return;
    put_in_words(d);
    tcp_lose(e, TERN_ERR_PEER);
}

static void failed(struct tcp_half *h, const char *why, bool again)
{
    struct tcp_dial *d = h->dial;
    struct tcp_ep *e = d->e;
    if (h->stage == HALF_PROVED) d->deadline = clock_ns() + tcp_dom.timeout; /* it was the right one, only too busy */
    note(d, h->which, h->src.fd, why, again);
    end_half(h);
    tcp_incoming_settle(e); /* who is held may do instead */
    if (e->dial == d) go_on(d, clock_ns());
}

static void won(struct tcp_half *h)
{
    struct tcp_dial *d = h->dial;
    struct tcp_ep *e = d->e;
    tcp_addr_learn(d->card.host, &d->card.addr[h->which], true);
    list_remove(&h->link);
    end_dial(d);
    tcp_adopt(e, h);
    tcp_incoming_settle(e);
}

/* The other side's files may become fewer, but it is not waited for for ever. */
static void full(struct tcp_half *h)
{
    h->stage = HALF_TALKING;
    failed(h, "that process has too many files open to take a connection (ulimit -n)", true);
}

static void judged(struct tcp_half *h)
{
    h->dial->attempt[h->which].drops = 0;
    if (h->hs.verdict == VERDICT_WELCOME) won(h);
    else if (h->hs.verdict == VERDICT_LEAVING) tcp_leave(h->dial->e);
    else if (h->hs.verdict == VERDICT_FULL) full(h);
    else failed(h, "the other side prefers its own connection, which did not come", true);
}

/* Closed without a verdict: the network works, and the process may be there and crowded. */
static void dropped(struct tcp_half *h, const char *why)
{
    struct tcp_dial *d = h->dial;
    uint64_t later = clock_ns() + tcp_dom.timeout;
    d->attempt[h->which].drops++;
    if (later > d->patience) later = d->patience;
    if (later > d->deadline) d->deadline = later;
    failed(h, why, true);
}

void tcp_dial_event(struct tcp_half *h, uint32_t events)
{
    const char *why;
    bool again;
    (void)events;
    if (h->stage == HALF_CONNECTING) {
        int error = 0;
        socklen_t n = sizeof error;
        if (getsockopt(h->src.fd, SOL_SOCKET, SO_ERROR, &error, &n)) error = errno;
        if (error) {
            failed(h, strerror(error), error == ECONNRESET);
            return;
        }
        h->stage = HALF_TALKING;
        tcp_watch(&h->src, EPOLLIN);
    }
    switch (tcp_half_talk(h, &why, &again)) {
    case HANDSHAKE_MORE: return;
    case HANDSHAKE_DONE: judged(h); return;
    default:
        if (again) dropped(h, why);
        else failed(h, why, false);
    }
}

/* The next time that an address is to be tried again. */
static uint64_t next_retry(const struct tcp_dial *d, uint64_t now)
{
    uint64_t next = now + RETRY_NS;
    for (unsigned i = 0; i < d->card.count; i++) {
        uint64_t at = d->attempt[i].retry_at;
        if (at > now && at < next) next = at;
    }
    return next;
}

uint64_t tcp_dial_timer(struct tcp_dial *d, uint64_t now, uint64_t away)
{
    uint64_t next = next_retry(d, now);
    d->deadline += away;
    d->patience += away;
    go_on(d, now); /* the dial may be over after this */
    return next;
}
