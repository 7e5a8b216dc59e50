/* connected.c - see connected.h. */
#include "dpm/connected.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/handshake.h"

#include <endian.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define HALVES 32 /* connections at a time that have not shown the key yet; more wait in the system's queue, or take a place (place) */
#define SILENT_NS 10000000u  /* before a newcomer takes the place of one that has not sent its hello */
#define SPOKEN_NS 100000000u /* the same of one that has, if all have */
#define PAUSE_NS 10000000u   /* before a caller that was turned out dials again */
#define FIRST_ROOM 65536 /* bytes: memory for a table grows with what has come of it */

enum side { CALLER = 1, ACCEPTOR = 2 }; /* in the handshake */

/* A connection that may be a stranger's. */
struct half {
    int fd; /* -1: none */
    uint64_t since;
    struct handshake shake;
};

struct connected {
    struct partner *partner;
    const struct crypto *crypto;
    uint8_t key[CRYPTO_KEY];                   /* of the handshake */
    uint8_t mine[CRYPTO_KEY], its[CRYPTO_KEY]; /* of the records, each way */
    uint64_t sent, got;                        /* records */
    int fd;                                    /* -1: not connected yet */
    int listener, set;                         /* acceptor: and an epoll descriptor for it and the halves */
    struct half half[HALVES];
    uint64_t full_until;                       /* no place for a newcomer before */
    uint8_t *record;                           /* malloc'ed; sealed bytes, so many at most: */
    size_t room;
};

static int new_connected(struct partner *p, enum side side, struct connected **out)
{
    struct connected *c = calloc(1, sizeof *c);
    if (!c) return err_set(TERN_ERR_NOMEM, "no memory for a connection to another group");
    c->partner = p;
    c->crypto = endpoints_crypto();
    c->fd = c->listener = c->set = -1;
    for (int i = 0; i < HALVES; i++) c->half[i].fd = -1;
    partner_key(p, side == CALLER, c->key);
    *out = c;
    return 0;
}

static void close_fd(int fd)
{
    if (fd >= 0) close(fd);
}

void connected_close(struct connected *c)
{
    if (!c) return;
    for (int i = 0; i < HALVES; i++) close_fd(c->half[i].fd);
    close_fd(c->set);
    close_fd(c->listener);
    close_fd(c->fd);
    free(c->record);
    explicit_bzero(c, sizeof *c);
    free(c);
}

/* ---- bytes ---- */

static int move(struct connected *c, void *bytes, size_t n, bool out) { return endpoints_move(c->fd, c->partner, bytes, n, out); }

static void begin_records(struct connected *c, const struct handshake *h)
{
    handshake_key(h, true, c->mine);
    handshake_key(h, false, c->its);
}

static int open_socket(const struct net_addr *a, int *fd_p)
{
    int on = 1, fd = socket(a->family == 4 ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return err_sys("no socket for the tables of two groups");
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    *fd_p = fd;
    return 0;
}

/* ---- the caller ---- */

/* *again: the other side has closed the connection, or is too slow. */
static int shake_hands(struct connected *c, bool *again)
{
    struct handshake h;
    uint8_t bytes[HANDSHAKE_OUT];
    enum handshake_state s = HANDSHAKE_MORE;
    handshake_connect(&h, c->crypto, c->key, HANDSHAKE_TABLE, CALLER, ACCEPTOR);
    while (s == HANDSHAKE_MORE) {
        int rc = move(c, h.out, h.out_len, true);
        h.out_len = 0;
        size_t n = handshake_wants(&h);
        if (!rc) rc = move(c, bytes, n, false);
        *again = rc != 0 && rc != TERN_AGAIN;
        if (rc) return rc;
        s = handshake_input(&h, bytes, n);
    }
    if (s != HANDSHAKE_DONE || h.verdict != VERDICT_WELCOME)
        return err_set(TERN_ERR_PEER, "the connection for the tables of two groups is refused: %s", h.why ? h.why : "no room");
    begin_records(c, &h);
    return 0;
}

static int dial(struct connected *c, const struct net_addr *at)
{
    struct sockaddr_storage to;
    char text[80];
    int error = 0, rc = open_socket(at, &c->fd);
    socklen_t n = net_addr_sock(at, &to), size = sizeof error;
    if (rc) return rc;
    net_addr_text(at, text, sizeof text);
    if (!connect(c->fd, (struct sockaddr *)&to, n)) return 0;
    if (errno == EINPROGRESS) {
        rc = endpoints_await_fd(c->fd, POLLOUT, c->partner, clock_ns() + endpoints_patience());
        if (rc) return rc;
        getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &error, &size);
        errno = error;
    }
    return errno ? err_sys("the other group cannot be reached at %s", text) : 0;
}

/* It may have been taken for a stranger, and turned out, when many came: then it tries again. */
static int dial_again(struct connected *c, const struct net_addr *at)
{
    uint64_t end = clock_ns() + endpoints_patience();
    for (;;) {
        bool again = false;
        int rc = dial(c, at);
        if (!rc) rc = shake_hands(c, &again);
        if (!rc || !again || clock_ns() >= end) return rc;
        err_keep(c, rc);
        close(c->fd);
        c->fd = -1;
        int gone = endpoints_pause(c->partner, PAUSE_NS);
        if (gone) return gone;
        err_recall(c, rc);
    }
}

