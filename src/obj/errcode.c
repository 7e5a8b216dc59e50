/* errcode.c - see errcode.h. Few are ever made: a table by number. */
#include "obj/errcode.h"
#include "base/err.h"

#include <mpi.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define FIRST (MPI_ERR_LASTCODE + 1)

static struct code {
    int klass; /* own number: a class; 0: removed */
    int codes; /* of a class: how many codes it has */
    char *string;
} *table;
static int room;
static int last = MPI_ERR_LASTCODE;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Lock held. */
static struct code *find(int code)
{
    return code >= FIRST && code <= last && table[code - FIRST].klass ? &table[code - FIRST] : NULL;
}

static int no_code(int code)
{
    if (code < FIRST) return err_set(TERN_ERR_ARG, "%d is an error code of the library, not one that was added", code);
    return err_set(TERN_ERR_ARG, "error code %d was not added, or was removed", code);
}

/* A new number, whose class is `klass` (0: itself). Lock held. */
static int append(int klass, int *code_p)
{
    int n = last - MPI_ERR_LASTCODE;
    if (n == room) {
        int more = room ? 2 * room : 16;
        struct code *t = realloc(table, (size_t)more * sizeof *t);
        if (!t) return err_set(TERN_ERR_NOMEM, "no memory for an error code");
        table = t;
        room = more;
    }
    last++;
    table[n] = (struct code){.klass = klass ? klass : last};
    *code_p = last;
    return 0;
}

int errcode_add_class(int *klass_p)
{
    pthread_mutex_lock(&lock);
    int rc = append(0, klass_p);
    pthread_mutex_unlock(&lock);
    return rc;
}

/* Lock held. */
static int append_code(int klass, int *code_p)
{
    struct code *c = find(klass);
    if (klass >= FIRST && (!c || c->klass != klass))
        return err_set(TERN_ERR_ARG, "%d is no error class", klass);
    int rc = append(klass, code_p);
    if (!rc && klass >= FIRST) table[klass - FIRST].codes++;
    return rc;
}

int errcode_add(int klass, int *code_p)
{
    pthread_mutex_lock(&lock);
    int rc = append_code(klass, code_p);
    pthread_mutex_unlock(&lock);
    return rc;
}

int errcode_set_string(int code, const char *string)
{
    char *copy = strdup(string);
    if (!copy) return err_set(TERN_ERR_NOMEM, "no memory for the string of error code %d", code);
    pthread_mutex_lock(&lock);
    struct code *c = find(code);
    if (c) {
        free(c->string);
        c->string = copy;
    }
    pthread_mutex_unlock(&lock);
    if (c) return 0;
    free(copy);
    return no_code(code);
}

/* Lock held. */
static void forget(struct code *c)
{
    free(c->string);
    *c = (struct code){0};
}

static int with_lock(int (*change)(int), int code)
{
    pthread_mutex_lock(&lock);
    int rc = change(code);
    pthread_mutex_unlock(&lock);
    return rc;
}

/* Lock held. */
static int remove_class(int klass)
{
    struct code *c = find(klass);
    if (!c) return no_code(klass);
    if (c->klass != klass) return err_set(TERN_ERR_ARG, "%d is an error code of class %d, not a class", klass, c->klass);
    if (c->codes)
        return err_set(TERN_ERR_ARG, "error class %d still has %d error code%s, which must be removed before", klass, c->codes,
                       c->codes > 1 ? "s" : "");
    forget(c);
    return 0;
}

int errcode_remove_class(int klass) { return with_lock(remove_class, klass); }

/* Lock held. */
static int remove_code(int code)
{
    struct code *c = find(code);
    if (!c) return no_code(code);
    if (c->klass == code) return err_set(TERN_ERR_ARG, "%d is an error class, not a code of one", code);
    if (c->string) return err_set(TERN_ERR_ARG, "error code %d still has a string, which must be removed before", code);
    if (c->klass >= FIRST) table[c->klass - FIRST].codes--;
    forget(c);
    return 0;
}

int errcode_remove(int code) { return with_lock(remove_code, code); }

/* Lock held. */
static int remove_string(int code)
{
    struct code *c = find(code);
    if (!c) return no_code(code);
    if (!c->string) return err_set(TERN_ERR_ARG, "error code %d has no string", code);
    free(c->string);
    c->string = NULL;
    return 0;
}

int errcode_remove_string(int code) { return with_lock(remove_string, code); }

bool errcode_class(int code, int *klass_p)
{
    pthread_mutex_lock(&lock);
    struct code *c = find(code);
    if (c) *klass_p = c->klass;
    pthread_mutex_unlock(&lock);
    return c != NULL;
}

bool errcode_string(int code, char *buf, size_t cap)
{
    pthread_mutex_lock(&lock);
    struct code *c = find(code);
    if (c) {
        const char *s = c->string ? c->string : "";
        size_t n = min_size(strlen(s), cap - 1);
        memcpy(buf, s, n);
        buf[n] = 0;
    }
    pthread_mutex_unlock(&lock);
    return c != NULL;
}

int *errcode_last(void) { return &last; }

void errcode_close(void)
{
    for (int i = 0; i < last - MPI_ERR_LASTCODE; i++) free(table[i].string);
    free(table);
    table = NULL;
    room = 0;
    last = MPI_ERR_LASTCODE;
}
