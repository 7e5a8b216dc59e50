/*
 * alltoallv.c - entry points: everybody to everybody with blocks of varying size
 * (MPI-5.0 sections 6.8 and 6.12).
 */
#include "mpi/collblocks.h"

static const struct names send_side = {"send", "sendbuf", "sendcounts", "sdispls", "sendtype"};
static const struct names recv_side = {"recv", "recvbuf", "recvcounts", "rdispls", "recvtype"};
static const struct names send_w = {"send", "sendbuf", "sendcounts", "sdispls", "sendtypes"};
static const struct names recv_w = {"recv", "recvbuf", "recvcounts", "rdispls", "recvtypes"};

/* What is sent does not matter in place. */
static int alltoall(struct use u, struct blocks *send, struct blocks *recv, MPI_Comm comm)
{
    struct blocks_room room_send, room_recv;
    int rc;
    struct comm *c = collective(u.call, comm, &rc);
    if (!c) return rc;
    bool in_place = place_ok(c, send->buf);
    rc = in_place ? MPI_SUCCESS : blocks_open(c, u.call, send, &room_send);
    if (!rc) rc = blocks_open(c, u.call, recv, &room_recv);
    if (!rc) {
        struct coll_call a = {.kind = recv->each ? COLL_ALLTOALLW : COLL_ALLTOALLV,
                              .sendbuf = send->buf,
                              .recvbuf = (void *)(uintptr_t)recv->buf,
                              .scounts = in_place ? NULL : send->wide_counts,
                              .sdispls = in_place ? NULL : send->wide_displs,
                              .stype = send->type,
                              .stypes = send->types,
                              .rcounts = recv->wide_counts,
                              .rdispls = recv->wide_displs,
                              .rtype = recv->type,
                              .rtypes = recv->types};
        rc = carry_out(u, c, &a);
    }
    blocks_close(send);
    blocks_close(recv);
    return rc;
}

MPI_ALIAS(Alltoallv);
int PMPI_Alltoallv(const void *sendbuf, const int sendcounts[], const int sdispls[], MPI_Datatype sendtype, void *recvbuf,
                   const int recvcounts[], const int rdispls[], MPI_Datatype recvtype, MPI_Comm comm)
{
    struct blocks send = {&send_side, sendbuf, .counts = sendcounts, .displs = sdispls, .datatype = sendtype};
    struct blocks recv = {&recv_side, recvbuf, .counts = recvcounts, .displs = rdispls, .datatype = recvtype};
    return alltoall(now("MPI_Alltoallv"), &send, &recv, comm);
}

MPI_ALIAS(Ialltoallv);
int PMPI_Ialltoallv(const void *sendbuf, const int sendcounts[], const int sdispls[], MPI_Datatype sendtype, void *recvbuf,
                    const int recvcounts[], const int rdispls[], MPI_Datatype recvtype, MPI_Comm comm, MPI_Request *request)
{
    struct blocks send = {&send_side, sendbuf, .counts = sendcounts, .displs = sdispls, .datatype = sendtype};
    struct blocks recv = {&recv_side, recvbuf, .counts = recvcounts, .displs = rdispls, .datatype = recvtype};
    return alltoall(later("MPI_Ialltoallv", request), &send, &recv, comm);
}

MPI_ALIAS(Alltoallv_init);
int PMPI_Alltoallv_init(const void *sendbuf, const int sendcounts[], const int sdispls[], MPI_Datatype sendtype, void *recvbuf,
                        const int recvcounts[], const int rdispls[], MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info,
                        MPI_Request *request)
{
    struct blocks send = {&send_side, sendbuf, .counts = sendcounts, .displs = sdispls, .datatype = sendtype};
    struct blocks recv = {&recv_side, recvbuf, .counts = recvcounts, .displs = rdispls, .datatype = recvtype};
    return alltoall(often("MPI_Alltoallv_init", info, request), &send, &recv, comm);
}

MPI_ALIAS(Alltoallv_c);
int PMPI_Alltoallv_c(const void *sendbuf, const MPI_Count sendcounts[], const MPI_Aint sdispls[], MPI_Datatype sendtype,
                     void *recvbuf, const MPI_Count recvcounts[], const MPI_Aint rdispls[], MPI_Datatype recvtype, MPI_Comm comm)
{
    struct blocks send = {&send_side, sendbuf, .wide_counts = sendcounts, .wide_displs = sdispls, .datatype = sendtype};
    struct blocks recv = {&recv_side, recvbuf, .wide_counts = recvcounts, .wide_displs = rdispls, .datatype = recvtype};
    return alltoall(now("MPI_Alltoallv_c"), &send, &recv, comm);
}

MPI_ALIAS(Ialltoallv_c);
int PMPI_Ialltoallv_c(const void *sendbuf, const MPI_Count sendcounts[], const MPI_Aint sdispls[], MPI_Datatype sendtype,
                      void *recvbuf, const MPI_Count recvcounts[], const MPI_Aint rdispls[], MPI_Datatype recvtype, MPI_Comm comm,
                      MPI_Request *request)
{
    struct blocks send = {&send_side, sendbuf, .wide_counts = sendcounts, .wide_displs = sdispls, .datatype = sendtype};
    struct blocks recv = {&recv_side, recvbuf, .wide_counts = recvcounts, .wide_displs = rdispls, .datatype = recvtype};
    return alltoall(later("MPI_Ialltoallv_c", request), &send, &recv, comm);
}

