/* background.c - see background.h. */
#include "pt2pt/background.h"
#include "pt2pt/helper.h"
#include "pt2pt/helper_habit.h"
#include "pt2pt/lanes.h"
#include "pt2pt/limits.h"

struct background background;

void background_open(void) { background = (struct background){0}; }

static void add(_Atomic uint32_t *to, int by)
{
    if (lane_threaded()) {
        atomic_fetch_add_explicit(to, (uint32_t)by, memory_order_relaxed);
        return;
    }
    uint32_t n = atomic_load_explicit(to, memory_order_relaxed) + (uint32_t)by;
    atomic_store_explicit(to, n, memory_order_relaxed);
}

static void count(int by) { add(&background.count, by); }

void lane_is_going(struct lane *l)
{
    if (!helper_is_apart() || this_is_the_helper) return;
    if (!lane_threaded() && lane_has_put_off(l)) (void)progress_turn(&lanes_first()->steps); /* it came back before the helper was called */
    if (lane_threaded() || habit_leaves_it()) l->eager_now = limits_eager_least();
}

/* What nobody needs the helper for. Small messages come to their receives as well when the caller is back: they are over
 * for their sender, unless that had no credit and has offered one. So are the deposits of a node's collectives. */
static bool can_wait(const struct request *r)
{
    if (r->kind == REQ_COLL) return !r->xfer && !(r->course & REQ_DRIVEN);
    return r->kind == REQ_RECV && !r->xfer && r->bytes <= limits_eager_least();
}

void lane_in_background(struct lane *l, struct request *r)
{
    l->eager_now = INT64_MAX;
    if (this_is_the_helper || request_is_complete(r) || r->course & REQ_BACKGROUND || can_wait(r)) return;
    r->course |= REQ_BACKGROUND;
    count(1);
    l->left_more = true;
}

bool lane_left_work(struct lane *l)
{
    l->eager_now = INT64_MAX;
    if (this_is_the_helper || !background_is_helped()) return false;
    count(1);
    l->left_more = true;
    return true;
}

void lane_leaves_more(struct lane *l)
{
    if (this_is_the_helper) return;
    l->left_more = true;
    if (!lane_threaded() && background_is_left()) helper_relieve();
}

void lane_puts_off_send(struct lane *l) { (lane_threaded() ? l : lanes_first())->put_off = true; }

bool lane_has_put_off(struct lane *l)
{
    struct lane *held = lane_threaded() ? l : lanes_first();
    bool some = held->put_off;
    held->put_off = false;
    return some;
}

void background_over(void) { count(-1); }

bool background_stands_by(void)
{
    if (!background_is_helped()) return false;
    add(&background.standing, 1);
    count(1);
    return true;
}

void background_stands_down(void)
{
    add(&background.standing, -1);
    count(-1);
}

#define ARMED_NS 300000u
#define ARMED_ASKED_NS 50000u
#define ASKED_NS 10000000u

bool background_can_be_late(uint64_t now, uint64_t armed)
{
    static _Atomic uint64_t last; /* when a service was asked for, as far as was looked */
    if (atomic_load_explicit(&background.asked, memory_order_relaxed)) {
        atomic_store_explicit(&background.asked, false, memory_order_relaxed);
        atomic_store_explicit(&last, now, memory_order_relaxed);
    }
    bool lately = now - atomic_load_explicit(&last, memory_order_relaxed) < ASKED_NS;
    return now - armed < (lately ? ARMED_ASKED_NS : ARMED_NS);
}
