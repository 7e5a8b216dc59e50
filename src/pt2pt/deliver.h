/*
 * deliver.h - from a transport to a lane, when threads share the transports (wire_lock.h): a thread polls a wire and
 * holds no lane, or one that need not be the message's.
 *
 *     transport, under the wire's poll lock
 *         |   the lane of the message: this thread has it, or gets it without waiting
 *         +-------------------------------------------------------------> its handler
 *         |   another thread has it
 *         +--> inbox of the lane: mail --> mail --> mail <-- opened by the thread that gives the lane's lock back, or takes it
 *
 * Mail is opened in the order in which it was posted, and what comes later goes straight to a handler only when there is none
 * left: so messages of one process come to a lane in the order in which it sent them.
 *
 * The inbox is a list that any thread may push to. Who has pushed sets LOCK_MAIL in the lane's lock (lock_note): the
 * holder finds that when it gives the lock back, and opens the mail; without a holder, the thread that pushed opens it. So
 * nothing is left in the inbox of a lane that nobody holds.
 *
 * A lane that a thread has taken for a message stays held until its look at that wire is over, unless another thread
 * wants it: a batch of messages takes one lock.
 *
 * No thread waits here for a lane. So a thread that has one may wait for a wire.
 *
 * Threads: any, under the lock of a wire or not.
 */
#ifndef TERN_PT2PT_DELIVER_H
#define TERN_PT2PT_DELIVER_H

#include "base/compiler.h"
#include "base/list.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct lane;
struct peer;
struct pt_kind;

/* What is left for the holder of a lane; part of something that belongs to the mail until it is opened. `open` may free it. */
struct mail {
    struct mail *next;
    void (*open)(struct lane *, struct mail *); /* lock held */
};

struct inbox {
    _Atomic(struct mail *) last; /* the newest first */
    _Atomic int64_t bytes;       /* of messages that were copied */
    bool opening;                /* by the holder of the lane */
};

/* The mail is opened by whoever has the lane, perhaps during this call, behind what was posted before. */
void lane_post(struct lane *, struct mail *);

/* Opens what is there. Lock held. Nothing happens within the opening of mail. */
void lane_drain(struct lane *);
static inline bool inbox_is_empty(const struct inbox *b)
{
    return !atomic_load_explicit(&b->last, memory_order_relaxed); /* a thread that has to see it has a lock of the one that posted */
}

/*
 * For what a transport reports to a lane, in between:
 *     enum deliver_hold h = deliver_begin(l, in_order);
 *     if (h) { ...; deliver_end(l, h); } else deliver_post(l, mail);
 * deliver_begin: the lane is this thread's now, without waiting for it. `in_order`: nor is there anything in its inbox, which
 * what is reported would overtake. deliver_post: as lane_post; while a wire is polled, the mail may be opened as late as at the
 * end of that.
 */
enum deliver_hold { HOLD_NONE, HOLD_OURS, HOLD_KEPT, HOLD_TAKEN }; /* it was ours, it is kept, it is given back at once */
enum deliver_hold deliver_begin(struct lane *, bool in_order);
void deliver_end(struct lane *, enum deliver_hold);
void deliver_post(struct lane *, struct mail *);

/* A look of this thread at a wire is over: gives back the lane that it has taken meanwhile. */
void deliver_over(void);

/* A message to its handler, now or later (dispatch.h). `stays`: the data are where the receive wants them, and need not be
 * copied. */
void deliver_message(const struct pt_kind *, struct peer *from, uint64_t h0, uint64_t h1, const void *data, size_t n, bool stays);

/* While true: what this thread gives to a lane that it has comes in the place of the message that it is just handling there, and
 * so before all that is in the inbox (gather.c). */
void deliver_in_place(bool);

/* Has a lane so much mail that wires are not polled before some of it has been opened? */
bool deliver_is_full(const struct lane *);

/* A message that waits for its handler: as mail, or for its communicator (early.c). */
struct kept_message {
    struct mail mail;
    struct link link;
    const struct pt_kind *kind;
    struct peer *from;
    uint64_t h0, h1;
    const void *data; /* `copy`, unless it stays */
    size_t n;
    TERN_ALIGNED(16) char copy[]; /* as in a message of a transport's */
};

/* The data are copied if `copied`. The job is ended when memory is out. */
struct kept_message *kept_message_new(const struct pt_kind *, struct peer *from, uint64_t h0, uint64_t h1, const void *data, size_t n,
                            bool copied);

/* Puts one that has waited elsewhere into the inbox, and no more: its holder sees to it. */
void deliver_push(struct lane *, struct kept_message *);

void inbox_drop(struct lane *); /* drops what is there. No other thread is inside */

void deliver_open(void);
void deliver_close(void);

/* For tests: every n-th lane that deliver_begin asks for counts as held by another thread; 0: none. Read from TERN_TEST_BUSY_LANES by
 * deliver_open. */
extern uint32_t deliver_busy_every;

#endif
