/* report.c - from a failure to the user's error handler; see report.h. */
#include "mpi/report.h"
#include "base/scratch.h"
#include "obj/errcode.h"
#include "obj/session.h"
#include "proc/proc.h"
#include "rma/rma.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const int class_of[] = {
    [-TERN_OK] = MPI_SUCCESS,
    [-TERN_AGAIN] = MPI_ERR_INTERN,
    [-TERN_ERR_NOMEM] = MPI_ERR_NO_MEM,
    [-TERN_ERR_ARG] = MPI_ERR_ARG,
    [-TERN_ERR_TRUNCATE] = MPI_ERR_TRUNCATE,
    [-TERN_ERR_TYPE] = MPI_ERR_TYPE,
    [-TERN_ERR_OP] = MPI_ERR_OP,
    [-TERN_ERR_COUNT] = MPI_ERR_COUNT,
    [-TERN_ERR_RANK] = MPI_ERR_RANK,
    [-TERN_ERR_TAG] = MPI_ERR_TAG,
    [-TERN_ERR_COMM] = MPI_ERR_COMM,
    [-TERN_ERR_GROUP] = MPI_ERR_GROUP,
    [-TERN_ERR_BUFFER] = MPI_ERR_BUFFER,
    [-TERN_ERR_REQUEST] = MPI_ERR_REQUEST,
    [-TERN_ERR_PEER] = MPI_ERR_PROC_ABORTED,
    [-TERN_ERR_SYSTEM] = MPI_ERR_OTHER,
    [-TERN_ERR_UNSUPPORTED] = MPI_ERR_UNSUPPORTED_OPERATION,
    [-TERN_ERR_INTERN] = MPI_ERR_INTERN,
    [-TERN_ERR_NOT_FOUND] = MPI_ERR_OTHER,
    [-TERN_ERR_PENDING] = MPI_ERR_PENDING,
    [-TERN_ERR_INFO] = MPI_ERR_INFO,
    [-TERN_ERR_ROOT] = MPI_ERR_ROOT,
    [-TERN_ERR_TOPOLOGY] = MPI_ERR_TOPOLOGY,
    [-TERN_ERR_KEYVAL] = MPI_ERR_KEYVAL,
    [-TERN_ERR_DIMS] = MPI_ERR_DIMS,
    [-TERN_ERR_PROGRAM] = MPI_ERR_ARG,
    [-TERN_ERR_CONVERSION] = MPI_ERR_CONVERSION,
    [-TERN_ERR_DISAGREE] = MPI_ERR_OTHER,
    [-TERN_ERR_DUPLICATE] = MPI_ERR_SERVICE,
    [-TERN_ERR_SPAWN] = MPI_ERR_SPAWN,
    [-TERN_ERR_PORT] = MPI_ERR_PORT,
    [-TERN_ERR_NAME] = MPI_ERR_NAME,
    [-TERN_ERR_SERVICE] = MPI_ERR_SERVICE,
    [-TERN_ERR_ABSENT] = MPI_ERR_OTHER,
    [-TERN_ERR_WIN_SYNC] = MPI_ERR_RMA_SYNC,
    [-TERN_ERR_WIN_RANGE] = MPI_ERR_RMA_RANGE,
    [-TERN_ERR_WIN_SHARED] = MPI_ERR_RMA_SHARED,
    [-TERN_ERR_WIN_ATTACH] = MPI_ERR_RMA_ATTACH,
    [-TERN_ERR_WIN_CONFLICT] = MPI_ERR_RMA_CONFLICT,
};

int error_class(int code)
{
    if (code > 0 || -code >= (int)ARRAY_LEN(class_of)) return MPI_ERR_UNKNOWN;
    return class_of[-code];
}

static const char *host(char *name, size_t room)
{
    if (gethostname(name, room - 1)) snprintf(name, room, "this host");
    return name;
}

/* Before a launcher has told this process its rank, it ends alone. */
static void name_process(char *name, size_t room)
{
    if (proc_self()->bootstrap)
        snprintf(name, room, "rank %u", proc_self()->rank);
    else
        snprintf(name, room, "process %d", (int)getpid());
}

/* A peer that is lost has probably died: then that is what the launcher says, once, as it ends all ranks. */
static _Noreturn void die(const char *call, int klass, const char *words, bool lost)
{
    if (lost) proc_await_end();
    const char *name = error_name(klass);
    char line[1200], own[MPI_MAX_ERROR_STRING] = "unknown error class", process[32], on[256] = "";
    name_process(process, sizeof process);
    if (!name) errcode_string(klass, own, sizeof own);
    snprintf(line, sizeof line, "%s on %s: %s failed: %s (%s). The %s is ended.", process, host(on, sizeof on), call, words,
             name ? name : own, proc_self()->bootstrap ? "job" : "process");
    proc_abort(klass & 0xff, line);
}

/* What this thread's last failure was, for MPI_Error_string. */
struct failure {
    int klass;
    char words[MPI_MAX_ERROR_STRING - 128]; /* the class and its sentence stand before them */
};

static struct failure *last(void)
{
    static struct failure common;
    static struct scratch failures = SCRATCH_INIT(common);
    return scratch(&failures);
}

