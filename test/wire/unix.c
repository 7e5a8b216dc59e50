/*
 * unix.c - a transport that is a module (transport/env.h): messages between the processes of a node by sockets of the
 * Unix domain. It is for tests: it shows that a wire needs nothing of the library but what it is given, and has nothing
 * but what the contract asks for at least, and bulk transfers.
 *
 * Each process listens at a socket with an abstract name, which is on its card. Whoever has something to send connects;
 * a connection carries the messages of the side that has made it, one packet each:
 *
 *     | id 4 | bytes 4 | h0 8 | h1 8 | payload `bytes` |
 *
 * A bulk transfer is a protocol of its own over the same connections, by packets with ids of its own. Nothing but the
 * announcement lies at the receiver before its memory is known:
 *
 *     BULK_READY  h0 the tag, h1 bytes      sender: they can be had
 *     BULK_GO     h0 the tag, h1 1: refused receiver: here is their place; refused: it has another length
 *     BULK_DATA   h0 the tag, h1 offset     the next bytes, in order
 *
 * The first packet, with the id AM_PAD, says who sends: a struct proc_name. Of a process of a job that is not known here,
 * or not yet, nothing more is read until it is. The last packet in each direction, AM_PAD as well, is the farewell; the
 * end of a connection without one is a loss. A peer has ended when both connections with it have. One that is closed
 * alone is told the farewell by the connection to it, or if there is none, by the one that it has made.
 *
 * TERN_UNIX_REPORT=1: says at its end how many bulk transfers it has sent.
 */
#include "base/err.h"
#include "base/list.h"
#include "transport/transport.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define MOST 8192 /* bytes of a message */
#define SEND_BUFFER (64 << 10)
#define LISTEN_QUEUE 256

static const struct tp_ops unix_ops;

struct card {
    uint64_t magic;
    uint64_t place; /* the network name space: the same where names are */
    uint64_t name;
};
#define MAGIC 0x656c706d6178456eu

enum note { NOTE_HELLO = 1, NOTE_FAREWELL };
enum bulk_id { BULK_READY = TP_AM_MAX, BULK_GO, BULK_DATA, BULK_IDS };

/* Packets of data that go to a peer in one turn: messages have theirs in between. */
#define BULK_TURN 4

struct head {
    uint32_t id, bytes;
    uint64_t h0, h1;
};
static_assert(sizeof(struct head) == 24, "wire format");

/* One connection, as epoll knows it. */
struct end {
    struct link link; /* in dom.strangers until it has said who it is, in dom.dead when it is closed */
    struct side *side;
    int fd;
    bool wants_room;  /* epoll watches for it */
    bool named;       /* it has said by whom it was made: */
    struct proc_name name;
    bool reset;       /* the other side has closed with something of ours unread; what it sent before can be read */
};

/* One side of a bulk transfer: the sender's, or the receiver's, which may know of it by the announcement only. */
struct bulk {
    struct link link; /* in side.bulk_out or bulk_in */
    struct tp_op *op; /* NULL: announced, and no receive has come */
    uint64_t tag;
    char *at;
    size_t n, moved; /* n: as this side says */
    size_t announced;
    bool ready; /* sender: the receiver is; receiver: it has been announced */
    bool told;  /* sender: it has announced it; receiver: the sender has its GO */
    int rc;     /* it is refused: the lengths differ */
};

/* What there is with one peer. */
struct side {
    struct link link; /* in dom.sides */
    struct peer *peer;
    struct end *out, *in;    /* ours and its; NULL: none, or closed */
    uint64_t name;           /* where to connect; 0: its card has not been read */
    bool greeted;            /* `out` is connected, and has said who we are */
    bool ended, farewell;    /* of the connection that ended last: how */
    bool severed, reported;
    bool opened, said_last;  /* there is a way to it (ep_open); it is closed alone, and has been told so */
    struct link bulk_out, bulk_in;
};

static struct {
    const struct tp_env *env;
    struct link sides, strangers, dead;
    struct end listener;
    int epoll;
    struct card card;
    char *packet, *spare; /* room for one each; the spare takes the place of one that a handler keeps */
    bool kept;
    bool severed; /* a side is, and its connections are to be closed */
    uint64_t bulks; /* transfers that this process has sent */
    uint32_t news; /* env->news when the strangers were looked at last */
} dom;

