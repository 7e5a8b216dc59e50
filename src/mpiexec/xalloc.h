/*
 * xalloc.h - memory for a short-lived program: a launcher that runs out of memory says so and ends, so callers need
 * no error path. What is allocated here lives until the end of the process unless its owner frees it.
 */
#ifndef TERN_MPIEXEC_XALLOC_H
#define TERN_MPIEXEC_XALLOC_H

#include "base/compiler.h"

void *xcalloc(size_t n, size_t size);
void *xrealloc(void *p, size_t size);
char *xstrdup(const char *s);
char *xstrndup(const char *s, size_t n);
char *xasprintf(const char *fmt, ...) TERN_PRINTF(1, 2);

/* A list of strings, NULL-terminated at all times once something was pushed: usable as argv and envp. */
struct strv {
    char **v;
    int n;
};

void strv_push(struct strv *, char *s); /* keeps the pointer */
void strv_free(struct strv *);          /* the list, not the strings */
void strv_free_all(struct strv *);      /* the strings as well */

#endif
