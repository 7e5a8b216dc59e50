/*
 * buffered.c - entry points: buffered sends and their buffers (MPI-5.0 sections 3.4 to
 * 3.7, 3.9).
 */
#include "mpi/dataargs.h"
#include "obj/session.h"
#include "pt2pt/api.h"
#include "pt2pt/bsend.h"

/* ---- sending ---- */

/* MPI_SUCCESS if all is well with the arguments, and *c_p, *t_p. */
static int check_send(const char *call, const void *buf, int64_t count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
                      struct comm **c_p, struct type **t_p)
{
    struct comm *c = *c_p = comm_of(comm);
    if (!c) return bad_comm(call, comm);
    *t_p = type_of(data_of_nobody(count, datatype, dest) ? MPI_BYTE : datatype);
    if (!data_ok(buf, count, *t_p)) return bad_data(c, call, &data_plain, buf, count, datatype);
    if (dest != MPI_PROC_NULL && (dest < 0 || dest >= comm_peers(c)))
        return report(c, call, MPI_ERR_RANK, "argument dest is %d, but the communicator has ranks 0 to %d", dest, comm_peers(c) - 1);
    if (tag < 0) return report(c, call, MPI_ERR_TAG, "argument tag is %d, but tags are 0 to %d", tag, INT32_MAX);
    return MPI_SUCCESS;
}

static int bsend(const char *call, const void *buf, int64_t count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm)
{
    struct comm *c;
    struct type *t;
    int rc = check_send(call, buf, count, datatype, dest, tag, comm, &c, &t);
    if (rc) return rc;
    return report_if(c, call, bsend_send(c, buf, count, t, dest, tag));
}

/* The message is in the buffer when the call returns, so its request is complete from the beginning. */
static int ibsend(const char *call, const void *buf, int64_t count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
                  MPI_Request *request)
{
    if (!request) return bad_null(comm_of(comm), call, "request");
    int rc = bsend(call, buf, count, datatype, dest, tag, comm);
    if (!rc) *request = (MPI_Request)request_done;
    return rc;
}

static int init(const char *call, const void *buf, int64_t count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
                MPI_Request *request)
{
    struct comm *c;
    struct type *t;
    struct request *r;
    if (!request) return bad_null(comm_of(comm), call, "request");
    int rc = check_send(call, buf, count, datatype, dest, tag, comm, &c, &t);
    if (rc) return rc;
    rc = bsend_init(c, buf, count, t, dest, tag, &r);
    if (rc) return report_code(c, call, rc);
    *request = (MPI_Request)r;
    return MPI_SUCCESS;
}

MPI_ALIAS(Bsend);
int PMPI_Bsend(const void *buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm)
{
    return bsend("MPI_Bsend", buf, count, datatype, dest, tag, comm);
}

MPI_ALIAS(Bsend_c);
int PMPI_Bsend_c(const void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm)
{
    return bsend("MPI_Bsend_c", buf, count, datatype, dest, tag, comm);
}

MPI_ALIAS(Ibsend);
int PMPI_Ibsend(const void *buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm, MPI_Request *request)
{
    return ibsend("MPI_Ibsend", buf, count, datatype, dest, tag, comm, request);
}

MPI_ALIAS(Ibsend_c);
int PMPI_Ibsend_c(const void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm, MPI_Request *request)
{
    return ibsend("MPI_Ibsend_c", buf, count, datatype, dest, tag, comm, request);
}

MPI_ALIAS(Bsend_init);
int PMPI_Bsend_init(const void *buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm, MPI_Request *request)
{
    return init("MPI_Bsend_init", buf, count, datatype, dest, tag, comm, request);
}

MPI_ALIAS(Bsend_init_c);
int PMPI_Bsend_init_c(const void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
                      MPI_Request *request)
{
    return init("MPI_Bsend_init_c", buf, count, datatype, dest, tag, comm, request);
}

/* ---- buffers: of the process (on NULL), of a session, of a communicator ---- */

static int attach(void *on, void **place, const char *call, void *buffer, int64_t size)
{
    check_running(call);
    if (size < 0) return report(on, call, MPI_ERR_ARG, "argument size is %lld, which is negative", (long long)size);
    if (buffer == MPI_IN_PLACE) return bad_buffer(on, call, buffer, "buffer");
    if (!buffer && size) return report(on, call, MPI_ERR_BUFFER, "argument buffer is NULL, but size is %lld", (long long)size);
    return report_if(on, call, bsend_attach(place, buffer, size));
}

static int detach(void *on, void **place, const char *call, void *buffer_addr, MPI_Count *size)
{
    void *buffer;
    check_running(call);
    if (!buffer_addr || !size) return bad_null(on, call, buffer_addr ? "size" : "buffer_addr");
    int rc = bsend_detach(place, &buffer, size);
    if (rc) return report_code(on, call, rc);
    *(void **)buffer_addr = buffer;
    return MPI_SUCCESS;
}

static int detach_int(void *on, void **place, const char *call, void *buffer_addr, int *size)
{
    MPI_Count n = 0;
    int rc = detach(on, place, call, buffer_addr, size ? &n : NULL);
    if (!rc) *size = n > INT32_MAX ? MPI_UNDEFINED : (int)n;
    return rc;
}

static int flush(void *on, void **place, const char *call)
{
    check_running(call);
    return report_if(on, call, bsend_flush(place));
}

static int iflush(void *on, void **place, const char *call, MPI_Request *request)
{
    struct request *r;
    check_running(call);
    if (!request) return bad_null(on, call, "request");
    int rc = bsend_iflush(place, &r);
    if (rc) return report_code(on, call, rc);
    *request = (MPI_Request)r;
    return MPI_SUCCESS;
}

