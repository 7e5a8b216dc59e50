/*
 * server.c - the PMIx server of a node: start, and the library's upcalls.
 *
 * The library itself gathers what the local clients contribute to a fence. On one host the upcalls for exchange only
 * hand back what they got; on several, fence.c and modex.c go on, on the main thread. PMIx_server_finalize is never
 * called: it takes longer than a short job, to free what the system frees anyway; the server's files go with the job's
 * directory.
 */
#include "mpiexec/server.h"
#include "base/signals.h"
#include "mpiexec/fence.h"
#include "mpiexec/modex.h"
#include "mpiexec/directory.h"
#include "mpiexec/namespace.h"
#include "mpiexec/psets.h"
#include "mpiexec/server_jobs.h"
#include "mpiexec/server_spawn.h"
#include "mpiexec/words.h"
#include "proc/launcher_vars.h"

#include <pmix.h>
#include <pmix_server.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define OMPI_DAEMON "OMPI_MCA_orte_local_daemon_uri="

static struct {
    bool up;
    const char *why;
    int event_fd;
    pmix_nspace_t job;
    int size, nodes;
    _Atomic int refused;   /* the status of a registration that failed, 0 = none */
    _Atomic uint8_t *life; /* enum job_life by rank: written by the library's thread, read after the rank's exit */
    struct strv variables;
    pthread_mutex_t lock; /* guards the rest */
    bool aborted;
    struct server_abort abort;
} self = {.event_fd = -1, .why = "no directory for its files", .lock = PTHREAD_MUTEX_INITIALIZER};

/* --- upcalls, on the library's thread ---------------------------------------------------------------------------- */

static void set_life(const pmix_proc_t *p, enum job_life life)
{
    if (!strcmp(p->nspace, self.job) && p->rank < (uint32_t)self.size)
        atomic_store_explicit(&self.life[p->rank], life, memory_order_release);
}

static pmix_status_t on_connected(const pmix_proc_t *p, void *object, pmix_info_t info[], size_t ninfo,
                                  pmix_op_cbfunc_t done, void *arg)
{
    (void)object, (void)info, (void)ninfo, (void)done, (void)arg;
    set_life(p, JOB_LIFE_INITIALISED);
    return PMIX_OPERATION_SUCCEEDED;
}

static pmix_status_t on_finalized(const pmix_proc_t *p, void *object, pmix_op_cbfunc_t done, void *arg)
{
    (void)object, (void)done, (void)arg;
    set_life(p, JOB_LIFE_FINALISED);
    return PMIX_OPERATION_SUCCEEDED;
}

/* Whoever is named in `procs`, the whole job ends: that is what MPI_Abort may do and what users expect. */
static pmix_status_t on_abort(const pmix_proc_t *p, void *object, int status, const char words[], pmix_proc_t procs[],
                              size_t nprocs, pmix_op_cbfunc_t done, void *arg)
{
    (void)object, (void)procs, (void)nprocs, (void)done, (void)arg;
    uint64_t one = 1;
    pthread_mutex_lock(&self.lock);
    if (!self.aborted) {
        self.aborted = true;
        self.abort = (struct server_abort){.rank = (int)p->rank, .code = status};
        snprintf(self.abort.words, sizeof self.abort.words, "%s", words ? words : "");
        (void)!write(self.event_fd, &one, sizeof one); /* the counter cannot overflow */
    }
    pthread_mutex_unlock(&self.lock);
    return PMIX_OPERATION_SUCCEEDED;
}

/* Where an exchange over several nodes ends: with bytes, or without. */
struct over {
    pmix_modex_cbfunc_t exchanged;
    pmix_op_cbfunc_t agreed;
    void *arg;
};

/* On the main thread. */
static void on_over(void *arg, int status, char *bytes, size_t n)
{
    struct over *o = arg;
    if (o->exchanged) o->exchanged(status, bytes, n, o->arg, free, bytes);
    else o->agreed(status, o->arg);
    if (!o->exchanged) free(bytes);
    free(o);
}

