/* live.c - see live.h. */
#include "mpiexec/live.h"
#include "mpiexec/cards.h"
#include "mpiexec/directory.h"
#include "mpiexec/modex.h"
#include "mpiexec/server_jobs.h"
#include "mpiexec/spawn.h"
#include "mpiexec/standing.h"
#include "mpiexec/trace.h"
#include "mpiexec/tree.h"
#include "mpiexec/words.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#define GRACE_MS 500
#define KILL_TICK_MS 50
#define KILL_TICKS 40 /* then the kernel holds a process and nothing more can be done */
#define STOP_MS 50    /* for handlers of SIGTSTP, before SIGSTOP */
#define BATCH 64      /* exits looked at together */

/* After a death that does not end the job, processes are reaped so much later: reaping one takes the system a few hundred
 * milliseconds when others look at /proc at the same time. Meanwhile the root would not hear of the death, and the ranks
 * would not be told. */
#define REAP_MS 100

static struct {
    struct job *job;
    const struct live_calls *calls;
    enum { RUNNING, ENDING, KILLING, OVER } phase;
    bool started;
    bool failed; /* not all went well: look for strays at the end */
    int live;    /* ranks that run, once started */
    int ticks;   /* in KILLING */
    struct event *timer, *stopping, *reaping;
    void (*stopped)(void);
} self;

static struct sweep_groups *groups(void) { return &self.job->guard.page->groups; }

static void set_timer(struct event *timer, int ms)
{
    struct timeval t = {.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000};
    evtimer_add(timer, &t);
}

/* --- ending ------------------------------------------------------------------------------------------------------ */

static void end_ranks(int sig)
{
    self.phase = ENDING;
    sweep_signal(groups(), sig);
    sweep_signal(groups(), SIGCONT); /* a stopped process takes no other signal */
    set_timer(self.timer, GRACE_MS);
}

static void kill_ranks(void)
{
    if (self.phase != KILLING) self.ticks = 0;
    self.phase = KILLING;
    sweep_signal(groups(), SIGKILL);
    if (self.failed) sweep_descendants(groups(), self.job->mark);
    set_timer(self.timer, KILL_TICK_MS);
}

/* Forgets groups that have no member any more; their numbers may come back as somebody else's. */
static int groups_left(void)
{
    int left = 0;
    for (int i = 0; i < launch_nlocal(self.job); i++) {
        const struct rank *r = launch_local(self.job, i);
        int32_t id = atomic_load(&groups()->id[r->rank]);
        if (!id || !r->exited) continue;
        if (!kill(-id, 0))
            left++;
        else
            atomic_store(&groups()->id[r->rank], 0);
    }
    return left;
}

/* Of the tree, or of a spawned job; else an orphan of a rank, or a rank whose exit is known. */
static void other_exited(pid_t pid, int status)
{
    if (!spawn_exited(pid, status) && !standing_exited(pid)) tree_exited(pid, status);
}

static void reap_others(void)
{
    int status;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) other_exited(pid, status);
}

static void over(void)
{
    self.phase = OVER;
    trace_stop();
    evtimer_del(self.timer);
    evtimer_del(self.reaping);
    reap_others(); /* what has died meanwhile is ours: no zombies for init */
    self.calls->over();
}

static void check_end(void)
{
    if (!self.started || self.live || self.phase == OVER || evtimer_pending(self.reaping, NULL)) return;
    if (groups_left()) { /* ranks left children behind */
        if (self.phase == RUNNING) end_ranks(SIGTERM);
        return;
    }
    if (self.failed && sweep_descendants(groups(), self.job->mark) && self.ticks < KILL_TICKS) {
        if (self.phase != KILLING) kill_ranks(); /* their exits, or the timer, bring us back here */
        return;
    }
    over();
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what, (void)arg;
    if (self.phase == ENDING || self.ticks++ < KILL_TICKS)
        kill_ranks();
    else {
        say("%d ranks and %d process groups cannot be killed; they are left to the system", self.live, groups_left());
        over();
        return;
    }
    check_end();
}

static void count_live(void)
{
    self.live = 0;
    for (int i = 0; i < launch_nlocal(self.job); i++) self.live += launch_local(self.job, i)->pid != 0;
}

static void take_abort(void)
{
    struct server_abort a;
    if (server_event_fd() >= 0 && server_take_abort(&a)) self.calls->aborted(&a);
}

static void on_abort(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what, (void)arg;
    take_abort();
}

void live_started(void)
{
    self.started = true;
    if (server_event_fd() >= 0)
        event_add(event_new(self.job->base, server_event_fd(), EV_READ | EV_PERSIST, on_abort, NULL), NULL);
    count_live();
    check_end();
}

void live_end(int sig, int code)
{
    self.failed = true;
    if (evtimer_pending(self.reaping, NULL)) set_timer(self.reaping, 0); /* nobody is told any more */
    block_silence(&self.job->block, code);
    if (self.phase == OVER)
        sweep_descendants(groups(), self.job->mark);
    else if (self.phase == RUNNING)
        end_ranks(sig);
    if (!self.started) live_started();
}

void live_kill(void)
{
    self.failed = true;
    if (self.phase != OVER) kill_ranks();
    if (!self.started) live_started();
}

/* --- exits ------------------------------------------------------------------------------------------------------- */

