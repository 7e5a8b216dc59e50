/*
 * describe.h - the job as the root describes it to the daemons: bytes, and back. What only the root needs (where output
 * goes, who reads the standard input of the user) is not in it, and no key: links are not sealed.
 */
#ifndef TERN_MPIEXEC_DESCRIBE_H
#define TERN_MPIEXEC_DESCRIBE_H

#include "mpiexec/launch.h"
#include "mpiexec/wire.h"

/* `cwd` is the root's working directory, or NULL if it has none. */
void describe_job(struct wire_out *, const struct job *, const char *cwd);

/* Fills a zeroed job, of a daemon that serves `node`, and its zeroed specification. NULL, or what is wrong: nothing is
 * left of them then. `cwd`: NULL if the root has none; the caller's to free. */
const char *describe_parse(struct job *, struct spec *, char **cwd, int node, const void *bytes, size_t n);

/* Frees what describe_parse has made of the two. */
void describe_free(struct job *, struct spec *);

#endif
