/* line.c - see line.h. A line is freed when none of its calls is on the stack any more. */
#include "mpiexec/line.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/rights.h"
#include "mpiexec/xalloc.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <stdlib.h>
#include <string.h>

struct line {
    struct bufferevent *be;
    const struct line_calls *calls;
    uint32_t number;
    bool closed;
    bool refused; /* nothing is taken any more; closed when all is sent */
    int busy;     /* calls on the stack */
    struct hash_link by_number;
};

static struct hash lines;
static uint32_t last_number;

uint32_t line_number(const struct line *l) { return l->number; }

struct line *line_of(uint32_t number)
{
    struct hash_link *l = hash_find(&lines, number);
    return l ? container_of(l, struct line, by_number) : NULL;
}

static void end(struct line *l)
{
    bufferevent_free(l->be);
    free(l);
}

static void leave(struct line *l)
{
    if (!--l->busy && l->closed) end(l);
}

static void shut(struct line *l)
{
    hash_remove(&lines, &l->by_number);
    l->closed = true;
    bufferevent_disable(l->be, EV_READ | EV_WRITE);
}

void line_close(struct line *l)
{
    if (l->closed) return;
    shut(l);
    if (!l->busy) end(l);
}

/* In a call of the event loop, which has counted itself in `busy`. */
static void lose(struct line *l)
{
    if (l->closed) return;
    l->calls->gone(l);
    if (!l->closed) shut(l);
}

static size_t pending(const struct line *l) { return evbuffer_get_length(bufferevent_get_output(l->be)); }

/* What the socket takes at once: a ring of another kind may follow, and the process may end. */
static size_t send_now(struct line *l, struct ask_head *h, const void *bytes, size_t n)
{
    struct iovec parts[2] = {{h, sizeof *h}, {(void *)(uintptr_t)bytes, n}};
    struct msghdr m = {.msg_iov = parts, .msg_iovlen = n ? 2 : 1};
    ssize_t sent = sendmsg(bufferevent_getfd(l->be), &m, MSG_NOSIGNAL | MSG_DONTWAIT);
    return sent < 0 ? 0 : (size_t)sent; /* an error comes again when the rest is sent */
}

void line_send(struct line *l, const struct ask_head *h, const void *bytes)
{
    struct ask_head wire = ask_swap(*h);
    if (l->closed || l->refused) return;
    size_t sent = pending(l) ? 0 : send_now(l, &wire, bytes, h->length);
    if (sent < sizeof wire) bufferevent_write(l->be, (char *)&wire + sent, sizeof wire - sent);
    size_t at = sent < sizeof wire ? 0 : sent - sizeof wire;
    if (at < h->length) bufferevent_write(l->be, (const char *)bytes + at, h->length - at);
}

void line_refuse(struct line *l, uint32_t id, int status, const char *why)
{
    uint8_t room[512];
    struct ask_out o = {.bytes = room, .room = sizeof room};
    ask_put_text(&o, why);
    struct ask_head h = {.length = (uint32_t)o.n, .type = ASK_ANSWER, .status = (int16_t)status, .id = id};
    line_send(l, &h, room);
    l->refused = true;
    bufferevent_disable(l->be, EV_READ);
    if (!pending(l)) lose(l);
}

bool line_hand_out(struct line *l, int fd)
{
    return rights_send(bufferevent_getfd(l->be), "", 1, &fd, 1, MSG_DONTWAIT) == 1;
}

/* One frame; false when none is whole, or the line is over. */
static bool take(struct line *l, struct evbuffer *in)
{
    struct ask_head h;
    if (evbuffer_copyout(in, &h, sizeof h) < (ev_ssize_t)sizeof h) return false;
    h = ask_swap(h);
    if (h.length > ASK_BYTES_MAX || h.type == ASK_NONE || h.type >= ASK_TYPES) {
        line_refuse(l, h.id, TERN_ERR_ARG, "the launcher got a message that cannot be");
        return false;
    }
    if (evbuffer_get_length(in) < sizeof h + h.length) return false;
    evbuffer_drain(in, sizeof h);
    const void *bytes = h.length ? (const void *)evbuffer_pullup(in, h.length) : "";
    l->calls->frame(l, &h, bytes);
    if (l->closed) return false;
    evbuffer_drain(in, h.length);
    return !l->refused;
}

static void on_read(struct bufferevent *be, void *arg)
{
    struct line *l = arg;
    l->busy++;
    while (!l->closed && !l->refused && take(l, bufferevent_get_input(be))) continue;
    leave(l);
}

static void on_written(struct bufferevent *be, void *arg)
{
    struct line *l = arg;
    (void)be;
    l->busy++;
    if (l->refused) lose(l);
    leave(l);
}

static void on_event(struct bufferevent *be, short what, void *arg)
{
    struct line *l = arg;
    (void)be, (void)what;
    l->busy++;
    lose(l);
    leave(l);
}

struct line *line_open(struct event_base *base, int fd, const struct line_calls *calls, int silent_s)
{
    struct line *l = xcalloc(1, sizeof *l);
    struct timeval limit = {.tv_sec = silent_s};
    l->calls = calls;
    l->number = ++last_number ? last_number : ++last_number;
    evutil_make_socket_nonblocking(fd);
    l->be = bufferevent_socket_new(base, fd, BEV_OPT_CLOSE_ON_FREE);
    bufferevent_setcb(l->be, on_read, on_written, on_event, l);
    if (silent_s) bufferevent_set_timeouts(l->be, &limit, NULL);
    bufferevent_enable(l->be, EV_READ | EV_WRITE);
    hash_add(&lines, &l->by_number, l->number);
    return l;
}

void line_trust(struct line *l) { bufferevent_set_timeouts(l->be, NULL, NULL); }

void line_set_calls(struct line *l, const struct line_calls *calls) { l->calls = calls; }
