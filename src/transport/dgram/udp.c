/*
 * udp.c - the wire of udp.h: one socket, datagrams taken and given in batches of 16 a
 * system call.
 *
 * When a host says that nobody listens at a port (ICMP), the system queues that at the socket (IP_RECVERR). It also lets the next
 * call at the socket fail, which then does nothing else: that is the sign to look at the queue.
 *
 * A child of fork closes its copies of the sockets: else a port would be there as long as the child, and nobody would be told that its
 * process has gone.
 *
 * An address is a byte 4 or 6, the port, and the 4 or 16 bytes of the IP address, in
 * network order.
 */
#include "transport/dgram/udp.h"

#include "base/err.h"
#include "base/list.h"
#include "base/var.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/errqueue.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define BATCH 16
#define RETRY_NS 1000000u    /* after the system had no room */
#define LOOK_NS 1000000000u  /* between looks at the queue of errors without a sign, for one that was overlooked */
#define SOCKET_BYTES 4194304 /* asked of the system for each direction; it gives less */

/* A datagram in a batch. */
struct slot {
    struct sockaddr_storage addr;
    struct iovec piece;
};

struct udp {
    struct dgram_wire wire;
    struct link open; /* in `wires` */
    uint64_t now;     /* of the last call that told it */
    uint64_t looked;  /* at the queue of errors */
    bool full;        /* the system has no room for what is in `out` */
    bool suspect;     /* something may be in the queue of errors */
    unsigned waiting; /* datagrams in `out` */
    struct slot in[BATCH], out[BATCH];
    struct mmsghdr in_heads[BATCH], out_heads[BATCH];
    uint8_t bytes[]; /* BATCH times UDP_MTU_MOST received, BATCH times mtu to be sent */
};

/* All that are open in this process, under `forking`. */
static struct link wires = LIST_INIT(wires);
static pthread_mutex_t forking = PTHREAD_MUTEX_INITIALIZER;

static struct udp *udp_of(const struct dgram_wire *w) { return container_of(w, struct udp, wire); }

/* ---- addresses ---- */

static socklen_t to_system(const struct dgram_addr *a, struct sockaddr_storage *to)
{
    struct sockaddr_in *v4 = (struct sockaddr_in *)to;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)to;
    memset(to, 0, sizeof *to);
    if (a->bytes[0] == 4) {
        v4->sin_family = AF_INET;
        memcpy(&v4->sin_port, a->bytes + 1, 2);
        memcpy(&v4->sin_addr, a->bytes + 3, 4);
        return sizeof *v4;
    }
    v6->sin6_family = AF_INET6;
    memcpy(&v6->sin6_port, a->bytes + 1, 2);
    memcpy(&v6->sin6_addr, a->bytes + 3, 16);
    return sizeof *v6;
}

static struct dgram_addr from_system(const struct sockaddr_storage *from)
{
    const struct sockaddr_in *v4 = (const struct sockaddr_in *)from;
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)from;
    struct dgram_addr a = {.n = 0};
    bool is_v4 = from->ss_family == AF_INET;
    a.n = is_v4 ? 7 : 19;
    a.bytes[0] = is_v4 ? 4 : 6;
    memcpy(a.bytes + 1, is_v4 ? &v4->sin_port : &v6->sin6_port, 2);
    memcpy(a.bytes + 3, is_v4 ? (const void *)&v4->sin_addr : &v6->sin6_addr, a.n - 3u);
    return a;
}

/* The socket is of one family, so only addresses of its own are any good. */
static bool udp_valid(const struct dgram_wire *w, const struct dgram_addr *a)
{
    return a->n == w->own.n && a->bytes[0] == w->own.bytes[0] && (a->bytes[1] || a->bytes[2]);
}

static void udp_text(const struct dgram_wire *w, const struct dgram_addr *a, char *buf, size_t n)
{
    char ip[INET6_ADDRSTRLEN] = "?";
    (void)w;
    inet_ntop(a->bytes[0] == 4 ? AF_INET : AF_INET6, a->bytes + 3, ip, sizeof ip);
    snprintf(buf, n, "%s port %u", ip, a->bytes[1] << 8 | a->bytes[2]);
}

