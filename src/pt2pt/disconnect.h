/*
 * disconnect.h - the end of all that there is between this process and some others, which live on: their peers are closed
 * (peer_close), when no communicator that both are in is left.
 *
 * Threads: under the lane's lock, but for pt_disconnect.
 */
#ifndef TERN_PT2PT_DISCONNECT_H
#define TERN_PT2PT_DISCONNECT_H

#include "obj/rankmap.h"
#include "pt2pt/lane.h"

/* Closes the peers that are in the map, but for this process itself. All of them do the same, each with its own map, and it
 * returns when they have, or are lost. What is under way comes to its end first; messages that nobody has received are
 * dropped with their communicators, before. Takes the lane's lock. */
void pt_disconnect(const struct rankmap *) TERN_COLD;

/* Is anything here, under way or waiting, that refers to the peer? */
bool pt_is_referred_to(struct lane *, const struct peer *) TERN_COLD;

void pt_forget(struct peer *); /* peer_forgotten */

#endif
