/*
 * post.h - from the PMIx library's thread to the main one: what is posted is run there soon, in the order of posting.
 */
#ifndef TERN_MPIEXEC_POST_H
#define TERN_MPIEXEC_POST_H

#include <event2/event.h>
#include <stdbool.h>

/* At the head of a structure that the poster fills; it is the runner's then. */
struct post {
    struct post *next;
    void (*run)(struct post *);
};

/* Main thread; opened once, however often it is called. False, with errno: the system refuses. */
bool post_open(struct event_base *);

/* Any thread, after post_open. */
void post_run(struct post *, void (*run)(struct post *));

#endif