int connected_dial(struct partner *p, const struct net_addr *at, struct connected **out)
{
    struct connected *c;
    int rc = new_connected(p, CALLER, &c);
    if (rc) return rc;
    rc = dial_again(c, at);
    if (rc) connected_close(c);
    else *out = c;
    return rc;
}

/* ---- the acceptor ---- */

static int watch_for(struct connected *c, int fd, struct half *h)
{
    struct epoll_event e = {.events = EPOLLIN, .data = {.ptr = h}};
    return epoll_ctl(c->set, EPOLL_CTL_ADD, fd, &e) ? err_sys("connections cannot be waited for") : 0;
}

/* At any port of the range that is free. */
static int bind_to(int fd, struct net_addr *at)
{
    struct sockaddr_storage a;
    socklen_t n = sizeof a;
    uint16_t low, high;
    int on = 1, rc = net_ports(&low, &high);
    if (rc) return rc;
    if (low) setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on); /* ports of connections that were */
    for (uint32_t port = low; port <= high; port++) {
        at->port = (uint16_t)port;
        n = net_addr_sock(at, &a);
        if (!bind(fd, (struct sockaddr *)&a, n)) break;
        if (errno != EADDRINUSE || port == high) return err_sys("no port for the tables of two groups can be listened at");
    }
    if (listen(fd, SOMAXCONN) || getsockname(fd, (struct sockaddr *)&a, &n)) return err_sys("connections cannot be listened for");
    net_addr_from(at, &a);
    return 0;
}

int connected_listen(struct partner *p, struct connected **out, struct net_addr *at)
{
    struct connected *c;
    int rc = partner_own_address(p, at);
    if (!rc) rc = new_connected(p, ACCEPTOR, &c);
    if (rc) return rc;
    rc = open_socket(at, &c->listener);
    if (!rc) rc = bind_to(c->listener, at);
    if (!rc && (c->set = epoll_create1(EPOLL_CLOEXEC)) < 0) rc = err_sys("no descriptor to wait for connections");
    if (!rc) rc = watch_for(c, c->listener, NULL);
    if (rc) connected_close(c);
    else *out = c;
    return rc;
}

static void drop(struct half *h)
{
    close_fd(h->fd);
    h->fd = -1;
}

/* The few bytes of a handshake find room in a new socket. */
static bool send_rest(struct half *h)
{
    size_t n = h->shake.out_len;
    h->shake.out_len = 0;
    return !n || send(h->fd, h->shake.out, n, MSG_NOSIGNAL) == (ssize_t)n;
}

