/*
 * words.h - how the launcher speaks: one line on standard error a message, "mpiexec: ...", written in one piece so
 * that lines of several writers do not mix. Nothing is said when all is well.
 */
#ifndef TERN_MPIEXEC_WORDS_H
#define TERN_MPIEXEC_WORDS_H

#include "base/compiler.h"

/* Exit codes of the launcher itself; those of a job are its ranks'. */
enum {
    EXIT_USAGE = 2,        /* the command line or a file it names is wrong */
    EXIT_RESOURCE = 3,     /* the system refused something the launcher needs */
    EXIT_TIMEOUT = 124,    /* as timeout(1) */
    EXIT_CANNOT_RUN = 126, /* as the shell: found, but not executable */
    EXIT_NOT_FOUND = 127   /* as the shell */
};

void say(const char *fmt, ...) TERN_PRINTF(1, 2);

/* say() when -v was given: words_verbose is set by the option. */
extern bool words_verbose;
void say_verbose(const char *fmt, ...) TERN_PRINTF(1, 2);

/* Called before anything is written to standard error, so that forwarded output keeps its place; NULL = nobody. */
extern void (*words_before)(void);

/* Where the launcher's words go instead of standard error: each line without "mpiexec: " and newline; NULL = nowhere
 * else. For daemons, whose words the root says. */
extern void (*words_to)(const char *line);

/* "Segmentation fault" for SIGSEGV; never NULL. */
const char *signal_words(int sig);

/* What a death by this signal usually means, to follow these words: ": a file grew ..."; "" where they say it all. */
const char *signal_hint(int sig);

/* The same of an exit code, which a shell makes of the signal that killed its command: " (by a shell: ...)". */
const char *code_hint(int code);

#endif
