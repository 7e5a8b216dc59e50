/*
 * watch.c - the life of a job, at the root.
 *
 *     STARTING --> RUNNING --(first failure, signal, time limit)--> ENDING
 *         |            \__________ all nodes over _______________________\____> DRAINING --> over
 *         \__(failure: nothing has run yet)______________________________/
 *
 * The first cause is said, once, and decides the exit code; what it brings about is not news. Each node ends its own
 * ranks (live.c) and says when it is over. DRAINING waits for a slow reader of the output.
 */
#include "mpiexec/watch.h"
#include "mpiexec/asks.h"
#include "mpiexec/input.h"
#include "mpiexec/live.h"
#include "mpiexec/relay.h"
#include "mpiexec/registry.h"
#include "mpiexec/report.h"
#include "mpiexec/sink.h"
#include "mpiexec/spawn.h"
#include "mpiexec/trace.h"
#include "mpiexec/tree.h"
#include "mpiexec/wire.h"
#include "mpiexec/words.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define DRAIN_TICK_MS 10
#define TRACE_MARGIN_S 10 /* after TRACE_LIMIT_S, for the answers of the nodes to come */
#define PROGRESS_S 5      /* how often a user at a terminal is told what a slow start waits for */

static struct {
    struct job *job;
    enum { STARTING, RUNNING, ENDING, DRAINING } phase;
    bool done;  /* the loop may end */
    int live;   /* ranks whose exit is not known */
    int code;   /* of the job; the first failure's */
    int coming; /* nodes that are not ready */
    int left;   /* nodes and spawned jobs that are not over */
    int traces; /* nodes that are to say stack traces yet */
    struct node_state {
        bool ready, over, tracing; /* tracing: counted in `traces` */
    } * nodes;
    struct event *timer, *progress, *trace_limit;
} self;

static bool has_daemons(const struct job *j) { return j->nnodes > 1 || j->node == NODE_NONE; }

static void set_timer(struct event *timer, int ms)
{
    struct timeval t = {.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000};
    evtimer_add(timer, &t);
}

/* --- ending ------------------------------------------------------------------------------------------------------ */

static void leave(void)
{
    self.done = true;
    event_base_loopbreak(self.job->base);
}

static void drain_or_leave(void)
{
    self.phase = DRAINING;
    if (output_pending())
        set_timer(self.timer, DRAIN_TICK_MS);
    else
        leave();
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what, (void)arg;
    drain_or_leave();
}

static void tell(enum tree_type type, int sig)
{
    struct wire_out w = {0};
    wire_put32(&w, (uint32_t)sig);
    wire_put32(&w, (uint32_t)self.code);
    tree_send(TREE_ALL, type, w.bytes, w.n);
    wire_free(&w);
}

static void end_ranks(int sig)
{
    self.phase = ENDING;
    tell(TREE_END, sig);
    spawn_signal(sig);
    live_end(sig, self.code);
}

static void fail_for(int code, int sig, const char *why)
{
    if (self.phase != RUNNING && self.phase != STARTING) return;
    /* A failure never ends with 0; once traces are taken, the time limit was first. */
    if (!self.traces) self.code = code & 0xff ? code & 0xff : 1;
    if (*why && self.live && self.phase == RUNNING)
        say("%s; ending the %s%d rank%s that run%s", why, self.live < self.job->size ? "other " : "", self.live,
            self.live == 1 ? "" : "s", self.live == 1 ? "s" : "");
    else if (*why)
        say("%s", why);
    if (self.phase == RUNNING)
        end_ranks(sig);
    else
        drain_or_leave();
}

/* The first cause of the end: notes the exit code and says why, followed by what is done about it. */
static void TERN_PRINTF(3, 4) fail(int code, int sig, const char *fmt, ...)
{
    char why[1024];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(why, sizeof why, fmt, ap);
    va_end(ap);
    fail_for(code, sig, why);
}

