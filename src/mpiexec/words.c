/* words.c - the launcher's messages. */
#include "mpiexec/words.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

bool words_verbose;
void (*words_before)(void);
void (*words_to)(const char *line);

static void say_list(const char *fmt, va_list ap)
{
    char line[2048] = "mpiexec: ";
    const size_t head = sizeof "mpiexec: " - 1;
    int n = vsnprintf(line + head, sizeof line - head - 1, fmt, ap);
    size_t len = head + (n < 0 ? 0 : min_size((size_t)n, sizeof line - head - 2));
    if (words_to) {
        words_to(line + head);
        return;
    }
    line[len++] = '\n';
    if (words_before) words_before();
    for (size_t at = 0; at < len;) {
        ssize_t w = write(STDERR_FILENO, line + at, len - at);
        if (w <= 0) return; /* nobody left to tell */
        at += (size_t)w;
    }
}

void say(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    say_list(fmt, ap);
    va_end(ap);
}

void say_verbose(const char *fmt, ...)
{
    va_list ap;
    if (!words_verbose) return;
    va_start(ap, fmt);
    say_list(fmt, ap);
    va_end(ap);
}

const char *signal_words(int sig)
{
    const char *words = sigdescr_np(sig);
    return words ? words : "unknown signal";
}
