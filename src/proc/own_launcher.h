/*
 * own_launcher.h - the launcher of a process that was started without one: an mpiexec that the process starts when it
 * spawns processes or publishes names for the first time (src/mpiexec/singleton.h).
 *
 *      process                                                        mpiexec
 *         | starts it; their line is a pair of sockets                   |
 *         | the name of the job, with its final zero ------------------> |
 *         | <--- an empty text, with a descriptor of the job block ----- |       or a text that says why there is none
 *         | questions, by the socket that the block names (ask.h) -----> |
 *         | end of file: the process has left MPI, or has ended -------> |
 *
 * The mpiexec is no child of the process, so a program that waits for its children does not meet it; and no signal
 * says that a child has ended. It has none of the program's files but standard output and standard error.
 *
 * Threads: one at a time.
 */
#ifndef TERN_PROC_OWN_LAUNCHER_H
#define TERN_PROC_OWN_LAUNCHER_H

#define OWN_LAUNCHER_OPTION "--tern-singleton" /* its only word */
#define OWN_LAUNCHER_LINE 3                    /* the number of its end of the line */
#define OWN_LAUNCHER_TEXT 2048                 /* bytes of a text on the line, at most */

/* Starts it for the job of this name. The descriptors of the line and of the job block are closed by exec, and the
 * caller's. 0, or a code with words: TERN_ERR_UNSUPPORTED: there is no mpiexec; TERN_ERR_SYSTEM: it cannot be started, or
 * says that it cannot serve. */
int own_launcher_start(const char *job, int *line, int *block);

#endif
