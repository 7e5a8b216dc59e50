/*
 * deliver.c - see deliver.h.
 *
 * What this thread is doing, in `mine`:
 *
 *     held      a lane that it has taken for a message, and keeps until its look at the wire is over. The next message of the lane
 *               goes straight to its handler (deliver_in_a_row)
 *     posted    a lane that it has posted to without saying so (lock_note): that follows at the end of the look as well, so
 *               that a batch costs one atomic operation
 *     inside    handlers that it is in, and inboxes that it opens: a handler may send a message to its own process, which
 *               comes here again. That one takes and gives its lane by itself
 *     in_place  the handler that it is in hands over a message that takes the place of its own
 *
 * A message that this process sends to itself is handled during the call that sends it if the thread has the lane, as
 * anything older that the same thread has sent there is out of the inbox since the thread took the lane.
 */
#include "pt2pt/deliver.h"
#include "base/err.h"
#include "pt2pt/check.h"
#include "pt2pt/dispatch.h"
#include "pt2pt/early.h"
#include "pt2pt/lane.h"
#include "pt2pt/lost.h"
#include "pt2pt/protocol.h"
#include "transport/wire_lock.h"

#include <stdlib.h>
#include <string.h>

/* Bytes of copied messages in an inbox, beyond which no more are taken from wires: about what a ring has. */
#define INBOX_MOST (1 << 20)

static _Thread_local struct {
    struct lane *held, *posted;
    uint32_t inside;
    bool in_place;
    uint32_t asked; /* for deliver_busy_every */
} mine __attribute__((tls_model("initial-exec")));

uint32_t deliver_busy_every;

/* ---- the inbox ---- */

static void push(struct lane *l, struct mail *m)
{
    m->next = atomic_load_explicit(&l->inbox.last, memory_order_relaxed);
    /* release: pairs with the acquire in take_all */
    while (!atomic_compare_exchange_weak_explicit(&l->inbox.last, &m->next, m, memory_order_release, memory_order_relaxed)) continue;
}

/* All that is there, the oldest first. */
static struct mail *take_all(struct lane *l)
{
    struct mail *last = atomic_exchange_explicit(&l->inbox.last, NULL, memory_order_acquire), *first = NULL;
    while (last) {
        struct mail *m = last;
        last = m->next;
        m->next = first;
        first = m;
    }
    return first;
}

void lane_drain(struct lane *l)
{
    if (l->inbox.opening) return;
    l->inbox.opening = true;
    mine.inside++;
    for (struct mail *m; (m = take_all(l));)
        for (struct mail *next; m; m = next) {
            next = m->next;
            m->open(l, m);
        }
    mine.inside--;
    l->inbox.opening = false;
}

/* The holder will look. */
static void say_posted(struct lane *l)
{
    if (lane_note(l)) lane_out(l); /* nobody had it: it has been taken, and so its inbox opened */
}

void lane_post(struct lane *l, struct mail *m)
{
    push(l, m);
    say_posted(l);
}

void deliver_post(struct lane *l, struct mail *m)
{
    push(l, m);
    if (!wire_polled()) {
        say_posted(l);
        return;
    }
    struct lane *before = mine.posted;
    mine.posted = l;
    if (before && before != l) say_posted(before);
}

/* ---- lanes ---- */

static bool is_busy_for_test(void) { return unlikely(deliver_busy_every) && ++mine.asked % deliver_busy_every == 0; }

static void give_held(void)
{
    struct lane *l = mine.held;
    mine.held = NULL;
    if (l) lane_out(l);
}

/* Handlers are run one after another during the look at a wire: the lane can be kept for the next. */
static bool is_in_a_row(void) { return !mine.inside && wire_polled(); }

static enum deliver_hold take(struct lane *l)
{
    if (is_busy_for_test()) return HOLD_NONE;
    if (!is_in_a_row()) return lane_try(l) ? HOLD_TAKEN : HOLD_NONE;
    give_held();
    if (!lane_try(l)) return HOLD_NONE;
    mine.held = l;
    return HOLD_KEPT;
}

