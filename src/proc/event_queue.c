/* event_queue.c - the events of watched jobs that nobody has taken yet. */
#include "proc/event_queue.h"

#include <stdlib.h>
#include <string.h>

struct queued_event {
    struct proc_event event;
    struct queued_event *next;
};

static void append(struct event_queue *q, struct queued_event *e)
{
    e->next = NULL;
    *(q->last ? &q->last->next : &q->first) = e;
    q->last = e;
}

bool event_queue_push(struct event_queue *q, const struct proc_event *event)
{
    struct queued_event *e = malloc(sizeof *e);
    if (!e) return false;
    e->event = *event;
    append(q, e);
    return true;
}

bool event_queue_pop(struct event_queue *q, struct proc_event *event)
{
    struct queued_event *e = q->first;
    if (!e) return false;
    *event = e->event;
    q->first = e->next;
    if (!e->next) q->last = NULL;
    free(e);
    return true;
}

void event_queue_drop(struct event_queue *q, const char *job)
{
    struct event_queue rest = {0};
    for (struct queued_event *e = q->first, *next; e; e = next) {
        next = e->next;
        if (strcmp(e->event.job, job))
            append(&rest, e);
        else
            free(e);
    }
    *q = rest;
}
