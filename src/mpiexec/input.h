/*
 * input.h - the launcher's standard input, for the ranks that are to read it.
 *
 * A file, pipe or socket goes to its one reader as it is: the rank reads what it needs and no more (so a job in a shell
 * loop does not swallow the loop's input), may seek, and sees the end. A terminal, which only processes of its
 * foreground group may read, and input meant for all ranks or for ranks of other
 * hosts, are read here and passed on.
 */
#ifndef TERN_MPIEXEC_INPUT_H
#define TERN_MPIEXEC_INPUT_H

#include "mpiexec/launch.h"

/* 0 or an exit code after saying why. */
int input_open(struct job *);

/* The descriptor that is to become the standard input of a rank; input_given closes what is needed no more after its
 * start. -1 after saying why. */
int input_for(struct job *, int rank);
void input_given(int fd);

/* Begins to pass on. */
void input_start(struct job *);

/* Reads again after a full pipe had room. */
void input_resume(void);

/* A daemon: takes input that has come from the root; n = 0 is its end. */
void input_take(const char *data, size_t n);

#endif
