/*
 * alltoallv.c - entry points: everybody to everybody with blocks of varying size
 * (MPI-5.0 sections 6.8 and 6.12).
 */
#include "mpi/collblocks.h"

/* What is sent does not matter in place. */
static int alltoall(struct use u, struct blocks *send, struct blocks *recv, MPI_Comm comm)
{
    struct coll_call a = {.kind = recv->each ? COLL_ALLTOALLW : COLL_ALLTOALLV, .sendbuf = send->buf};
    int rc;
    struct comm *c = collective(u.call, comm, &rc);
    if (!c) return rc;
    return carry_out_blocks(u, c, &a, place_ok(c, send->buf) ? NULL : send, comm_peers(c), recv, comm_peers(c));
}

MPI_ALIAS(Alltoallv);
int PMPI_Alltoallv(const void *sendbuf, const int sendcounts[], const int sdispls[], MPI_Datatype sendtype, void *recvbuf,
                   const int recvcounts[], const int rdispls[], MPI_Datatype recvtype, MPI_Comm comm)
{
    struct blocks send = {&blocks_sent, sendbuf, .counts = sendcounts, .displs = sdispls, .datatype = sendtype};
    struct blocks recv = {&blocks_received, recvbuf, .counts = recvcounts, .displs = rdispls, .datatype = recvtype};
    return alltoall(now("MPI_Alltoallv"), &send, &recv, comm);
}

MPI_ALIAS(Ialltoallv);
int PMPI_Ialltoallv(const void *sendbuf, const int sendcounts[], const int sdispls[], MPI_Datatype sendtype, void *recvbuf,
                    const int recvcounts[], const int rdispls[], MPI_Datatype recvtype, MPI_Comm comm, MPI_Request *request)
{
    struct blocks send = {&blocks_sent, sendbuf, .counts = sendcounts, .displs = sdispls, .datatype = sendtype};
    struct blocks recv = {&blocks_received, recvbuf, .counts = recvcounts, .displs = rdispls, .datatype = recvtype};
    return alltoall(later("MPI_Ialltoallv", request), &send, &recv, comm);
}

MPI_ALIAS(Alltoallv_init);
int PMPI_Alltoallv_init(const void *sendbuf, const int sendcounts[], const int sdispls[], MPI_Datatype sendtype, void *recvbuf,
                        const int recvcounts[], const int rdispls[], MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info,
                        MPI_Request *request)
{
    struct blocks send = {&blocks_sent, sendbuf, .counts = sendcounts, .displs = sdispls, .datatype = sendtype};
    struct blocks recv = {&blocks_received, recvbuf, .counts = recvcounts, .displs = rdispls, .datatype = recvtype};
    return alltoall(often("MPI_Alltoallv_init", info, request), &send, &recv, comm);
}

MPI_ALIAS(Alltoallv_c);
int PMPI_Alltoallv_c(const void *sendbuf, const MPI_Count sendcounts[], const MPI_Aint sdispls[], MPI_Datatype sendtype,
                     void *recvbuf, const MPI_Count recvcounts[], const MPI_Aint rdispls[], MPI_Datatype recvtype, MPI_Comm comm)
{
    struct blocks send = {&blocks_sent, sendbuf, .wide_counts = sendcounts, .wide_displs = sdispls, .datatype = sendtype};
    struct blocks recv = {&blocks_received, recvbuf, .wide_counts = recvcounts, .wide_displs = rdispls, .datatype = recvtype};
    return alltoall(now("MPI_Alltoallv_c"), &send, &recv, comm);
}

MPI_ALIAS(Ialltoallv_c);
int PMPI_Ialltoallv_c(const void *sendbuf, const MPI_Count sendcounts[], const MPI_Aint sdispls[], MPI_Datatype sendtype,
                      void *recvbuf, const MPI_Count recvcounts[], const MPI_Aint rdispls[], MPI_Datatype recvtype, MPI_Comm comm,
                      MPI_Request *request)
{
    struct blocks send = {&blocks_sent, sendbuf, .wide_counts = sendcounts, .wide_displs = sdispls, .datatype = sendtype};
    struct blocks recv = {&blocks_received, recvbuf, .wide_counts = recvcounts, .wide_displs = rdispls, .datatype = recvtype};
    return alltoall(later("MPI_Ialltoallv_c", request), &send, &recv, comm);
}

MPI_ALIAS(Alltoallv_init_c);
int PMPI_Alltoallv_init_c(const void *sendbuf, const MPI_Count sendcounts[], const MPI_Aint sdispls[], MPI_Datatype sendtype,
                          void *recvbuf, const MPI_Count recvcounts[], const MPI_Aint rdispls[], MPI_Datatype recvtype,
                          MPI_Comm comm, MPI_Info info, MPI_Request *request)
{
    struct blocks send = {&blocks_sent, sendbuf, .wide_counts = sendcounts, .wide_displs = sdispls, .datatype = sendtype};
    struct blocks recv = {&blocks_received, recvbuf, .wide_counts = recvcounts, .wide_displs = rdispls, .datatype = recvtype};
    return alltoall(often("MPI_Alltoallv_init_c", info, request), &send, &recv, comm);
}

