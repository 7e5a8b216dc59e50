/*
 * send.c - entry points: sending (MPI-5.0 sections 3.2, 3.4, 3.7, 3.9). Buffered
 * sends are in buffered.c.
 */
#include "mpi/dataargs.h"
#include "pt2pt/api.h"

/* What is wrong with the arguments of a send; one of the conditions of send_ok does not hold. */
static TERN_COLD int bad_send(const char *call, const void *buf, int64_t count, MPI_Datatype datatype, int dest, int tag,
                              MPI_Comm comm)
{
    check_running(call);
    struct comm *c = comm_of(comm);
    if (!c) return bad_comm(call, comm);
    int rc = bad_data(c, call, &data_plain, buf, count, datatype);
    if (rc) return rc;
    if (dest != MPI_PROC_NULL && (dest < 0 || dest >= comm_peers(c)))
        return report(c, call, MPI_ERR_RANK, "argument dest is %d, but the communicator has ranks 0 to %d", dest, comm_peers(c) - 1);
    return report(c, call, MPI_ERR_TAG, "argument tag is %d, but tags are 0 to %d", tag, INT32_MAX);
}

#define INLINE static inline __attribute__((always_inline)) /* one straight path in each of the entry points below */

/* Checked before a message goes out the short way, on what handle_at found. MPI_PROC_NULL takes the long way. */
INLINE bool short_ok(const struct comm *c, const void *buf, int64_t count, const struct type *t, int tag)
{
    if (unlikely(!handle_is(c, HANDLE_COMM) || !handle_is(t, HANDLE_TYPE))) return false;
    return likely(tag >= 0) && data_ok(buf, count, t);
}

INLINE bool rank_ok(const struct comm *c, int dest) { return likely((uint32_t)dest < (uint32_t)comm_peers(c)); }

/* Checked before the long way, in addition. */
static bool long_ok(const struct comm *c, int dest) { return rank_ok(c, dest) || dest == MPI_PROC_NULL; }

/* What short_ok did not let through: it is wrong, right all the same (data_of_nobody), or the first call of a thread. The type
 * if it is right, else NULL. */
static TERN_COLD struct type *look_closer(const void *buf, int64_t count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm)
{
    struct comm *c = comm_of(comm);
    struct type *t = type_of(datatype);
    if (!c) return NULL;
    if (data_of_nobody(count, datatype, dest)) t = type_of(MPI_BYTE);
    return t && short_ok(c, buf, count, t, tag) ? t : NULL;
}

static TERN_COLD int send_closely(const char *call, const void *buf, int64_t count, MPI_Datatype datatype, int dest, int tag,
                                  MPI_Comm comm, enum pt_mode mode)
{
    struct type *t = look_closer(buf, count, datatype, dest, tag, comm);
    struct comm *c = comm_of(comm);
    if (!t || !long_ok(c, dest)) return bad_send(call, buf, count, datatype, dest, tag, comm);
    return report_if(c, call, pt_send(c, buf, count, t, dest, tag, mode));
}

static TERN_COLD int isend_closely(const char *call, const void *buf, int64_t count, MPI_Datatype datatype, int dest, int tag,
                                   MPI_Comm comm, enum pt_mode mode, MPI_Request *request)
{
    struct type *t = look_closer(buf, count, datatype, dest, tag, comm);
    struct comm *c = comm_of(comm);
    struct request *r;
    if (!t || !long_ok(c, dest)) return bad_send(call, buf, count, datatype, dest, tag, comm);
    if (!request) return bad_null(c, call, "request");
    *request = MPI_REQUEST_NULL;
    int rc = pt_isend(c, buf, count, t, dest, tag, mode, &r);
    if (rc) return report_code(c, call, rc);
    *request = (MPI_Request)r;
    return MPI_SUCCESS;
}

/* Behind the short way one of handle and object is taken from the other: only one is kept in a register across it. */
INLINE int send(const char *call, const void *buf, int64_t count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
                enum pt_mode mode)
{
    struct comm *c = handle_at(comm);
    struct type *t = handle_at(datatype);
    int rc = PT_LONG_WAY;
    if (unlikely(!short_ok(c, buf, count, t, tag))) return send_closely(call, buf, count, datatype, dest, tag, comm, mode);
    if (mode != PT_SYNC && rank_ok(c, dest)) rc = pt_send_short(buf, count, t, dest, tag, c);
    if (likely(!rc)) return MPI_SUCCESS;
    if (!long_ok(c, dest)) return bad_send(call, buf, count, datatype, dest, tag, comm_handle(c));
    return report_if(c, call, pt_send_long(c, buf, count, handle_at(datatype), dest, tag, mode, rc));
}

INLINE int isend(const char *call, const void *buf, int64_t count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
                 enum pt_mode mode, MPI_Request *request)
{
    struct comm *c = handle_at(comm);
    struct type *t = handle_at(datatype);
    struct request *r;
    int rc = PT_LONG_WAY;
    if (unlikely(!short_ok(c, buf, count, t, tag)))
        return isend_closely(call, buf, count, datatype, dest, tag, comm, mode, request);
    if (unlikely(!request)) return bad_null(c, call, "request");
    if (mode != PT_SYNC && rank_ok(c, dest)) rc = pt_send_short(buf, count, t, dest, tag, c);
    if (likely(!rc)) {
        *request = (MPI_Request)request_done;
        return MPI_SUCCESS;
    }
    if (!long_ok(c, dest)) return bad_send(call, buf, count, datatype, dest, tag, comm_handle(c));
    *request = MPI_REQUEST_NULL; /* what a program waits for that goes on after an error */
    rc = pt_isend_long(c, buf, count, handle_at(datatype), dest, tag, mode, rc, &r);
    if (rc) return report_code(c, call, rc);
    *request = (MPI_Request)r;
    return MPI_SUCCESS;
}

