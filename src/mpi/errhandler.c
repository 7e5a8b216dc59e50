/*
 * errhandler.c - entry points: error handlers of communicators, sessions and windows (MPI-5.0
 * section 9.3). Those of files come with their chapter; making and
 * freeing a handler may happen at any time (11.4.1).
 */
#include "mpi/winargs.h"
#include "obj/session.h"

static int create(const char *call, enum errh_kind kind, errh_fn *fn, const char *argument, MPI_Errhandler *errhandler)
{
    if (!fn || !errhandler) return bad_null(NULL, call, errhandler ? argument : "errhandler");
    struct errhandler *e = errh_new(kind, fn);
    if (!e) return report(NULL, call, MPI_ERR_NO_MEM, "no memory for an error handler");
    *errhandler = errh_handle(e);
    return MPI_SUCCESS;
}

/* `place` is where the object keeps its handler. */
static int set(const void *on, struct errhandler **place, const char *call, enum errh_kind kind, MPI_Errhandler errhandler)
{
    struct errhandler *e = errh_of(errhandler);
    if (!e || !errh_fits(e, kind)) return bad_errhandler(on, call, errhandler);
    errh_set(place, e);
    return MPI_SUCCESS;
}

static int get(const void *on, struct errhandler *const *place, const char *call, MPI_Errhandler *errhandler)
{
    if (!errhandler) return bad_null(on, call, "errhandler");
    *errhandler = errh_handle(errh_get(place));
    return MPI_SUCCESS;
}

/* ---- communicators ---- */

static int comm_set(const char *call, MPI_Comm comm, MPI_Errhandler errhandler)
{
    struct comm *c = comm_of_local(comm);
    return c ? set(c, &c->errh, call, ERRH_COMM, errhandler) : bad_comm(call, comm);
}

static int comm_get(const char *call, MPI_Comm comm, MPI_Errhandler *errhandler)
{
    struct comm *c = comm_of_local(comm);
    return c ? get(c, &c->errh, call, errhandler) : bad_comm(call, comm);
}

MPI_ALIAS(Comm_create_errhandler);
int PMPI_Comm_create_errhandler(MPI_Comm_errhandler_function *comm_errhandler_fn, MPI_Errhandler *errhandler)
{
    return create("MPI_Comm_create_errhandler", ERRH_COMM, (errh_fn *)comm_errhandler_fn, "comm_errhandler_fn", errhandler);
}

MPI_ALIAS(Comm_set_errhandler);
int PMPI_Comm_set_errhandler(MPI_Comm comm, MPI_Errhandler errhandler)
{
    return comm_set("MPI_Comm_set_errhandler", comm, errhandler);
}

MPI_ALIAS(Comm_get_errhandler);
int PMPI_Comm_get_errhandler(MPI_Comm comm, MPI_Errhandler *errhandler)
{
    return comm_get("MPI_Comm_get_errhandler", comm, errhandler);
}

MPI_ALIAS(Comm_call_errhandler);
int PMPI_Comm_call_errhandler(MPI_Comm comm, int errorcode)
{
    struct comm *c = comm_of_local(comm);
    if (!c) return bad_comm("MPI_Comm_call_errhandler", comm);
    report_user(c, "MPI_Comm_call_errhandler", errorcode);
    return MPI_SUCCESS; /* the handler was called, and came back */
}

/* ---- sessions ---- */

MPI_ALIAS(Session_create_errhandler);
int PMPI_Session_create_errhandler(MPI_Session_errhandler_function *session_errhandler_fn, MPI_Errhandler *errhandler)
{
    return create("MPI_Session_create_errhandler", ERRH_SESSION, (errh_fn *)session_errhandler_fn, "session_errhandler_fn",
                  errhandler);
}

MPI_ALIAS(Session_set_errhandler);
int PMPI_Session_set_errhandler(MPI_Session session, MPI_Errhandler errhandler)
{
    struct session *s = session_of(session);
    if (!s) return bad_session("MPI_Session_set_errhandler", session);
    return set(s, &s->errh, "MPI_Session_set_errhandler", ERRH_SESSION, errhandler);
}

MPI_ALIAS(Session_get_errhandler);
int PMPI_Session_get_errhandler(MPI_Session session, MPI_Errhandler *errhandler)
{
    struct session *s = session_of(session);
    if (!s) return bad_session("MPI_Session_get_errhandler", session);
    return get(s, &s->errh, "MPI_Session_get_errhandler", errhandler);
}

MPI_ALIAS(Session_call_errhandler);
int PMPI_Session_call_errhandler(MPI_Session session, int errorcode)
{
    struct session *s = session_of(session);
    if (!s) return bad_session("MPI_Session_call_errhandler", session);
    report_user(s, "MPI_Session_call_errhandler", errorcode);
    return MPI_SUCCESS;
}

/* ---- windows ---- */

MPI_ALIAS(Win_create_errhandler);
int PMPI_Win_create_errhandler(MPI_Win_errhandler_function *win_errhandler_fn, MPI_Errhandler *errhandler)
{
    return create("MPI_Win_create_errhandler", ERRH_WIN, (errh_fn *)win_errhandler_fn, "win_errhandler_fn", errhandler);
}

MPI_ALIAS(Win_set_errhandler);
int PMPI_Win_set_errhandler(MPI_Win win, MPI_Errhandler errhandler)
{
    struct win *w = win_of(win);
    if (!w) return bad_win("MPI_Win_set_errhandler", win);
    return set(w, &w->errh, "MPI_Win_set_errhandler", ERRH_WIN, errhandler);
}

MPI_ALIAS(Win_get_errhandler);
int PMPI_Win_get_errhandler(MPI_Win win, MPI_Errhandler *errhandler)
{
    struct win *w = win_of(win);
    if (!w) return bad_win("MPI_Win_get_errhandler", win);
    return get(w, &w->errh, "MPI_Win_get_errhandler", errhandler);
}

MPI_ALIAS(Win_call_errhandler);
int PMPI_Win_call_errhandler(MPI_Win win, int errorcode)
{
    struct win *w = win_of(win);
    if (!w) return bad_win("MPI_Win_call_errhandler", win);
    report_user(w, "MPI_Win_call_errhandler", errorcode);
    return MPI_SUCCESS;
}

/* ---- all ---- */

MPI_ALIAS(Errhandler_free);
int PMPI_Errhandler_free(MPI_Errhandler *errhandler)
{
    if (!errhandler) return bad_null(NULL, "MPI_Errhandler_free", "errhandler");
    struct errhandler *e = errh_of(*errhandler);
    if (!e) return bad_errhandler(NULL, "MPI_Errhandler_free", *errhandler);
    errh_unref(e); /* objects that use it keep it alive */
    *errhandler = MPI_ERRHANDLER_NULL;
    return MPI_SUCCESS;
}

/* ---- by their first names, which were removed in MPI 3 and which old programs use ---- */

MPI_ALIAS(Errhandler_create);
int PMPI_Errhandler_create(MPI_Handler_function *handler_fn, MPI_Errhandler *errhandler)
{
    return create("MPI_Errhandler_create", ERRH_COMM, (errh_fn *)handler_fn, "handler_fn", errhandler);
}

MPI_ALIAS(Errhandler_set);
int PMPI_Errhandler_set(MPI_Comm comm, MPI_Errhandler errhandler)
{
    return comm_set("MPI_Errhandler_set", comm, errhandler);
}

MPI_ALIAS(Errhandler_get);
int PMPI_Errhandler_get(MPI_Comm comm, MPI_Errhandler *errhandler)
{
    return comm_get("MPI_Errhandler_get", comm, errhandler);
}
