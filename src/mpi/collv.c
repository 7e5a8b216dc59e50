/*
 * collv.c - entry points: collectives that move blocks of varying size from or to a
 * root, or to all (MPI-5.0 sections 6.5 to 6.7, and 6.12).
 */
#include "mpi/collblocks.h"

static const struct names scatter_side = {"sendbuf", "sendcounts", "displs", "sendtype"};

/* ---- gatherv, scatterv: the blocks matter at the root ---- */

static int gatherv(struct use u, const void *sendbuf, int64_t sendcount, MPI_Datatype sendtype, struct blocks *recv,
                   int root, MPI_Comm comm)
{
    struct coll_call a = {.kind = COLL_GATHERV, .sendbuf = sendbuf, .scount = sendcount, .root = root};
    int rc = MPI_SUCCESS;
    struct comm *c = collective(u.call, comm, &rc);
    if (!c) return rc;
    if (!root_ok(c, root)) return bad_root(c, u.call, root);
    bool gets = at_root(c, root), gives = is_served(c, root) && !(gets && place_ok(c, sendbuf));
    if (gives && (rc = check_block(c, u.call, &data_sent, sendbuf, sendcount, sendtype, &a.stype))) return rc;
    return gets ? carry_out_blocks(u, c, &a, NULL, 0, recv, comm_peers(c)) : carry_out(u, c, &a);
}

MPI_ALIAS(Gatherv);
int PMPI_Gatherv(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, const int recvcounts[],
                 const int displs[], MPI_Datatype recvtype, int root, MPI_Comm comm)
{
    struct blocks recv = {&blocks_gathered, recvbuf, .counts = recvcounts, .displs = displs, .datatype = recvtype};
    return gatherv(now("MPI_Gatherv"), sendbuf, sendcount, sendtype, &recv, root, comm);
}

MPI_ALIAS(Igatherv);
int PMPI_Igatherv(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, const int recvcounts[],
                  const int displs[], MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Request *request)
{
    struct blocks recv = {&blocks_gathered, recvbuf, .counts = recvcounts, .displs = displs, .datatype = recvtype};
    return gatherv(later("MPI_Igatherv", request), sendbuf, sendcount, sendtype, &recv, root, comm);
}

MPI_ALIAS(Gatherv_init);
int PMPI_Gatherv_init(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, const int recvcounts[],
                      const int displs[], MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Info info, MPI_Request *request)
{
    struct blocks recv = {&blocks_gathered, recvbuf, .counts = recvcounts, .displs = displs, .datatype = recvtype};
    return gatherv(often("MPI_Gatherv_init", info, request), sendbuf, sendcount, sendtype, &recv, root, comm);
}

MPI_ALIAS(Gatherv_c);
int PMPI_Gatherv_c(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf, const MPI_Count recvcounts[],
                   const MPI_Aint displs[], MPI_Datatype recvtype, int root, MPI_Comm comm)
{
    struct blocks recv = {&blocks_gathered, recvbuf, .wide_counts = recvcounts, .wide_displs = displs, .datatype = recvtype};
    return gatherv(now("MPI_Gatherv_c"), sendbuf, sendcount, sendtype, &recv, root, comm);
}

MPI_ALIAS(Igatherv_c);
int PMPI_Igatherv_c(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf, const MPI_Count recvcounts[],
                    const MPI_Aint displs[], MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Request *request)
{
    struct blocks recv = {&blocks_gathered, recvbuf, .wide_counts = recvcounts, .wide_displs = displs, .datatype = recvtype};
    return gatherv(later("MPI_Igatherv_c", request), sendbuf, sendcount, sendtype, &recv, root, comm);
}

MPI_ALIAS(Gatherv_init_c);
int PMPI_Gatherv_init_c(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
                        const MPI_Count recvcounts[], const MPI_Aint displs[], MPI_Datatype recvtype, int root, MPI_Comm comm,
                        MPI_Info info, MPI_Request *request)
{
    struct blocks recv = {&blocks_gathered, recvbuf, .wide_counts = recvcounts, .wide_displs = displs, .datatype = recvtype};
    return gatherv(often("MPI_Gatherv_init_c", info, request), sendbuf, sendcount, sendtype, &recv, root, comm);
}

