/*
 * report.h - errors at the surface: argument checks that several chapters share,
 * and the way from a failure to the user's error handler.
 *
 * Below src/mpi there are codes (base/err.h) and words; here they become error
 * classes of the standard (MPI-5.0 section 9.4) and are given to the handler of the
 * object that the call is about (a communicator, a session ...); where it has none, of
 * MPI_COMM_SELF in the world model (MPI_COMM_WORLD if only that one's was ever set), else
 * to the initial one (9.3).
 *
 * A failing call says one line: rank and host, the call, the argument with its
 * value, why.
 */
#ifndef TERN_MPI_REPORT_H
#define TERN_MPI_REPORT_H

#include "base/err.h"
#include "obj/comm.h"
#include "obj/group.h"
#include "obj/info.h"
#include "obj/request.h"
#include "type/op.h"
#include "type/type.h"

#include "mpi/entry.h"

/* In what follows `on` is the object with the error handler, told by its header: a struct comm or struct session; a group,
 * for its session's; a handler itself, given for an object to come; or NULL, for MPI_COMM_SELF's in the world model, and
 * the initial one outside of it. */

/* Reports a failure found at the surface: class and words. Returns the class if the handler returns. */
int report(const void *on, const char *call, int klass, const char *fmt, ...) TERN_PRINTF(4, 5) TERN_COLD;

/* Reports what a function below failed with (code != 0, words in err_words). */
int report_code(const void *on, const char *call, int code) TERN_COLD;

/* 0 stays MPI_SUCCESS, else report_code: the last line of most entry points. */
static inline int report_if(const void *on, const char *call, int code)
{
    return likely(!code) ? MPI_SUCCESS : report_code(on, call, code);
}

/* Gives an error code of the user's to the handler. */
void report_user(const void *on, const char *call, int code) TERN_COLD;

/* Call and words of this thread's last report, if it was of this class; else "". */
const char *report_last(int klass);

/* The error class for a code. */
int error_class(int code);
/* Its name ("MPI_ERR_RANK") and standard sentence; NULL for what is no class of the standard. */
const char *error_name(int klass);
const char *error_sentence(int klass);

/* The library is open: between MPI_Init and MPI_Finalize, or in a session; otherwise words, and the job ends. A thread that calls
 * for the first time is noticed, as calls without a handle need. */
extern TERN_HIDDEN bool mpi_running;
extern TERN_HIDDEN bool world_running; /* between MPI_Init and MPI_Finalize */
_Noreturn void not_running(const char *call) TERN_COLD;
static inline void check_running(const char *call)
{
    if (unlikely(!mpi_running)) not_running(call);
    handle_know_thread();
}
static inline void check_world(const char *call)
{
    if (unlikely(!world_running)) not_running(call);
    handle_know_thread();
}

/* ---- shared argument checks: 0, or the reported class ---- */
int bad_comm(const char *call, MPI_Comm) TERN_COLD;   /* reports why `comm` is not a communicator */
int bad_comm_named(const char *call, MPI_Comm, const char *argument) TERN_COLD; /* the same where the argument is called otherwise */
int bad_session(const char *call, MPI_Session) TERN_COLD;
int bad_group(const void *on, const char *call, MPI_Group, const char *argument) TERN_COLD; /* reports why it is not a group */
int bad_errhandler(const void *on, const char *call, MPI_Errhandler) TERN_COLD; /* none, or not for this kind of object */
int bad_type(const void *on, const char *call, MPI_Datatype, const char *argument) TERN_COLD; /* invalid, unsupported, uncommitted */
int bad_count(const void *on, const char *call, int64_t count) TERN_COLD;
int bad_count_named(const void *on, const char *call, int64_t count, const char *argument) TERN_COLD;
int bad_null(const void *on, const char *call, const char *argument) TERN_COLD; /* an out-argument that is NULL */

int bad_info(const void *on, const char *call, MPI_Info) TERN_COLD; /* what info_of or info_given did not take */
int bad_op(const void *on, const char *call, MPI_Op, const struct type *) TERN_COLD; /* unknown, or not for this type */

/* Usable in reductions of this (ready) type. */
static inline bool op_usable(const struct op *o, const struct type *t) { return likely(o && !o->rma_only && op_valid(o, t)); }

/* Usable for communication: known, supported by the machine, committed. */
static inline bool type_ready(const struct type *t) { return likely(t && t->committed); }

/* The end of a call that makes an info object: the user gets `made`; or it is freed, and rc, which is that of filling it,
 * or the want of memory for it (NULL) is reported. */
int give_info(const void *on, const char *call, struct info *made, int rc, MPI_Info *info);

/* First of all in a call that makes an object: a program that goes on after a failure finds the null handle. */
static inline void no_comm_yet(MPI_Comm *made)
{
    if (made) *made = MPI_COMM_NULL;
}
static inline void no_group_yet(MPI_Group *made)
{
    if (made) *made = MPI_GROUP_NULL;
}
static inline void no_type_yet(MPI_Datatype *made)
{
    if (made) *made = MPI_DATATYPE_NULL;
}

/* ---- statuses ---- */
/* Puts a result into a user's status (may be MPI_STATUS_IGNORE). MPI_ERROR is left alone. */
void status_set(MPI_Status *, const struct request_result *, bool cancelled);
void status_empty(MPI_Status *);
int64_t status_bytes(const MPI_Status *);
void status_set_bytes(MPI_Status *, int64_t);
void status_set_cancelled(MPI_Status *, bool cancelled);

#endif