/* A rank has failed, which is the end of all others, or with -disable-auto-cleanup its own alone. */
static void TERN_PRINTF(2, 3) fail_rank(int code, const char *fmt, ...)
{
    char why[1024];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(why, sizeof why, fmt, ap);
    va_end(ap);
    if (!self.job->spec->keep_going) {
        fail_for(code, SIGTERM, why);
    } else if (self.phase == RUNNING) {
        if (!self.code) self.code = code & 0xff ? code & 0xff : 1;
        if (*why) say("%s%s", why, self.live ? "; the others go on (-disable-auto-cleanup)" : "");
    }
}

static void time_is_over(void)
{
    fail(EXIT_TIMEOUT, SIGTERM, "the time limit of %g s is over", self.job->spec->timeout);
}

/* The stack traces of a node are said, or will not come any more. */
static void traced(int node)
{
    if (!self.nodes[node].tracing) return;
    self.nodes[node].tracing = false;
    if (!--self.traces) time_is_over();
}

static void check_left(void)
{
    if (self.left || self.phase == DRAINING) return;
    output_finish(self.job);
    drain_or_leave();
}

static void node_over(int node)
{
    if (self.nodes[node].over) return;
    self.nodes[node].over = true;
    if (--self.left) traced(node);
    check_left();
}

void watch_hold(void) { self.left++; }

void watch_release(int code)
{
    if (code && !self.code && self.phase == RUNNING) self.code = code;
    self.left--;
    check_left();
}

void watch_fail(int code) { fail_for(code, SIGTERM, ""); }

bool watch_running(void) { return self.phase == RUNNING; }

/* --- exits ------------------------------------------------------------------------------------------------------- */

static const char *program_of(const struct rank *r) { return self.job->apps[r->appnum].spec->argv.v[0]; }

static void judge_signal(const struct rank *r, pid_t pid)
{
    int sig = WTERMSIG(r->status);
    if (sig == SIGPIPE && output_broken())
        fail(128 + sig, SIGTERM, "%s", ""); /* the closed output was said already */
    else
        fail_rank(128 + sig, "rank %d on %s (%s, pid %d) was killed by signal %d (%s)%s%s", r->rank,
                  launch_host(self.job, r), program_of(r), (int)pid, sig, signal_words(sig),
                  WCOREDUMP(r->status) ? " and dumped core" : "", signal_hint(sig));
}

static void judge_exit(const struct rank *r, const struct live_exit *e)
{
    int code = WEXITSTATUS(r->status);
    if (e->aborted) { /* the rank that called MPI_Abort has said so */
        fail((int)(e->aborted - 1), SIGTERM, "%s", "");
    } else if (e->life == JOB_LIFE_INITIALISED) {
        fail_rank(code, "rank %d on %s (%s, pid %d) exited with code %d without calling MPI_Finalize",
                  r->rank, launch_host(self.job, r), program_of(r), (int)e->pid, code);
    } else if (code && e->life == JOB_LIFE_FINALISED) { /* its part of the job was done: the others may end theirs */
        if (!self.code && self.phase == RUNNING) self.code = code;
        say_verbose("rank %d (pid %d) exited with code %d after MPI_Finalize", r->rank, (int)e->pid, code);
    } else if (code && self.job->size == 1) { /* the exit code says it all, as in the shell */
        fail_rank(code, "%s", "");
    } else if (code) {
        fail_rank(code, "rank %d on %s (%s, pid %d) exited with code %d%s", r->rank, launch_host(self.job, r),
                  program_of(r), (int)e->pid, code, code_hint(code));
    }
}

/* The job goes on: the ranks of all nodes are told. */
static void tell_death(int rank)
{
    uint32_t r = (uint32_t)rank;
    if (has_daemons(self.job)) tree_send(TREE_ALL, TREE_DIED, &r, sizeof r);
    live_tell_death(rank);
}

