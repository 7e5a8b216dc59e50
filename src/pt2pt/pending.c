/* pending.c - see pending.h. */
#include "pt2pt/pending.h"
#include "base/err.h"
#include "pt2pt/check.h"
#include "pt2pt/closing.h"
#include "pt2pt/doubt.h"
#include "pt2pt/helper.h"
#include "pt2pt/limits.h"
#include "pt2pt/protocol.h"
#include "transport/wire_lock.h"

static struct lock short_way; /* a leaf: peer.waiting and peer.short_max */

static struct pending *first_of(struct link *list)
{
    struct link *l = list_pop(list);
    return l ? container_of(l, struct pending, link) : NULL;
}

static struct peer_lane *entry_of(const struct lane *l, struct peer *p) { return peer_lane_of(p, l->number); }

/* ---- the short way ---- */

static void open_short(struct peer *p)
{
    if (peer_waiting(p) || p->lost || pt_checking || (lane_threaded() && peer_delivers_at_once(p))) return;
    int64_t most = (int64_t)min_size((size_t)limits_of(p)->eager_max, p->ep.max_short);
    if (unlikely(helper_is_apart()) && pt_send_is_call(p)) most = min_int64(most, limits_eager_least());
    if (p->short_max != most) peer_set_short(p, most);
}

/* Something may begin to wait for the peer in another lane. */
void lane_open_short(struct peer *p)
{
    bool shared = lane_threaded();
    if (shared) leaf_take(&short_way);
    open_short(p);
    if (shared) leaf_give(&short_way);
}

/* With the leaf; returns how many there are now. */
static int64_t count(struct peer *p, int by)
{
    int64_t n = peer_waiting(p) + by;
    atomic_store_explicit(&p->waiting, n, memory_order_relaxed);
    return n;
}

static void count_up(struct peer *p)
{
    leaf_take(&short_way);
    count(p, 1);
    peer_set_short(p, -1);
    leaf_give(&short_way);
}

/* The last one opens the short way. */
static void count_down(struct peer *p)
{
    leaf_take(&short_way);
    bool last = !count(p, -1);
    if (last) open_short(p);
    leaf_give(&short_way);
    if (unlikely(p->flags & PEER_ASKS)) pt_answer_asked();
}

static void begin(struct lane *l, struct peer_lane *w)
{
    w->waits = true;
    count_up(w->peer);
    list_push(&l->pending, &w->in_lane);
    lane_step_on(l, &l->retry); /* threads that sleep have not asked to be woken for room (tp_ops.idle) */
}

static void end(struct peer_lane *w)
{
    w->waits = false;
    list_remove(&w->in_lane);
    count_down(w->peer);
}

/* ---- in and out ---- */

bool pending_is_clear_long(struct lane *l, struct peer *p)
{
    const struct peer_lane *w = entry_of(l, p);
    return !p->held && !(w && w->waits);
}

int pending_prepare(struct lane *l, struct peer *p) { return entry_of(l, p) || peer_lane_add(p, l->number) ? 0 : TERN_ERR_NOMEM; }

int pending_park(struct lane *l, struct peer *p, struct pending *op, const struct pending_ops *ops)
{
    int rc = pending_prepare(l, p);
    if (rc) return rc;
    struct peer_lane *w = entry_of(l, p);
    op->ops = ops;
    list_push(&w->ops, &op->link);
    if (p->held) closing_look(p);
    else if (!w->waits) begin(l, w);
    return 0;
}

bool pending_withdraw(struct lane *l, struct peer *p, struct pending *op)
{
    struct peer_lane *w = entry_of(l, p);
    if (!w) return false;
    list_each(a, next, &w->ops)
        if (a == &op->link) {
            list_remove(a);
            return true;
        }
    return false;
}

void pending_end_all(struct lane *l, struct peer *p)
{
    struct peer_lane *w = entry_of(l, p);
    if (!w) return;
    for (struct pending *op; (op = first_of(&w->ops));) op->ops->end(l, p, op);
    if (w->waits) end(w);
}

/* ---- a peer is held ---- */

void pending_hold(struct peer *p)
{
    if (!p->held) count_up(p);
    p->held = true;
}

void pending_let_go(struct lane *l, struct peer *p)
{
    if (!p->held) return;
    p->held = false;
    if (pending_any(p) && !p->first.waits) begin(l, &p->first);
    count_down(p);
}

static void move_all(struct link *from, struct link *to)
{
    for (struct link *a; (a = list_pop(from));) list_push(to, a);
}

void pending_take(struct peer *p, struct link *waiting)
{
    move_all(&p->first.ops, waiting);
    leaf_take(&short_way);
    count(p, -(p->held + p->first.waits));
    leaf_give(&short_way);
    p->held = p->first.waits = false;
    list_remove(&p->first.in_lane);
}

void pending_give(struct peer *p, struct link *waiting) { move_all(waiting, &p->first.ops); }

void pending_all_anew(struct lane *l, uint32_t index, struct link *waiting)
{
    for (struct pending *op; (op = first_of(waiting));) op->ops->anew(l, index, op);
}

/* ---- attempts ---- */

/* Sends what waits for room at one peer, in order. */
static int retry_peer(struct lane *l, struct peer_lane *w)
{
    struct peer *p = w->peer;
    int n = 0;
    while (!p->lost && !list_empty(&w->ops)) {
        struct pending *op = first_of(&w->ops); /* before the attempt: it may be gone after that */
        if (!op->ops->attempt(l, p, op)) {
            list_insert(&w->ops, &op->link); /* back to the front */
            return n;
        }
        n++;
    }
    if (!p->lost) end(w); /* else lost.c ends what is left */
    return n;
}

/* Sends what waits for room, to each peer in order. */
static int retry_all(struct step *s)
{
    struct lane *l = container_of(s, struct lane, retry);
    int n = 0;
    list_each(a, next, &l->pending) n += retry_peer(l, container_of(a, struct peer_lane, in_lane));
    if (list_empty(&l->pending)) step_off(s);
    return n;
}

static bool is_drained(const struct step *s)
{
    const struct lane *l = container_of((struct step *)(uintptr_t)s, struct lane, retry);
    return list_empty(&l->pending);
}

static const struct step_ops retry_ops = {
    .name = "operations that wait for room", .poll = retry_all, .room = true, .idle = step_waits, .drained = is_drained};

void pending_open(struct lane *l)
{
    list_init(&l->pending);
    l->retry = (struct step){.ops = &retry_ops};
    step_add(&l->steps, &l->retry);
}
