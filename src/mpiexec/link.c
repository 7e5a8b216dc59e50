/* link.c - see link.h. A link is freed when none of its calls is on the stack any more. */
#include "mpiexec/link.h"
#include "mpiexec/tree.h"
#include "mpiexec/xalloc.h"

#include <arpa/inet.h>
#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define LOOK_S 2              /* how often the last acknowledgement is looked at */
#define READ_MAX (256 * 1024) /* bytes of one read */

struct tree_link {
    struct bufferevent *be;
    struct event *look;
    const struct link_calls *calls;
    void *arg;
    struct handshake shake;
    bool open, closed;
    int busy; /* calls on the stack */
};

static void leave(struct tree_link *l)
{
    if (--l->busy || !l->closed) return;
    event_free(l->look);
    bufferevent_free(l->be);
    free(l);
}

void link_close(struct tree_link *l)
{
    l->busy++;
    l->closed = true;
    bufferevent_disable(l->be, EV_READ | EV_WRITE);
    event_del(l->look);
    leave(l);
}

static void lose(struct tree_link *l, const char *why)
{
    if (l->closed) return;
    bufferevent_disable(l->be, EV_READ | EV_WRITE);
    event_del(l->look);
    l->calls->lost(l, why);
}

/* --- handshake --------------------------------------------------------------------------------------------------- */

static void send_step(struct tree_link *l)
{
    if (l->shake.out_len) bufferevent_write(l->be, l->shake.out, l->shake.out_len);
    l->shake.out_len = 0;
}

static void opened(struct tree_link *l)
{
    l->open = true;
    bufferevent_set_timeouts(l->be, NULL, NULL);
    l->calls->opened(l);
}

static void answer(struct tree_link *l)
{
    bool wanted = l->calls->wanted(l, l->shake.from);
    handshake_answer(&l->shake, wanted ? VERDICT_WELCOME : VERDICT_LEAVING);
    send_step(l);
    if (wanted)
        opened(l);
    else
        lose(l, "not wanted");
}

/* One step; false when more bytes are needed or the link is over. */
static bool shake(struct tree_link *l, struct evbuffer *in)
{
    uint8_t bytes[HANDSHAKE_OUT];
    size_t want = handshake_wants(&l->shake), got = min_size(want, evbuffer_get_length(in));
    if (!got) return false;
    evbuffer_remove(in, bytes, got);
    enum handshake_state state = handshake_input(&l->shake, bytes, got);
    send_step(l);
    if (state == HANDSHAKE_ASK)
        answer(l);
    else if (state == HANDSHAKE_BAD)
        lose(l, l->shake.why);
    else if (state == HANDSHAKE_DONE && l->shake.verdict == VERDICT_WELCOME)
        opened(l);
    else if (state == HANDSHAKE_DONE)
        lose(l, "the other side takes no connection of ours");
    return !l->closed && state != HANDSHAKE_BAD && (l->open || state == HANDSHAKE_MORE);
}

/* --- frames ------------------------------------------------------------------------------------------------------ */

static struct link_head swap(struct link_head h)
{
    return (struct link_head){.length = htonl(h.length),
                              .type = htons(h.type),
                              .zero = htons(h.zero),
                              .from = (int32_t)htonl((uint32_t)h.from),
                              .to = (int32_t)htonl((uint32_t)h.to)};
}

void link_send(struct tree_link *l, const struct link_head *h, const void *bytes)
{
    struct link_head wire = swap(*h);
    if (l->closed || !l->open) return;
    bufferevent_write(l->be, &wire, sizeof wire);
    if (h->length) bufferevent_write(l->be, bytes, h->length);
}

/* One message; false when none is whole, or the link is over. */
static bool take(struct tree_link *l, struct evbuffer *in)
{
    struct link_head h;
    if (evbuffer_copyout(in, &h, sizeof h) < (ev_ssize_t)sizeof h) return false;
    h = swap(h);
    if (h.length > TREE_MESSAGE_MAX || h.zero || h.type == TREE_NONE || h.type >= TREE_TYPES) {
        lose(l, "a message that cannot be");
        return false;
    }
    if (evbuffer_get_length(in) < sizeof h + h.length) return false;
    evbuffer_drain(in, sizeof h);
    const void *bytes = h.length ? (const void *)evbuffer_pullup(in, h.length) : "";
    bool good = l->calls->message(l, &h, bytes);
    if (l->closed) return false;
    evbuffer_drain(in, h.length);
    if (!good) lose(l, "a message that cannot be");
    return good;
}

