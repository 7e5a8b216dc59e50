/* singleton.c - see singleton.h. */
#include "mpiexec/singleton.h"
#include "base/rights.h"
#include "mpiexec/answer.h"
#include "mpiexec/cards.h"
#include "mpiexec/input.h"
#include "mpiexec/options.h"
#include "mpiexec/registry.h"
#include "mpiexec/spawn.h"
#include "mpiexec/watch.h"
#include "mpiexec/words.h"
#include "mpiexec/xalloc.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct {
    struct job job;
    struct spec spec;
    pid_t pid;         /* of the process */
    int process;       /* a descriptor of it; -1: the system has none */
    struct event *on_line, *on_process;
    bool over;         /* it has ended, or left MPI, or this mpiexec was told to end */
    char words[ASK_ALONE_TEXT]; /* what we have said last, until the process is answered */
} self;

static void keep(const char *line) { snprintf(self.words, sizeof self.words, "%s", line); }

/* ---- the line ---- */

/* The process, and the name of its job. 0 or an exit code after saying why. */
static int hear_process(struct job *j)
{
    struct ucred c;
    socklen_t n = sizeof c;
    if (fcntl(ASK_ALONE_LINE, F_SETFD, FD_CLOEXEC) || getsockopt(ASK_ALONE_LINE, SOL_SOCKET, SO_PEERCRED, &c, &n)) {
        say(ASK_ALONE_OPTION " is for the library's own use");
        return EXIT_USAGE;
    }
    close_range(ASK_ALONE_LINE + 1, ~0U, 0); /* the program's files are not ours */
    self.pid = c.pid;
    self.process = (int)syscall(SYS_pidfd_open, c.pid, 0);
    ssize_t got = recv(ASK_ALONE_LINE, j->name, sizeof j->name, 0);
    if (got > 1 && !j->name[got - 1]) return 0;
    say("the name of the job is none");
    return EXIT_RESOURCE;
}

/* An empty text, with the block; or, without one, why there is none. */
static void answer_process(const struct job *j, int code)
{
    const char *words = code ? self.words : "";
    /* if it fails, the process has gone, and we hear of that */
    (void)!rights_send(ASK_ALONE_LINE, words, strlen(words) + 1, &j->block.fd, code ? 0 : 1, 0);
    words_to = NULL;
}

/* ---- the job of one process ---- */

static int read_options(struct spec *s, char *path)
{
    char option[] = "-n", one[] = "1", *argv[] = {option, one, path};
    int rc = options_parse(s, ARRAY_LEN(argv), argv);
    if (!rc) rc = place_count_units(&s->place, &s->ppn);
    return rc ? rc : spec_settle(s);
}

static void make_tables(struct job *j)
{
    j->spec = &self.spec;
    j->size = j->nnodes = 1;
    j->root = j->adopted = true;
    j->nodes = xcalloc(1, sizeof *j->nodes);
    j->nodes[0] = (struct node){.name = xstrdup(hosts_self()), .slots = 1, .own = true};
    j->apps = xcalloc(1, sizeof *j->apps);
    j->apps[0].spec = &self.spec.apps[0];
    launch_make_ranks(j);
    launch_number_locals(j);
    /* No process group is ours to end, and the guard would have nothing to do: each spawned job has its own. */
    j->guard.page = xcalloc(1, sizeof *j->guard.page + sizeof(int32_t));
    sigprocmask(SIG_SETMASK, NULL, &j->signal_mask);
    getrlimit(RLIMIT_NOFILE, &j->nofile);
    setrlimit(RLIMIT_NOFILE, &(struct rlimit){.rlim_cur = j->nofile.rlim_max, .rlim_max = j->nofile.rlim_max});
}

