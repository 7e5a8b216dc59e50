/* behind.c - see behind.h. */
#include "pt2pt/behind.h"
#include "pt2pt/helper.h"
#include "pt2pt/limits.h"

struct behind behind;

void behind_open(void) { behind = (struct behind){0}; }

static void count(int by)
{
    uint32_t n = atomic_load_explicit(&behind.count, memory_order_relaxed) + (uint32_t)by;
    atomic_store_explicit(&behind.count, n, memory_order_relaxed);
}

void lane_is_going(struct lane *l)
{
    if (helper_apart && !lane_helping) l->eager_now = limits_eager_least();
}

/* What nobody needs the helper for. Small messages come to their receives as well when the caller is back: they are over
 * for their sender. So are the deposits of a node's collectives. */
static bool can_wait(const struct request *r)
{
    if (r->kind == REQ_COLL) return !r->xfer && !(r->flags & REQ_DRIVEN);
    return r->kind == REQ_RECV && r->bytes <= limits_eager_least();
}

/* The request keeps its flag when it is over: a waiter may be looking at the others, without the lock. */
void lane_left_behind(struct lane *l, struct request *r)
{
    l->eager_now = INT64_MAX;
    if (lane_helping || request_is_complete(r) || r->flags & REQ_BACKGROUND || can_wait(r)) return;
    r->flags |= REQ_BACKGROUND;
    count(1);
}

bool lane_left_work(struct lane *l)
{
    l->eager_now = INT64_MAX;
    if (lane_helping || !behind_is_helped()) return false;
    count(1);
    return true;
}

void behind_over(void) { count(-1); }
