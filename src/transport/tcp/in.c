/*
 * in.c - receiving over TCP.
 *
 * One read into the stage, which all connections share, brings headers and payloads of
 * several messages; they are delivered where they lie. Only what is incomplete outlives
 * the call: of a header its bytes (tcp_in.head), of a message the place where its payload
 * goes, which is the receiver's own (tp_sinks) or memory made for it; later reads go
 * there directly. When the budget ends first, the rest stays in the stage ("held") and
 * is delivered before anything else is read.
 *
 * A stage of which a handler keeps bytes is replaced before the next read (stage.c).
 *
 * Frames begin at multiples of 8 in the stage, so that payloads are aligned.
 */
#include "base/err.h"
#include "proc/jobs.h"
#include "transport/tcp/tcp.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

static size_t limit_of(unsigned id) { return tp_sinks[id] ? TCP_LONG_MAX : TCP_SHORT; }

/* Takes a header apart. False, and the connection lost, when no process of ours can have sent it. */
static bool read_frame(struct tcp_ep *e, const char *at, struct tcp_frame *f)
{
    memcpy(f, at, sizeof *f);
    f->bytes = le32toh(f->bytes);
    f->number = le16toh(f->number);
    f->h0 = le64toh(f->h0);
    f->h1 = le64toh(f->h1);
    bool ours = f->id == AM_PAD ? f->h0 == TCP_NOTE_LEAVE && !f->bytes
                                : f->id < TP_AM_MAX && tp_handlers[f->id] && f->bytes <= limit_of(f->id);
    if (likely(ours && !f->zero && f->number == e->number_in)) {
        e->number_in++;
        return true;
    }
    err_set(TERN_ERR_PEER, "%s sent what is no message of Tern (id %u, %u bytes, number %u instead of %u); the connection is closed",
            jobs_words(e->peer->index), f->id, f->bytes, f->number, e->number_in);
    tcp_lose(e, TERN_ERR_PEER);
    return false;
}

static int deliver(struct tcp_ep *e, const struct tcp_frame *f, const void *data)
{
    if (unlikely(f->id == AM_PAD)) {
        e->leaving = true;
        return 0;
    }
    tp_handlers[f->id](e->peer, f->h0, f->h1, data, f->bytes);
    return 1;
}

/* Memory for a message that has no place of its own; only a short one may have none. NULL with words. */
static char *own_place(const struct tcp_ep *e, const struct tcp_frame *f, int *code)
{
    char *place = f->bytes <= TCP_SHORT ? malloc(f->bytes) : NULL;
    if (place) return place;
    if (f->bytes <= TCP_SHORT)
        *code = err_set(TERN_ERR_NOMEM, "no memory for a message of %u bytes from %s", f->bytes, jobs_words(e->peer->index));
    else
        *code = err_set(TERN_ERR_PEER, "%s sent %u bytes in one message that it was not asked for; the connection is closed",
                        jobs_words(e->peer->index), f->bytes);
    return NULL;
}

/* A message of which `have` bytes of payload are there: finds a place for it. */
static void begin_long(struct tcp_ep *e, const struct tcp_frame *f, const char *data, size_t have)
{
    struct tcp_in *in = &e->in;
    int code;
    in->frame = *f;
    in->base = tp_sinks[f->id] ? tp_sinks[f->id](e->peer, f->h0, f->h1, f->bytes) : NULL;
    in->own = !in->base;
    if (in->own && !(in->base = own_place(e, f, &code))) {
        tcp_lose(e, code);
        return;
    }
    if (have) memcpy(in->base, data, have);
    in->to = in->base + have;
    in->left = f->bytes - have;
}

static int end_long(struct tcp_ep *e)
{
    struct tcp_in *in = &e->in;
    char *base = in->base;
    bool own = in->own;
    in->to = in->base = NULL;
    in->skip = (uint8_t)(-in->frame.bytes & 7);
    tcp_dom.own = own ? base : NULL;
    tcp_dom.own_end = own ? base + in->frame.bytes : NULL;
    int n = deliver(e, &in->frame, base);
    free(tcp_dom.own);
    tcp_dom.own = tcp_dom.own_end = NULL;
    return n;
}

/* Delivers what lies in stage[at, end). */
static int deliver_stage(struct tcp_ep *e, uint32_t at, uint32_t end, int budget)
{
    struct tcp_frame f;
    int n = 0;
    while (at < end) {
        const char *p = tcp_dom.stage + at;
        size_t have = end - at;
        if (n >= budget) {
            tcp_dom.held = e;
            tcp_dom.held_at = at;
            tcp_dom.held_end = end;
            return n;
        }
        if (have < sizeof f) {
            memcpy(e->in.head, p, have);
            e->in.have = (uint8_t)have;
            return n;
        }
        if (!read_frame(e, p, &f)) return n;
        have -= sizeof f;
        if (have < f.bytes) {
            begin_long(e, &f, p + sizeof f, have);
            return n;
        }
        n += deliver(e, &f, p + sizeof f);
        if (unlikely(e->state != TCP_OPEN)) return n; /* lost in a send of the handler's */
        size_t whole = round_up(f.bytes, 8);
        if (have < whole) e->in.skip = (uint8_t)(whole - have);
        at += (uint32_t)(sizeof f + min_size(have, whole));
    }
    return n;
}

