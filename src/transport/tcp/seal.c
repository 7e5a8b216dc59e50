/*
 * seal.c - sealed connections (TERN_TCP_SEAL): between the frames of out.c and in.c and the socket there
 * are records (record.h).
 *
 * Out: what waits is sealed a record at a time. Once sealed it counts as sent, since a number seals only once; what the
 * socket does not take of a record waits in tcp_seal.rest, before anything else.
 *
 * In: one read brings several records into tcp_dom.sealed_in, which all connections share. They are opened one after
 * the other, to the stage or straight to where a message goes, and what is delivered has been authenticated. When the
 * budget is used up, the unopened records stay in sealed_in, and no connection is read until they are delivered
 * (tcp_dom.held). A record that has come in part is kept in tcp_seal.part.
 */
#include "base/err.h"
#include "proc/jobs.h"
#include "base/var.h"
#include "transport/tcp/tcp.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define IN_BYTES (4 * RECORD_WIRE) /* one read */

/* ---- life ---- */

int tcp_seal_open(struct tcp_dom *d)
{
    d->sealed = var_int(VAR_TCP_SEAL);
    if (!d->sealed) return 0;
    int rc = tcp_load_crypto();
    if (rc) return rc;
    if (!d->crypto->start()) return err_set(TERN_ERR_SYSTEM, "TERN_TCP_SEAL: libsodium cannot be used here");
    d->sealed_out = malloc(RECORD_WIRE);
    d->sealed_in = malloc(IN_BYTES);
    return d->sealed_out && d->sealed_in ? 0 : err_set(TERN_ERR_NOMEM, "no memory for tcp");
}

void tcp_seal_close(struct tcp_dom *d)
{
    free(d->sealed_out);
    free(d->sealed_in);
}

bool tcp_seal_begin(struct tcp_ep *e, const struct handshake *h)
{
    struct tcp_seal *s = calloc(1, sizeof *s);
    if (!s) {
        err_set(TERN_ERR_NOMEM, "no memory to connect to %s", jobs_words(e->peer->index));
        return false;
    }
    s->out.crypto = s->in.crypto = h->crypto;
    handshake_key(h, true, s->out.key);
    handshake_key(h, false, s->in.key);
    e->seal = s;
    return true;
}

void tcp_seal_end(struct tcp_ep *e)
{
    if (!e->seal) return;
    free(e->seal->rest);
    free(e->seal->part);
    explicit_bzero(e->seal, sizeof *e->seal);
    free(e->seal);
    e->seal = NULL;
}

/* ---- sending ---- */

/* The socket takes bytes[0, n), or the first of them: how many. */
static size_t give(struct tcp_ep *e, const uint8_t *bytes, size_t n)
{
    ssize_t sent = send(e->src.fd, bytes, n, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0) tcp_not_sent(e, errno);
    return sent < 0 ? 0 : (size_t)sent;
}

static bool flush_rest(struct tcp_ep *e)
{
    struct tcp_seal *s = e->seal;
    s->rest_at += (uint32_t)give(e, s->rest + s->rest_at, s->rest_end - s->rest_at);
    if (s->rest_at < s->rest_end) return false;
    free(s->rest);
    s->rest = NULL;
    return true;
}

/* The socket took `sent` bytes of the record in sealed_out. */
static void keep_rest(struct tcp_ep *e, size_t sent, size_t size)
{
    struct tcp_seal *s = e->seal;
    s->rest = malloc(size - sent);
    if (!s->rest) { /* a part of a record is with the peer */
        tcp_lose(e, err_set(TERN_ERR_NOMEM, "no memory to send to %s", jobs_words(e->peer->index)));
        return;
    }
    memcpy(s->rest, tcp_dom.sealed_out + sent, size - sent);
    s->rest_at = 0;
    s->rest_end = (uint32_t)(size - sent);
}

/* The bytes of the next record, in one piece: where they lie if the first piece has enough, else gathered in
 * sealed_out. */
