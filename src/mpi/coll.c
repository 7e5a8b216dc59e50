/*
 * coll.c - entry points: collectives that move blocks of one size (MPI-5.0 sections
 * 6.3 to 6.8, and 6.12). Blocks of varying size are in collv.c and alltoallv.c,
 * reductions in reduce.c.
 */
#include "mpi/collargs.h"

int start_later(const char *call, MPI_Request *request, struct comm *c, const struct coll_call *a)
{
    struct request *r;
    if (unlikely(!request)) return bad_null(c, call, "request");
    int rc = coll_start(c, a, &r);
    *request = likely(!rc) ? (MPI_Request)r : MPI_REQUEST_NULL; /* what a program waits for that goes on after an error */
    if (unlikely(rc)) return report_code(c, call, rc);
    return MPI_SUCCESS;
}

int make_persistent(struct use u, struct comm *c, const struct coll_call *a)
{
    struct request *r;
    struct info *hints; /* none is known */
    if (!u.request) return bad_null(c, u.call, "request");
    if (!info_given(u.info, &hints)) return bad_info(c, u.call, u.info);
    int rc = coll_persist(c, a, &r);
    *u.request = rc ? MPI_REQUEST_NULL : (MPI_Request)r; /* as above */
    if (rc) return report_code(c, u.call, rc);
    return MPI_SUCCESS;
}

int bad_root(struct comm *c, const char *call, int root)
{
    const char *what = c->inter ? "intercommunicator's other group" : "communicator";
    return report(c, call, MPI_ERR_ROOT, "argument root is %d, but the %s has ranks 0 to %d%s", root, what, comm_peers(c) - 1,
                  c->inter ? "; the root itself says MPI_ROOT, and those beside it MPI_PROC_NULL" : "");
}

static TERN_INLINED int barrier(struct use u, MPI_Comm comm)
{
    int rc;
    struct comm *c = collective(u.call, comm, &rc);
    return likely(c) ? carry_out(u, c, &(struct coll_call){.kind = COLL_BARRIER}) : rc;
}

MPI_ALIAS(Barrier);
int PMPI_Barrier(MPI_Comm comm)
{
    return barrier(now("MPI_Barrier"), comm);
}

MPI_ALIAS(Ibarrier);
int PMPI_Ibarrier(MPI_Comm comm, MPI_Request *request)
{
    return barrier(later("MPI_Ibarrier", request), comm);
}

MPI_ALIAS(Barrier_init);
int PMPI_Barrier_init(MPI_Comm comm, MPI_Info info, MPI_Request *request)
{
    return barrier(often("MPI_Barrier_init", info, request), comm);
}

static TERN_INLINED int bcast(struct use u, void *buffer, int64_t count, MPI_Datatype datatype, int root, MPI_Comm comm)
{
    struct type *t = NULL;
    int rc;
    struct comm *c = collective(u.call, comm, &rc);
    if (unlikely(!c)) return rc;
    if (unlikely(!root_ok(c, root))) return bad_root(c, u.call, root);
    bool idle = !at_root(c, root) && !is_served(c, root); /* between two groups, beside the root */
    if (!idle && (rc = check_block(c, u.call, &data_buffer, buffer, count, datatype, &t))) return rc;
    return carry_out(u, c, &(struct coll_call){.kind = COLL_BCAST, .recvbuf = buffer, .rcount = count, .rtype = t, .root = root});
}

MPI_ALIAS(Bcast);
int PMPI_Bcast(void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm)
{
    return bcast(now("MPI_Bcast"), buffer, count, datatype, root, comm);
}

MPI_ALIAS(Ibcast);
int PMPI_Ibcast(void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm, MPI_Request *request)
{
    return bcast(later("MPI_Ibcast", request), buffer, count, datatype, root, comm);
}

MPI_ALIAS(Bcast_init);
int PMPI_Bcast_init(void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm, MPI_Info info,
                    MPI_Request *request)
{
    return bcast(often("MPI_Bcast_init", info, request), buffer, count, datatype, root, comm);
}

MPI_ALIAS(Bcast_c);
int PMPI_Bcast_c(void *buffer, MPI_Count count, MPI_Datatype datatype, int root, MPI_Comm comm)
{
    return bcast(now("MPI_Bcast_c"), buffer, count, datatype, root, comm);
}

MPI_ALIAS(Ibcast_c);
int PMPI_Ibcast_c(void *buffer, MPI_Count count, MPI_Datatype datatype, int root, MPI_Comm comm, MPI_Request *request)
{
    return bcast(later("MPI_Ibcast_c", request), buffer, count, datatype, root, comm);
}

MPI_ALIAS(Bcast_init_c);
int PMPI_Bcast_init_c(void *buffer, MPI_Count count, MPI_Datatype datatype, int root, MPI_Comm comm, MPI_Info info,
                      MPI_Request *request)
{
    return bcast(often("MPI_Bcast_init_c", info, request), buffer, count, datatype, root, comm);
}

