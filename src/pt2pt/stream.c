/*
 * stream.c - large messages in fragments: where memory cannot be reached directly,
 * or where a side is not contiguous. The receiver asks (CTS), the sender packs into
 * the transport's buffers, the receiver unpacks from them; nothing is ever allocated
 * for the whole message.
 */
#include "base/err.h"
#include "pt2pt/api.h"
#include "pt2pt/protocol.h"
#include "type/cursor.h"

#include <string.h>

/* r->cookie of a send that streams */
enum { SENT = 1, TO_SEND = 2, TO_REQUEST = 3 };
/* r->cookie of a receive that is streamed to: [1] the fault of the message, as in large.c; [2] bytes arrived */
enum { ARRIVED = 2 };

void pt_stream_ask(struct request *r, struct peer *from, uint64_t send, uint64_t bytes)
{
    struct pt_cts cts = {(uintptr_t)r, bytes};
    r->cookie[ARRIVED] = 0;
    lane_control(from, AM_CTS, send, 0, &cts, sizeof cts);
    if (!bytes) lane_finish(r, -(int)r->cookie[1]);
}

void pt_on_cts(struct peer *from, uint64_t h0, uint64_t h1, const void *data, size_t n)
{
    struct request *r = (struct request *)(uintptr_t)h0;
    struct pt_cts cts;
    (void)from, (void)h1, (void)n;
    memcpy(&cts, data, sizeof cts);
    pt_offer_withdraw(r);
    r->cookie[SENT] = 0;
    r->cookie[TO_SEND] = cts.bytes;
    r->cookie[TO_REQUEST] = cts.recv;
    list_push(&lane0.streams, &r->link);
    lane0.large++;
}

static size_t pack_cursor(void *arg, void *to, size_t max) { return type_pack(arg, to, max); }

static int send_fragment(struct request *r, struct type_cursor *c, size_t n)
{
    struct tp_ep *ep = &r->peer->ep;
    uint64_t at = r->cookie[SENT];
    type_cursor_seek(c, at);
    if (r->type->contig) return ep->am_short(ep, AM_FRAG, r->cookie[TO_REQUEST], at, c->buf + at, n);
    if (ep->caps & TP_CAP_BCOPY) return ep->ops->am_bcopy(ep, AM_FRAG, r->cookie[TO_REQUEST], at, pack_cursor, c, n);
    char buf[4096];
    n = type_pack(c, buf, min_size(n, sizeof buf));
    int rc = ep->am_short(ep, AM_FRAG, r->cookie[TO_REQUEST], at, buf, n);
    if (!rc) r->cookie[SENT] = at + n;
    return rc;
}

int pt_stream_step(struct request *r)
{
    struct type_cursor c;
    int moved = 0;
    type_cursor_init(&c, r->type, r->count, r->buf);
    while (r->cookie[SENT] < r->cookie[TO_SEND]) {
        uint64_t before = r->cookie[SENT];
        size_t n = min_size(r->peer->ep.max_short / 2, r->cookie[TO_SEND] - before); /* two fit: one is read, one written */
        int rc = send_fragment(r, &c, n);
        if (rc == TERN_AGAIN) return moved;
        if (rc) {
            list_remove(&r->link);
            lane0.large--;
            lane_finish(r, rc);
            return 1;
        }
        if (r->cookie[SENT] == before) r->cookie[SENT] = before + n;
        moved++;
    }
    list_remove(&r->link);
    lane0.large--;
    lane_finish(r, 0);
    return 1;
}

void pt_on_frag(struct peer *from, uint64_t h0, uint64_t h1, const void *data, size_t n)
{
    struct request *r = (struct request *)(uintptr_t)h0;
    struct type_cursor c;
    (void)from;
    type_cursor_init(&c, r->type, r->count, r->buf);
    type_cursor_seek(&c, h1);
    type_unpack(&c, data, n);
    r->cookie[ARRIVED] += n;
    if (r->cookie[ARRIVED] == (uint64_t)r->result.bytes) lane_finish(r, -(int)r->cookie[1]);
}
