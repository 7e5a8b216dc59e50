/*
 * spawning.h - what programs need that spawn workers of their own kind.
 */
#ifndef EXAMPLES_SPAWNING_H
#define EXAMPLES_SPAWNING_H

#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SPAWNING_PAIRS = 32 }; /* KEY=VALUE on the command line */

/* The file of this program, the same on all hosts; malloc'ed. The first word of a command line would be looked for. */
static inline char *spawning_program(const char *argv0)
{
    char *path = realpath("/proc/self/exe", NULL);
    return path ? path : strdup(argv0);
}

/* The pairs as an info object, MPI_INFO_NULL if there are none; false, in words: one is no pair. */
static inline bool spawning_info(const char *const *pairs, int n, MPI_Info *info)
{
    *info = MPI_INFO_NULL;
    if (n) MPI_Info_create(info);
    for (int i = 0; i < n; i++) {
        const char *equals = strchr(pairs[i], '=');
        char key[MPI_MAX_INFO_KEY + 1];
        if (!equals || equals == pairs[i] || equals - pairs[i] > MPI_MAX_INFO_KEY) {
            fprintf(stderr, "--info %s: not of the form KEY=VALUE\n", pairs[i]);
            MPI_Info_free(info);
            return false;
        }
        snprintf(key, sizeof key, "%.*s", (int)(equals - pairs[i]), pairs[i]);
        MPI_Info_set(*info, key, equals + 1);
    }
    return true;
}

/* The words of an error of MPI; valid until the next call. */
static inline const char *spawning_words(int code)
{
    static char words[MPI_MAX_ERROR_STRING];
    int length = 0;
    MPI_Error_string(code, words, &length);
    words[length] = '\0';
    return words;
}

#endif
