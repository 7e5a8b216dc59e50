/*
 * dgram.c - an endpoint: its peers, which packets are for them, and what becomes of the
 * other packets.
 *
 * Why old packets do no harm. An endpoint's id is random and new. A packet for another id
 * (an earlier process at this address) is dropped. An old packet of a peer has a segment
 * number that has been received. A packet of a process that is no peer makes it one only if it
 * introduces its sender, as all do until the sender has heard from this endpoint. So an old
 * introduction could make a forgotten process a peer again, and its messages be delivered again.
 * Therefore the endpoint remembers the peers that it has forgotten (past.h). When they become too
 * many for that, the endpoint's epoch changes: an introduction with another epoch is answered
 * with the new epoch and nothing else, and only a living process can repeat it with that.
 *
 * The address of a peer is the one that its packets contain, which the tag covers, and not the one
 * that they came from, since a stranger can send a copy from elsewhere. Answers to processes that
 * are no peers go to the address that the packet came from; they are never longer than it.
 */
#include "transport/dgram/state.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/var.h"
#include "transport/dgram/faults.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BATCH 64 /* datagrams taken before answers are sent */

void dgram_params_init(struct dgram_params *params)
{
    int64_t seconds = var_int(VAR_DGRAM_TIMEOUT);
    *params = (struct dgram_params){
        .patience = (uint64_t)(seconds > 0 ? seconds : 1) * 1000000000u, .window = DGRAM_WINDOW, .seq_bits = 32};
}

static int check(const struct dgram_params *params)
{
    unsigned bits = params->seq_bits;
    if (params->wire->mtu < DGRAM_MTU_MIN)
        return err_set(TERN_ERR_ARG, "datagrams of %u bytes are too short; %d are needed", params->wire->mtu,
                       DGRAM_MTU_MIN);
    if (bits < 8 || bits > 32 || params->window < 2 || params->window > DGRAM_WINDOW ||
        params->window >= 1u << (bits - 1))
        return err_set(TERN_ERR_ARG, "a window of %u segments with numbers of %u bits cannot be", params->window, bits);
    return 0;
}

static void begin(struct dgram *ep, const struct dgram_params *params)
{
    static const char purpose[] = "Tern datagrams 1"; /* a key of their own: no other protocol's tag is one of these */
    ep->crypto = params->crypto;
    ep->patience = params->patience;
    ep->window = params->window;
    ep->seq_bits = params->seq_bits;
    ep->arg = params->arg;
    ep->deliver = params->deliver;
    ep->failed = params->failed;
    ep->epoch = 1;
    ep->crypto->tag(ep->key, purpose, sizeof purpose, params->secret);
    while (!ep->id) ep->crypto->random(&ep->id, sizeof ep->id);
    list_init(&ep->peers);
    list_init(&ep->busy);
    list_init(&ep->dying);
    list_init(&ep->newcomers);
    for (int i = 0; i < PEER_BUCKETS; i++) list_init(&ep->buckets[i]);
    past_open(&ep->past);
}

static int step_poll(struct step *s)
{
    struct dgram *ep = container_of(s, struct dgram, step);
    uint64_t now = clock_ns();
    uint64_t taken = ep->stats.messages;
    bool late = dgram_next_timeout(ep) <= now; /* then a message or a peer may end without a datagram */
    return dgram_progress(ep, now) + (int)(ep->stats.messages - taken) + late;
}

static uint64_t step_due(const struct step *s) { return dgram_next_timeout(container_of(s, struct dgram, step)); }

/* A look takes what a look at any socket takes. */
static const struct step_ops dgram_steps = {.name = "datagrams", .poll = step_poll, .poll_ns = 320, .due = step_due};

struct step *dgram_step(struct dgram *ep) { return &ep->step; }

int dgram_open(struct dgram **ep_p, const struct dgram_params *params)
{
    struct dgram *ep = NULL;
    struct dgram_wire *wire = params->wire;
    int rc = check(params);
    if (!rc) rc = faults_wrap(&wire, var_text(VAR_DGRAM_FAULTS));
    if (!rc && !(ep = calloc(1, sizeof *ep))) rc = err_set(TERN_ERR_NOMEM, "no memory for a datagram endpoint");
    if (rc) {
        wire->ops->close(wire);
        return rc;
    }
    begin(ep, params);
    ep->wire = wire;
    ep->step = (struct step){.ops = &dgram_steps, .fd = wire->fd};
    *ep_p = ep;
    return 0;
}

