/*
 * closing.c - see closing.h.
 *
 * `looked_at` lists the peers at which progress looks again in each turn. One that waits for the other side is in no
 * list: its answer, its loss, or something that is to be sent to it brings it back (closing_look).
 */
#include "pt2pt/closing.h"
#include "base/err.h"
#include "proc/jobs.h"
#include "pt2pt/dispatch.h"
#include "pt2pt/early.h"
#include "pt2pt/lost.h"
#include "pt2pt/pending.h"
#include "pt2pt/protocol.h"
#include "pt2pt/rndv/ready.h"
#include "pt2pt/wait_policy.h"
#include "transport/wires.h"

static struct step closer;
static struct link looked_at; /* struct peer.in_closing */
static struct link closed;    /* the same: what messages came from that are still unreceived */
static char closed_words[] = "the connection has been closed";

/* The lane that connections are closed in: the first. All communicators that need such a peer are in it. */
static struct lane *mine(void) { return lane_of_step(&closer); }

/* ---- is it needed? ---- */

static bool is_member(const struct comm *c, uint32_t index)
{
    return rankmap_find(c->map, index) >= 0 || (c->inter && rankmap_find(c->local, index) >= 0);
}

static int32_t count_comms(const struct peer *p)
{
    int32_t n = 0;
    list_each(a, next, &mine()->contexts)
    {
        const struct comm *c = container_of(a, struct pt_comm, in_lane)->comm;
        n += comm_has_others(c) && is_member(c, p->index);
    }
    return n;
}

/* Counted when it is first asked; from then on each communicator that comes or goes changes the count. */
static bool is_needed(struct peer *p)
{
    if (p->comms < 0) p->comms = count_comms(p);
    return p->comms > 0;
}

/* Data are moving between the two. */
static bool is_moving(const struct peer *p) { return p->arriving || progress_busy_with(&mine()->steps, p); }

/* Something that was sent to the peer is to be answered. */
static bool is_awaited(const struct peer *p)
{
    uint32_t at = 0;
    return ids_next(&mine()->ids, p, &at) != NULL;
}

/* ---- messages ---- */

/* What is sent to it from now on waits (pending_park). */
static void hold(struct peer *p, uint32_t flag)
{
    p->flags |= flag;
    pending_hold(p);
}

static void let_go_on(struct lane *l, struct peer *p)
{
    p->flags &= ~(uint32_t)(PEER_IDLE | PEER_RESUMING);
    pending_let_go(l, p);
}

