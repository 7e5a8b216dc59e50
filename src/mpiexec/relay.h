/*
 * relay.h - output and input of ranks on other hosts.
 *
 *     rank's pipe -> daemon --TREE_OUTPUT--> root: lines, tags, files as for its own ranks (output.c)
 *     root's standard input --TREE_INPUT--> daemon -> pipe of the rank
 *
 * Nobody's memory fills up when a reader is slow: a daemon has at most RELAY_WINDOW bytes of output under way, and
 * reads its ranks' pipes on when the root has acknowledged some, which it does when it has passed them on; of input the
 * same, the other way round. What is left in the pipes at a rank's end goes beyond that, by as much as pipes hold.
 */
#ifndef TERN_MPIEXEC_RELAY_H
#define TERN_MPIEXEC_RELAY_H

#include "mpiexec/launch.h"

#define RELAY_WINDOW (256 * 1024)

/* Takes messages from here on. */
void relay_open(struct job *);

/* Daemon: what a rank has written. */
void relay_output(const struct stream *, const char *data, size_t n);
bool relay_output_full(void);

/* Root: acknowledges what had to wait for a sink. */
void relay_resume(void);

/* Root: standard input for the reader or readers on other hosts; n = 0 is its end. */
bool relay_has_readers(void); /* anybody there who reads on? */
void relay_input(const char *data, size_t n);
bool relay_input_full(void);

/* Daemon: the readers' pipes took something; `gone`: nobody reads any more. */
void relay_input_taken(size_t n, bool gone);

#endif
