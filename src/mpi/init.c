/*
 * init.c - the life of the library: MPI_Init, MPI_Finalize and their company
 * (MPI-5.0 sections 11.2, 11.4).
 */
#include "base/sleep.h"
#include "base/var.h"
#include "coll/coll.h"
#include "mpi/attr.h"
#include "mpi/report.h"
#include "proc/job.h"
#include "proc/proc.h"
#include "pt2pt/api.h"
#include "pt2pt/bsend.h"
#include "transport/peer.h"

#include <pthread.h>
#include <stdio.h>

static bool was_started, was_finalized;
static int thread_level;
static pthread_t main_thread;

/* Twelve bits that differ between jobs most of the time: part of every context id. */
static uint32_t job_tag(const char *job)
{
    uint32_t h = 2166136261u;
    for (; *job; job++) h = (h ^ (uint8_t)*job) * 16777619u;
    return (h ^ h >> 12 ^ h >> 24) & 0xfff;
}

static int open_layers(int level)
{
    int rc = var_open();
    if (!rc) rc = proc_open();
    if (rc) return rc;
    const struct proc_info *me = proc_self();
    handle_set_threaded(level == MPI_THREAD_MULTIPLE);
    errh_open();
    attrs_open();
    group_open(me->rank);
    if ((rc = request_open()) || (rc = type_open()) || (rc = op_open()) || (rc = peer_open()) || (rc = pt_open(level == MPI_THREAD_MULTIPLE)) ||
        (rc = coll_open()))
        return rc;
    return comm_open(job_tag(me->job), me->rank, me->size);
}

static void close_layers(void)
{
    comm_close();
    attrs_close();
    bsend_close();
    coll_close();
    pt_close();
    peer_close();
    op_close();
    type_close();
    group_close();
    proc_close();
    var_close();
    handle_close();
}

static int start(const char *call, int required, int *provided)
{
    if (was_started)
        return report(NULL, call, MPI_ERR_OTHER, "MPI was initialised already; it can be done once in a process");
    int level = required <= MPI_THREAD_SINGLE       ? MPI_THREAD_SINGLE
                : required <= MPI_THREAD_FUNNELED   ? MPI_THREAD_FUNNELED
                : required <= MPI_THREAD_SERIALIZED ? MPI_THREAD_SERIALIZED
                                                    : MPI_THREAD_MULTIPLE;
    int rc = open_layers(level);
    if (rc) return report_code(NULL, call, rc);
    was_started = mpi_running = true;
    thread_level = level;
    main_thread = pthread_self();
    proc_state(JOB_LIFE_INITIALISED);
    if (provided) *provided = level;
    return MPI_SUCCESS;
}

MPI_ALIAS(Init);
int PMPI_Init(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    return start("MPI_Init", MPI_THREAD_SINGLE, NULL);
}

MPI_ALIAS(Init_thread);
int PMPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    (void)argc, (void)argv;
    if (!provided) return bad_null(NULL, "MPI_Init_thread", "provided");
    return start("MPI_Init_thread", required, provided);
}

MPI_ALIAS(Finalize);
int PMPI_Finalize(void)
{
    check_running("MPI_Finalize");
    /* First of all: callbacks may still communicate (11.2.4). */
    int rc = comm_attrs_delete(comm_self());
    if (!rc) rc = comm_attrs_delete(comm_world());
    if (rc) return report_attr(NULL, "MPI_Finalize", rc);
    /* Everybody has received what was sent: the segments of this process may go. */
    pt_drain();
    rc = coll_barrier(comm_world());
    if (rc) return report_code(comm_world(), "MPI_Finalize", rc);
    proc_state(JOB_LIFE_FINALISED);
    mpi_running = false;
    was_finalized = true;
    close_layers();
    return MPI_SUCCESS;
}

MPI_ALIAS(Initialized);
int PMPI_Initialized(int *flag)
{
    if (!flag) return bad_null(NULL, "MPI_Initialized", "flag");
    *flag = was_started;
    return MPI_SUCCESS;
}

MPI_ALIAS(Finalized);
int PMPI_Finalized(int *flag)
{
    if (!flag) return bad_null(NULL, "MPI_Finalized", "flag");
    *flag = was_finalized;
    return MPI_SUCCESS;
}

MPI_ALIAS(Query_thread);
int PMPI_Query_thread(int *provided)
{
    check_running("MPI_Query_thread");
    if (!provided) return bad_null(NULL, "MPI_Query_thread", "provided");
    *provided = thread_level;
    return MPI_SUCCESS;
}

MPI_ALIAS(Is_thread_main);
int PMPI_Is_thread_main(int *flag)
{
    check_running("MPI_Is_thread_main");
    if (!flag) return bad_null(NULL, "MPI_Is_thread_main", "flag");
    *flag = pthread_equal(main_thread, pthread_self()) != 0;
    return MPI_SUCCESS;
}

MPI_ALIAS(Abort);
int PMPI_Abort(MPI_Comm comm, int errorcode)
{
    check_running("MPI_Abort");
    struct comm *c = comm_of(comm);
    if (!c) return bad_comm("MPI_Abort", comm);
    char words[256];
    snprintf(words, sizeof words, "rank %u called MPI_Abort(%s, %d). The job is ended.", proc_self()->rank,
             c->name[0] ? c->name : "a communicator", errorcode);
    proc_abort(errorcode, words);
}