/* ---- ends ---- */

static bool watch(struct end *e, int op, uint32_t events)
{
    struct epoll_event ev = {.events = events, .data.ptr = e};
    return !epoll_ctl(dom.epoll, op, e->fd, &ev);
}

static struct end *end_new(int fd, struct side *s)
{
    struct end *e = calloc(1, sizeof *e);
    if (!e) return NULL;
    e->fd = fd;
    e->side = s;
    list_init(&e->link);
    if (watch(e, EPOLL_CTL_ADD, EPOLLIN)) return e;
    free(e);
    return NULL;
}

/* Freed when no event can point to it. */
static void end_close(struct end *e)
{
    if (!e) return;
    struct side *s = e->side;
    if (s && s->out == e) s->out = NULL;
    if (s && s->in == e) s->in = NULL;
    close(e->fd);
    e->fd = -1;
    list_remove(&e->link);
    list_push(&dom.dead, &e->link);
}

static void bury(void)
{
    for (struct link *l; (l = list_pop(&dom.dead));) free(container_of(l, struct end, link));
}

static struct side *find_side(const struct peer *p)
{
    list_each(l, next, &dom.sides)
        if (container_of(l, struct side, link)->peer == p) return container_of(l, struct side, link);
    return NULL;
}

static struct side *side_of(struct peer *p)
{
    struct side *s = find_side(p);
    if (s) return s;
    s = calloc(1, sizeof *s);
    if (!s) return NULL;
    s->peer = p;
    list_init(&s->bulk_out);
    list_init(&s->bulk_in);
    list_push(&dom.sides, &s->link);
    return s;
}