/* ---- datagrams ---- */

static void *udp_room(struct dgram_wire *w)
{
    struct udp *u = udp_of(w);
    if (u->waiting == BATCH && !u->full) w->ops->flush(w, u->now);
    return u->waiting < BATCH ? u->out[u->waiting].piece.iov_base : NULL;
}

static void udp_send(struct dgram_wire *w, const struct dgram_addr *to, size_t n)
{
    struct udp *u = udp_of(w);
    struct slot *s = &u->out[u->waiting];
    s->piece.iov_len = n;
    u->out_heads[u->waiting++].msg_hdr.msg_namelen = to_system(to, &s->addr);
}

/* The first n waiting ones are done with; the memory of the others takes their place, and the other way round. */
static void advance(struct udp *u, unsigned n)
{
    for (unsigned i = n; i < u->waiting; i++) {
        struct slot gone = u->out[i - n];
        u->out[i - n] = u->out[i];
        u->out[i] = gone;
        u->out_heads[i - n].msg_hdr.msg_namelen = u->out_heads[i].msg_hdr.msg_namelen;
    }
    u->waiting -= n;
}

/* The first n datagrams have gone: is one of them to the address that had trouble? */
static void end_trouble(struct udp *u, unsigned n)
{
    for (unsigned i = 0; u->wire.trouble && i < n; i++) {
        struct dgram_addr to = from_system(&u->out[i].addr);
        if (dgram_addr_same(&to, &u->wire.trouble_to)) u->wire.trouble = 0;
    }
}

static void udp_flush(struct dgram_wire *w, uint64_t now)
{
    struct udp *u = udp_of(w);
    bool again = false;
    u->now = now;
    u->full = false;
    while (u->waiting) {
        int n = sendmmsg(w->fd, u->out_heads, u->waiting, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n > 0) {
            u->suspect |= (unsigned)n < u->waiting; /* the call has ended at an error, which is not told */
            end_trouble(u, (unsigned)n);
            advance(u, (unsigned)n);
            again = false;
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            u->full = true;
            return;
        } else if (errno != EINTR) {
            u->suspect = true;
            again = !again; /* the first time it may be the error of an earlier datagram */
            if (again) continue;
            w->trouble = errno;
            w->trouble_to = from_system(&u->out[0].addr);
            advance(u, 1);
        }
    }
}

static int udp_poll(struct dgram_wire *w, uint64_t now, int budget, dgram_take_fn take, void *arg)
{
    struct udp *u = udp_of(w);
    int taken = 0, n;
    u->now = now;
    do {
        for (int i = 0; i < BATCH; i++) u->in_heads[i].msg_hdr.msg_namelen = sizeof u->in[i].addr;
        n = recvmmsg(w->fd, u->in_heads, BATCH, MSG_DONTWAIT, NULL);
        for (int i = 0; i < n; i++) {
            if (u->in_heads[i].msg_hdr.msg_flags & MSG_TRUNC) continue; /* longer than any of ours */
            struct dgram_addr from = from_system(&u->in[i].addr);
            take(arg, &from, u->in[i].piece.iov_base, u->in_heads[i].msg_len);
        }
        taken += n > 0 ? n : 0;
    } while (n == BATCH && taken < budget);
    if (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) u->suspect = true;
    return taken;
}

/* Takes one error from the queue. -1: there is none; 1: nobody listens at *a; 0: something else. */
static int take_error(struct udp *u, struct dgram_addr *a)
{
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(sizeof(struct sock_extended_err) + sizeof(struct sockaddr_in6))];
    } control;
    struct sockaddr_storage to = {.ss_family = AF_UNSPEC};
    struct msghdr m = {.msg_name = &to, .msg_namelen = sizeof to, .msg_control = &control, .msg_controllen = sizeof control};
    if (recvmsg(u->wire.fd, &m, MSG_ERRQUEUE | MSG_DONTWAIT) < 0) return -1;
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    struct sock_extended_err e = {.ee_errno = 0};
    if (c && c->cmsg_len >= CMSG_LEN(sizeof e)) memcpy(&e, CMSG_DATA(c), sizeof e);
    if (e.ee_errno != ECONNREFUSED || (to.ss_family != AF_INET && to.ss_family != AF_INET6)) return 0;
    *a = from_system(&to);
    return 1;
}