/* The lane is this thread's already. Within a handler, older messages may still be in the inbox. */
static enum deliver_hold keep(struct lane *l, bool in_order)
{
    if (in_order && (mine.inside || l->inbox.opening)) return HOLD_NONE;
    if (in_order && unlikely(!inbox_is_empty(&l->inbox))) lane_drain(l);
    return mine.held == l && !mine.inside ? HOLD_KEPT : HOLD_OURS;
}

enum deliver_hold deliver_begin(struct lane *l, bool in_order)
{
    enum deliver_hold h = lane_is_mine(l) ? keep(l, in_order) : take(l);
    mine.inside += h != HOLD_NONE;
    return h;
}

void deliver_end(struct lane *l, enum deliver_hold h)
{
    mine.inside--;
    if (h == HOLD_TAKEN) lane_out(l);
    if (h == HOLD_KEPT && unlikely(lock_is_wanted(&l->lock))) give_held();
}

/* Inboxes are opened meanwhile, and their handlers may post again. */
void deliver_over(void)
{
    while (mine.held || mine.posted) {
        struct lane *l = mine.posted;
        mine.posted = NULL;
        give_held();
        if (l) say_posted(l);
    }
}

/* ---- messages ---- */

struct kept_message *kept_message_new(const struct pt_kind *k, struct peer *from, uint64_t h0, uint64_t h1, const void *data, size_t n,
                            bool copied)
{
    struct kept_message *m = malloc(sizeof *m + (copied ? n : 0));
    if (!m) lane_fatal("no memory for a message that waits");
    *m = (struct kept_message){.kind = k, .from = from, .h0 = h0, .h1 = h1, .data = copied ? m->copy : data, .n = n};
    if (copied && n) memcpy(m->copy, data, n);
    return m;
}

/* NULL: its context has no communicator here. */
static struct lane *lane_for(const struct pt_kind *k, uint64_t h0)
{
    if (k->where == PT_BY_ID) return lanes_of_id(h0);
    if (k->where == PT_BY_LANE) return (struct lane *)(uintptr_t)h0;
    if (k->where == PT_BY_PEER) return lanes_first();
    struct lane *l = context_lane(h0);
    return l || k->where == PT_BY_CONTEXT ? l : lanes_first();
}

/* False: the message is another lane's, since its communicator has gone, or has come. */
static bool handle(struct lane *l, const struct pt_kind *k, struct peer *from, uint64_t h0, uint64_t h1, const void *data, size_t n)
{
    bool by_context = k->where == PT_BY_CONTEXT || k->where == PT_ABOUT;
    struct pt_comm *pt = by_context ? context_in(l, h0) : NULL;
    if (unlikely(by_context && !pt && lane_for(k, h0) != l)) return false;
    k->handler(l, pt, from, h0, h1, data, n);
    return true;
}

static size_t copied(const struct kept_message *m) { return m->data == m->copy ? m->n : 0; }

static void count(struct lane *l, const struct kept_message *m, int by)
{
    atomic_fetch_add_explicit(&l->inbox.bytes, by * (int64_t)copied(m), memory_order_relaxed);
}

/* What the peer had sent before it was lost comes first. */
static void open_message(struct lane *l, struct mail *mail)
{
    struct kept_message *m = container_of(mail, struct kept_message, mail);
    count(l, m, -1);
    if (unlikely(pt_checking)) pt_check_recall(m); /* kept here, or where it waited for its communicator (early.c) */
    if (!lost_is_known(l, m->from) && !handle(l, m->kind, m->from, m->h0, m->h1, m->data, m->n))
        deliver_message(m->kind, m->from, m->h0, m->h1, m->data, m->n, !copied(m));
    free(m);
}

static void enter(struct lane *l, struct kept_message *m)
{
    m->mail.open = open_message;
    count(l, m, 1);
}