MPI_ALIAS(Alltoallv_init_c);
int PMPI_Alltoallv_init_c(const void *sendbuf, const MPI_Count sendcounts[], const MPI_Aint sdispls[], MPI_Datatype sendtype,
                          void *recvbuf, const MPI_Count recvcounts[], const MPI_Aint rdispls[], MPI_Datatype recvtype,
                          MPI_Comm comm, MPI_Info info, MPI_Request *request)
{
    struct blocks send = {&send_side, sendbuf, .wide_counts = sendcounts, .wide_displs = sdispls, .datatype = sendtype};
    struct blocks recv = {&recv_side, recvbuf, .wide_counts = recvcounts, .wide_displs = rdispls, .datatype = recvtype};
    return alltoall(often("MPI_Alltoallv_init_c", info, request), &send, &recv, comm);
}

MPI_ALIAS(Alltoallw);
int PMPI_Alltoallw(const void *sendbuf, const int sendcounts[], const int sdispls[], const MPI_Datatype sendtypes[],
                   void *recvbuf, const int recvcounts[], const int rdispls[], const MPI_Datatype recvtypes[], MPI_Comm comm)
{
    struct blocks send = {&send_w, sendbuf, .counts = sendcounts, .displs = sdispls, .each = true, .datatypes = sendtypes};
    struct blocks recv = {&recv_w, recvbuf, .counts = recvcounts, .displs = rdispls, .each = true, .datatypes = recvtypes};
    return alltoall(now("MPI_Alltoallw"), &send, &recv, comm);
}

MPI_ALIAS(Ialltoallw);
int PMPI_Ialltoallw(const void *sendbuf, const int sendcounts[], const int sdispls[], const MPI_Datatype sendtypes[],
                    void *recvbuf, const int recvcounts[], const int rdispls[], const MPI_Datatype recvtypes[], MPI_Comm comm,
                    MPI_Request *request)
{
    struct blocks send = {&send_w, sendbuf, .counts = sendcounts, .displs = sdispls, .each = true, .datatypes = sendtypes};
    struct blocks recv = {&recv_w, recvbuf, .counts = recvcounts, .displs = rdispls, .each = true, .datatypes = recvtypes};
    return alltoall(later("MPI_Ialltoallw", request), &send, &recv, comm);
}

MPI_ALIAS(Alltoallw_init);
int PMPI_Alltoallw_init(const void *sendbuf, const int sendcounts[], const int sdispls[], const MPI_Datatype sendtypes[],
                        void *recvbuf, const int recvcounts[], const int rdispls[], const MPI_Datatype recvtypes[],
                        MPI_Comm comm, MPI_Info info, MPI_Request *request)
{
    struct blocks send = {&send_w, sendbuf, .counts = sendcounts, .displs = sdispls, .each = true, .datatypes = sendtypes};
    struct blocks recv = {&recv_w, recvbuf, .counts = recvcounts, .displs = rdispls, .each = true, .datatypes = recvtypes};
    return alltoall(often("MPI_Alltoallw_init", info, request), &send, &recv, comm);
}

MPI_ALIAS(Alltoallw_c);
int PMPI_Alltoallw_c(const void *sendbuf, const MPI_Count sendcounts[], const MPI_Aint sdispls[], const MPI_Datatype sendtypes[],
                     void *recvbuf, const MPI_Count recvcounts[], const MPI_Aint rdispls[], const MPI_Datatype recvtypes[],
                     MPI_Comm comm)
{
    struct blocks send = {&send_w, sendbuf, .wide_counts = sendcounts, .wide_displs = sdispls, .each = true, .datatypes = sendtypes};
    struct blocks recv = {&recv_w, recvbuf, .wide_counts = recvcounts, .wide_displs = rdispls, .each = true, .datatypes = recvtypes};
    return alltoall(now("MPI_Alltoallw_c"), &send, &recv, comm);
}

MPI_ALIAS(Ialltoallw_c);
int PMPI_Ialltoallw_c(const void *sendbuf, const MPI_Count sendcounts[], const MPI_Aint sdispls[], const MPI_Datatype sendtypes[],
                      void *recvbuf, const MPI_Count recvcounts[], const MPI_Aint rdispls[], const MPI_Datatype recvtypes[],
                      MPI_Comm comm, MPI_Request *request)
{
    struct blocks send = {&send_w, sendbuf, .wide_counts = sendcounts, .wide_displs = sdispls, .each = true, .datatypes = sendtypes};
    struct blocks recv = {&recv_w, recvbuf, .wide_counts = recvcounts, .wide_displs = rdispls, .each = true, .datatypes = recvtypes};
    return alltoall(later("MPI_Ialltoallw_c", request), &send, &recv, comm);
}

MPI_ALIAS(Alltoallw_init_c);
int PMPI_Alltoallw_init_c(const void *sendbuf, const MPI_Count sendcounts[], const MPI_Aint sdispls[],
                          const MPI_Datatype sendtypes[], void *recvbuf, const MPI_Count recvcounts[], const MPI_Aint rdispls[],
                          const MPI_Datatype recvtypes[], MPI_Comm comm, MPI_Info info, MPI_Request *request)
{
    struct blocks send = {&send_w, sendbuf, .wide_counts = sendcounts, .wide_displs = sdispls, .each = true, .datatypes = sendtypes};
    struct blocks recv = {&recv_w, recvbuf, .wide_counts = recvcounts, .wide_displs = rdispls, .each = true, .datatypes = recvtypes};
    return alltoall(often("MPI_Alltoallw_init_c", info, request), &send, &recv, comm);
}
