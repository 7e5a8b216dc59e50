/* xalloc.c - memory that is there or ends the launcher with words. */
#include "mpiexec/xalloc.h"
#include "mpiexec/words.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *checked(void *p)
{
    if (p) return p;
    say("no memory");
    exit(EXIT_RESOURCE);
}

void *xcalloc(size_t n, size_t size) { return checked(calloc(n ? n : 1, size)); }
void *xrealloc(void *p, size_t size) { return checked(realloc(p, size)); }
char *xstrdup(const char *s) { return checked(strdup(s)); }
char *xstrndup(const char *s, size_t n) { return checked(strndup(s, n)); }

char *xasprintf(const char *fmt, ...)
{
    va_list ap;
    char *s = NULL;
    va_start(ap, fmt);
    int n = vasprintf(&s, fmt, ap);
    va_end(ap);
    return checked(n < 0 ? NULL : s);
}

void strv_push(struct strv *l, char *s)
{
    if (l->n % 16 == 0) l->v = xrealloc(l->v, sizeof(char *) * ((size_t)l->n + 17));
    l->v[l->n++] = s;
    l->v[l->n] = NULL;
}

void strv_free_all(struct strv *l)
{
    for (int i = 0; i < l->n; i++) free(l->v[i]);
    strv_free(l);
}

void strv_free(struct strv *l)
{
    free(l->v);
    l->v = NULL;
    l->n = 0;
}
