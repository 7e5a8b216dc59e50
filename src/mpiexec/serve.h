/*
 * serve.h - serving a node: what the root does for the ranks of its own host, and a daemon for those of another.
 */
#ifndef TERN_MPIEXEC_SERVE_H
#define TERN_MPIEXEC_SERVE_H

#include "mpiexec/launch.h"

/* In this order. Each 0, or an exit code after saying why. */
int serve_check(struct job *);   /* limits, programs and directories of the node's ranks */
int serve_prepare(struct job *); /* placement, job block, PMIx server; the guard is there, and the event loop */
int serve_start(struct job *);   /* the ranks; some may run when this fails */

/* -v: how long the step took that ends here. */
void serve_step(const char *step);

#endif
