/*
 * sendrecv.c - entry points: a send and a receive in one call (MPI-5.0 section 3.10).
 */
#include "mpi/dataargs.h"
#include "pt2pt/pair.h"

static bool rank_ok(const struct comm *c, int rank)
{
    return likely((uint32_t)rank < (uint32_t)comm_peers(c)) || rank == MPI_PROC_NULL;
}

static bool send_ok(const struct comm *c, const struct pair_send *s)
{
    return data_ok(s->buf, s->count, s->type) && likely(s->tag >= 0 && rank_ok(c, s->dest));
}

static bool recv_ok(const struct comm *c, const struct pair_recv *r)
{
    if (!data_ok(r->buf, r->count, r->type)) return false;
    return (r->tag >= 0 || r->tag == MPI_ANY_TAG) && (rank_ok(c, r->source) || r->source == MPI_ANY_SOURCE);
}

static TERN_COLD int bad_target(struct comm *c, const char *call, const char *rank_name, int rank, const char *tag_name, int tag)
{
    if (!rank_ok(c, rank) && rank != MPI_ANY_SOURCE)
        return report(c, call, MPI_ERR_RANK, "argument %s is %d, but the communicator has ranks 0 to %d", rank_name, rank,
                      comm_peers(c) - 1);
    if (rank == MPI_ANY_SOURCE && tag >= 0)
        return report(c, call, MPI_ERR_RANK, "argument %s is MPI_ANY_SOURCE, which is for receives only", rank_name);
    return report(c, call, MPI_ERR_TAG, "argument %s is %d, but tags are 0 to %d", tag_name, tag, INT32_MAX);
}

/* All arguments, in the words of the two-buffer calls or of the _replace ones. */
static TERN_COLD int bad_pair(const char *call, MPI_Comm comm, const struct pair_send *s, MPI_Datatype sendtype,
                              const struct pair_recv *r, MPI_Datatype recvtype, bool replace)
{
    check_running(call);
    struct comm *c = comm_of(comm);
    if (!c) return bad_comm(call, comm);
    int rc = bad_data(c, call, replace ? &data_plain : &data_sent, s->buf, s->count, sendtype);
    if (!rc) rc = bad_data(c, call, replace ? &data_plain : &data_received, r->buf, r->count, recvtype);
    if (rc) return rc;
    if (!rank_ok(c, s->dest) || s->tag < 0) return bad_target(c, call, "dest", s->dest, "sendtag", s->tag);
    return bad_target(c, call, "source", r->source, "recvtag", r->tag);
}

/* ---- two buffers ---- */

static inline int exchange(const char *call, const void *sendbuf, int64_t sendcount, MPI_Datatype sendtype, int dest, int sendtag,
                           void *recvbuf, int64_t recvcount, MPI_Datatype recvtype, int source, int recvtag, MPI_Comm comm,
                           MPI_Status *status, MPI_Request *request)
{
    struct comm *c = comm_of(comm);
    struct pair_send s = {sendbuf, sendcount, type_of(sendtype), dest, sendtag};
    struct pair_recv r = {recvbuf, recvcount, type_of(recvtype), source, recvtag};
    if (unlikely(!s.type) && data_of_nobody(sendcount, sendtype, dest)) s.type = type_of(MPI_BYTE);
    if (unlikely(!r.type) && data_of_nobody(recvcount, recvtype, source)) r.type = type_of(MPI_BYTE);
    if (unlikely(!c || !send_ok(c, &s) || !recv_ok(c, &r))) return bad_pair(call, comm, &s, sendtype, &r, recvtype, false);
    if (!request) {
        struct request_result res;
        int rc = pair_run(c, &s, &r, &res);
        status_set(status, &res, false);
        return report_if(c, call, rc);
    }
    struct request *made;
    int rc = pair_start(c, &s, &r, &made);
    if (unlikely(rc)) return report_code(c, call, rc);
    *request = (MPI_Request)made;
    return MPI_SUCCESS;
}

static int begin(const char *call, const void *sendbuf, int64_t sendcount, MPI_Datatype sendtype, int dest, int sendtag,
                 void *recvbuf, int64_t recvcount, MPI_Datatype recvtype, int source, int recvtag, MPI_Comm comm,
                 MPI_Request *request)
{
    if (unlikely(!request)) return bad_null(comm_of(comm), call, "request");
    return exchange(call, sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount, recvtype, source, recvtag, comm, NULL,
                    request);
}

