/* endpoints.c - see endpoints.h. */
#include "dpm/endpoints.h"
#include "base/clock.h"
#include "base/err.h"
#include "proc/module.h"
#include "pt2pt/api.h"
#include "pt2pt/lane.h"
#include "pt2pt/lanes.h"
#include "transport/dgram/dgram.h"
#include "transport/dgram/faults.h"
#include "transport/dgram/udp.h"
#include "transport/net_addr.h"

#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define CALLERS_MOST 64   /* that wait at an endpoint, each with its first message; more are held back (dgram.h) ... */
#define CALLER_BYTES ((size_t)64 << 20) /* ... also those whose messages are more than this in all */
#define MESSAGES_MOST 4   /* of one partner that nobody has received yet */
#define LOOK_NS 1000      /* what a look at the epoll descriptor costs that finds nothing */
#define NEVER UINT64_MAX

/* A message, sealed: one that has come, or that is under way. */
struct queued {
    struct link link;
    struct partner *partner;
    struct dgram_message message;
    void *bytes;
};

struct partner {
    struct link link; /* in endpoint.partners */
    struct endpoint *endpoint;
    struct dgram_peer *peer;
    struct link inbox;  /* struct queued: nobody has asked for them yet */
    unsigned waiting;   /* in `inbox` */
    unsigned under_way; /* of ours */
    int code;           /* it is gone; 0: it is not */
    char words[256];
    bool given;                                /* to a thread */
    bool failed;                               /* something of ours did not come */
    uint64_t sent, received;                   /* messages, each way */
    uint8_t mine[CRYPTO_KEY], its[CRYPTO_KEY]; /* the keys that messages are sealed with */
};

struct endpoint {
    struct link link; /* in self.endpoints */
    struct dgram *dgram;
    struct dgram_wire *wire;
    struct link partners;
    unsigned callers; /* partners that no thread has been given */
    size_t caller_bytes; /* of their messages */
    struct port port;
    int code; /* nobody will call any more, and why; 0: somebody may */
    char words[256];
    int until_fd; /* it is given up when this can be read; -1: none */
};

static int poll_endpoints(struct step *);
static uint64_t next_time(const struct step *);

static const struct step_ops ops = {
    .name = "datagrams of connecting groups", .poll = poll_endpoints, .poll_ns = LOOK_NS, .due = next_time};

/* Under the lock of the first lane, but for what has a lock of its own. */
static struct {
    const struct crypto *crypto;
    struct link endpoints;
    struct step step;
    uint64_t deadline; /* of a thread that waits, NEVER: none has one */
    unsigned awaited;  /* descriptors that threads wait for */
    unsigned users;    /* endpoints, counted under `opening` */
    int look_fd;       /* a descriptor that `look` is for; -1: none */
    void (*look)(void);
} self = {.endpoints = LIST_INIT(self.endpoints), .step = {.fd = -1}, .deadline = NEVER, .look_fd = -1};
static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER;

const struct crypto *endpoints_crypto(void)
{
    static pthread_mutex_t loading = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&loading);
    if (!self.crypto) {
        const struct crypto *c = module_load(CRYPTO_MODULE, CRYPTO_SYMBOL);
        if (c && !c->start()) {
            err_set(TERN_ERR_SYSTEM, "libsodium cannot be used here");
            c = NULL;
        }
        self.crypto = c;
    }
    pthread_mutex_unlock(&loading);
    return self.crypto;
}

/* ---- the step ---- */

static int poll_endpoints(struct step *s)
{
    uint64_t now = clock_ns();
    int n = 0;
    (void)s;
    if (now >= self.deadline) {
        self.deadline = NEVER;
        lane_changed(lanes_first());
    }
    if (self.awaited) lane_changed(lanes_first()); /* they look themselves */
    if (self.look) self.look();
    list_each (at, next, &self.endpoints) n += dgram_progress(container_of(at, struct endpoint, link)->dgram, now);
    return n;
}

