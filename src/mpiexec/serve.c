/* serve.c - see serve.h. */
#include "mpiexec/serve.h"
#include "mpiexec/answer.h"
#include "mpiexec/cards.h"
#include "mpiexec/cpus.h"
#include "mpiexec/environ.h"
#include "mpiexec/fence.h"
#include "mpiexec/input.h"
#include "mpiexec/directory.h"
#include "mpiexec/modex.h"
#include "mpiexec/post.h"
#include "mpiexec/psets.h"
#include "mpiexec/server.h"
#include "mpiexec/server_jobs.h"
#include "mpiexec/start.h"
#include "mpiexec/words.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#define LAUNCH_PMIX "TERN_LAUNCH_PMIX"

#define FDS_OF_LAUNCHER 128 /* besides those of the ranks; with the agents and links to other hosts */
#define FDS_PER_RANK 4      /* two pipes, a PMIx connection, a file for its output */

void serve_step(const char *step)
{
    static double last;
    double now = launch_now();
    if (last) say_verbose("%-24s %7.2f ms", step, (now - last) * 1e3);
    last = now;
}

/* --- checks ------------------------------------------------------------------------------------------------------ */

static int raise_limits(struct job *j)
{
    getrlimit(RLIMIT_NOFILE, &j->nofile);
    struct rlimit want = {.rlim_cur = j->nofile.rlim_max, .rlim_max = j->nofile.rlim_max};
    if (setrlimit(RLIMIT_NOFILE, &want)) want = j->nofile;
    rlim_t needed = FDS_OF_LAUNCHER + FDS_PER_RANK * (rlim_t)launch_nlocal(j);
    if (want.rlim_cur == RLIM_INFINITY || want.rlim_cur >= needed) return 0;
    say("%d ranks need about %llu open files, but the limit is %llu (see ulimit -Hn)", launch_nlocal(j),
        (unsigned long long)needed, (unsigned long long)want.rlim_cur);
    return EXIT_RESOURCE;
}

static bool has_ranks(const struct job *j, int app)
{
    for (int i = 0; i < launch_nlocal(j); i++)
        if (launch_local(j, i)->appnum == app) return true;
    return false;
}

static int find_program(struct app *a)
{
    int rc = program_find(&a->program, a->spec, &a->env);
    if (rc) return rc;
    library_of(&a->library, a->program.wdir_fd, a->program.path);
    strv_push(&a->shell_argv, "/bin/sh");
    strv_push(&a->shell_argv, a->program.path);
    for (int k = 1; k < a->spec->argv.n; k++) strv_push(&a->shell_argv, a->spec->argv.v[k]);
    return 0;
}

/* The variable is looked up where the ranks get it from: on other hosts, that is not the launcher's own environment. */
static int check_wish(const struct app *a)
{
    static const char *const wishes[] = {"", "auto", "always", "never"};
    const char *wish = environ_get(&a->env, LAUNCH_PMIX);
    for (size_t i = 0; wish && i < ARRAY_LEN(wishes); i++)
        if (!strcmp(wish, wishes[i])) return 0;
    if (wish) say("variable " LAUNCH_PMIX ": '%s' is not one of auto|always|never", wish);
    return wish ? EXIT_USAGE : 0;
}

static int check_app(const struct job *j, int app)
{
    struct app *a = &j->apps[app];
    int rc = check_wish(a);
    if (rc) return rc;
    if (has_ranks(j, app)) return find_program(a);
    library_of(&a->library, AT_FDCWD, a->spec->argv.v[0]); /* the file of other hosts, if it is here as well */
    return 0;
}

int serve_check(struct job *j)
{
    int rc = raise_limits(j);
    for (int i = 0; i < j->spec->napps && !rc; i++) rc = check_app(j, i);
    return rc;
}

/* --- preparation ------------------------------------------------------------------------------------------------- */

/* Does a rank file bind ranks of this node? */
static bool has_slots(const struct job *j)
{
    for (int i = 0; i < launch_nlocal(j); i++)
        if (launch_local(j, i)->slots) return true;
    return false;
}

