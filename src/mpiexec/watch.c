/*
 * watch.c - the life of a running job.
 *
 *     RUNNING --(first failure, signal, time limit)--> ENDING --(grace)--> KILLING
 *        \________________ all ranks gone ________________\____________________\____> DRAINING --> over
 *
 * The first cause is said, once, and decides the exit code; what it brings about is not news. In ENDING all groups have
 * their signal (SIGTERM, or the one we got) and GRACE_MS to obey; then SIGKILL, also for strays. DRAINING waits for a
 * slow reader of the output.
 */
#include "mpiexec/watch.h"
#include "mpiexec/hosts.h"
#include "mpiexec/input.h"
#include "mpiexec/server.h"
#include "mpiexec/sink.h"
#include "mpiexec/words.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define GRACE_MS 500
#define KILL_TICK_MS 50
#define KILL_TICKS 40 /* then the kernel holds a process and nothing more can be done */
#define DRAIN_TICK_MS 10
#define STOP_MS 50 /* for handlers of SIGTSTP, before SIGSTOP */

enum phase { RUNNING, ENDING, KILLING, DRAINING };

static struct {
    struct job *job;
    enum phase phase;
    int live;    /* ranks that run */
    int code;    /* of the job; the first failure's */
    bool failed; /* not all went well: look for strays at the end */
    int ticks;   /* in KILLING */
    struct event *timer;
} self;

static void set_timer(int ms)
{
    struct timeval t = {.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000};
    evtimer_add(self.timer, &t);
}

/* --- ending ------------------------------------------------------------------------------------------------------ */

static void end_ranks(int sig)
{
    self.phase = ENDING;
    sweep_signal(&self.job->guard.page->groups, sig);
    sweep_signal(&self.job->guard.page->groups, SIGCONT); /* a stopped process takes no other signal */
    set_timer(GRACE_MS);
}

static void kill_ranks(void)
{
    if (self.phase != KILLING) self.ticks = 0;
    self.phase = KILLING;
    sweep_signal(&self.job->guard.page->groups, SIGKILL);
    if (self.failed) sweep_strays(&self.job->guard.page->groups, self.job->name);
    set_timer(KILL_TICK_MS);
}

/* The first cause of the end: notes the exit code and says why, followed by what is done about it. */
static void TERN_PRINTF(3, 4) fail(int code, int sig, const char *fmt, ...)
{
    char why[1024];
    va_list ap;
    if (self.phase != RUNNING) return;
    self.code = code;
    self.failed = true;
    va_start(ap, fmt);
    vsnprintf(why, sizeof why, fmt, ap);
    va_end(ap);
    if (*why && self.live)
        say("%s; ending the %s%d rank%s that run%s", why, self.live < self.job->size ? "other " : "", self.live,
            self.live == 1 ? "" : "s", self.live == 1 ? "s" : "");
    else if (*why)
        say("%s", why);
    end_ranks(sig);
}

static void drain_or_leave(void)
{
    self.phase = DRAINING;
    if (output_pending())
        set_timer(DRAIN_TICK_MS);
    else
        event_base_loopbreak(self.job->base);
}

/* Forgets groups that have no member any more; their numbers may come back as somebody else's. */
static int groups_left(void)
{
    struct sweep_groups *g = &self.job->guard.page->groups;
    int left = 0;
    for (int i = 0; i < self.job->size; i++) {
        int32_t id = atomic_load(&g->id[i]);
        if (!id || !self.job->ranks[i].exited) continue;
        if (!kill(-id, 0))
            left++;
        else
            atomic_store(&g->id[i], 0);
    }
    return left;
}