static uint64_t next_time(const struct step *s)
{
    uint64_t first = self.deadline;
    (void)s;
    list_each (at, next, &self.endpoints) {
        uint64_t due = dgram_next_timeout(container_of(at, struct endpoint, link)->dgram);
        first = due < first ? due : first;
    }
    return first;
}

/* One endpoint more, or less. The step is opened and closed by threads that are outside of the layer below. */
static int add_user(void)
{
    int rc = 0;
    pthread_mutex_lock(&opening);
    if (!self.users) {
        self.step.ops = &ops;
        self.step.fd = epoll_create1(EPOLL_CLOEXEC);
        rc = self.step.fd < 0 ? err_sys("no descriptor to listen for datagrams") : pt_progress_open(&self.step);
        if (rc && self.step.fd >= 0) close(self.step.fd);
    }
    self.users += !rc;
    pthread_mutex_unlock(&opening);
    return rc;
}

static void drop_user(void)
{
    pthread_mutex_lock(&opening);
    if (!--self.users) {
        pt_progress_close(&self.step);
        close(self.step.fd);
        self.step.fd = -1;
    }
    pthread_mutex_unlock(&opening);
}

/* ---- upcalls of the datagram layer ---- */

/* The key that one endpoint seals its messages to the other with: of the endpoint's key, for these two alone. */
static void make_seal(const struct endpoint *e, uint64_t from, uint64_t to, uint8_t key[CRYPTO_KEY])
{
    uint64_t way[2] = {htobe64(from), htobe64(to)};
    self.crypto->tag(key, way, sizeof way, e->port.key);
}

static struct partner *new_partner(struct endpoint *e, struct dgram_peer *peer)
{
    struct partner *p = calloc(1, sizeof *p);
    uint64_t own = dgram_id(e->dgram), other = dgram_peer_id(peer);
    if (!p) return NULL;
    p->endpoint = e;
    p->peer = peer;
    make_seal(e, own, other, p->mine);
    make_seal(e, other, own, p->its);
    list_init(&p->inbox);
    list_push(&e->partners, &p->link);
    dgram_peer_set_tag(peer, p);
    return p;
}

/* One that calls, with a first message of n bytes; until a thread is given it, or it has failed. */
static struct partner *new_caller(struct endpoint *e, struct dgram_peer *peer, size_t n)
{
    struct partner *p = new_partner(e, peer);
    if (!p) return NULL;
    e->callers++;
    e->caller_bytes += n;
    return p;
}

static void caller_goes(const struct partner *p)
{
    p->endpoint->callers--;
    p->endpoint->caller_bytes -= container_of(p->inbox.next, struct queued, link)->message.n;
}

static struct queued *new_queued(const void *bytes, size_t n)
{
    struct queued *s = malloc(sizeof *s);
    void *copy = malloc(n + CRYPTO_SEAL);
    if (!s || !copy) {
        free(s);
        free(copy);
        return NULL;
    }
    memcpy(copy, bytes, n);
    *s = (struct queued){.bytes = copy, .message = {.data = copy, .n = n}};
    return s;
}

static void free_queued(struct queued *s)
{
    if (!s) return;
    free(s->bytes);
    free(s);
}

static void free_partner(struct partner *p)
{
    for (struct link *l; (l = list_pop(&p->inbox));) free_queued(container_of(l, struct queued, link));
    list_remove(&p->link);
    explicit_bzero(p, sizeof *p);
    free(p);
}

/* A message of one that no thread has been given is its first one. */
static bool has_room(const struct endpoint *e, const struct partner *p, size_t n)
{
    if (p && p->given) return p->waiting < MESSAGES_MOST;
    return !p && e->callers < CALLERS_MOST && (!e->callers || e->caller_bytes + n <= CALLER_BYTES);
}

