/*
 * stream.c - large messages in fragments: where memory cannot be reached directly,
 * or where a side is not contiguous. The receiver asks (CTS), the sender sends, and
 * nothing is ever allocated for the whole message.
 *
 *   sender's data contiguous, TP_CAP_ZCOPY   from where it lies, two fragments under way at a time, which grow as long
 *                                            as the wire keeps up: others' messages have their turn in between
 *   otherwise                                packed into the transport's buffers, as long as there is room
 *
 *   receiver's data contiguous               a transport that reads from a stream reads to where it belongs (tp_sinks)
 *   otherwise                                unpacked from the transport's buffers
 *
 * Fragments of a message come in order, without gaps: the receiver knows the offset of the next one.
 */
#include "base/err.h"
#include "copy/copy.h"
#include "pt2pt/api.h"
#include "pt2pt/dispatch.h"
#include "pt2pt/limits.h"
#include "pt2pt/lost.h"
#include "pt2pt/protocol.h"
#include "pt2pt/rndv/ahead.h"
#include "pt2pt/say.h"
#include "pt2pt/ways.h"
#include "transport/endpoint.h"
#include "type/cursor.h"

#include <stdlib.h>
#include <string.h>

/* r->cookie of a send that was offered, as in offer.c */
enum { OFFER = 1 };
/* r->cookie of a send that streams; GOING: it is in lane.rndv.streams, and not in peer_lane.streams_waiting; NUMBER: of the message, if
 * it was not asked for (ahead.h) */
enum { GOING = 0, SENT = 1, TO_SEND = 2, TO_REQUEST = 3, MOST = 4, NUMBER = TO_REQUEST };
/* r->cookie of a receive that is streamed to: [1] the fault of the message, as in offer.c; [2] bytes arrived; [4] bytes of which
 * the headers were seen, with the locks of the peer's wire and of the ids, once threads share the transports */
enum { FAULT = 1, ARRIVED = 2, SEEN = 4 };

/* Streams to one peer at a time, of a lane. They share what the way to it takes, and each has its turn in every turn of progress:
 * with thousands of them a turn would take longer than the way takes to be free again. */
#define STREAMS_MAX 16

/* Fragments under way: one is being taken by the system, the next is there when it is through. */
#define WINDOW 2

/* Bytes of a fragment to a receiver with gaps, which its transport may have to keep until it is whole. */
#define GAPS_CHUNK (64 << 10)

/* Bytes of the first fragments: a pipe of 1 GB/s is full for as long as a wake-up takes. */
#define FIRST_CHUNK (256 << 10)

/* A send whose fragments go out from where they lie; its request's xfer. */
struct stream {
    struct request *request;
    struct stream_part {
        struct tp_op op;
        struct mail mail; /* that it is free again */
        int rc;           /* and how it ended */
        struct stream *of;
        bool busy;
    } part[WINDOW];
    uint32_t under_way; /* parts that are busy */
    size_t chunk;       /* bytes of the next fragment */
    bool broken;        /* a fragment failed: the peer is lost, or will be found to be */
    bool abandoned;     /* it is: the request ends when no part is busy */
};

/* ---- the sender ---- */

static struct stream *stream_of(const struct request *r) { return r->xfer; }

/* Bytes of a fragment that goes out from where it lies. */
static size_t most_of(const struct request *r) { return min_size((size_t)limits_chunk.streamed, r->cookie[MOST]); }

/* It is there: pt_offer_start has seen to that. */
static struct peer_lane *entry_of(const struct request *r) { return peer_lane_of(r->peer, lane_of(r)->number); }

static void let_go(struct request *r)
{
    r->cookie[GOING] = true;
    entry_of(r)->streams++;
    worklist_push(&lane_of(r)->steps, &lane_of(r)->rndv.streams, r);
    lane_adds_work(lane_of(r));
}

static void enlist(struct request *r)
{
    struct peer_lane *w = entry_of(r);
    r->cookie[GOING] = false;
    if (w->streams < STREAMS_MAX)
        let_go(r);
    else
        list_push(&w->streams_waiting, &r->link);
}

