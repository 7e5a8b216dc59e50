/* agent.c - see agent.h. */
#include "mpiexec/agent.h"
#include "base/signals.h"
#include "mpiexec/words.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

char *agent_quote(const char *word)
{
    char *quoted = xcalloc(strlen(word) * 4 + 3, 1), *to = quoted;
    *to++ = '\'';
    for (; *word; word++)
        if (*word == '\'')
            to = stpcpy(to, "'\\''");
        else
            *to++ = *word;
    *to = '\'';
    return quoted;
}

static const char *program(const struct launcher_spec *l) { return l->exec ? l->exec : l->kind ? l->kind : "ssh"; }

static const char *last_part(const char *path) { return strrchr(path, '/') ? strrchr(path, '/') + 1 : path; }

const char *agent_name(const struct launcher_spec *l) { return last_part(program(l)); }

/* The agent may be given with options of its own: "ssh -p 2222". A path with blanks that is there is one word. */
static void push_words(struct strv *argv, const char *text)
{
    char *copy = xstrdup(text), *word;
    if (!access(text, X_OK)) {
        strv_push(argv, copy);
        return;
    }
    while ((word = strsep(&copy, " \t")))
        if (*word) strv_push(argv, word);
}

static void make_argv(struct strv *argv, const struct launcher_spec *l, const char *host, const char *command)
{
    if (!l->exec && l->kind && !strcmp(l->kind, "fork")) {
        strv_push(argv, "/bin/sh");
        strv_push(argv, "-c");
    } else {
        push_words(argv, program(l));
        if (argv->n && !strcmp(last_part(argv->v[0]), "ssh")) { /* no X11, no question that nobody can answer */
            strv_push(argv, "-x");
            strv_push(argv, "-o");
            strv_push(argv, "BatchMode=yes");
        }
        strv_push(argv, xstrdup(host));
    }
    strv_push(argv, xstrdup(command));
}

static void __attribute__((noreturn)) child(char **argv, int in, int out, pid_t parent)
{
    sigset_t none;
    sigemptyset(&none);
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) _exit(127);
    if (dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(out, 2) < 0) _exit(127);
    for (int sig = 1; sig < NSIG; sig++) signal(sig, SIG_DFL);
    sigprocmask(SIG_SETMASK, &none, NULL);
    execvp(argv[0], argv);
    dprintf(2, "cannot execute %s: %s\n", argv[0], strerror(errno));
    _exit(127);
}

static void keep(struct agent *a, const char *text, size_t n)
{
    if (n > sizeof a->said) {
        text += n - sizeof a->said;
        n = sizeof a->said;
    }
    if (a->said_length + n > sizeof a->said) {
        size_t drop = a->said_length + n - sizeof a->said;
        memmove(a->said, a->said + drop, a->said_length - drop);
        a->said_length -= drop;
    }
    memcpy(a->said + a->said_length, text, n);
    a->said_length += n;
}

/* False when there is nothing now, or never again. */
static bool take(struct agent *a)
{
    char chunk[512];
    ssize_t n = a->out < 0 ? -1 : read(a->out, chunk, sizeof chunk);
    if (n > 0) keep(a, chunk, (size_t)n);
    if (n > 0 || a->out < 0) return n > 0;
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return false;
    event_free(a->readable);
    close(a->out);
    a->readable = NULL;
    a->out = -1;
    return false;
}

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what;
    take(arg);
}

static int refuse(const char *host, const char *what)
{
    say("cannot start an agent for host %s: %s: %s", host, what, strerror(errno));
    return EXIT_RESOURCE;
}

int agent_start(struct agent *a, struct event_base *base, const struct launcher_spec *l, const char *host,
                const char *command, const char *input)
{
    int in[2], out[2];
    struct strv argv = {0};
    pid_t self = getpid();
    sigset_t before;
    if (*host == '-') { /* it would be an option of the agent */
        say("'%s' is not the name of a host", host);
        return EXIT_USAGE;
    }
    if (pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC)) return refuse(host, "pipe");
    make_argv(&argv, l, host, command);
    if (!argv.n) return refuse(host, "no program named");
    signals_block(&before); /* a handler of ours that ran in the child would take the signal for the parent's */
    a->pid = fork();
    if (!a->pid) child(argv.v, in[0], out[1], self);
    signals_restore(&before);
    if (a->pid < 0) return refuse(host, "fork");
    setpgid(a->pid, a->pid); /* whichever of us is first */
    close(in[0]);
    close(out[1]);
    a->in = in[1];
    a->out = out[0];
    fcntl(a->out, F_SETFL, O_NONBLOCK);
    if (write(a->in, input, strlen(input)) < 0) agent_detach(a); /* it has ended, which will be noticed */
    a->readable = event_new(base, a->out, EV_READ | EV_PERSIST, on_readable, a);
    event_add(a->readable, NULL);
    strv_free(&argv);
    return 0;
}

void agent_detach(struct agent *a)
{
    if (a->in >= 0) close(a->in);
    a->in = -1;
}

const char *agent_words(struct agent *a, char *buf, size_t size)
{
    size_t n = 0;
    while (take(a)) continue;
    for (size_t i = 0; i < a->said_length && n + 3 < size; i++) {
        char c = a->said[i];
        if (c != '\n' && c != '\r')
            buf[n++] = isprint((unsigned char)c) || (c & 0x80) ? c : ' ';
        else if (n && i + 1 < a->said_length && buf[n - 1] != ' ') {
            buf[n++] = ';';
            buf[n++] = ' ';
        }
    }
    while (n && (buf[n - 1] == ' ' || buf[n - 1] == ';')) n--;
    buf[n] = 0;
    return buf;
}

void agent_kill(struct agent *a, int sig)
{
    if (a->pid > 0) kill(-a->pid, sig);
}

void agent_close(struct agent *a)
{
    agent_detach(a);
    if (a->readable) event_free(a->readable);
    if (a->out >= 0) close(a->out);
    a->readable = NULL;
    a->out = -1;
}