static int send_init(const char *call, const void *buf, int64_t count, MPI_Datatype datatype, int dest, int tag,
                     MPI_Comm comm, enum pt_mode mode, MPI_Request *request)
{
    struct comm *c = comm_of(comm);
    struct type *t = look_closer(buf, count, datatype, dest, tag, comm);
    struct request *r;
    if (!t || !long_ok(c, dest)) return bad_send(call, buf, count, datatype, dest, tag, comm);
    if (!request) return bad_null(c, call, "request");
    int rc = pt_send_init(c, buf, count, t, dest, tag, mode, &r);
    if (rc) return report_code(c, call, rc);
    *request = (MPI_Request)r;
    return MPI_SUCCESS;
}

/* ---- blocking ---- */

MPI_ALIAS(Send);
int PMPI_Send(const void *buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm)
{
    return send("MPI_Send", buf, count, datatype, dest, tag, comm, PT_STANDARD);
}

MPI_ALIAS(Send_c);
int PMPI_Send_c(const void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm)
{
    return send("MPI_Send_c", buf, count, datatype, dest, tag, comm, PT_STANDARD);
}

MPI_ALIAS(Ssend);
int PMPI_Ssend(const void *buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm)
{
    return send("MPI_Ssend", buf, count, datatype, dest, tag, comm, PT_SYNC);
}

MPI_ALIAS(Ssend_c);
int PMPI_Ssend_c(const void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm)
{
    return send("MPI_Ssend_c", buf, count, datatype, dest, tag, comm, PT_SYNC);
}

MPI_ALIAS(Rsend);
int PMPI_Rsend(const void *buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm)
{
    return send("MPI_Rsend", buf, count, datatype, dest, tag, comm, PT_READY);
}

MPI_ALIAS(Rsend_c);
int PMPI_Rsend_c(const void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm)
{
    return send("MPI_Rsend_c", buf, count, datatype, dest, tag, comm, PT_READY);
}

/* ---- nonblocking ---- */

MPI_ALIAS(Isend);
int PMPI_Isend(const void *buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm, MPI_Request *request)
{
    return isend("MPI_Isend", buf, count, datatype, dest, tag, comm, PT_STANDARD, request);
}

MPI_ALIAS(Isend_c);
int PMPI_Isend_c(const void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm, MPI_Request *request)
{
    return isend("MPI_Isend_c", buf, count, datatype, dest, tag, comm, PT_STANDARD, request);
}

MPI_ALIAS(Issend);
int PMPI_Issend(const void *buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm, MPI_Request *request)
{
    return isend("MPI_Issend", buf, count, datatype, dest, tag, comm, PT_SYNC, request);
}

MPI_ALIAS(Issend_c);
int PMPI_Issend_c(const void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm, MPI_Request *request)
{
    return isend("MPI_Issend_c", buf, count, datatype, dest, tag, comm, PT_SYNC, request);
}

MPI_ALIAS(Irsend);
int PMPI_Irsend(const void *buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm, MPI_Request *request)
{
    return isend("MPI_Irsend", buf, count, datatype, dest, tag, comm, PT_READY, request);
}

MPI_ALIAS(Irsend_c);
int PMPI_Irsend_c(const void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm, MPI_Request *request)
{
    return isend("MPI_Irsend_c", buf, count, datatype, dest, tag, comm, PT_READY, request);
}

/* ---- persistent ---- */

MPI_ALIAS(Send_init);
int PMPI_Send_init(const void *buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm, MPI_Request *request)
{
    return send_init("MPI_Send_init", buf, count, datatype, dest, tag, comm, PT_STANDARD, request);
}

MPI_ALIAS(Send_init_c);
int PMPI_Send_init_c(const void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm, MPI_Request *request)
{
    return send_init("MPI_Send_init_c", buf, count, datatype, dest, tag, comm, PT_STANDARD, request);
}

MPI_ALIAS(Ssend_init);
int PMPI_Ssend_init(const void *buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm, MPI_Request *request)
{
    return send_init("MPI_Ssend_init", buf, count, datatype, dest, tag, comm, PT_SYNC, request);
}

MPI_ALIAS(Ssend_init_c);
int PMPI_Ssend_init_c(const void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm, MPI_Request *request)
{
    return send_init("MPI_Ssend_init_c", buf, count, datatype, dest, tag, comm, PT_SYNC, request);
}

MPI_ALIAS(Rsend_init);
int PMPI_Rsend_init(const void *buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm, MPI_Request *request)
{
    return send_init("MPI_Rsend_init", buf, count, datatype, dest, tag, comm, PT_READY, request);
}

MPI_ALIAS(Rsend_init_c);
int PMPI_Rsend_init_c(const void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm, MPI_Request *request)
{
    return send_init("MPI_Rsend_init_c", buf, count, datatype, dest, tag, comm, PT_READY, request);
}
