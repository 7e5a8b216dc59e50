/*
 * life.h - the life of the library, which the world model (MPI_Init ... MPI_Finalize,
 * once) and any number of sessions share: it is open while anybody uses it.
 *
 * What ties this process to others - the launcher's facts, cards, transports, peers,
 * matching state - is opened by the first user and stays until the process exits: a
 * peer may still hold our card and our ring, and a message for a later session may
 * come while there is none (doc/decisions/library-life.md). The end of the last user
 * sends what waits, drops what was not freed, lets the node's ranks read what it left
 * for them, and tells the launcher.
 *
 * Threads: any; one lock.
 */
#ifndef TERN_MPI_LIFE_H
#define TERN_MPI_LIFE_H

#include "base/compiler.h"

/*
 * One more user. `level`: MPI_THREAD_SINGLE or MPI_THREAD_FUNNELED, only the calling thread calls MPI on its behalf;
 * MPI_THREAD_SERIALIZED, threads do, one after another; MPI_THREAD_MULTIPLE, at the same time. The library takes no locks as
 * long as all its users are one thread's, or the only one's threads take turns: the levels below MPI_THREAD_MULTIPLE cost
 * the same, and so does that one as long as one thread has called. A further user, or the second thread, makes it take them, for
 * good. 0 or a code with words.
 */
int life_open(int level);

/*
 * Decides about the helper thread (pt2pt/helper.h) for a user of the library: by TERN_PROGRESS, else by `word`, the value of
 * the info key tern_progress (NULL: none was given), else by the level of thread support (MPI_THREAD_...). Words that it
 * knows: life_knows_progress. 0, or a code with words when there shall be a helper and it cannot be made.
 */
int life_help(int level, const char *word);
bool life_knows_progress(const char *word);

struct comm;
struct info;
/* Hints for a communicator (obj/hints.h), which may ask for the helper. */
int life_take_hints(struct comm *, struct info *);

/* One less; by whoever called life_open, which may be any thread. Waits until what this process sent has left it. */
void life_close(void);

/* MPI_Finalize: with the last life_close, the launcher is told that this process may end in any way. */
void life_leave(void);

/* How many users there are. */
int life_users(void);

#endif
