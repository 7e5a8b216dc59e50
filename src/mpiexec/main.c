/*
 * main.c - mpiexec: the steps from the command line to the exit code, in order.
 *
 * Before the first rank runs, everything that can be wrong has been checked: options, programs, directories, output
 * files, limits. What is slow (topology, PMIx server) is left out or kept small; -v shows how long each step takes.
 */
#include "mpiexec/daemon.h"
#include "mpiexec/describe.h"
#include "mpiexec/environ.h"
#include "mpiexec/hosts.h"
#include "mpiexec/launch.h"
#include "mpiexec/launcher.h"
#include "mpiexec/map.h"
#include "mpiexec/options.h"
#include "mpiexec/serve.h"
#include "mpiexec/server.h"
#include "mpiexec/singleton.h"
#include "mpiexec/spawn.h"
#include "mpiexec/starter.h"
#include "mpiexec/tree.h"
#include "mpiexec/watch.h"
#include "mpiexec/words.h"
#include "proc/ask.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* Descriptors 0 to 2 exist from here on, so that none of ours gets their numbers. */
static void fill_stdio(void)
{
    int fd;
    do fd = open("/dev/null", O_RDWR);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd > STDERR_FILENO) close(fd);
}

static int read_options(struct spec *s, int argc, char **argv)
{
    int rc = options_environment(s);
    if (!rc) rc = options_parse(s, argc - 1, argv + 1);
    if (!rc) rc = place_count_units(&s->place, &s->ppn);
    return rc ? rc : spec_settle(s);
}

static int map_job(const struct spec *s, struct map *m)
{
    int rc = map_ranks(s, m);
    if (rc) return rc;
    map_show(s, m);
    return s->no_launch ? OPTIONS_DONE : 0;
}

static void prepare_apps(struct job *j, char **own)
{
    j->apps = xcalloc((size_t)j->spec->napps, sizeof *j->apps);
    for (int i = 0; i < j->spec->napps; i++) {
        j->apps[i].spec = &j->spec->apps[i];
        environ_of_app(&j->apps[i].env, own, j->spec, j->apps[i].spec);
    }
}

static void prepare_nodes(struct job *j, const struct map *m)
{
    j->nnodes = m->nnodes;
    j->node = NODE_NONE;
    j->nodes = xcalloc((size_t)m->nnodes, sizeof *j->nodes);
    for (int i = 0; i < m->nnodes; i++) {
        const struct map_node *n = &m->nodes[i];
        j->nodes[i] = (struct node){.name = n->host->name,
                                    .slots = n->host->slots,
                                    .own = n->host->self,
                                    .nranks = n->nranks,
                                    .ranks = n->ranks};
        if (n->host->self) j->node = i;
    }
    for (int r = 0; r < j->size; r++) {
        j->ranks[r].node = m->node[r];
        j->ranks[r].local = m->local[r];
        j->ranks[r].slots = j->spec->rankfile.path ? j->spec->rankfile.v[r].slots : NULL;
    }
}

/* Do ranks run on other hosts than this one? */
static bool has_others(const struct job *j) { return j->nnodes > 1 || j->node == NODE_NONE; }

/* A name that no other job of this machine has, also across pid namespaces; and the job's key. A client of the PMIx
 * server has to know the name, and nothing else that other users do not: so it is as random as a key. */
static int name_job(struct job *j)
{
    uint64_t random[2];
    if (*j->name) return 0;
    if (getrandom(random, sizeof random, 0) != sizeof random || getrandom(j->key, sizeof j->key, 0) != sizeof j->key) {
        say("no random numbers: %s", strerror(errno));
        return EXIT_RESOURCE;
    }
    launch_make_secret(j);
    snprintf(j->name, sizeof j->name, "tern.%d.%016" PRIx64 "%016" PRIx64, (int)getpid(), random[0], random[1]);
    return 0;
}

/* The daemons of other hosts are on their way while this one makes ready. */
static int grow_tree(struct job *j)
{
    static struct wire_out description;
    if (!has_others(j)) return 0;
    starter_next(0); /* others need not wait for the hosts of this job */
    char *cwd = getcwd(NULL, 0);
    describe_job(&description, j, cwd);
    free(cwd);
    return tree_open(j, NULL, description.bytes, description.n);
}

/* Everything from the guard to the running ranks. */
static int start_job(struct job *j)
{
    int rc = watch_open(j);
    if (rc) return rc;
    spawned_join(j->base);
    if ((rc = grow_tree(j)) || (rc = serve_prepare(j)) || (rc = watch_ready())) return rc;
    watch_start();
    if ((rc = serve_start(j)))
        watch_give_up(rc);
    else
        spawned_started(j);
    return 0;
}

static bool tree_is_left;

static void on_left(void) { tree_is_left = true; }