/* The receive side matters at the root only, and there the root may have its block in place. */
static int gather(struct use u, const void *sendbuf, int64_t sendcount, MPI_Datatype sendtype, void *recvbuf,
                  int64_t recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm)
{
    struct type *st = NULL, *rt = NULL;
    int rc;
    struct comm *c = collective(u.call, comm, &rc);
    if (unlikely(!c)) return rc;
    if (unlikely(!root_ok(c, root))) return bad_root(c, u.call, root);
    bool gets = at_root(c, root), gives = is_served(c, root) && !(gets && place_ok(c, sendbuf));
    if (gives && (rc = check_block(c, u.call, &data_sent, sendbuf, sendcount, sendtype, &st))) return rc;
    if (gets && (rc = check_blocks(c, u.call, &data_received, recvbuf, recvcount, comm_peers(c), recvtype, &rt)))
        return rc;
    if (gives && gets && !apart(recvbuf, recvcount, rt, root, sendbuf, sendcount, st))
        return bad_aliases(c, u.call, "sendbuf", "recvbuf");
    struct coll_call a = {COLL_GATHER, sendbuf, recvbuf, sendcount, recvcount, st, rt, .root = root};
    return carry_out(u, c, &a);
}

MPI_ALIAS(Gather);
int PMPI_Gather(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int recvcount, MPI_Datatype recvtype,
                int root, MPI_Comm comm)
{
    return gather(now("MPI_Gather"), sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm);
}

MPI_ALIAS(Igather);
int PMPI_Igather(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int recvcount, MPI_Datatype recvtype,
                 int root, MPI_Comm comm, MPI_Request *request)
{
    return gather(later("MPI_Igather", request), sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm);
}

MPI_ALIAS(Gather_init);
int PMPI_Gather_init(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int recvcount,
                     MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Info info, MPI_Request *request)
{
    return gather(often("MPI_Gather_init", info, request), sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm);
}

MPI_ALIAS(Gather_c);
int PMPI_Gather_c(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf, MPI_Count recvcount,
                  MPI_Datatype recvtype, int root, MPI_Comm comm)
{
    return gather(now("MPI_Gather_c"), sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm);
}

MPI_ALIAS(Igather_c);
int PMPI_Igather_c(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf, MPI_Count recvcount,
                   MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Request *request)
{
    return gather(later("MPI_Igather_c", request), sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm);
}

MPI_ALIAS(Gather_init_c);
int PMPI_Gather_init_c(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf, MPI_Count recvcount,
                       MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Info info, MPI_Request *request)
{
    return gather(often("MPI_Gather_init_c", info, request), sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm);
}

static int scatter(struct use u, const void *sendbuf, int64_t sendcount, MPI_Datatype sendtype, void *recvbuf,
                   int64_t recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm)
{
    struct type *st = NULL, *rt = NULL;
    int rc;
    struct comm *c = collective(u.call, comm, &rc);
    if (unlikely(!c)) return rc;
    if (unlikely(!root_ok(c, root))) return bad_root(c, u.call, root);
    bool gives = at_root(c, root), gets = is_served(c, root) && !(gives && place_ok(c, recvbuf));
    if (gives && (rc = check_blocks(c, u.call, &data_sent, sendbuf, sendcount, comm_peers(c), sendtype, &st)))
        return rc;
    if (gets && (rc = check_block(c, u.call, &data_received, recvbuf, recvcount, recvtype, &rt))) return rc;
    if (gives && gets && !apart(sendbuf, sendcount, st, root, recvbuf, recvcount, rt))
        return bad_aliases(c, u.call, "sendbuf", "recvbuf");
    struct coll_call a = {COLL_SCATTER, sendbuf, recvbuf, sendcount, recvcount, st, rt, .root = root};
    return carry_out(u, c, &a);
}

MPI_ALIAS(Scatter);
int PMPI_Scatter(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int recvcount, MPI_Datatype recvtype,
                 int root, MPI_Comm comm)
{
    return scatter(now("MPI_Scatter"), sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm);
}

MPI_ALIAS(Iscatter);
int PMPI_Iscatter(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int recvcount, MPI_Datatype recvtype,
                  int root, MPI_Comm comm, MPI_Request *request)
{
    return scatter(later("MPI_Iscatter", request), sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm);
}

MPI_ALIAS(Scatter_init);
int PMPI_Scatter_init(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int recvcount,
                      MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Info info, MPI_Request *request)
{
    return scatter(often("MPI_Scatter_init", info, request), sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm);
}

MPI_ALIAS(Scatter_c);
int PMPI_Scatter_c(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf, MPI_Count recvcount,
                   MPI_Datatype recvtype, int root, MPI_Comm comm)
{
    return scatter(now("MPI_Scatter_c"), sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm);
}

MPI_ALIAS(Iscatter_c);
int PMPI_Iscatter_c(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf, MPI_Count recvcount,
                    MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Request *request)
{
    return scatter(later("MPI_Iscatter_c", request), sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm);
}

