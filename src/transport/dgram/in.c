/*
 * in.c - the receiving side of a peer: segments become messages, in order.
 *
 * Memory: what has come of one message, at most twice, and a window of segments that came before their
 * turn; all of it is counted, as that of newcomers is bounded. While a message waits to be taken, no segment's turn comes; so the window fills,
 * and the other side stops.
 */
#include "transport/dgram/state.h"

#include "base/err.h"

#include <stdlib.h>
#include <string.h>

static void count(struct dgram_peer *p, size_t more, size_t less)
{
    p->bytes += more - less;
    if (dgram_peer_is_new(p)) p->ep->newcomer_bytes += more - less;
}

static bool is_stored(const struct dgram_peer *p, uint64_t seq)
{
    return p->stored && seq - p->expected < p->ep->window && p->in[seq % DGRAM_WINDOW];
}

/* Of a message that is held, the other side is told all the same that it came, so that it does not send it again. */
void in_tell(const struct dgram_peer *p, struct dgram_packet *k)
{
    k->ack = p->expected;
    while (is_stored(p, k->ack)) k->ack++;
    k->window = (uint16_t)(p->expected + p->ep->window - k->ack);
    k->got[0] = k->got[1] = 0;
    for (unsigned i = 0; p->stored && i < DGRAM_WINDOW; i++)
        if (is_stored(p, k->ack + 1 + i)) k->got[i / 64] |= (uint64_t)1 << i % 64;
}

void in_close(struct dgram_peer *p)
{
    for (unsigned i = 0; p->in && i < DGRAM_WINDOW; i++) free(p->in[i]);
    free(p->in);
    free(p->whole);
    p->in = NULL;
    p->whole = NULL;
    p->room = 0;
    p->stored = 0;
    count(p, 0, p->bytes);
}

/* The call-back may forget the peer, and look at the message still. */
static void offer(struct dgram_peer *p)
{
    struct dgram *ep = p->ep;
    char *whole = p->whole;
    p->whole = NULL;
    p->held = !ep->deliver(ep->arg, p, whole, p->total);
    if (p->held && !p->forgotten) {
        p->whole = whole;
        return;
    }
    ep->stats.messages++;
    free(whole);
    if (p->forgotten) return;
    count(p, 0, p->room);
    p->room = 0;
    dgram_peer_known(p);
}

static void nonsense(struct dgram_peer *p)
{
    char where[96];
    p->ep->wire->ops->text(p->ep->wire, &p->card.addr, where, sizeof where);
    err_set(TERN_ERR_INTERN,
            "the process at %s sent a piece that belongs to no message; is it another version of Tern?", where);
    dgram_peer_fail(p, TERN_ERR_INTERN);
}

/* Room for n bytes more of the message that is coming. */
static bool make_room(struct dgram_peer *p, size_t n)
{
    size_t room = min_size(p->total, max_size(p->have + n, max_size(2 * p->room, FIRST_ROOM)));
    if (p->whole && p->have + n <= p->room) return true;
    char *whole = realloc(p->whole, room ? room : 1);
    if (!whole) return false;
    count(p, room, p->room);
    p->whole = whole;
    p->room = room;
    return true;
}

/* The segment whose turn it is. false: there is no memory for it now. */
static bool append(struct dgram_peer *p, bool start, uint32_t left, const void *data, size_t n)
{
    bool fits = n <= left && (n || !left) &&
                (start ? !p->whole && left <= DGRAM_MESSAGE : p->whole && left == p->total - p->have);
    if (!fits) return nonsense(p), false;
    if (start) {
        p->total = left;
        p->have = 0;
    }
    if (!make_room(p, n)) return false;
    if (n) memcpy(p->whole + p->have, data, n);
    p->have += n;
    p->expected++;
    if (p->have == p->total) offer(p);
    return true;
}

/* Those stored whose turn has come. */
static void unstore(struct dgram_peer *p)
{
    while (p->stored && !p->held && !p->dead && !p->forgotten) {
        struct stored **place = &p->in[p->expected % DGRAM_WINDOW], *s = *place;
        if (!s || !append(p, s->start, s->left, s->data, s->n) || p->forgotten || p->dead) return;
        *place = NULL;
        p->stored--;
        count(p, 0, sizeof *s + s->n);
        free(s);
    }
}

static void store(struct dgram_peer *p, const struct dgram_packet *k)
{
    if (!p->in) p->in = calloc(DGRAM_WINDOW, sizeof *p->in);
    struct stored **place = p->in ? &p->in[k->seq % DGRAM_WINDOW] : NULL;
    if (!place) return;
    if (*place) {
        p->ep->stats.twice++;
        return;
    }
    *place = malloc(sizeof **place + k->n);
    if (!*place) return;
    **place = (struct stored){k->flags & DGRAM_START, k->left, (uint32_t)k->n};
    memcpy((*place)->data, k->data, k->n);
    p->stored++;
    count(p, sizeof **place + k->n, 0);
}

void in_take(struct dgram_peer *p, const struct dgram_packet *k)
{
    bool first = !p->owes;
    p->owes = true;
    dgram_peer_busy(p);
    if (k->seq < p->expected) {
        p->ep->stats.twice++;
        return;
    }
    if (p->deaf || k->seq - p->expected >= p->ep->window) return;
    p->came = p->ep->now;
    if (k->seq > p->expected || p->held) {
        store(p, k);
    } else if (append(p, k->flags & DGRAM_START, k->left, k->data, k->n)) {
        unstore(p);
        p->answerable = first && !in_waits(p);
    }
}

void dgram_deafen(struct dgram_peer *p) { p->deaf = true; }

void in_progress(struct dgram_peer *p)
{
    if (p->held) {
        offer(p);
        if (p->forgotten || p->held) return;
        p->owes = true;       /* the other side may be waiting for room, */
        p->came = p->ep->now; /* and was not silent for its own sake */
    }
    unstore(p);
    if (p->dead || p->forgotten || !in_waits(p) || p->held) return;
    if (p->ep->now - p->came < 2 * p->ep->patience) return;
    char where[96];
    p->ep->wire->ops->text(p->ep->wire, &p->card.addr, where, sizeof where);
    err_set(TERN_ERR_PEER, "the process at %s fell silent for %.1f s or more in the middle of a message", where,
            (double)(p->ep->now - p->came) / 1e9);
    dgram_peer_fail(p, TERN_ERR_PEER);
}