static bool deliver(void *arg, struct dgram_peer *peer, const void *data, size_t n)
{
    struct endpoint *e = arg;
    struct partner *p = dgram_peer_tag(peer);
    if (!has_room(e, p, n)) return false;
    struct queued *s = new_queued(data, n);
    if (s && !p) p = new_caller(e, peer, n);
    if (!s || !p) {
        free_queued(s);
        return false;
    }
    s->partner = p;
    list_push(&p->inbox, &s->link);
    p->waiting++;
    lane_changed(lanes_first());
    return true;
}

static void failed(void *arg, struct dgram_peer *peer, int code)
{
    struct partner *p = dgram_peer_tag(peer);
    (void)arg;
    if (p && !p->given) { /* nobody has asked for it */
        caller_goes(p);
        free_partner(p);
        p = NULL;
    }
    if (!p) {
        dgram_forget(peer);
        return;
    }
    p->code = code;
    snprintf(p->words, sizeof p->words, "%s", err_words());
    lane_changed(lanes_first());
}

static void done(struct dgram_message *m, int rc)
{
    struct queued *s = container_of(m, struct queued, message);
    struct partner *p = s->partner;
    p->under_way--;
    p->failed |= rc != 0;
    lane_changed(lanes_first());
    free_queued(s);
}

/* ---- endpoints ---- */

/* The addresses of this host that others may call at: of IPv4 if there are any, as they need no more to be set up. */
static int own_addresses(struct net_ifs *v)
{
    int rc = net_ifs(v, false);
    unsigned n = 0;
    for (unsigned i = 0; i < v->n && !rc; i++)
        if (v->v[i].addr.family == 4) v->v[n++] = v->v[i];
    if (n) v->n = n;
    return rc;
}

static struct dgram_addr to_dgram(const struct net_addr *a, const uint8_t port[2])
{
    struct dgram_addr d = {.n = (uint8_t)(3 + net_addr_bytes(a)), .bytes = {a->family, port[0], port[1]}};
    memcpy(d.bytes + 3, a->bytes, net_addr_bytes(a));
    return d;
}

static struct net_addr to_net(const struct dgram_addr *d)
{
    struct net_addr a = {.family = d->bytes[0], .port = (uint16_t)(d->bytes[1] << 8 | d->bytes[2])};
    if (d->n == 3 + net_addr_bytes(&a)) memcpy(a.bytes, d->bytes + 3, net_addr_bytes(&a));
    return a;
}

uint64_t endpoints_patience(void)
{
    struct dgram_params p;
    dgram_params_init(&p);
    return p.patience;
}

static int open_dgram(struct endpoint *e, const struct net_addr *own, bool wide, uint64_t patience)
{
    struct dgram_params p;
    char address[NET_IP];
    uint16_t low, high;
    int rc = net_ports(&low, &high);
    if (rc) return rc;
    net_addr_ip(own, address);
    rc = (wide ? udp_open_wide : udp_open)(address, low, high, 0, &e->wire);
    if (rc) return rc;
    dgram_params_init(&p);
    p.wire = e->wire;
    p.crypto = self.crypto;
    p.secret = e->port.key;
    p.arg = e;
    p.deliver = deliver;
    p.failed = failed;
    if (patience && patience < p.patience) p.patience = patience;
    return dgram_open(&e->dgram, &p);
}

static void enter(struct endpoint *e)
{
    lane_enter(lanes_first());
    list_push(&self.endpoints, &e->link);
    lane_leave(lanes_first());
}

