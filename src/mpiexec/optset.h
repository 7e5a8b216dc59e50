/*
 * optset.h - the table of options: names, number of values, meaning, and the function that puts the values into the
 * spec.
 */
#ifndef TERN_MPIEXEC_OPTSET_H
#define TERN_MPIEXEC_OPTSET_H

#include "mpiexec/spec.h"

/* As number of words: NAME VALUE, or NAME=VALUE in one word. */
enum { OPTION_ASSIGNS = -1 };

struct optset {
    const char *names;                        /* "n|np"; with set == NULL: a heading of the help text */
    int nargs;                                /* 0, 1 or 2 words that follow, or OPTION_ASSIGNS */
    int (*set)(struct spec *, char **values); /* result as of options_parse */
    const char *args, *help;
};

/* Ends with names == NULL. */
extern const struct optset optset_table[];

#endif
