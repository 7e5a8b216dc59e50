/* doubt.c - see doubt.h. */
#include "pt2pt/doubt.h"
#include "base/err.h"
#include "proc/jobs.h"
#include "proc/proc.h"
#include "pt2pt/api.h"
#include "pt2pt/call_log.h"
#include "pt2pt/lost.h"
#include "pt2pt/protocol.h"

/* ---- asking ---- */

/* It has gone: what it has sent comes first. */
static void take_leave(struct peer *p)
{
    pt_take_last();
    err_set(TERN_ERR_ABSENT, "%s has left the job", jobs_long_words(p->index));
    pt_leave(p);
}

/* Of transports that have to be asked. */
static void find_leavers(void)
{
    for (uint32_t i = 0; i < peer_count; i++) {
        struct peer *p = peer_table[i];
        if (p && !p->lost && p->ep.ops && p->ep.ops->left && p->ep.ops->left(&p->ep)) take_leave(p);
    }
}

/* Connected, as soon as that can be done without waiting for the peer. One that cannot be connected has left, or is
 * lost, unless this process lacks what it takes (then nothing is known, and it is not asked again). */
static bool is_connected(struct peer *p)
{
    if (p->ep.ops) return true;
    if (!jobs_card_there(p->index)) return false;
    if (peer_connect(p->index)) return true;
    pt_hear_ends(); /* it may have been found dead */
    if (p->lost || p->flags & PEER_ENDED) return false;
    if (err_is_of_peer(err_code())) pt_leave(p);
    else p->flags |= PEER_ASKED;
    return false;
}

/* All messages of one that has died have been delivered, and of one whose connection says that it has left. One that never
 * came has sent nothing. */
bool pt_is_final(const struct peer *p)
{
    return !lane0.leaving || (p->lost && (p->ep.ops || !(p->flags & PEER_LEFT))) || jobs_never_came(p->index);
}

struct peer *pt_gone_by(uint32_t index)
{
    struct peer *p = index != proc_self()->rank ? peer_of_sender(index) : NULL;
    if (!p || p->flags & PEER_CLOSING) return NULL;
    if (lane0.leaving && (p->flags & PEER_ENDED || (p->lost && pt_is_final(p))) && pt_marked_have_died())
        return NULL; /* the next turn of progress ends what waits */
    if (!p->lost && !(p->flags & (PEER_ASKED | PEER_OVER)) && is_connected(p)) {
        p->flags |= PEER_ASKED;
        lane_control(p, AM_ASK, 0, 0, NULL, 0);
    }
    return p->lost || p->flags & PEER_OVER ? p : NULL;
}

/* ---- being asked ---- */

static void say_over(struct peer *p)
{
    p->flags &= ~(uint32_t)PEER_ASKS;
    lane_control(p, AM_OVER, 0, 0, NULL, 0);
}

void pt_on_ask(struct peer *from, uint64_t h0, uint64_t h1, const void *data, size_t n)
{
    (void)h0, (void)h1, (void)data, (void)n;
    if (unlikely(from->lost)) return;
    from->flags |= PEER_ASKS;
    if (lane0.over) say_over(from);
}

void pt_on_over(struct peer *from, uint64_t h0, uint64_t h1, const void *data, size_t n)
{
    (void)h0, (void)h1, (void)data, (void)n;
    from->flags &= ~(uint32_t)PEER_ASKED;
    if (!lane0.over) from->flags |= PEER_OVER;
}

/* What others have said is over with our own end: they may open sessions afterwards. */
static void be_over(void)
{
    lane0.over = true;
    for (uint32_t i = 0; i < peer_count; i++) {
        struct peer *p = peer_table[i];
        if (!p) continue;
        p->flags &= ~(uint32_t)(PEER_OVER | PEER_ASKED);
        if (p->flags & PEER_ASKS) say_over(p);
    }
}

void pt_finalize_begin(bool over)
{
    lane_enter(&lane0);
    lane0.leaving = true;
    if (over) be_over();
    lane_leave(&lane0);
}

void pt_finalize_end(void)
{
    lane_enter(&lane0);
    lane0.over = lane0.leaving = false;
    lane_leave(&lane0);
}

/* ---- what is waited for ---- */

static struct match *match_of(const struct request *r) { return &r->comm->pt->match[r->ctx & CTX_COLL]; }

struct search {
    const struct request *r;
    bool found;
};

static void compare(void *what, int src, int tag, void *arg)
{
    struct search *s = arg;
    (void)src, (void)tag;
    s->found |= what == s->r;
}

static bool is_posted(const struct request *r)
{
    struct search s = {r, false};
    match_each(&match_of(r)->posted, compare, &s);
    return s.found;
}

