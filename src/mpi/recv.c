/*
 * recv.c - entry points: receiving and probing (MPI-5.0 sections 3.2, 3.7 to 3.9).
 */
#include "mpi/dataargs.h"
#include "pt2pt/api.h"

/* What is wrong with source or tag of a receive or probe. */
static TERN_COLD int bad_envelope(const char *call, struct comm *c, int source, int tag)
{
    if (source != MPI_PROC_NULL && source != MPI_ANY_SOURCE && (source < 0 || source >= comm_peers(c)))
        return report(c, call, MPI_ERR_RANK, "argument source is %d, but the communicator has ranks 0 to %d", source,
                      comm_peers(c) - 1);
    return report(c, call, MPI_ERR_TAG, "argument tag is %d, but tags are 0 to %d, or MPI_ANY_TAG", tag, INT32_MAX);
}

static TERN_COLD int bad_recv(const char *call, int64_t count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm,
                              const void *buf)
{
    check_running(call);
    struct comm *c = comm_of(comm);
    if (!c) return bad_comm(call, comm);
    int rc = bad_data(c, call, &data_plain, buf, count, datatype);
    if (rc) return rc;
    return bad_envelope(call, c, source, tag);
}

static inline bool envelope_ok(const struct comm *c, int source, int tag)
{
    if (unlikely(tag < 0 && tag != MPI_ANY_TAG)) return false;
    return likely((uint32_t)source < (uint32_t)comm_peers(c)) || source == MPI_ANY_SOURCE || source == MPI_PROC_NULL;
}

/* On what handle_at found; before MPI_Init no handle is known. */
static inline bool recv_ok(const struct comm *c, const void *buf, int64_t count, const struct type *t, int source, int tag)
{
    if (unlikely(!handle_is(c, HANDLE_COMM) || !handle_is(t, HANDLE_TYPE))) return false;
    return data_ok(buf, count, t) && envelope_ok(c, source, tag);
}

/* What recv_ok did not let through: it is wrong, right all the same (data_of_nobody), or the first call of a thread. The type
 * if it is right, else NULL. */
static TERN_COLD struct type *look_closer(const void *buf, int64_t count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm)
{
    struct comm *c = comm_of(comm);
    struct type *t = type_of(datatype);
    if (!c) return NULL;
    if (data_of_nobody(count, datatype, source)) t = type_of(MPI_BYTE);
    return t && recv_ok(c, buf, count, t, source, tag) ? t : NULL;
}

static inline int recv(const char *call, void *buf, int64_t count, MPI_Datatype datatype, int source, int tag,
                       MPI_Comm comm, MPI_Status *status)
{
    struct comm *c = handle_at(comm);
    struct type *t = handle_at(datatype);
    struct request_result res;
    if (unlikely(!recv_ok(c, buf, count, t, source, tag))) {
        t = look_closer(buf, count, datatype, source, tag, comm);
        if (!t) return bad_recv(call, count, datatype, source, tag, comm, buf);
        c = handle_at(comm);
    }
    int rc = pt_recv(c, buf, count, t, source, tag, &res);
    status_set(status, &res, false);
    return report_if(c, call, rc);
}

typedef int start_fn(struct comm *, void *, int64_t, struct type *, int, int, struct request **);

static inline int begin(const char *call, start_fn *fn, void *buf, int64_t count, MPI_Datatype datatype, int source,
                        int tag, MPI_Comm comm, MPI_Request *request)
{
    struct comm *c = handle_at(comm);
    struct type *t = handle_at(datatype);
    struct request *r;
    if (unlikely(!recv_ok(c, buf, count, t, source, tag))) {
        t = look_closer(buf, count, datatype, source, tag, comm);
        if (!t) return bad_recv(call, count, datatype, source, tag, comm, buf);
        c = handle_at(comm);
    }
    if (unlikely(!request)) return bad_null(c, call, "request");
    int rc = fn(c, buf, count, t, source, tag, &r);
    if (unlikely(rc)) return report_code(c, call, rc);
    *request = (MPI_Request)r;
    return MPI_SUCCESS;
}

MPI_ALIAS(Recv);
int PMPI_Recv(void *buf, int count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm, MPI_Status *status)
{
    return recv("MPI_Recv", buf, count, datatype, source, tag, comm, status);
}

MPI_ALIAS(Recv_c);
int PMPI_Recv_c(void *buf, MPI_Count count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm, MPI_Status *status)
{
    return recv("MPI_Recv_c", buf, count, datatype, source, tag, comm, status);
}

MPI_ALIAS(Irecv);
int PMPI_Irecv(void *buf, int count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm, MPI_Request *request)
{
    return begin("MPI_Irecv", pt_irecv, buf, count, datatype, source, tag, comm, request);
}

MPI_ALIAS(Irecv_c);
int PMPI_Irecv_c(void *buf, MPI_Count count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm, MPI_Request *request)
{
    return begin("MPI_Irecv_c", pt_irecv, buf, count, datatype, source, tag, comm, request);
}

MPI_ALIAS(Recv_init);
int PMPI_Recv_init(void *buf, int count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm, MPI_Request *request)
{
    return begin("MPI_Recv_init", pt_recv_init, buf, count, datatype, source, tag, comm, request);
}

MPI_ALIAS(Recv_init_c);
int PMPI_Recv_init_c(void *buf, MPI_Count count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm, MPI_Request *request)
{
    return begin("MPI_Recv_init_c", pt_recv_init, buf, count, datatype, source, tag, comm, request);
}

/* ---- probing ---- */