/* The next one takes its place. */
static void delist(struct request *r)
{
    struct peer_lane *w = entry_of(r);
    if (!r->cookie[GOING]) {
        list_remove(&r->link);
        return;
    }
    worklist_remove(&lane_of(r)->rndv.streams, r);
    w->streams--;
    if (!list_empty(&w->streams_waiting)) let_go(container_of(list_pop(&w->streams_waiting), struct request, link));
}

static void start_stream(struct request *r)
{
    struct stream *s = NULL;
    if (ways_best(r->peer, WAY_IN_PLACE, r->type->contig, r->bytes) == WAY_IN_PLACE)
        s = calloc(1, sizeof *s); /* none: it goes the other way */
    r->xfer = s;
    if (s) {
        s->request = r;
        s->chunk = min_size(FIRST_CHUNK, most_of(r));
    }
    enlist(r);
}

/* Out of the list; the request is the caller's to finish. */
static void stop_stream(struct request *r)
{
    free(r->xfer);
    r->xfer = NULL;
    delist(r);
}

static void on_cts(struct lane *l, struct pt_comm *pt, struct peer *from, uint64_t h0, uint64_t h1, const void *data, size_t n)
{
    struct pt_cts cts = {0, 0, 0};
    (void)pt;
    struct id_entry *e = n == sizeof cts ? ids_find(&l->ids, h0, from, AWAIT_CTS) : NULL;
    if (likely(e != NULL)) memcpy(&cts, data, sizeof cts);
    if (unlikely(!e || cts.bytes > (uint64_t)e->request->bytes)) {
        pt_violation(from, "it asks for %llu bytes of a message that was not offered", (unsigned long long)cts.bytes);
        return;
    }
    struct request *r = e->request;
    if (unlikely(h1 && (h1 != BY_BULK || r->cookie[OFFER] != RTS_BULK || !cts.bytes))) {
        pt_violation(from, "it asks for a message by a way that was not offered");
        return;
    }
    e->awaits &= ~(uint32_t)AWAIT_CTS;
    pt_offer_withdraw(r);
    if (!cts.bytes) { /* at once, and not by a later step: the receiver needs nothing more of us, and may leave */
        lane_finish(r, 0);
        return;
    }
    if (h1 == BY_BULK) {
        pt_bulk_send(r, &cts);
        return;
    }
    r->cookie[SENT] = 0;
    r->cookie[TO_SEND] = cts.bytes;
    r->cookie[TO_REQUEST] = cts.recv;
    r->cookie[MOST] = cts.most ? cts.most : 1;
    start_stream(r);
}

static const struct pt_kind clear_to_send = {AM_CTS, PT_BY_ID, on_cts};

void pt_on_cts(struct peer *from, uint64_t h0, uint64_t h1, const void *data, size_t n)
{
    dispatch(&clear_to_send, from, h0, h1, data, n);
}

static size_t pack_cursor(void *arg, void *to, size_t max) { return type_pack(arg, to, max); }

/* What its next fragment is sent with. */
static unsigned kind_of(const struct request *r) { return r->course & REQ_AHEAD ? AM_AHEAD : AM_FRAG; }
static uint64_t h0_of(const struct request *r) { return r->course & REQ_AHEAD ? r->ctx : r->cookie[TO_REQUEST]; }
static uint64_t h1_of(const struct request *r) { return (r->course & REQ_AHEAD ? r->cookie[NUMBER] << 32 : 0) + r->cookie[SENT]; }

/* Of a message that is packed, or copied by the transport. */
static int send_fragment(struct request *r, struct type_cursor *c, size_t n)
{
    struct tp_ep *ep = &r->peer->ep;
    uint64_t at = r->cookie[SENT];
    int rc;
    type_cursor_seek(c, at);
    if (r->type->contig) {
        rc = ep->am_short(ep, kind_of(r), h0_of(r), h1_of(r), c->buf + at, n);
    } else if (ep->caps & TP_CAP_BCOPY) {
        rc = ep_bcopy(ep, kind_of(r), h0_of(r), h1_of(r), pack_cursor, c, n);
    } else {
        char buf[4096];
        n = type_pack(c, buf, min_size(n, sizeof buf));
        rc = ep->am_short(ep, kind_of(r), h0_of(r), h1_of(r), buf, n);
    }
    if (!rc) {
        r->cookie[SENT] = at + n;
        peer_look_again(r->peer);
    }
    return rc;
}

