/* spawn.c - see spawn.h: the first mpiexec's side. */
#include "mpiexec/spawn.h"
#include "base/err.h"
#include "mpiexec/registry.h"
#include "mpiexec/spawn_command.h"
#include "mpiexec/starter.h"
#include "mpiexec/watch.h"
#include "mpiexec/words.h"
#include "mpiexec/xalloc.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define END_S 10 /* launchers that were told to end are killed then: they need 3 s for ranks that do not obey */

struct spawned_job {
    pid_t pid;     /* 0: has ended, or has not said its number yet */
    uint32_t line; /* 0: closed */
    int status;    /* as of waitpid */
    bool taken;    /* an mpiexec has taken the order, and has said its process id */
    bool answered, started;
    struct spawn_wish wish;
    struct asker asker;
    double asked, placed; /* seconds of the monotonic clock */
    struct stream out, err;
    struct spawned_job *next;
};

static struct {
    const struct job *job;
    char *argv0;
    struct spawned_job *jobs;
    struct event *ending; /* launchers have been told to end */
} self;

void spawn_open(const struct job *j, char *argv0, char **own)
{
    const struct hosts *h = &j->spec->hosts;
    int *on = xcalloc((size_t)h->n, sizeof *on), last = -1;
    for (int i = 0; i < j->nnodes; i++) {
        const struct host *at = hosts_find(h, j->nodes[i].name);
        if (!at) continue; /* a process that was started without mpiexec is on a host that was not named */
        int k = (int)(at - h->v);
        on[k] = j->nodes[i].nranks;
        if (j->ranks[j->size - 1].node == i) last = k;
    }
    schedule_open(h, on, last);
    free(on);
    self.job = j;
    self.argv0 = argv0;
    starter_open(j, own);
}

/* ---- life ---- */

static struct spawned_job *job_of_line(uint32_t line)
{
    struct spawned_job *c = self.jobs;
    while (c && c->line != line) c = c->next;
    return c;
}

static int exit_code(const struct spawned_job *c)
{
    return WIFSIGNALED(c->status) ? 128 + WTERMSIG(c->status) : WEXITSTATUS(c->status);
}

/* What counts for the exit code of the first job. That a process was killed is an event for its parent, which hears of it by MPI. */
static int counting_code(const struct spawned_job *c)
{
    int code = exit_code(c);
    return c->started && code <= 128 ? code : 0;
}

static const char *why_no_launcher(void)
{
    if (!watch_running()) return "the job is ending";
    return starter_why() ? starter_why() : "it has ended before it said a word";
}

/* It is over when its launcher has ended and has been heard to the end. */
static void check_over(struct spawned_job *c)
{
    struct spawned_job **at = &self.jobs;
    if (c->pid || c->line) return;
    if (!c->answered && c->taken)
        asks_refuse(&c->asker, TERN_ERR_SPAWN,
                    "the launcher of the spawned job has ended (exit code %d) without a word", exit_code(c));
    else if (!c->answered)
        asks_refuse(&c->asker, TERN_ERR_SPAWN, "cannot start the launcher of a new job: %s", why_no_launcher());
    output_detach(&c->out);
    output_detach(&c->err);
    schedule_release(&c->wish.load);
    int code = counting_code(c), fatal = c->wish.fatal && c->started ? exit_code(c) : 0;
    while (*at != c) at = &(*at)->next;
    *at = c->next;
    free(c);
    if (fatal) watch_fail_with(fatal);
    watch_release(code);
}

static void hear(struct line *l, const struct ask_head *h, const void *bytes) { asks_take(l, h, false, bytes); }

static void gone(struct line *l)
{
    struct spawned_job *c = job_of_line(line_number(l));
    registry_end(line_number(l));
    asks_lose(l);
    if (!c) return;
    c->line = 0;
    check_over(c);
}

static const struct line_calls calls = {hear, gone};

bool spawn_exited(pid_t pid, int status)
{
    bool starters = starter_exited(pid);
    struct spawned_job *c = self.jobs;
    while (c && c->pid != pid) c = c->next;
    if (!c) return starters;
    c->pid = 0;
    c->status = status;
    if (WIFSIGNALED(status) && c->started && watch_running())
        say("the launcher of a spawned job (pid %d) was killed by signal %d (%s)", (int)pid, WTERMSIG(status), signal_words(WTERMSIG(status)));
    check_over(c);
    return true;
}

bool spawn_some(void) { return self.jobs != NULL; }

/* Those that no launcher has taken; one that takes them later finds their line closed. */
static void drop_untaken(void)
{
    for (struct spawned_job *c = self.jobs, *next; c; c = next) {
        struct line *l = line_of(c->line);
        next = c->next;
        if (c->taken || !l) continue;
        gone(l);
        line_close(l);
    }
}

/* Those that were told to end long ago are killed, unless output still waits for a slow reader: they may be waiting for room. */
static void on_ending(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what, (void)arg;
    for (const struct spawned_job *c = self.jobs; c && !output_pending(); c = c->next)
        if (c->pid) kill(c->pid, SIGKILL);
    if (self.jobs) event_add(self.ending, &(struct timeval){.tv_sec = END_S});
}

void spawn_signal(int sig)
{
    for (struct spawned_job *c = self.jobs; c; c = c->next)
        if (c->pid) kill(c->pid, sig);
    if (watch_running() || !self.jobs || self.ending) return;
    self.ending = evtimer_new(self.job->base, on_ending, NULL);
    event_add(self.ending, &(struct timeval){.tv_sec = END_S});
    drop_untaken();
}