static void on_exit_of_rank(const struct live_exit *e)
{
    struct rank *r = &self.job->ranks[e->rank];
    self.live--;
    r->joined = e->life != JOB_LIFE_NONE;
    registry_rank_ended((uint32_t)e->rank, e->status, !e->status && e->life != JOB_LIFE_INITIALISED);
    if (WIFSIGNALED(e->status))
        judge_signal(r, e->pid);
    else
        judge_exit(r, e);
    if (self.phase == RUNNING && live_is_death(e)) tell_death(e->rank);
}

static void on_abort(const struct server_abort *a)
{
    fail(a->code, SIGTERM, "rank %d on %s called PMIx_Abort with code %d%s%s", a->rank,
         launch_host(self.job, &self.job->ranks[a->rank]), a->code, *a->words ? ": " : "", a->words);
}

static void on_over(void)
{
    if (self.job->node != NODE_NONE) node_over(self.job->node);
}

static const struct live_calls calls = {on_exit_of_rank, on_abort, on_over};

/* --- messages of the nodes --------------------------------------------------------------------------------------- */

static bool is_nodes(int rank, int node)
{
    return rank >= 0 && rank < self.job->size && self.job->ranks[rank].node == node;
}

static bool take_ready(int from, const void *bytes, size_t n)
{
    (void)bytes;
    if (from < 0 || n || self.nodes[from].ready) return false;
    self.nodes[from].ready = true;
    say_verbose("host %s is ready", self.job->nodes[from].name);
    if (!--self.coming && self.phase == STARTING) event_base_loopbreak(self.job->base);
    return true;
}

/* A node gives up, for reasons of its own. */
static bool take_failed(int from, const void *bytes, size_t n)
{
    struct wire_in w = wire_of(bytes, n);
    int code = (int)wire_get32(&w) & 0xff;
    char *words = wire_get_text(&w);
    bool good = wire_done(&w) && words && from >= 0;
    if (good) fail(code, SIGTERM, *words ? "host %s: %s" : "host %s has a problem", self.job->nodes[from].name, words);
    free(words);
    return good;
}

static bool take_words(int from, const void *bytes, size_t n)
{
    struct wire_in w = wire_of(bytes, n);
    char *words = wire_get_text(&w);
    bool good = wire_done(&w) && words && from >= 0;
    if (good) say("host %s: %s", self.job->nodes[from].name, words);
    free(words);
    return good;
}

static bool take_exit(int from, const void *bytes, size_t n)
{
    struct live_exit e;
    if (!report_get_exit(&e, bytes, n) || !is_nodes(e.rank, from) || self.job->ranks[e.rank].exited) return false;
    self.job->ranks[e.rank].exited = true;
    self.job->ranks[e.rank].status = e.status;
    on_exit_of_rank(&e);
    return true;
}

static bool take_abort(int from, const void *bytes, size_t n)
{
    struct server_abort a;
    if (!report_get_abort(&a, bytes, n) || !is_nodes(a.rank, from)) return false;
    on_abort(&a);
    return true;
}

static bool take_over(int from, const void *bytes, size_t n)
{
    (void)bytes;
    if (n || from < 0 || self.phase == STARTING) return false;
    node_over(from);
    return true;
}

static void lose_rank(struct rank *r)
{
    if (r->exited) return;
    r->exited = true;
    r->status = SIGKILL; /* nobody is there to tell, but that is what becomes of it */
    self.live--;
    registry_rank_ended((uint32_t)r->rank, r->status, false);
}

/* Daemons whose ranks had ended all are no loss. */
static void lose(int top, const char *why)
{
    bool loss = false;
    for (int i = 0; i < self.job->nnodes; i++)
        if (tree_is_below(i, top)) loss |= !self.nodes[i].over;
    for (int r = 0; r < self.job->size; r++)
        if (tree_is_below(self.job->ranks[r].node, top)) lose_rank(&self.job->ranks[r]);
    if (loss) fail(EXIT_RESOURCE, SIGTERM, "%s", why);
    for (int i = 0; i < self.job->nnodes; i++)
        if (tree_is_below(i, top)) asks_lose_node(i);
    for (int i = 0; i < self.job->nnodes && self.phase != DRAINING; i++)
        if (tree_is_below(i, top)) node_over(i);
}