/* `key`: NULL: a random one. `wide`: what is sent to any address of this host comes in, not only to that one. */
static int open_endpoint(const uint8_t key[CRYPTO_KEY], const struct net_addr *own, bool wide, uint64_t patience, struct endpoint **out)
{
    struct endpoint *e = calloc(1, sizeof *e);
    if (!e) return err_set(TERN_ERR_NOMEM, "no memory for a port");
    list_init(&e->partners);
    e->until_fd = -1;
    if (key) memcpy(e->port.key, key, CRYPTO_KEY);
    else self.crypto->random(e->port.key, CRYPTO_KEY);
    int rc = open_dgram(e, own, wide, patience);
    if (rc) {
        free(e);
        return rc;
    }
    e->port.card_bytes = dgram_card(e->dgram, e->port.card);
    e->wire = dgram_wire_of(e->dgram);
    rc = add_user();
    if (!rc && epoll_ctl(self.step.fd, EPOLL_CTL_ADD, e->wire->fd, &(struct epoll_event){.events = EPOLLIN})) {
        rc = err_sys("datagrams cannot be listened for");
        drop_user();
    }
    if (rc) {
        dgram_close(e->dgram);
        free(e);
        return rc;
    }
    enter(e);
    *out = e;
    return 0;
}

int endpoint_open(struct endpoint **out)
{
    struct net_ifs all;
    if (!endpoints_crypto()) return err_code();
    int rc = own_addresses(&all);
    if (!rc) rc = open_endpoint(NULL, &all.v[0].addr, all.n > 1, 0, out);
    for (unsigned i = 1; !rc && i < all.n && i <= PORT_MORE; i++)
        (*out)->port.more[(*out)->port.mores++] = to_dgram(&all.v[i].addr, (*out)->wire->own.bytes + 1);
    return rc;
}

void endpoint_close(struct endpoint *e)
{
    lane_enter(lanes_first());
    dgram_progress(e->dgram, clock_ns()); /* what is still to be acknowledged */
    list_remove(&e->link);
    epoll_ctl(self.step.fd, EPOLL_CTL_DEL, e->wire->fd, NULL); /* a child without exec may have it open still */
    dgram_close(e->dgram);
    list_each (at, next, &e->partners) free_partner(container_of(at, struct partner, link));
    lane_leave(lanes_first());
    explicit_bzero(e, sizeof *e);
    free(e);
    drop_user();
}

int endpoints_listen(int fd, void (*look)(void))
{
    int rc = 0;
    lane_enter(lanes_first());
    if (self.look_fd >= 0) epoll_ctl(self.step.fd, EPOLL_CTL_DEL, self.look_fd, NULL);
    if (fd >= 0 && epoll_ctl(self.step.fd, EPOLL_CTL_ADD, fd, &(struct epoll_event){.events = EPOLLIN}))
        rc = err_sys("what becomes of other jobs cannot be listened for");
    self.look_fd = rc ? -1 : fd;
    self.look = rc ? NULL : look;
    lane_leave(lanes_first());
    return rc;
}

struct fd_wait {
    struct pollfd poll;
    struct partner *partner;
    uint64_t until;
    bool in_vain; /* nothing has come until then */
};

static bool is_ready(void *arg)
{
    struct fd_wait *w = arg;
    const struct partner *p = w->partner;
    if (w->until < self.deadline) self.deadline = w->until;
    return (p && (p->code || !list_empty(&p->inbox))) || poll(&w->poll, 1, 0) > 0 || clock_ns() >= w->until;
}

static int how_it_ended(struct fd_wait *w)
{
    const struct partner *p = w->partner;
    if (poll(&w->poll, 1, 0) > 0) return 0;
    if (p && !list_empty(&p->inbox)) return TERN_AGAIN;
    if (p && p->code) return err_set(p->code, "%s", p->words);
    w->in_vain = true;
    return err_set(TERN_ERR_PEER, "nothing has come from the other process for too long (TERN_DGRAM_TIMEOUT)");
}

static int await(struct fd_wait *w)
{
    struct partner *p = w->partner;
    lane_enter(lanes_first());
    self.awaited++;
    if (p) dgram_watch(p->peer, true);
    lane_wait(lanes_first(), is_ready, w, NULL);
    if (p) dgram_watch(p->peer, false);
    self.awaited--;
    int rc = how_it_ended(w);
    lane_leave(lanes_first());
    return rc;
}

