/*
 * standing.h - daemons for spawned jobs, made by the daemons that stand on other hosts for the first job: no agent has to
 * reach the host again (ssh: 0.2 s and more).
 *
 *      root of a spawned job --- ASK_STANDING, by its line ---> first mpiexec --- ASK_DAEMON, by its tree ---> daemon there
 *            ^                                                                                        | starts itself
 *            `------------------- connection, as of any daemon (boot.h) ------------------------ new daemon
 *
 * What a daemon is told at its start has the key of the spawned job's tree. So it goes from host to host sealed, under a key
 * made of that of the first job's tree for this message alone.
 *
 * A host where the first job has no daemon is reached by an agent, as are those that are started by daemons of the spawned job
 * (more than TERN_TREE_WIDTH hosts).
 *
 * Threads: the main one only.
 */
#ifndef TERN_MPIEXEC_STANDING_H
#define TERN_MPIEXEC_STANDING_H

#include "mpiexec/asks.h"
#include "mpiexec/launch.h"

/* The root of a spawned job: has a daemon started on that host, which is told `boot`. `done` gets 0, or why there is none. False: this
 * is no such root. */
bool standing_ask(const char *host, const char *boot, asks_done_fn done, void *arg);

/* The first mpiexec: passes the question on. */
void standing_forward(const struct job *, const struct asker *, struct ask_in *);

/* A daemon, at its start: its environment is that of those that it starts. */
void standing_keep_environment(void);

/* A daemon: starts another one, and answers. */
void standing_take(const struct job *, const struct asker *, const void *bytes, size_t n);

/* A process of ours has ended: was it such a daemon? */
bool standing_exited(pid_t);

#endif
