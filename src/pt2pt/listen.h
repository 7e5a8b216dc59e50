/*
 * listen.h - the listener: the one of the threads that wait which looks at the wires and at all lanes, and sleeps by the bell
 * of the process. Who it is, and how it is told what, is in waits.h.
 *
 * listen_announce and listen_get_up wait for the first lane and only try the others: where a thread is in one of those, it rings when it
 * leaves. listen_look waits for a lane that it has found busy 16 times, listen_doubt for each.
 */
#ifndef TERN_PT2PT_LISTEN_H
#define TERN_PT2PT_LISTEN_H

#include "pt2pt/waits.h"

/* All in no lane. listen_announce and listen_get_up are for the listener, listen_arm and listen_disarm for what is said there,
 * listen_look for the listener and the helper, and listen_doubt for any thread that waits. */

/* One look at the wires, the steps of all lanes, and the gates. How much happened. */
int listen_look(void);

/*
 * Says that the listener sleeps by the bell, to other processes and to the threads of this one, and looks once more. False: there
 * is something to do. Then, asleep or not, listen_get_up. `state` of the waiter is 0 but for READY.
 */
bool listen_announce(struct waiter *self, struct sleep_words *words, uint32_t *ticket_p);
void listen_get_up(struct waiter *self);

/*
 * The helper does the same while no thread waits (helper_threads.h). listen_arm: arms it, and says so to the threads of this process. True: and
 * there is nothing to do. False: it is not armed. listen_disarm: it gets up, or a thread begins to wait; by any thread, in the
 * first lane.
 */
bool listen_arm(void);
void listen_disarm(void);

/* A wait lasts: asks those whom the process and its lanes wait for. */
void listen_doubt(void) TERN_COLD;

/* For lane_open. */
struct lane;
void listen_open(struct lane *);

#endif