void deliver_push(struct lane *l, struct kept_message *m)
{
    enter(l, m);
    push(l, &m->mail);
}

static void post(struct lane *l, struct kept_message *m)
{
    if (unlikely(pt_checking)) pt_check_keep(m);
    enter(l, m);
    deliver_post(l, &m->mail);
}

/* By a transport that nobody polls: the sender is this very thread. */
static bool is_in_call(const struct peer *from) { return peer_is_connected(from) && !from->ep.ops->progress; }

void deliver_message(const struct pt_kind *k, struct peer *from, uint64_t h0, uint64_t h1, const void *data, size_t n, bool stays)
{
    for (bool over = false; !over;) {
        struct lane *l = lane_for(k, h0);
        if (unlikely(!l)) {
            over = early_put(k, from, h0, h1, data, n);
            continue;
        }
        enum deliver_hold h = deliver_begin(l, !mine.in_place && !is_in_call(from));
        over = h ? handle(l, k, from, h0, h1, data, n) : true;
        if (h) deliver_end(l, h);
        else post(l, kept_message_new(k, from, h0, h1, data, n, !stays));
    }
}

/* The next message of a batch: its lane is kept from the last one, and nothing older is in the inbox. False: otherwise. */
static inline bool deliver_in_a_row(const struct pt_kind *k, struct peer *from, uint64_t h0, uint64_t h1, const void *data,
                                    size_t n)
{
    struct lane *l = mine.held;
    if (!l || mine.inside || l->inbox.opening || !inbox_is_empty(&l->inbox)) return false;
    struct pt_comm *pt = context_in(l, h0);
    if (unlikely(!pt)) return false;
    mine.inside = 1;
    k->handler(l, pt, from, h0, h1, data, n);
    mine.inside = 0;
    if (unlikely(lock_is_wanted(&l->lock))) give_held();
    return true;
}

void deliver_in_place(bool in_place) { mine.in_place = in_place; }

bool deliver_is_full(const struct lane *l)
{
    return atomic_load_explicit(&l->inbox.bytes, memory_order_relaxed) > INBOX_MOST;
}

/* ---- from dispatch.h ---- */

void dispatch_shared(const struct pt_kind *k, struct peer *from, uint64_t h0, uint64_t h1, const void *data, size_t n)
{
    if (unlikely(from->lost)) return;
    if (unlikely(from->sunk && k->id == AM_EAGER)) pt_arrived(from, h1, data, n);
    else if ((k->where != PT_BY_CONTEXT && k->where != PT_ABOUT) || !deliver_in_a_row(k, from, h0, h1, data, n))
        deliver_message(k, from, h0, h1, data, n, false);
}

void dispatch_looked_up(const struct pt_kind *k, struct peer *from, uint64_t h0, uint64_t h1, const void *data, size_t n)
{
    if (unlikely(wires_threaded)) {
        dispatch_shared(k, from, h0, h1, data, n);
        return;
    }
    if (unlikely(from->lost)) return;
    struct pt_comm *pt = context_find(h0);
    if (likely(pt != NULL)) k->handler(pt->lane, pt, from, h0, h1, data, n);
    else if (k->where == PT_ABOUT) k->handler(lanes_first(), NULL, from, h0, h1, data, n);
    else early_put(k, from, h0, h1, data, n);
}

/* ---- life ---- */

void deliver_open(void)
{
    const char *every = getenv("TERN_TEST_BUSY_LANES");
    deliver_busy_every = every ? (uint32_t)strtoul(every, NULL, 10) : 0;
    wire_poll_over = deliver_over;
}

void deliver_close(void) { wire_poll_over = NULL; }

void inbox_drop(struct lane *l)
{
    for (struct mail *m = take_all(l), *next; m; m = next) {
        next = m->next;
        if (m->open == open_message) free(container_of(m, struct kept_message, mail));
    }
}