int tcp_deliver_held(int budget)
{
    struct tcp_ep *e = tcp_dom.held;
    tcp_dom.held = NULL;
    int n = deliver_stage(e, tcp_dom.held_at, tcp_dom.held_end, budget);
    return e->seal && e->state == TCP_OPEN && !tcp_dom.held ? n + tcp_seal_deliver(e, budget - n) : n;
}

/* Reads once: the rest of the message that is coming in, then into the stage from `at` on. Bytes, 0, or -errno: as recv. */
static ssize_t read_once(struct tcp_ep *e, uint32_t at, size_t *wanted)
{
    struct iovec v[2] = {{e->in.to, e->in.left}, {tcp_dom.stage + at, TCP_STAGE_BYTES - at}};
    ssize_t n;
    do {
        if (likely(!e->in.to)) {
            *wanted = v[1].iov_len;
            n = recv(e->src.fd, v[1].iov_base, *wanted, MSG_DONTWAIT);
        } else {
            struct msghdr m = {.msg_iov = v, .msg_iovlen = e->in.left < TCP_STAGE_BYTES ? 2 : 1};
            *wanted = v[0].iov_len + (m.msg_iovlen == 2 ? v[1].iov_len : 0);
            n = recvmsg(e->src.fd, &m, MSG_DONTWAIT);
        }
    } while (n < 0 && errno == EINTR);
    return n;
}

/* The stage has n bytes from `at` on, padding first. */
static int take_stage(struct tcp_ep *e, uint32_t at, size_t n, int budget)
{
    uint32_t end = at + (uint32_t)n, skip = (uint32_t)min_size(e->in.skip, n);
    e->in.skip = (uint8_t)(e->in.skip - skip);
    return deliver_stage(e, at + skip, end, budget);
}

/* n bytes have come: to the message that is coming in, and into the stage. */
static int take_long(struct tcp_ep *e, uint32_t at, size_t n, int budget)
{
    size_t k = min_size(n, e->in.left);
    e->in.to += k;
    e->in.left -= k;
    if (e->in.left) return 0;
    int got = end_long(e);
    return n > k && e->state == TCP_OPEN ? got + take_stage(e, at, n - k, budget - got) : got;
}

/* Where in the stage the next bytes go, so that the next frame begins at a multiple of 8. */
static uint32_t stage_place(struct tcp_ep *e)
{
    uint32_t skip = e->in.to ? -e->in.frame.bytes & 7 : e->in.skip, have = e->in.have;
    tcp_stage_renew();
    if (have) memcpy(tcp_dom.stage, e->in.head, have);
    return have ? have : -skip & 7;
}

/* Straight to where a message goes if all of them are its, else into the stage such that frames begin at multiples
 * of 8. */
char *tcp_in_place(struct tcp_ep *e, size_t n)
{
    if (e->in.to && n <= e->in.left) return e->in.to;
    uint32_t at = stage_place(e);
    return tcp_dom.stage + (e->in.to ? (at - e->in.left) & 7 : at);
}

int tcp_in_take(struct tcp_ep *e, char *place, size_t n, int budget)
{
    size_t k = min_size(n, e->in.left);
    uint32_t at = (uint32_t)(place - tcp_dom.stage), have = e->in.have;
    e->fruitless = 0;
    if (e->in.to) {
        if (place != e->in.to) memcpy(e->in.to, place, k);
        return take_long(e, place == e->in.to ? 0 : at + (uint32_t)k, n, budget);
    }
    e->in.have = 0;
    return take_stage(e, at - have, n + have, budget);
}

int tcp_recv(struct tcp_ep *e, int budget)
{
    int total = 0;
    if (e->seal) return tcp_seal_recv(e, budget);
    while (total < budget && !tcp_dom.held && e->state == TCP_OPEN) {
        size_t wanted;
        uint32_t at = stage_place(e);
        ssize_t n = read_once(e, at, &wanted);
        if (n <= 0) {
            if (!n || errno != EAGAIN) tcp_ended(e, n ? errno : 0);
            break;
        }
        e->fruitless = 0;
        if (e->in.to) {
            total += take_long(e, at, (size_t)n, budget - total);
        } else {
            uint32_t have = e->in.have;
            e->in.have = 0;
            total += take_stage(e, at - have, (size_t)n + have, budget - total);
        }
        if ((size_t)n < wanted) break;
    }
    return total;
}

void tcp_in_drop(struct tcp_ep *e)
{
    if (e->in.own) free(e->in.base);
    memset(&e->in, 0, sizeof e->in);
    if (tcp_dom.held == e) tcp_dom.held = NULL;
}