static int send_copied(struct request *r, int *moved)
{
    struct type_cursor c;
    type_cursor_init(&c, r->type, r->count, r->buf);
    while (r->cookie[SENT] < r->cookie[TO_SEND]) {
        /* two fit into a ring: one is read, one written */
        size_t most = min_size(r->peer->ep.max_short / 2, r->cookie[MOST]);
        size_t n = min_size(most, r->cookie[TO_SEND] - r->cookie[SENT]);
        int rc = send_fragment(r, &c, n);
        if (rc) return rc;
        ++*moved;
    }
    return 0;
}

/* All is with the system. */
static bool all_gone(const struct request *r)
{
    const struct stream *s = stream_of(r);
    return r->cookie[SENT] == r->cookie[TO_SEND] && !(s && s->under_way);
}

static void end_stream(struct request *r)
{
    stop_stream(r);
    lane_finish(r, 0);
}

/* A fragment's memory is free again. During the call that sends it the step goes on, and looks itself: it has not
 * counted the fragment yet, so that all cannot be gone. */
static void part_is_over(struct stream_part *part, int rc)
{
    struct stream *s = part->of;
    struct request *r = s->request;
    part->busy = false;
    s->under_way--;
    if (rc) s->broken = true;
    if (s->abandoned) {
        if (s->under_way) return;
        r->xfer = NULL;
        free(s);
        pt_end_lost(r, r->peer);
    } else if (!s->broken && all_gone(r)) {
        end_stream(r);
    }
}

static void open_part(struct lane *l, struct mail *m)
{
    struct stream_part *part = container_of(m, struct stream_part, mail);
    (void)l;
    part_is_over(part, part->rc);
}

/* By a thread that need not be in the lane: the fragment stays busy until its mail is opened. */
static TERN_COLD void post_part(struct stream_part *part, int rc)
{
    struct lane *l = lane_of(part->of->request);
    enum deliver_hold h = deliver_begin(l, false);
    if (h) {
        part_is_over(part, rc);
        deliver_end(l, h);
        return;
    }
    part->rc = rc;
    part->mail.open = open_part;
    deliver_post(l, &part->mail);
}

static void part_done(struct tp_op *op, int rc)
{
    struct stream_part *part = container_of(op, struct stream_part, op);
    if (unlikely(wires_threaded)) post_part(part, rc);
    else part_is_over(part, rc);
}

static int send_part(struct request *r, struct stream *s, struct stream_part *part)
{
    struct tp_ep *ep = &r->peer->ep;
    uint64_t at = r->cookie[SENT];
    size_t n = min_size(s->chunk, r->cookie[TO_SEND] - at);
    *part = (struct stream_part){.op.done = part_done, .of = s, .busy = true};
    s->under_way++;
    const char *from = (const char *)r->buf + r->type->true_lb + at;
    int rc = ep_zcopy(ep, kind_of(r), h0_of(r), h1_of(r), from, n, &part->op);
    if (!rc) {
        r->cookie[SENT] = at + n;
        return 0;
    }
    part->busy = false;
    s->under_way--;
    return rc;
}

/* Nothing under way since the last look: the wire waits for us, and may have more at a time. */
static void adapt(struct request *r, struct stream *s)
{
    if (!s->under_way && r->cookie[SENT]) s->chunk = min_size(2 * s->chunk, most_of(r));
}

static int send_in_place(struct request *r, struct stream *s, int *moved)
{
    adapt(r, s);
    for (int i = 0; i < WINDOW && r->cookie[SENT] < r->cookie[TO_SEND]; i++) {
        if (s->part[i].busy) continue;
        int rc = send_part(r, s, &s->part[i]);
        if (rc) return rc;
        ++*moved;
    }
    return 0;
}