static int place_node(struct job *j)
{
    const struct place_spec *p = &j->spec->place;
    int n = launch_nlocal(j);
    if (!place_wanted(p) && !has_slots(j)) return 0;
    const char *threads = environ_get(&j->apps[0].env, "OMP_NUM_THREADS");
    struct place *places = xcalloc((size_t)n, sizeof *places);
    int rc = place_topology(p, &j->topology);
    if (!rc) rc = place_ranks(j->topology, p, threads ? atoi(threads) : 0, places, n);
    for (int i = 0; i < n && !rc && has_slots(j); i++)
        rc = place_slots(j->topology, p, launch_local(j, i)->slots, &places[i]);
    for (int i = 0; i < n && !rc; i++) {
        char words[256];
        struct rank *r = launch_local(j, i);
        r->place = places[i];
        if (!p->report) continue;
        place_words(j->topology, &places[i], words, sizeof words);
        say("rank %d on %s %s", r->rank, launch_host(j, r), words);
    }
    free(places);
    return rc;
}

/* That the ranks of this node share: with --cpu-set its own. */
static int usable_cpus(const struct job *j)
{
    int all = cpus_usable(), set = j->topology ? place_set_cpus(j->topology, &j->spec->place) : 0;
    return set && set < all ? set : all;
}

static int make_block(struct job *j)
{
    size_t pset_bytes;
    char *psets = psets_names(j->spec, &pset_bytes);
    int rc = block_open(&j->block, j->name, j->size, j->secret, psets, pset_bytes);
    free(psets);
    if (rc) return rc;
    struct job_head *h = j->block.head;
    memcpy(h->parent, j->parent, sizeof h->parent);
    h->universe = (uint32_t)spec_universe(j->spec);
    h->nodes = (uint32_t)j->nnodes;
    h->node = (uint32_t)j->node;
    h->local_size = (uint32_t)launch_nlocal(j);
    h->usable_cpus = (uint32_t)usable_cpus(j);
    block_open_memory(&j->block, launch_nlocal(j));
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

/* What nodes have to say to each other for their ranks. */
static int open_exchange(struct job *j)
{
    if (j->nnodes == 1 && j->node != NODE_NONE) return cards_open(j);
    fence_open(j); /* also in a root without ranks: it gathers */
    if (j->node == NODE_NONE) return 0;
    modex_open(j);
    if (post_open(j->base)) return cards_open(j);
    say("cannot make an eventfd: %s", strerror(errno));
    return EXIT_RESOURCE;
}

/* Programs that are linked with Tern find each other by the job block. All others may need PMIx: of a script, or of an
 * interpreter that loads MPI later, nobody knows. */
static bool needs_pmix(const struct app *a)
{
    const char *always = environ_get(&a->env, LAUNCH_PMIX), *bootstrap = environ_get(&a->env, "TERN_BOOTSTRAP");
    if (bootstrap && !strcmp(bootstrap, "pmix")) return true;
    if (always && !strcmp(always, "always")) return true;
    if (always && !strcmp(always, "never")) return false;
    return a->library.kind != LIBRARY_TERN || a->library.pmix;
}

static bool some_need_pmix(const struct job *j)
{
    for (int i = 0; i < j->spec->napps; i++)
        if (has_ranks(j, i) && needs_pmix(&j->apps[i])) return true;
    return false;
}

static int start_server(struct job *j)
{
    if (!some_need_pmix(j)) {
        say_verbose("no PMIx server: the programs are linked with Tern, and need none (" LAUNCH_PMIX ")");
        return 0;
    }
    if (guard_make_dir(&j->guard) && post_open(j->base) && server_open(j, j->guard.page->dir)) {
        server_jobs_open(j);
        directory_open(j->base);
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

int serve_prepare(struct job *j)
{
    int rc = output_open(j);
    if (!rc) rc = input_open(j);
    if (!rc && launch_nlocal(j) && !(rc = place_node(j))) rc = make_block(j);
    answer_open(j);
    if (!rc) rc = open_exchange(j);
    if (rc || !launch_nlocal(j)) return rc;
    serve_step("block, files, placement");
    rc = start_server(j);
    serve_step("PMIx server");
    return rc;
}

/* --- start ------------------------------------------------------------------------------------------------------- */

static int start_one(struct job *j, struct rank *r)
{
    struct strv env = {0};
    int in = input_for(j, r->rank);
    if (in < 0) return EXIT_RESOURCE;
    start_environment(&env, j, r, server_variables());
    int rc = start_rank(j, r, &env, in);
    input_given(in);
    strv_free(&env);
    return rc;
}

int serve_start(struct job *j)
{
    int rc = 0;
    for (int i = 0; i < launch_nlocal(j) && !rc; i++) rc = start_one(j, launch_local(j, i));
    if (rc) return rc;
    serve_step("start of the ranks");
    answer_start();
    output_start(j);
    input_start(j);
    return 0;
}
