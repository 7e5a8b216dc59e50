/* lost.c - see lost.h. */
#include "pt2pt/lost.h"
#include "base/err.h"
#include "proc/jobs.h"
#include "proc/proc.h"
#include "proc/watcher.h"
#include "pt2pt/api.h"
#include "pt2pt/call_log.h"
#include "pt2pt/closing.h"
#include "pt2pt/protocol.h"
#include "transport/remote.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Is the process in one of its groups? */
static bool is_in(const struct comm *c, uint32_t index)
{
    return rankmap_find(c->map, index) >= 0 || (c->inter && rankmap_find(c->local, index) >= 0);
}

static bool is_lost(const struct comm *c, int rank)
{
    const struct peer *p = peer_table[comm_index(c, rank)];
    return p && p->lost;
}

static char no_words[] = "a process of the job was lost (and there was no memory to keep the reason)";

/* ---- at once ---- */

void pt_leave(struct peer *p)
{
    if (p->lost) return;
    p->flags |= PEER_LEFT;
    pt_lose(p);
}

void pt_lose(struct peer *p)
{
    if (p->lost) return;
    p->lost = strdup(err_words());
    if (!p->lost) p->lost = no_words;
    p->short_max = -1;
    lane0.lost_count += !(p->flags & PEER_LEFT);
    list_push(&lane0.lost, &p->in_lost);
    lane_note_end(&lane0);
    closing_look(p);
    if (p->ep.ops && p->ep.ops->sever) p->ep.ops->sever(&p->ep); /* what is coming in may have our buffers as its place */
}

void pt_violation(struct peer *p, const char *fmt, ...)
{
    char what[200];
    va_list ap;
    if (p->lost) return;
    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    err_set(TERN_ERR_PEER, "%s sent a message that cannot be (%s); it is given up", jobs_long_words(p->index), what);
    pt_lose(p);
}

/* More turns than a ring has messages. */
#define LAST_TURNS 100

void pt_take_last(void)
{
    for (int i = 0; i < LAST_TURNS && wires_progress(LAST_TURNS) > 0; i++) continue;
}

static void lose_dead(struct peer *p)
{
    p->flags &= ~(uint32_t)PEER_ENDED;
    jobs_note_loss(p->index);
    err_set(TERN_ERR_PEER, "%s has died", jobs_long_words(p->index));
    pt_lose(p);
}

/* What it has sent whole is delivered first. One that has taken its leave is no loss. */
static void hear(uint32_t index, enum tp_end end)
{
    struct peer *p = index != proc_self()->rank ? peer_of_sender(index) : NULL;
    if (!p || p->lost) return;
    pt_take_last();
    if (p->lost) return; /* its connection has said so */
    if (end == TP_END_UNKNOWN && lane0.leaving) p->flags |= PEER_ENDED;
    else lose_dead(p);
}

bool pt_marked_have_died(void)
{
    bool any = false;
    for (uint32_t i = 0; i < peer_count; i++) {
        struct peer *p = peer_table[i];
        if (!p || p->lost || !(p->flags & PEER_ENDED)) continue;
        lose_dead(p);
        any = true;
    }
    return any;
}

int pt_hear_deaths(struct lane *l)
{
    int n = 0;
    while (l->deaths_heard != atomic_load_explicit(l->deaths.count, memory_order_acquire)) /* pairs with proc_deaths */
        hear(atomic_load_explicit(&l->deaths.rank[l->deaths_heard++], memory_order_relaxed), TP_END_DIED), n++;
    return n;
}

int pt_hear_ends(void)
{
    int n = 0;
    for (uint32_t index; watcher_next(&index); n++) {
        enum tp_end end = wires_how_ended(index);
        if (end != TP_END_LEFT) hear(index, end);
    }
    return n;
}

static void free_words(struct peer *p)
{
    if (p->lost != no_words) free(p->lost);
    p->lost = NULL;
}