static int scatterv(struct use u, struct blocks *send, void *recvbuf, int64_t recvcount, MPI_Datatype recvtype, int root,
                    MPI_Comm comm)
{
    struct coll_call a = {.kind = COLL_SCATTERV, .recvbuf = recvbuf, .rcount = recvcount, .root = root};
    int rc = MPI_SUCCESS;
    struct comm *c = collective(u.call, comm, &rc);
    if (!c) return rc;
    if (!root_ok(c, root)) return bad_root(c, u.call, root);
    bool gives = at_root(c, root), gets = is_served(c, root) && !(gives && place_ok(c, recvbuf));
    if (gets && (rc = check_block(c, u.call, &data_received, recvbuf, recvcount, recvtype, &a.rtype))) return rc;
    return gives ? carry_out_blocks(u, c, &a, send, comm_peers(c), NULL, 0) : carry_out(u, c, &a);
}

MPI_ALIAS(Scatterv);
int PMPI_Scatterv(const void *sendbuf, const int sendcounts[], const int displs[], MPI_Datatype sendtype, void *recvbuf,
                  int recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm)
{
    struct blocks send = {&scatter_side, sendbuf, .counts = sendcounts, .displs = displs, .datatype = sendtype};
    return scatterv(now("MPI_Scatterv"), &send, recvbuf, recvcount, recvtype, root, comm);
}

MPI_ALIAS(Iscatterv);
int PMPI_Iscatterv(const void *sendbuf, const int sendcounts[], const int displs[], MPI_Datatype sendtype, void *recvbuf,
                   int recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Request *request)
{
    struct blocks send = {&scatter_side, sendbuf, .counts = sendcounts, .displs = displs, .datatype = sendtype};
    return scatterv(later("MPI_Iscatterv", request), &send, recvbuf, recvcount, recvtype, root, comm);
}

MPI_ALIAS(Scatterv_init);
int PMPI_Scatterv_init(const void *sendbuf, const int sendcounts[], const int displs[], MPI_Datatype sendtype, void *recvbuf,
                       int recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Info info, MPI_Request *request)
{
    struct blocks send = {&scatter_side, sendbuf, .counts = sendcounts, .displs = displs, .datatype = sendtype};
    return scatterv(often("MPI_Scatterv_init", info, request), &send, recvbuf, recvcount, recvtype, root, comm);
}

MPI_ALIAS(Scatterv_c);
int PMPI_Scatterv_c(const void *sendbuf, const MPI_Count sendcounts[], const MPI_Aint displs[], MPI_Datatype sendtype,
                    void *recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm)
{
    struct blocks send = {&scatter_side, sendbuf, .wide_counts = sendcounts, .wide_displs = displs, .datatype = sendtype};
    return scatterv(now("MPI_Scatterv_c"), &send, recvbuf, recvcount, recvtype, root, comm);
}

MPI_ALIAS(Iscatterv_c);
int PMPI_Iscatterv_c(const void *sendbuf, const MPI_Count sendcounts[], const MPI_Aint displs[], MPI_Datatype sendtype,
                     void *recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Request *request)
{
    struct blocks send = {&scatter_side, sendbuf, .wide_counts = sendcounts, .wide_displs = displs, .datatype = sendtype};
    return scatterv(later("MPI_Iscatterv_c", request), &send, recvbuf, recvcount, recvtype, root, comm);
}

MPI_ALIAS(Scatterv_init_c);
int PMPI_Scatterv_init_c(const void *sendbuf, const MPI_Count sendcounts[], const MPI_Aint displs[], MPI_Datatype sendtype,
                         void *recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Info info,
                         MPI_Request *request)
{
    struct blocks send = {&scatter_side, sendbuf, .wide_counts = sendcounts, .wide_displs = displs, .datatype = sendtype};
    return scatterv(often("MPI_Scatterv_init_c", info, request), &send, recvbuf, recvcount, recvtype, root, comm);
}

