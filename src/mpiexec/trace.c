/* trace.c - see trace.h. */
#include "mpiexec/trace.h"
#include "base/start_attr.h"
#include "mpiexec/words.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern char **environ;

/* Its arguments are "RANK:PID". Children of a rank are shown as well: the rank may be a script. */
static char script[] =
    "try() { command -v \"$1\" >/dev/null && \"$@\" 2>/dev/null </dev/null | sed -n '/^Thread /p;/^#/p;/^TID /p' | "
    "grep .; }\n"
    "kernel() {\n"
    "    for t in /proc/$1/task/*; do\n"
    "        echo \"Thread ${t##*/}: $(sed -n 's/^State:[[:space:]]*//p' $t/status), waits in $(cat $t/wchan)\"\n"
    "        cat $t/stack\n"
    "    done 2>/dev/null\n"
    "}\n"
    "for r; do\n"
    "    pid=${r#*:}\n"
    "    for p in $pid $(cat /proc/$pid/task/*/children 2>/dev/null); do\n"
    "        echo \"stack of rank ${r%%:*}, pid $p ($(cat /proc/$p/comm 2>/dev/null)):\"\n"
    "        try gdb -n -q -batch -ex 'thread apply all bt' -p $p || try eu-stack -p $p || try gstack $p || kernel $p\n"
    "    done\n"
    "done\n";

static struct {
    struct event *readable, *limit;
    pid_t pid;
    int fd;
    char line[1024];
    size_t length;
    void (*done)(void);
} self;

static void show_line(void)
{
    if (self.length) say("%.*s", (int)self.length, self.line);
    self.length = 0;
}

static void finish(void)
{
    show_line();
    event_free(self.readable);
    event_free(self.limit);
    self.readable = NULL;
    close(self.fd);
    self.done();
}

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
    char bytes[4096];
    ssize_t n = read(fd, bytes, sizeof bytes);
    (void)what, (void)arg;
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) return;
    for (ssize_t i = 0; i < n; i++) {
        if (bytes[i] == '\n' || self.length == sizeof self.line) show_line();
        if (bytes[i] != '\n') self.line[self.length++] = bytes[i];
    }
    if (n <= 0) finish();
}

static void on_limit(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what, (void)arg;
    kill(-self.pid, SIGKILL);
    say("stack traces are not complete after %d s", TRACE_LIMIT_S);
    finish();
}

void trace_stop(void)
{
    if (self.readable) kill(-self.pid, SIGKILL);
}

/* The script in a process group of its own, which may be ended without the ranks. 0 or an error. */
static int spawn(char **argv, int out)
{
    struct start_attr how;
    start_attr_open_fresh(&how);
    posix_spawn_file_actions_addopen(&how.files, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&how.files, out, 1);
    posix_spawn_file_actions_addopen(&how.files, 2, "/dev/null", O_WRONLY, 0);
    int error = posix_spawn(&self.pid, "/bin/sh", &how.files, &how.attr, argv, environ);
    start_attr_close(&how);
    return error;
}

static char **arguments(const struct job *j)
{
    char **argv = xcalloc((size_t)launch_nlocal(j) + 5, sizeof *argv), **at = argv;
    *at++ = xstrdup("sh");
    *at++ = xstrdup("-c");
    *at++ = xstrdup(script);
    *at++ = xstrdup("sh");
    for (int i = 0; i < launch_nlocal(j); i++) {
        const struct rank *r = launch_local(j, i);
        if (r->pid) *at++ = xasprintf("%d:%d", r->rank, (int)r->pid);
    }
    return argv;
}

void trace_start(const struct job *j, void (*done)(void))
{
    struct timeval limit = {.tv_sec = TRACE_LIMIT_S};
    int ends[2], error = pipe2(ends, O_CLOEXEC) ? errno : 0;
    if (!error) {
        char **argv = arguments(j);
        error = spawn(argv, ends[1]);
        for (char **a = argv; *a; a++) free(*a);
        free(argv);
        close(ends[1]);
        if (error) close(ends[0]);
    }
    if (error) {
        say("no stack traces: %s", strerror(error));
        done();
        return;
    }
    self.fd = ends[0];
    self.done = done;
    self.readable = event_new(j->base, self.fd, EV_READ | EV_PERSIST, on_readable, NULL);
    self.limit = evtimer_new(j->base, on_limit, NULL);
    event_add(self.readable, NULL);
    evtimer_add(self.limit, &limit);
}