const char *report_last(int klass) { return last()->klass == klass ? last()->words : ""; }

/*
 * Whose handler a failure without an object goes to: MPI_COMM_SELF's (9.3). Programs written for MPI 3 and before set
 * MPI_COMM_WORLD's, which then spoke for all; one that set it and never touched MPI_COMM_SELF's means that.
 */
static struct comm *without_object(void)
{
    struct comm *self = comm_self(), *world = comm_world();
    if (!world) return self;
    struct errhandler *e = errh_get(&self->errh);
    errh_unref(e);
    return e == errh_initial() ? world : self;
}

/* The handler for failures of `on`, with a reference for the caller, as it may be taken off the object at any time; and
 * the handle that a user's function gets. */
static struct errhandler *handler_of(const void *on, void **handle_p)
{
    if (on && handle_is(on, HANDLE_SESSION)) {
        const struct session *s = on;
        *handle_p = (void *)(uintptr_t)s;
        return errh_get(&s->errh);
    }
    if (on && handle_is(on, HANDLE_WIN)) {
        struct win *w = (struct win *)(uintptr_t)on;
        *handle_p = win_handle(w);
        return errh_get(&w->errh);
    }
    if (on && handle_is(on, HANDLE_ERRHANDLER)) { /* given for an object that there is not yet */
        const struct errhandler *e = on;
        *handle_p = e->kind == ERRH_SESSION ? (void *)MPI_SESSION_NULL : e->kind == ERRH_WIN ? (void *)MPI_WIN_NULL : (void *)MPI_COMM_NULL;
        return errh_ref((struct errhandler *)(uintptr_t)on);
    }
    if (on && handle_is(on, HANDLE_GROUP)) return handler_of(((const struct group *)on)->session, handle_p);
    bool of_comm = on && (handle_is(on, HANDLE_COMM) || handle_is(on, HANDLE_COMM_RESERVED));
    struct comm *c = of_comm ? (struct comm *)(uintptr_t)on : without_object();
    *handle_p = comm_handle(c);
    struct errhandler *e = errh_get(&c->errh);
    return e ? e : errh_ref(errh_initial()); /* nothing is open yet */
}

/* What the handler of `on` says; returns only if it lets the program go on. `lost`: a peer is. */
static int handle(const void *on, const char *call, int klass, const char *words, bool lost)
{
    void *object;
    handle_know_thread();
    struct errhandler *e = handler_of(on, &object);
    int code = klass;
    last()->klass = klass;
    snprintf(last()->words, sizeof last()->words, "%s: %s", call, words);
    switch (e->action) {
    case ERRH_FATAL:
    case ERRH_ABORT: die(call, klass, words, lost);
    case ERRH_USER: errh_call(e, object, &code); break;
    case ERRH_RETURN: break;
    }
    errh_unref(e);
    return klass;
}