void pt_lost_close(void)
{
    for (uint32_t i = 0; i < peer_count && peer_table; i++) {
        struct peer *p = peer_table[i];
        if (!p || !p->lost) continue;
        free_words(p);
        p->flags &= ~(uint32_t)(PEER_LEFT | PEER_ASKED | PEER_ASKS | PEER_OVER | PEER_ENDED);
    }
}

void pt_lost_forget(struct peer *p)
{
    lane0.lost_count -= p->lost && !(p->flags & PEER_LEFT);
    free_words(p);
}

/* ---- the next turn ---- */

/* Of one that went, or goes, in order: a mistake of the program's. */
static int words_of_leave(const struct request *r, const struct peer *p)
{
    char gone[200], tag[40] = "";
    if (p->lost)
        snprintf(gone, sizeof gone, "%s", p->lost);
    else
        snprintf(gone, sizeof gone, "%s is in MPI_Finalize", jobs_long_words(p->index));
    if (r->tag != MPI_ANY_TAG) snprintf(tag, sizeof tag, " with tag %d", r->tag);
    if (r->ctx & CTX_COLL)
        return err_set(TERN_ERR_ABSENT,
                       "%s, and its part of a collective operation is awaited: does it call all that the others call "
                       "on the communicator?",
                       gone);
    if (r->kind == REQ_RECV)
        return err_set(TERN_ERR_ABSENT,
                       "%s, and a message%s is awaited from it: does it send less often than is received?", gone, tag);
    return err_set(TERN_ERR_ABSENT, "%s, and does not receive a message%s: is there more sent to it than it receives?",
                   gone, tag);
}

int pt_lost_words(const struct request *r, const struct peer *p)
{
    if (p->flags & PEER_LEFT || !p->lost) return words_of_leave(r, p);
    return err_set(TERN_ERR_PEER, "%s", p->lost);
}

void pt_end_lost(struct request *r, struct peer *p)
{
    r->peer = p;
    lane_finish(r, pt_lost_words(r, p));
}

/* What waited for room. */
static void end_parked(struct peer *p)
{
    for (struct link *l; (l = list_pop(&p->pending_head));) {
        struct request *r = container_of(l, struct request, link);
        if (r->kind != REQ_SEND) {
            request_free(r); /* an answer of ours */
            continue;
        }
        pt_offer_discard(r);
        pt_end_lost(r, p);
    }
    p->pending = NULL;
    list_remove(&p->in_pending);
}

/* What the peer was to answer. */
static void end_known(struct lane *l, struct peer *p)
{
    uint32_t at = 0;
    for (struct id_entry *e; (e = ids_next(&l->ids, p, &at)); at++) {
        struct request *r = e->request;
        if (!r) {
            ids_free(&l->ids, e); /* the answer to a cancel will not come */
        } else {
            e->awaits &= ~(uint32_t)AWAIT_CANCELLED;
            if (e->awaits & AWAIT_BULK)
                pt_bulk_abandon(r);
            else if (r->kind == REQ_RECV)
                pt_end_lost(r, p);
            else if (e->awaits & (AWAIT_CTS | AWAIT_ACK))
                pt_offer_abandon(r);
            else
                pt_stream_abandon(r);
        }
    }
}

/* Large receives through shared memory have no ids. */
static void end_incoming(struct lane *l, struct peer *p)
{
    struct link mine = LIST_INIT(mine);
    list_each(a, next, &l->incoming)
    {
        struct request *r = container_of(a, struct request, link);
        if (r->peer != p) continue;
        list_remove(a);
        list_push(&mine, a);
    }
    for (struct link *a; (a = list_pop(&mine));) pt_incoming_abandon(container_of(a, struct request, link));
}

static void collect(void *what, int src, int tag, void *to_end)
{
    struct request *r = what;
    (void)src, (void)tag;
    list_push(to_end, &r->link);
}

struct bodies {
    struct match_body *first, **end;
};

static void collect_body(void *what, int src, int tag, void *bodies)
{
    struct match_body *b = what;
    struct bodies *all = bodies;
    (void)src, (void)tag;
    b->next = NULL;
    *all->end = b;
    all->end = &b->next;
}