static struct dgram_card own_card(const struct dgram *ep)
{
    return (struct dgram_card){ep->id, ep->epoch, (uint16_t)ep->wire->mtu, ep->wire->kind, ep->wire->own};
}

size_t dgram_card(const struct dgram *ep, uint8_t *bytes)
{
    struct dgram_card c = own_card(ep);
    return dgram_card_write(bytes, &c);
}

/* ---- peers ---- */

static struct link *bucket_of(struct dgram *ep, uint64_t id) { return &ep->buckets[id % PEER_BUCKETS]; }

static struct dgram_peer *find(struct dgram *ep, uint64_t id)
{
    list_each(l, next, bucket_of(ep, id))
    {
        struct dgram_peer *p = container_of(l, struct dgram_peer, bucket);
        if (p->card.id == id) return p;
    }
    return NULL;
}

static struct dgram_peer *add(struct dgram *ep, const struct dgram_card *card)
{
    struct dgram_peer *p = calloc(1, sizeof *p);
    if (!p) return NULL;
    p->ep = ep;
    p->card = *card;
    p->came = ep->now;
    out_open(p);
    list_push(bucket_of(ep, card->id), &p->bucket);
    list_push(&ep->peers, &p->all);
    list_init(&p->busy);
    list_init(&p->newcomer);
    return p;
}

void dgram_peer_known(struct dgram_peer *p)
{
    if (!dgram_peer_is_new(p)) return;
    list_remove(&p->newcomer);
    p->ep->newcomers_now--;
    p->ep->newcomer_bytes -= p->bytes;
}

void dgram_peer_busy(struct dgram_peer *p)
{
    if (list_empty(&p->busy)) list_push(&p->ep->busy, &p->busy);
}

static int nobody_listens(const struct dgram *ep, const struct dgram_addr *a)
{
    char where[96];
    ep->wire->ops->text(ep->wire, a, where, sizeof where);
    return err_set(TERN_ERR_PEER, "nobody listens at %s: the process has gone, or has closed what it had there", where);
}

int dgram_peer_open(struct dgram *ep, const void *bytes, size_t n, struct dgram_peer **peer_p)
{
    struct dgram_card card;
    if (!dgram_card_read(bytes, n, &card))
        return err_set(TERN_ERR_ARG, "no card of a datagram endpoint of this version of Tern");
    if (card.kind != ep->wire->kind || !ep->wire->ops->valid(ep->wire, &card.addr))
        return err_set(TERN_ERR_ARG, "the other process cannot be reached by %s", ep->wire->ops->name);
    if (card.id == ep->id) return err_set(TERN_ERR_ARG, "a process needs no datagrams to itself");
    if (past_find(&ep->past, card.id))
        return err_set(TERN_ERR_PEER, "that process has been disconnected from for good");
    if (dgram_addr_same(&card.addr, &ep->wire->own)) return nobody_listens(ep, &card.addr); /* this endpoint has been given it since */
    struct dgram_peer *p = find(ep, card.id);
    if (!p && !(p = add(ep, &card))) return err_set(TERN_ERR_NOMEM, "no memory for a datagram peer");
    dgram_peer_known(p);
    *peer_p = p;
    return 0;
}

uint64_t dgram_id(const struct dgram *ep) { return ep->id; }
const struct dgram_addr *dgram_peer_addr(const struct dgram_peer *p) { return &p->card.addr; }

uint64_t dgram_peer_id(const struct dgram_peer *p) { return p->card.id; }

void dgram_peer_set_tag(struct dgram_peer *p, void *tag) { p->tag = tag; }
void *dgram_peer_tag(const struct dgram_peer *p) { return p->tag; }

void dgram_peer_fail(struct dgram_peer *p, int code)
{
    struct dgram *ep = p->ep;
    p->dead = true;
    snprintf(p->why, sizeof p->why, "%s", err_words());
    in_close(p);
    out_close(p, code);
    if (p->forgotten || !ep->failed) return;
    err_set(code, "%s", p->why);
    ep->failed(ep->arg, p, code);
}

static void reap(struct dgram *ep)
{
    for (struct link *l; (l = list_pop(&ep->dying));) free(container_of(l, struct dgram_peer, all));
}

static void send_ack(struct dgram_peer *p)
{
    struct dgram_packet k;
    dgram_packet_start(p, DGRAM_ACK, &k);
    k.seq = p->echo;
    if (dgram_packet_send(p->ep, &p->card.addr, &k)) p->owes = p->asked = false;
}

