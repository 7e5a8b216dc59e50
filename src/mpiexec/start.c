/*
 * start.c - fork and exec of one rank.
 *
 * vfork: the child runs on the launcher's memory while the launcher's thread stands still, so it costs no copying of
 * page tables, and a failure is reported through plain memory. In between the child calls only the system, touches
 * nothing but the plan, and runs with all signals blocked, for a handler would run on the launcher's data.
 */
#include "mpiexec/start.h"
#include "base/signals.h"
#include "mpiexec/environ.h"
#include "mpiexec/sweep.h"
#include "mpiexec/words.h"

#include <errno.h>
#include <fcntl.h>
#include <hwloc/glibc-sched.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

/* All the child needs, worked out before the fork. */
struct plan {
    int in, out, err;
    int inherited[3];        /* as they are; -1 = none */
    int wdir;                /* AT_FDCWD = stay */
    const char *path;
    char **argv, **envp;
    char **shell_argv; /* the same for a script without #!, by the shell */
    cpu_set_t *cpus;   /* NULL = not bound */
    size_t cpus_size;
    const sigset_t *mask;
    const struct rlimit *nofile;
    pid_t launcher;
    _Atomic int32_t *group; /* where the guard looks for us */
    const char *step;       /* out: what failed ... */
    int error;              /* ... and why; 0 = the program runs */
};

static void fail(struct plan *p, const char *step)
{
    p->step = step;
    p->error = errno;
    _exit(127);
}

static void child_descriptors(struct plan *p)
{
    if (dup2(p->in, 0) < 0 || dup2(p->out, 1) < 0 || dup2(p->err, 2) < 0) fail(p, "dup2");
    for (size_t i = 0; i < ARRAY_LEN(p->inherited); i++)
        if (p->inherited[i] >= 0 && fcntl(p->inherited[i], F_SETFD, 0)) fail(p, "fcntl");
    if (p->wdir != AT_FDCWD && fchdir(p->wdir)) fail(p, "entering the working directory");
    setrlimit(RLIMIT_NOFILE, p->nofile); /* lowering the soft limit to what it was */
}

static void child(struct plan *p)
{
    static const int caught[] = {SIGCHLD, SIGTERM, SIGINT,  SIGHUP,  SIGQUIT, SIGUSR1, SIGUSR2,
                                 SIGCONT, SIGTSTP, SIGPIPE, SIGTTIN, SIGTTOU, SIGXFSZ};
    setpgid(0, 0); /* a group, not a session: doc/decisions/one-session.md */
    atomic_store(p->group, getpid());
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != p->launcher) _exit(127); /* it died before the line above */
    child_descriptors(p);
    if (p->cpus && sched_setaffinity(0, p->cpus_size, p->cpus)) fail(p, "binding to cpus");
    /* What was ignored when the launcher started stays ignored; our handlers and our own ignoring go. */
    for (size_t i = 0; i < ARRAY_LEN(caught); i++) {
        struct sigaction old;
        if (sigaction(caught[i], NULL, &old)) continue;
        bool ours = old.sa_handler != SIG_IGN || caught[i] == SIGPIPE || caught[i] == SIGTTIN || caught[i] == SIGTTOU;
        if (ours) sigaction(caught[i], &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
    }
    sigprocmask(SIG_SETMASK, p->mask, NULL);
    execve(p->path, p->argv, p->envp);
    if (errno == ENOEXEC) execve("/bin/sh", p->shell_argv, p->envp);
    fail(p, "executing the program");
}

/* In a function of its own: what the child does to the stack frame below does not matter. */
static __attribute__((noinline)) pid_t launch(struct plan *p)
{
    sigset_t before;
    signals_block(&before);
    pid_t pid = vfork();
    if (!pid) child(p);
    signals_restore(&before);
    return pid;
}