static int by_number(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* The participants, ascending, each once; *count_p = 0 for all of the job. NULL: they are not all of this job. */
static uint32_t *participants(const pmix_proc_t procs[], size_t nprocs, uint32_t *count_p)
{
    uint32_t *ranks = xcalloc(nprocs, sizeof *ranks), n = 0;
    bool all = false, strange = !nprocs;
    for (size_t i = 0; i < nprocs; i++) {
        ranks[i] = procs[i].rank;
        all |= procs[i].rank == PMIX_RANK_WILDCARD;
        strange |= strcmp(procs[i].nspace, self.job) || (procs[i].rank >= (uint32_t)self.size && procs[i].rank != PMIX_RANK_WILDCARD);
    }
    qsort(ranks, nprocs, sizeof *ranks, by_number);
    for (size_t i = 0; i < nprocs; i++)
        if (!n || ranks[n - 1] != ranks[i]) ranks[n++] = ranks[i];
    *count_p = all ? 0 : n;
    if (!strange) return ranks;
    free(ranks);
    return NULL;
}

static pmix_status_t enter(enum fence_kind kind, const pmix_proc_t procs[], size_t nprocs, const char *data, size_t size,
                           struct over how)
{
    uint32_t n, *ranks = participants(procs, nprocs, &n);
    if (!ranks) return PMIX_ERR_NOT_SUPPORTED;
    struct over *o = xcalloc(1, sizeof *o);
    *o = how;
    fence_enter(kind, ranks, n, data, size, on_over, o);
    free(ranks);
    return PMIX_SUCCESS;
}

static pmix_status_t on_fence(const pmix_proc_t procs[], size_t nprocs, const pmix_info_t info[], size_t ninfo,
                              char *data, size_t size, pmix_modex_cbfunc_t done, void *arg)
{
    (void)info, (void)ninfo;
    if (self.nodes > 1 && done) {
        pmix_status_t rc = enter(FENCE_EXCHANGE, procs, nprocs, data, size, (struct over){.exchanged = done, .arg = arg});
        if (rc == PMIX_SUCCESS) free(data);
        return rc;
    }
    if (done) done(PMIX_SUCCESS, data, size, arg, free, data);
    return PMIX_SUCCESS;
}

/* Asked only for processes of other hosts and other jobs: the library answers for local ones. */
static pmix_status_t on_direct_modex(const pmix_proc_t *p, const pmix_info_t info[], size_t ninfo,
                                     pmix_modex_cbfunc_t done, void *arg)
{
    (void)info, (void)ninfo;
    if (strcmp(p->nspace, self.job)) return server_jobs_modex(p, done, arg);
    if (self.nodes == 1 || !done || p->rank >= (uint32_t)self.size) return PMIX_ERR_NOT_FOUND;
    modex_ask(p->rank, done, arg);
    return PMIX_SUCCESS;
}

/* The library has met all local participants before it asks. */
static pmix_status_t agree(enum fence_kind kind, const pmix_proc_t procs[], size_t nprocs, pmix_op_cbfunc_t done, void *arg)
{
    if (self.nodes == 1 || !done) return PMIX_OPERATION_SUCCEEDED;
    return enter(kind, procs, nprocs, NULL, 0, (struct over){.agreed = done, .arg = arg});
}

static pmix_status_t on_connect(const pmix_proc_t procs[], size_t nprocs, const pmix_info_t info[], size_t ninfo,
                                pmix_op_cbfunc_t done, void *arg)
{
    (void)info, (void)ninfo;
    return agree(FENCE_CONNECT, procs, nprocs, done, arg);
}

static pmix_status_t on_disconnect(const pmix_proc_t procs[], size_t nprocs, const pmix_info_t info[], size_t ninfo,
                                   pmix_op_cbfunc_t done, void *arg)
{
    (void)info, (void)ninfo;
    return agree(FENCE_DISCONNECT, procs, nprocs, done, arg);
}

/* One answer to the first question: clients that want more ask again. */
static pmix_status_t on_query(pmix_proc_t *p, pmix_query_t *queries, size_t n, pmix_info_cbfunc_t done, void *arg)
{
    if (!n || !queries[0].keys || !queries[0].keys[0]) return PMIX_ERR_BAD_PARAM;
    if (!strcmp(queries[0].keys[0], PMIX_QUERY_PROC_TABLE)) return server_jobs_table(&queries[0], done, arg);
    return psets_query(p, queries, n, done, arg);
}

static pmix_server_module_t upcalls = {
    .client_connected2 = on_connected,
    .client_finalized = on_finalized,
    .abort = on_abort,
    .fence_nb = on_fence,
    .direct_modex = on_direct_modex,
    .query = on_query,
    .publish = directory_publish,
    .lookup = directory_lookup,
    .unpublish = directory_unpublish,
    .spawn = server_spawn,
    .connect = on_connect,
    .disconnect = on_disconnect,
};

/* --- start ------------------------------------------------------------------------------------------------------- */

/* Settings of the library for its server side. The launcher's environment is not the ranks': theirs was kept apart. */
static void settle_environment(void)
{
    extern char **environ;
    for (char **e = environ; *e;) {
        char *name = xstrndup(*e, strcspn(*e, "="));
        if (is_launchers_variable(*e))
            unsetenv(name); /* an outer launcher's: not the server we are */
        else
            e++;
        free(name);
    }
    setenv("PMIX_MCA_gds", "hash", 1); /* job data in the clients' memory rather than in files */
    /* The library loads a topology at start (5 to 120 ms) that nothing here uses: give it the smallest there is. */
    setenv("HWLOC_PLUGINS_PATH", "/dev/null", 1);
    setenv("HWLOC_COMPONENTS", "synthetic,stop", 1);
    setenv("HWLOC_SYNTHETIC", "pu:1", 1);
}

static void take_variables(void)
{
    pmix_proc_t p;
    char **env = NULL;
    PMIX_PROC_LOAD(&p, self.job, 0);
    if (PMIx_server_setup_fork(&p, &env) != PMIX_SUCCESS) return;
    for (char **e = env; e && *e; e++) strv_push(&self.variables, *e);
    /* Open MPI up to 4 asks PMIx only where it sees the address of a daemon of its own, which it then does not use. */
    strv_push(&self.variables, OMPI_DAEMON "0.0;tcp://127.0.0.1:1");
}

bool server_open(const struct job *j, const char *dir)
{
    pmix_info_t info[3];
    if (!*dir) return false;
    settle_environment();
    strncpy(self.job, j->name, sizeof self.job - 1);
    self.size = j->size;
    self.nodes = j->nnodes;
    self.life = xcalloc((size_t)j->size, sizeof *self.life);
    self.event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    PMIX_INFO_LOAD(&info[0], PMIX_SERVER_TMPDIR, dir, PMIX_STRING);
    PMIX_INFO_LOAD(&info[1], PMIX_SYSTEM_TMPDIR, dir, PMIX_STRING);
    PMIX_INFO_LOAD(&info[2], PMIX_HOSTNAME, j->nodes[j->node].name, PMIX_STRING);
    sigset_t before;
    signals_block(&before); /* its threads take none of the launcher's signals */
    pmix_status_t rc = PMIx_server_init(&upcalls, info, 3);
    signals_restore(&before);
    self.why = PMIx_Error_string(rc);
    self.up = rc == PMIX_SUCCESS && self.event_fd >= 0;
    if (self.up) take_variables();
    return self.up;
}

const char *server_why(void) { return self.why; }
const struct strv *server_variables(void) { return &self.variables; }
int server_event_fd(void) { return self.up ? self.event_fd : -1; }

enum job_life server_life(int rank)
{
    return self.up ? atomic_load_explicit(&self.life[rank], memory_order_acquire) : JOB_LIFE_NONE;
}

bool server_take_abort(struct server_abort *a)
{
    uint64_t count;
    if (read(self.event_fd, &count, sizeof count) != sizeof count) return false;
    pthread_mutex_lock(&self.lock);
    *a = self.abort;
    pthread_mutex_unlock(&self.lock);
    return true;
}

/* --- registration ------------------------------------------------------------------------------------------------ */

/* On the library's thread, so it must not speak. */
static void registered(pmix_status_t status, void *arg)
{
    (void)arg;
    if (status != PMIX_SUCCESS && status != PMIX_OPERATION_SUCCEEDED) atomic_store(&self.refused, status);
}

const char *server_refused(void)
{
    int status = atomic_load(&self.refused);
    return status ? PMIx_Error_string(status) : NULL;
}

void server_register(const struct job *j)
{
    size_t n;
    if (!self.up) return;
    psets_open(j);
    pmix_info_t *info = namespace_describe(j, &n); /* lives on: the library reads it later, on its thread */
    pmix_status_t rc = PMIx_server_register_nspace(self.job, launch_nlocal(j), info, n, registered, NULL);
    for (int i = 0; i < launch_nlocal(j) && rc == PMIX_SUCCESS; i++) {
        pmix_proc_t p;
        PMIX_PROC_LOAD(&p, self.job, (pmix_rank_t)launch_local(j, i)->rank);
        rc = PMIx_server_register_client(&p, getuid(), getgid(), NULL, registered, NULL);
    }
    registered(rc, NULL);
}
