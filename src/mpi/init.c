/*
 * init.c - entry points: the world model, MPI_Init, MPI_Finalize and their company
 * (MPI-5.0 sections 11.2, 11.4).
 */
#include "coll/coll.h"
#include "dpm/dpm.h"
#include "mpi/attr.h"
#include "mpi/dynamic.h"
#include "mpi/life.h"
#include "mpi/report.h"
#include "proc/proc.h"
#include "pt2pt/api.h"
#include "pt2pt/bsend.h"

#include <pthread.h>
#include <stdio.h>

/* Asked at any time by any thread. */
static _Atomic bool was_started, was_finalized;
static int thread_level;
static pthread_t main_thread;

static void close_world(void)
{
    world_running = false;
    dynamic_close();
    comm_world_close();
}

/* The world, and the parents of a process that was spawned. */
static int open_world(void)
{
    int rc = comm_world_open(proc_self()->size);
    if (rc) return rc;
    world_running = true;
    rc = dpm_may_have_parent() ? dynamic_open() : 0;
    if (rc) close_world();
    return rc;
}

/* If one of them fails, those before it are closed: the process may try again, or end. */
static int open_all(int level)
{
    int rc = life_open(level);
    if (rc) return rc;
    rc = life_help(level, NULL);
    if (!rc) rc = open_world();
    if (!rc) return 0;
    err_keep(&world_running, rc);
    life_close();
    err_recall(&world_running, rc);
    return rc;
}

static int start(const char *call, int required, int *provided)
{
    if (was_started)
        return report(NULL, call, MPI_ERR_OTHER, "MPI was initialised already; it can be done once in a process");
    int level = required <= MPI_THREAD_SINGLE       ? MPI_THREAD_SINGLE
                : required <= MPI_THREAD_FUNNELED   ? MPI_THREAD_FUNNELED
                : required <= MPI_THREAD_SERIALIZED ? MPI_THREAD_SERIALIZED
                                                    : MPI_THREAD_MULTIPLE;
    int rc = open_all(level);
    if (rc) return report_code(NULL, call, rc);
    thread_level = level;
    main_thread = pthread_self();
    was_started = true; /* at last: a thread that sees it may ask for all of the above */
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

static void end_world(void)
{
    was_finalized = true;
    close_world();
    life_leave();
    life_close();
}

MPI_ALIAS(Finalize);
int PMPI_Finalize(void)
{
    check_world("MPI_Finalize");
    /* First of all: callbacks may still communicate (11.2.4). */
    int rc = comm_attrs_delete(comm_self());
    if (!rc) rc = comm_attrs_delete(comm_world());
    if (rc) return report_attr(NULL, "MPI_Finalize", rc);
    bsend_drop(bsend_process());
    /* Everybody has received what was sent: the segments of this process may go. */
    pt_drain();
    pt_finalize_begin(life_users() == 1); /* sessions may go on */
    rc = coll_last_barrier(comm_world());
    int said = rc ? report_code(comm_world(), "MPI_Finalize", rc) : MPI_SUCCESS;
    /* a lost process, or one that calls something else, is told of, and keeps nobody from ending */
    if (!rc || err_is_of_peer(rc) || rc == TERN_ERR_DISAGREE) end_world();
    pt_finalize_end();
    return said;
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
    check_world("MPI_Query_thread");
    if (!provided) return bad_null(NULL, "MPI_Query_thread", "provided");
    *provided = thread_level;
    return MPI_SUCCESS;
}

MPI_ALIAS(Is_thread_main);
int PMPI_Is_thread_main(int *flag)
{
    check_world("MPI_Is_thread_main");
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
    const char *name = comm_name(c);
    snprintf(words, sizeof words, "rank %u called MPI_Abort(%s, %d). The job is ended.", proc_self()->rank,
             *name ? name : "a communicator", errorcode);
    proc_abort(errorcode, words);
}