/* The daemons leave before we do. */
static void end_tree(struct job *j)
{
    if (!j->base) return;
    tree_leave(on_left);
    while (!tree_is_left) event_base_loop(j->base, EVLOOP_ONCE);
}

static void print_exitcodes(const struct job *j)
{
    for (int i = 0; i < j->nnodes; i++) {
        const struct node *n = &j->nodes[i];
        printf("%s[%s] ", i ? " " : "Exit codes: ", n->name);
        for (int k = 0; k < n->nranks; k++) {
            int s = j->ranks[n->ranks[k]].status;
            printf("%s%d", k ? "," : "", WIFSIGNALED(s) ? 128 + WTERMSIG(s) : WEXITSTATUS(s));
        }
    }
    printf("\n");
}

/* --report-pid */
static int report_pid(const char *where)
{
    bool own = !strcmp(where, "-") || !strcmp(where, "+");
    FILE *f = !own ? fopen(where, "we") : *where == '-' ? stdout : stderr;
    if (!f || fprintf(f, "%d\n", (int)getpid()) < 0 || (own ? fflush(f) : fclose(f))) {
        say("cannot write the process number to %s: %s", where, strerror(errno));
        return EXIT_USAGE;
    }
    return 0;
}

/* Programs of another MPI library that has found no way to this job: each rank was alone, and computed the same. */
static void tell_strangers(const struct job *j)
{
    for (int i = 0; i < j->spec->napps && j->size > 1; i++) {
        const struct library *l = &j->apps[i].library;
        bool joined = l->kind != LIBRARY_OTHER;
        for (int r = 0; r < j->size && !joined; r++) joined = j->ranks[r].appnum == i && j->ranks[r].joined;
        if (!joined)
            say("%s is linked with %s (%s), and none of its %d ranks joined this job: if they use MPI, each was a job "
                "of its "
                "own with one rank. Build it with Tern's mpicc, or start it with the mpiexec of that library",
                j->spec->apps[i].argv.v[0], l->name, library_family(l->name), j->spec->apps[i].n);
    }
}

static struct job job;

/* Of a launcher that has no order yet: what fails is tried again later, and said then. */
static void make_ready(void)
{
    if (!watch_prepare(&job)) (void)name_job(&job);
}

/* `line`: to the first mpiexec, in the launcher of a spawned job; else -1. */
static int run(int argc, char **argv, int line)
{
    static struct spec spec;
    static struct map map;
    struct strv command = {0};
    char **own = environ; /* setenv of later steps works on a copy */
    serve_step("");
    const char *why = line < 0 ? NULL : spawned_open(&job, line, &command);
    if (why) {
        say("%s", why);
        return EXIT_USAGE;
    }
    if (line >= 0) {
        argc = command.n;
        argv = command.v;
    }
    int rc = read_options(&spec, argc, argv);
    if (!rc) rc = map_job(&spec, &map);
    if (rc == OPTIONS_DONE) return 0;
    if (rc || (spec.report_pid && (rc = report_pid(spec.report_pid)))) return rc;
    job.spec = &spec;
    job.size = spec.size;
    job.root = true;
    sigprocmask(SIG_SETMASK, NULL, &job.signal_mask);
    prepare_apps(&job, own);
    launch_make_ranks(&job);
    prepare_nodes(&job, &map);
    if (has_others(&job) && (rc = launcher_settle(&spec, argv[0]))) return rc;
    if ((rc = serve_check(&job)) || (rc = name_job(&job))) return rc;
    launch_set_mark(&job);
    spawn_open(&job, argv[0], own);
    serve_step("options, programs");
    prctl(PR_SET_CHILD_SUBREAPER, 1); /* orphans of ranks come to us, not to init */
    if ((rc = guard_open(&job.guard, job.mark, job.size))) return rc;
    serve_step("guard");
    rc = start_job(&job);
    if (!rc) {
        rc = watch_run();
        serve_step("run");
        tell_strangers(&job);
        if (spec.print_exitcodes) print_exitcodes(&job);
    }
    spawn_close();
    end_tree(&job);
    if (server_refused()) say_verbose("the PMIx server refused the job: %s", server_refused());
    guard_close(&job.guard);
    serve_step("cleaning up");
    return rc;
}

int main(int argc, char **argv)
{
    bool daemon = argc == 2 && !strcmp(argv[1], DAEMON_OPTION), starter = argc == 2 && !strcmp(argv[1], STARTER_OPTION);
    bool singleton = argc == 2 && !strcmp(argv[1], ASK_ALONE_OPTION);
    if (!starter) fill_stdio(); /* the starter's are as the first mpiexec has made them */
    int line = starter ? starter_run(make_ready) : -1;
    int rc = daemon ? daemon_run() : singleton ? singleton_run(argv[0]) : run(argc, argv, line);
    spawned_ended(rc);
    if (fflush(stdout) && !rc) rc = EXIT_RESOURCE;
    _exit(rc); /* the PMIx library's thread may still run: no destructors under its feet */
}
