/*
 * options.h - the command line, in the dialects of both families of MPI: every option with one or two dashes, values
 * as the next word or after '='. What cannot be done is refused in words.
 */
#ifndef TERN_MPIEXEC_OPTIONS_H
#define TERN_MPIEXEC_OPTIONS_H

#include "mpiexec/spec.h"

/* Parses argv[0..argc) (without the name of the program) into the spec. 0; or an exit code after saying what is wrong;
 * OPTIONS_DONE when the command line only asked for words (--help, --version), which were printed. */
#define OPTIONS_DONE (-1)
int options_parse(struct spec *, int argc, char **argv);

/* Reads the variables of the environment that stand for options. Same result. */
int options_environment(struct spec *);

/* Prints the list of options on standard output. */
void options_help(void);

#endif