/* It may have been killed since. Where somebody else has waited for it, nobody knows how it has ended. */
void spawn_order_taken(const struct asker *a, struct ask_in *in)
{
    struct spawned_job *c = job_of_line(a->route.line);
    pid_t pid = (pid_t)ask_get32(in);
    if (!c || c->taken || !ask_done(in) || pid < 1) return;
    c->taken = true;
    pid_t ended = waitpid(pid, &c->status, WNOHANG);
    if (ended < 0) c->status = SIGKILL;
    if (ended) return; /* the line ends as well */
    c->pid = pid;
    if (!watch_running()) kill(pid, SIGTERM); /* the end has begun meanwhile */
}

void spawn_started(const struct asker *a, struct ask_in *in)
{
    struct spawned_job *c = job_of_line(a->route.line);
    uint32_t size = ask_get32(in);
    const char *name = ask_get_text(in, ASK_NAME_MAX);
    uint8_t room[ASK_NAME_MAX + 32];
    struct ask_out o = {.bytes = room, .room = sizeof room};
    if (!c || c->answered || !ask_done(in) || !size || !registry_add(name, size, a->route.line)) {
        asks_refuse(a, TERN_ERR_ARG, "a job that was started already, or cannot be");
        return;
    }
    asks_answer(a, 0, NULL, 0);
    ask_put32(&o, size);
    ask_put_text(&o, name);
    ask_put64(&o, (uint64_t)((c->placed - c->asked) * 1e9));
    ask_put32(&o, words_verbose);
    say_verbose("spawned job %s, %u process%s: scheduling %.2f ms, spawn %.2f ms", name, size, size > 1 ? "es" : "",
                (c->placed - c->asked) * 1e3, (launch_now() - c->placed) * 1e3);
    c->answered = c->started = true;
    asks_answer(&c->asker, 0, o.bytes, o.n);
}

void spawn_connected(const struct asker *a, struct ask_in *in)
{
    const char *name = ask_get_text(in, ASK_NAME_MAX);
    uint64_t ns = ask_get64(in);
    if (!ask_done(in)) {
        asks_refuse(a, TERN_ERR_ARG, "a time that cannot be read");
        return;
    }
    say_verbose("spawned job %s: communication %.2f ms", name, (double)ns * 1e-6);
    asks_answer(a, 0, NULL, 0);
}

void spawn_failed(const struct asker *a, struct ask_in *in)
{
    struct spawned_job *c = job_of_line(a->route.line);
    const char *words = ask_get_text(in, ASK_BYTES_MAX);
    if (!c || c->answered || !ask_done(in)) return;
    c->answered = true;
    asks_refuse(&c->asker, TERN_ERR_SPAWN, "%s", words);
}

void spawn_close(void) { starter_close(); }

/* ---- start ---- */

/* Our ends of the two pipes and the line, and the launcher's; false with errno: all are closed. */
static bool make_ends(int own[STARTER_ENDS], int its[STARTER_ENDS])
{
    int pair[2], n = 0;
    for (; n < STARTER_ENDS; n++) {
        if (n != STARTER_LINE ? pipe2(pair, O_CLOEXEC) : socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair)) break;
        own[n] = pair[0];
        its[n] = pair[1];
    }
    if (n == STARTER_ENDS) return true;
    int error = errno;
    while (n--) {
        close(own[n]);
        close(its[n]);
    }
    errno = error;
    return false;
}

/* ASK_RUN: what the launcher of the new job is to do; malloc'ed. NULL or what is wrong. */
static const char *make_command(struct spawned_job *c, const char *parent, struct ask_in *in, struct ask_out *o)
{
    struct strv argv = {0};
    strv_push(&argv, xstrdup(self.argv0));
    const char *why = spawn_command(self.job, in, &argv, &c->wish);
    size_t room = ASK_NAME_MAX + 64;
    for (int i = 0; i < argv.n; i++) room += strlen(argv.v[i]) + 5;
    *o = (struct ask_out){.bytes = xcalloc(1, room), .room = room};
    ask_put_text(o, parent);
    ask_put64(o, self.job->nofile.rlim_cur);
    ask_put32(o, (uint32_t)argv.n);
    for (int i = 0; i < argv.n; i++) ask_put_text(o, argv.v[i]);
    for (int i = 0; i < argv.n; i++) free(argv.v[i]);
    strv_free(&argv);
    return why || o->n <= ASK_BYTES_MAX ? why : "programs, arguments and variables that are too long together";
}

static void adopt(struct spawned_job *c, const int own[STARTER_ENDS])
{
    c->line = line_number(line_open(self.job->base, own[STARTER_LINE], &calls, 0));
    c->next = self.jobs;
    self.jobs = c;
    output_join(&c->out, own[STARTER_OUT], "stdout");
    output_join(&c->err, own[STARTER_ERR], "stderr");
    watch_hold();
}

static void drop(struct spawned_job *c)
{
    schedule_release(&c->wish.load);
    free(c);
}

void spawn_take(const struct asker *a, const char *parent, struct ask_in *in)
{
    int own[STARTER_ENDS], its[STARTER_ENDS];
    if (!watch_running()) {
        asks_refuse(a, TERN_ERR_SPAWN, "the job is ending");
        return;
    }
    struct spawned_job *c = xcalloc(1, sizeof *c);
    struct ask_out command;
    c->asked = launch_now();
    const char *why = make_command(c, parent, in, &command);
    c->placed = launch_now();
    if (why) {
        asks_refuse(a, TERN_ERR_ARG, "%s", why);
        drop(c);
    } else if (!make_ends(own, its)) {
        asks_refuse(a, TERN_ERR_SPAWN, "no descriptors for the launcher of a new job: %s", strerror(errno));
        drop(c);
    } else {
        c->asker = *a;
        adopt(c, own);
        starter_order(its);
        line_send(line_of(c->line), &(struct ask_head){.length = (uint32_t)command.n, .type = ASK_RUN}, command.bytes);
    }
    free(command.bytes);
}
