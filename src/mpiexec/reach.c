/*
 * reach.c - a daemon's connection to its parent (boot.h). The addresses are tried side by side, each begun STAGGER_MS
 * after the one before; the first on which the handshake succeeds is taken: an address may well lead to another machine
 * that has the same one in another network. When none is left, all are tried again, until the time is over.
 */
#include "mpiexec/boot.h"
#include "mpiexec/xalloc.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STAGGER_MS 200
#define AGAIN_MS 100 /* from the end of one round to the next */

struct attempt {
    int at; /* which address */
    int fd;
    struct event *connected;
    struct tree_link *link; /* once connected */
};

static struct {
    struct event_base *base;
    const struct boot *boot;
    void (*done)(struct tree_link *, const char *);
    struct attempt attempts[BOOT_ADDRESSES];
    int begun, failed; /* of this round */
    struct event *next, *over;
    char why[128]; /* the last failure */
} self;

static void after(struct event *timer, int ms)
{
    struct timeval t = {.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000};
    evtimer_add(timer, &t);
}

static void drop(struct attempt *a)
{
    if (a->connected) event_free(a->connected);
    if (a->link)
        link_close(a->link);
    else if (a->fd >= 0)
        close(a->fd);
    *a = (struct attempt){.at = a->at, .fd = -1};
}

static void finish(struct tree_link *l, const char *why)
{
    for (int i = 0; i < self.begun; i++) {
        if (l && self.attempts[i].link == l) self.attempts[i] = (struct attempt){.fd = -1};
        drop(&self.attempts[i]);
    }
    event_free(self.next);
    event_free(self.over);
    self.done(l, why);
}

static void failed(struct attempt *a, const char *why)
{
    const struct sockaddr_storage *to = &self.boot->addresses[a->at];
    char host[64] = "?", port[8] = "?";
    socklen_t n = to->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
    getnameinfo((const void *)to, n, host, sizeof host, port, sizeof port, NI_NUMERICHOST | NI_NUMERICSERV);
    snprintf(self.why, sizeof self.why, "%.50s port %s: %.50s", host, port, why);
    drop(a);
    self.failed++;
    after(self.next, self.failed == self.boot->naddresses ? AGAIN_MS : 0);
}

static bool never_wanted(struct tree_link *l, uint64_t from) { return (void)l, (void)from, false; }
static void on_open(struct tree_link *l) { finish(l, NULL); }
static bool early(struct tree_link *l, const struct link_head *h, const void *p) { return (void)l, (void)h, (void)p, false; }
static void on_lost(struct tree_link *l, const char *why) { failed(link_arg(l), why); }
static const struct link_calls calls = {never_wanted, on_open, early, on_lost};

static void on_connected(evutil_socket_t fd, short what, void *arg)
{
    struct attempt *a = arg;
    int error = 0;
    socklen_t n = sizeof error;
    (void)what;
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &n)) error = errno;
    if (error) {
        failed(a, strerror(error));
        return;
    }
    event_free(a->connected);
    a->connected = NULL;
    a->fd = -1; /* the link's from here on */
    a->link = link_connect(self.base, fd, self.boot->key, (uint64_t)self.boot->vertex, (uint64_t)self.boot->parent,
                           &calls, a);
}

static void begin(struct attempt *a)
{
    const struct sockaddr_storage *to = &self.boot->addresses[a->at];
    socklen_t n = to->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
    a->fd = socket(to->ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (a->fd < 0 || (connect(a->fd, (const void *)to, n) && errno != EINPROGRESS)) {
        failed(a, strerror(errno));
        return;
    }
    a->connected = event_new(self.base, a->fd, EV_WRITE, on_connected, a);
    event_add(a->connected, NULL);
}

static void on_next(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what, (void)arg;
    if (self.failed == self.boot->naddresses) self.begun = self.failed = 0;
    if (self.begun == self.boot->naddresses) return;
    struct attempt *a = &self.attempts[self.begun];
    *a = (struct attempt){.at = self.begun++, .fd = -1};
    after(self.next, STAGGER_MS);
    begin(a);
}

static void on_over(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what, (void)arg;
    finish(NULL, *self.why ? self.why : "no answer");
}

void boot_connect(struct event_base *base, const struct boot *b, void (*done)(struct tree_link *, const char *))
{
    self.base = base;
    self.boot = b;
    self.done = done;
    self.next = evtimer_new(base, on_next, NULL);
    self.over = evtimer_new(base, on_over, NULL);
    after(self.over, b->seconds * 1000);
    on_next(-1, 0, NULL);
}
