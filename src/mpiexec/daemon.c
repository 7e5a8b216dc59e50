/*
 * daemon.c - serving a node on another host than the root's.
 *
 *     boot text on standard input -> connection to the parent -> TREE_JOB: daemons below are started, all is prepared
 *     -> TREE_READY -> TREE_START: ranks -> their exits, output ... -> TREE_OVER -> TREE_BYE
 *
 * Nothing is judged here: the root decides. Without a parent the ranks are killed, and the daemon goes; if it is killed
 * itself, its guard does the same (guard.h). Until it has joined the tree its words go to standard error, where the
 * agent takes them; later the root says them.
 */
#include "mpiexec/daemon.h"
#include "mpiexec/boot.h"
#include "mpiexec/describe.h"
#include "mpiexec/hosts.h"
#include "mpiexec/input.h"
#include "mpiexec/live.h"
#include "mpiexec/relay.h"
#include "mpiexec/report.h"
#include "mpiexec/serve.h"
#include "mpiexec/sink.h"
#include "mpiexec/standing.h"
#include "mpiexec/trace.h"
#include "mpiexec/tree.h"
#include "mpiexec/words.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#define BOOT_S 60 /* for the text on standard input */
#define ALONE_S 3 /* from the end of standard input, when nobody waits for us any more, to our leaving */

static struct {
    struct boot boot;
    struct spec spec;
    struct job job;
    struct event_base *base;
    struct event *lifeline, *alone;
    struct strv words; /* held back while something is prepared that may fail */
    bool holding;
    bool joined; /* the job has come */
    bool guarded;
    bool started;       /* ranks, or at least the first of them */
    bool over;          /* they are gone */
    bool leaving, left; /* we, and those below */
    int code;
} self;

/* --- words ------------------------------------------------------------------------------------------------------- */

static void pass_words(const char *line)
{
    if (self.holding)
        strv_push(&self.words, xstrdup(line));
    else
        report_words(line);
}

static void hold_words(void) { self.holding = true; }

/* After a failure the last words go with it as its reason. */
static void release_words(int code)
{
    self.holding = false;
    for (int i = 0; i < self.words.n; i++) {
        bool reason = code && i == self.words.n - 1;
        if (reason)
            report_failed(code, self.words.v[i]);
        else
            report_words(self.words.v[i]);
        free(self.words.v[i]);
    }
    if (code && !self.words.n) report_failed(code, "");
    self.words.n = 0;
}

/* --- leaving ----------------------------------------------------------------------------------------------------- */

static void check_leave(void)
{
    if (self.left && (self.over || !self.started)) event_base_loopbreak(self.base);
}

static void on_left(void)
{
    self.left = true;
    check_leave();
}

static void leave(void)
{
    if (self.leaving) return;
    self.leaving = true;
    if (self.started && !self.over) live_kill();
    tree_leave(on_left);
}

static void on_orphaned(const char *why)
{
    if (!self.joined) {
        say("the daemon on %s cannot report to mpiexec: %s", hosts_self(), why);
        self.code = EXIT_RESOURCE;
        event_base_loopbreak(self.base);
        return;
    }
    self.code = EXIT_RESOURCE;
    leave();
}

static void on_alone(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what, (void)arg;
    if (self.joined) return;
    self.code = EXIT_RESOURCE;
    event_base_loopbreak(self.base);
}

/* Standard input is kept open by who waits for us, and closed when we have reported; the two may overtake each other.
 */
static void on_lifeline(evutil_socket_t fd, short what, void *arg)
{
    char bytes[64];
    struct timeval t = {.tv_sec = ALONE_S};
    (void)what, (void)arg;
    ssize_t n = read(fd, bytes, sizeof bytes);
    if (n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR))) return;
    event_del(self.lifeline);
    evtimer_add(self.alone, &t);
}

/* --- life of the ranks ------------------------------------------------------------------------------------------- */

static void on_over(void)
{
    self.over = true;
    output_finish(&self.job);
    tree_send(TREE_ROOT, TREE_OVER, NULL, 0);
    check_leave();
}

static const struct live_calls calls = {report_exit, report_abort, on_over};

static void on_signal(evutil_socket_t sig, short what, void *arg)
{
    char words[128];
    (void)what, (void)arg;
    snprintf(words, sizeof words, "the daemon got signal %d (%s)", sig, signal_words(sig));
    report_failed(128 + sig, words);
}

static void catch_signals(void)
{
    static const int ends[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT};
    for (size_t i = 0; i < ARRAY_LEN(ends); i++) evsignal_add(evsignal_new(self.base, ends[i], on_signal, NULL), NULL);
    signal(SIGTSTP, SIG_IGN);
}

/* --- the job ----------------------------------------------------------------------------------------------------- */

static void on_room(void) { input_resume(); }

/* Where the launcher is, if there is such a place here; else the ranks start where the agent left us. */
static void enter(const char *cwd)
{
    if (cwd && chdir(cwd)) say_verbose("there is no directory %s here: %s", cwd, strerror(errno));
}

