/*
 * starter.h - the starter: a process of the first mpiexec that has loaded all that a launcher needs. It keeps one launcher
 * ready, a fork of itself, which waits for an order. So a spawn pays neither the loading of a program (1.5 ms) nor two forks
 * (0.2 ms each), of the launcher and of its guard.
 *
 *      first mpiexec <--- numbers of launchers that are ready --- starter
 *            |  `-- order: three descriptors --.              | clone, with CLONE_PARENT: when the one before
 *            |                                 v              v has started its ranks, and a pause later
 *            `------ line: command line ---> launcher, a child of the first mpiexec
 *                    <--- its number
 *
 * Orders and numbers (of processes) go by one pair of sockets. At the starter's end only launchers that are ready read, and only the
 * starter writes. Which launcher takes an order is not known before it says so by the line: the one that was ready may die, or be stopped,
 * and another one takes the order then. A launcher that has not started its ranks a second after there was an order, while one waits, is
 * no longer waited for: the next one is forked.
 * An order that nobody can take any more is destroyed with the socket, and that ends its line. The starter is made by the first
 * order, has no state of any job, and ends with the first mpiexec.
 *
 * Threads: the main one only.
 */
#ifndef TERN_MPIEXEC_STARTER_H
#define TERN_MPIEXEC_STARTER_H

#include "mpiexec/launch.h"

/* ---- the first mpiexec ---- */

/* The descriptors of a new launcher: standard output, standard error, its line. */
enum { STARTER_OUT, STARTER_ERR, STARTER_LINE, STARTER_ENDS };

/* `own`: the environment that launchers get. */
void starter_open(const struct job *, char **own);

/* Has a launcher made with these descriptors, which are closed here. If that fails, the line ends; starter_why: why the starter could
 * make no launcher; NULL: it could. */
void starter_order(const int ends[STARTER_ENDS]);
const char *starter_why(void);

/* A child of this process has ended: was it the starter, or a launcher without an order? */
bool starter_exited(pid_t);

/* Ends the starter and the launcher that was made last, and waits until they are gone. Others that are ready end by themselves. */
void starter_close(void);

/* ---- the starter, and launchers ---- */

#define STARTER_OPTION "--tern-starter" /* its only word */

/* The life of the starter. Returns in launchers only, which have got an order, with the descriptor of their line; `make_ready` is called
 * in a launcher that waits for one, to do what can be done without. */
int starter_run(void (*make_ready)(void));

/* This launcher has started so many ranks, or waits for other hosts (0): the next one may be made ready. */
void starter_next(int ranks);

#endif
