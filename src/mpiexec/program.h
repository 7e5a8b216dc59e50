/*
 * program.h - finds the file to execute and the directory to execute it in, before anything is started, so that a
 * mistake is one message and not one a rank.
 */
#ifndef TERN_MPIEXEC_PROGRAM_H
#define TERN_MPIEXEC_PROGRAM_H

#include "mpiexec/spec.h"

struct program {
    char *path;  /* to be executed; relative to the working directory unless it begins with '/' */
    int wdir_fd; /* the working directory (O_PATH), or AT_FDCWD */
};

/* 0, or an exit code after saying what is missing (EXIT_NOT_FOUND, EXIT_CANNOT_RUN). `env` is the ranks' environment:
 * its PATH counts, after the app's -path. */
int program_find(struct program *, const struct app_spec *, const struct strv *env);

#endif