int endpoints_await_fd(int fd, short events, struct partner *p, uint64_t until)
{
    struct fd_wait w = {{.fd = fd, .events = events}, p, until, false};
    struct epoll_event e = {.events = events & POLLOUT ? EPOLLOUT : EPOLLIN};
    if (epoll_ctl(self.step.fd, EPOLL_CTL_ADD, fd, &e)) return err_sys("descriptor %d cannot be waited for", fd);
    int rc = await(&w);
    epoll_ctl(self.step.fd, EPOLL_CTL_DEL, fd, NULL);
    return rc;
}

int endpoints_pause(struct partner *p, uint64_t ns)
{
    struct fd_wait w = {{.fd = -1}, p, clock_ns() + ns, false};
    int rc = await(&w);
    return w.in_vain ? 0 : rc;
}

static int broken(int fd)
{
    if (errno) return err_sys("the socket to the other process (descriptor %d) is broken", fd);
    return err_set(TERN_ERR_PEER, "the other process has closed the socket (descriptor %d) before all had come", fd);
}

int endpoints_move(int fd, struct partner *p, void *bytes, size_t n, bool out)
{
    for (size_t done = 0; done < n;) {
        char *at = (char *)bytes + done;
        errno = 0;
        ssize_t k = out ? send(fd, at, n - done, MSG_NOSIGNAL | MSG_DONTWAIT) : recv(fd, at, n - done, MSG_DONTWAIT);
        if (k > 0) {
            done += (size_t)k;
        } else if (k < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            int rc = endpoints_await_fd(fd, out ? POLLOUT : POLLIN, p, p ? clock_ns() + endpoints_patience() : NEVER);
            if (rc) return rc;
        } else if (errno != EINTR) {
            return broken(fd);
        }
    }
    return 0;
}

void endpoint_name(const struct endpoint *e, char name[PORT_NAME]) { port_write(&e->port, self.crypto, name); }

void endpoints_close(void)
{
    while (!list_empty(&self.endpoints)) endpoint_close(container_of(self.endpoints.next, struct endpoint, link));
}

/* ---- partners ---- */

/* The i-th address of a port. */
static bool address_at(const struct port *p, unsigned i, struct net_addr *a)
{
    uint8_t bytes[DGRAM_CARD];
    struct dgram_card card;
    size_t n = port_at(p, i, bytes);
    if (!n || !dgram_card_read(bytes, n, &card) || card.kind != DGRAM_UDP) return false;
    *a = to_net(&card.addr);
    return a->family == 4 || a->family == 6;
}

/* 0: of a network that this host is in, 1: of another one, 2: this host has that address itself. */
static int farness(const struct net_addr *a, const struct net_ifs *own)
{
    int best = 1;
    for (unsigned i = 0; i < own->n; i++) {
        const struct net_addr *o = &own->v[i].addr;
        if (net_addr_same(o, a)) return 2;
        if (o->family == a->family && net_addr_agree(o->bytes, a->bytes, o->prefix)) best = 0;
    }
    return best;
}

unsigned endpoint_order(const struct port *p, uint8_t order[1 + PORT_MORE])
{
    struct net_ifs own = {0};
    unsigned n = 0;
    if (!p->mores || net_ifs(&own, false)) own.n = 0;
    for (int far = 0; far < 3; far++)
        for (unsigned i = 0; i <= p->mores; i++) {
            struct net_addr a;
            if (!address_at(p, i, &a)) a = (struct net_addr){.family = 4};
            if (farness(&a, &own) == far) order[n++] = (uint8_t)i;
        }
    return n;
}

static int call_endpoint(struct endpoint *e, const struct port *port, unsigned i, struct partner **out)
{
    struct dgram_peer *peer;
    uint8_t card[DGRAM_CARD];
    size_t n = port_at(port, i, card);
    lane_enter(lanes_first());
    int rc = dgram_peer_open(e->dgram, card, n, &peer);
    if (!rc && !(*out = new_partner(e, peer))) rc = err_set(TERN_ERR_NOMEM, "no memory to connect to a port");
    if (!rc) (*out)->given = true;
    lane_leave(lanes_first());
    return rc;
}

