/*
 * out.c - the sending side of a peer: messages become segments, and segments are
 * sent until they are acknowledged.
 *
 * Losses are told by what overtook a segment, in the order of transmissions and not of
 * numbers; so a segment that was sent again and lost again is noticed as well, without
 * waiting for the timer.
 */
#include "transport/dgram/state.h"

#include "base/err.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct segment *segment_of(const struct dgram_peer *p, uint64_t seq) { return &p->out[seq % DGRAM_WINDOW]; }

void out_open(struct dgram_peer *p)
{
    list_init(&p->queue);
    p->cwnd = CWND_FIRST;
    p->ssthresh = p->ep->window;
    p->edge = min_size(p->ep->window, CWND_FIRST);
    p->rto = RTO_FIRST;
    p->lull = RTO_FIRST;
    p->timer = NEVER;
}

/* Messages are done last of all: their owners may call us. */
void out_close(struct dgram_peer *p, int code)
{
    char words[256];
    snprintf(words, sizeof words, "%s", err_words());
    struct link given_up;
    list_init(&given_up);
    while (!list_empty(&p->queue)) list_push(&given_up, list_pop(&p->queue));
    free(p->out);
    p->out = NULL;
    p->cutting = NULL;
    p->una = p->next;
    p->outstanding = p->lost = 0;
    p->timer = NEVER;
    for (struct link *l; (l = list_pop(&given_up));) {
        struct dgram_message *m = container_of(l, struct dgram_message, link);
        err_set(code, "%s", words);
        m->done(m, code);
    }
}

int dgram_send(struct dgram_peer *p, struct dgram_message *m)
{
    if (m->n > DGRAM_MESSAGE)
        return err_set(TERN_ERR_ARG,
                       "a message of %zu bytes is too long for datagrams, which take %zu; use a connection", m->n,
                       DGRAM_MESSAGE);
    if (p->dead) return err_set(TERN_ERR_PEER, "%s", p->why);
    if (!p->out && !(p->out = calloc(DGRAM_WINDOW, sizeof *p->out)))
        return err_set(TERN_ERR_NOMEM, "no memory for sending datagrams");
    if (!out_sends(p)) {
        p->news = 0;
        p->rounds = 0;
        p->timer = NEVER;
    }
    list_push(&p->queue, &m->link);
    p->prompt = true;
    if (!p->cutting) {
        p->cutting = m;
        p->cut = 0;
    }
    dgram_peer_busy(p);
    if (!p->ep->inside) progress_hurry(&p->ep->step);
    return 0;
}

void dgram_watch(struct dgram_peer *p, bool on)
{
    if (p->dead || p->watched == on) return;
    p->watched = on;
    p->lull = RTO_FIRST;
    if (out_sends(p)) return;
    p->timer = NEVER;
    if (!on) return;
    p->news = 0;
    p->rounds = 0;
    p->prompt = true;
    dgram_peer_busy(p);
    progress_hurry(&p->ep->step);
}

/* ---- what the peer says ---- */

static void measure(struct dgram_peer *p, uint64_t trip)
{
    uint64_t off = p->srtt > trip ? p->srtt - trip : trip - p->srtt;
    p->rttvar = p->srtt ? p->rttvar - p->rttvar / 4 + off / 4 : trip / 2;
    p->srtt = p->srtt ? p->srtt - p->srtt / 8 + trip / 8 : trip + 1;
    p->rto = max_size(RTO_LEAST, min_size(RTO_MOST, p->srtt + 4 * p->rttvar));
}

static void rearm(struct dgram_peer *p)
{
    p->timer = out_sends(p) ? p->ep->now + p->rto : p->watched ? p->ep->now + p->lull : NEVER;
}

static void news(struct dgram_peer *p)
{
    p->news = p->ep->now;
    p->rounds = 0;
    rearm(p);
}

static void lose(struct dgram_peer *p, struct segment *s)
{
    s->state = SEGMENT_LOST;
    p->outstanding--;
    p->lost++;
}

/* Takes the news out of an acknowledgement; returns how many segments it is news of, and the last of them that was
 * sent. */
