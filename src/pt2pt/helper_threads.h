/*
 * helper_threads.h - the helper where threads share the lanes: it looks and sleeps as the listener does (listen.h), while no
 * thread waits.
 *
 *     disarmed --(a caller leaves operations in the background, nobody waits)--> woken
 *     woken ----(finds nothing more to do)-------------------------------------> armed: asleep by the bell of the process
 *     armed ----(a message, or a lane that a thread has left with more to do)--> woken
 *     armed, woken --(a thread begins to wait)---------------------------------> disarmed, asleep
 *
 * Nobody but the helper arms it, and it does so under the first lane, by which the listener announces its sleep, too. So at
 * any time one of the two has announced one. Wake-ups are not lost, since in each pair one side sees what the other did; all
 * is sequentially consistent, or has a full barrier in between:
 *
 *  1. A caller leaves something in the background while the helper goes to sleep disarmed.
 *
 *         caller                                    helper
 *         background.count++                        up = false
 *         up is false, and nothing armed: wakes it  count is not 0, and nobody waits: does not sleep
 *
 *  2. A thread begins to wait while the helper arms itself.
 *
 *         thread                                    helper, in the first lane
 *         waits.waiting++                           waits.at_bell = HELPER
 *         at_bell is HELPER: disarms it, in the     waiting is not 0: disarms itself
 *           first lane
 *
 *     The last thread whose wait is over wakes the helper, if anything is in the background then.
 *
 *  3. A caller leaves a lane with something more to do while the helper arms itself: as 4. in waits.h.
 */
#ifndef TERN_PT2PT_HELPER_THREADS_H
#define TERN_PT2PT_HELPER_THREADS_H

#include "pt2pt/lane.h"

/* lane_leave_to_helper, where threads share the lanes. */
void helper_leave_among_threads(struct lane *) TERN_COLD;

/* A thread begins to wait, and is counted; it is in no lane. */
void helper_relieve_among_threads(void) TERN_COLD;

/* What the helper's thread does until `stop` is set. */
void helper_run_among_threads(const _Atomic bool *stop);

#endif