/* ---- allgatherv ---- */

static int allgatherv(struct use u, const void *sendbuf, int64_t sendcount, MPI_Datatype sendtype, struct blocks *recv,
                      MPI_Comm comm)
{
    struct coll_call a = {.kind = COLL_ALLGATHERV, .sendbuf = sendbuf, .scount = sendcount};
    int rc;
    struct comm *c = collective(u.call, comm, &rc);
    if (!c) return rc;
    if (!place_ok(c, sendbuf) && (rc = check_block(c, u.call, &data_sent, sendbuf, sendcount, sendtype, &a.stype)))
        return rc;
    return carry_out_blocks(u, c, &a, NULL, 0, recv, comm_peers(c));
}

MPI_ALIAS(Allgatherv);
int PMPI_Allgatherv(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, const int recvcounts[],
                    const int displs[], MPI_Datatype recvtype, MPI_Comm comm)
{
    struct blocks recv = {&blocks_gathered, recvbuf, .counts = recvcounts, .displs = displs, .datatype = recvtype};
    return allgatherv(now("MPI_Allgatherv"), sendbuf, sendcount, sendtype, &recv, comm);
}

MPI_ALIAS(Iallgatherv);
int PMPI_Iallgatherv(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, const int recvcounts[],
                     const int displs[], MPI_Datatype recvtype, MPI_Comm comm, MPI_Request *request)
{
    struct blocks recv = {&blocks_gathered, recvbuf, .counts = recvcounts, .displs = displs, .datatype = recvtype};
    return allgatherv(later("MPI_Iallgatherv", request), sendbuf, sendcount, sendtype, &recv, comm);
}

MPI_ALIAS(Allgatherv_init);
int PMPI_Allgatherv_init(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, const int recvcounts[],
                         const int displs[], MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info, MPI_Request *request)
{
    struct blocks recv = {&blocks_gathered, recvbuf, .counts = recvcounts, .displs = displs, .datatype = recvtype};
    return allgatherv(often("MPI_Allgatherv_init", info, request), sendbuf, sendcount, sendtype, &recv, comm);
}

MPI_ALIAS(Allgatherv_c);
int PMPI_Allgatherv_c(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
                      const MPI_Count recvcounts[], const MPI_Aint displs[], MPI_Datatype recvtype, MPI_Comm comm)
{
    struct blocks recv = {&blocks_gathered, recvbuf, .wide_counts = recvcounts, .wide_displs = displs, .datatype = recvtype};
    return allgatherv(now("MPI_Allgatherv_c"), sendbuf, sendcount, sendtype, &recv, comm);
}

MPI_ALIAS(Iallgatherv_c);
int PMPI_Iallgatherv_c(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
                       const MPI_Count recvcounts[], const MPI_Aint displs[], MPI_Datatype recvtype, MPI_Comm comm,
                       MPI_Request *request)
{
    struct blocks recv = {&blocks_gathered, recvbuf, .wide_counts = recvcounts, .wide_displs = displs, .datatype = recvtype};
    return allgatherv(later("MPI_Iallgatherv_c", request), sendbuf, sendcount, sendtype, &recv, comm);
}

MPI_ALIAS(Allgatherv_init_c);
int PMPI_Allgatherv_init_c(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
                           const MPI_Count recvcounts[], const MPI_Aint displs[], MPI_Datatype recvtype, MPI_Comm comm,
                           MPI_Info info, MPI_Request *request)
{
    struct blocks recv = {&blocks_gathered, recvbuf, .wide_counts = recvcounts, .wide_displs = displs, .datatype = recvtype};
    return allgatherv(often("MPI_Allgatherv_init_c", info, request), sendbuf, sendcount, sendtype, &recv, comm);
}
