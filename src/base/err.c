/* err.c - the words of the last failure, one buffer a thread. */
#include "base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static _Thread_local char words[512];
static _Thread_local int last;

int err_set(int code, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(words, sizeof words, fmt, ap);
    va_end(ap);
    last = code;
    return code;
}

int err_sys(const char *fmt, ...)
{
    int e = errno;
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(words, sizeof words, fmt, ap);
    va_end(ap);
    if (n >= 0 && (size_t)n < sizeof words) {
        char reason[128];
        snprintf(words + n, sizeof words - (size_t)n, ": %s", strerror_r(e, reason, sizeof reason));
    }
    errno = e;
    last = TERN_ERR_SYSTEM;
    return TERN_ERR_SYSTEM;
}

const char *err_words(void) { return words; }

int err_code(void) { return last; }

void err_clear(void)
{
    words[0] = 0;
    last = 0;
}
