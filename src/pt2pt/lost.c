/* lost.c - see lost.h. */
#include "pt2pt/lost.h"
#include "base/err.h"
#include "proc/jobs.h"
#include "proc/proc.h"
#include "proc/watcher.h"
#include "pt2pt/api.h"
#include "pt2pt/call_log.h"
#include "pt2pt/closing.h"
#include "pt2pt/doubt.h"
#include "pt2pt/lanes.h"
#include "pt2pt/pending.h"
#include "pt2pt/protocol.h"
#include "pt2pt/say.h"
#include "pt2pt/wait_policy.h"
#include "transport/endpoint.h"
#include "transport/wire_lock.h"

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
    const struct peer *p = peer_known(comm_index(c, rank));
    return p && p->lost;
}

static struct step deaths, ends; /* told of, found by the watcher */

struct losses losses;

static char no_words[] = "a process of the job was lost (and there was no memory to keep the reason)";

/* ---- at once ---- */

void pt_leave(struct peer *p)
{
    if (p->lost) return;
    p->flags |= PEER_LEFT;
    pt_lose(p);
}

/* What is coming in may have our buffers as its place. Another thread may be in the wire: then the next turn tries again. */
static void sever(struct peer *p)
{
    if (ep_sever(&p->ep)) p->flags |= PEER_UNCUT;
    else p->flags &= ~(uint32_t)PEER_UNCUT;
}

/* False: another thread has done so. Whoever ends an operation of the peer cuts it off before, if that is not done yet: a thread may
 * just be reading into the memory of a receive. */
static bool note_loss(struct peer *p, char *words)
{
    leaf_take(&losses.lock);
    bool first = !p->lost;
    if (first) {
        p->loss = atomic_load_explicit(&losses.number, memory_order_relaxed) + 1;
        p->lost = words;
        p->flags |= PEER_UNCUT;
        losses.count += !(p->flags & PEER_LEFT);
        list_push(&losses.list, &p->in_lost);
        /* release: pairs with the acquire in end_lost_peers */
        atomic_store_explicit(&losses.number, p->loss, memory_order_release);
    }
    leaf_give(&losses.lock);
    return first;
}

static void tell_lanes(void)
{
    struct lane *l;
    for (uint32_t i = 0; (l = lanes_at(i)); i++) step_tell(&l->losses);
}

