/* life.c - see life.h. */
#include "mpi/life.h"
#include "base/sleep.h"
#include "base/var.h"
#include "coll/coll.h"
#include "dpm/dpm.h"
#include "mpi/attr.h"
#include "mpi/report.h"
#include "obj/errcode.h"
#include "obj/hints.h"
#include "proc/job_block.h"
#include "proc/proc.h"
#include "proc/pset.h"
#include "pt2pt/api.h"
#include "pt2pt/bsend.h"
#include "pt2pt/stats.h"
#include "rma/rma.h"
#include "topo/topo.h"
#include "transport/peer.h"

#include <mpi.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int users;
static int threads;     /* that have called so far, also while the library was closed */
static bool watched;    /* threads may call at the same time: the second one that calls makes the library take locks */
static bool shared;     /* it takes locks */
/* As long as threads may not: the thread that all users belong to, or there is one user, whose threads take turns. */
static pthread_t owner;
static bool serialized;
static bool leaving;    /* MPI_Finalize was called */
static pid_t opener;    /* the process in which the layers are open: a child of fork has them not; 0: they are closed */

static int open_facts(void)
{
    attrs_open();
    topo_open();
    group_open(proc_self()->rank);
    return 0;
}

static void close_facts(void)
{
    pset_close();
    group_close();
    topo_close();
    attrs_close();
}

static int open_lane(void) { return pt_open(false); }
static int open_comms(void) { return comm_open(proc_self()->rank); }

/* From below to above. One that fails to open bears being closed; one that was not begun need not. */
static const struct layer {
    int (*open)(void);
    void (*close)(void);
} layers[] = {
    {var_open, var_close},   {proc_open, proc_close},  {dpm_open, dpm_close}, {open_facts, close_facts}, {request_open, request_close},
    {type_open, type_close}, {op_open, op_close},      {coll_choose_open, coll_choose_close},
    {pt_register, pt_unregister}, {rma_register, rma_unregister}, {peers_open, peers_close}, {open_lane, pt_close},
    {coll_open, coll_close}, {rma_open, rma_close},   {open_comms, comm_close},
};

static void close_layers(size_t n)
{
    while (n-- > 0) layers[n].close();
}

static int open_layers(void)
{
    for (size_t n = 0; n < ARRAY_LEN(layers); n++) {
        int rc = layers[n].open();
        if (!rc) continue;
        close_layers(n + 1);
        return rc;
    }
    return 0;
}

static int first_open(void)
{
    int rc = opener ? 0 : open_layers();
    if (!rc) opener = getpid();
    return rc;
}

static int share(bool others)
{
    int rc = pt_share(others);
    shared = !rc;
    return rc;
}

/* A thread calls for the first time: if the one that called so far is not to be alone any more, it may be anywhere. */
static void thread_came(void)
{
    pthread_mutex_lock(&lock);
    threads++;
    if (watched && !shared && share(true)) proc_abort(1, err_words());
    pthread_mutex_unlock(&lock);
}

static __attribute__((constructor)) void notice_threads(void) { handle_thread_came = thread_came; }

/* The library takes locks from now on if it must: for threads that call at the same time, or for a second user unless all of
 * them are one thread's. As long as one thread has called, it only makes ready. */
static int settle_threads(int level)
{
    bool own = users && !serialized && pthread_equal(owner, pthread_self()); /* all users are this thread's */
    if (!users) {
        owner = pthread_self();
        serialized = level == MPI_THREAD_SERIALIZED;
        if (serialized) request_of_threads();
    }
    if (shared || watched || (users ? own && level < MPI_THREAD_SERIALIZED : level < MPI_THREAD_MULTIPLE)) return 0;
    int rc = threads == 1 ? pt_share_prepare() : share(users && !own);
    watched = !rc;
    return rc;
}

static int open_locked(int level)
{
    int rc = first_open();
    if (!rc) rc = settle_threads(level);
    if (rc) return rc;
    if (!users++) {
        proc_state(JOB_LIFE_INITIALISED);
        mpi_running = true;
    }
    return 0;
}

int life_open(int level)
{
    handle_know_thread();
    pthread_mutex_lock(&lock);
    int rc = open_locked(level);
    pthread_mutex_unlock(&lock);
    return rc;
}

bool life_knows_progress(const char *word)
{
    return !strcmp(word, "auto") || !strcmp(word, "caller") || !strcmp(word, "helper");
}

int life_help(int level, const char *word)
{
    if (var_is_set(VAR_PROGRESS) || !word) word = var_text(VAR_PROGRESS);
    bool wanted = !strcmp(word, "helper") || (!strcmp(word, "auto") && level == MPI_THREAD_MULTIPLE && pt_help_has_core());
    pthread_mutex_lock(&lock);
    int rc = wanted ? pt_help() : 0;
    pthread_mutex_unlock(&lock);
    return rc;
}

int life_take_hints(struct comm *c, struct info *given)
{
    int rc = comm_hints_set(c, given);
    const char *word = rc ? NULL : info_get(c->info, "tern_progress");
    return word ? life_help(MPI_THREAD_SINGLE, word) : rc;
}

static void last_close(void)
{
    pt_help_no_more();
    bsend_drop(bsend_process());
    dpm_close_ports();
    comm_drop_left();
    coll_settle();
    stats_say();
    mpi_running = false;
    proc_state(JOB_LIFE_FINALISED);
    if (leaving) proc_leave();
}

void life_leave(void)
{
    pthread_mutex_lock(&lock);
    leaving = true;
    pthread_mutex_unlock(&lock);
}

void life_close(void)
{
    pt_drain();
    pthread_mutex_lock(&lock);
    if (!--users) last_close();
    pthread_mutex_unlock(&lock);
}

int life_users(void)
{
    pthread_mutex_lock(&lock);
    int n = users;
    pthread_mutex_unlock(&lock);
    return n;
}

/* The process exits, or the library is unloaded. Who did not finalise may have threads in the library: all stays as it
 * is. */
static __attribute__((destructor)) void leave(void)
{
    if (users || (opener && opener != getpid())) return;
    if (opener) close_layers(ARRAY_LEN(layers));
    opener = 0;
    errcode_close();
    handle_close();
}