void pt_swallow(struct match_body *b)
{
    struct pt_cts nothing = {0, 0, 0};
    struct peer *from = b->peer;
    if (b->kind == BODY_OFFER) lane_control(from, AM_CTS, b->cookie[0], 0, &nothing, sizeof nothing);
    if (b->kind == BODY_SYNC) lane_control(from, AM_ACK, b->cookie[0], 0, NULL, 0);
    pt_free_body(b);
}

/* A message between two processes that live: back it goes. */
static bool keep_receive(struct match *m, struct request *r)
{
    return pt_tag_is_for_two(r->tag) && !is_lost(r->comm, r->rank) && !match_post(m, r->rank, r->tag, r);
}

static bool keep_body(struct match *m, struct match_body *b)
{
    return pt_tag_is_for_two(b->tag) && !match_store(m, b->src, b->tag, b);
}

/* Collectives of a communicator are over: the receives posted for them go to `to_end`, and what came for them goes. */
static void end_collectives(struct pt_comm *pt, struct link *to_end)
{
    struct match *m = &pt->match[PT_COLL];
    struct bodies bodies = {NULL, &bodies.first};
    struct link posted = LIST_INIT(posted);
    match_take_posted(m, NULL, collect, &posted);
    match_take_unexpected(m, collect_body, &bodies);
    for (struct link *a; (a = list_pop(&posted));)
        if (!keep_receive(m, container_of(a, struct request, link))) list_push(to_end, a);
    for (struct match_body *b = bodies.first, *next; b; b = next) {
        next = b->next;
        if (!keep_body(m, b)) pt_swallow(b);
    }
}

void pt_end_collectives(struct pt_comm *pt, int error)
{
    struct link to_end = LIST_INIT(to_end);
    end_collectives(pt, &to_end);
    for (struct link *a; (a = list_pop(&to_end));) lane_finish(container_of(a, struct request, link), error);
}

/* No collective can be done without it: also those that go through memory, where nobody waits for a message. */
static void end_calls(struct comm *c, const struct peer *p)
{
    err_set(TERN_ERR_PEER, "%s", p->lost);
    if (c->call_log) pt_call_log_give_up(c, TERN_ERR_PEER);
}

/* Takes the receives that the loss ends out of matching. */
static void take_receives(struct pt_comm *pt, struct peer *p, struct link *to_end)
{
    struct comm *c = pt->comm;
    int rank = c ? rankmap_find(c->map, p->index) : -1, any = MATCH_ANY_SOURCE;
    if (rank < 0 && (!c || !is_in(c, p->index))) return;
    pt->lost = p;
    pt->gone |= PT_GONE_LOST;
    if (rank >= 0) {
        pt->gone |= PT_GONE_SOURCE;
        match_take_posted(&pt->match[PT_USER], &rank, collect, to_end);
        match_take_posted(&pt->match[PT_USER], &any, collect, to_end);
    }
    end_collectives(pt, to_end);
    end_calls(c, p);
}

static void end_receives(struct lane *l, struct peer *p)
{
    struct link to_end = LIST_INIT(to_end);
    for (uint32_t i = 0; i <= l->ctx_mask && !(p->flags & PEER_LEFT); i++)
        for (struct pt_comm *pt = l->ctx_table[i]; pt; pt = pt->next) take_receives(pt, p, &to_end);
    for (struct link *a; (a = list_pop(&to_end));) pt_end_lost(container_of(a, struct request, link), p);
    struct request *r = p->arriving;
    p->arriving = NULL;
    if (r) pt_end_lost(r, p);
}

int pt_end_lost_peers(struct lane *l)
{
    int n = 0;
    for (struct link *a; (a = list_pop(&l->lost)); n++) {
        struct peer *p = container_of(a, struct peer, in_lost);
        end_parked(p);
        remote_lost(p);
        end_known(l, p);
        end_incoming(l, p);
        end_receives(l, p);
    }
    if (l->sleepers) bell_ring(wires_bell()); /* threads of ours may be probing */
    return n;
}

