/*
 * lanes.h - the lanes of this process, and which one a communicator is in.
 *
 *     one thread calls at a time    one lane
 *     threads call, or may          by the context of the communicator, in turn: 2 lanes for each core that this process may
 *                                   use, 4 to 16 in all
 *     TERN_LANES=N                  N lanes, in the same way, whoever calls
 *
 * A thread that is in a lane never waits for another one.
 *
 * A communicator's lane is chosen when it is made here, and never changes. Each process chooses for itself. The info key
 * tern_lane of a new communicator goes before the context: "shared" is the first lane, "own" the one that was
 * chosen least often so far, a number that lane. An intercommunicator and the communicator of its local group (comm.within) are in one
 * lane, since a collective operation works on both. Communicators with members of other jobs are in the first one
 * (closing.h).
 *
 * A lane is made when it is first chosen. One that nothing is under way in costs a turn of progress a look at two words.
 *
 * Code that has a communicator, a request or a step at hand takes the lane of that (comm.lane, lane_of, lane_of_step), and a
 * handler is given its lane (dispatch.h). What concerns the process or another one rather than a communicator is done in
 * the first lane. What concerns all lanes walks over them (lanes_at), or is told to a step of each.
 */
#ifndef TERN_PT2PT_LANES_H
#define TERN_PT2PT_LANES_H

#include "base/sanitizer.h"
#include "base/sleep.h"

#include <stdbool.h>
#include <stdint.h>

#define LANES_MAX 64 /* as many as an id can say (ids.h) */

struct comm;
struct lane;

struct lane *lanes_first(void);
struct lane *lanes_at(uint32_t i); /* those that there are, the first one first; NULL behind the last */

/* That of a communicator which is being made, and has what lanes_choose looks at: groups, context, hints. Never fails: where
 * there is no memory for one more lane it is the first. By any thread. */
struct lane *lanes_choose(const struct comm *);

/* That of the request with this id (ids.h). A number that is no id of any lane is none of the first either. */
struct lane *lanes_of_id(uint64_t id);

/* One turn of progress in all lanes, for a call that looks without waiting. By threads in no lane. */
void lanes_look(void);

/*
 * One turn of progress, once threads share the transports (wire_lock.h), by any thread that is in no wire and in no lane: at most
 * about `budget` messages of each wire. Wires that other threads poll are left out, and the steps of lanes that other threads are
 * in, but for a lane that has been found busy 16 times. How much happened.
 */
#define LANES_BUDGET 64
int lanes_turn(int budget);

/* The same by a thread in no lane that goes away then: it waits for lanes that have something to look at. */
int lanes_look_around(void);

/* Do several lanes exist? */
bool lanes_are_several(void);

/* While one thread at a time calls: the questions of progress.h, asked of the steps of all lanes. */
bool lanes_idle(void);
bool lanes_still(void);
bool lanes_wait_for_room(void);
bool lanes_have_own(void);
bool lanes_follow(void);
bool lanes_armed(void);
void lanes_sleep(struct sleep_words *);
void lanes_wake(void);
void lanes_doubt(void);

/* 0, or a code with words: TERN_LANES is no number of lanes. */
int lanes_open(bool threaded);

/* Threads may come: communicators that are made from now on are dealt out to as many lanes as threads have. 0, or a code as above. */
int lanes_prepare(void);

/* From now on threads share the lanes and the transports. `others`: another thread may be anywhere in the library; NULL: there is
 * none. The caller is in no lane. 0, or a code with words: TERN_LANES is no number of lanes. Needs peer_short_prepare. */
struct quiet;
int lanes_share(struct quiet *others);
void lanes_close(void);

/* What a thread has done before it told other processes so by words in memory that they share (coll/node): their messages come behind
 * that, to whatever thread. The thread sanitizer does not see that order (sanitizer.h). */
extern TERN_HIDDEN char lanes_told;

#endif
