/*
 * lane.c - the lane's life, and progress.
 */
#include "pt2pt/lane.h"
#include "base/err.h"
#include "base/var.h"
#include "proc/proc.h"
#include "proc/watcher.h"
#include "pt2pt/api.h"
#include "pt2pt/check.h"
#include "pt2pt/closing.h"
#include "pt2pt/helper.h"
#include "pt2pt/limits.h"
#include "pt2pt/lost.h"
#include "pt2pt/call_log.h"
#include "pt2pt/protocol.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

struct lane lane0;

/* Messages delivered from one ring before the others have their turn. */
#define BUDGET 64
#define SHORT_BUDGET 8

#define CHUNK_MAX ((size_t)1 << 30)

/* ---- life ---- */

static void peer_lost(struct peer *p, int code)
{
    (void)code; /* who asks later is told TERN_ERR_PEER, whatever broke the way, and the words */
    pt_lose(p);
}

/* By the watcher's thread, too. */
static void process_ended(void)
{
    lane_note_end(&lane0);
    bell_wake_all(wires_bell());
}

static const struct tp_am messages[] = {
    {AM_CTS, "clear to send", pt_on_cts, NULL, false, sizeof(struct pt_cts)},
    {AM_FRAG, "fragment", pt_on_frag, pt_sink_frag, false, 0},
    {AM_ACK, "acknowledgement", pt_on_ack, NULL, false, 0},
    {AM_CREDIT, "credit", pt_on_credit, NULL, false, 0},
    {AM_CANCEL, "cancel", pt_on_cancel, NULL, false, 0},
    {AM_CANCELLED, "cancelled", pt_on_cancelled, NULL, false, 0},
    {AM_ASK, "are you over", pt_on_ask, NULL, true, 0},
    {AM_OVER, "over", pt_on_over, NULL, false, 0},
    {AM_CALL, "collective call", pt_on_call, NULL, true, sizeof(struct wire_call)},
    {AM_CLASH, "collective clash", pt_on_clash, NULL, false, sizeof(struct wire_clash)},
    {AM_CLOSING, "closing", pt_on_closing, NULL, false, 0},
};

int pt_register(void)
{
    int rc = tp_am_register(messages, ARRAY_LEN(messages));
    return rc ? rc : pt_check_register();
}

void pt_unregister(void)
{
    tp_am_unregister(messages, ARRAY_LEN(messages));
    pt_check_unregister();
}

static int64_t chunk_size(enum var_id variable)
{
    int64_t n = var_int(variable);
    return n > 4096 ? (int64_t)min_size((size_t)n, CHUNK_MAX) : 4096;
}

int pt_open(bool threaded)
{
    struct lane *l = &lane0;
    memset(l, 0, sizeof *l);
    pthread_mutexattr_t recursive; /* the last reference to a communicator may go while its lane is held */
    pthread_mutexattr_init(&recursive);
    pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&l->lock, &recursive);
    pthread_mutexattr_destroy(&recursive);
    atomic_store_explicit(&l->mode, threaded ? LANE_THREADED : 0, memory_order_relaxed);
    pt_credit_open(l);
    l->deaths = proc_deaths();
    l->eager_now = INT64_MAX;
    l->chunk = chunk_size(VAR_CHUNK_CMA);
    l->chunk_stream = chunk_size(VAR_CHUNK_STREAM);
    limits_open();
    ids_open(&l->ids);
    list_init(&l->lost);
    list_init(&l->pending);
    list_init(&l->incoming);
    list_init(&l->outgoing);
    list_init(&l->streams);
    list_init(&l->bulks);
    list_init(&l->pollers);
    list_init(&l->chores);
    list_init(&l->deferred);
    closing_open(l);
    match_pool_init(&l->pool, SIZE_MAX, (size_t)var_int(VAR_MATCH_HEAD)); /* bounded by the peers' credits */
    int rc = match_open();
    if (rc) return rc;
    wait_open(l);
    tp_lost = peer_lost;
    tp_left = pt_leave;
    watcher_rings = process_ended;
    peer_forgotten = closing_forget;
    rc = pt_check_open();
    if (rc) return rc;
    return contexts_open(l);
}

void pt_close(void)
{
    struct lane *l = &lane0;
    helper_stop();
    contexts_close(l);
    closing_close(l);
    match_pool_fini(&l->pool);
    pt_check_close();
    pt_offers_close();
    pt_lost_close();
    ids_close(&l->ids);
    tp_lost = NULL;
    tp_left = NULL;
    watcher_rings = NULL;
    peer_forgotten = NULL;
    pthread_mutex_destroy(&l->lock);
}

void pt_own(void) { lane_own(&lane0, (int)syscall(SYS_gettid)); }

static bool drained(void *lane)
{
    const struct lane *l = lane;
    bool bulks = l->bulks_under_way || !list_empty(&l->bulks);
    return list_empty(&l->pending) && list_empty(&l->streams) && !bulks && !closing_holds() && wires_drained();
}

/* Without a limit of time: who has what is to be sent may compute for hours, and who is dead is found out (lost.h). */
void pt_drain(void)
{
    lane_enter(&lane0);
    lane_wait(&lane0, drained, &lane0, NULL);
    lane_leave(&lane0);
}

