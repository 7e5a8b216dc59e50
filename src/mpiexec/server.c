/*
 * server.c - the PMIx server: start, registration of the job, and the library's upcalls.
 *
 * One host: the library itself gathers what the local clients contribute to a fence, so the upcalls for exchange only
 * hand back what they got. PMIx_server_finalize is never called: it takes longer than a short job, to free what the
 * system frees anyway; the server's files go with the job's directory.
 */
#include "mpiexec/server.h"
#include "mpiexec/environ.h"
#include "mpiexec/hosts.h"
#include "mpiexec/names.h"
#include "mpiexec/psets.h"
#include "mpiexec/words.h"

#include <pmix.h>
#include <pmix_server.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

static struct {
    bool up;
    const char *why;
    int event_fd;
    pmix_nspace_t job;
    int size;
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

static pmix_status_t on_fence(const pmix_proc_t procs[], size_t nprocs, const pmix_info_t info[], size_t ninfo,
                              char *data, size_t size, pmix_modex_cbfunc_t done, void *arg)
{
    (void)procs, (void)nprocs, (void)info, (void)ninfo;
    if (done) done(PMIX_SUCCESS, data, size, arg, free, data);
    return PMIX_SUCCESS;
}

/* Asked only for processes of other hosts: the library answers for local ones. */
static pmix_status_t on_direct_modex(const pmix_proc_t *p, const pmix_info_t info[], size_t ninfo,
                                     pmix_modex_cbfunc_t done, void *arg)
{
    (void)p, (void)info, (void)ninfo, (void)done, (void)arg;
    return PMIX_ERR_NOT_FOUND;
}

/* The library has met all local participants before it asks; there are no others. */
static pmix_status_t on_connect(const pmix_proc_t procs[], size_t nprocs, const pmix_info_t info[], size_t ninfo,
                                pmix_op_cbfunc_t done, void *arg)
{
    (void)procs, (void)nprocs, (void)info, (void)ninfo, (void)done, (void)arg;
    return PMIX_OPERATION_SUCCEEDED;
}

static pmix_status_t on_spawn(const pmix_proc_t *p, const pmix_info_t info[], size_t ninfo, const pmix_app_t apps[],
                              size_t napps, pmix_spawn_cbfunc_t done, void *arg)
{
    (void)p, (void)info, (void)ninfo, (void)apps, (void)napps, (void)done, (void)arg;
    return PMIX_ERR_NOT_SUPPORTED;
}

static pmix_server_module_t upcalls = {
    .client_connected2 = on_connected,
    .client_finalized = on_finalized,
    .abort = on_abort,
    .fence_nb = on_fence,
    .direct_modex = on_direct_modex,
    .query = psets_query,
    .publish = names_publish,
    .lookup = names_lookup,
    .unpublish = names_unpublish,
    .spawn = on_spawn,
    .connect = on_connect,
    .disconnect = on_connect,
};

/* --- start ------------------------------------------------------------------------------------------------------- */

/* Settings of the library for its server side. The launcher's environment is not the ranks': theirs was kept apart. */
static void settle_environment(void)
{
    extern char **environ;
    for (char **e = environ; *e;) {
        char *name = xstrndup(*e, strcspn(*e, "="));
        if (environ_is_launchers(*e))
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
}

bool server_open(const struct job *j, const char *dir)
{
    pmix_info_t info[2];
    if (!*dir) return false;
    settle_environment();
    strncpy(self.job, j->name, sizeof self.job - 1);
    self.size = j->size;
    self.life = xcalloc((size_t)j->size, sizeof *self.life);
    self.event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    PMIX_INFO_LOAD(&info[0], PMIX_SERVER_TMPDIR, dir, PMIX_STRING);
    PMIX_INFO_LOAD(&info[1], PMIX_SYSTEM_TMPDIR, dir, PMIX_STRING);
    pmix_status_t rc = PMIx_server_init(&upcalls, info, 2);
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

static void add_u32(pmix_info_t **at, const char *key, int v)
{
    uint32_t u = (uint32_t)v;
    PMIX_INFO_LOAD(*at, key, &u, PMIX_UINT32);
    ++*at;
}

static void add_u16(pmix_info_t **at, const char *key, int v)
{
    uint16_t u = (uint16_t)v;
    PMIX_INFO_LOAD(*at, key, &u, PMIX_UINT16);
    ++*at;
}

static void add_rank(pmix_info_t **at, const char *key, int v)
{
    pmix_rank_t r = (pmix_rank_t)v;
    PMIX_INFO_LOAD(*at, key, &r, PMIX_PROC_RANK);
    ++*at;
}

static void add_text(pmix_info_t **at, const char *key, const char *text, pmix_data_type_t type)
{
    PMIX_INFO_LOAD(*at, key, text, type);
    ++*at;
}

/* An array of infos as one info; returns where its first element goes. */
static pmix_info_t *add_array(pmix_info_t **at, const char *key, size_t n)
{
    pmix_data_array_t *a;
    PMIX_DATA_ARRAY_CREATE(a, n, PMIX_INFO);
    PMIX_LOAD_KEY((*at)->key, key);
    (*at)->value.type = PMIX_DATA_ARRAY;
    (*at)->value.data.darray = a;
    ++*at;
    return a->array;
}

static void add_proc(pmix_info_t **at, const struct job *j, int r, int app_rank)
{
    enum { FIELDS = 8 };
    pmix_info_t *p = add_array(at, PMIX_PROC_DATA, FIELDS);
    add_rank(&p, PMIX_RANK, r);
    add_rank(&p, PMIX_GLOBAL_RANK, r);
    add_rank(&p, PMIX_APP_RANK, app_rank);
    add_u16(&p, PMIX_LOCAL_RANK, r);
    add_u16(&p, PMIX_NODE_RANK, r);
    add_u32(&p, PMIX_APPNUM, j->ranks[r].appnum);
    add_u32(&p, PMIX_NODEID, 0);
    add_text(&p, PMIX_HOSTNAME, hosts_self(), PMIX_STRING);
}

static void add_app(pmix_info_t **at, int appnum, int size, int leader)
{
    pmix_info_t *a = add_array(at, PMIX_APP_INFO_ARRAY, 3);
    add_u32(&a, PMIX_APPNUM, appnum);
    add_u32(&a, PMIX_APP_SIZE, size);
    add_rank(&a, PMIX_APPLDR, leader);
}

/* "0,1,2,..." */
static char *all_ranks(int n)
{
    char *list = xcalloc((size_t)n, 7), *p = list;
    for (int i = 0; i < n; i++) p += sprintf(p, i ? ",%d" : "%d", i);
    return list;
}

static void add_job(pmix_info_t **at, const struct job *j)
{
    char *ranks = all_ranks(j->size), *nodes = NULL, *procs = NULL;
    int universe = spec_universe(j->spec);
    PMIx_generate_regex(hosts_self(), &nodes);
    PMIx_generate_ppn(ranks, &procs);
    add_u32(at, PMIX_JOB_SIZE, j->size);
    add_u32(at, PMIX_UNIV_SIZE, universe);
    add_u32(at, PMIX_MAX_PROCS, universe);
    add_u32(at, PMIX_JOB_NUM_APPS, j->spec->napps);
    add_u32(at, PMIX_NUM_NODES, 1);
    add_u32(at, PMIX_LOCAL_SIZE, j->size);
    add_u32(at, PMIX_NODE_SIZE, j->size);
    add_u32(at, PMIX_NODEID, 0);
    add_rank(at, PMIX_LOCALLDR, 0);
    add_text(at, PMIX_JOBID, j->name, PMIX_STRING);
    add_text(at, PMIX_LOCAL_PEERS, ranks, PMIX_STRING);
    add_text(at, PMIX_NODE_MAP, nodes, PMIX_REGEX);
    add_text(at, PMIX_PROC_MAP, procs, PMIX_REGEX);
    add_text(at, PMIX_TMPDIR, j->guard.page->dir, PMIX_STRING);
    add_text(at, PMIX_NSDIR, j->guard.page->dir, PMIX_STRING);
    free(ranks);
}

void server_register(const struct job *j)
{
    enum { JOB_FIELDS = 15 };
    if (!self.up) return;
    psets_open(j);
    pmix_info_t *info, *at;
    size_t n = JOB_FIELDS + (size_t)j->spec->napps + (size_t)j->size;
    PMIX_INFO_CREATE(info, n); /* lives on: the library reads it later, on its thread */
    at = info;
    add_job(&at, j);
    for (int a = 0, first = 0; a < j->spec->napps; first += j->spec->apps[a++].n) {
        add_app(&at, a, j->spec->apps[a].n, first);
        for (int r = 0; r < j->spec->apps[a].n; r++) add_proc(&at, j, first + r, r);
    }
    pmix_status_t rc = PMIx_server_register_nspace(self.job, j->size, info, (size_t)(at - info), registered, NULL);
    for (int r = 0; r < j->size && rc == PMIX_SUCCESS; r++) {
        pmix_proc_t p;
        PMIX_PROC_LOAD(&p, self.job, (pmix_rank_t)r);
        rc = PMIx_server_register_client(&p, getuid(), getgid(), NULL, registered, NULL);
    }
    registered(rc, NULL);
}