MPI_ALIAS(Scatter_init_c);
int PMPI_Scatter_init_c(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf, MPI_Count recvcount,
                        MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Info info, MPI_Request *request)
{
    return scatter(often("MPI_Scatter_init_c", info, request), sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm);
}

/* ---- everybody to everybody: the send side may be MPI_IN_PLACE at all ranks ---- */

static TERN_INLINED int all(struct use u, enum coll_kind kind, const void *sendbuf, int64_t sendcount, MPI_Datatype sendtype, void *recvbuf,
                      int64_t recvcount, MPI_Datatype recvtype, MPI_Comm comm)
{
    struct type *st = NULL, *rt;
    int rc;
    struct comm *c = collective(u.call, comm, &rc);
    if (unlikely(!c)) return rc;
    bool gives = !place_ok(c, sendbuf), gather = kind == COLL_ALLGATHER;
    int n = comm_peers(c), own = gather && !c->inter ? c->rank : 0;
    if (gives && (rc = check_blocks(c, u.call, &data_sent, sendbuf, sendcount, gather ? 1 : n, sendtype, &st)))
        return rc;
    if ((rc = check_blocks(c, u.call, &data_received, recvbuf, recvcount, n, recvtype, &rt))) return rc;
    if (gives && !apart(recvbuf, recvcount, rt, own, sendbuf, sendcount, st))
        return bad_aliases(c, u.call, "sendbuf", "recvbuf");
    struct coll_call a = {kind, sendbuf, recvbuf, sendcount, recvcount, st, rt, .root = 0};
    return carry_out(u, c, &a);
}

MPI_ALIAS(Allgather);
int PMPI_Allgather(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int recvcount,
                   MPI_Datatype recvtype, MPI_Comm comm)
{
    return all(now("MPI_Allgather"), COLL_ALLGATHER, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm);
}

MPI_ALIAS(Iallgather);
int PMPI_Iallgather(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int recvcount, MPI_Datatype recvtype,
                    MPI_Comm comm, MPI_Request *request)
{
    return all(later("MPI_Iallgather", request), COLL_ALLGATHER, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm);
}

MPI_ALIAS(Allgather_init);
int PMPI_Allgather_init(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int recvcount,
                        MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info, MPI_Request *request)
{
    return all(often("MPI_Allgather_init", info, request), COLL_ALLGATHER, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm);
}

MPI_ALIAS(Allgather_c);
int PMPI_Allgather_c(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf, MPI_Count recvcount,
                     MPI_Datatype recvtype, MPI_Comm comm)
{
    return all(now("MPI_Allgather_c"), COLL_ALLGATHER, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm);
}

MPI_ALIAS(Iallgather_c);
int PMPI_Iallgather_c(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf, MPI_Count recvcount,
                      MPI_Datatype recvtype, MPI_Comm comm, MPI_Request *request)
{
    return all(later("MPI_Iallgather_c", request), COLL_ALLGATHER, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm);
}

MPI_ALIAS(Allgather_init_c);
int PMPI_Allgather_init_c(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf, MPI_Count recvcount,
                          MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info, MPI_Request *request)
{
    return all(often("MPI_Allgather_init_c", info, request), COLL_ALLGATHER, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm);
}

MPI_ALIAS(Alltoall);
int PMPI_Alltoall(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int recvcount, MPI_Datatype recvtype,
                  MPI_Comm comm)
{
    return all(now("MPI_Alltoall"), COLL_ALLTOALL, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm);
}

MPI_ALIAS(Ialltoall);
int PMPI_Ialltoall(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int recvcount, MPI_Datatype recvtype,
                   MPI_Comm comm, MPI_Request *request)
{
    return all(later("MPI_Ialltoall", request), COLL_ALLTOALL, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm);
}

MPI_ALIAS(Alltoall_init);
int PMPI_Alltoall_init(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int recvcount,
                       MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info, MPI_Request *request)
{
    return all(often("MPI_Alltoall_init", info, request), COLL_ALLTOALL, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm);
}

MPI_ALIAS(Alltoall_c);
int PMPI_Alltoall_c(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf, MPI_Count recvcount,
                    MPI_Datatype recvtype, MPI_Comm comm)
{
    return all(now("MPI_Alltoall_c"), COLL_ALLTOALL, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm);
}

MPI_ALIAS(Ialltoall_c);
int PMPI_Ialltoall_c(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf, MPI_Count recvcount,
                     MPI_Datatype recvtype, MPI_Comm comm, MPI_Request *request)
{
    return all(later("MPI_Ialltoall_c", request), COLL_ALLTOALL, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm);
}

MPI_ALIAS(Alltoall_init_c);
int PMPI_Alltoall_init_c(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf, MPI_Count recvcount,
                         MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info, MPI_Request *request)
{
    return all(often("MPI_Alltoall_init_c", info, request), COLL_ALLTOALL, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm);
}
