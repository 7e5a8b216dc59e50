/* errhandler.c - the predefined error handlers and users' own. */
#include "obj/errhandler.h"

static struct errhandler fatal = {{HANDLE_ERRHANDLER, 1}, ERRH_FATAL, (uintptr_t)MPI_ERRORS_ARE_FATAL, NULL};
static struct errhandler giveback = {{HANDLE_ERRHANDLER, 1}, ERRH_RETURN, (uintptr_t)MPI_ERRORS_RETURN, NULL};
static struct errhandler abort_comm = {{HANDLE_ERRHANDLER, 1}, ERRH_ABORT, (uintptr_t)MPI_ERRORS_ABORT, NULL};

void errh_open(void)
{
    handle_define((uintptr_t)MPI_ERRORS_ARE_FATAL, &fatal);
    handle_define((uintptr_t)MPI_ERRORS_RETURN, &giveback);
    handle_define((uintptr_t)MPI_ERRORS_ABORT, &abort_comm);
}

struct errhandler *errh_fatal(void) { return &fatal; }

MPI_Errhandler errh_handle(struct errhandler *e)
{
    return e->predefined ? (MPI_Errhandler)e->predefined : (MPI_Errhandler)e;
}

struct errhandler *errh_new(MPI_Comm_errhandler_function *fn)
{
    struct errhandler *e = handle_alloc(HANDLE_ERRHANDLER, sizeof *e);
    if (!e) return NULL;
    e->action = ERRH_USER;
    e->comm_fn = fn;
    return e;
}

struct errhandler *errh_ref(struct errhandler *e)
{
    handle_ref(&e->h);
    return e;
}

void errh_unref(struct errhandler *e)
{
    if (!handle_unref(&e->h) || e->predefined) return;
    handle_release(e, sizeof *e);
}
