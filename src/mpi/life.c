/* life.c - see life.h. */
#include "mpi/life.h"
#include "base/sleep.h"
#include "base/var.h"
#include "coll/coll.h"
#include "mpi/attr.h"
#include "mpi/report.h"
#include "obj/errcode.h"
#include "proc/job.h"
#include "proc/proc.h"
#include "proc/pset.h"
#include "pt2pt/api.h"
#include "pt2pt/bsend.h"
#include "topo/topo.h"
#include "transport/peer.h"

#include <pthread.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int users;
static bool shared;     /* threads share the library: it takes locks */
static pthread_t owner; /* as long as they do not: the thread that all users belong to */
static pid_t opener; /* the process in which the layers are open: a child of fork has them not; 0: they are closed */

/* Twelve bits that differ between jobs most of the time: part of every context id. */
static uint32_t job_tag(const char *job)
{
    uint32_t h = 2166136261u;
    for (; *job; job++) h = (h ^ (uint8_t)*job) * 16777619u;
    return (h ^ h >> 12 ^ h >> 24) & 0xfff;
}

/* From below to above; each bears being closed without having been opened. */
static int open_layers(void)
{
    int rc = var_open();
    if (!rc) rc = proc_open();
    if (rc) return rc;
    const struct proc_info *me = proc_self();
    attrs_open();
    topo_open();
    group_open(me->rank);
    if ((rc = request_open()) || (rc = type_open()) || (rc = op_open()) || (rc = peer_open()) || (rc = pt_open(false)) ||
        (rc = coll_open()))
        return rc;
    return comm_open(job_tag(me->job), me->rank);
}

static void close_layers(void)
{
    comm_close();
    attrs_close();
    topo_close();
    coll_close();
    pt_close();
    peer_close();
    op_close();
    type_close();
    group_close();
    pset_close();
    proc_close();
    var_close();
}

static int first_open(void)
{
    if (opener) return 0;
    int rc = open_layers();
    if (rc) close_layers();
    else opener = getpid();
    return rc;
}

/* The library takes locks from now on if it must: for threads, or for a second one of those that each are alone. */
static void settle_threads(bool threads)
{
    if (!users) {
        owner = pthread_self();
        pt_own();
    }
    if (shared || (!threads && pthread_equal(owner, pthread_self()))) return;
    shared = true;
    pt_share();
}

static int open_locked(bool threads)
{
    int rc = first_open();
    if (rc) return rc;
    settle_threads(threads);
    if (!users++) {
        proc_state(JOB_LIFE_INITIALISED);
        mpi_running = true;
    }
    return 0;
}

int life_open(bool threads)
{
    pthread_mutex_lock(&lock);
    int rc = open_locked(threads);
    pthread_mutex_unlock(&lock);
    return rc;
}

static void last_close(void)
{
    bsend_drop(bsend_process());
    comm_drop_left();
    mpi_running = false;
    proc_state(JOB_LIFE_FINALISED);
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

/* The process exits, or the library is unloaded. Who did not finalise may have threads in the library: all stays as it is. */
static __attribute__((destructor)) void leave(void)
{
    if (users || (opener && opener != getpid())) return;
    if (opener) close_layers();
    opener = 0;
    errcode_close();
    handle_close();
}
