/*
 * errhandler.c - entry points: error handlers of communicators, error classes and
 * their words (MPI-5.0 sections 9.3, 9.4).
 */
#include "mpi/report.h"

#include <stdio.h>
#include <string.h>

static int bad_errhandler(struct comm *c, const char *call, MPI_Errhandler h)
{
    check_running(call);
    if (h == MPI_ERRHANDLER_NULL) return report(c, call, MPI_ERR_ERRHANDLER, "argument errhandler is MPI_ERRHANDLER_NULL");
    return report(c, call, MPI_ERR_ERRHANDLER, "argument errhandler (%p) is not an error handler, or one that was freed", (void *)h);
}

MPI_ALIAS(Comm_create_errhandler);
int PMPI_Comm_create_errhandler(MPI_Comm_errhandler_function *comm_errhandler_fn, MPI_Errhandler *errhandler)
{
    const char *call = "MPI_Comm_create_errhandler";
    check_running(call);
    if (!comm_errhandler_fn || !errhandler) return bad_null(NULL, call, errhandler ? "comm_errhandler_fn" : "errhandler");
    struct errhandler *e = errh_new(comm_errhandler_fn);
    if (!e) return report(NULL, call, MPI_ERR_NO_MEM, "no memory for an error handler");
    *errhandler = errh_handle(e);
    return MPI_SUCCESS;
}

MPI_ALIAS(Comm_set_errhandler);
int PMPI_Comm_set_errhandler(MPI_Comm comm, MPI_Errhandler errhandler)
{
    struct comm *c = comm_of(comm);
    if (!c) return bad_comm("MPI_Comm_set_errhandler", comm);
    struct errhandler *e = errh_of(errhandler);
    if (!e) return bad_errhandler(c, "MPI_Comm_set_errhandler", errhandler);
    struct errhandler *old = c->errh;
    c->errh = errh_ref(e);
    errh_unref(old);
    return MPI_SUCCESS;
}

MPI_ALIAS(Comm_get_errhandler);
int PMPI_Comm_get_errhandler(MPI_Comm comm, MPI_Errhandler *errhandler)
{
    struct comm *c = comm_of(comm);
    if (!c) return bad_comm("MPI_Comm_get_errhandler", comm);
    if (!errhandler) return bad_null(c, "MPI_Comm_get_errhandler", "errhandler");
    *errhandler = errh_handle(errh_ref(c->errh));
    return MPI_SUCCESS;
}

MPI_ALIAS(Comm_call_errhandler);
int PMPI_Comm_call_errhandler(MPI_Comm comm, int errorcode)
{
    struct comm *c = comm_of(comm);
    if (!c) return bad_comm("MPI_Comm_call_errhandler", comm);
    report_user(c, "MPI_Comm_call_errhandler", errorcode);
    return MPI_SUCCESS; /* the handler was called, and came back */
}

MPI_ALIAS(Errhandler_free);
int PMPI_Errhandler_free(MPI_Errhandler *errhandler)
{
    check_running("MPI_Errhandler_free");
    if (!errhandler) return bad_null(NULL, "MPI_Errhandler_free", "errhandler");
    struct errhandler *e = errh_of(*errhandler);
    if (!e) return bad_errhandler(NULL, "MPI_Errhandler_free", *errhandler);
    errh_unref(e);
    *errhandler = MPI_ERRHANDLER_NULL;
    return MPI_SUCCESS;
}

/* ---- words: may be called at any time ---- */

/* The codes of this library are the classes. */
MPI_ALIAS(Error_class);
int PMPI_Error_class(int errorcode, int *errorclass)
{
    if (!errorclass) return bad_null(NULL, "MPI_Error_class", "errorclass");
    if (!error_name(errorcode)) return report(NULL, "MPI_Error_class", MPI_ERR_ARG, "argument errorcode is %d, which is no error code", errorcode);
    *errorclass = errorcode;
    return MPI_SUCCESS;
}

/* The class in words; and where this thread's last failure was of this class, what it was. */
MPI_ALIAS(Error_string);
int PMPI_Error_string(int errorcode, char *string, int *resultlen)
{
    const char *call = "MPI_Error_string";
    if (!string || !resultlen) return bad_null(NULL, call, string ? "resultlen" : "string");
    const char *name = error_name(errorcode);
    if (!name) return report(NULL, call, MPI_ERR_ARG, "argument errorcode is %d, which is no error code", errorcode);
    const char *details = errorcode == MPI_SUCCESS ? "" : report_last(errorcode);
    snprintf(string, MPI_MAX_ERROR_STRING, "%s: %s%s%s", name, error_sentence(errorcode), *details ? ": " : "", details);
    *resultlen = (int)strlen(string);
    return MPI_SUCCESS;
}