static void on_read(struct bufferevent *be, void *arg)
{
    struct tree_link *l = arg;
    struct evbuffer *in = bufferevent_get_input(be);
    l->busy++;
    while (!l->closed && !l->open && shake(l, in)) continue;
    while (!l->closed && l->open && take(l, in)) continue;
    leave(l);
}

static void on_event(struct bufferevent *be, short what, void *arg)
{
    struct tree_link *l = arg;
    const char *why = what & BEV_EVENT_TIMEOUT ? "Connection timed out"
                      : what & BEV_EVENT_EOF   ? "Connection closed"
                                               : strerror(EVUTIL_SOCKET_ERROR());
    (void)be;
    l->busy++;
    lose(l, why);
    leave(l);
}

/* --- life -------------------------------------------------------------------------------------------------------- */

static void on_look(evutil_socket_t fd, short what, void *arg)
{
    struct tree_link *l = arg;
    struct tcp_info info;
    socklen_t n = sizeof info;
    (void)fd, (void)what;
    if (getsockopt(bufferevent_getfd(l->be), IPPROTO_TCP, TCP_INFO, &info, &n)) return;
    if (!info.tcpi_unacked || info.tcpi_last_ack_recv < LINK_SILENCE_S * 1000) return;
    l->busy++;
    lose(l, "Connection timed out");
    leave(l);
}

static void set_number(int fd, int level, int option, int v) { setsockopt(fd, level, option, &v, sizeof v); }

/* Failing options are none: a socket without them works, and notices less. */
static void set_socket(int fd)
{
    set_number(fd, IPPROTO_TCP, TCP_NODELAY, 1);
    set_number(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
    set_number(fd, IPPROTO_TCP, TCP_KEEPIDLE, 4);
    set_number(fd, IPPROTO_TCP, TCP_KEEPINTVL, 2);
    set_number(fd, IPPROTO_TCP, TCP_KEEPCNT, (LINK_SILENCE_S - 4) / 2);
}

static struct tree_link *open_link(struct event_base *base, int fd, const struct link_calls *calls, void *arg)
{
    struct tree_link *l = xcalloc(1, sizeof *l);
    struct timeval limit = {.tv_sec = LINK_STRANGER_S}, look = {.tv_sec = LOOK_S};
    l->calls = calls;
    l->arg = arg;
    evutil_make_socket_nonblocking(fd);
    set_socket(fd);
    l->be = bufferevent_socket_new(base, fd, BEV_OPT_CLOSE_ON_FREE);
    bufferevent_setcb(l->be, on_read, NULL, on_event, l);
    bufferevent_set_timeouts(l->be, &limit, NULL);
    bufferevent_set_max_single_read(l->be, READ_MAX);
    bufferevent_set_max_single_write(l->be, READ_MAX);
    bufferevent_enable(l->be, EV_READ | EV_WRITE);
    l->look = event_new(base, -1, EV_PERSIST, on_look, l);
    event_add(l->look, &look);
    return l;
}

struct tree_link *link_connect(struct event_base *base, int fd, const uint8_t *key, uint64_t from, uint64_t to,
                          const struct link_calls *calls, void *arg)
{
    struct tree_link *l = open_link(base, fd, calls, arg);
    handshake_connect(&l->shake, &tern_crypto_sodium, key, HANDSHAKE_TREE, from, to);
    send_step(l);
    return l;
}

struct tree_link *link_accept(struct event_base *base, int fd, const uint8_t *key, uint64_t to,
                         const struct link_calls *calls, void *arg)
{
    struct tree_link *l = open_link(base, fd, calls, arg);
    handshake_accept(&l->shake, &tern_crypto_sodium, key, HANDSHAKE_TREE, to);
    return l;
}

size_t link_pending(const struct tree_link *l) { return evbuffer_get_length(bufferevent_get_output(l->be)); }
void *link_arg(const struct tree_link *l) { return l->arg; }
uint64_t link_from(const struct tree_link *l) { return l->shake.from; }
bool link_has_spoken(const struct tree_link *l) { return handshake_spoken(&l->shake); }
bool link_is_open(const struct tree_link *l) { return l->open && !l->closed; }

void link_set_calls(struct tree_link *l, const struct link_calls *calls, void *arg)
{
    l->calls = calls;
    l->arg = arg;
}