static unsigned mark_there(struct dgram_peer *p, const struct dgram_packet *k, const struct segment **last)
{
    unsigned n = 0;
    for (uint64_t seq = p->una; seq < p->next; seq++) {
        struct segment *s = segment_of(p, seq);
        uint64_t i = seq - k->ack - 1; /* of `got` */
        if (s->state == SEGMENT_THERE ||
            (seq >= k->ack && (seq == k->ack || i >= 128 || !(k->got[i / 64] >> i % 64 & 1))))
            continue;
        if (s->state == SEGMENT_SENT)
            p->outstanding--;
        else
            p->lost--;
        s->state = SEGMENT_THERE;
        if (!*last || s->order > (*last)->order) *last = s;
        n++;
    }
    return n;
}

/* Halves the window, at most once for all losses of one window. */
static void find_losses(struct dgram_peer *p, uint64_t latest)
{
    unsigned before = p->outstanding;
    bool fresh = false;
    for (uint64_t seq = p->una; seq < p->next; seq++) {
        struct segment *s = segment_of(p, seq);
        if (s->state != SEGMENT_SENT || s->order + OVERTAKEN > latest) continue;
        fresh |= s->order > p->recovery;
        lose(p, s);
    }
    if (!fresh) return;
    p->cwnd = p->ssthresh = before / 2 > CWND_LEAST ? before / 2 : CWND_LEAST;
    p->recovery = p->order;
}

static void grow(struct dgram_peer *p, unsigned n)
{
    if (p->cwnd < p->ssthresh) {
        p->cwnd += n;
    } else if ((p->credit += n) >= p->cwnd) {
        p->credit = 0;
        p->cwnd++;
    }
    if (p->cwnd > p->ep->window) p->cwnd = p->ep->window;
}

static void complete(struct dgram_peer *p, uint64_t ack)
{
    while (p->una < ack) {
        struct segment *s = segment_of(p, p->una++);
        struct dgram_message *m = s->message;
        if ((size_t)s->at + s->n < m->n) continue;
        list_remove(&m->link);
        m->done(m, 0);
        if (p->dead || p->forgotten) return;
    }
}

void out_take_ack(struct dgram_peer *p, const struct dgram_packet *k)
{
    const struct segment *last = NULL;
    if (k->ack > p->next) return; /* of what was never sent: not possible with the right key */
    if (k->ack + k->window > p->edge) {
        p->edge = k->ack + k->window;
        news(p);
    }
    if (k->type == DGRAM_ACK && p->probe && k->seq == p->probe) {
        p->probe++;
        if (p->una == p->next) news(p); /* else it has taken back what it said: no reason to wait for it forever */
    }
    unsigned n = mark_there(p, k, &last);
    if (!n) return;
    if (!last->again) measure(p, p->ep->now - last->sent);
    find_losses(p, last->order);
    grow(p, n);
    complete(p, k->ack);
    if (!p->dead && !p->forgotten) news(p);
}

/* ---- what is sent ---- */

void out_resend_all(struct dgram_peer *p)
{
    for (uint64_t seq = p->una; p->outstanding; seq++)
        if (segment_of(p, seq)->state == SEGMENT_SENT) lose(p, segment_of(p, seq));
}

static bool transmit(struct dgram_peer *p, uint64_t seq, struct segment *s)
{
    struct dgram_packet k;
    dgram_packet_start(p, DGRAM_DATA, &k);
    k.seq = seq;
    k.left = (uint32_t)(s->message->n - s->at);
    if (!s->at) k.flags |= DGRAM_START;
    k.data = (const uint8_t *)s->message->data + s->at;
    k.n = s->n;
    if (!dgram_packet_send(p->ep, &p->card.addr, &k)) return false;
    p->owes = false;
    s->order = ++p->order;
    s->sent = p->ep->now;
    s->state = SEGMENT_SENT;
    p->outstanding++;
    if (p->timer == NEVER) rearm(p);
    return true;
}

