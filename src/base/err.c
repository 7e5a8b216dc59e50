/* err.c - the words of the last failure, one buffer a thread; words of operations, for whoever reports them. */
#include "base/err.h"
#include "base/scratch.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { WORDS = 512 };
static _Thread_local int last;

static char *words(void)
{
    static char common[WORDS];
    static struct scratch words = SCRATCH_INIT(common);
    return scratch(&words);
}

/* The words recorded so far may be among the arguments. */
static void record(const char *fmt, va_list ap)
{
    char new[WORDS];
    vsnprintf(new, sizeof new, fmt, ap);
    strcpy(words(), new);
}

int err_set(int code, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    record(fmt, ap);
    va_end(ap);
    last = code;
    return code;
}

int err_sys(const char *fmt, ...)
{
    int e = errno;
    va_list ap;
    va_start(ap, fmt);
    record(fmt, ap);
    va_end(ap);
    char reason[128], *mine = words();
    size_t n = strlen(mine);
    snprintf(mine + n, WORDS - n, ": %s", strerror_r(e, reason, sizeof reason));
    errno = e;
    last = TERN_ERR_SYSTEM;
    return TERN_ERR_SYSTEM;
}

const char *err_words(void) { return words(); }

int err_code(void) { return last; }

/* What the system or another process is to blame for; callers turn one of these codes into another. */
static bool from_outside(int code)
{
    return err_is_of_peer(code) || code == TERN_ERR_SYSTEM || code == TERN_ERR_NOT_FOUND || code == TERN_ERR_NOMEM;
}

bool err_explains(int code) { return last == code || (from_outside(last) && from_outside(code)); }

void err_clear(void)
{
    words()[0] = 0;
    last = 0;
}

/* ---- words of operations ---- */

struct kept {
    const void *of; /* NULL: free */
    int code;
    char words[WORDS];
};

static struct kept kept[ERR_KEPT]; /* a ring: the next one to be overwritten is the oldest */
static unsigned next_kept;
static pthread_mutex_t kept_lock = PTHREAD_MUTEX_INITIALIZER;

static struct kept *find_kept(const void *of)
{
    for (int i = 0; i < ERR_KEPT; i++)
        if (kept[i].of == of) return &kept[i];
    return NULL;
}

int err_keep(const void *of, int code)
{
    pthread_mutex_lock(&kept_lock);
    struct kept *k = find_kept(of);
    if (k) k->of = NULL;
    if (code && last == code) {
        k = &kept[next_kept++ % ERR_KEPT];
        k->of = of;
        k->code = code;
        strcpy(k->words, words());
    }
    pthread_mutex_unlock(&kept_lock);
    return code;
}

void err_recall(const void *of, int code)
{
    pthread_mutex_lock(&kept_lock);
    struct kept *k = find_kept(of);
    if (k && k->code == code) {
        strcpy(words(), k->words);
        last = code;
    }
    if (k) k->of = NULL;
    pthread_mutex_unlock(&kept_lock);
}
