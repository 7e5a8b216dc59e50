/* doubt.c - see doubt.h. */
#include "pt2pt/doubt.h"
#include "base/err.h"
#include "proc/jobs.h"
#include "proc/proc.h"
#include "pt2pt/api.h"
#include "pt2pt/call_log.h"
#include "pt2pt/dispatch.h"
#include "pt2pt/lost.h"
#include "pt2pt/pending.h"
#include "pt2pt/protocol.h"
#include "pt2pt/say.h"
#include "pt2pt/wait_policy.h"
#include "transport/endpoint.h"

static bool over;    /* in MPI_Finalize: whoever asks is told that nothing more comes */
static bool leaving; /* in MPI_Finalize, from the last barrier on: others may have left (lost.h) */

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
    for (uint32_t i = 0; i < peers_end(); i++) {
        struct peer *p = peer_known(i);
        if (p && !p->lost && peer_is_connected(p) && ep_has_left(&p->ep)) take_leave(p);
    }
}

/* Connected, as soon as that can be done without waiting for the peer. One that cannot be connected has left, or is
 * lost, unless this process lacks what it takes (then nothing is known, and it is not asked again). */
static bool is_connected(struct peer *p)
{
    if (peer_is_connected(p)) return true;
    if (!jobs_card_there(p->index)) return false;
    if (peer_connect(p->index)) return true;
    pt_hear_ends(); /* it may have been found dead */
    if (p->lost || p->flags & PEER_ENDED) return false;
    if (err_is_of_peer(err_code())) pt_leave(p);
    else if (err_code() != TERN_ERR_PENDING) p->flags |= PEER_ASKED;
    return false;
}

bool pt_is_leaving(void) { return leaving; }

/* All messages of one that has died have been delivered, and of one whose connection says that it has left. One that never
 * came has sent nothing. */
bool pt_is_final(const struct peer *p)
{
    return !leaving || (p->lost && (peer_is_connected(p) || !(p->flags & PEER_LEFT))) || jobs_never_came(p->index);
}

struct peer *pt_gone_by(struct lane *l, uint32_t index)
{
    struct peer *p = index != proc_self()->rank ? peer_of_sender(index) : NULL;
    if (!p || p->flags & PEER_CLOSING) return NULL;
    if (leaving && (p->flags & PEER_ENDED || (p->lost && pt_is_final(p))) && pt_marked_have_died())
        return NULL; /* the next turn of progress ends what waits */
    if (!p->lost && !(p->flags & (PEER_ASKED | PEER_OVER)) && is_connected(p)) {
        p->flags |= PEER_ASKED;
        lane_say(l, p, AM_ASK, 0, 0, NULL, 0);
    }
    return p->lost || p->flags & PEER_OVER ? p : NULL;
}

/* ---- being asked ---- */

static struct step answers; /* peers may be told now that this process is over */

/* It goes by the first lane, behind all that this process has sent before. What waits for room in other lanes is out
 * first: until then the peer is not answered. */
static void say_over(struct lane *l, struct peer *p)
{
    if (pending_elsewhere(p)) return;
    p->flags &= ~(uint32_t)PEER_ASKS;
    lane_say(l, p, AM_OVER, 0, 0, NULL, 0);
}

static void on_ask(struct lane *l, struct pt_comm *pt, struct peer *from, uint64_t h0, uint64_t h1, const void *data, size_t n)
{
    (void)pt, (void)h0, (void)h1, (void)data, (void)n;
    from->flags |= PEER_ASKS;
    if (over) say_over(l, from);
}

static const struct pt_kind ask = {AM_ASK, PT_BY_PEER, on_ask};

void pt_on_ask(struct peer *from, uint64_t h0, uint64_t h1, const void *data, size_t n)
{
    dispatch(&ask, from, h0, h1, data, n);
}

static void on_over(struct lane *l, struct pt_comm *pt, struct peer *from, uint64_t h0, uint64_t h1, const void *data, size_t n)
{
    (void)l, (void)pt, (void)h0, (void)h1, (void)data, (void)n;
    from->flags &= ~(uint32_t)PEER_ASKED;
    if (!over) from->flags |= PEER_OVER;
}

static const struct pt_kind over_there = {AM_OVER, PT_BY_PEER, on_over};

void pt_on_over(struct peer *from, uint64_t h0, uint64_t h1, const void *data, size_t n)
{
    dispatch(&over_there, from, h0, h1, data, n);
}

static void answer_all(struct lane *l)
{
    for (uint32_t i = 0; i < peers_end(); i++) {
        struct peer *p = peer_known(i);
        if (p && p->flags & PEER_ASKS) say_over(l, p);
    }
}

static int poll_answers(struct step *s)
{
    if (over) answer_all(lane_of_step(s));
    return 0;
}

void pt_answer_asked(void) { step_tell(&answers); }

/* What others have said is over with our own end: they may open sessions afterwards. */
static void be_over(struct lane *l)
{
    over = true;
    for (uint32_t i = 0; i < peers_end(); i++) {
        struct peer *p = peer_known(i);
        if (p) p->flags &= ~(uint32_t)(PEER_OVER | PEER_ASKED);
    }
    answer_all(l);
}

void pt_finalize_begin(bool alone)
{
    struct lane *l = lanes_first();
    lane_enter(l);
    leaving = true;
    if (alone) be_over(l);
    lane_leave(l);
}

void pt_finalize_end(void)
{
    struct lane *l = lanes_first();
    lane_enter(l);
    over = leaving = false;
    pt_marked_have_died(); /* sessions that go on may wait for them */
    lane_leave(l);
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
    uint32_t awaits = r->id ? ids_of(&lane_of(r)->ids, r)->awaits : 0;
    if (awaits & AWAIT_CANCELLED || !(awaits & (AWAIT_ACK | AWAIT_CTS))) return false;
    return !o || !offer_is_met(o);
}

