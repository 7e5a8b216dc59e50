/*
 * start.h - starts one rank: the process, its process group, its descriptors, its cpus, its program.
 */
#ifndef TERN_MPIEXEC_START_H
#define TERN_MPIEXEC_START_H

#include "mpiexec/launch.h"

/* The environment of one rank: its app's with what names its place. `common` is what the PMIx server wants ranks to
 * have ("PMIX_..."), the rank number in it replaced. */
void start_environment(struct strv *env, const struct job *, const struct rank *, const struct strv *common);

/* Starts the rank with descriptor `in` as its standard input (-1 = nothing to read); `in` stays the caller's.
 * Fills pid and the read ends of out and err. 0, or an exit code after saying why; nothing runs then. */
int start_rank(struct job *, struct rank *, const struct strv *env, int in);

#endif