static int prepare(struct job *j)
{
    int rc = serve_check(j);
    if (rc || (rc = guard_open(&j->guard, j->mark, j->size))) return rc;
    self.guarded = true;
    relay_open(j);
    sink_has_room = on_room;
    catch_signals();
    return serve_prepare(j);
}

static bool take_job(int from, const void *bytes, size_t n)
{
    struct job *j = &self.job;
    char *cwd = NULL;
    void *copy = xcalloc(n + 1, 1);
    (void)from;
    memcpy(copy, bytes, n);
    const char *why = describe_parse(j, &self.spec, &cwd, self.boot.node, copy, n);
    if (why) {
        say("the daemon on %s: %s", hosts_self(), why);
        return false;
    }
    self.joined = true;
    j->base = self.base;
    memcpy(j->key, self.boot.key, sizeof j->key);
    launch_make_secret(j);
    launch_set_mark(j);
    sigprocmask(SIG_SETMASK, NULL, &j->signal_mask);
    words_to = pass_words;
    hold_words();
    enter(cwd);
    live_open(j, &calls); /* before the first agent may end */
    int rc = tree_open(j, &self.boot, copy, n);
    if (!rc) rc = prepare(j);
    release_words(rc);
    if (!rc) tree_send(TREE_ROOT, TREE_READY, NULL, 0);
    return true;
}

static bool take_start(int from, const void *bytes, size_t n)
{
    (void)bytes;
    if (from != TREE_ROOT || n || self.started || !self.guarded) return false;
    self.started = true;
    hold_words();
    int rc = serve_start(&self.job);
    release_words(rc);
    if (rc)
        live_kill();
    else
        live_started();
    return true;
}

/* The signal in a message of the root's, and the job's exit code; 0 = that is none. */
static int get_signal(int from, const void *bytes, size_t n, int *code)
{
    struct wire_in w = wire_of(bytes, n);
    uint32_t sig = wire_get32(&w);
    *code = (int)wire_get32(&w);
    return wire_done(&w) && from == TREE_ROOT && self.guarded && sig < NSIG ? (int)sig : 0;
}

static bool take_end(int from, const void *bytes, size_t n)
{
    int code, sig = get_signal(from, bytes, n, &code);
    if (sig && self.started) live_end(sig, code);
    return sig;
}

static bool take_kill(int from, const void *bytes, size_t n)
{
    int code, sig = get_signal(from, bytes, n, &code);
    if (sig && self.started) live_kill();
    return sig;
}

static bool take_signal(int from, const void *bytes, size_t n)
{
    int code, sig = get_signal(from, bytes, n, &code);
    if (sig) live_signal(sig);
    return sig;
}

static void stopped(void) {}

static bool take_stop(int from, const void *bytes, size_t n)
{
    int code, sig = get_signal(from, bytes, n, &code);
    if (sig) live_stop(stopped);
    return sig;
}

static bool take_died(int from, const void *bytes, size_t n)
{
    uint32_t rank;
    if (from != TREE_ROOT || n != sizeof rank || !self.started) return false;
    memcpy(&rank, bytes, sizeof rank);
    if (rank >= (uint32_t)self.job.size) return false;
    live_tell_death((int)rank);
    return true;
}

static void traced(void) { tree_send(TREE_ROOT, TREE_TRACED, NULL, 0); }

static bool take_trace(int from, const void *bytes, size_t n)
{
    (void)bytes;
    if (from != TREE_ROOT || n || !self.started) return false;
    trace_start(&self.job, traced);
    return true;
}

static bool take_bye(int from, const void *bytes, size_t n)
{
    (void)bytes;
    if (from != TREE_ROOT || n) return false;
    leave();
    return true;
}

/* --- the whole --------------------------------------------------------------------------------------------------- */

static void take_messages(void)
{
    tree_handlers[TREE_JOB] = take_job;
    tree_handlers[TREE_START] = take_start;
    tree_handlers[TREE_END] = take_end;
    tree_handlers[TREE_KILL] = take_kill;
    tree_handlers[TREE_SIGNAL] = take_signal;
    tree_handlers[TREE_STOP] = take_stop;
    tree_handlers[TREE_TRACE] = take_trace;
    tree_handlers[TREE_DIED] = take_died;
    tree_handlers[TREE_BYE] = take_bye;
}

static int join(void)
{
    self.base = event_base_new();
    if (!self.base) {
        say("cannot make an event loop: %s", strerror(errno));
        return EXIT_RESOURCE;
    }
    self.alone = evtimer_new(self.base, on_alone, NULL);
    self.lifeline = event_new(self.base, STDIN_FILENO, EV_READ | EV_PERSIST, on_lifeline, NULL);
    event_add(self.lifeline, NULL); /* refused for a file: then nobody can hang up */
    take_messages();
    tree_join(self.base, &self.boot, on_orphaned);
    return 0;
}

int daemon_run(void)
{
    int rc = boot_read(&self.boot, STDIN_FILENO, BOOT_S);
    standing_keep_environment();
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    if (!rc) rc = join();
    if (rc) return rc;
    event_base_dispatch(self.base);
    if (self.guarded) guard_close(&self.job.guard);
    explicit_bzero(self.boot.key, sizeof self.boot.key);
    return self.code;
}
