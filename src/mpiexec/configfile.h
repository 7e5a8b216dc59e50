/*
 * configfile.h - files with parts of a command line (-configfile of the standard, --app): a line is what could stand
 * between two ':', words may be quoted with ' or " or escaped with \, '#' starts a comment.
 */
#ifndef TERN_MPIEXEC_CONFIGFILE_H
#define TERN_MPIEXEC_CONFIGFILE_H

#include "mpiexec/spec.h"

/* Parses every line of the file into the spec. Result as of options_parse. */
int configfile_read(struct spec *, const char *path);

/* Splits a line into words; false when a quote is not closed. The words are new strings. */
bool configfile_split(const char *line, struct strv *words);

#endif