/* What had no room in the carrier may have some now. */
static void flush(struct dgram *ep)
{
    ep->wire->ops->flush(ep->wire, ep->now);
    if (ep->wire->ops->due(ep->wire) == NEVER) ep->full = false;
}

/* It is freed when no caller up the stack has it any more. */
static void leave(struct dgram_peer *p)
{
    dgram_peer_known(p);
    p->forgotten = true;
    list_remove(&p->bucket);
    list_remove(&p->busy);
    list_remove(&p->all);
    list_push(&p->ep->dying, &p->all);
    in_close(p);
}

void dgram_forget(struct dgram_peer *p)
{
    struct dgram *ep = p->ep;
    struct dgram_packet k;
    in_tell(p, &k);
    struct past_peer past = {.id = p->card.id, .expected = k.ack, .una = p->una, .when = ep->now};
    if (p->forgotten) return;
    if (p->owes && !p->dead) send_ack(p); /* the peer need not wait for it until it is told that this one has gone */
    if (past_add(&ep->past, &past, 2 * ep->patience)) ep->epoch++;
    leave(p);
    err_set(TERN_ERR_PEER, "the connection was given up by this process");
    out_close(p, TERN_ERR_PEER);
    if (ep->inside) return;
    flush(ep);
    reap(ep);
}

void dgram_close(struct dgram *ep)
{
    ep->inside = true;
    while (!list_empty(&ep->peers)) dgram_forget(container_of(ep->peers.next, struct dgram_peer, all));
    flush(ep);
    reap(ep);
    past_close(&ep->past);
    ep->wire->ops->close(ep->wire);
    free(ep);
}

/* ---- packets that leave ---- */

void dgram_packet_start(const struct dgram_peer *p, unsigned type, struct dgram_packet *k)
{
    *k = (struct dgram_packet){.type = (uint8_t)type, .epoch = p->card.epoch, .from = p->ep->id, .to = p->card.id};
    in_tell(p, k);
    if (!p->heard) k->flags = DGRAM_FIRST;
}

bool dgram_packet_send(struct dgram *ep, const struct dgram_addr *to, const struct dgram_packet *k)
{
    uint8_t card[DGRAM_CARD], *bytes = ep->wire->ops->room(ep->wire);
    struct dgram_packet own = *k;
    if (!bytes) {
        ep->full = true;
        return false;
    }
    if (k->flags & DGRAM_FIRST) {
        own.card_len = (uint8_t)dgram_card(ep, card);
        own.card = card;
    }
    if (k->n) memcpy(bytes + DGRAM_HEADER + own.card_len, k->data, k->n);
    ep->wire->ops->send(ep->wire, to, dgram_packet_write(bytes, &own, ep->seq_bits, ep->crypto, ep->key));
    ep->stats.acks += k->type != DGRAM_DATA;
    return true;
}

/* ---- packets that come ---- */

static bool wants_answer(const struct dgram_packet *k) { return k->type == DGRAM_DATA || k->type == DGRAM_PROBE; }

static void say_gone(struct dgram *ep, const struct dgram_addr *to, const struct dgram_packet *k,
                     const uint64_t *expected)
{
    struct dgram_packet answer = {.type = DGRAM_GONE, .from = ep->id, .to = k->from, .got = {k->to, 0}};
    if (expected) {
        answer.flags = DGRAM_ACKED;
        answer.ack = *expected;
    }
    dgram_packet_send(ep, to, &answer);
}

static void say_door(struct dgram *ep, const struct dgram_addr *to, const struct dgram_packet *k)
{
    struct dgram_packet answer = {.type = DGRAM_DOOR, .epoch = ep->epoch, .from = ep->id, .to = k->from};
    dgram_packet_send(ep, to, &answer);
}

static void take_known(struct dgram_peer *p, const struct dgram_packet *k)
{
    if (k->type == DGRAM_DOOR) {
        if (p->heard || k->epoch <= p->card.epoch) return;
        p->card.epoch = k->epoch;
        out_resend_all(p);
        dgram_peer_busy(p);
        return;
    }
    p->heard = true;
    out_take_ack(p, k);
    if (p->dead || p->forgotten) return;
    if (out_waits(p)) dgram_peer_busy(p);
    if (k->type == DGRAM_DATA) in_take(p, k);
    if (k->type != DGRAM_PROBE) return;
    p->echo = (uint32_t)k->seq;
    p->asked = true;
    dgram_peer_busy(p);
}

