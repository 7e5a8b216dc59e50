/* errhandler.c - the predefined error handlers and users' own. */
#include "obj/errhandler.h"

#include <stdlib.h>
#include <strings.h>

static struct errhandler fatal = {{HANDLE_ERRHANDLER, 1}, ERRH_FATAL, ERRH_ANY, (uintptr_t)MPI_ERRORS_ARE_FATAL, NULL};
static struct errhandler giveback = {{HANDLE_ERRHANDLER, 1}, ERRH_RETURN, ERRH_ANY, (uintptr_t)MPI_ERRORS_RETURN, NULL};
static struct errhandler abort_comm = {{HANDLE_ERRHANDLER, 1}, ERRH_ABORT, ERRH_ANY, (uintptr_t)MPI_ERRORS_ABORT, NULL};

/* When the library is loaded, behind the handles' own constructor: a session may get its handler before anything runs. */
__attribute__((constructor(102))) void errh_open(void)
{
    handle_define((uintptr_t)MPI_ERRORS_ARE_FATAL, &fatal);
    handle_define((uintptr_t)MPI_ERRORS_RETURN, &giveback);
    handle_define((uintptr_t)MPI_ERRORS_ABORT, &abort_comm);
}

struct errhandler *errh_fatal(void) { return &fatal; }

struct errhandler *errh_initial(void)
{
    const char *said = getenv("TERN_INITIAL_ERRHANDLER"); /* set by mpiexec; read here since it counts before MPI_Init */
    if (!said || !*said) return &fatal;
    if (!strcasecmp(said, "mpi_errors_return")) return &giveback;
    if (!strcasecmp(said, "mpi_errors_abort")) return &abort_comm;
    return &fatal;
}

MPI_Errhandler errh_handle(struct errhandler *e)
{
    return e->predefined ? (MPI_Errhandler)e->predefined : (MPI_Errhandler)e;
}

struct errhandler *errh_new(enum errh_kind kind, errh_fn *fn)
{
    struct errhandler *e = handle_alloc(HANDLE_ERRHANDLER, sizeof *e);
    if (!e) return NULL;
    e->action = ERRH_USER;
    e->kind = kind;
    e->fn = fn;
    return e;
}

struct errhandler *errh_ref(struct errhandler *e)
{
    /* relaxed: who refs owns one already */
    if (!e->predefined) atomic_fetch_add_explicit(&e->h.refs, 1, memory_order_relaxed);
    return e;
}

void errh_unref(struct errhandler *e)
{
    if (e->predefined) return;
    /* acq_rel: the last owner sees what the others did with it */
    if (atomic_fetch_sub_explicit(&e->h.refs, 1, memory_order_acq_rel) == 1) handle_release(e, sizeof *e);
}

struct errhandler *errh_get(struct errhandler *const *place)
{
    handle_state_lock();
    struct errhandler *e = *place ? errh_ref(*place) : NULL;
    handle_state_unlock();
    return e;
}

void errh_set(struct errhandler **place, struct errhandler *e)
{
    errh_ref(e);
    handle_state_lock();
    struct errhandler *old = *place;
    *place = e;
    handle_state_unlock();
    if (old) errh_unref(old);
}

void errh_call(const struct errhandler *e, void *handle, int *code)
{
    MPI_Comm comm = handle;
    MPI_Session session = handle;
    MPI_Win win = handle;
    MPI_File file = handle;
    switch (e->kind) {
    case ERRH_ANY: break;
    case ERRH_COMM: ((MPI_Comm_errhandler_function *)e->fn)(&comm, code); break;
    case ERRH_SESSION: ((MPI_Session_errhandler_function *)e->fn)(&session, code); break;
    case ERRH_WIN: ((MPI_Win_errhandler_function *)e->fn)(&win, code); break;
    case ERRH_FILE: ((MPI_File_errhandler_function *)e->fn)(&file, code); break;
    }
}