static bool transmit_lost(struct dgram_peer *p)
{
    uint64_t seq = p->una;
    while (segment_of(p, seq)->state != SEGMENT_LOST) seq++;
    if (!transmit(p, seq, segment_of(p, seq))) return false;
    segment_of(p, seq)->again = true;
    p->lost--;
    p->ep->stats.resent++;
    return true;
}

static size_t segment_size(const struct dgram_peer *p)
{
    size_t mtu = min_size(p->ep->wire->mtu, p->card.mtu);
    return mtu - DGRAM_HEADER - (p->heard ? 0 : DGRAM_CARD);
}

static bool transmit_new(struct dgram_peer *p)
{
    struct dgram_message *m = p->cutting;
    struct segment *s = segment_of(p, p->next);
    *s =
        (struct segment){.message = m, .at = (uint32_t)p->cut, .n = (uint32_t)min_size(m->n - p->cut, segment_size(p))};
    if (!transmit(p, p->next, s)) return false;
    p->next++;
    p->ep->stats.segments++;
    p->cut += s->n;
    if (p->cut < m->n) return true;
    p->cutting = m->link.next == &p->queue ? NULL : container_of(m->link.next, struct dgram_message, link);
    p->cut = 0;
    return true;
}

static bool transmit_some(struct dgram_peer *p)
{
    if (p->outstanding >= p->cwnd) return false;
    if (p->lost) return transmit_lost(p);
    return p->cutting && p->next < p->edge && p->next - p->una < p->ep->window && transmit_new(p);
}

/* The peer takes nothing more, or so it seems: what it said since may have been lost. */
static void ask(struct dgram_peer *p)
{
    struct dgram_packet k;
    dgram_packet_start(p, DGRAM_PROBE, &k);
    p->probe += !p->probe;
    k.seq = p->probe;
    if (dgram_packet_send(p->ep, &p->card.addr, &k)) p->owes = false;
}

static void give_up(struct dgram_peer *p)
{
    struct dgram_wire *w = p->ep->wire;
    bool refused = w->trouble && dgram_addr_same(&w->trouble_to, &p->card.addr);
    char where[96];
    w->ops->text(w, &p->card.addr, where, sizeof where);
    if (p->replaced)
        err_set(TERN_ERR_PEER, "the process at %s has gone; another one has its address now", where);
    else
        err_set(TERN_ERR_PEER,
                "no answer from %s by %s for %.1f s or more (TERN_DGRAM_TIMEOUT)%s%s; is the process still there, and does a "
                "firewall let %s pass?",
                where, w->ops->name, (double)(p->ep->now - p->news) / 1e9,
                refused ? ": the last datagram was refused: " : "", refused ? strerror(w->trouble) : "",
                w->ops->name);
    dgram_peer_fail(p, TERN_ERR_PEER);
}

static uint64_t patience(const struct dgram_peer *p)
{
    const struct dgram_wire *w = p->ep->wire;
    bool near = p->heard && w->ops->near && w->ops->near(w, &p->card.addr);
    return near ? DGRAM_NEAR * p->ep->patience : p->ep->patience;
}

static void on_timer(struct dgram_peer *p)
{
    p->ep->stats.rounds++;
    if (++p->rounds >= ROUNDS && (p->replaced || p->ep->now - p->news >= patience(p))) {
        give_up(p);
        return;
    }
    uint64_t *wait = out_sends(p) ? &p->rto : &p->lull;
    *wait = min_size(2 * *wait, RTO_MOST);
    if (p->outstanding) {
        p->ssthresh = p->outstanding / 2 > CWND_LEAST ? p->outstanding / 2 : CWND_LEAST;
        p->cwnd = 2;
        p->recovery = p->order;
        out_resend_all(p);
    } else if (p->heard && !p->lost) {
        ask(p);
    }
    rearm(p);
}

void out_progress(struct dgram_peer *p)
{
    p->prompt = false;
    if (!out_waits(p)) return;
    if (!p->news) p->news = p->ep->now;
    if (p->timer <= p->ep->now) on_timer(p);
    if (p->dead) return;
    while (transmit_some(p)) continue;
    if (p->timer == NEVER) rearm(p);
}