/*
 * Nothing of it was taken, and so nothing has to be remembered of it: if it introduces itself again, all of its message comes again. The
 * owner does not know it.
 */
static void drop_newcomer(struct dgram_peer *p)
{
    struct dgram_packet k = {.type = DGRAM_GONE, .flags = DGRAM_CROWDED, .from = p->ep->id, .to = p->card.id, .got = {p->ep->id, 0}};
    dgram_packet_send(p->ep, &p->card.addr, &k);
    p->ep->stats.dropped++;
    leave(p);
    out_close(p, TERN_ERR_PEER);
}

/* Something has come of p, which is a newcomer: it is the last one to go. */
static void bound_newcomers(struct dgram_peer *p)
{
    struct dgram *ep = p->ep;
    list_remove(&p->newcomer);
    list_push(&ep->newcomers, &p->newcomer);
    while ((ep->newcomers_now > DGRAM_NEWCOMERS || ep->newcomer_bytes > DGRAM_NEWCOMER_BYTES) && ep->newcomers.next != &p->newcomer)
        drop_newcomer(container_of(ep->newcomers.next, struct dgram_peer, newcomer));
}

static struct dgram_peer *add_newcomer(struct dgram *ep, const struct dgram_card *card)
{
    struct dgram_peer *p = add(ep, card);
    if (!p) return NULL;
    list_push(&ep->newcomers, &p->newcomer);
    ep->newcomers_now++;
    return p;
}

/* A packet of a process that is no peer. */
static void take_newcomer(struct dgram *ep, const struct dgram_addr *from, const struct dgram_packet *k)
{
    struct dgram_card card;
    struct dgram_peer *p;
    if (!wants_answer(k)) return;
    if (!(k->flags & DGRAM_FIRST)) {
        say_gone(ep, from, k, NULL);
        return;
    }
    if (!dgram_card_read(k->card, k->card_len, &card) || card.id != k->from || card.kind != ep->wire->kind ||
        !ep->wire->ops->valid(ep->wire, &card.addr))
        return;
    if (k->epoch != ep->epoch) {
        say_door(ep, &card.addr, k);
    } else if ((p = add_newcomer(ep, &card))) {
        take_known(p, k);
        if (dgram_peer_is_new(p)) bound_newcomers(p);
    }
}

static void take_gone(struct dgram *ep, const struct dgram_packet *k)
{
    struct dgram_peer *p = find(ep, k->got[0]);
    if (!p || p->dead) return;
    if (k->from != p->card.id) {
        p->replaced = true; /* it fails if nothing is heard of it otherwise: the packet may have been led astray */
        return;
    }
    if (k->flags & DGRAM_ACKED) {
        struct dgram_packet ack = *k;
        ack.got[0] = ack.got[1] = 0;
        out_take_ack(p, &ack);
        if (p->forgotten || p->dead) return;
    }
    char where[96];
    ep->wire->ops->text(ep->wire, &p->card.addr, where, sizeof where);
    if (k->flags & DGRAM_CROWDED)
        err_set(TERN_ERR_PEER, "too many processes call the one at %s at a time, and of those that waited this one was silent for longest",
                where);
    else
        err_set(TERN_ERR_PEER, "the process at %s has disconnected", where);
    dgram_peer_fail(p, TERN_ERR_PEER);
}

/* The numbers of a packet, completed by what is known of its sender. */
static void complete_numbers(const struct dgram *ep, struct dgram_packet *k, uint64_t expected, uint64_t una)
{
    if (k->type == DGRAM_DATA) k->seq = dgram_complete(expected, k->seq, ep->seq_bits);
    if (k->type != DGRAM_DOOR && (k->type != DGRAM_GONE || k->flags & DGRAM_ACKED))
        k->ack = dgram_complete(una, k->ack, ep->seq_bits);
}

