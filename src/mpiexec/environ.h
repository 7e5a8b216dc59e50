/*
 * environ.h - the environment of the ranks: the launcher's own as it was at the start, changed as the options say,
 * without what another launcher around this one left in it.
 */
#ifndef TERN_MPIEXEC_ENVIRON_H
#define TERN_MPIEXEC_ENVIRON_H

#include "mpiexec/spec.h"

/* Sets, replaces or removes ("NAME" alone) a variable in a list of "NAME=value". Keeps the pointer. */
void environ_put(struct strv *env, char *assignment);

/* The value of a variable in such a list, or NULL. */
const char *environ_get(const struct strv *env, const char *name);

/* What all ranks of an app have in common. `own` is the launcher's environment. */
void environ_of_app(struct strv *env, char **own, const struct spec *, const struct app_spec *);

#endif
