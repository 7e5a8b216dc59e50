/*
 * chores.c - work that a lane puts off: local work for a later turn (lane_puts_off), and ends of requests that the helper
 * must leave to a caller (lane_defer).
 */
#include "pt2pt/lane.h"

static struct request *pop(struct worklist *w)
{
    struct request *r = container_of(w->requests.next, struct request, link);
    worklist_remove(w, r);
    return r;
}

/* One piece of local work. */
static int do_chore(struct step *s)
{
    if (list_empty(&worklist_of(s)->requests) || lane_in_the_way(lane_of_step(s))) return 0;
    struct request *r = pop(worklist_of(s));
    r->done(r);
    lane_changed(lane_of_step(s)); /* as in lane_finish, which it may not have come to */
    return 1;
}

/* What the helper must not do, a caller does. */
static int end_deferred(struct step *s)
{
    int n = 0;
    for (; !this_is_the_helper && !list_empty(&worklist_of(s)->requests); n++) {
        struct request *r = pop(worklist_of(s));
        r->done(r);
    }
    return n;
}

static const struct step_ops chores = {.name = "local work put off", .poll = do_chore, .follows = true};
static const struct step_ops deferred = {.name = "ends left to a caller", .poll = end_deferred};

void chores_open(struct lane *l)
{
    worklist_open(&l->steps, &l->chores, &chores);
    worklist_open(&l->steps, &l->deferred, &deferred);
}

void lane_do_later(struct lane *l, struct request *r) { worklist_push(&l->steps, &l->chores, r); }
void lane_defer(struct lane *l, struct request *r) { worklist_push(&l->steps, &l->deferred, r); }