MPI_ALIAS(Buffer_attach);
int PMPI_Buffer_attach(void *buffer, int size) { return attach(NULL, bsend_process(), "MPI_Buffer_attach", buffer, size); }

MPI_ALIAS(Buffer_attach_c);
int PMPI_Buffer_attach_c(void *buffer, MPI_Count size) { return attach(NULL, bsend_process(), "MPI_Buffer_attach_c", buffer, size); }

MPI_ALIAS(Buffer_detach);
int PMPI_Buffer_detach(void *buffer_addr, int *size)
{
    return detach_int(NULL, bsend_process(), "MPI_Buffer_detach", buffer_addr, size);
}

MPI_ALIAS(Buffer_detach_c);
int PMPI_Buffer_detach_c(void *buffer_addr, MPI_Count *size)
{
    return detach(NULL, bsend_process(), "MPI_Buffer_detach_c", buffer_addr, size);
}

MPI_ALIAS(Buffer_flush);
int PMPI_Buffer_flush(void) { return flush(NULL, bsend_process(), "MPI_Buffer_flush"); }

MPI_ALIAS(Buffer_iflush);
int PMPI_Buffer_iflush(MPI_Request *request) { return iflush(NULL, bsend_process(), "MPI_Buffer_iflush", request); }

MPI_ALIAS(Comm_attach_buffer);
int PMPI_Comm_attach_buffer(MPI_Comm comm, void *buffer, int size)
{
    struct comm *c = comm_of(comm);
    return c ? attach(c, &c->bsend, "MPI_Comm_attach_buffer", buffer, size) : bad_comm("MPI_Comm_attach_buffer", comm);
}

MPI_ALIAS(Comm_attach_buffer_c);
int PMPI_Comm_attach_buffer_c(MPI_Comm comm, void *buffer, MPI_Count size)
{
    struct comm *c = comm_of(comm);
    return c ? attach(c, &c->bsend, "MPI_Comm_attach_buffer_c", buffer, size) : bad_comm("MPI_Comm_attach_buffer_c", comm);
}

MPI_ALIAS(Comm_detach_buffer);
int PMPI_Comm_detach_buffer(MPI_Comm comm, void *buffer_addr, int *size)
{
    struct comm *c = comm_of(comm);
    return c ? detach_int(c, &c->bsend, "MPI_Comm_detach_buffer", buffer_addr, size) : bad_comm("MPI_Comm_detach_buffer", comm);
}

MPI_ALIAS(Comm_detach_buffer_c);
int PMPI_Comm_detach_buffer_c(MPI_Comm comm, void *buffer_addr, MPI_Count *size)
{
    struct comm *c = comm_of(comm);
    return c ? detach(c, &c->bsend, "MPI_Comm_detach_buffer_c", buffer_addr, size) : bad_comm("MPI_Comm_detach_buffer_c", comm);
}

MPI_ALIAS(Comm_flush_buffer);
int PMPI_Comm_flush_buffer(MPI_Comm comm)
{
    struct comm *c = comm_of(comm);
    return c ? flush(c, &c->bsend, "MPI_Comm_flush_buffer") : bad_comm("MPI_Comm_flush_buffer", comm);
}

MPI_ALIAS(Comm_iflush_buffer);
int PMPI_Comm_iflush_buffer(MPI_Comm comm, MPI_Request *request)
{
    struct comm *c = comm_of(comm);
    return c ? iflush(c, &c->bsend, "MPI_Comm_iflush_buffer", request) : bad_comm("MPI_Comm_iflush_buffer", comm);
}

MPI_ALIAS(Session_attach_buffer);
int PMPI_Session_attach_buffer(MPI_Session session, void *buffer, int size)
{
    struct session *s = session_of(session);
    return s ? attach(s, &s->bsend, "MPI_Session_attach_buffer", buffer, size) : bad_session("MPI_Session_attach_buffer", session);
}

MPI_ALIAS(Session_attach_buffer_c);
int PMPI_Session_attach_buffer_c(MPI_Session session, void *buffer, MPI_Count size)
{
    struct session *s = session_of(session);
    return s ? attach(s, &s->bsend, "MPI_Session_attach_buffer_c", buffer, size) : bad_session("MPI_Session_attach_buffer_c", session);
}

MPI_ALIAS(Session_detach_buffer);
int PMPI_Session_detach_buffer(MPI_Session session, void *buffer_addr, int *size)
{
    struct session *s = session_of(session);
    return s ? detach_int(s, &s->bsend, "MPI_Session_detach_buffer", buffer_addr, size) : bad_session("MPI_Session_detach_buffer", session);
}

MPI_ALIAS(Session_detach_buffer_c);
int PMPI_Session_detach_buffer_c(MPI_Session session, void *buffer_addr, MPI_Count *size)
{
    struct session *s = session_of(session);
    return s ? detach(s, &s->bsend, "MPI_Session_detach_buffer_c", buffer_addr, size) : bad_session("MPI_Session_detach_buffer_c", session);
}

MPI_ALIAS(Session_flush_buffer);
int PMPI_Session_flush_buffer(MPI_Session session)
{
    struct session *s = session_of(session);
    return s ? flush(s, &s->bsend, "MPI_Session_flush_buffer") : bad_session("MPI_Session_flush_buffer", session);
}

MPI_ALIAS(Session_iflush_buffer);
int PMPI_Session_iflush_buffer(MPI_Session session, MPI_Request *request)
{
    struct session *s = session_of(session);
    return s ? iflush(s, &s->bsend, "MPI_Session_iflush_buffer", request) : bad_session("MPI_Session_iflush_buffer", session);
}
