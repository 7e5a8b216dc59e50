/*
 * closing.c - see closing.h.
 *
 * lane.closing lists the peers at which progress looks again in each turn. One that waits for the other side is in no
 * list: its answer, its loss, or something that is to be sent to it brings it back (closing_look).
 */
#include "pt2pt/closing.h"
#include "base/err.h"
#include "proc/jobs.h"
#include "pt2pt/lost.h"
#include "pt2pt/protocol.h"
#include "transport/wires.h"

static int look(struct lane_poller *);
static struct lane_poller closer = {.poll = look};
static char closed_words[] = "the connection has been closed";

/* ---- is it needed? ---- */

static bool is_member(const struct comm *c, uint32_t index)
{
    return rankmap_find(c->map, index) >= 0 || (c->inter && rankmap_find(c->local, index) >= 0);
}

static int32_t count_comms(const struct peer *p)
{
    const struct lane *l = &lane0;
    int32_t n = 0;
    for (uint32_t i = 0; i <= l->ctx_mask; i++)
        for (const struct pt_comm *pt = l->ctx_table[i]; pt; pt = pt->next)
            n += pt->comm && comm_has_others(pt->comm) && is_member(pt->comm, p->index);
    return n;
}

/* Counted when it is first asked; from then on each communicator that comes or goes changes the count. */
static bool is_needed(struct peer *p)
{
    if (p->comms < 0) p->comms = count_comms(p);
    return p->comms > 0;
}

static bool is_in_list(const struct link *list, const struct peer *p)
{
    for (const struct link *a = list->next; a != list; a = a->next)
        if (container_of(a, struct request, link)->peer == p) return true;
    return false;
}

/* Data are moving between the two. */
static bool is_moving(const struct peer *p)
{
    return p->arriving || p->streams || !list_empty(&p->streams_waiting) || is_in_list(&lane0.incoming, p) ||
           is_in_list(&lane0.outgoing, p);
}

/* Something that was sent to the peer is to be answered. */
static bool is_awaited(const struct peer *p)
{
    uint32_t at = 0;
    return ids_next(&lane0.ids, p, &at) != NULL;
}

/* ---- messages ---- */

/* What is sent to it from now on waits (lane_park). */
static void hold(struct peer *p, uint32_t flag)
{
    p->flags |= flag;
    p->short_max = -1;
    p->pending = &p->pending_head;
}

static void let_go_on(struct peer *p)
{
    p->flags &= ~(uint32_t)(PEER_IDLE | PEER_RESUMING);
    p->pending = NULL;
    if (list_empty(&p->pending_head)) {
        lane_open_short(&lane0, p);
        return;
    }
    p->pending = &p->pending_head;
    list_push(&lane0.pending, &p->in_pending);
}

/* False: not now, or the peer is lost. What waits for the peer does not go before. */
static bool say(struct peer *p, enum closing_word word)
{
    int rc = p->ep.ops || peer_connect(p->index) ? p->ep.am_short(&p->ep, AM_CLOSING, word, 0, NULL, 0) : TERN_ERR_PEER;
    if (rc && rc != TERN_AGAIN) pt_lose(p);
    if (!rc) peer_look_again(p);
    return !rc;
}

/* May the other side say that now? */
static bool is_possible(const struct peer *from, uint64_t word)
{
    switch (word) {
    case CLOSING_IDLE:
        return !(from->flags & PEER_IDLE_THERE);
    case CLOSING_RESUME:
        return from->flags & PEER_IDLE_THERE;
    case CLOSING_RESUMED:
        return from->flags & PEER_RESUMING;
    case CLOSING_CLOSE:
        return from->flags & (PEER_IDLE | PEER_CLOSING);
    default:
        return false;
    }
}

/* When this side has said CLOSE already, that is the answer. */
static void take_word(struct peer *from, enum closing_word word)
{
    if (word == CLOSING_CLOSE) hold(from, PEER_CLOSING);
    if (word == CLOSING_IDLE) from->flags |= PEER_IDLE_THERE;
    if (from->flags & PEER_CLOSING) return;
    if (word == CLOSING_RESUME) from->flags = (from->flags & ~(uint32_t)PEER_IDLE_THERE) | PEER_AWAITS_RESUMED;
    if (word == CLOSING_RESUMED) let_go_on(from);
}

