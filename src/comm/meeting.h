/*
 * meeting.h - where the processes of a group meet that have no communicator yet
 * (MPI-5.0 sections 7.4.2 and 7.6.2, the functions with "from_group").
 *
 * A meeting is a communicator for the few messages in which its members agree on a
 * real one. Nobody has told them its context: each works it out, as a hash of
 *
 *     what it is for, the user's string tag, the members in order, and how often this
 *     process has met with just these before
 *
 * The last makes contexts differ from one time to the next, so that what belongs to
 * the next meeting waits until it begins (src/pt2pt keeps messages of contexts that it
 * does not know yet). All members count alike, since all have to come each time.
 *
 * Threads: any, at the same time with different tags or groups.
 */
#ifndef TERN_COMM_MEETING_H
#define TERN_COMM_MEETING_H

#include "obj/comm.h"

enum meeting_purpose { MEETING_INTRA, MEETING_LOCAL, MEETING_LEADERS };

/* `like`: of whom the error handler and the session are taken, nothing else being set. The reference to the members is taken
 * over. The communicator is the caller's, who unrefs it when it has told and heard what there was; 0 or a code. */
int meeting_open(enum meeting_purpose, const char *tag, struct rankmap *members, const struct comm *like, struct comm **out);

#endif
