/*
 * own_launcher.h - the launcher of a process that was started without one: an mpiexec that the process starts when a
 * function of dynamic.h first needs one (ask.h, src/mpiexec/singleton.h).
 *
 * The mpiexec is no child of the process, so a program that waits for its children does not meet it; and no signal
 * says that a child has ended. It has none of the program's files but standard output and standard error.
 *
 * Threads: one at a time.
 */
#ifndef TERN_PROC_OWN_LAUNCHER_H
#define TERN_PROC_OWN_LAUNCHER_H

/* Starts it for the job of this name. The descriptors of the line and of the job block are closed by exec, and the
 * caller's. 0, or a code with words: TERN_ERR_UNSUPPORTED: there is no mpiexec; TERN_ERR_SYSTEM: it cannot be started, or
 * says that it cannot serve. */
int own_launcher_start(const char *job, int *line, int *block);

#endif
