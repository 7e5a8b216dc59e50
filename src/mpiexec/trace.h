/*
 * trace.h - --get-stack-traces: what each rank of this node does, in words, before a time limit ends the job.
 *
 * A shell script asks gdb, else eu-stack, else gstack; where none is there, or may not look into the process, /proc
 * says what the kernel knows. It runs beside the launcher, which passes its lines on as they come.
 */
#ifndef TERN_MPIEXEC_TRACE_H
#define TERN_MPIEXEC_TRACE_H

#include "mpiexec/launch.h"

/* Says the traces of the ranks of this node that run, then calls `done`, at the latest after TRACE_LIMIT_S. */
void trace_start(const struct job *, void (*done)(void));

/* No rank is left: ends what trace_start has started, if it still runs. */
void trace_stop(void);

#define TRACE_LIMIT_S 60

#endif