static bool udp_refused(struct dgram_wire *w, struct dgram_addr *a)
{
    struct udp *u = udp_of(w);
    int what = 0;
    if (likely(!u->suspect && u->now - u->looked < LOOK_NS)) return false;
    while (!what) what = take_error(u, a);
    if (what > 0) return true;
    u->suspect = false;
    u->looked = u->now;
    return false;
}

static bool udp_near(const struct dgram_wire *w, const struct dgram_addr *a)
{
    return a->n == w->own.n && !memcmp(a->bytes + 3, w->own.bytes + 3, a->n - 3u);
}

static uint64_t udp_due(const struct dgram_wire *w)
{
    const struct udp *u = udp_of(w);
    return u->waiting ? u->now + RETRY_NS : UINT64_MAX;
}

static void udp_close(struct dgram_wire *w)
{
    pthread_mutex_lock(&forking);
    list_remove(&udp_of(w)->open);
    pthread_mutex_unlock(&forking);
    if (w->fd >= 0) close(w->fd);
    free(udp_of(w));
}

/* ---- children of fork ---- */

static void before_fork(void) { pthread_mutex_lock(&forking); }
static void in_parent(void) { pthread_mutex_unlock(&forking); }

static void in_child(void)
{
    list_each (at, next, &wires) {
        struct udp *u = container_of(at, struct udp, open);
        if (u->wire.fd >= 0) close(u->wire.fd);
        u->wire.fd = -1;
    }
    pthread_mutex_unlock(&forking);
}

static int not_watched;
static void watch_forks(void) { not_watched = pthread_atfork(before_fork, in_parent, in_child); }

static int enlist(struct udp *u)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch_forks); /* not under the lock, which a thread that forks takes */
    if (not_watched) return err_set(TERN_ERR_NOMEM, "no memory for datagrams by UDP");
    pthread_mutex_lock(&forking);
    list_push(&wires, &u->open);
    pthread_mutex_unlock(&forking);
    return 0;
}

static const struct dgram_wire_ops ops = {
    .name = "UDP",
    .close = udp_close,
    .room = udp_room,
    .send = udp_send,
    .flush = udp_flush,
    .poll = udp_poll,
    .due = udp_due,
    .valid = udp_valid,
    .refused = udp_refused,
    .near = udp_near,
    .text = udp_text,
};

/* ---- opening ---- */

static int parse_address(const char *text, struct dgram_addr *a)
{
    static const uint8_t any[16];
    *a = (struct dgram_addr){.n = 7, .bytes = {4}};
    if (inet_pton(AF_INET, text, a->bytes + 3) != 1) {
        *a = (struct dgram_addr){.n = 19, .bytes = {6}};
        if (inet_pton(AF_INET6, text, a->bytes + 3) != 1)
            return err_set(TERN_ERR_ARG, "'%s' is no numeric IP address", text);
    }
    if (!memcmp(a->bytes + 3, any, a->n - 3u))
        return err_set(TERN_ERR_ARG, "datagrams need an address by which others reach this process; '%s' is none",
                       text);
    if (a->n == 19 && a->bytes[3] == 0xfe && (a->bytes[4] & 0xc0) == 0x80)
        return err_set(TERN_ERR_ARG, "'%s' is a link-local address, which other hosts cannot use", text);
    return 0;
}

/* The ports of the range one after the other, from one that differs between processes; 0: any. */
static int bind_to(int fd, struct dgram_addr *a, const char *address, unsigned low, unsigned high)
{
    struct sockaddr_storage sys;
    unsigned n = high - low + 1, first = (unsigned)getpid() % n;
    for (unsigned i = 0; i < n; i++) {
        unsigned port = low + (first + i) % n;
        a->bytes[1] = (uint8_t)(port >> 8);
        a->bytes[2] = (uint8_t)port;
        socklen_t len = to_system(a, &sys);
        if (!bind(fd, (struct sockaddr *)&sys, len)) {
            if (getsockname(fd, (struct sockaddr *)&sys, &len))
                return err_sys("cannot ask for the port of a UDP socket");
            *a = from_system(&sys);
            return 0;
        }
        if (errno != EADDRINUSE && errno != EACCES) break;
    }
    if (low) return err_sys("cannot bind a UDP socket to %s and any of the ports %u-%u", address, low, high);
    return err_sys("cannot bind a UDP socket to %s; is it an address of this host?", address);
}