/* False: not now, or the peer is lost. What waits for the peer does not go before. */
static bool say(struct peer *p, enum closing_word word)
{
    int rc = peer_is_connected(p) || peer_connect(p->index) ? p->ep.am_short(&p->ep, AM_CLOSING, word, 0, NULL, 0) : TERN_ERR_PEER;
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
static void take_word(struct lane *l, struct peer *from, enum closing_word word)
{
    if (word == CLOSING_CLOSE) hold(from, PEER_CLOSING);
    if (word == CLOSING_IDLE) from->flags |= PEER_IDLE_THERE;
    if (from->flags & PEER_CLOSING) return;
    if (word == CLOSING_RESUME) {
        from->flags &= ~(uint32_t)PEER_IDLE_THERE;
        from->flags |= PEER_AWAITS_RESUMED;
    }
    if (word == CLOSING_RESUMED) let_go_on(l, from);
}

static void on_closing(struct lane *l, struct pt_comm *pt, struct peer *from, uint64_t h0, uint64_t h1, const void *data,
                       size_t n)
{
    (void)pt, (void)h1, (void)data, (void)n;
    if (jobs_is_own(from->index) || !is_possible(from, h0)) {
        pt_violation(from, "a word about the end of the connection that cannot be now: %llu", (unsigned long long)h0);
        return;
    }
    take_word(l, from, (enum closing_word)h0);
    closing_look(from);
}

static const struct pt_kind closing = {AM_CLOSING, PT_BY_PEER, on_closing};

void pt_on_closing(struct peer *from, uint64_t h0, uint64_t h1, const void *data, size_t n)
{
    dispatch(&closing, from, h0, h1, data, n);
}

/* ---- the end of a peer ---- */

static void keep_others(void *body, int src, int tag, void *arg)
{
    struct match_body *b = body, **found = &((struct match_body **)arg)[1];
    (void)src, (void)tag;
    if (b->peer == ((void **)arg)[0] && b->kind != BODY_EAGER) *found = b;
}

static void drop_offers_in(struct pt_comm *pt, struct match *m, struct peer *p)
{
    for (void *arg[2] = {p, p}; arg[1];) {
        arg[1] = NULL;
        match_each(&m->unexpected, keep_others, arg);
        if (!arg[1]) break;
        match_withdraw(m, arg[1]);
        pt_drop_body(pt->lane, arg[1]);
    }
}

/* Messages that its sender should still wait for, and does not: it has freed their communicator. */
static void drop_offers(struct peer *p)
{
    early_drop_offers(p);
    list_each(a, next, &mine()->contexts)
    {
        struct pt_comm *pt = container_of(a, struct pt_comm, in_lane);
        drop_offers_in(pt, &pt->match[PT_USER], p);
        drop_offers_in(pt, &pt->match[PT_COLL], p);
    }
}

/* Unreceived messages refer to the peer that they came from; nothing is to be given back for them any more. */
bool closing_forget(struct peer *p)
{
    wait_parts(p);
    pt_lost_forget(p);
    ready_forget(p);
    pt_credit_forget(p);
    list_remove(&p->in_closing);
    if (!counter_get(&p->stored)) return false;
    p->lost = closed_words;
    p->due = INT64_MAX;
    list_push(&closed, &p->in_closing);
    return true;
}

static void free_closed(bool all)
{
    list_each(a, next, &closed)
    {
        struct peer *p = container_of(a, struct peer, in_closing);
        if (counter_get(&p->stored) && !all) continue;
        list_remove(a);
        peer_free(p);
    }
}

static int finish(struct peer *p)
{
    struct link waiting = LIST_INIT(waiting);
    uint32_t index = p->index;
    if (is_moving(p)) return 0;
    drop_offers(p);
    pending_take(p, &waiting);
    if (peer_close(index)) {
        hold(p, PEER_CLOSING);
        pending_give(p, &waiting);
        return 0;
    }
    pending_all_anew(mine(), index, &waiting);
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
    bool to_send = p->flags & PEER_IDLE && pending_any(p);
    if (to_send && !p->lost && !(p->flags & PEER_RESUMING)) {
        if (!say(p, CLOSING_RESUME)) return 0;
        p->flags |= PEER_RESUMING;
    }
    return needed || to_send ? rest(p) : 0;
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
    if (peer_is_connected(p)) return say_idle(p);
    return wires_peer_close(p) ? rest(p) : finish(p); /* there is no way to it; if it has one to us, it speaks first */
}

static int step(struct peer *p)
{
    if (p->lost && !lost_is_over(p)) return 0; /* its operations are ended first */
    if (p->flags & PEER_AWAITS_RESUMED && !p->lost) {
        if (!say(p, CLOSING_RESUMED)) return 0;
        p->flags &= ~(uint32_t)PEER_AWAITS_RESUMED;
    }
    if (p->flags & PEER_CLOSING) return finish(p);
    bool needed = is_needed(p);
    if (needed || pending_any(p)) return go_on(p, needed);
    return is_moving(p) || is_awaited(p) ? 0 : end(p);
}

static int look(struct step *self)
{
    int n = 0;
    list_each(a, next, &looked_at) n += step(container_of(a, struct peer, in_closing));
    free_closed(false);
    if (list_empty(&looked_at)) step_off(self);
    return n;
}

void closing_look(struct peer *p)
{
    if (jobs_is_own(p->index) || !list_empty(&p->in_closing)) return;
    lane_step_on(mine(), &closer);
    list_push(&looked_at, &p->in_closing);
}

/* The members among the peers that have been counted. */
static void add_comm(const struct comm *c, int32_t n)
{
    for (uint32_t i = jobs_own_size; i < peers_end(); i++) {
        struct peer *p = peer_known(i);
        if (p && p->comms >= 0 && is_member(c, i)) p->comms += n;
    }
}

void closing_comm_made(const struct comm *c) { add_comm(c, 1); }

void closing_comm_gone(const struct comm *c)
{
    add_comm(c, -1);
    for (uint32_t i = jobs_own_size; i < peers_end(); i++) {
        struct peer *p = peer_known(i);
        if (p && is_member(c, i)) closing_look(p);
    }
    free_closed(false);
}

/* Nothing that is to be sent waits for the answer of a peer that is idle, or for a new connection. */
static bool is_drained(const struct step *none)
{
    (void)none;
    for (uint32_t i = jobs_own_size; i < peers_end(); i++) {
        const struct peer *p = peer_known(i);
        if (p && p->flags & (PEER_IDLE | PEER_CLOSING) && !p->lost && pending_any(p)) return false;
    }
    return true;
}

static const struct step_ops closer_ops = {.name = "peers to be closed", .poll = look, .room = true, .drained = is_drained};

/* ---- life ---- */

void closing_open(struct lane *l)
{
    list_init(&looked_at);
    list_init(&closed);
    closer = (struct step){.ops = &closer_ops};
    step_add(&l->steps, &closer);
}

void closing_close(void)
{
    for (struct link *a; (a = list_pop(&looked_at));) continue;
    step_remove(&closer);
    free_closed(true);
}

/* ---- waiting for it ---- */

static bool is_awaited_here(const struct rankmap *map, bool begin)
{
    bool some = false;
    for (int32_t r = 0; r < map->size; r++) {
        uint32_t index = rankmap_at(map, r);
        struct peer *p = jobs_is_own(index) ? NULL : peer_known(index);
        if (!p) continue;
        if (begin) p->flags |= PEER_CLOSE_AWAITED;
        some |= p->flags & PEER_CLOSE_AWAITED && !is_needed(p);
    }
    return some;
}

static bool none_left(void *map) { return !is_awaited_here(map, false); }

void pt_await_closed(const struct rankmap *map)
{
    struct lane *l = mine();
    lane_enter(l);
    if (is_awaited_here(map, true)) lane_wait(l, none_left, (void *)(uintptr_t)map, NULL);
    lane_leave(l);
}