/* The transport should have said more by now (tp_lost). */
static TERN_COLD int broken(const struct peer *p)
{
    return err_set(TERN_ERR_PEER, "the connection to %s broke while a large message was sent",
                   jobs_long_words(p->index));
}

static int go_on(struct request *r)
{
    struct stream *s = stream_of(r);
    struct peer *p = r->peer;
    int moved = 0, rc = 0;
    if (unlikely(p->lost)) return 0; /* lost.c ends it next */
    if (unlikely(s && s->broken)) rc = broken(p);
    if (!rc) rc = s ? send_in_place(r, s, &moved) : send_copied(r, &moved);
    if (unlikely(rc && rc != TERN_AGAIN)) {
        pt_lose(p);
        return 1;
    }
    if (!all_gone(r)) return moved;
    end_stream(r);
    return 1;
}

/* As much as the system takes: this process may compute next. The helper makes way for it. */
static void push(struct request *r)
{
    struct stream *s = stream_of(r);
    for (int rc = 0, moved = 1; s && !rc && moved && r->cookie[SENT] < r->cookie[TO_SEND] && !lane_in_the_way(lane_of(r));) {
        moved = 0;
        rc = send_in_place(r, s, &moved);
    }
    (void)go_on(r);
}

void pt_stream_ahead(struct request *r, uint64_t number)
{
    r->course |= REQ_AHEAD;
    r->cookie[SENT] = 0;
    r->cookie[TO_SEND] = (uint64_t)r->bytes;
    r->cookie[NUMBER] = number;
    r->cookie[MOST] = UINT64_MAX;
    start_stream(r);
    push(r);
}

/* The receiver is lost: ends the send as soon as its memory is free. */
static void abandon(struct request *r)
{
    struct stream *s = stream_of(r);
    if (!s || !s->under_way) {
        stop_stream(r);
        pt_end_lost(r, r->peer);
        return;
    }
    s->abandoned = true;
    delist(r);
}

/* ---- the step ---- */

static int poll(struct step *s) { return worklist_all(worklist_of(s), go_on); }

static bool is_busy_with(const struct step *s, const struct peer *p)
{
    const struct peer_lane *w = peer_lane_of((struct peer *)(uintptr_t)p, lane_of_step(s)->number);
    return w && (w->streams || !list_empty(&w->streams_waiting));
}

/* Sends of which nothing more is said, and receives that fragments come to. */
static void end_peer(struct step *s, struct peer *p)
{
    uint32_t at = 0;
    ahead_lost(lane_of_step(s), p);
    for (struct id_entry *e; (e = ids_next(&lane_of_step(s)->ids, p, &at)); at++) {
        struct request *r = e->request;
        if (!r || e->awaits & (AWAIT_BULK | AWAIT_CTS | AWAIT_ACK)) continue;
        e->awaits &= ~(uint32_t)AWAIT_CANCELLED;
        if (r->kind == REQ_RECV) pt_end_lost(r, p);
        else abandon(r);
    }
}

static const struct step_ops ops = {.name = "large messages in fragments",
                                    .poll = poll,
                                    .room = true,
                                    .idle = step_waits,
                                    .drained = worklist_is_empty,
                                    .busy_with = is_busy_with,
                                    .peer_end = end_peer};

void stream_open(struct lane *l) { worklist_open(&l->steps, &l->rndv.streams, &ops); }

/* ---- the receiver ---- */

void pt_stream_ask(struct request *r, struct peer *from, uint64_t send, uint64_t bytes)
{
    struct pt_cts cts = {0, bytes, r->type->contig ? UINT64_MAX : GAPS_CHUNK};
    r->cookie[ARRIVED] = r->cookie[SEEN] = 0;
    if (bytes) {
        if (ids_give(&lane_of(r)->ids, r, AWAIT_FRAG)) lane_fatal("a large message cannot be received");
        cts.recv = r->id;
    }
    ahead_expect(from, (int64_t)bytes);
    lane_say(lane_of(r), from, AM_CTS, send, 0, &cts, sizeof cts);
    if (!bytes) lane_finish(r, -(int)r->cookie[FAULT]);
}