void lane_fatal(const char *what)
{
    char line[700];
    snprintf(line, sizeof line, "rank %u cannot go on: %s: %s. The job is ended.", proc_self()->rank, what, err_words());
    proc_abort(1, line);
}

/* ---- completion ---- */

void lane_finish(struct request *r, int error)
{
    r->result.error = error;
    bool free_it = r->flags & REQ_DETACHED;
    struct comm *c = r->comm;
    bool gone = r->done && (r->flags & REQ_LAST_WORD);
    if (unlikely(r->flags & REQ_BACKGROUND)) lane_come_back(&lane0);
    if (unlikely(r->id)) ids_drop(&lane0.ids, r);
    if (r->done) r->done(r);
    /* release: everything above is seen by who finds the request complete */
    if (!gone) atomic_store_explicit(&r->complete, 1, memory_order_release);
    if (unlikely(lane0.sleepers)) bell_ring(wires_bell()); /* another thread of ours may wait for this one */
    if (unlikely(free_it)) {
        if (r->flags & REQ_HOOKED && r->hooks->drop) r->hooks->drop(r);
        type_unref(r->type);
        request_free(r);
        comm_unref(c);
    }
}

/* ---- messages that wait for room ---- */

void lane_open_short(struct lane *l, struct peer *p)
{
    if (p->pending || p->lost || lane_threaded(l) || pt_checking) return;
    p->short_max = (int64_t)min_size((size_t)limits_of(p)->eager_max, p->ep.max_short);
    if (unlikely(helper_apart) && pt_send_is_call(p)) p->short_max = (int64_t)min_size((size_t)p->short_max, (size_t)limits_eager_least());
}

void lane_park(struct lane *l, struct peer *p, struct request *r)
{
    list_push(&p->pending_head, &r->link);
    if (p->pending) {
        if (unlikely(p->flags & (PEER_IDLE | PEER_CLOSING))) closing_look(p);
        return;
    }
    p->pending = &p->pending_head;
    p->short_max = -1;
    list_push(&l->pending, &p->in_pending);
}

/* An answer that cannot go out: credit is nothing to one who has left, which sessions may do without a barrier; whoever is
 * owed another one is lost. */
static TERN_COLD void unanswered(struct peer *p, unsigned id)
{
    if (id != AM_CREDIT) pt_lose(p);
}

static TERN_COLD void park_control(struct peer *p, unsigned id, uint64_t h0, uint64_t h1, const void *data, size_t n)
{
    struct request *r = request_new(REQ_NONE); /* carries the message until there is room */
    if (!r) lane_fatal("a peer cannot be answered");
    assert(n <= sizeof r->cookie);
    r->mode = (uint8_t)id;
    r->ctx = h0;
    r->bytes = (int64_t)h1;
    r->count = (int64_t)n;
    if (n) memcpy(r->cookie, data, n);
    r->peer = p;
    lane_park(&lane0, p, r);
}

void lane_control(struct peer *p, unsigned id, uint64_t h0, uint64_t h1, const void *data, size_t n)
{
    if (unlikely(p->lost || p->flags & PEER_CLOSING)) return;
    if (unlikely(!p->ep.ops) && !peer_connect(p->index)) {
        unanswered(p, id);
        return;
    }
    int rc = p->pending ? TERN_AGAIN : p->ep.am_short(&p->ep, id, h0, h1, data, n);
    if (likely(!rc)) {
        peer_look_again(p);
        return;
    }
    if (rc == TERN_AGAIN) park_control(p, id, h0, h1, data, n);
    else unanswered(p, id);
}

int pt_message(uint32_t index, unsigned id, uint64_t h0, uint64_t h1, const void *data, size_t n)
{
    lane_enter(&lane0);
    struct peer *p = peer_get(index);
    int rc = p ? 0 : TERN_ERR_PEER;
    if (p && p->lost) rc = err_set(TERN_ERR_PEER, "%s", p->lost);
    if (!rc) lane_control(p, id, h0, h1, data, n);
    if (!rc && p->lost) rc = err_set(TERN_ERR_PEER, "%s", p->lost);
    lane_leave(&lane0);
    return rc;
}

/* One more try of a parked operation: true if it is out of the way, sent or failed for good. */
static bool attempt(struct request *r)
{
    if (r->kind == REQ_SEND) {
        int rc = pt_send_attempt(r);
        if (rc && rc != TERN_AGAIN) pt_send_failed(r, rc);
        return rc != TERN_AGAIN;
    }
    int rc = r->peer->ep.am_short(&r->peer->ep, r->mode, r->ctx, (uint64_t)r->bytes, r->cookie, (size_t)r->count);
    if (rc == TERN_AGAIN) return false;
    if (rc) unanswered(r->peer, r->mode);
    else peer_look_again(r->peer);
    request_free(r);
    return true;
}

