/*
 * helper.h - the helper: one thread of a process that makes progress while the program
 * computes. Where threads share the lanes it does what a thread that waits would do (helper_threads.h). The rest of this text
 * is about a process in which one thread at a time calls: the helper enters by the lock (lane.h), and is in all lanes then.
 *
 * It sleeps in the kernel, by the process's doorbell, until a message comes for an
 * operation in the background (background.h): one that has not ended when the call that
 * started it returns. Its states:
 *
 *     disarmed --(a caller leaves operations in the background, and stays away)--> armed: asleep, senders ring
 *     disarmed --(a caller leaves operations in the background, and comes back)--> watching: naps, nobody rings
 *     armed ----(a sender or a caller rings)---------------------> woken: enters the lane by lock_try
 *     woken ----(finds nothing more to do, still inside)---------> armed
 *     woken ----(finds the lane held, or a thread that waits)----> disarmed, asleep
 *     armed ----(a thread begins to wait)------------------------> disarmed
 *     watching -(nobody has left for a nap, nor is inside)-------> woken
 *     watching -(a caller leaves, and stays away)----------------> armed
 *     watching -(nobody has left for the longest nap)------------> disarmed, asleep
 *
 * Four words tell them:
 *
 *     background.count such operations; 0: nobody wakes the helper, whatever comes
 *     waiting      threads in lane_wait: they make the progress, the helper stays asleep
 *     bell.asleep  BELL_HELPER: the helper is armed (helper_sleep.h)
 *     watch.state  it watches (helper_watch.h, where it is shown that a caller that leaves is not missed)
 *
 * Whether a caller stays away or comes back within microseconds is what it did at the same place before (helper_habit.h). In a window
 * of nonblocking calls the helper is in the way: a wake-up costs who rings 3 us and the rank whose core it takes twice that, and then
 * the two want the same lock. So while the caller is expected back the helper is not armed. It looks now and then instead, at first
 * after 50 us, and steps in if the caller has not come back; that place is known then.
 *
 * The caller that leaves its outermost section, with operations in the background, and stays away arms the helper and looks
 * for what has come before. Then it gives the lock back. A helper that is woken in between finds the
 * lane held and sleeps again, so the caller looks whether the helper is still armed:
 *
 *     caller, inside                         helper, woken
 *     arms it, looks for work                (the waker has set asleep = 0)
 *     gives the lock back, full barrier      full barrier, lock_try
 *     asleep = 0: wakes it once more         the lane is held: sleeps
 *
 * One of the two sees the other. A helper that finds the lane held at any other time may sleep: the
 * thread inside arms it when it leaves. Before it sleeps, the helper arms itself while it is still inside.
 *
 * What another process does by itself wakes nobody here: a side of a large message inside a node that sees it copies it all
 * (rndv/offer.c), and the end of a message that only the program waits for is found by the program. A send that the caller has put
 * off for the helper is the other case: nothing would ring for it, so the caller calls the helper when it leaves (helper_wake).
 *
 * A caller that leaves nothing but services behind (background_stands_by) arms it now and then only, and the helper gets up by
 * itself in between.
 *
 * What is found to be wrong becomes the result of the operation, for the thread that waits;
 * no error handler runs in the helper. Nor does a user's operator, while the program has said that
 * only one thread uses MPI: such schedules are left to the callers (coll/port_pt2pt.c).
 */
#ifndef TERN_PT2PT_HELPER_H
#define TERN_PT2PT_HELPER_H

#include "pt2pt/lane.h"

/* Ends the helper, which pt_help has started (api.h), and takes pt_share_prepare back. No thread calls any more. */
void helper_close(void);

/* The caller begins to wait: senders need not wake the helper. Needed where there is one. Inside. */
void helper_waits(void) TERN_COLD;

/* It would have waited, and what for is over already: it goes on as behind a wait. Inside. */
void helper_need_not_wait(void) TERN_COLD;

/* Senders need not wake it, until it is armed again. Inside. */
void helper_relieve(void) TERN_COLD;

/* The helper may have to run on a core where a rank waits: who waits gives it up now and then (wait.c). */
extern TERN_HIDDEN _Atomic bool helper_shares_cores;

/* The helper runs on other cores than its process. */
extern TERN_HIDDEN _Atomic bool helper_apart;

/* Relaxed: other threads may be inside while the helper is started or stopped, and either answer is good. */
static inline bool helper_is_on_shared_cores(void) { return atomic_load_explicit(&helper_shares_cores, memory_order_relaxed); }
static inline bool helper_is_apart(void) { return atomic_load_explicit(&helper_apart, memory_order_relaxed); }

#endif