/* The receive that this fragment is the next one of, NULL: there is none. */
static struct request *next_of(struct lane *l, struct peer *from, uint64_t id, uint64_t offset, size_t n)
{
    struct id_entry *e = ids_find(&l->ids, id, from, AWAIT_FRAG);
    struct request *r = e ? e->request : NULL;
    if (unlikely(!r || !n || offset != r->cookie[ARRIVED])) return NULL;
    return n <= (uint64_t)r->result.bytes - offset ? r : NULL;
}

static char *place_of(const struct request *r, uint64_t offset)
{
    return r->type->contig ? (char *)r->buf + r->type->true_lb + offset : NULL;
}

/* The same, for a thread that is in the wire only. With the lock of the ids, which the request's end takes. */
static struct request *next_seen(struct lane *l, struct peer *from, uint64_t id, uint64_t offset, size_t n)
{
    struct id_entry *e = ids_find(&l->ids, id, from, AWAIT_FRAG);
    struct request *r = e ? e->request : NULL;
    if (unlikely(!r || !n || offset != r->cookie[SEEN])) return NULL;
    return n <= (uint64_t)r->result.bytes - offset ? r : NULL;
}

/* NULL: the fragment has no place of its own, or cannot be. `over`: its handler has been called, and the next one follows. */
static void *see(struct peer *from, uint64_t id, uint64_t offset, size_t n, bool over)
{
    struct lane *l = lanes_of_id(id);
    ids_lock(&l->ids);
    struct request *r = next_seen(l, from, id, offset, n);
    void *to = r ? place_of(r, offset) : NULL;
    if (r && over) r->cookie[SEEN] += n;
    ids_unlock(&l->ids);
    return to;
}

void *pt_sink_frag(struct peer *from, uint64_t h0, uint64_t h1, size_t n)
{
    if (from->lost) return NULL;
    if (unlikely(wires_threaded)) return see(from, h0, h1, n, false);
    const struct request *r = next_of(lanes_of_id(h0), from, h0, h1, n);
    return r ? place_of(r, h1) : NULL;
}

static void unpack(struct request *r, uint64_t offset, const void *data, size_t n)
{
    struct type_cursor c;
    type_cursor_init(&c, r->type, r->count, r->buf);
    type_cursor_seek(&c, offset);
    type_unpack(&c, data, n);
}

static void on_frag(struct lane *l, struct pt_comm *pt, struct peer *from, uint64_t h0, uint64_t h1, const void *data, size_t n)
{
    (void)pt;
    struct request *r = next_of(l, from, h0, h1, n);
    if (unlikely(!r)) {
        pt_violation(from, "%zu bytes at %llu of a message that they are not the next ones of", n,
                     (unsigned long long)h1);
        return;
    }
    char *to = place_of(r, h1);
    if (!to)
        unpack(r, h1, data, n);
    else if (to != data)
        copy_part(to, data, n, (size_t)r->result.bytes);
    r->cookie[ARRIVED] += n;
    if (r->cookie[ARRIVED] == (uint64_t)r->result.bytes) lane_finish(r, -(int)r->cookie[FAULT]);
}

static const struct pt_kind fragment = {AM_FRAG, PT_BY_ID, on_frag};

/* What has gone to where it belongs need not be copied until the lane is free. */
static void deliver_frag(struct peer *from, uint64_t h0, uint64_t h1, const void *data, size_t n)
{
    if (from->lost) return;
    deliver_message(&fragment, from, h0, h1, data, n, see(from, h0, h1, n, true) == data);
}

void pt_on_frag(struct peer *from, uint64_t h0, uint64_t h1, const void *data, size_t n)
{
    if (unlikely(wires_threaded)) deliver_frag(from, h0, h1, data, n);
    else dispatch(&fragment, from, h0, h1, data, n);
}