static int make_block(struct job *j)
{
    if (getrandom(j->key, sizeof j->key, 0) != sizeof j->key) {
        say("no random numbers: %s", strerror(errno));
        return EXIT_RESOURCE;
    }
    launch_make_secret(j);
    launch_set_mark(j);
    int rc = block_open(&j->block, j->name, 1, j->secret, NULL, 0);
    if (rc) return rc;
    j->block.head->nodes = j->block.head->local_size = 1;
    j->block.head->universe = (uint32_t)spec_universe(j->spec);
    job_places(j->block.head)[0] = (struct job_place){.l3 = -1, .numa = -1};
    return 0;
}

static int open_job(struct job *j)
{
    int rc = watch_open(j);
    if (rc) return rc;
    rc = output_open(j);
    if (!rc) rc = input_open(j);
    if (!rc) rc = make_block(j);
    answer_open(j);
    if (!rc) rc = cards_open(j);
    if (rc) return rc;
    answer_start();
    return 0;
}

/* ---- life ---- */

/* The end need not wait for the process any more. */
static void let_go(void)
{
    if (self.over) return;
    self.over = true;
    watch_release(0);
}

static void process_ended(void)
{
    enum job_life life = block_end(&self.job.block, 0);
    bool clean = life == JOB_LIFE_FINALISED;
    if (self.over) return;
    event_del(self.on_line);
    if (self.on_process) event_del(self.on_process);
    cards_end(0);
    registry_rank_ended(0, clean ? 0 : SIGKILL, clean);
    if (!clean && spawn_some())
        say("the process %d has ended without calling MPI_Finalize; ending the jobs that it has spawned", (int)self.pid);
    if (!clean) watch_fail(128 + SIGKILL);
    let_go();
}

static bool has_finalised(void)
{
    /* acquire: pairs with the release of the process, which closed the line after that */
    return atomic_load_explicit(&job_cards(self.job.block.head)[0].life, memory_order_acquire) == JOB_LIFE_FINALISED;
}

/* The process has closed the line. A program may also close descriptors that it did not open. */
static void on_line(evutil_socket_t fd, short what, void *arg)
{
    char byte;
    (void)what, (void)arg;
    if (recv(fd, &byte, sizeof byte, MSG_DONTWAIT) < 0 && (errno == EAGAIN || errno == EINTR)) return;
    event_del(self.on_line);
    if (!self.on_process || has_finalised()) process_ended();
}

static void on_process(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what, (void)arg;
    process_ended();
}

/* The spawned jobs are ended (watch.c), and so are we. */
static void on_end_signal(evutil_socket_t sig, short what, void *arg)
{
    (void)sig, (void)what, (void)arg;
    let_go();
}

static void follow_process(const struct job *j)
{
    static const int ends[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT};
    watch_hold();
    self.on_line = event_new(j->base, ASK_ALONE_LINE, EV_READ | EV_PERSIST, on_line, NULL);
    event_add(self.on_line, NULL);
    if (self.process >= 0) {
        self.on_process = event_new(j->base, self.process, EV_READ | EV_PERSIST, on_process, NULL);
        event_add(self.on_process, NULL);
    }
    for (size_t i = 0; i < ARRAY_LEN(ends); i++) evsignal_add(evsignal_new(j->base, ends[i], on_end_signal, NULL), NULL);
}

static int open_all(struct job *j, char *path)
{
    const char *bootstrap = getenv("TERN_BOOTSTRAP");
    int rc = hear_process(j);
    if (rc) return rc;
    if (bootstrap && !strcmp(bootstrap, "single")) unsetenv("TERN_BOOTSTRAP"); /* spawned processes have a launcher */
    if ((rc = read_options(&self.spec, path))) return rc;
    make_tables(j);
    spawn_open(j, path, environ);
    prctl(PR_SET_CHILD_SUBREAPER, 1); /* orphans of ranks come to us, not to init */
    return open_job(j);
}

int singleton_run(char *path)
{
    struct job *j = &self.job;
    words_to = keep;
    int rc = open_all(j, path);
    answer_process(j, rc);
    if (rc) return rc;
    watch_start();
    follow_process(j);
    rc = watch_run();
    spawn_close();
    return rc;
}