/* Something has come from one. True: it is the partner. */
static bool take_input(struct half *h)
{
    uint8_t bytes[HANDSHAKE_OUT];
    ssize_t n = recv(h->fd, bytes, handshake_wants(&h->shake), 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return false;
    enum handshake_state s = n > 0 ? handshake_input(&h->shake, bytes, (size_t)n) : HANDSHAKE_BAD;
    if (s == HANDSHAKE_ASK) handshake_answer(&h->shake, VERDICT_WELCOME);
    if (s == HANDSHAKE_BAD || s == HANDSHAKE_DONE || !send_rest(h)) {
        drop(h);
        return false;
    }
    return s == HANDSHAKE_ASK;
}

static void take_half(struct connected *c, struct half *h)
{
    c->fd = h->fd;
    h->fd = -1;
    epoll_ctl(c->set, EPOLL_CTL_DEL, c->fd, NULL);
    begin_records(c, &h->shake);
    for (int i = 0; i < HALVES; i++) drop(&c->half[i]);
}

/* Does a make way before b? One that has said nothing before one that has, though any stranger may say a hello; the older one. */
static bool goes_before(const struct half *a, const struct half *b)
{
    bool spoken = handshake_spoken(&a->shake);
    return spoken != handshake_spoken(&b->shake) ? !spoken : a->since < b->since;
}

static struct half *first_to_go(struct connected *c)
{
    struct half *first = &c->half[0];
    for (int i = 0; i < HALVES && first->fd >= 0; i++)
        if (c->half[i].fd < 0 || goes_before(&c->half[i], first)) first = &c->half[i];
    return first;
}

/*
 * A place for one that has come: one that is free, or that of the first to go, if that one has had its time and has not said more
 * meanwhile. NULL: none is free before c->full_until, or the partner has been found.
 */
static struct half *place(struct connected *c)
{
    for (;;) {
        struct half *h = first_to_go(c);
        if (h->fd < 0) return h;
        bool spoken = handshake_spoken(&h->shake);
        c->full_until = h->since + (spoken ? SPOKEN_NS : SILENT_NS);
        if (c->full_until > clock_ns()) return NULL;
        if (take_input(h)) return take_half(c, h), NULL;
        if (h->fd < 0 || handshake_spoken(&h->shake) != spoken) continue;
        drop(h);
        return h;
    }
}

/* 0 or a code with words: it is still to be accepted, and cannot be. */
static int take_new(struct connected *c)
{
    struct half *h = place(c);
    if (!h) return 0;
    int fd = accept4(c->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK), on = 1;
    bool scarce = errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS;
    if (fd < 0) return scarce ? err_sys("cannot accept a connection for the tables of two groups") : 0;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    *h = (struct half){.fd = fd, .since = clock_ns()};
    handshake_accept(&h->shake, c->crypto, c->key, HANDSHAKE_TABLE, ACCEPTOR);
    if (watch_for(c, fd, h)) drop(h);
    return 0;
}

/* As long as all places are taken, newcomers wait in the system's queue. */
static void hear(struct connected *c, bool on)
{
    struct epoll_event e = {.events = on ? EPOLLIN : 0};
    epoll_ctl(c->set, EPOLL_CTL_MOD, c->listener, &e);
}

/* Until something has come, a place may be free, or it is too late. */
static int await_some(struct connected *c, uint64_t end)
{
    uint64_t until = c->full_until > clock_ns() ? min_size(c->full_until, end) : end;
    hear(c, until == end);
    int rc = endpoints_await_fd(c->set, POLLIN, c->partner, until);
    uint64_t now = clock_ns();
    if (rc == TERN_ERR_PEER && until < end && now >= until) rc = 0; /* if the partner has gone, the next call finds that */
    return !rc && now >= end ? err_set(TERN_ERR_PEER, "the other process has not connected for too long (TERN_DGRAM_TIMEOUT)") : rc;
}

int connected_meet(struct connected *c)
{
    uint64_t end = clock_ns() + endpoints_patience();
    while (c->fd < 0) {
        struct epoll_event e;
        int rc = await_some(c, end);
        if (rc) return rc;
        if (epoll_wait(c->set, &e, 1, 0) < 1) continue;
        struct half *h = e.data.ptr;
        if (!h) rc = take_new(c);
        else if (h->fd >= 0 && take_input(h)) take_half(c, h);
        if (rc) return rc;
    }
    return 0;
}

/* ---- records ---- */

/*
 * Makes room for a record of n bytes, and for no more than that: with 64 KB for the shortest one as well, the heap shrinks and grows by
 * each connection where the C library gives back what lies free at its end (128 KB and more), and each of these pages is a fault (16 KB
 * of table: 1.3 ms in place of 0.5, where a fault costs some microseconds).
 */
static int hold_record(struct connected *c, size_t n)
{
    if (n <= c->room) return 0;
    uint8_t *more = realloc(c->record, n);
    if (!more) return err_set(TERN_ERR_NOMEM, "no memory for a piece of a table (%zu bytes)", n);
    c->record = more;
    c->room = n;
    return 0;
}

int connected_send(struct connected *c, const void *bytes, size_t n)
{
    for (size_t at = 0; at < n;) {
        uint32_t some = (uint32_t)min_size(n - at, CONNECTED_RECORD), head = htobe32(some);
        int rc = hold_record(c, sizeof head + some + CRYPTO_SEAL);
        if (rc) return rc;
        memcpy(c->record, &head, sizeof head);
        c->crypto->seal(c->record + sizeof head, (const uint8_t *)bytes + at, some, some, c->sent++, c->mine);
        if ((rc = move(c, c->record, sizeof head + some + CRYPTO_SEAL, true))) return rc;
        at += some;
    }
    return 0;
}

static int strange(void)
{
    return err_set(TERN_ERR_SYSTEM, "what comes over the connection for the tables of two groups is no part of one");
}

/* A record, of which there is room for `most` bytes. */
static int recv_record(struct connected *c, uint8_t *to, size_t most, size_t *n_p)
{
    uint32_t head = 0;
    int rc = move(c, &head, sizeof head, false);
    if (rc) return rc;
    uint32_t n = be32toh(head);
    if (!n || n > CONNECTED_RECORD || n > most) return strange();
    if ((rc = hold_record(c, n + CRYPTO_SEAL)) || (rc = move(c, c->record, n + CRYPTO_SEAL, false))) return rc;
    *n_p = n;
    return c->crypto->unseal(to, c->record, n, n, c->got++, c->its) ? 0 : strange();
}

int connected_recv(struct connected *c, size_t n, void **bytes_p)
{
    uint8_t *bytes = NULL;
    size_t room = 0, some = 0;
    int rc = 0;
    for (size_t at = 0; at < n && !rc; at += rc ? 0 : some) {
        if (room - at < CONNECTED_RECORD && room < n) {
            room = min_size(max_size(2 * room, FIRST_ROOM + at), n);
            uint8_t *more = realloc(bytes, room);
            if (!more) rc = err_set(TERN_ERR_NOMEM, "no memory for the table of another group (%zu bytes)", n);
            else bytes = more;
        }
        if (!rc) rc = recv_record(c, bytes + at, room - at, &some);
    }
    if (rc) free(bytes);
    else *bytes_p = bytes;
    return rc;
}
