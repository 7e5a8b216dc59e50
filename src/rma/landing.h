/*
 * landing.h - data that have come in a batch, on their way to where they belong, by a copy engine (TERN_RMA_PASSIVE=copy,
 * TERN_COPY_ENGINE).
 *
 *     batch comes --> landing_begin --> landing_put, landing_put, ... --> landing_end: one issue for all
 *                                                                          | the engine has the message's memory (tp_keep)
 *     landing_is_over(last) <-------------------------------------------- done: the engine rings, the memory is released
 *
 * There is one queue for the windows of the process. What the queue has no room for, and what is short, is copied by the caller, as
 * are batches that are not worth what the engine costs to start, by what is measured and observed (copy/budget.h, TERN_COPY_ENGINE_MIN). So
 * is all that is served in a call of the program's: it computes nothing meanwhile that a copy would be in the way of, and waits perhaps for
 * the end of just this epoch.
 *
 * Source: RMA-9 to RMA-12, RMA-21.
 *
 * Threads: under the first lane.
 */
#ifndef TERN_RMA_LANDING_H
#define TERN_RMA_LANDING_H

#include "copy/copy.h"

struct tp_kept;

#define LANDING_FROM ((size_t)4 << 10)  /* bytes of a put */
#define LANDING_MOST ((size_t)32 << 10) /* of a batch: an engine has to be worth it for this much (far.c, FAR_BATCH) */

int landing_open(void); /* by each window with this design: 0, or a code with words */
void landing_close(void);

/* A batch of records: its bytes. */
struct landing {
    const char *data;
    size_t n;
    copy_cookie last; /* of what was put, 0: nothing was */
    struct tp_kept *kept;
    bool asked; /* to be kept: once for a message */
    bool by_caller; /* in a call of the program's, or too little: there is nothing for an engine */
};

void landing_begin(struct landing *, const void *data, size_t n);

/* `from` lies in the batch. landing_end: what was put so far is under way; more may follow. */
void landing_put(struct landing *, void *to, const char *from, size_t n);
copy_cookie landing_end(struct landing *);

bool landing_is_over(copy_cookie);
void landing_await(copy_cookie); /* at the end of an origin: for some copies */

#endif