void pt_lose(struct peer *p)
{
    if (p->lost) return;
    char *words = strdup(err_words());
    if (!note_loss(p, words ? words : no_words)) {
        free(words);
        return;
    }
    peer_set_short(p, -1);
    wait_parts(p);
    if (!wires_threaded) contexts_no_last(); /* what it sends is dropped */
    tell_lanes();
    sever(p);
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

/* Another thread may be polling: it has taken something that is to be delivered first. The calling thread may have a lane, for
 * no thread that polls waits for one. */
static void take_last_shared(void)
{
    for (int i = 0; wires_at(i); i++) {
        if (wire_take(i, WIRE_POLL)) continue;
        for (int turn = 0; turn < LAST_TURNS && wire_poll(i, LAST_TURNS) > 0; turn++) continue;
        wire_give(i, WIRE_POLL);
    }
}

void pt_take_last(void)
{
    if (unlikely(wires_threaded)) {
        take_last_shared();
        return;
    }
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
    if (end == TP_END_UNKNOWN && pt_is_leaving()) p->flags |= PEER_ENDED;
    else lose_dead(p);
}

bool pt_marked_have_died(void)
{
    bool any = false;
    for (uint32_t i = 0; i < peers_end(); i++) {
        struct peer *p = peer_known(i);
        if (!p || p->lost || !(p->flags & PEER_ENDED)) continue;
        lose_dead(p);
        any = true;
    }
    return any;
}

/* Those that the launcher has told of (proc_deaths). */
static struct {
    struct proc_deaths told;
    uint32_t heard;
} dead;

/* The launcher has told of more deaths. */
static int hear_deaths(struct step *s)
{
    int n = 0;
    (void)s;
    while (dead.heard != atomic_load_explicit(dead.told.count, memory_order_acquire)) /* pairs with proc_deaths */
        hear(atomic_load_explicit(&dead.told.rank[dead.heard++], memory_order_relaxed), TP_END_DIED), n++;
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

static int hear_ends(struct step *s)
{
    (void)s;
    return pt_hear_ends();
}

/* By the watcher's thread, too. */
static void process_ended(void)
{
    step_tell(&ends);
    bell_wake_all(wires_bell());
}

static void free_words(struct peer *p)
{
    if (p->lost != no_words) free(p->lost);
    p->lost = NULL;
}

void lost_close_process(void) { watcher_ring_by(NULL); }

void pt_lost_close(void)
{
    for (uint32_t i = 0; i < peers_end(); i++) {
        struct peer *p = peer_known(i);
        if (!p || !p->lost) continue;
        free_words(p);
        p->flags &= ~(uint32_t)(PEER_LEFT | PEER_ASKED | PEER_ASKS | PEER_OVER | PEER_ENDED);
    }
}

void pt_lost_forget(struct peer *p)
{
    losses.count -= p->lost && !(p->flags & PEER_LEFT);
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

/* The answers to cancels of sends that were over before will not come. */
static void end_ids(struct lane *l, struct peer *p)
{
    uint32_t at = 0;
    for (struct id_entry *e; (e = ids_next(&l->ids, p, &at)); at++)
        if (!e->request) ids_free(&l->ids, e);
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

void pt_swallow(struct lane *l, struct match_body *b)
{
    struct pt_cts nothing = {0, 0, 0};
    struct peer *from = b->peer;
    if (b->kind == BODY_OFFER) lane_say(l, from, AM_CTS, b->cookie[0], 0, &nothing, sizeof nothing);
    if (b->kind == BODY_SYNC) lane_say(l, from, AM_ACK, b->cookie[0], 0, NULL, 0);
    pt_free_body(l, b);
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
        if (!keep_body(m, b)) pt_swallow(pt->lane, b);
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

/* The receive that a message was just coming to, of which no more will come: the peer is cut off. */
static void end_arriving(struct lane *l, struct peer *p)
{
    void **at = wires_threaded ? &p->sunk : &p->arriving;
    struct request *r = *at;
    if (!r || lane_of(r) != l) return;
    *at = NULL;
    pt_end_lost(r, p);
}

static void end_receives(struct lane *l, struct peer *p)
{
    struct link to_end = LIST_INIT(to_end);
    if (!(p->flags & PEER_LEFT))
        list_each(a, next, &l->contexts) take_receives(container_of(a, struct pt_comm, in_lane), p, &to_end);
    for (struct link *a; (a = list_pop(&to_end));) pt_end_lost(container_of(a, struct request, link), p);
    end_arriving(l, p);
}

/* What concerns the process and not one lane. */
static void end_in_first(struct peer *p)
{
    pt_gather_drop(p);
    progress_peer_end(&progress_process, p);
}

static void end_lost_peer(struct lane *l, struct peer *p)
{
    if (unlikely(p->flags & PEER_UNCUT)) sever(p); /* a step waits for the wire */
    peer_set_short(p, -1);
    pending_end_all(l, p);
    if (l == lanes_first()) end_in_first(p);
    progress_peer_end(&l->steps, p);
    end_ids(l, p);
    end_receives(l, p);
    if (l == lanes_first()) closing_look(p);
}

/* The first that the lane has not seen, up to that number; NULL: it has seen all. */
static struct peer *next_loss(const struct lane *l, uint32_t until)
{
    struct peer *found = NULL;
    leaf_take(&losses.lock);
    list_each(a, next, &losses.list)
    {
        struct peer *p = container_of(a, struct peer, in_lost);
        if (p->loss <= l->losses_seen || p->loss > until) continue;
        found = p;
        break;
    }
    leaf_give(&losses.lock);
    return found;
}

/* Out of the list goes what has ended in all lanes. */
static void forget_losses(void)
{
    struct lane *l;
    uint32_t ended = UINT32_MAX;
    leaf_take(&losses.lock);
    for (uint32_t i = 0; (l = lanes_at(i)); i++) ended = (uint32_t)min_size(ended, __atomic_load_n(&l->losses_ended, __ATOMIC_ACQUIRE));
    list_each(a, next, &losses.list)
        if (container_of(a, struct peer, in_lost)->loss <= ended) list_remove(a);
    leaf_give(&losses.lock);
}

/* Ends the operations, in this lane, of the peers that were lost since the last call; how many peers. What they had sent
 * before is in the inbox before the loss has its number. */
static int end_lost_peers(struct step *s)
{
    struct lane *l = container_of(s, struct lane, losses);
    uint32_t until = atomic_load_explicit(&losses.number, memory_order_acquire);
    int n = 0;
    if (unlikely(!inbox_is_empty(&l->inbox))) lane_drain(l);
    for (struct peer *p; (p = next_loss(l, until)); n++) {
        uint32_t number = p->loss;
        l->losses_seen = number; /* before the end: mail of the peer is dropped */
        end_lost_peer(l, p);
        __atomic_store_n(&l->losses_ended, number, __ATOMIC_RELEASE); /* pairs with the acquire in forget_losses */
    }
    forget_losses();
    lane_changed(l); /* threads of ours may be probing */
    return n;
}

bool lost_is_over(const struct peer *p)
{
    leaf_take(&losses.lock);
    bool over = list_empty(&p->in_lost);
    leaf_give(&losses.lock);
    return over;
}

bool lost_is_known(const struct lane *l, const struct peer *p) { return p->lost && p->loss <= l->losses_seen; }

static const struct step_ops deaths_ops = {.name = "deaths that the launcher tells of", .poll = hear_deaths};
static const struct step_ops ends_ops = {.name = "ends of processes of the node", .poll = hear_ends};
static const struct step_ops lost_ops = {.name = "lost peers", .poll = end_lost_peers};

void lost_open(struct lane *l)
{
    l->losses = (struct step){.ops = &lost_ops};
    l->losses_seen = l->losses_ended = losses.number; /* what comes into the lane knows of those (pt_lost_members) */
    step_add(&l->steps, &l->losses);
}

void lost_open_process(struct lane *first)
{
    dead.told = proc_deaths();
    dead.heard = 0;
    deaths = (struct step){.ops = &deaths_ops, .word = dead.told.count};
    ends = (struct step){.ops = &ends_ops};
    losses.count = 0;
    list_init(&losses.list);
    step_add(&first->steps, &deaths);
    step_add(&first->steps, &ends);
    watcher_ring_by(process_ended);
}

/* ---- from then on ---- */

static void note_lost(struct pt_comm *pt)
{
    for (uint32_t i = 0; i < peers_end() && losses.count; i++) {
        struct peer *p = peer_known(i);
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
    for (uint32_t i = 0; i < peers_end() && !p; i++) {
        const struct peer *q = peer_known(i);
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
        struct peer *p = peer_known(index);
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
    struct peer *p = peer_known(comm_index(pt->comm, source));
    return p && p->lost && !(p->flags & PEER_LEFT) ? p : NULL;
}

int pt_source_lost(struct pt_comm *pt, uint64_t ctx, int source, int tag, struct peer **who_p)
{
    struct peer *p = awaited(pt, ctx, source, tag);
    *who_p = p;
    if (!p) return source == MPI_ANY_SOURCE ? 0 : peer_beyond(comm_index(pt->comm, source));
    return err_set(TERN_ERR_PEER, "%s", p->lost);
}
