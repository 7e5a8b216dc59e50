/*
 * main.c - mpiexec: the steps from the command line to the exit code, in order.
 *
 * Before the first rank runs, everything that can be wrong has been checked: options, programs, directories, output
 * files, limits. What is slow (topology, PMIx server) is left out or kept small; -v shows how long each step takes.
 */
#include "mpiexec/cpus.h"
#include "mpiexec/environ.h"
#include "mpiexec/hosts.h"
#include "mpiexec/input.h"
#include "mpiexec/launch.h"
#include "mpiexec/map.h"
#include "mpiexec/options.h"
#include "mpiexec/psets.h"
#include "mpiexec/server.h"
#include "mpiexec/start.h"
#include "mpiexec/watch.h"
#include "mpiexec/words.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

#define FDS_OF_LAUNCHER 64 /* besides those of the ranks */
#define FDS_PER_RANK 4     /* two pipes, a PMIx connection, a file for its output */

static void step_done(const char *step)
{
    static double last;
    double now = launch_now();
    if (last) say_verbose("%-24s %7.2f ms", step, (now - last) * 1e3);
    last = now;
}

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
    if (!rc) rc = place_per_host(&s->place, &s->ppn);
    return rc ? rc : spec_settle(s);
}

static int map_job(const struct spec *s, struct map *m)
{
    map_ranks(s, m);
    map_show(s, m);
    for (int i = 0; i < m->nnodes && !s->no_launch; i++)
        if (!m->nodes[i].host->self) {
            say("rank %d belongs to host %s, but this version starts ranks only on its own host (%s)", m->nodes[i].ranks[0],
                m->nodes[i].host->name, hosts_self());
            return EXIT_USAGE;
        }
    return s->no_launch ? OPTIONS_DONE : 0;
}

static int raise_limits(struct job *j)
{
    getrlimit(RLIMIT_NOFILE, &j->nofile);
    struct rlimit want = {.rlim_cur = j->nofile.rlim_max, .rlim_max = j->nofile.rlim_max};
    if (setrlimit(RLIMIT_NOFILE, &want)) want = j->nofile;
    rlim_t needed = FDS_OF_LAUNCHER + FDS_PER_RANK * (rlim_t)j->size;
    if (want.rlim_cur == RLIM_INFINITY || want.rlim_cur >= needed) return 0;
    say("%d ranks need about %llu open files, but the limit is %llu (see ulimit -Hn)", j->size,
        (unsigned long long)needed, (unsigned long long)want.rlim_cur);
    return EXIT_RESOURCE;
}

static int prepare_apps(struct job *j, char **own)
{
    j->apps = xcalloc((size_t)j->spec->napps, sizeof *j->apps);
    for (int i = 0; i < j->spec->napps; i++) {
        struct app *a = &j->apps[i];
        a->spec = &j->spec->apps[i];
        environ_of_app(&a->env, own, j->spec, a->spec);
        int rc = program_find(&a->program, a->spec, &a->env);
        if (rc) return rc;
        strv_push(&a->shell_argv, "/bin/sh");
        strv_push(&a->shell_argv, a->program.path);
        for (int k = 1; k < a->spec->argv.n; k++) strv_push(&a->shell_argv, a->spec->argv.v[k]);
    }
    return 0;
}

static void prepare_nodes(struct job *j, const struct map *m)
{
    j->nnodes = m->nnodes;
    j->node = NODE_NONE;
    j->nodes = xcalloc((size_t)m->nnodes, sizeof *j->nodes);
    for (int i = 0; i < m->nnodes; i++) {
        const struct map_node *n = &m->nodes[i];
        j->nodes[i] = (struct node){
            .name = n->host->name, .slots = n->host->slots, .own = n->host->self, .nranks = n->nranks, .ranks = n->ranks};
        if (n->host->self) j->node = i;
    }
    for (int r = 0; r < j->size; r++) {
        j->ranks[r].node = m->node[r];
        j->ranks[r].local = m->local[r];
    }
}

static void prepare_ranks(struct job *j)
{
    j->ranks = xcalloc((size_t)j->size, sizeof *j->ranks);
    for (int app = 0, r = 0; app < j->spec->napps; app++)
        for (int i = 0; i < j->spec->apps[app].n; i++, r++)
            j->ranks[r] = (struct rank){.rank = r, .appnum = app, .place = {.l3 = -1, .numa = -1}};
}

/* A name that no other job of this machine has, also across pid namespaces; and the job's key. */
static int name_job(struct job *j)
{
    uint32_t random;
    if (getrandom(&random, sizeof random, 0) != sizeof random ||
        getrandom(j->secret, sizeof j->secret, 0) != sizeof j->secret) {
        say("no random numbers: %s", strerror(errno));
        return EXIT_RESOURCE;
    }
    snprintf(j->name, sizeof j->name, "tern.%d.%08x", (int)getpid(), random);
    return 0;
}

