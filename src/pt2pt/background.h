/*
 * background.h - operations in the background: those that have not ended when the call that started them returns. Where there
 * is a helper thread, it goes on with them (helper.h).
 *
 * Threads: under the lock of the request's lane; `count` and `helped` are read without it.
 */
#ifndef TERN_PT2PT_BACKGROUND_H
#define TERN_PT2PT_BACKGROUND_H

#include "base/compiler.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct lane;
struct request;

extern TERN_HIDDEN struct background {
    _Atomic uint32_t count; /* operations that callers have left to go on by themselves */
    _Atomic bool helped;    /* there is a helper thread */
    _Atomic uint32_t standing; /* of `count`: services, which others may want at any time */
    _Atomic bool asked;  /* a service was asked for since somebody looked (background_can_be_late) */
    _Atomic bool left; /* while threads do not share the lanes: something has been left to the helper since a thread began to wait */
} background;

void background_open(void); /* there is nothing, and no helper */

static inline bool background_is_helped(void) { return atomic_load_explicit(&background.helped, memory_order_relaxed); }
static inline bool background_is_left(void) { return atomic_load_explicit(&background.left, memory_order_relaxed); }
static inline bool background_any(void) { return atomic_load_explicit(&background.count, memory_order_relaxed); }

/*
 * Around the start of an operation that is left to itself. The caller will go away: data that a helper can take to the
 * system on another core are offered rather than sent by the caller. Then: it goes away from an operation that has not
 * ended, which may need somebody to go on with it. Lock held.
 */
void lane_is_going(struct lane *) TERN_COLD;
void lane_in_background(struct lane *, struct request *) TERN_COLD;
static inline void lane_going(struct lane *l)
{
    if (unlikely(background_is_helped())) lane_is_going(l);
}
static inline void lane_leave_to_itself(struct lane *l, struct request *r)
{
    if (unlikely(background_is_helped())) lane_in_background(l, r);
}

/* The same for work that has no request: true if it is counted, and then background_over follows it. Lock held. */
bool lane_left_work(struct lane *);

/*
 * A service begins, and ends: this process does something for others whenever they ask for it (src/rma). Where nothing else is in
 * the background, callers that leave arm the helper once in 0.3 ms, or in 50 us where the service was asked for in the last 10 ms: arming
 * it and taking that back are system calls where there are sockets, 3 us together. Then a request is heard at once; and at the latest
 * after BACKGROUND_HEARD_NS, when the helper gets up by itself. True: it is counted. Lock held.
 */
#define BACKGROUND_HEARD_NS 8000000u
bool background_stands_by(void);
void background_stands_down(void);
static inline void background_was_asked(void) { atomic_store_explicit(&background.asked, true, memory_order_relaxed); }
bool background_can_be_late(uint64_t now, uint64_t armed); /* where only services stand by: armed at `armed` is often enough */
static inline bool background_only_stands_by(void)
{
    return atomic_load_explicit(&background.standing, memory_order_relaxed) == atomic_load_explicit(&background.count, memory_order_relaxed);
}

/* There is more to do for what is in the background than the helper was armed for. Whoever leaves the lane sees whether it has to
 * be woken. Lock held. */
void lane_leaves_more(struct lane *) TERN_COLD;

/* A send has been put off (pending.h): the helper is called to begin it when the lane is left, if the thread stays away then.
 * lane_has_put_off: is that so? Once. Lock held. */
void lane_puts_off_send(struct lane *) TERN_COLD;
bool lane_has_put_off(struct lane *) TERN_COLD;

/* What was counted is over. Lock held. */
void background_over(void) TERN_COLD;

#endif
