/* guard.c - the process that cleans up after a killed launcher. */
#include "mpiexec/guard.h"
#include "mpiexec/rmtree.h"
#include "mpiexec/words.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

#define ROUNDS 100 /* of 10 ms: after SIGKILL a process is gone unless the kernel holds it */

/* The words behind /proc/<pid>/cmdline and environ are the process's own memory: the arguments, then the environment.
 */
static void shed_identity(void)
{
    static const char name[] = "tern-guard";
    char *from = program_invocation_name, *to = from + strlen(from);
    for (char **e = environ; e && *e; e++)
        if (*e > from) to = *e + strlen(*e);
    memset(from, 0, (size_t)(to - from));
    memcpy(from, name, min_size(sizeof name - 1, (size_t)(to - from)));
    environ = NULL;
    prctl(PR_SET_NAME, name);
}

static void detach(int fd)
{
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
    setsid();
    if (chdir("/")) _exit(1); /* keep no directory busy */
    int null = open("/dev/null", O_RDWR);
    for (int i = 0; i < 3 && null >= 0; i++) dup2(null, i);
    if (fd != 3) dup2(fd, 3);
    close_range(4, ~0U, 0);
    shed_identity();
}

static void end_job(const struct guard_page *p)
{
    struct timespec pause = {.tv_nsec = 10 * 1000 * 1000};
    for (int round = 0; round < ROUNDS; round++) {
        /* Only living processes count: nobody may be there to reap the dead, whose groups then stay. Once more after
         * nothing was found, for a process may have forked meanwhile. */
        sweep_signal(&p->groups, SIGKILL);
        if (!sweep_all(&p->groups, p->job) && round) break;
        nanosleep(&pause, NULL);
    }
    rmtree(p->dir);
}

static void run(struct guard_page *p)
{
    char byte;
    ssize_t n;
    do n = read(3, &byte, 1);
    while (n > 0 || (n < 0 && errno == EINTR));
    if (atomic_load(&p->armed) && *p->job) end_job(p); /* without a name: of a launcher that got no job */
    _exit(0);
}

static int refuse(const char *what)
{
    say("cannot start the job's guard: %s: %s", what, strerror(errno));
    return EXIT_RESOURCE;
}

static struct guard ready; /* by guard_make_ready; no page: there is none */
static int ready_ranks;

static int start(struct guard *g, int ranks)
{
    size_t bytes = sizeof *g->page + (size_t)ranks * sizeof g->page->groups.id[0];
    int ends[2];
    g->page = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (g->page == MAP_FAILED) return refuse("mmap");
    atomic_store(&g->page->armed, 1);
    if (pipe2(ends, O_CLOEXEC)) return refuse("pipe");
    g->pid = fork();
    if (g->pid < 0) return refuse("fork");
    if (!g->pid) {
        close(ends[1]);
        detach(ends[0]);
        run(g->page);
    }
    close(ends[0]);
    g->fd = ends[1];
    return 0;
}

void guard_make_ready(int ranks)
{
    if (start(&ready, ranks)) ready.page = NULL;
    ready_ranks = ranks;
}

int guard_open(struct guard *g, const char *job, int ranks)
{
    int rc = 0;
    if (ready.page && ranks <= ready_ranks) *g = ready;
    else rc = start(g, ranks);
    if (rc) return rc;
    strncpy(g->page->job, job, sizeof g->page->job - 1);
    atomic_store(&g->page->groups.count, ranks);
    return 0;
}

bool guard_make_dir(struct guard *g)
{
    const char *places[] = {getenv("TMPDIR"), "/tmp", "/dev/shm", "/var/tmp"};
    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        if (!places[i] || *places[i] != '/' || strlen(places[i]) > PATH_MAX - 48) continue;
        /* The template is filled in where the guard reads it, so no instant passes with a directory it does not know. The
         * name says to whom it belongs. */
        snprintf(g->page->dir, sizeof g->page->dir, "%s/tern-%d-XXXXXX", places[i], (int)getpid());
        if (mkdtemp(g->page->dir)) return true;
    }
    g->page->dir[0] = 0;
    return false;
}

void guard_close(struct guard *g)
{
    rmtree(g->page->dir);
    atomic_store(&g->page->armed, 0);
    close(g->fd);
    while (waitpid(g->pid, NULL, 0) < 0 && errno == EINTR) continue;
}