static inline int probe(const char *call, int source, int tag, MPI_Comm comm, bool blocking, int *flag, MPI_Status *status)
{
    struct request_result res;
    bool found;
    struct comm *c = comm_of(comm);
    if (unlikely(!c)) return bad_comm(call, comm);
    if (unlikely(!envelope_ok(c, source, tag))) return bad_envelope(call, c, source, tag);
    if (unlikely(!flag)) return bad_null(c, call, "flag");
    int rc = pt_probe(c, source, tag, blocking, &found, &res);
    if (unlikely(rc)) return report_code(c, call, rc);
    *flag = found;
    if (found) status_set(status, &res, false);
    return MPI_SUCCESS;
}

MPI_ALIAS(Probe);
int PMPI_Probe(int source, int tag, MPI_Comm comm, MPI_Status *status)
{
    int flag;
    return probe("MPI_Probe", source, tag, comm, true, &flag, status);
}

MPI_ALIAS(Iprobe);
int PMPI_Iprobe(int source, int tag, MPI_Comm comm, int *flag, MPI_Status *status)
{
    return probe("MPI_Iprobe", source, tag, comm, false, flag, status);
}

static int mprobe(const char *call, int source, int tag, MPI_Comm comm, bool blocking, int *flag, MPI_Message *message,
                  MPI_Status *status)
{
    struct request_result res = {.source = MPI_PROC_NULL, .tag = MPI_ANY_TAG};
    struct pt_message *m;
    bool found = true;
    check_running(call);
    struct comm *c = comm_of(comm);
    if (!c) return bad_comm(call, comm);
    if (!envelope_ok(c, source, tag)) return bad_envelope(call, c, source, tag);
    if (!flag || !message) return bad_null(c, call, flag ? "message" : "flag");
    int rc = source == MPI_PROC_NULL ? 0 : pt_mprobe(c, source, tag, blocking, &found, &m, &res);
    if (rc) return report_code(c, call, rc);
    *flag = found;
    *message = source == MPI_PROC_NULL ? MPI_MESSAGE_NO_PROC : found ? (MPI_Message)m : MPI_MESSAGE_NULL;
    if (found) status_set(status, &res, false);
    return MPI_SUCCESS;
}

MPI_ALIAS(Mprobe);
int PMPI_Mprobe(int source, int tag, MPI_Comm comm, MPI_Message *message, MPI_Status *status)
{
    int flag;
    return mprobe("MPI_Mprobe", source, tag, comm, true, &flag, message, status);
}

MPI_ALIAS(Improbe);
int PMPI_Improbe(int source, int tag, MPI_Comm comm, int *flag, MPI_Message *message, MPI_Status *status)
{
    return mprobe("MPI_Improbe", source, tag, comm, false, flag, message, status);
}

/* Starts the receive of a probed message; *message becomes MPI_MESSAGE_NULL. */
static int start_mrecv(const char *call, void *buf, int64_t count, MPI_Datatype datatype, MPI_Message *message,
                       struct request **r)
{
    check_running(call);
    if (!message) return bad_null(NULL, call, "message");
    struct pt_message *m = handle_get(*message, HANDLE_MESSAGE);
    struct comm *c = m ? m->comm : NULL;
    if (!m && *message != MPI_MESSAGE_NO_PROC)
        return report(NULL, call, MPI_ERR_REQUEST, "argument message is %s",
                      *message == MPI_MESSAGE_NULL ? "MPI_MESSAGE_NULL" : "not a message, or one that was received");
    struct type *t = type_of(datatype);
    if (!m && data_of_nobody(count, datatype, MPI_PROC_NULL)) t = type_of(MPI_BYTE);
    if (!data_ok(buf, count, t)) return bad_data(c, call, &data_plain, buf, count, datatype);
    int rc = m ? pt_imrecv(m, buf, count, t, r)
               : pt_irecv(comm_self(), buf, count, t, MPI_PROC_NULL, MPI_ANY_TAG, r);
    if (rc) return report_code(c, call, rc);
    *message = MPI_MESSAGE_NULL;
    return MPI_SUCCESS;
}

static int mrecv(const char *call, void *buf, int64_t count, MPI_Datatype datatype, MPI_Message *message, MPI_Status *status)
{
    struct request *r;
    int rc = start_mrecv(call, buf, count, datatype, message, &r);
    if (rc) return rc;
    struct comm *c = comm_ref(r->comm);
    rc = pt_wait(r);
    status_set(status, &r->result, false);
    pt_release(r);
    rc = report_if(c, call, rc);
    comm_unref(c);
    return rc;
}

static int imrecv(const char *call, void *buf, int64_t count, MPI_Datatype datatype, MPI_Message *message, MPI_Request *request)
{
    struct request *r;
    if (!request) return bad_null(NULL, call, "request");
    int rc = start_mrecv(call, buf, count, datatype, message, &r);
    if (!rc) *request = (MPI_Request)r;
    return rc;
}

MPI_ALIAS(Mrecv);
int PMPI_Mrecv(void *buf, int count, MPI_Datatype datatype, MPI_Message *message, MPI_Status *status)
{
    return mrecv("MPI_Mrecv", buf, count, datatype, message, status);
}

MPI_ALIAS(Imrecv);
int PMPI_Imrecv(void *buf, int count, MPI_Datatype datatype, MPI_Message *message, MPI_Request *request)
{
    return imrecv("MPI_Imrecv", buf, count, datatype, message, request);
}

MPI_ALIAS(Mrecv_c);
int PMPI_Mrecv_c(void *buf, MPI_Count count, MPI_Datatype datatype, MPI_Message *message, MPI_Status *status)
{
    return mrecv("MPI_Mrecv_c", buf, count, datatype, message, status);
}

MPI_ALIAS(Imrecv_c);
int PMPI_Imrecv_c(void *buf, MPI_Count count, MPI_Datatype datatype, MPI_Message *message, MPI_Request *request)
{
    return imrecv("MPI_Imrecv_c", buf, count, datatype, message, request);
}
