/*
 * spawn.h - jobs that ranks spawn. Each has an mpiexec of its own, which the first one starts and which does all that
 * an mpiexec does: places, starts, watches and ends the ranks of its job, on one host or on several.
 *
 *      first mpiexec ---- line (line.h), standard output and error ---- mpiexec of a spawned job
 *       its job                                                          its job
 *
 * Questions of a job about other jobs go along the line to the first mpiexec (registry.h). The first mpiexec has the new one
 * made by its starter (starter.h) and tells it what to start by options, as a user would (ASK_RUN, spawn_command.h), with the
 * hosts that it has chosen (schedule.h). The new one says which process it is (ASK_LAUNCHER), and sends ASK_STARTED when its
 * ranks run, or ASK_FAILED and why. What becomes of it is told by the line, which ends with it, and by its exit; the output of
 * its ranks comes by pipes. If the first mpiexec ends, so do the others: it passes on the signals that end a job, and the system kills
 * them when it dies.
 *
 * Threads: the main one only.
 */
#ifndef TERN_MPIEXEC_SPAWN_H
#define TERN_MPIEXEC_SPAWN_H

#include "mpiexec/asks.h"
#include "mpiexec/launch.h"

/* ---- the first mpiexec ---- */

/* `argv0`, `own`: this program's name and environment as they were at the start. */
void spawn_open(const struct job *, char *argv0, char **own);

/* Starts a job for `asker`, a process of the job `parent`, and answers when its ranks run, or none does. */
void spawn_take(const struct asker *, const char *parent, struct ask_in *);

/* ASK_LAUNCHER has come by the line of `asker`: the new mpiexec says which process it is. */
void spawn_order_taken(const struct asker *, struct ask_in *);

/* ASK_STARTED and ASK_FAILED of the new mpiexec have come, by the line of `asker`. */
void spawn_started(const struct asker *, struct ask_in *);
void spawn_failed(const struct asker *, struct ask_in *);

/* A process that has spawned a job is connected to it. */
void spawn_connected(const struct asker *, struct ask_in *);

/* Are there any now? */
bool spawn_some(void);

/* Passes a signal on to all of them. While this job is ending: jobs that no launcher has taken yet are given up, and launchers that
 * are still there some seconds later are killed. */
void spawn_signal(int sig);

/* A child of this process has ended: was it the mpiexec of a spawned job, or the starter? Then its exit is dealt with. */
bool spawn_exited(pid_t, int status);

/* The end: no more jobs are spawned. */
void spawn_close(void);

/* ---- the mpiexec of a spawned job ---- */

/* Takes what it is to do from its line to the first mpiexec: *argv gets its command line. From here on what we say before the
 * ranks run is kept, as the reason why they do not. NULL or what is wrong. */
const char *spawned_open(struct job *, int line, struct strv *argv);

/* The event loop is there: opens the line. */
void spawned_join(struct event_base *);

/* The ranks have been started. */
void spawned_started(struct job *);

/* The end, with this exit code: says why if the ranks have not been started. */
void spawned_ended(int code);

/* The route to the first mpiexec, for questions of the ranks; false: this is the first one, or the ranks have not been started, and
 * the first one does not know their job yet. spawned_own_route: the same for questions of this mpiexec, also before; false: this is the
 * first. */
bool spawned_route(struct route *);
bool spawned_own_route(struct route *);

/* Was this mpiexec started for a spawned job? */
bool spawned_is(void);

#endif