static int place_job(struct job *j)
{
    const struct place_spec *p = &j->spec->place;
    if (!place_wanted(p)) return 0;
    const char *threads = environ_get(&j->apps[0].env, "OMP_NUM_THREADS");
    int n = launch_nlocal(j);
    struct place *places = xcalloc((size_t)n, sizeof *places);
    int rc = place_topology(&j->topology);
    if (!rc) rc = place_ranks(j->topology, p, threads ? atoi(threads) : 0, places, n);
    for (int i = 0; i < n && !rc; i++) {
        struct rank *r = launch_local(j, i);
        char words[256];
        r->place = places[i];
        if (!p->report) continue;
        place_words(j->topology, &places[i], words, sizeof words);
        say("rank %d on %s %s", r->rank, launch_host(j, r), words);
    }
    free(places);
    return rc;
}

static int make_block(struct job *j)
{
    size_t pset_bytes;
    char *psets = psets_names(j->spec, &pset_bytes);
    int rc = block_open(&j->block, j->name, j->size, j->secret, psets, pset_bytes);
    free(psets);
    if (rc) return rc;
    struct job_head *h = j->block.head;
    h->universe = (uint32_t)spec_universe(j->spec);
    h->nodes = (uint32_t)j->nnodes;
    h->node = (uint32_t)j->node;
    h->local_size = (uint32_t)launch_nlocal(j);
    h->usable_cpus = (uint32_t)cpus_usable();
    for (int i = 0; i < j->size; i++) {
        const struct rank *r = &j->ranks[i];
        job_places(h)[i] = (struct job_place){.node = (uint32_t)r->node,
                                              .local_rank = (uint32_t)r->local,
                                              .appnum = (uint32_t)r->appnum,
                                              .bound = (uint32_t)r->place.count,
                                              .l3 = r->place.l3,
                                              .numa = r->place.numa};
    }
    return 0;
}

static int start_server(struct job *j)
{
    if (guard_make_dir(&j->guard) && server_open(j, j->guard.page->dir)) {
        server_register(j);
        return 0;
    }
    const char *bootstrap = environ_get(&j->apps[0].env, "TERN_BOOTSTRAP");
    if (!bootstrap || strcmp(bootstrap, "pmix")) {
        say_verbose("no PMIx server: %s; ranks of Tern do not need it", server_why());
        return 0;
    }
    say("TERN_BOOTSTRAP=pmix needs a PMIx server, which cannot be started: %s", server_why());
    return EXIT_RESOURCE;
}

static int start_ranks(struct job *j)
{
    for (int i = 0; i < j->size; i++) {
        struct strv env = {0};
        int in = input_for(j, i);
        if (in < 0) return EXIT_RESOURCE;
        start_environment(&env, j, &j->ranks[i], server_variables());
        int rc = start_rank(j, &j->ranks[i], &env, in);
        input_given(in);
        strv_free(&env);
        if (rc) return rc;
    }
    return 0;
}

/* Everything from the guard to the running ranks. */
static int start_job(struct job *j)
{
    int rc;
    j->base = event_base_new();
    if (!j->base) {
        say("cannot make an event loop: %s", strerror(errno));
        return EXIT_RESOURCE;
    }
    watch_open(j);
    if ((rc = output_open(j)) || (rc = input_open(j)) || (rc = place_job(j)) || (rc = make_block(j))) return rc;
    step_done("block, files, placement");
    if ((rc = start_server(j))) return rc;
    step_done("PMIx server");
    if ((rc = start_ranks(j))) {
        watch_give_up();
        return rc;
    }
    step_done("start of the ranks");
    output_start(j);
    input_start(j);
    return 0;
}

static void print_exitcodes(const struct job *j)
{
    printf("Exit codes: [%s] ", hosts_self());
    for (int i = 0; i < j->size; i++) {
        int s = j->ranks[i].status;
        printf("%s%d", i ? "," : "", WIFSIGNALED(s) ? 128 + WTERMSIG(s) : WEXITSTATUS(s));
    }
    printf("\n");
}

static int run(int argc, char **argv)
{
    static struct spec spec;
    static struct map map;
    static struct job job;
    char **own = environ; /* setenv of later steps works on a copy */
    fill_stdio();
    step_done("");
    int rc = read_options(&spec, argc, argv);
    if (!rc) rc = map_job(&spec, &map);
    if (rc == OPTIONS_DONE) return 0;
    if (rc) return rc;
    job.spec = &spec;
    job.size = spec.size;
    job.root = true;
    sigprocmask(SIG_SETMASK, NULL, &job.signal_mask);
    if ((rc = raise_limits(&job)) || (rc = prepare_apps(&job, own)) || (rc = name_job(&job))) return rc;
    prepare_ranks(&job);
    prepare_nodes(&job, &map);
    step_done("options, programs");
    prctl(PR_SET_CHILD_SUBREAPER, 1); /* orphans of ranks come to us, not to init */
    if ((rc = guard_open(&job.guard, job.name, job.size))) return rc;
    step_done("guard");
    rc = start_job(&job);
    if (!rc) {
        rc = watch_run();
        step_done("run");
        if (spec.print_exitcodes) print_exitcodes(&job);
    }
    if (server_refused()) say_verbose("the PMIx server refused the job: %s", server_refused());
    guard_close(&job.guard);
    step_done("cleaning up");
    return rc;
}

int main(int argc, char **argv)
{
    int rc = run(argc, argv);
    if (fflush(stdout) && !rc) rc = EXIT_RESOURCE;
    _exit(rc); /* the PMIx library's thread may still run: no destructors under its feet */
}
