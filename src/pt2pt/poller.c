/*
 * poller.c - what the lane looks at besides messages; see struct lane_poller.
 *
 * A thread that sleeps is woken by its bell, so who opens a gate has to know that there is somebody of that kind: while
 * threads sleep, the process counts once, as one that polls, in the gates of every poller.
 */
#include "pt2pt/lane.h"

void lane_poller_add(struct lane *l, struct lane_poller *p)
{
    p->counted = false;
    list_push(&l->pollers, &p->link);
    if (unlikely(l->sleepers)) bell_ring(peer_bell()); /* threads that sleep do not look at this one yet */
}

/* Who sleeps in several gates is woken by its bell. */
static void count_in_gates(struct lane_poller *p, bool sleeps)
{
    if (p->counted == sleeps) return;
    p->counted = sleeps;
    for (int i = 0; i < 2 && p->gate[i]; i++) /* ordered by bell_announce */
        atomic_fetch_add_explicit(&p->gate[i]->sleepers, sleeps ? GATE_POLLER : 0u - GATE_POLLER, memory_order_relaxed);
}

void lane_poller_remove(struct lane *l, struct lane_poller *p)
{
    (void)l;
    list_remove(&p->link);
    count_in_gates(p, false);
}

void lane_pollers_sleep(struct lane *l)
{
    list_each(a, next, &l->pollers) count_in_gates(container_of(a, struct lane_poller, link), true);
}

void lane_pollers_wake(struct lane *l)
{
    list_each(a, next, &l->pollers) count_in_gates(container_of(a, struct lane_poller, link), false);
}

int lane_pollers_look(struct lane *l)
{
    int n = 0;
    if (unlikely(l->looking)) return 0;
    l->looking = true;
    list_each(a, next, &l->pollers)
    {
        struct lane_poller *p = container_of(a, struct lane_poller, link);
        n += p->poll(p);
    }
    l->looking = false;
    return n;
}

bool lane_pollers_called(struct lane *l)
{
    bool now = false;
    list_each(a, next, &l->pollers)
    {
        struct lane_poller *p = container_of(a, struct lane_poller, link);
        if (p->called) now |= p->called(p);
    }
    return now;
}