static void check_end(void)
{
    if (self.live || self.phase == DRAINING) return;
    if (groups_left()) { /* ranks left children behind */
        if (self.phase == RUNNING) end_ranks(SIGTERM);
        return;
    }
    if (self.failed && sweep_strays(&self.job->guard.page->groups, self.job->name) && self.ticks < KILL_TICKS) {
        if (self.phase != KILLING) kill_ranks(); /* their exits, or the timer, bring us back here */
        return;
    }
    while (waitpid(-1, NULL, WNOHANG) > 0) continue; /* what has died meanwhile is ours: no zombies for init */
    evtimer_del(self.timer);
    output_finish(self.job);
    drain_or_leave();
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what, (void)arg;
    if (self.phase == DRAINING)
        drain_or_leave();
    else if (self.phase == ENDING || self.ticks++ < KILL_TICKS)
        kill_ranks();
    else {
        say("%d ranks and %d process groups cannot be killed; they are left to the system", self.live, groups_left());
        output_finish(self.job);
        drain_or_leave();
        return;
    }
    check_end();
}

/* --- exits ------------------------------------------------------------------------------------------------------- */

static const char *program_of(const struct rank *r) { return self.job->apps[r->appnum].spec->argv.v[0]; }

static void judge_signal(const struct rank *r, pid_t pid)
{
    int sig = WTERMSIG(r->status);
    if (sig == SIGPIPE && output_broken())
        fail(128 + sig, SIGTERM, "%s", ""); /* the closed output was said already */
    else
        fail(128 + sig, SIGTERM, "rank %d on %s (%s, pid %d) was killed by signal %d (%s)%s", r->rank,
             launch_host(self.job, r), program_of(r), (int)pid, sig, signal_words(sig),
             WCOREDUMP(r->status) ? " and dumped core" : "");
}

static void judge_exit(const struct rank *r, pid_t pid)
{
    enum job_life life = block_life(&self.job->block, r->rank), pmix = server_life(r->rank);
    int code = WEXITSTATUS(r->status);
    if (pmix > life) life = pmix;
    if (block_aborted(&self.job->block)) { /* the rank that called MPI_Abort has said so */
        fail((int)((block_aborted(&self.job->block) - 1) & 0xff), SIGTERM, "%s", "");
    } else if (life == JOB_LIFE_INITIALISED) {
        fail(code ? code : 1, SIGTERM, "rank %d on %s (%s, pid %d) exited with code %d without calling MPI_Finalize",
             r->rank, launch_host(self.job, r), program_of(r), (int)pid, code);
    } else if (code && life == JOB_LIFE_FINALISED) { /* its part of the job was done: the others may end theirs */
        if (!self.code && self.phase == RUNNING) self.code = code;
        say_verbose("rank %d (pid %d) exited with code %d after MPI_Finalize", r->rank, (int)pid, code);
    } else if (code && self.job->size == 1) { /* the exit code says it all, as in the shell */
        fail(code, SIGTERM, "%s", "");
    } else if (code) {
        fail(code, SIGTERM, "rank %d on %s (%s, pid %d) exited with code %d", r->rank, launch_host(self.job, r),
             program_of(r), (int)pid, code);
    }
}

static struct rank *rank_of(pid_t pid)
{
    for (int i = 0; i < self.job->size; i++)
        if (self.job->ranks[i].pid == pid) return &self.job->ranks[i];
    return NULL; /* an orphan of a rank: we are the reaper of those */
}

static void on_abort(evutil_socket_t fd, short what, void *arg)
{
    struct server_abort a;
    (void)fd, (void)what, (void)arg;
    if (!server_take_abort(&a)) return;
    fail(a.code & 0xff ? a.code & 0xff : 1, SIGTERM, "rank %d on %s called PMIx_Abort with code %d%s%s", a.rank,
         hosts_self(), a.code, *a.words ? ": " : "", a.words);
}