void start_environment(struct strv *env, const struct job *j, const struct rank *r, const struct strv *common)
{
    const struct strv *app = &j->apps[r->appnum].env;
    int local_size = j->nodes[r->node].nranks;
    const struct {
        const char *name;
        int value;
    } numbers[] = {{JOB_ENV_RANK, r->rank},
                   {"PMI_RANK", r->rank},
                   {"PMI_SIZE", j->size},
                   {"MPI_LOCALRANKID", r->local},
                   {"MPI_LOCALNRANKS", local_size},
                   {"OMPI_COMM_WORLD_RANK", r->rank},
                   {"OMPI_COMM_WORLD_SIZE", j->size},
                   {"OMPI_COMM_WORLD_LOCAL_RANK", r->local},
                   {"OMPI_COMM_WORLD_LOCAL_SIZE", local_size},
                   {"OMPI_COMM_WORLD_NODE_RANK", r->local},
                   {"OMPI_UNIVERSE_SIZE", spec_universe(j->spec)}};
    for (int i = 0; i < app->n; i++) strv_push(env, app->v[i]);
    for (int i = 0; i < common->n; i++)
        if (strncmp(common->v[i], "PMIX_RANK=", 10)) environ_put(env, common->v[i]);
    if (common->n) environ_put(env, xasprintf("PMIX_RANK=%d", r->rank));
    environ_put(env, xasprintf("%s=%s", SWEEP_MARK, j->mark));
    environ_put(env, xasprintf("%s=%d", JOB_ENV_FD, j->block.fd));
    environ_put(env, xasprintf("%s=%s", JOB_ENV_ID, j->block.id));
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
        environ_put(env, xasprintf("%s=%d", numbers[i].name, numbers[i].value));
}

/* The affinity mask of a bound rank in the system's form. */
static void plan_cpus(struct plan *p, const struct job *j, const struct rank *r)
{
    if (!r->place.cpus) return;
    int cpus = hwloc_bitmap_last(r->place.cpus) + 1;
    p->cpus = CPU_ALLOC((size_t)cpus);
    p->cpus_size = CPU_ALLOC_SIZE((size_t)cpus);
    if (p->cpus) hwloc_cpuset_to_glibc_sched_affinity(j->topology, r->place.cpus, p->cpus, p->cpus_size);
}

static int refuse(const struct job *j, const struct rank *r, const struct plan *p)
{
    const char *program = j->apps[r->appnum].program.path;
    say("cannot start rank %d (%s): %s: %s", r->rank, program, p->step, strerror(p->error));
    return p->error == ENOENT ? EXIT_NOT_FOUND : p->error == EACCES ? EXIT_CANNOT_RUN : EXIT_RESOURCE;
}

int start_rank(struct job *j, struct rank *r, const struct strv *env, int in)
{
    struct app *a = &j->apps[r->appnum];
    int out[2] = {-1, -1}, err[2] = {-1, -1};
    struct plan p = {.step = "pipe",
                     .wdir = a->program.wdir_fd,
                     .path = a->program.path,
                     .argv = a->spec->argv.v,
                     .shell_argv = a->shell_argv.v,
                     .envp = env->v,
                     .mask = &j->signal_mask,
                     .nofile = &j->nofile,
                     .launcher = getpid(),
                     .inherited = {j->block.fd, j->block.wanted_pipe[1], j->block.memory},
                     .group = &j->guard.page->groups.id[r->rank]};
    pid_t pid = -1;
    bool merge = j->spec->out.merge;
    if (!pipe2(out, O_CLOEXEC) && (merge || !pipe2(err, O_CLOEXEC))) {
        p.in = in;
        p.out = out[1];
        p.err = merge ? out[1] : err[1];
        p.step = "vfork";
        plan_cpus(&p, j, r);
        pid = launch(&p);
        CPU_FREE(p.cpus);
    }
    if (pid < 0) p.error = errno;
    close(out[1]);
    close(err[1]);
    if (p.error) {
        atomic_store(p.group, 0);
        close(out[0]);
        close(err[0]);
        return refuse(j, r, &p);
    }
    r->pid = pid;
    output_attach(&r->out, out[0]);
    output_attach(&r->err, err[0]);
    return 0;
}