/* The receiver has not taken it yet, and is not asked to give it back. */
static bool is_unmatched(struct request *r)
{
    const struct pt_offer *o = r->xfer;
    uint32_t awaits = r->id ? ids_of(&lane0.ids, r)->awaits : 0;
    if (awaits & AWAIT_CANCELLED || !(awaits & (AWAIT_ACK | AWAIT_CTS))) return false;
    /* acquire: as in pt_outgoing_step */
    return !o || atomic_load_explicit(&((struct pt_offer *)(uintptr_t)o)->state, memory_order_acquire) == OFFER_OPEN;
}

/* Who keeps the request from ever being complete; NULL: nobody, as far as is known. */
static struct peer *partner_gone(struct request *r)
{
    if (request_is_complete(r)) return NULL;
    if (r->kind == REQ_SEND) return is_unmatched(r) ? pt_gone_by(r->peer->index) : NULL;
    bool named = r->kind == REQ_RECV && r->rank >= 0 && is_posted(r);
    struct peer *p = named ? pt_gone_by(comm_index(r->comm, r->rank)) : NULL;
    return p && is_posted(r) ? p : NULL; /* it may have met its message meanwhile */
}

static void end(struct request *r, struct peer *p)
{
    if (r->kind == REQ_SEND) {
        pt_offer_abandon(r);
        return;
    }
    match_cancel(match_of(r), r);
    pt_end_lost(r, p);
}

/* ---- who waits ---- */

void pt_doubt_requests(int n, struct request *const req[], bool all)
{
    bool hope = false;
    if (lane0.over) return;
    for (int i = 0; i < n; i++) hope |= req[i] && !request_is_complete(req[i]) && !partner_gone(req[i]);
    for (int i = 0; i < n && (all || !hope); i++) {
        struct peer *p = req[i] ? partner_gone(req[i]) : NULL;
        if (p) end(req[i], p);
    }
}

int pt_doubt_rank(struct comm *c, int source, int tag)
{
    struct peer *p = lane0.over ? NULL : pt_gone_by(comm_index(c, source));
    struct request r = {.kind = REQ_RECV, .tag = tag};
    return p && !match_peek(&c->pt->match[PT_USER], source, tag) ? pt_lost_words(&r, p) : 0;
}

/* ---- collectives, and what has no waiter of its own ---- */

struct walk {
    struct pt_comm *pt;
    struct request *found;
    struct peer *peer;
    int asked; /* the rank that was asked last, plus 1: there may be many receives from it */
};

static void doubt_receive(void *what, int src, int tag, void *arg)
{
    struct walk *w = arg;
    (void)tag;
    if (src < 0 || w->found || w->asked == src + 1) return;
    struct peer *p = pt_gone_by(comm_index(w->pt->comm, src));
    if (!p) {
        pt_call_log_ask(w->pt->comm, src);
        w->asked = src + 1;
    } else if (pt_is_final(p)) {
        w->peer = p;
        w->found = what;
    }
}

/* Takes those that will not come out of matching; they are ended later, since that may start others, or end
 * communicators. */
static void doubt_receives(struct pt_comm *pt, struct link *to_end)
{
    while (pt->comm) {
        struct walk w = {.pt = pt};
        match_each(&pt->match[PT_COLL].posted, doubt_receive, &w);
        if (!w.found) return;
        match_cancel(&pt->match[PT_COLL], w.found);
        w.found->peer = w.peer;
        list_push(to_end, &w.found->link);
    }
}

static void doubt_sends(struct lane *l)
{
    uint32_t at = 0;
    for (struct id_entry *e; (e = ids_next(&l->ids, NULL, &at)); at++) {
        struct request *r = e->request;
        if (!r || r->kind != REQ_SEND || !(r->ctx & CTX_COLL)) continue;
        struct peer *p = partner_gone(r);
        if (p && pt_is_final(p))
            end(r, p);
        else if (!p && is_unmatched(r))
            pt_call_log_ask(r->comm, r->rank);
    }
}

void pt_doubt(struct lane *l)
{
    struct link to_end = LIST_INIT(to_end);
    find_leavers();
    list_each(b, next_b, &l->pollers)
    {
        struct lane_poller *p = container_of(b, struct lane_poller, link);
        if (p->doubt) p->doubt(p);
    }
    for (uint32_t i = 0; i <= l->ctx_mask; i++)
        for (struct pt_comm *pt = l->ctx_table[i]; pt; pt = pt->next) doubt_receives(pt, &to_end);
    for (struct link *a; (a = list_pop(&to_end));) {
        struct request *r = container_of(a, struct request, link);
        pt_end_lost(r, r->peer);
    }
    doubt_sends(l);
}