static int open_socket(struct dgram_addr *a, const char *address, unsigned low, unsigned high, int *fd_p)
{
    int v4 = a->bytes[0] == 4, bytes = SOCKET_BYTES, off = IP_PMTUDISC_DONT, on = 1;
    int fd = socket(v4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return err_sys("cannot make a UDP socket");
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
    /* What is longer than the path takes is split by IP. */
    if (v4)
        setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &off, sizeof off);
    else
        setsockopt(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, &off, sizeof off);
    if (!v4) setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
    setsockopt(fd, v4 ? IPPROTO_IP : IPPROTO_IPV6, v4 ? IP_RECVERR : IPV6_RECVERR, &on, sizeof on);
    int rc = bind_to(fd, a, address, low, high);
    if (rc)
        close(fd);
    else
        *fd_p = fd;
    return rc;
}

static void lay_out(struct udp *u)
{
    uint8_t *out = u->bytes + (size_t)BATCH * UDP_MTU_MOST;
    for (int i = 0; i < BATCH; i++) {
        u->in[i].piece = (struct iovec){u->bytes + (size_t)i * UDP_MTU_MOST, UDP_MTU_MOST};
        u->out[i].piece = (struct iovec){out + (size_t)i * u->wire.mtu, u->wire.mtu};
        u->in_heads[i].msg_hdr =
            (struct msghdr){.msg_name = &u->in[i].addr, .msg_iov = &u->in[i].piece, .msg_iovlen = 1};
        u->out_heads[i].msg_hdr =
            (struct msghdr){.msg_name = &u->out[i].addr, .msg_iov = &u->out[i].piece, .msg_iovlen = 1};
    }
}

static int open_wire(const char *address, bool wide, uint16_t low, uint16_t high, uint32_t mtu, struct dgram_wire **wire_p)
{
    struct dgram_addr a;
    int fd = -1, rc = parse_address(address, &a);
    if (!mtu) mtu = (uint32_t)min_size((size_t)var_int(VAR_DGRAM_MTU), UDP_MTU_MOST + 1);
    if (!rc && (mtu < 256 || mtu > UDP_MTU_MOST))
        rc = err_set(TERN_ERR_ARG, "datagrams of %u bytes cannot be sent: 256 to %d are possible (TERN_DGRAM_MTU)", mtu,
                     UDP_MTU_MOST);
    struct dgram_addr at = wide ? (struct dgram_addr){.n = a.n, .bytes = {a.bytes[0]}} : a;
    if (!rc) rc = open_socket(&at, address, low, high, &fd);
    if (rc) return rc;
    memcpy(a.bytes + 1, at.bytes + 1, 2); /* the port */
    struct udp *u = malloc(sizeof *u + (size_t)BATCH * (UDP_MTU_MOST + mtu)); /* the bytes are not touched before they are used */
    if (!u) {
        close(fd);
        return err_set(TERN_ERR_NOMEM, "no memory for datagrams by UDP");
    }
    memset(u, 0, sizeof *u);
    u->wire = (struct dgram_wire){.ops = &ops, .mtu = mtu, .fd = fd, .kind = DGRAM_UDP, .own = a};
    lay_out(u);
    if ((rc = enlist(u))) {
        close(fd);
        free(u);
        return rc;
    }
    *wire_p = &u->wire;
    return 0;
}

int udp_open(const char *address, uint16_t low, uint16_t high, uint32_t mtu, struct dgram_wire **wire_p)
{
    return open_wire(address, false, low, high, mtu, wire_p);
}

int udp_open_wide(const char *address, uint16_t low, uint16_t high, uint32_t mtu, struct dgram_wire **wire_p)
{
    return open_wire(address, true, low, high, mtu, wire_p);
}