static int put(int fd, unsigned id, uint64_t h0, uint64_t h1, const void *p, size_t n)
{
    struct head h = {id, (uint32_t)n, h0, h1};
    struct iovec v[] = {{&h, sizeof h}, {(void *)(uintptr_t)p, n}};
    struct msghdr m = {.msg_iov = v, .msg_iovlen = n ? 2 : 1};
    ssize_t k;
    do {
        k = sendmsg(fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
    } while (k < 0 && errno == EINTR);
    return k < 0 ? errno : 0;
}

/* A full buffer grows for it. */
static void say_farewell(struct end *e)
{
    int bytes = 2 * SEND_BUFFER;
    if (!e) return;
    setsockopt(e->fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
    put(e->fd, AM_PAD, NOTE_FAREWELL, 0, NULL, 0);
}

static socklen_t address(struct sockaddr_un *a, uint64_t name)
{
    *a = (struct sockaddr_un){.sun_family = AF_UNIX};
    int n = snprintf(a->sun_path + 1, sizeof a->sun_path - 1, "tern-test-wire-%016llx", (unsigned long long)name);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

/* ---- sending ---- */

static int gone(const struct side *s)
{
    return dom.env->err_set(TERN_ERR_PEER, "unix: %s %s", dom.env->name_of(s->peer),
                            s->severed ? "was given up" : s->farewell ? "has left" : "is gone: its connection broke");
}

/* Connects, and says who we are. A queue of connections that is full is no error. */
static int greet(struct side *s)
{
    struct sockaddr_un a;
    socklen_t n = address(&a, s->name);
    if (connect(s->out->fd, (struct sockaddr *)&a, n)) {
        if (errno == EAGAIN || errno == EINTR) return TERN_AGAIN;
        return dom.env->err_sys("unix: cannot connect to %s", dom.env->name_of(s->peer));
    }
    int err = put(s->out->fd, AM_PAD, NOTE_HELLO, 0, &dom.env->self, sizeof dom.env->self);
    if (err) return gone(s);
    s->greeted = true;
    watch(s->out, EPOLL_CTL_MOD, EPOLLIN);
    return 0;
}

static int send_packet(struct side *s, unsigned id, uint64_t h0, uint64_t h1, const void *p, size_t n)
{
    int rc = !s->out || s->severed ? gone(s) : s->greeted ? 0 : greet(s);
    if (rc) return rc;
    int err = put(s->out->fd, id, h0, h1, p, n);
    if (!err) return 0;
    if (err != EAGAIN && err != ENOBUFS) return gone(s);
    if (!s->out->wants_room) watch(s->out, EPOLL_CTL_MOD, EPOLLIN | EPOLLOUT);
    s->out->wants_room = true;
    return TERN_AGAIN;
}

static int unix_am_short(struct tp_ep *ep, unsigned id, uint64_t h0, uint64_t h1, const void *p, size_t n)
{
    return send_packet(ep->priv, id, h0, h1, p, n);
}

/* ---- bulk transfers ---- */

static struct bulk *bulk_of(struct link *l) { return container_of(l, struct bulk, link); }

static struct bulk *find_bulk(struct link *head, uint64_t tag)
{
    list_each(l, next, head)
        if (bulk_of(l)->tag == tag) return bulk_of(l);
    return NULL;
}

static struct bulk *new_bulk(struct link *head, uint64_t tag)
{
    struct bulk *b = calloc(1, sizeof *b);
    if (!b) return NULL;
    b->tag = tag;
    list_push(head, &b->link);
    return b;
}

static void end_bulk(struct bulk *b, int rc)
{
    struct tp_op *op = b->op;
    list_remove(&b->link);
    free(b);
    if (op) op->done(op, rc);
}

static int other_length(const struct side *s, const struct bulk *b)
{
    return dom.env->err_set(TERN_ERR_PEER, "unix: %s and this process do not agree on the length of a bulk transfer (here %zu bytes)",
                            dom.env->name_of(s->peer), b->n);
}

/* One packet of a transfer that this process sends. 0, TERN_AGAIN, or a code; *moved: it, or the end, has come about. */
static int push_out(struct side *s, struct bulk *b, bool *moved)
{
    size_t n = min_size(MOST, b->n - b->moved);
    int rc = !b->told ? send_packet(s, BULK_READY, b->tag, b->n, NULL, 0)
             : b->rc || !n ? 0
                           : send_packet(s, BULK_DATA, b->tag, b->moved, b->at + b->moved, n);
    if (rc) return rc;
    *moved = true;
    if (b->told) b->moved += n;
    bool over = b->told && (b->rc || b->moved == b->n);
    b->told = true;
    dom.bulks += over && !b->rc;
    if (over) end_bulk(b, b->rc ? other_length(s, b) : 0);
    return 0;
}

/* The same for one that it receives: the answer to the announcement. */
static int push_in(struct side *s, struct bulk *b, bool *moved)
{
    bool other = b->announced != b->n;
    int rc = send_packet(s, BULK_GO, b->tag, other, NULL, 0);
    if (rc) return rc;
    *moved = b->told = true;
    if (other) end_bulk(b, other_length(s, b));
    else if (!b->n) end_bulk(b, 0);
    return 0;
}

static bool can_push(const struct bulk *b, bool out) { return out ? !b->told || b->ready : !b->told && b->ready && b->op; }

/* One packet of the first transfer that has one to send, which goes to the end of the list. */
static bool push_one(struct side *s, bool out, int *rc)
{
    struct link *head = out ? &s->bulk_out : &s->bulk_in;
    bool moved = false;
    list_each(l, next, head) {
        if (!can_push(bulk_of(l), out)) continue;
        list_remove(l);
        list_push(head, l); /* before the packet, which may be its last */
        *rc = out ? push_out(s, bulk_of(l), &moved) : push_in(s, bulk_of(l), &moved);
        break;
    }
    return moved;
}

/* What goes out now; what does not for want of room goes out when epoll tells of room. Returns the packets. */
static int push_bulks(struct side *s)
{
    int n = 0, rc = 0;
    if (!s->out || !s->greeted || s->severed) return 0;
    for (int i = 0; i < BULK_TURN && !rc; i++) {
        bool moved = !s->out->wants_room && push_one(s, false, &rc);
        if (!rc) moved |= !s->out->wants_room && push_one(s, true, &rc);
        if (!moved) return n;
        n++;
    }
    return n;
}

/* Is there something that could go out at once? */
static bool bulks_wait(const struct side *s)
{
    bool any = false;
    list_each(l, next, &s->bulk_in) any |= can_push(bulk_of(l), false);
    list_each(m, next_m, &s->bulk_out) any |= can_push(bulk_of(m), true);
    return any && s->out && !s->out->wants_room;
}

static int unix_bulk_send(struct tp_ep *ep, uint64_t tag, const void *p, size_t n, struct tp_op *op)
{
    struct side *s = ep->priv;
    if (!s->out || s->severed || s->reported) return gone(s);
    struct bulk *b = new_bulk(&s->bulk_out, tag);
    if (!b) return dom.env->err_set(TERN_ERR_NOMEM, "unix: no memory for a bulk transfer");
    b->op = op;
    b->at = (char *)(uintptr_t)p;
    b->n = n;
    return 0;
}

static int unix_bulk_recv(struct tp_ep *ep, uint64_t tag, void *p, size_t n, struct tp_op *op)
{
    struct side *s = ep->priv;
    if (!s->out || s->severed || s->reported) return gone(s);
    struct bulk *b = find_bulk(&s->bulk_in, tag);
    if (!b) b = new_bulk(&s->bulk_in, tag);
    if (!b) return dom.env->err_set(TERN_ERR_NOMEM, "unix: no memory for a bulk transfer");
    b->op = op;
    b->at = p;
    b->n = n;
    return 0;
}

/* All there is with a peer that is gone, in the words of gone(). */
static void end_bulks(struct side *s)
{
    while (!list_empty(&s->bulk_out)) end_bulk(bulk_of(s->bulk_out.next), gone(s));
    while (!list_empty(&s->bulk_in)) end_bulk(bulk_of(s->bulk_in.next), gone(s));
}

static void forget_bulks(struct side *s)
{
    for (struct link *l; (l = list_pop(&s->bulk_out)) || (l = list_pop(&s->bulk_in));) free(bulk_of(l));
}

/* ---- ways ---- */

static int unix_ep_open(struct tp_dom *d, struct peer *peer, const void *card, size_t n, struct tp_ep *ep)
{
    struct card c;
    int bytes = SEND_BUFFER;
    (void)d;
    if (n != sizeof c) return dom.env->err_set(TERN_ERR_PEER, "unix: a card of %zu bytes", n);
    memcpy(&c, card, sizeof c);
    struct side *s = side_of(peer);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (s && fd >= 0) s->out = end_new(fd, s);
    if (!s || !s->out) {
        int rc = dom.env->err_sys("unix: no connection to %s", dom.env->name_of(peer));
        if (fd >= 0) close(fd);
        return rc;
    }
    watch(s->out, EPOLL_CTL_MOD, 0); /* not connected it is ready for everything, and nothing */
    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
    s->name = c.name;
    int rc = greet(s);
    if (rc && rc != TERN_AGAIN) {
        end_close(s->out);
        return rc;
    }
    s->opened = true;
    *ep = (struct tp_ep){.ops = &unix_ops, .am_short = unix_am_short, .priv = s, .max_short = MOST, .caps = TP_CAP_KEEP | TP_CAP_BULK};
    return 0;
}

static void side_free(struct side *s)
{
    forget_bulks(s);
    end_close(s->out);
    end_close(s->in);
    list_remove(&s->link);
    free(s);
}

static void unix_ep_close(struct tp_dom *d, struct tp_ep *ep)
{
    struct side *s = ep->priv;
    (void)d;
    if (s->said_last) {
        side_free(s);
    } else {
        forget_bulks(s);
        say_farewell(s->greeted ? s->out : NULL);
        end_close(s->out);
    }
    ep->ops = NULL;
}

/* What a handler that we call may do: progress closes the connections. */
static void unix_sever(struct tp_ep *ep)
{
    ((struct side *)ep->priv)->severed = true;
    dom.severed = true;
}

/* ---- receiving ---- */

/* The connection is over. */
static void end_of(struct end *e, bool farewell)
{
    struct side *s = e->side;
    if (s) {
        s->farewell = farewell && (!s->ended || s->farewell);
        s->ended = true;
    }
    end_close(e);
}

/* Whoever has named itself is let in if it is known: 1. 0: not yet; -1: it is not wanted. */
static int admit(struct end *e)
{
    struct peer *p = dom.env->peer_of(&e->name);
    struct side *s = p ? side_of(p) : NULL;
    if (!p) return watch(e, EPOLL_CTL_MOD, 0) ? 0 : -1;
    if (!s || s->in || s->reported || !watch(e, EPOLL_CTL_MOD, EPOLLIN)) return -1;
    list_remove(&e->link);
    e->side = s;
    s->in = e;
    return 1;
}

/* Who has connected? As admit. */
static int introduce(struct end *e, const struct head *h, const char *text)
{
    if (h->id != AM_PAD || h->h0 != NOTE_HELLO || h->bytes != sizeof e->name) return -1;
    memcpy(&e->name, text, sizeof e->name);
    e->named = true;
    return admit(e);
}

/* Data of a transfer: the next bytes, at their place. */
static bool take_data(struct bulk *b, uint64_t at, const char *data, size_t n)
{
    if (!b || !b->told || at != b->moved || !n || n > b->n - b->moved) return false;
    memcpy(b->at + at, data, n);
    b->moved += n;
    if (b->moved == b->n) end_bulk(b, 0);
    return true;
}

/* A packet of a bulk transfer; false: it cannot be. */
static bool take_bulk(struct side *s, const struct head *h, const char *data)
{
    struct bulk *b = find_bulk(h->id == BULK_GO ? &s->bulk_out : &s->bulk_in, h->h0);
    if (h->id == BULK_DATA) return take_data(b, h->h1, data, h->bytes);
    if (h->id == BULK_READY && !b) b = new_bulk(&s->bulk_in, h->h0);
    if (!b || b->ready) return false;
    b->ready = true;
    if (h->id == BULK_READY) b->announced = h->h1;
    else b->rc = h->h1 ? TERN_ERR_PEER : 0;
    return true;
}

/* One packet: 1 if it was a message, 0 if it was not, -1 if there is none any more. */
static int take(struct end *e)
{
    ssize_t k = recv(e->fd, dom.packet, sizeof(struct head) + MOST, MSG_DONTWAIT | MSG_TRUNC);
    struct head h;
    if (k < 0 && (errno == EAGAIN || errno == EINTR)) return -1;
    if (k < 0 && errno == ECONNRESET && !e->reset) {
        e->reset = true;
        return 0;
    }
    if (k > 0) memcpy(&h, dom.packet, sizeof h);
    bool whole = k >= (ssize_t)sizeof h && h.bytes <= MOST && (size_t)k == sizeof h + h.bytes;
    if (whole && !e->side && introduce(e, &h, dom.packet + sizeof h) >= 0) return 0;
    bool farewell = whole && h.id == AM_PAD && h.h0 == NOTE_FAREWELL;
    bool bulk = whole && e->side && e->side->in == e && h.id >= BULK_READY && h.id < BULK_IDS;
    if (bulk && take_bulk(e->side, &h, dom.packet + sizeof h)) return 1;
    if (!whole || !e->side || farewell || e->side->in != e || h.id >= TP_AM_MAX || !dom.env->handlers[h.id]) {
        end_of(e, farewell);
        return -1;
    }
    dom.env->handlers[h.id](e->side->peer, h.h0, h.h1, dom.packet + sizeof h, h.bytes);
    if (dom.kept) {
        dom.packet = dom.spare;
        dom.spare = NULL;
        dom.kept = false;
    }
    return 1;
}

static void end_keep(struct tp_kept *k) { free(k->held); }

/* The packet is the handler's, and the next one is read into another. */
static int unix_keep(struct tp_dom *d, const void *data, size_t n, enum tp_keep_time time, struct tp_kept *k)
{
    uintptr_t at = (uintptr_t)data, packet = (uintptr_t)dom.packet;
    (void)d, (void)time;
    if (dom.kept || at < packet || at + n > packet + sizeof(struct head) + MOST) return TERN_AGAIN;
    if (!dom.spare) dom.spare = malloc(sizeof(struct head) + MOST);
    if (!dom.spare) return TERN_AGAIN;
    dom.kept = true;
    k->held = dom.packet;
    k->end = end_keep;
    return 0;
}

static int take_all(struct end *e, int budget)
{
    int n = 0, k = 0;
    while (e->fd >= 0 && n < budget && !(e->side ? e->side->severed : e->named) && (k = take(e)) >= 0) n += k;
    return n;
}

/* A job has become known: those that waited for it come in. */
static void admit_strangers(void)
{
    dom.news = dom.env->news();
    list_each(l, next, &dom.strangers) {
        struct end *e = container_of(l, struct end, link);
        if (e->named && admit(e) < 0) end_close(e);
    }
}

static void accept_all(void)
{
    int fd;
    while ((fd = accept4(dom.listener.fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
        struct ucred who = {.uid = (uid_t)-1};
        socklen_t n = sizeof who;
        bool ours = !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &n) && who.uid == geteuid();
        struct end *e = ours ? end_new(fd, NULL) : NULL;
        if (e) list_push(&dom.strangers, &e->link);
        else close(fd);
    }
}

static int event(struct end *e, uint32_t events, int budget)
{
    if (e->fd < 0) return 0; /* closed by an event before this one */
    if (e == &dom.listener) {
        accept_all();
        return 0;
    }
    if (e->side && e == e->side->out && !e->side->greeted) {
        greet(e->side); /* what it says of a failure, the next send says too */
        return 0;
    }
    if (e->named && !e->side) { /* not watched: it is over, and nobody knows whose it was */
        end_close(e);
        return 0;
    }
    if (events & EPOLLOUT && e->wants_room) {
        e->wants_room = false;
        watch(e, EPOLL_CTL_MOD, EPOLLIN);
    }
    return events & ~(uint32_t)EPOLLOUT ? take_all(e, budget > 0 ? budget : 1) : 0;
}

/* Reports peers that have ended: when their own connection, which may not have been accepted yet, has ended too. */
static int report(int budget)
{
    int n = 0;
    dom.severed = false;
    list_each(l, next, &dom.sides) {
        struct side *s = container_of(l, struct side, link);
        if (s->severed) {
            end_close(s->out);
            end_close(s->in);
            end_bulks(s);
        }
        if (!s->ended || s->reported || s->severed) continue;
        accept_all();
        list_each(m, next_m, &dom.strangers) n += take_all(container_of(m, struct end, link), 1);
        if (s->in) n += take_all(s->in, budget);
        if (s->in) continue;
        say_farewell(s->out);
        s->reported = true;
        int code = gone(s);
        if (s->said_last) {} /* it is known */
        else if (s->farewell) dom.env->left(s->peer);
        else dom.env->lost(s->peer, code);
        end_close(s->out);
        end_bulks(s);
    }
    return n;
}

static int unix_progress(struct tp_dom *d, int budget)
{
    struct epoll_event e[32];
    int n = 0, k = epoll_wait(dom.epoll, e, (int)ARRAY_LEN(e), 0);
    (void)d;
    if (dom.news != dom.env->news()) admit_strangers();
    for (int i = 0; i < k; i++) n += event(e[i].data.ptr, e[i].events, budget - n);
    list_each(l, next, &dom.sides) n += push_bulks(container_of(l, struct side, link));
    if (k > 0 || dom.severed) n += report(budget);
    bury();
    return n;
}

/* Both sides say farewell, and whoever has said its own and has seen the end of the other is done. Without a connection
 * either way no word was said. */
static int unix_peer_close(struct tp_dom *d, struct peer *p)
{
    struct side *s = find_side(p);
    (void)d;
    if (!s) return 0;
    if (!s->said_last) say_farewell(s->out && s->greeted ? s->out : s->in);
    s->said_last = true;
    if (!s->reported && s->out && !s->greeted) end_close(s->out);
    if (!s->reported && (s->out || s->in)) return TERN_AGAIN;
    if (!s->opened) side_free(s);
    return 0;
}

/* ---- sleeping ---- */

static int unix_wait_fd(struct tp_dom *d)
{
    (void)d;
    return dom.epoll;
}

/* epoll tells of messages and of room, but not of a place in a queue of connections. */
static bool unix_idle(struct tp_dom *d, bool want_room)
{
    (void)d;
    list_each(l, next, &dom.sides) {
        const struct side *s = container_of(l, struct side, link);
        if (bulks_wait(s) || (want_room && s->out && !s->greeted)) return false;
    }
    return !dom.severed && dom.news == dom.env->news();
}

/* ---- life ---- */

static void unix_close(struct tp_dom *d)
{
    (void)d;
    if (dom.env->variable("TERN_UNIX_REPORT")) fprintf(stderr, "unix: %llu bulk transfers sent\n", (unsigned long long)dom.bulks);
    for (struct link *l; (l = list_pop(&dom.sides));) {
        struct side *s = container_of(l, struct side, link);
        say_farewell(s->in);
        side_free(s);
    }
    list_each(l, next, &dom.strangers) end_close(container_of(l, struct end, link));
    bury();
    if (dom.listener.fd >= 0) close(dom.listener.fd);
    if (dom.epoll >= 0) close(dom.epoll);
    free(dom.packet);
    free(dom.spare);
}

/* Where abstract names are the same: the machine's network name space. */
static uint64_t place(void)
{
    struct stat st;
    return stat("/proc/self/ns/net", &st) ? 0 : (uint64_t)st.st_ino;
}

static int unix_open(struct tp_dom **d, const struct tp_env *env, const char *domain)
{
    (void)domain;
    struct sockaddr_un a;
    dom.env = env;
    dom.listener.fd = dom.epoll = -1;
    list_init(&dom.sides);
    list_init(&dom.strangers);
    list_init(&dom.dead);
    dom.card = (struct card){.magic = MAGIC, .place = place()};
    if (!dom.card.place) return env->err_set(TERN_ERR_NOT_FOUND, "unix: /proc does not tell the network name space");
    if (getrandom(&dom.card.name, sizeof dom.card.name, 0) != sizeof dom.card.name) return env->err_sys("unix: no random number");
    dom.packet = malloc(sizeof(struct head) + MOST);
    dom.epoll = epoll_create1(EPOLL_CLOEXEC);
    dom.listener.fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    socklen_t n = address(&a, dom.card.name);
    if (!dom.packet || dom.epoll < 0 || dom.listener.fd < 0 || bind(dom.listener.fd, (struct sockaddr *)&a, n) ||
        listen(dom.listener.fd, LISTEN_QUEUE) || !watch(&dom.listener, EPOLL_CTL_ADD, EPOLLIN)) {
        int rc = env->err_sys("unix: cannot be opened");
        unix_close(NULL);
        return rc;
    }
    *d = (struct tp_dom *)(void *)&dom;
    return 0;
}

static int unix_card(struct tp_dom *d, void *buf, size_t cap)
{
    (void)d;
    if (cap < sizeof dom.card) return dom.env->err_set(TERN_ERR_INTERN, "no room for the card of unix");
    memcpy(buf, &dom.card, sizeof dom.card);
    return (int)sizeof dom.card;
}

static bool unix_reach(struct tp_dom *d, const void *card, size_t n)
{
    struct card c;
    (void)d;
    if (n != sizeof c) return false;
    memcpy(&c, card, sizeof c);
    return c.magic == MAGIC && c.place == dom.card.place;
}

static const struct tp_ops unix_ops = {
    .name = "unix",
    .cost = {.locality = TP_NODE, .latency_ns = 5000, .send_ns = 1500, .poll_ns = 400, .mb_per_s = 1500, .eager_max = 4096,
             .bulk_min = 8192},
    .open = unix_open,
    .close = unix_close,
    .card = unix_card,
    .reach = unix_reach,
    .ep_open = unix_ep_open,
    .ep_close = unix_ep_close,
    .peer_close = unix_peer_close,
    .am_short = unix_am_short,
    .bulk_send = unix_bulk_send,
    .bulk_recv = unix_bulk_recv,
    .sever = unix_sever,
    .keep = unix_keep,
    .progress = unix_progress,
    .idle = unix_idle,
    .wait_fd = unix_wait_fd,
};

extern const struct tp_module tern_transport;
__attribute__((visibility("default"))) const struct tp_module tern_transport = {
    TP_CONTRACT, sizeof(struct tp_ops), sizeof(struct tp_env), &unix_ops};