MPI_ALIAS(Alltoallw);
int PMPI_Alltoallw(const void *sendbuf, const int sendcounts[], const int sdispls[], const MPI_Datatype sendtypes[],
                   void *recvbuf, const int recvcounts[], const int rdispls[], const MPI_Datatype recvtypes[], MPI_Comm comm)
{
    struct blocks send = {&blocks_sent_each, sendbuf, .counts = sendcounts, .displs = sdispls, .each = true, .datatypes = sendtypes};
    struct blocks recv = {&blocks_received_each, recvbuf, .counts = recvcounts, .displs = rdispls, .each = true, .datatypes = recvtypes};
    return alltoall(now("MPI_Alltoallw"), &send, &recv, comm);
}

MPI_ALIAS(Ialltoallw);
int PMPI_Ialltoallw(const void *sendbuf, const int sendcounts[], const int sdispls[], const MPI_Datatype sendtypes[],
                    void *recvbuf, const int recvcounts[], const int rdispls[], const MPI_Datatype recvtypes[], MPI_Comm comm,
                    MPI_Request *request)
{
    struct blocks send = {&blocks_sent_each, sendbuf, .counts = sendcounts, .displs = sdispls, .each = true, .datatypes = sendtypes};
    struct blocks recv = {&blocks_received_each, recvbuf, .counts = recvcounts, .displs = rdispls, .each = true, .datatypes = recvtypes};
    return alltoall(later("MPI_Ialltoallw", request), &send, &recv, comm);
}

MPI_ALIAS(Alltoallw_init);
int PMPI_Alltoallw_init(const void *sendbuf, const int sendcounts[], const int sdispls[], const MPI_Datatype sendtypes[],
                        void *recvbuf, const int recvcounts[], const int rdispls[], const MPI_Datatype recvtypes[],
                        MPI_Comm comm, MPI_Info info, MPI_Request *request)
{
    struct blocks send = {&blocks_sent_each, sendbuf, .counts = sendcounts, .displs = sdispls, .each = true, .datatypes = sendtypes};
    struct blocks recv = {&blocks_received_each, recvbuf, .counts = recvcounts, .displs = rdispls, .each = true, .datatypes = recvtypes};
    return alltoall(often("MPI_Alltoallw_init", info, request), &send, &recv, comm);
}

MPI_ALIAS(Alltoallw_c);
int PMPI_Alltoallw_c(const void *sendbuf, const MPI_Count sendcounts[], const MPI_Aint sdispls[], const MPI_Datatype sendtypes[],
                     void *recvbuf, const MPI_Count recvcounts[], const MPI_Aint rdispls[], const MPI_Datatype recvtypes[],
                     MPI_Comm comm)
{
    struct blocks send = {&blocks_sent_each, sendbuf, .wide_counts = sendcounts, .wide_displs = sdispls, .each = true, .datatypes = sendtypes};
    struct blocks recv = {&blocks_received_each, recvbuf, .wide_counts = recvcounts, .wide_displs = rdispls, .each = true, .datatypes = recvtypes};
    return alltoall(now("MPI_Alltoallw_c"), &send, &recv, comm);
}

MPI_ALIAS(Ialltoallw_c);
int PMPI_Ialltoallw_c(const void *sendbuf, const MPI_Count sendcounts[], const MPI_Aint sdispls[], const MPI_Datatype sendtypes[],
                      void *recvbuf, const MPI_Count recvcounts[], const MPI_Aint rdispls[], const MPI_Datatype recvtypes[],
                      MPI_Comm comm, MPI_Request *request)
{
    struct blocks send = {&blocks_sent_each, sendbuf, .wide_counts = sendcounts, .wide_displs = sdispls, .each = true, .datatypes = sendtypes};
    struct blocks recv = {&blocks_received_each, recvbuf, .wide_counts = recvcounts, .wide_displs = rdispls, .each = true, .datatypes = recvtypes};
    return alltoall(later("MPI_Ialltoallw_c", request), &send, &recv, comm);
}

MPI_ALIAS(Alltoallw_init_c);
int PMPI_Alltoallw_init_c(const void *sendbuf, const MPI_Count sendcounts[], const MPI_Aint sdispls[],
                          const MPI_Datatype sendtypes[], void *recvbuf, const MPI_Count recvcounts[], const MPI_Aint rdispls[],
                          const MPI_Datatype recvtypes[], MPI_Comm comm, MPI_Info info, MPI_Request *request)
{
    struct blocks send = {&blocks_sent_each, sendbuf, .wide_counts = sendcounts, .wide_displs = sdispls, .each = true, .datatypes = sendtypes};
    struct blocks recv = {&blocks_received_each, recvbuf, .wide_counts = recvcounts, .wide_displs = rdispls, .each = true, .datatypes = recvtypes};
    return alltoall(often("MPI_Alltoallw_init_c", info, request), &send, &recv, comm);
}
