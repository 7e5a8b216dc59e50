/* words.c - the launcher's messages. */
#include "mpiexec/words.h"

#include <signal.h>
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

const char *code_hint(int code)
{
    static char words[256];
    int sig = code - 128;
    if (sig <= 0 || !sigabbrev_np(sig)) return "";
    snprintf(words, sizeof words, " (from a shell that means: its command was killed by signal %d (%s)%s)", sig,
             signal_words(sig), signal_hint(sig));
    return words;
}

const char *signal_hint(int sig)
{
    switch (sig) {
    case SIGXFSZ:
        return ": a file grew beyond the limit of `ulimit -f`, which holds for shared memory as well";
    case SIGXCPU:
        return ": the limit of processor time of `ulimit -t` was reached";
    case SIGBUS:
        return ": a mapped file was truncated, or the file system behind it (/dev/shm?) is full";
    case SIGKILL:
        return ": sent by a user, or by the system for want of memory (see dmesg)";
    default:
        return "";
    }
}
