/*
 * poller.c - what the lane looks at besides messages; see struct lane_poller.
 *
 * A thread that goes to sleep does so on the gates of all pollers as well (gate_enter). While threads sleep, the
 * process counts once in each gate.
 */
#include "pt2pt/lane.h"

void lane_poller_add(struct lane *l, struct lane_poller *p)
{
    p->counted[0] = p->counted[1] = 0;
    list_push(&l->pollers, &p->link);
    if (unlikely(l->sleepers)) bell_ring(wires_bell()); /* threads that sleep do not look at this one yet */
}

static void leave_gates(struct lane_poller *p)
{
    for (int i = 0; i < 2 && p->gate[i]; i++) {
        gate_leave(p->gate[i], p->counted[i]);
        p->counted[i] = 0;
    }
}

void lane_poller_remove(struct lane *l, struct lane_poller *p)
{
    (void)l;
    list_remove(&p->link);
    leave_gates(p);
}

void lane_pollers_sleep(struct lane *l, struct sleep_words *words)
{
    list_each(a, next, &l->pollers)
    {
        struct lane_poller *p = container_of(a, struct lane_poller, link);
        for (int i = 0; i < 2 && p->gate[i]; i++)
            p->counted[i] = gate_enter(p->gate[i], wires_bell(), p->counted[i], words);
    }
}

void lane_pollers_wake(struct lane *l)
{
    list_each(a, next, &l->pollers) leave_gates(container_of(a, struct lane_poller, link));
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

bool lane_pollers_armed(struct lane *l)
{
    bool now = false;
    list_each(a, next, &l->pollers)
    {
        struct lane_poller *p = container_of(a, struct lane_poller, link);
        if (p->armed) now |= p->armed(p);
    }
    return now;
}