static const void *next_bytes(struct tcp_ep *e, size_t *n_p)
{
    struct iovec v[TCP_PIECES];
    size_t bytes, n = 0;
    int nv = tcp_gather(&e->out, v, &bytes);
    *n_p = min_size(bytes, RECORD_MAX);
    if (nv && v[0].iov_len >= *n_p) return v[0].iov_base;
    for (int i = 0; i < nv && n < *n_p; i++) {
        size_t k = min_size(v[i].iov_len, *n_p - n);
        memcpy(tcp_dom.sealed_out + RECORD_HEAD + n, v[i].iov_base, k);
        n += k;
    }
    return tcp_dom.sealed_out + RECORD_HEAD;
}

bool tcp_seal_flush(struct tcp_ep *e)
{
    size_t n;
    if (e->seal->rest && !flush_rest(e)) return false;
    const void *bytes = next_bytes(e, &n);
    if (!n) return true;
    size_t size = record_seal(&e->seal->out, tcp_dom.sealed_out, bytes, n), sent = give(e, tcp_dom.sealed_out, size);
    if (sent < size) keep_rest(e, sent, size);
    if (e->state == TCP_OPEN) tcp_sent(&e->out, n);
    return sent == size;
}

/* ---- receiving ---- */

static void distrust(struct tcp_ep *e)
{
    err_set(
        TERN_ERR_PEER,
        "what came from %s over %s cannot be trusted: a sealed record was changed on its way, or is missing; the "
        "connection is closed",
        jobs_words(e->peer->index), e->near);
    tcp_lose(e, TERN_ERR_PEER);
}

/* What lies in sealed_in is less than a record: keeps it for the next read. */
static void keep_part(struct tcp_ep *e)
{
    struct tcp_seal *s = e->seal;
    uint32_t n = tcp_dom.sealed_end - tcp_dom.sealed_at;
    if (n && !s->part && !(s->part = malloc(RECORD_WIRE))) {
        tcp_lose(e, err_set(TERN_ERR_NOMEM, "no memory to receive from %s", jobs_words(e->peer->index)));
        return;
    }
    if (n)
        memcpy(s->part, tcp_dom.sealed_in + tcp_dom.sealed_at, n);
    else
        free(s->part);
    if (!n) s->part = NULL;
    s->part_end = n;
}

int tcp_seal_deliver(struct tcp_ep *e, int budget)
{
    int total = 0;
    while (e->state == TCP_OPEN && !tcp_dom.held) {
        const uint8_t *record = tcp_dom.sealed_in + tcp_dom.sealed_at;
        size_t size, have = tcp_dom.sealed_end - tcp_dom.sealed_at;
        bool possible = record_size(record, have, &size);
        if (possible && (!size || size > have)) {
            keep_part(e);
            break;
        }
        if (total >= budget) {
            tcp_dom.held = e;
            tcp_dom.held_at = tcp_dom.held_end = 0;
            break;
        }
        char *place = possible ? tcp_in_place(e, size - RECORD_MORE) : NULL;
        if (!possible || !record_open(&e->seal->in, place, record, size)) {
            distrust(e);
            break;
        }
        tcp_dom.sealed_at += (uint32_t)size;
        total += tcp_in_take(e, place, size - RECORD_MORE, budget - total);
    }
    return total;
}

int tcp_seal_recv(struct tcp_ep *e, int budget)
{
    int total = 0;
    while (total < budget && !tcp_dom.held && e->state == TCP_OPEN) {
        struct tcp_seal *s = e->seal;
        size_t had = s->part_end, wanted = IN_BYTES - had;
        if (had) memcpy(tcp_dom.sealed_in, s->part, had);
        ssize_t n;
        do n = recv(e->src.fd, tcp_dom.sealed_in + had, wanted, MSG_DONTWAIT);
        while (n < 0 && errno == EINTR);
        if (n <= 0) {
            if (!n || errno != EAGAIN) tcp_ended(e, n ? errno : 0);
            break;
        }
        tcp_dom.sealed_at = 0;
        tcp_dom.sealed_end = (uint32_t)(had + (size_t)n);
        total += tcp_seal_deliver(e, budget - total);
        if ((size_t)n < wanted) break;
    }
    return total;
}