MPI_ALIAS(Sendrecv);
int PMPI_Sendrecv(const void *sendbuf, int sendcount, MPI_Datatype sendtype, int dest, int sendtag, void *recvbuf, int recvcount,
                  MPI_Datatype recvtype, int source, int recvtag, MPI_Comm comm, MPI_Status *status)
{
    return exchange("MPI_Sendrecv", sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount, recvtype, source, recvtag,
                    comm, status, NULL);
}

MPI_ALIAS(Sendrecv_c);
int PMPI_Sendrecv_c(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, int dest, int sendtag, void *recvbuf,
                    MPI_Count recvcount, MPI_Datatype recvtype, int source, int recvtag, MPI_Comm comm, MPI_Status *status)
{
    return exchange("MPI_Sendrecv_c", sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount, recvtype, source, recvtag,
                    comm, status, NULL);
}

MPI_ALIAS(Isendrecv);
int PMPI_Isendrecv(const void *sendbuf, int sendcount, MPI_Datatype sendtype, int dest, int sendtag, void *recvbuf, int recvcount,
                   MPI_Datatype recvtype, int source, int recvtag, MPI_Comm comm, MPI_Request *request)
{
    return begin("MPI_Isendrecv", sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount, recvtype, source, recvtag, comm,
                 request);
}

MPI_ALIAS(Isendrecv_c);
int PMPI_Isendrecv_c(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, int dest, int sendtag, void *recvbuf,
                     MPI_Count recvcount, MPI_Datatype recvtype, int source, int recvtag, MPI_Comm comm, MPI_Request *request)
{
    return begin("MPI_Isendrecv_c", sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount, recvtype, source, recvtag,
                 comm, request);
}

/* ---- one buffer ---- */

static int replace(const char *call, void *buf, int64_t count, MPI_Datatype datatype, int dest, int sendtag, int source,
                   int recvtag, MPI_Comm comm, MPI_Status *status, MPI_Request *request)
{
    struct comm *c = comm_of(comm);
    struct pair_send s = {buf, count, type_of(datatype), dest, sendtag};
    struct pair_recv r = {buf, count, type_of(datatype), source, recvtag};
    if (unlikely(!s.type) && dest == source && data_of_nobody(count, datatype, dest))
        s.type = r.type = type_of(MPI_BYTE);
    if (unlikely(!c || !send_ok(c, &s) || !recv_ok(c, &r))) return bad_pair(call, comm, &s, datatype, &r, datatype, true);
    if (!request) {
        struct request_result res;
        int rc = pair_replace(c, dest, sendtag, &r, &res);
        if (rc != TERN_ERR_NOMEM) status_set(status, &res, false);
        return report_if(c, call, rc);
    }
    struct request *made;
    int rc = pair_start_replace(c, dest, sendtag, &r, &made);
    if (unlikely(rc)) return report_code(c, call, rc);
    *request = (MPI_Request)made;
    return MPI_SUCCESS;
}

MPI_ALIAS(Sendrecv_replace);
int PMPI_Sendrecv_replace(void *buf, int count, MPI_Datatype datatype, int dest, int sendtag, int source, int recvtag,
                          MPI_Comm comm, MPI_Status *status)
{
    return replace("MPI_Sendrecv_replace", buf, count, datatype, dest, sendtag, source, recvtag, comm, status, NULL);
}

MPI_ALIAS(Sendrecv_replace_c);
int PMPI_Sendrecv_replace_c(void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int sendtag, int source, int recvtag,
                            MPI_Comm comm, MPI_Status *status)
{
    return replace("MPI_Sendrecv_replace_c", buf, count, datatype, dest, sendtag, source, recvtag, comm, status, NULL);
}

MPI_ALIAS(Isendrecv_replace);
int PMPI_Isendrecv_replace(void *buf, int count, MPI_Datatype datatype, int dest, int sendtag, int source, int recvtag,
                           MPI_Comm comm, MPI_Request *request)
{
    if (!request) return bad_null(comm_of(comm), "MPI_Isendrecv_replace", "request");
    return replace("MPI_Isendrecv_replace", buf, count, datatype, dest, sendtag, source, recvtag, comm, NULL, request);
}

MPI_ALIAS(Isendrecv_replace_c);
int PMPI_Isendrecv_replace_c(void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int sendtag, int source, int recvtag,
                             MPI_Comm comm, MPI_Request *request)
{
    if (!request) return bad_null(comm_of(comm), "MPI_Isendrecv_replace_c", "request");
    return replace("MPI_Isendrecv_replace_c", buf, count, datatype, dest, sendtag, source, recvtag, comm, NULL, request);
}