int report(const void *on, const char *call, int klass, const char *fmt, ...)
{
    char words[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(words, sizeof words, fmt, ap);
    va_end(ap);
    bool lost = klass == MPI_ERR_IN_STATUS && err_is_of_peer(err_code());
    err_set(TERN_ERR_ARG, "%s", words);
    return handle(on, call, klass, words, lost);
}

int report_code(const void *on, const char *call, int code)
{
    int klass = error_class(code);
    char words[512];
    snprintf(words, sizeof words, "%s", err_explains(code) && *err_words() ? err_words() : error_sentence(klass));
    err_clear(); /* said once */
    return handle(on, call, klass, words, err_is_of_peer(code));
}

void report_user(const void *on, const char *call, int code) { handle(on, call, code, "the program reported an error", false); }

bool mpi_running, world_running;

_Noreturn void not_running(const char *call)
{
    char line[200];
    if (mpi_running) snprintf(line, sizeof line, "%s was called outside MPI_Init ... MPI_Finalize: a session is no place for it. The process is ended.", call);
    else snprintf(line, sizeof line, "%s was called before MPI_Init or after MPI_Finalize. The process is ended.", call);
    proc_abort(MPI_ERR_OTHER, line);
}

/* ---- shared argument checks ---- */

int bad_comm_named(const char *call, MPI_Comm comm, const char *argument)
{
    check_running(call);
    if (comm == MPI_COMM_NULL) return report(NULL, call, MPI_ERR_COMM, "argument %s is MPI_COMM_NULL", argument);
    if (comm == MPI_COMM_WORLD || comm == MPI_COMM_SELF)
        return report(NULL, call, MPI_ERR_COMM, "argument %s is %s, which exists between MPI_Init and MPI_Finalize only, not in sessions",
                      argument, comm == MPI_COMM_WORLD ? "MPI_COMM_WORLD" : "MPI_COMM_SELF");
    if (comm_of_local(comm))
        return report(comm_of_local(comm), call, MPI_ERR_COMM,
                      "argument %s is still being duplicated: wait for the request of MPI_Comm_idup before", argument);
    return report(NULL, call, MPI_ERR_COMM, "argument %s (%p) is not a communicator, or one that was freed", argument, (void *)comm);
}

int bad_comm(const char *call, MPI_Comm comm) { return bad_comm_named(call, comm, "comm"); }

int bad_session(const char *call, MPI_Session h)
{
    if (h == MPI_SESSION_NULL) return report(NULL, call, MPI_ERR_SESSION, "argument session is MPI_SESSION_NULL");
    return report(NULL, call, MPI_ERR_SESSION, "argument session (%p) is not a session, or one that was finalised", (void *)h);
}

int bad_group(const void *on, const char *call, MPI_Group h, const char *argument)
{
    check_running(call);
    if (h == MPI_GROUP_NULL) return report(on, call, MPI_ERR_GROUP, "argument %s is MPI_GROUP_NULL", argument);
    return report(on, call, MPI_ERR_GROUP, "argument %s (%p) is not a group, or one that was freed", argument, (void *)h);
}

int bad_errhandler(const void *on, const char *call, MPI_Errhandler h)
{
    if (h == MPI_ERRHANDLER_NULL) return report(on, call, MPI_ERR_ERRHANDLER, "argument errhandler is MPI_ERRHANDLER_NULL");
    if (errh_of(h)) return report(on, call, MPI_ERR_ERRHANDLER, "argument errhandler was made for another kind of object");
    return report(on, call, MPI_ERR_ERRHANDLER, "argument errhandler (%p) is not an error handler, or one that was freed", (void *)h);
}

static const char *shown_name(const struct type *t)
{
    const char *name = type_name(t);
    return *name ? name : "a derived datatype without a name";
}

int bad_type(const void *on, const char *call, MPI_Datatype h, const char *argument)
{
    struct type *t = type_of(h);
    if (h == MPI_DATATYPE_NULL) return report(on, call, MPI_ERR_TYPE, "argument %s is MPI_DATATYPE_NULL", argument);
    if (!t)
        return report(on, call, MPI_ERR_TYPE, "argument %s (%p) is not a datatype, or one that was freed", argument, (void *)h);
    if (t->size < 0)
        return report(on, call, MPI_ERR_TYPE, "argument %s: this machine has no %s", argument, type_name(t));
    return report(on, call, MPI_ERR_TYPE, "argument %s (%s) has not been committed", argument, shown_name(t));
}

int bad_count_named(const void *on, const char *call, int64_t count, const char *argument)
{
    return report(on, call, MPI_ERR_COUNT, "argument %s is %lld, which is negative", argument, (long long)count);
}

int bad_count(const void *on, const char *call, int64_t count) { return bad_count_named(on, call, count, "count"); }

int bad_null(const void *on, const char *call, const char *argument)
{
    return report(on, call, MPI_ERR_ARG, "argument %s is NULL", argument);
}

int bad_info(const void *on, const char *call, MPI_Info info)
{
    if (info == MPI_INFO_NULL) return report(on, call, MPI_ERR_INFO, "argument info is MPI_INFO_NULL");
    return report(on, call, MPI_ERR_INFO, "argument info (%p) is not an info object, or one that was freed", (void *)info);
}

int give_info(const void *on, const char *call, struct info *made, int rc, MPI_Info *info)
{
    if (!made || rc) {
        info_free(made);
        return report_code(on, call, made ? rc : TERN_ERR_NOMEM);
    }
    *info = info_handle(made);
    return MPI_SUCCESS;
}

int bad_op(const void *on, const char *call, MPI_Op op, const struct type *t)
{
    check_running(call);
    struct op *o = op_of(op);
    if (op == MPI_OP_NULL) return report(on, call, MPI_ERR_OP, "argument op is MPI_OP_NULL");
    if (!o) return report(on, call, MPI_ERR_OP, "argument op (%p) is not an operator, or one that was freed", (void *)op);
    if (o->rma_only) return report(on, call, MPI_ERR_OP, "argument op is %s, which is for one-sided communication only", o->name);
    const char *name = type_name(t);
    return report(on, call, MPI_ERR_OP, "argument op is %s, which does not work on %s", o->name,
                  *name ? name : "derived datatypes");
}

/* ---- statuses: MPI_internal holds [0..1] the bytes, [2] the cancelled mark ---- */

int64_t status_bytes(const MPI_Status *s)
{
    int64_t n;
    memcpy(&n, s->MPI_internal, sizeof n); /* a status is aligned for int only */
    return n;
}

void status_set_bytes(MPI_Status *s, int64_t n) { memcpy(s->MPI_internal, &n, sizeof n); }

void status_set_cancelled(MPI_Status *s, bool cancelled) { s->MPI_internal[2] = cancelled; }

void status_set(MPI_Status *s, const struct request_result *res, bool cancelled)
{
    if (s == MPI_STATUS_IGNORE) return;
    s->MPI_SOURCE = res->source;
    s->MPI_TAG = res->tag;
    status_set_bytes(s, res->bytes);
    s->MPI_internal[2] = cancelled;
}

void status_empty(MPI_Status *s)
{
    static const struct request_result none = {.source = MPI_ANY_SOURCE, .tag = MPI_ANY_TAG};
    status_set(s, &none, false);
    if (s != MPI_STATUS_IGNORE) s->MPI_ERROR = MPI_SUCCESS;
}