void pt_on_closing(struct peer *from, uint64_t h0, uint64_t h1, const void *data, size_t n)
{
    (void)h1, (void)data, (void)n;
    if (from->lost) return;
    if (jobs_is_own(from->index) || !is_possible(from, h0)) {
        pt_violation(from, "a word about the end of the connection that cannot be now: %llu", (unsigned long long)h0);
        return;
    }
    take_word(from, (enum closing_word)h0);
    closing_look(from);
}

/* ---- the end of a peer ---- */

static void keep_others(void *body, int src, int tag, void *arg)
{
    struct match_body *b = body, **found = &((struct match_body **)arg)[1];
    (void)src, (void)tag;
    if (b->peer == ((void **)arg)[0] && b->kind != BODY_EAGER) *found = b;
}

/* Messages that its sender should still wait for, and does not: it has freed their communicator. */
static void drop_offers(struct peer *p)
{
    for (uint32_t i = 0; i <= 2 * lane0.ctx_mask + 1; i++)
        for (struct pt_comm *pt = lane0.ctx_table[i / 2]; pt; pt = pt->next)
            for (void *arg[2] = {p, p}; arg[1];) {
                arg[1] = NULL;
                match_each(&pt->match[i % 2].unexpected, keep_others, arg);
                if (!arg[1]) break;
                match_withdraw(&pt->match[i % 2], arg[1]);
                pt_drop_body(arg[1]);
            }
}

/* Unreceived messages refer to the peer that they came from; nothing is to be given back for them any more. */
bool closing_forget(struct peer *p)
{
    pt_lost_forget(p);
    pt_credit_forget(p);
    list_remove(&p->in_closing);
    if (!p->stored) return false;
    p->lost = closed_words;
    p->due = INT64_MAX;
    list_push(&lane0.closed, &p->in_closing);
    return true;
}

static void free_closed(bool all)
{
    list_each(a, next, &lane0.closed)
    {
        struct peer *p = container_of(a, struct peer, in_closing);
        if (p->stored && !all) continue;
        list_remove(a);
        peer_free(p);
    }
}

/* A send that waited goes out by the new connection. Answers concerned what the other side has no more. */
static void send_anew(struct request *r, uint32_t index)
{
    struct peer *p = r->kind == REQ_SEND ? peer_get(index) : NULL;
    if (r->kind != REQ_SEND) {
        request_free(r);
        return;
    }
    if (!p || p->lost) {
        int rc = p ? pt_lost_words(r, p) : TERN_ERR_PEER;
        pt_offer_discard(r);
        lane_finish(r, rc);
        return;
    }
    r->peer = p;
    if (r->id) ids_of(&lane0.ids, r)->peer = p;
    if (!r->xfer) p->credit -= eager_cost((size_t)r->bytes);
    lane_park(&lane0, p, r);
}

static void move_all(struct link *from, struct link *to)
{
    for (struct link *a; (a = list_pop(from));) list_push(to, a);
}

static int finish(struct peer *p)
{
    struct link waiting = LIST_INIT(waiting);
    uint32_t index = p->index;
    if (is_moving(p)) return 0;
    drop_offers(p);
    move_all(&p->pending_head, &waiting);
    p->pending = NULL;
    if (peer_close(index)) {
        hold(p, PEER_CLOSING);
        move_all(&waiting, &p->pending_head);
        return 0;
    }
    for (struct link *a; (a = list_pop(&waiting));) send_anew(container_of(a, struct request, link), index);
    return 1;
}

/* ---- progress ---- */

/* Nothing more is to be done until something happens. */
static int rest(struct peer *p)
{
    list_remove(&p->in_closing);
    return 0;
}

/* It is needed, or something is to be sent to it. */
static int go_on(struct peer *p, bool needed)
{
    bool waits = p->flags & PEER_IDLE && !list_empty(&p->pending_head);
    if (waits && !p->lost && !(p->flags & PEER_RESUMING)) {
        if (!say(p, CLOSING_RESUME)) return 0;
        p->flags |= PEER_RESUMING;
    }
    return needed || waits ? rest(p) : 0;
}