/* Who keeps the request from ever being complete; NULL: nobody, as far as is known. */
static struct peer *partner_gone(struct request *r)
{
    if (request_is_complete(r)) return NULL;
    if (r->kind == REQ_SEND) return is_unmatched(r) ? pt_gone_by(lane_of(r), r->peer->index) : NULL;
    bool named = r->kind == REQ_RECV && r->rank >= 0 && is_posted(r);
    struct peer *p = named ? pt_gone_by(lane_of(r), comm_index(r->comm, r->rank)) : NULL;
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

static struct lane *lane_of_any(const struct request *r) { return r->comm ? lane_of(r) : lanes_first(); }

static bool is_hopeful(struct request *r)
{
    lane_enter(lane_of_any(r));
    bool hope = !request_is_complete(r) && !partner_gone(r);
    lane_leave(lane_of_any(r));
    return hope;
}

static void end_hopeless(struct request *r)
{
    struct lane *l = lane_of_any(r);
    lane_enter(l);
    struct peer *p = partner_gone(r);
    if (p) end(r, p);
    lane_leave(l);
}

void pt_doubt_requests(int n, struct request *const req[], bool all)
{
    bool hope = false;
    if (over) return;
    for (int i = 0; i < n; i++) hope |= req[i] && is_hopeful(req[i]);
    for (int i = 0; i < n && (all || !hope); i++)
        if (req[i]) end_hopeless(req[i]);
}

int pt_doubt_rank(struct comm *c, int source, int tag)
{
    struct peer *p = over ? NULL : pt_gone_by(c->lane, comm_index(c, source));
    struct request r = {.kind = REQ_RECV, .tag = tag};
    return p && !match_peek(&c->pt->match[PT_USER], source, tag) ? pt_lost_words(&r, p) : 0;
}

/* ---- who looks ---- */

#define STRANGERS 16 /* that are connected in one look */

/* With the first lane's lock. */
static struct {
    uint64_t due;    /* ns: the next look; 0: there was none yet */
    uint32_t probed; /* by the last probe; one of the own job: nobody is to be connected */
} looks;

struct strangers {
    struct comm *comm;
    uint32_t n, index[STRANGERS];
};

/* Of another job, and nothing is known of its life. */
static bool is_strange(uint32_t index)
{
    const struct peer *p = jobs_is_own(index) ? NULL : peer_known(index);
    if (jobs_is_own(index) || !jobs_card_there(index)) return false;
    return !p || !(p->lost || p->flags & (PEER_ASKED | PEER_CLOSING) || peer_is_connected(p));
}

static void add_stranger(struct strangers *s, uint32_t index)
{
    for (uint32_t i = 0; i < s->n; i++)
        if (s->index[i] == index) return;
    if (s->n < STRANGERS && is_strange(index)) s->index[s->n++] = index;
}

static void add_source(void *what, int src, int tag, void *arg)
{
    struct strangers *s = arg;
    (void)what, (void)tag;
    if (src >= 0) add_stranger(s, comm_index(s->comm, src));
}

/* A connection may deliver, and so change what is posted: it is made behind the search. */
static void connect_strangers(const struct strangers *s)
{
    for (uint32_t i = 0; i < s->n; i++) {
        struct peer *p = peer_of_sender(s->index[i]);
        if (p) is_connected(p);
    }
}

void pt_looks_for(uint32_t index) { looks.probed = index; }

void pt_doubt_looks(void)
{
    uint64_t now = clock_ns();
    struct strangers s = {0};
    if (now < looks.due) return;
    bool first = !looks.due;
    looks.due = now + DOUBT_NS;
    if (first || over) return;
    add_stranger(&s, looks.probed);
    list_each(a, next, &lanes_first()->contexts)
    {
        struct pt_comm *pt = container_of(a, struct pt_comm, in_lane);
        s.comm = pt->comm;
        if (s.comm) match_each(&pt->match[PT_USER].posted, add_source, &s);
    }
    int code = err_keep(&looks, err_code()); /* the caller has not failed */
    connect_strangers(&s);
    err_recall(&looks, code);
    if (s.n == STRANGERS) looks.due = now; /* there may be more */
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
    struct peer *p = pt_gone_by(w->pt->lane, comm_index(w->pt->comm, src));
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
    for (;;) {
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

static void doubt_lane(struct step *s)
{
    struct lane *l = lane_of_step(s);
    struct link to_end = LIST_INIT(to_end);
    list_each(a, next, &l->contexts) doubt_receives(container_of(a, struct pt_comm, in_lane), &to_end);
    for (struct link *a; (a = list_pop(&to_end));) {
        struct request *r = container_of(a, struct request, link);
        pt_end_lost(r, r->peer);
    }
    doubt_sends(l);
}

static const struct step_ops ops = {.name = "waits that last", .doubt = doubt_lane};

void doubt_open(struct lane *l)
{
    l->doubts = (struct step){.ops = &ops}; /* never on */
    step_add(&l->steps, &l->doubts);
}

/* ---- of the process ---- */

static void doubt_process(struct step *s)
{
    (void)s;
    find_leavers();
}

static const struct step_ops leavers_ops = {.name = "peers that have left", .doubt = doubt_process};
static const struct step_ops answers_ops = {.name = "answers to peers that wait", .poll = poll_answers};

void doubt_open_process(struct lane *first)
{
    static struct step leavers = {.ops = &leavers_ops}; /* never on; stays known */
    over = false;
    answers = (struct step){.ops = &answers_ops};
    step_add(&progress_process, &leavers);
    step_add(&first->steps, &answers);
}