/* Sends what waits for room at one peer, in order. */
static int retry_peer(struct lane *l, struct peer *p)
{
    int n = 0;
    while (!p->lost && !list_empty(&p->pending_head)) {
        struct link *first = p->pending_head.next;
        struct request *r = container_of(first, struct request, link);
        list_remove(first); /* before the attempt: a finished request may be gone after it */
        if (!attempt(r)) {
            list_insert(&p->pending_head, first); /* back to the front */
            return n;
        }
        n++;
    }
    if (p->lost) return n; /* pt_end_lost_peers ends what is left */
    p->pending = NULL;
    lane_open_short(l, p);
    list_remove(&p->in_pending);
    return n;
}

/* This thread is the helper, and has done something already when another one wants the lane. */
static bool in_the_way(void) { return unlikely(lane_helping) && lane_wanted(&lane0); }

/* One step of every request of a list. A step may end its request and, through `done`, start, move or end others: the
 * place is kept by a link of our own. */
static int step_all(struct link *head, int (*step)(struct request *))
{
    struct link place;
    int n = 0;
    list_insert(head, &place);
    while (place.next != head && !in_the_way()) {
        struct link *l = place.next;
        list_remove(&place);
        list_insert(l, &place);
        n += step(container_of(l, struct request, link));
    }
    list_remove(&place);
    return n;
}

/* Sends that nothing may have happened to, and what waits for room: so many are looked at in a turn. */
#define OUTGOING_TURN 64

/* One step of the first requests of a list, which go to its end. */
static int step_some(struct link *head, int (*step)(struct request *), int most)
{
    struct link end;
    int n = 0;
    list_push(head, &end);
    while (most-- && head->next != &end && !in_the_way()) {
        struct link *l = head->next;
        list_remove(l);
        list_push(head, l);
        n += step(container_of(l, struct request, link));
    }
    list_remove(&end);
    return n;
}

static TERN_COLD int progress_large(struct lane *l)
{
    return step_all(&l->incoming, pt_incoming_step) + step_some(&l->outgoing, pt_outgoing_step, OUTGOING_TURN) +
           step_all(&l->streams, pt_stream_step) + step_some(&l->bulks, pt_bulk_step, OUTGOING_TURN);
}

/* What the helper must not do, a caller does. */
static TERN_COLD int end_deferred(struct lane *l)
{
    int n = 0;
    for (; !lane_helping && !list_empty(&l->deferred); n++) {
        struct link *first = l->deferred.next;
        struct request *r = container_of(first, struct request, link);
        list_remove(first);
        r->done(r);
    }
    return n;
}

/* One piece of local work. */
static TERN_COLD int do_chore(struct lane *l)
{
    struct request *r = container_of(list_pop(&l->chores), struct request, link);
    r->done(r);
    if (unlikely(l->sleepers)) bell_ring(wires_bell()); /* as in lane_finish, which it may not have come to */
    return 1;
}

/* What the end of processes, of peers and of collectives leaves behind. What is noted meanwhile comes in the next turn. */
static TERN_COLD int end_all(struct lane *l)
{
    atomic_exchange_explicit(&l->ends, 0, memory_order_acquire); /* pairs with lane_note_end: what was noted is seen */
    int n = pt_hear_ends() + pt_end_lost_peers(l);
    return n + pt_call_log_end(l);
}

static inline int turn(struct lane *l, int budget)
{
    int n = wires_progress(budget);
    if (unlikely(lane_has_deaths(l))) n += pt_hear_deaths(l);
    if (unlikely(atomic_load_explicit(&l->ends, memory_order_relaxed))) n += end_all(l);
    if (unlikely(!list_empty(&l->pending)))
        list_each(a, next, &l->pending) n += retry_peer(l, container_of(a, struct peer, in_pending));
    if (unlikely(l->large)) n += progress_large(l);
    if (!list_empty(&l->pollers)) n += lane_pollers_look(l);
    if (unlikely(!list_empty(&l->chores)) && !in_the_way()) n += do_chore(l);
    if (unlikely(!list_empty(&l->deferred))) n += end_deferred(l);
    return n;
}

int lane_progress(struct lane *l) { return turn(l, BUDGET); }
int lane_short_turn(struct lane *l) { return turn(l, SHORT_BUDGET); }

bool lane_still(struct lane *l)
{
    list_each(a, next_a, &l->incoming) {
        const struct pt_offer *o = container_of(a, struct request, link)->xfer;
        uint64_t next = atomic_load_explicit(&((struct pt_offer *)(uintptr_t)o)->next, memory_order_relaxed);
        if ((next < o->bytes && o->receiver_copies) || atomic_load_explicit(&((struct pt_offer *)(uintptr_t)o)->done, memory_order_acquire) >= o->bytes)
            return false;
    }
    list_each(b, next_b, &l->outgoing)
        if (pt_outgoing_ready(container_of(b, struct request, link))) return false;
    bool want_room = !list_empty(&l->pending) || !list_empty(&l->streams) || !list_empty(&l->bulks) || closing_under_way(l);
    bool ends = atomic_load_explicit(&l->ends, memory_order_relaxed); /* who has noted one rings after that */
    return !ends && !lane_has_deaths(l) && wires_idle(want_room);
}

bool lane_idle(struct lane *l)
{
    bool moved = lane_pollers_look(l); /* which may have ended something */
    return !moved && lane_still(l);
}
