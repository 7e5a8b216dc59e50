/*
 * out.c - sending over TCP.
 *
 * A message goes straight to the socket when nothing waits before it. What the socket
 * does not take waits in the connection's buffer, and so do the messages after it, until
 * the buffer is full; then sends return TERN_AGAIN, and only progress (tcp_flush) makes
 * room. Memory of am_zcopy is not copied: it has its place between the bytes of the
 * buffer (struct tcp_out), and one gathered write takes from both.
 */
#include "base/err.h"
#include "proc/jobs.h"
#include "transport/tcp/tcp.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

/* A message up to this is copied to one piece with its header: cheaper than a gathered write. */
#define ONE_PIECE 1024
#define ROUNDS 8 /* writes of one flush: a reader as fast as we are does not keep us for ever */

/* The memory of an am_zcopy that waits. */
struct tcp_long {
    struct link link;
    struct tp_op *op;
    const char *p;
    size_t left;
    uint64_t at; /* it goes before the buffer's byte of this number */
};

static inline size_t padded(size_t n) { return round_up(n, 8); }

static inline struct tcp_frame make_frame(const struct tcp_ep *e, unsigned id, uint64_t h0, uint64_t h1, size_t n)
{
    return (struct tcp_frame){htole32((uint32_t)n), (uint8_t)id, 0, htole16(e->number_out), htole64(h0), htole64(h1)};
}

bool tcp_out_empty(const struct tcp_ep *e)
{
    return e->out.start == e->out.end && list_empty(&e->out.longs) && !(e->seal && e->seal->rest);
}

/* What is sent now need not wait, but for its being sealed. */
static bool at_once(const struct tcp_ep *e) { return e->state == TCP_OPEN && !e->waits; }

/* ---- the buffer ---- */

static char *take_buffer(void) { return tcp_dom.spares ? tcp_dom.spare[--tcp_dom.spares] : malloc(TCP_OUT_BYTES); }

static void give_buffer(struct tcp_out *o)
{
    if (o->buf && tcp_dom.spares < ARRAY_LEN(tcp_dom.spare)) tcp_dom.spare[tcp_dom.spares++] = o->buf;
    else free(o->buf);
    o->buf = NULL;
    o->start = o->end = 0;
}

/* Moves what waits to the front when that frees half of the buffer: each byte is moved once at most on average. */
static void slide(struct tcp_out *o)
{
    memmove(o->buf, o->buf + o->start, o->end - o->start);
    o->end -= o->start;
    o->start = 0;
}

/* Where `need` bytes can be appended; TERN_AGAIN, or no memory. */
static int room(struct tcp_ep *e, size_t need, char **to)
{
    struct tcp_out *o = &e->out;
    if (!o->buf && !(o->buf = take_buffer())) return err_set(TERN_ERR_NOMEM, "no memory to send to %s", jobs_words(e->peer->index));
    if (TCP_OUT_BYTES - o->end < need && (o->start == o->end || o->start >= TCP_OUT_BYTES / 2)) slide(o);
    if (TCP_OUT_BYTES - o->end < need) return TERN_AGAIN;
    *to = o->buf + o->end;
    return 0;
}

void tcp_settled(struct tcp_ep *e, bool ready)
{
    bool waits = e->state == TCP_OPEN && !ready;
    e->ready = e->state == TCP_OPEN && ready && !e->seal;
    tcp_dom.unsettled += (unsigned)waits - (unsigned)e->waits;
    e->waits = waits;
}

/* The frame that was written at the end of the buffer is part of the stream now. */
static void append(struct tcp_ep *e, size_t bytes)
{
    e->out.end += (uint32_t)bytes;
    e->number_out++;
    tcp_settled(e, false);
}

static void write_frame(char *to, const struct tcp_frame *f, const void *p, size_t n)
{
    memcpy(to, f, sizeof *f);
    if (n) memcpy(to + sizeof *f, p, n);
    memset(to + sizeof *f + n, 0, padded(n) - n);
}

/* ---- straight to the socket ---- */