/* A daemon is gone, and with it those below. */
static bool take_lost(int from, const void *bytes, size_t n)
{
    struct wire_in w = wire_of(bytes, n);
    uint32_t node = wire_get32(&w);
    char *why = wire_get_text(&w);
    bool good = wire_done(&w) && why && node < (uint32_t)self.job->nnodes && !self.job->nodes[node].own;
    (void)from;
    if (good) lose((int)node, why);
    free(why);
    return good;
}

/* --- signals ----------------------------------------------------------------------------------------------------- */

static void on_end_signal(evutil_socket_t sig, short what, void *arg)
{
    (void)what, (void)arg;
    if (self.phase == DRAINING)
        leave();
    else if (self.phase != ENDING)
        fail(128 + sig, sig, spawned_is() ? "" : "got signal %d (%s)", sig, signal_words(sig)); /* the first mpiexec says why */
    else { /* somebody is impatient */
        tell(TREE_KILL, SIGKILL);
        spawn_signal(sig);
        live_kill();
    }
}

static void on_forward_signal(evutil_socket_t sig, short what, void *arg)
{
    (void)what, (void)arg;
    tell(TREE_SIGNAL, sig);
    spawn_signal(sig);
    live_signal(sig);
}

static void stop_self(void) { kill(getpid(), SIGSTOP); }

static void on_stop_signal(evutil_socket_t sig, short what, void *arg)
{
    (void)what, (void)arg;
    tell(TREE_STOP, sig);
    spawn_signal(sig);
    live_stop(stop_self);
}

/* --- the time limit ---------------------------------------------------------------------------------------------- */

static void own_traced(void) { traced(self.job->node); }

/* A node that was over when it was asked answers as well, or its answer crosses the news of its end. */
static bool take_traced(int from, const void *bytes, size_t n)
{
    (void)bytes;
    if (n || from < 0) return false;
    traced(from);
    return true;
}

/* A node has neither answered nor ended: its daemon is stopped, or its host hangs. */
static void on_trace_limit(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what, (void)arg;
    time_is_over();
}

/* Daemons of nodes that are over may be lost without a word (lose): no answer is awaited of them. */
static void ask_for_traces(void)
{
    self.code = EXIT_TIMEOUT; /* also if the ranks end before their traces are there */
    for (int i = 0; i < self.job->nnodes; i++) self.traces += self.nodes[i].tracing = !self.nodes[i].over;
    set_timer(self.trace_limit, (TRACE_LIMIT_S + TRACE_MARGIN_S) * 1000);
    if (has_daemons(self.job)) tree_send(TREE_ALL, TREE_TRACE, NULL, 0);
    if (self.job->node != NODE_NONE && self.nodes[self.job->node].tracing) trace_start(self.job, own_traced);
}

static void on_timeout(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what, (void)arg;
    if (!self.job->spec->stack_traces || self.phase != RUNNING) {
        time_is_over();
        return;
    }
    say("the time limit of %g s is over; stack traces of the ranks:", self.job->spec->timeout);
    ask_for_traces();
}

static void limit_time(void)
{
    double s = self.job->spec->timeout;
    struct timeval t = {.tv_sec = (time_t)s, .tv_usec = (suseconds_t)((s - (double)(time_t)s) * 1e6)};
    if (s > 0) evtimer_add(evtimer_new(self.job->base, on_timeout, NULL), &t);
}

/* --- the whole --------------------------------------------------------------------------------------------------- */

static void on_room(void)
{
    output_resume();
    relay_resume();
    input_resume();
}