static void note_exit(struct rank *r, int status, struct live_exit *e)
{
    enum job_life life = block_end(&self.job->block, r->rank), pmix = server_life(r->rank);
    *e = (struct live_exit){.rank = r->rank,
                            .pid = r->pid,
                            .status = status,
                            .life = pmix > life ? pmix : life,
                            .aborted = block_aborted(&self.job->block)};
    r->pid = 0;
    r->exited = true;
    r->status = status;
    if (self.started) self.live--;
    output_drain(self.job, r->rank);
    modex_rank_ended((uint32_t)r->rank);
    directory_rank_ended((uint32_t)r->rank);
    server_jobs_rank_ended((uint32_t)r->rank, e->life != JOB_LIFE_NONE);
}

static struct rank *rank_of(pid_t pid)
{
    for (int i = 0; i < launch_nlocal(self.job); i++)
        if (launch_local(self.job, i)->pid == pid) return launch_local(self.job, i);
    return NULL; /* an agent; or an orphan of a rank: we are the reaper of those */
}

static int reap(struct live_exit *gone)
{
    int n = 0, status;
    for (pid_t pid; n < BATCH && (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
        struct rank *r = rank_of(pid);
        if (r)
            note_exit(r, status, &gone[n++]); /* it has ended just now */
        else
            other_exited(pid, status);
    }
    return n;
}

static int status_of(const siginfo_t *i)
{
    return i->si_code == CLD_EXITED ? i->si_status << 8 : i->si_status | (i->si_code == CLD_DUMPED ? 0x80 : 0);
}

/* Has the rank's process ended? It is left a zombie. */
static bool has_ended(const struct rank *r, int *status)
{
    siginfo_t info = {0};
    if (!r->pid || waitid(P_PID, (id_t)r->pid, &info, WEXITED | WNOHANG | WNOWAIT) || !info.si_pid) return false;
    *status = status_of(&info);
    return true;
}

/* The next ranks from *at on that have ended, at most BATCH. */
static int find_ended(struct live_exit *gone, int *at)
{
    int n = 0, status;
    for (; *at < launch_nlocal(self.job) && n < BATCH; ++*at)
        if (has_ended(launch_local(self.job, *at), &status)) note_exit(launch_local(self.job, *at), status, &gone[n++]);
    return n;
}

static void tell_exits(const struct live_exit *gone, int n)
{
    /* Of ranks that ended together, one killed by a signal is the cause; others may have failed by its loss. */
    for (int i = 0; i < n; i++)
        if (WIFSIGNALED(gone[i].status)) self.calls->exited(&gone[i]);
    for (int i = 0; i < n; i++)
        if (!WIFSIGNALED(gone[i].status)) self.calls->exited(&gone[i]);
    /* After the exits: if one of them ends the job, the root hears of that first. */
    for (int i = 0; i < n; i++) cards_end(gone[i].rank);
}

static void reap_all(void)
{
    struct live_exit gone[BATCH];
    int n;
    evtimer_del(self.reaping);
    do {
        n = reap(gone);
        tell_exits(gone, n);
    } while (n == BATCH);
    check_end();
}

static void on_reaping(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what, (void)arg;
    reap_all();
}

/* True: one of them has died, and that has not ended the job so far. */
static bool tell_ended(void)
{
    struct live_exit gone[BATCH];
    bool died = false;
    for (int at = 0, n; (n = find_ended(gone, &at));) {
        tell_exits(gone, n);
        for (int i = 0; i < n; i++) died |= live_is_death(&gone[i]);
    }
    return died && self.phase == RUNNING;
}

static void on_child(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what, (void)arg;
    take_abort(); /* said before the exit that follows it */
    if (tell_ended()) set_timer(self.reaping, REAP_MS);
    if (!evtimer_pending(self.reaping, NULL)) reap_all();
}

void live_tell_death(int rank)
{
    if (self.job->block.head) block_tell_death(&self.job->block, (uint32_t)rank);
    server_jobs_tell_death((uint32_t)rank);
}

/* --- signals ----------------------------------------------------------------------------------------------------- */

void live_signal(int sig)
{
    if (sig == SIGCONT) evtimer_del(self.stopping); /* it takes back a stop that is still to come */
    sweep_signal(groups(), sig);
}

/* SIGTSTP first, for who handles it; where a handler or an orphaned group (no terminal) keeps it from stopping a rank,
 * SIGSTOP does. */
void live_stop(void (*then)(void))
{
    sweep_signal(groups(), SIGTSTP);
    self.stopped = then;
    set_timer(self.stopping, STOP_MS);
}

static void on_stopping(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what, (void)arg;
    sweep_signal(groups(), SIGSTOP);
    self.stopped();
}

static void no_action(int sig) { (void)sig; }

void live_open(struct job *j, const struct live_calls *calls)
{
    self.job = j;
    self.calls = calls;
    self.timer = evtimer_new(j->base, on_timer, NULL);
    self.reaping = evtimer_new(j->base, on_reaping, NULL);
    self.stopping = evtimer_new(j->base, on_stopping, NULL);
    evsignal_add(evsignal_new(j->base, SIGCHLD, on_child, NULL), NULL);
    signal(SIGPIPE, SIG_IGN);
    /* A write beyond `ulimit -f` fails with EFBIG, which is said in words. Ranks do not inherit a handler. */
    if (signal(SIGXFSZ, no_action) == SIG_IGN) signal(SIGXFSZ, SIG_IGN);
    signal(SIGTTIN, SIG_IGN);
    signal(SIGTTOU, SIG_IGN);
}