static ssize_t send_pieces(int fd, const struct tcp_frame *f, const void *p, size_t n)
{
    static const uint64_t zeros;
    struct iovec v[3] = {{(void *)(uintptr_t)f, sizeof *f}, {(void *)(uintptr_t)p, n}, {(void *)(uintptr_t)&zeros, padded(n) - n}};
    struct msghdr m = {.msg_iov = v, .msg_iovlen = 3};
    return sendmsg(fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static ssize_t send_one_piece(int fd, const struct tcp_frame *f, const void *p, size_t n)
{
    uint64_t buf[(sizeof *f + ONE_PIECE) / 8];
    buf[(sizeof *f + padded(n)) / 8 - 1] = 0;
    memcpy(buf, f, sizeof *f);
    if (n) memcpy((char *)buf + sizeof *f, p, n);
    return send(fd, buf, sizeof *f + padded(n), MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void watch_room(struct tcp_ep *e)
{
    tcp_watch(&e->src, EPOLLIN | (e->waits && !e->broken && !e->starved ? EPOLLOUT : 0));
}

/* The socket is full, or has failed. A failed one is still read: the peer may have said farewell. */
void tcp_not_sent(struct tcp_ep *e, int error)
{
    if (error == EAGAIN || error == EINTR) return;
    if (error == ENOBUFS || error == ENOMEM) tcp_starve(e);
    else e->broken = true;
}

/* The socket took `sent` bytes of the frame; the rest waits. */
static TERN_COLD int send_rest(struct tcp_ep *e, const struct tcp_frame *f, const void *p, size_t n, ssize_t sent)
{
    char *to;
    if (sent < 0) {
        tcp_not_sent(e, errno);
        sent = 0;
    }
    int rc = room(e, sizeof *f + padded(n), &to);
    if (rc) {
        if (sent) tcp_lose(e, rc); /* half a frame is with the peer */
        return rc;
    }
    write_frame(to, f, p, n);
    append(e, sizeof *f + padded(n));
    e->out.start += (uint32_t)sent;
    e->out.taken += (uint64_t)sent;
    watch_room(e);
    return 0;
}

/* ---- what waits ---- */

int tcp_gather(struct tcp_out *o, struct iovec v[TCP_PIECES], size_t *bytes)
{
    int n = 0;
    uint32_t at = o->start;
    *bytes = 0;
    list_each(l, next, &o->longs) {
        struct tcp_long *z = container_of(l, struct tcp_long, link);
        uint32_t stop = o->start + (uint32_t)(z->at - o->taken);
        if (n + 2 > TCP_PIECES) return n;
        if (stop > at) v[n++] = (struct iovec){o->buf + at, stop - at};
        v[n++] = (struct iovec){(void *)(uintptr_t)z->p, z->left};
        *bytes += stop - at + z->left;
        at = stop;
    }
    if (o->end > at && n < TCP_PIECES) {
        v[n++] = (struct iovec){o->buf + at, o->end - at};
        *bytes += o->end - at;
    }
    return n;
}

static void long_done(struct tcp_long *z, int rc)
{
    struct tp_op *op = z->op;
    list_remove(&z->link);
    free(z);
    op->done(op, rc);
}

/* n bytes of the stream are with the system. Operations that are complete say so, and may send. */
void tcp_sent(struct tcp_out *o, size_t n)
{
    while (n) {
        struct tcp_long *z = list_empty(&o->longs) ? NULL : container_of(o->longs.next, struct tcp_long, link);
        size_t before = z ? (size_t)(z->at - o->taken) : o->end - o->start, k = min_size(n, before);
        o->start += (uint32_t)k;
        o->taken += k;
        n -= k;
        if (!z || k < before) continue;
        k = min_size(n, z->left);
        z->p += k;
        z->left -= k;
        n -= k;
        if (!z->left) long_done(z, 0);
    }
}

/* True while the socket takes all that it is given. */
static bool flush_some(struct tcp_ep *e)
{
    struct iovec v[TCP_PIECES];
    size_t bytes;
    if (e->seal) return tcp_seal_flush(e);
    int nv = tcp_gather(&e->out, v, &bytes);
    struct msghdr m = {.msg_iov = v, .msg_iovlen = (size_t)nv};
    ssize_t n = sendmsg(e->src.fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n < 0)
        tcp_not_sent(e, errno);
    else
        tcp_sent(&e->out, (size_t)n);
    return n == (ssize_t)bytes;
}

void tcp_flush(struct tcp_ep *e)
{
    if (e->flushing || e->state != TCP_OPEN || e->ready) return;
    e->flushing = true;
    for (int i = 0; i < ROUNDS && !e->broken && !tcp_out_empty(e); i++)
        if (!flush_some(e)) break;
    e->flushing = false;
    if (e->state != TCP_OPEN) return;
    if (tcp_out_empty(e)) {
        give_buffer(&e->out);
        tcp_settled(e, true);
    }
    watch_room(e);
}

void tcp_out_drop(struct tcp_ep *e, int code)
{
    tcp_settled(e, false);
    while (!list_empty(&e->out.longs)) long_done(container_of(e->out.longs.next, struct tcp_long, link), code);
    give_buffer(&e->out);
}

/* ---- the contract ---- */

static TERN_COLD int queue(struct tcp_ep *e, unsigned id, uint64_t h0, uint64_t h1, const void *p, size_t n)
{
    char *to;
    if (e->state >= TCP_LEFT) return tcp_refusal(e);
    bool straight = at_once(e);
    int rc = room(e, sizeof(struct tcp_frame) + padded(n), &to);
    if (rc) return rc;
    struct tcp_frame f = make_frame(e, id, h0, h1, n);
    e->asks_only = tp_questions[id] && (e->asks_only || tcp_out_empty(e));
    write_frame(to, &f, p, n);
    append(e, sizeof f + padded(n));
    if (straight) tcp_flush(e);
    return 0;
}

int tcp_am_short(struct tp_ep *ep, unsigned id, uint64_t h0, uint64_t h1, const void *p, size_t n)
{
    struct tcp_ep *e = ep->priv;
    if (unlikely(!e->ready)) return queue(e, id, h0, h1, p, n);
    struct tcp_frame f = make_frame(e, id, h0, h1, n);
    ssize_t sent = n <= ONE_PIECE ? send_one_piece(e->src.fd, &f, p, n) : send_pieces(e->src.fd, &f, p, n);
    if (unlikely(sent != (ssize_t)(sizeof f + padded(n)))) return send_rest(e, &f, p, n, sent);
    e->number_out++;
    return 0;
}

int tcp_am_bcopy(struct tp_ep *ep, unsigned id, uint64_t h0, uint64_t h1, tp_pack_fn pack, void *arg, size_t n)
{
    struct tcp_ep *e = ep->priv;
    char *to;
    if (e->state >= TCP_LEFT) return tcp_refusal(e);
    bool straight = at_once(e);
    e->asks_only = false;
    int rc = room(e, sizeof(struct tcp_frame) + padded(n), &to);
    if (rc) return rc;
    n = pack(arg, to + sizeof(struct tcp_frame), n);
    struct tcp_frame f = make_frame(e, id, h0, h1, n);
    memcpy(to, &f, sizeof f);
    memset(to + sizeof f + n, 0, padded(n) - n);
    append(e, sizeof f + padded(n));
    if (straight) tcp_flush(e);
    return 0;
}

int tcp_am_zcopy(struct tp_ep *ep, unsigned id, uint64_t h0, uint64_t h1, const void *p, size_t n, struct tp_op *op)
{
    struct tcp_ep *e = ep->priv;
    char *to;
    if (e->state >= TCP_LEFT) return tcp_refusal(e);
    if (n > TCP_LONG_MAX || (n > TCP_SHORT && !tp_sinks[id]))
        return err_set(TERN_ERR_INTERN, "a message of %zu bytes with id %u is too long for tcp", n, id);
    bool straight = at_once(e);
    size_t pad = padded(n) - n;
    e->asks_only = false;
    int rc = room(e, sizeof(struct tcp_frame) + pad, &to);
    if (rc) return rc;
    struct tcp_long *z = malloc(sizeof *z);
    if (!z) return err_set(TERN_ERR_NOMEM, "no memory to send to %s", jobs_words(e->peer->index));
    struct tcp_frame f = make_frame(e, id, h0, h1, n);
    memcpy(to, &f, sizeof f);
    memset(to + sizeof f, 0, pad);
    *z = (struct tcp_long){.op = op, .p = p, .left = n, .at = e->out.taken + (e->out.end - e->out.start) + sizeof f};
    append(e, sizeof f + pad);
    list_push(&e->out.longs, &z->link);
    if (!n) long_done(z, 0);
    if (straight) tcp_flush(e);
    return 0;
}