static int say_close(struct peer *p)
{
    if (!say(p, CLOSING_CLOSE)) return 0;
    hold(p, PEER_CLOSING);
    finish(p);
    return 1;
}

static int say_idle(struct peer *p)
{
    if (!say(p, CLOSING_IDLE)) return 0;
    hold(p, PEER_IDLE);
    rest(p);
    return 1;
}

static int end(struct peer *p)
{
    if (p->lost) return finish(p);
    if (p->flags & PEER_IDLE_THERE) return say_close(p);
    if (p->flags & PEER_IDLE) return rest(p);
    if (p->ep.ops) return say_idle(p);
    return wires_peer_close(p) ? rest(p) : finish(p); /* there is no way to it; if it has one to us, it speaks first */
}

static int step(struct peer *p)
{
    if (!list_empty(&p->in_lost)) return 0; /* its operations are ended first */
    if (p->flags & PEER_AWAITS_RESUMED && !p->lost) {
        if (!say(p, CLOSING_RESUMED)) return 0;
        p->flags &= ~(uint32_t)PEER_AWAITS_RESUMED;
    }
    if (p->flags & PEER_CLOSING) return finish(p);
    bool needed = is_needed(p);
    if (needed || !list_empty(&p->pending_head)) return go_on(p, needed);
    return is_moving(p) || is_awaited(p) ? 0 : end(p);
}

static int look(struct lane_poller *self)
{
    int n = 0;
    list_each(a, next, &lane0.closing) n += step(container_of(a, struct peer, in_closing));
    free_closed(false);
    if (list_empty(&lane0.closing)) lane_poller_remove(&lane0, self);
    return n;
}

void closing_look(struct peer *p)
{
    if (jobs_is_own(p->index) || !list_empty(&p->in_closing)) return;
    if (list_empty(&lane0.closing)) {
        list_remove(&closer.link);
        lane_poller_add(&lane0, &closer);
    }
    list_push(&lane0.closing, &p->in_closing);
}

/* The members among the peers that have been counted. */
static void add_comm(const struct comm *c, int32_t n)
{
    for (uint32_t i = jobs_own_size; i < peer_count; i++) {
        struct peer *p = peer_table[i];
        if (p && p->comms >= 0 && is_member(c, i)) p->comms += n;
    }
}

void closing_comm_made(const struct comm *c) { add_comm(c, 1); }

void closing_comm_gone(const struct comm *c)
{
    add_comm(c, -1);
    for (uint32_t i = jobs_own_size; i < peer_count; i++)
        if (peer_table[i] && is_member(c, i)) closing_look(peer_table[i]);
    free_closed(false);
}

bool closing_holds(void)
{
    for (uint32_t i = jobs_own_size; i < peer_count; i++) {
        const struct peer *p = peer_table[i];
        if (p && p->flags & (PEER_IDLE | PEER_CLOSING) && !p->lost && !list_empty(&p->pending_head)) return true;
    }
    return false;
}

/* ---- life ---- */

void closing_open(struct lane *l)
{
    list_init(&l->closing);
    list_init(&l->closed);
    list_init(&closer.link);
}

void closing_close(struct lane *l)
{
    for (struct link *a; (a = list_pop(&l->closing));) continue;
    list_remove(&closer.link);
    free_closed(true);
}

/* ---- waiting for it ---- */

static bool is_awaited_here(const struct rankmap *map, bool begin)
{
    bool some = false;
    for (int32_t r = 0; r < map->size; r++) {
        uint32_t index = rankmap_at(map, r);
        struct peer *p = index < peer_count && !jobs_is_own(index) ? peer_table[index] : NULL;
        if (!p) continue;
        if (begin) p->flags |= PEER_CLOSE_AWAITED;
        some |= p->flags & PEER_CLOSE_AWAITED && !is_needed(p);
    }
    return some;
}

static bool none_left(void *map) { return !is_awaited_here(map, false); }

void pt_await_closed(const struct rankmap *map)
{
    lane_enter(&lane0);
    if (is_awaited_here(map, true)) lane_wait(&lane0, none_left, (void *)(uintptr_t)map, NULL);
    lane_leave(&lane0);
}
