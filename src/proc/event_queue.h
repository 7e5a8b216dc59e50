/* event_queue.h - the events of watched jobs that nobody has taken yet, oldest first. The owner's lock guards them. */
#ifndef TERN_PROC_EVENT_QUEUE_H
#define TERN_PROC_EVENT_QUEUE_H

#include "proc/dynamic.h"

/* All zero: empty. */
struct event_queue {
    struct queued_event *first, *last;
};

/* Returns false where there is no memory. */
bool event_queue_push(struct event_queue *, const struct proc_event *);

/* Returns false where there is none. */
bool event_queue_pop(struct event_queue *, struct proc_event *);

/* Removes the events of a job that is watched no more. */
void event_queue_drop(struct event_queue *, const char *job);

#endif