static void take(void *arg, const struct dgram_addr *from, void *bytes, size_t n)
{
    struct dgram *ep = arg;
    struct dgram_packet k;
    if (!dgram_packet_parse(bytes, n, &k) || k.from == ep->id) {
        ep->stats.refused++;
        return;
    }
    struct dgram_peer *p = find(ep, k.from);
    struct past_peer *past = p ? NULL : past_find(&ep->past, k.from);
    if (p)
        complete_numbers(ep, &k, p->expected, p->una);
    else if (past)
        complete_numbers(ep, &k, past->expected, past->una);
    else
        complete_numbers(ep, &k, 0, 0);
    if (!dgram_packet_genuine(bytes, n, &k, ep->crypto, ep->key)) {
        ep->stats.refused++;
        return;
    }
    ep->came = ep->now;
    if (k.to != ep->id) {
        if (wants_answer(&k)) say_gone(ep, from, &k, NULL);
    } else if (k.type == DGRAM_GONE) {
        take_gone(ep, &k);
    } else if (past || (p && p->dead)) {
        if (wants_answer(&k)) say_gone(ep, from, &k, past ? &past->expected : &p->expected);
    } else if (p) {
        take_known(p, &k);
        if (dgram_peer_is_new(p)) bound_newcomers(p);
    } else {
        take_newcomer(ep, from, &k);
    }
}

/* Hosts have said that nobody listens at some addresses. */
static void take_refusals(struct dgram *ep)
{
    struct dgram_addr a;
    while (ep->wire->ops->refused && ep->wire->ops->refused(ep->wire, &a))
        list_each(l, next, &ep->peers)
        {
            struct dgram_peer *p = container_of(l, struct dgram_peer, all);
            if (!p->dead && dgram_addr_same(&p->card.addr, &a)) dgram_peer_fail(p, nobody_listens(ep, &a));
        }
}

/* ---- progress ---- */

static void serve(struct dgram_peer *p)
{
    if (!p->dead) in_progress(p);
    if (!p->dead && !p->forgotten) out_progress(p);
    if (!p->dead && !p->forgotten && (p->asked || (p->owes && !p->answerable))) send_ack(p);
    p->answerable = false; /* an answer comes before the next turn, or never */
    if (p->dead || (!p->forgotten && !p->owes && !p->asked && !out_waits(p) && !in_waits(p))) list_remove(&p->busy);
}

/* This process was stopped, or has computed: what came meanwhile is still to be taken, and the others may have been stopped as well. Of
 * their silence, only as much counts as they have between two looks of a process that waits. */
static void forgive(struct dgram *ep, uint64_t gap)
{
    list_each(l, next, &ep->peers)
    {
        struct dgram_peer *p = container_of(l, struct dgram_peer, all);
        p->came += gap - RTO_MOST;
        if (p->news) p->news += gap - RTO_MOST;
    }
}

int dgram_progress(struct dgram *ep, uint64_t now)
{
    if (unlikely(now - ep->now >= LATE)) forgive(ep, now - ep->now);
    ep->now = now;
    ep->full = false;
    ep->inside = true;
    int n = ep->wire->ops->poll(ep->wire, now, BATCH, take, ep);
    take_refusals(ep);
    struct link served;
    list_init(&served);
    while (!list_empty(&ep->busy)) {
        struct dgram_peer *p = container_of(ep->busy.next, struct dgram_peer, busy);
        list_remove(&p->busy);
        list_push(&served, &p->busy);
        serve(p);
    }
    while (!list_empty(&served)) list_push(&ep->busy, list_pop(&served));
    flush(ep);
    ep->inside = false;
    reap(ep);
    return n;
}

/* Who is silent in the middle of a message is looked for as often as who does not answer: see forgive. */
static uint64_t next_of(const struct dgram_peer *p)
{
    uint64_t at = p->timer;
    if (p->prompt || (p->owes && !p->ep->full)) return 0;
    if (in_waits(p) && !p->held) at = min_size(at, min_size(p->came + 2 * p->ep->patience, p->ep->now + RTO_MOST));
    return at;
}

uint64_t dgram_next_timeout(const struct dgram *ep)
{
    uint64_t at = ep->wire->ops->due(ep->wire);
    list_each(l, next, &ep->busy)
    {
        uint64_t own = next_of(container_of(l, struct dgram_peer, busy));
        if (own < at) at = own;
    }
    return at;
}

bool dgram_quiet(const struct dgram *ep, uint64_t since)
{
    return list_empty(&ep->busy) && ep->came < since && ep->wire->ops->due(ep->wire) == NEVER;
}

struct dgram_wire *dgram_wire_of(const struct dgram *ep) { return ep->wire; }

struct dgram_stats dgram_stats(const struct dgram *ep)
{
    struct dgram_stats s = ep->stats;
    s.newcomers = ep->newcomers_now;
    s.newcomer_bytes = ep->newcomer_bytes;
    return s;
}