/* ---- from then on ---- */

static void note_lost(struct pt_comm *pt)
{
    for (uint32_t i = 0; i < peer_count && lane0.lost_count; i++) {
        struct peer *p = peer_table[i];
        if (!p || !p->lost || p->flags & PEER_LEFT || !is_in(pt->comm, i)) continue;
        pt->lost = p;
        pt->gone |= PT_GONE_LOST;
        if (rankmap_find_once(pt->comm->map, i) >= 0) pt->gone |= PT_GONE_SOURCE;
    }
}

/* One that is given up in this turn is not in the communicator's state yet. */
static const struct peer *lost_member(const struct comm *c)
{
    const struct peer *p = c->pt ? c->pt->lost : NULL;
    if (!p && c->within && c->within->pt) p = c->within->pt->lost;
    for (uint32_t i = 0; i < peer_count && !p; i++) {
        const struct peer *q = peer_table[i];
        if (q && q->lost && !(q->flags & PEER_LEFT) && is_in(c, i)) p = q;
    }
    return p;
}

/* Another thread may be taking note of one more loss. An operation that has failed since memory was gone may be complete
 * before any thread has heard of the end. */
void pt_recall_member(const struct comm *c)
{
    lane_enter(c->lane);
    pt_hear_ends();
    const struct peer *p = lost_member(c);
    if (p) err_set(TERN_ERR_PEER, "%s", p->lost);
    lane_leave(c->lane);
}

void pt_lost_calls(struct comm *c)
{
    if (likely(!c->pt || !(c->pt->gone & PT_GONE_LOST))) return;
    lane_enter(c->lane);
    end_calls(c, c->pt->lost);
    lane_leave(c->lane);
}

int pt_all_live(const struct comm *c, const struct rankmap *members)
{
    if (likely(!c->pt || !(c->pt->gone & PT_GONE_LOST))) return 0;
    for (int32_t r = 0; r < members->size; r++) {
        uint32_t index = rankmap_at(members, r);
        struct peer *p = index < peer_count ? peer_table[index] : NULL;
        if (p && p->lost && !(p->flags & PEER_LEFT)) return err_set(TERN_ERR_PEER, "%s", p->lost);
    }
    return 0;
}

void pt_lost_members(struct pt_comm *pt)
{
    const struct rankmap *map = pt->comm->map;
    note_lost(pt);
    for (int32_t r = 0; r < map->size && !(pt->gone & PT_GONE_BEYOND); r++)
        if (peer_may_be_beyond(rankmap_at(map, r))) pt->gone |= PT_GONE_BEYOND;
}

int pt_reaches_all(const struct comm *c)
{
    if (likely(!c->pt || !(c->pt->gone & PT_GONE_BEYOND))) return 0;
    int rc = 0;
    for (int32_t r = 0; r < c->map->size && !rc; r++) rc = peer_beyond(rankmap_at(c->map, r));
    return rc;
}

/* Who of the lost this receive waits for, NULL: nobody. */
static struct peer *awaited(struct pt_comm *pt, uint64_t ctx, int source, int tag)
{
    if (ctx & CTX_COLL && !pt_tag_is_for_two(tag)) return pt->lost;
    if (source == MPI_ANY_SOURCE) return pt->gone & PT_GONE_SOURCE ? pt->lost : NULL;
    struct peer *p = peer_table[comm_index(pt->comm, source)];
    return p && p->lost && !(p->flags & PEER_LEFT) ? p : NULL;
}

int pt_source_lost(struct pt_comm *pt, uint64_t ctx, int source, int tag, struct peer **who_p)
{
    struct peer *p = awaited(pt, ctx, source, tag);
    *who_p = p;
    if (!p) return source == MPI_ANY_SOURCE ? 0 : peer_beyond(comm_index(pt->comm, source));
    return err_set(TERN_ERR_PEER, "%s", p->lost);
}