static void on_child(evutil_socket_t fd, short what, void *arg)
{
    struct {
        struct rank *rank;
        pid_t pid;
    } gone[64];
    int n, status;
    (void)fd, (void)what, (void)arg;
    if (server_event_fd() >= 0) on_abort(-1, 0, NULL); /* said before the exit that follows it */
    do {
        n = 0;
        for (pid_t pid; n < (int)ARRAY_LEN(gone) && (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
            struct rank *r = rank_of(pid);
            if (!r) continue;
            r->pid = 0;
            r->exited = true;
            r->status = status;
            self.live--;
            output_drain(self.job, r->rank);
            gone[n].rank = r;
            gone[n++].pid = pid;
        }
        /* Of ranks that ended together, one killed by a signal is the cause; others may have failed by its loss. */
        for (int i = 0; i < n; i++)
            if (WIFSIGNALED(gone[i].rank->status)) judge_signal(gone[i].rank, gone[i].pid);
        for (int i = 0; i < n; i++)
            if (WIFEXITED(gone[i].rank->status)) judge_exit(gone[i].rank, gone[i].pid);
    } while (n == ARRAY_LEN(gone));
    check_end();
}

static void on_timeout(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what, (void)arg;
    fail(EXIT_TIMEOUT, SIGTERM, "the time limit of %g s is over", self.job->spec->timeout);
}

/* --- signals ----------------------------------------------------------------------------------------------------- */

static void on_end_signal(evutil_socket_t sig, short what, void *arg)
{
    (void)what, (void)arg;
    if (self.phase == RUNNING)
        fail(128 + sig, sig, "got signal %d (%s)", sig, signal_words(sig));
    else if (self.phase == DRAINING)
        event_base_loopbreak(self.job->base);
    else
        kill_ranks(); /* somebody is impatient */
}

static void on_forward_signal(evutil_socket_t sig, short what, void *arg)
{
    (void)what, (void)arg;
    sweep_signal(&self.job->guard.page->groups, sig);
}

/* SIGTSTP first, for who handles it; where a handler or an orphaned group (no terminal) keeps it from stopping a rank,
 * SIGSTOP does. */
static void on_stop_signal(evutil_socket_t sig, short what, void *arg)
{
    (void)what, (void)arg;
    sweep_signal(&self.job->guard.page->groups, sig);
    usleep(STOP_MS * 1000);
    sweep_signal(&self.job->guard.page->groups, SIGSTOP);
    kill(getpid(), SIGSTOP);
}

static void on_room(void)
{
    output_resume();
    input_resume();
}

/* A signal that was ignored when we started (nohup, background of a script) stays ignored. */
static void catch_signal(int sig, event_callback_fn handler)
{
    struct sigaction old;
    if (!sigaction(sig, NULL, &old) && old.sa_handler == SIG_IGN && sig != SIGCHLD) return;
    evsignal_add(evsignal_new(self.job->base, sig, handler, NULL), NULL);
}

void watch_open(struct job *j)
{
    static const int ends[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT}, forwards[] = {SIGUSR1, SIGUSR2, SIGCONT};
    self.job = j;
    self.timer = evtimer_new(j->base, on_timer, NULL);
    sink_has_room = on_room;
    for (size_t i = 0; i < ARRAY_LEN(ends); i++) catch_signal(ends[i], on_end_signal);
    for (size_t i = 0; i < ARRAY_LEN(forwards); i++) catch_signal(forwards[i], on_forward_signal);
    catch_signal(SIGTSTP, on_stop_signal);
    catch_signal(SIGCHLD, on_child);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGTTIN, SIG_IGN);
    signal(SIGTTOU, SIG_IGN);
}

static void count_live(void)
{
    self.live = 0;
    for (int i = 0; i < self.job->size; i++) self.live += self.job->ranks[i].pid != 0;
}

void watch_give_up(void)
{
    count_live();
    self.failed = true;
    kill_ranks();
    on_child(-1, 0, NULL);
    event_base_dispatch(self.job->base);
}

int watch_run(void)
{
    struct job *j = self.job;
    count_live();
    if (server_event_fd() >= 0)
        event_add(event_new(j->base, server_event_fd(), EV_READ | EV_PERSIST, on_abort, NULL), NULL);
    if (j->spec->timeout > 0) {
        struct timeval t = {.tv_sec = (time_t)j->spec->timeout,
                            .tv_usec = (suseconds_t)((j->spec->timeout - (double)(time_t)j->spec->timeout) * 1e6)};
        evtimer_add(evtimer_new(j->base, on_timeout, NULL), &t);
    }
    event_base_dispatch(j->base);
    if (!self.code && output_lost()) return 1;
    return self.code;
}