int endpoint_call(const struct port *port, unsigned i, uint64_t patience, struct endpoint **e, struct partner **out)
{
    struct net_addr to, own;
    if (!endpoints_crypto()) return err_code();
    if (!address_at(port, i, &to)) return err_set(TERN_ERR_PORT, "the port has no address that this process can call at");
    int rc = net_addr_towards(&to, &own);
    if (!rc) rc = open_endpoint(port->key, &own, false, patience, e);
    if (rc || !(rc = call_endpoint(*e, port, i, out))) return rc;
    err_keep(port, rc);
    endpoint_close(*e);
    err_recall(port, rc);
    return rc;
}

int partner_own_address(const struct partner *p, struct net_addr *own)
{
    struct net_addr to = to_net(dgram_peer_addr(p->peer));
    return net_addr_towards(&to, own);
}

struct call_wait {
    struct endpoint *endpoint;
    struct partner *came;
};

static void close_to_callers(struct endpoint *e, int code, const char *words)
{
    e->code = code;
    snprintf(e->words, sizeof e->words, "%s", words);
}

static bool can_be_read(int fd) { return fd >= 0 && poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, 0) > 0; }

static bool has_called(void *arg)
{
    struct call_wait *a = arg;
    if (a->endpoint->code) return true; /* those that have called by now would be left alone behind their first message */
    list_each (at, next, &a->endpoint->partners) {
        struct partner *p = container_of(at, struct partner, link);
        if (p->given || list_empty(&p->inbox)) continue;
        caller_goes(p);
        p->given = true;
        a->came = p;
        return true;
    }
    if (can_be_read(a->endpoint->until_fd))
        close_to_callers(a->endpoint, TERN_ERR_PEER,
                         "no call of the other process has succeeded, and it calls no more: it has ended, or has the reason");
    return a->endpoint->code;
}

int endpoint_await(struct endpoint *e, struct partner **out)
{
    struct call_wait a = {.endpoint = e};
    bool watches = e->until_fd >= 0;
    *out = NULL;
    if (watches && epoll_ctl(self.step.fd, EPOLL_CTL_ADD, e->until_fd, &(struct epoll_event){.events = EPOLLIN}))
        return err_sys("descriptor %d cannot be waited for", e->until_fd);
    lane_enter(lanes_first());
    self.awaited += watches;
    lane_wait(lanes_first(), has_called, &a, NULL);
    self.awaited -= watches;
    lane_leave(lanes_first());
    if (watches) epoll_ctl(self.step.fd, EPOLL_CTL_DEL, e->until_fd, NULL);
    *out = a.came;
    return a.came ? 0 : err_set(e->code, "%s", e->words);
}

void endpoint_give_up(struct endpoint *e, int code, const char *words)
{
    if (e->code) return;
    close_to_callers(e, code, words);
    lane_changed(lanes_first());
}

void endpoint_give_up_at(struct endpoint *e, int fd) { e->until_fd = fd; }

int partner_send(struct partner *p, const void *bytes, size_t n)
{
    struct queued *s = new_queued(bytes, n);
    if (!s) return err_set(TERN_ERR_NOMEM, "no memory for a message to another group (%zu bytes)", n);
    s->partner = p;
    self.crypto->seal(s->bytes, s->bytes, n, (uint32_t)n, p->sent, p->mine);
    s->message.n = n + CRYPTO_SEAL;
    s->message.done = done;
    lane_enter(lanes_first());
    int rc = p->code ? err_set(p->code, "%s", p->words) : dgram_send(p->peer, &s->message);
    if (!rc) {
        p->sent++;
        p->under_way++;
        dgram_progress(p->endpoint->dgram, clock_ns());
    }
    lane_leave(lanes_first());
    if (rc) free_queued(s);
    return rc;
}

struct receiving {
    struct partner *partner;
    uint64_t until; /* NEVER: without a time limit */
};

