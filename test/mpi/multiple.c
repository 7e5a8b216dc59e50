/*
 * multiple.c - a library for LD_PRELOAD (`make check-multiple`): the program gets MPI_THREAD_MULTIPLE, whatever it asks
 * for, and a second thread of it calls MPI before MPI_Init or MPI_Session_init returns. So every MPI program becomes a
 * test of what is done for threads.
 *
 *     TERN_TEST_SECOND=once    (default) the second thread calls once and ends
 *     TERN_TEST_SECOND=looks   the second thread of MPI_Init looks for messages until MPI_Finalize
 *
 * The second thread uses communicators of this process alone, and receives nothing. A session that asks for a level
 * which does not exist is left to the library.
 */
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static pthread_t looker;
static bool have_looker;
static _Atomic bool looker_must_end;
static int level_asked = MPI_THREAD_SINGLE; /* by the program, which is told that it has got it */

static void must(int code, const char *what)
{
    if (!code) return;
    fprintf(stderr, "multiple.c: %s failed with code %d\n", what, code);
    abort();
}

static void look(MPI_Comm comm)
{
    int flag;
    must(PMPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &flag, MPI_STATUS_IGNORE), "MPI_Iprobe");
}

/* The program's signals are not for the second thread. */
static pthread_t start_second(void *(*run)(void *), void *arg)
{
    pthread_t second;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    must(pthread_create(&second, NULL, run, arg), "pthread_create");
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return second;
}

/* ---- the world ---- */

static void *look_once(void *none)
{
    look(MPI_COMM_SELF);
    return none;
}

static void *look_on(void *none)
{
    while (!atomic_load(&looker_must_end)) {
        look(MPI_COMM_SELF);
        nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
    }
    return none;
}

static void use_second(void)
{
    const char *how = getenv("TERN_TEST_SECOND");
    pthread_join(start_second(look_once, NULL), NULL);
    if (!how || strcmp(how, "looks")) return;
    looker = start_second(look_on, NULL);
    have_looker = true;
}

static int init(int *argc, char ***argv)
{
    int provided = MPI_THREAD_SINGLE;
    int code = PMPI_Init_thread(argc, argv, MPI_THREAD_MULTIPLE, &provided);
    if (code) return code;
    must(provided != MPI_THREAD_MULTIPLE, "to get MPI_THREAD_MULTIPLE");
    use_second();
    return code;
}

int MPI_Init(int *argc, char ***argv) { return init(argc, argv); }

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    if (!provided) return PMPI_Init_thread(argc, argv, required, provided);
    int code = init(argc, argv);
    if (!code) *provided = level_asked = required;
    return code;
}

int MPI_Query_thread(int *provided)
{
    int code = PMPI_Query_thread(provided);
    if (!code) *provided = level_asked;
    return code;
}

int MPI_Finalize(void)
{
    atomic_store(&looker_must_end, true);
    if (have_looker) pthread_join(looker, NULL);
    have_looker = false;
    return PMPI_Finalize();
}

/* ---- sessions ---- */

static void *look_in_session(void *session)
{
    MPI_Group self;
    MPI_Comm comm;
    must(PMPI_Group_from_session_pset(*(MPI_Session *)session, "mpi://SELF", &self), "MPI_Group_from_session_pset");
    must(PMPI_Comm_create_from_group(self, "multiple", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm),
         "MPI_Comm_create_from_group");
    look(comm);
    must(PMPI_Comm_free(&comm), "MPI_Comm_free");
    must(PMPI_Group_free(&self), "MPI_Group_free");
    return NULL;
}

/* The level of the session is one that exists, and not MPI_THREAD_MULTIPLE, which is that of sessions that ask for
 * none. */
static bool is_lower(MPI_Info info)
{
    static const char *const lower[] = {"MPI_THREAD_SINGLE", "MPI_THREAD_FUNNELED", "MPI_THREAD_SERIALIZED"};
    char level[MPI_MAX_INFO_VAL];
    int n = sizeof level, flag = 0;
    if (info == MPI_INFO_NULL || PMPI_Info_get_string(info, "thread_level", &n, level, &flag) || !flag) return false;
    for (int i = 0; i < 3; i++)
        if (!strcmp(level, lower[i])) return true;
    return false;
}

int MPI_Session_init(MPI_Info info, MPI_Errhandler errhandler, MPI_Session *session)
{
    bool lower = is_lower(info);
    if (lower) {
        must(PMPI_Info_dup(info, &info), "MPI_Info_dup");
        must(PMPI_Info_set(info, "thread_level", "MPI_THREAD_MULTIPLE"), "MPI_Info_set");
    }
    int code = PMPI_Session_init(info, errhandler, session);
    if (lower) PMPI_Info_free(&info);
    if (!code) pthread_join(start_second(look_in_session, session), NULL);
    return code;
}
