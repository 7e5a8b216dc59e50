/*
 * wait_threads.h - waiting where threads share the library: see waits.h. For wait.c.
 */
#ifndef TERN_PT2PT_WAIT_THREADS_H
#define TERN_PT2PT_WAIT_THREADS_H

#include "pt2pt/lane.h"

/* As lane_wait_at. */
void threads_wait(struct lane *, bool (*ready)(void *), void *arg, struct gate *gate, void (*doubt)(void *)) TERN_COLD;

/* As lane_await_outside. */
void threads_await(struct lane *, const struct awaiting *, void *arg) TERN_COLD;

#endif