/* A signal that was ignored when we started (nohup, background of a script) stays ignored. */
static void catch_signal(int sig, event_callback_fn handler)
{
    struct sigaction old;
    if (!sigaction(sig, NULL, &old) && old.sa_handler == SIG_IGN) return;
    evsignal_add(evsignal_new(self.job->base, sig, handler, NULL), NULL);
}

static void take_messages(void)
{
    tree_handlers[TREE_READY] = take_ready;
    tree_handlers[TREE_FAILED] = take_failed;
    tree_handlers[TREE_WORDS] = take_words;
    tree_handlers[TREE_EXIT] = take_exit;
    tree_handlers[TREE_ABORT] = take_abort;
    tree_handlers[TREE_OVER] = take_over;
    tree_handlers[TREE_LOST] = take_lost;
    tree_handlers[TREE_TRACED] = take_traced;
}

int watch_prepare(struct job *j)
{
    static const int ends[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT}, forwards[] = {SIGUSR1, SIGUSR2, SIGCONT};
    if (j->base) return 0;
    j->base = event_base_new();
    if (!j->base) {
        say("cannot make an event loop: %s", strerror(errno));
        return EXIT_RESOURCE;
    }
    self.job = j;
    for (size_t i = 0; i < ARRAY_LEN(ends); i++) catch_signal(ends[i], on_end_signal);
    for (size_t i = 0; i < ARRAY_LEN(forwards); i++) catch_signal(forwards[i], on_forward_signal);
    catch_signal(SIGTSTP, on_stop_signal);
    return 0;
}

int watch_open(struct job *j)
{
    int rc = watch_prepare(j);
    if (rc) return rc;
    self.timer = evtimer_new(j->base, on_timer, NULL);
    self.trace_limit = evtimer_new(j->base, on_trace_limit, NULL);
    self.nodes = xcalloc((size_t)j->nnodes, sizeof *self.nodes);
    self.left = j->nnodes;
    self.coming = j->nnodes - (j->node != NODE_NONE);
    self.live = j->adopted ? 0 : j->size;
    sink_has_room = on_room;
    live_open(j, &calls);
    take_messages();
    relay_open(j);
    limit_time();
    return 0;
}

/* "3 of 5 hosts are ready; waiting for b, c" */
static void on_progress(evutil_socket_t fd, short what, void *arg)
{
    char names[256];
    size_t n = 0;
    (void)fd, (void)what, (void)arg;
    for (int i = 0; i < self.job->nnodes && n < sizeof names - 1; i++)
        if (!self.nodes[i].ready && i != self.job->node)
            n += (size_t)snprintf(names + n, sizeof names - n, "%s%s", n ? ", " : "", self.job->nodes[i].name);
    say("%d of %d hosts are ready; waiting for %s%s", self.job->nnodes - self.coming, self.job->nnodes, names,
        n >= sizeof names - 1 ? "..." : "");
}

int watch_ready(void)
{
    struct timeval t = {.tv_sec = PROGRESS_S};
    if (!self.coming) return 0;
    self.progress = event_new(self.job->base, -1, EV_PERSIST, on_progress, NULL);
    if (isatty(STDERR_FILENO)) event_add(self.progress, &t);
    while (self.coming && !self.done) event_base_dispatch(self.job->base);
    event_free(self.progress);
    return self.code;
}

void watch_start(void)
{
    self.phase = RUNNING;
    if (has_daemons(self.job)) tree_send(TREE_ALL, TREE_START, NULL, 0);
}

void watch_fail_with(int code) { fail(code, SIGTERM, "a spawned job has failed (exit code %d), whose failure is the end of all", code); }

void watch_give_up(int code)
{
    for (int i = 0; i < launch_nlocal(self.job); i++) self.live -= !launch_local(self.job, i)->pid;
    self.code = code;
    self.phase = ENDING;
    tell(TREE_END, SIGTERM);
    live_kill();
}

int watch_run(void)
{
    if (self.phase == RUNNING) live_started();
    while (!self.done) event_base_dispatch(self.job->base);
    if (!self.code && output_lost()) return 1;
    return self.code;
}