static bool has_message(void *arg)
{
    const struct receiving *h = arg;
    const struct partner *p = h->partner;
    if (h->until < self.deadline) self.deadline = h->until;
    return p->code || p->endpoint->code || !list_empty(&p->inbox) || (h->until != NEVER && clock_ns() >= h->until);
}

/* The lane is held: what has not come by now is not acknowledged either. */
static int why_nothing(struct partner *p)
{
    if (p->code) return err_set(p->code, "%s", p->words);
    dgram_deafen(p->peer);
    if (p->endpoint->code) return err_set(p->endpoint->code, "%s", p->endpoint->words);
    return err_set(TERN_AGAIN, "the process that calls has been silent for too long (TERN_DGRAM_TIMEOUT)");
}

static int unseal(struct partner *p, struct queued *s)
{
    size_t n = s->message.n;
    if (n >= CRYPTO_SEAL && self.crypto->unseal(s->bytes, s->bytes, n - CRYPTO_SEAL, (uint32_t)(n - CRYPTO_SEAL), p->received++, p->its))
        return 0;
    return err_set(TERN_ERR_SYSTEM, "a message of another group cannot be unsealed");
}

int partner_recv(struct partner *p, void **bytes_p, size_t *n_p) { return partner_recv_for(p, NEVER, bytes_p, n_p); }

int partner_recv_for(struct partner *p, uint64_t ns, void **bytes_p, size_t *n_p)
{
    struct receiving h = {p, ns == NEVER ? NEVER : clock_ns() + ns};
    lane_enter(lanes_first());
    dgram_watch(p->peer, true); /* it may end before it has sent anything */
    lane_wait(lanes_first(), has_message, &h, NULL);
    dgram_watch(p->peer, false);
    /* It is too late. If this process was stopped, something may have come all the same. */
    if (list_empty(&p->inbox) && !p->code) dgram_progress(p->endpoint->dgram, clock_ns());
    struct link *l = list_pop(&p->inbox);
    if (l) p->waiting--;
    int rc = l ? 0 : why_nothing(p);
    lane_leave(lanes_first());
    if (rc) return rc;
    struct queued *s = container_of(l, struct queued, link);
    rc = unseal(p, s);
    if (!rc) {
        *n_p = s->message.n - CRYPTO_SEAL;
        *bytes_p = s->bytes;
        s->bytes = NULL;
    }
    free_queued(s);
    return rc;
}

struct settling {
    const struct partner *partner;
    uint64_t until;
};

static bool is_settled(void *arg)
{
    const struct settling *s = arg;
    if (s->until < self.deadline) self.deadline = s->until; /* it is the first one, or the first one is over */
    return !s->partner->under_way || s->partner->code || clock_ns() >= s->until;
}

/* In the lane. */
static bool has_acked(const struct partner *p) { return !p->under_way && !p->failed; }

bool partner_flush(struct partner *p, uint64_t ns)
{
    struct settling s = {p, clock_ns() + ns};
    lane_enter(lanes_first());
    lane_wait(lanes_first(), is_settled, &s, NULL);
    bool acked = has_acked(p);
    lane_leave(lanes_first());
    return acked;
}

void partner_key(const struct partner *p, bool calls, uint8_t key[CRYPTO_KEY])
{
    static const char purpose[] = "a connection for tables";
    self.crypto->tag(key, purpose, sizeof purpose, calls ? p->mine : p->its);
}

bool partner_has_message(struct partner *p)
{
    lane_enter(lanes_first());
    bool there = !list_empty(&p->inbox);
    lane_leave(lanes_first());
    return there;
}

bool partner_has_acked(const struct partner *p)
{
    lane_enter(lanes_first());
    bool acked = has_acked(p);
    lane_leave(lanes_first());
    return acked;
}

void partner_leave(struct partner *p)
{
    lane_enter(lanes_first());
    dgram_forget(p->peer);
    free_partner(p);
    lane_leave(lanes_first());
}
