/*
 * neighbor.c - entry points: collectives along the edges of a communicator's topology (MPI-5.0
 * sections 8.6 to 8.8).
 */
#include "mpi/collblocks.h"
#include "topo/topo.h"

/* The communicator, its neighbours put into the call; NULL: *rc is the reported class. */
static struct comm *neighborhood(const char *call, MPI_Comm comm, struct coll_call *a, int *rc)
{
    struct topo_neighbors n;
    struct comm *c = collective(call, comm, rc);
    if (unlikely(!c)) return NULL;
    if (unlikely(c->inter)) {
        *rc = report(c, call, MPI_ERR_COMM, "argument comm is an intercommunicator, which has no topology and no neighbours");
        return NULL;
    }
    int code = topo_neighbors(c, &n);
    if (unlikely(code)) {
        *rc = report_code(c, call, code);
        return NULL;
    }
    a->in = n.in;
    a->out = n.out;
    a->sources = n.sources;
    a->destinations = n.destinations;
    a->grid = topo_of(c)->kind == MPI_CART;
    return c;
}

/* A buffer of `blocks` blocks for n neighbours: where there is none it is not looked at. */
static int check_side(struct comm *c, const char *call, const struct data_names *names, const void *buf, int n,
                      int blocks, int64_t count, MPI_Datatype h, struct type **t_p)
{
    return check_blocks(c, call, names, n ? buf : "", count, n ? blocks : 1, h, t_p);
}

/* ---- blocks of one size ---- */

/* This rank sends other amounts than it receives (two neighbours may differ so): blocks that happen to be equal. */
static TERN_COLD int uneven(struct use u, struct comm *c, const struct coll_call *regular)
{
    struct coll_call a = *regular;
    bool gather = a.kind == COLL_NEIGHBOR_ALLGATHER;
    int n = a.in > a.out ? a.in : a.out;
    int64_t *mem = malloc(4 * (size_t)n * sizeof *mem), *sc = mem, *sd = sc + n, *rc = sd + n, *rd = rc + n;
    if (!mem) return report(c, u.call, MPI_ERR_NO_MEM, "no memory for arrays of %d entries", n);
    for (int i = 0; i < n; i++) {
        sc[i] = a.scount, sd[i] = i * a.scount;
        rc[i] = a.rcount, rd[i] = i * a.rcount;
    }
    a.kind = gather ? COLL_NEIGHBOR_ALLGATHERV : COLL_NEIGHBOR_ALLTOALLV;
    if (!gather) a.scounts = sc, a.sdispls = sd;
    a.rcounts = rc, a.rdispls = rd;
    int code = carry_out(u, c, &a);
    free(mem);
    return code;
}

static int regular(struct use u, enum coll_kind kind, const void *sendbuf, int64_t sendcount, MPI_Datatype sendtype, void *recvbuf,
                   int64_t recvcount, MPI_Datatype recvtype, MPI_Comm comm)
{
    struct coll_call a = {.kind = kind, .sendbuf = sendbuf, .scount = sendcount, .recvbuf = recvbuf, .rcount = recvcount};
    int rc;
    struct comm *c = neighborhood(u.call, comm, &a, &rc);
    if (unlikely(!c)) return rc;
    int sent = kind == COLL_NEIGHBOR_ALLGATHER ? 1 : a.out;
    if ((rc = check_side(c, u.call, &data_sent, sendbuf, a.out, sent, sendcount, sendtype, &a.stype))) return rc;
    if ((rc = check_side(c, u.call, &data_received, recvbuf, a.in, a.in, recvcount, recvtype, &a.rtype))) return rc;
    if (a.in && a.out && !apart(recvbuf, recvcount, a.rtype, 0, sendbuf, sendcount, a.stype))
        return bad_aliases(c, u.call, "sendbuf", "recvbuf");
    bool even = !a.in || !a.out || sendcount * a.stype->size == recvcount * a.rtype->size;
    return likely(even) ? carry_out(u, c, &a) : uneven(u, c, &a);
}

MPI_ALIAS(Neighbor_allgather);
int PMPI_Neighbor_allgather(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int recvcount,
                            MPI_Datatype recvtype, MPI_Comm comm)
{
    return regular(now("MPI_Neighbor_allgather"), COLL_NEIGHBOR_ALLGATHER, sendbuf, sendcount, sendtype, recvbuf,
                   recvcount, recvtype, comm);
}

MPI_ALIAS(Ineighbor_allgather);
int PMPI_Ineighbor_allgather(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int recvcount,
                             MPI_Datatype recvtype, MPI_Comm comm, MPI_Request *request)
{
    return regular(later("MPI_Ineighbor_allgather", request), COLL_NEIGHBOR_ALLGATHER, sendbuf, sendcount, sendtype,
                   recvbuf, recvcount, recvtype, comm);
}

MPI_ALIAS(Neighbor_allgather_init);
int PMPI_Neighbor_allgather_init(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf,
                                 int recvcount, MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info,
                                 MPI_Request *request)
{
    return regular(often("MPI_Neighbor_allgather_init", info, request), COLL_NEIGHBOR_ALLGATHER, sendbuf, sendcount,
                   sendtype, recvbuf, recvcount, recvtype, comm);
}

MPI_ALIAS(Neighbor_allgather_c);
int PMPI_Neighbor_allgather_c(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
                              MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm)
{
    return regular(now("MPI_Neighbor_allgather_c"), COLL_NEIGHBOR_ALLGATHER, sendbuf, sendcount, sendtype, recvbuf,
                   recvcount, recvtype, comm);
}

MPI_ALIAS(Ineighbor_allgather_c);
int PMPI_Ineighbor_allgather_c(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
                               MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm, MPI_Request *request)
{
    return regular(later("MPI_Ineighbor_allgather_c", request), COLL_NEIGHBOR_ALLGATHER, sendbuf, sendcount, sendtype,
                   recvbuf, recvcount, recvtype, comm);
}

MPI_ALIAS(Neighbor_allgather_init_c);
int PMPI_Neighbor_allgather_init_c(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
                                   MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info,
                                   MPI_Request *request)
{
    return regular(often("MPI_Neighbor_allgather_init_c", info, request), COLL_NEIGHBOR_ALLGATHER, sendbuf, sendcount,
                   sendtype, recvbuf, recvcount, recvtype, comm);
}

MPI_ALIAS(Neighbor_alltoall);
int PMPI_Neighbor_alltoall(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int recvcount,
                           MPI_Datatype recvtype, MPI_Comm comm)
{
    return regular(now("MPI_Neighbor_alltoall"), COLL_NEIGHBOR_ALLTOALL, sendbuf, sendcount, sendtype, recvbuf,
                   recvcount, recvtype, comm);
}

MPI_ALIAS(Ineighbor_alltoall);
int PMPI_Ineighbor_alltoall(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int recvcount,
                            MPI_Datatype recvtype, MPI_Comm comm, MPI_Request *request)
{
    return regular(later("MPI_Ineighbor_alltoall", request), COLL_NEIGHBOR_ALLTOALL, sendbuf, sendcount, sendtype,
                   recvbuf, recvcount, recvtype, comm);
}

MPI_ALIAS(Neighbor_alltoall_init);
int PMPI_Neighbor_alltoall_init(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int recvcount,
                                MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info, MPI_Request *request)
{
    return regular(often("MPI_Neighbor_alltoall_init", info, request), COLL_NEIGHBOR_ALLTOALL, sendbuf, sendcount,
                   sendtype, recvbuf, recvcount, recvtype, comm);
}

MPI_ALIAS(Neighbor_alltoall_c);
int PMPI_Neighbor_alltoall_c(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
                             MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm)
{
    return regular(now("MPI_Neighbor_alltoall_c"), COLL_NEIGHBOR_ALLTOALL, sendbuf, sendcount, sendtype, recvbuf,
                   recvcount, recvtype, comm);
}

MPI_ALIAS(Ineighbor_alltoall_c);
int PMPI_Ineighbor_alltoall_c(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
                              MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm, MPI_Request *request)
{
    return regular(later("MPI_Ineighbor_alltoall_c", request), COLL_NEIGHBOR_ALLTOALL, sendbuf, sendcount, sendtype,
                   recvbuf, recvcount, recvtype, comm);
}

MPI_ALIAS(Neighbor_alltoall_init_c);
int PMPI_Neighbor_alltoall_init_c(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
                                  MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info,
                                  MPI_Request *request)
{
    return regular(often("MPI_Neighbor_alltoall_init_c", info, request), COLL_NEIGHBOR_ALLTOALL, sendbuf, sendcount,
                   sendtype, recvbuf, recvcount, recvtype, comm);
}

/* ---- blocks of varying size ---- */

static int allgatherv(struct use u, const void *sendbuf, int64_t sendcount, MPI_Datatype sendtype, struct blocks *recv,
                      MPI_Comm comm)
{
    struct coll_call a = {.kind = COLL_NEIGHBOR_ALLGATHERV, .sendbuf = sendbuf, .scount = sendcount};
    int rc;
    struct comm *c = neighborhood(u.call, comm, &a, &rc);
    if (!c) return rc;
    if ((rc = check_side(c, u.call, &data_sent, sendbuf, a.out, 1, sendcount, sendtype, &a.stype))) return rc;
    return carry_out_blocks(u, c, &a, NULL, 0, recv, a.in);
}

MPI_ALIAS(Neighbor_allgatherv);
int PMPI_Neighbor_allgatherv(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, const int recvcounts[],
                             const int displs[], MPI_Datatype recvtype, MPI_Comm comm)
{
    struct blocks recv = {&blocks_gathered, recvbuf, .counts = recvcounts, .displs = displs, .datatype = recvtype};
    return allgatherv(now("MPI_Neighbor_allgatherv"), sendbuf, sendcount, sendtype, &recv, comm);
}

MPI_ALIAS(Ineighbor_allgatherv);
int PMPI_Ineighbor_allgatherv(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, const int recvcounts[],
                              const int displs[], MPI_Datatype recvtype, MPI_Comm comm, MPI_Request *request)
{
    struct blocks recv = {&blocks_gathered, recvbuf, .counts = recvcounts, .displs = displs, .datatype = recvtype};
    return allgatherv(later("MPI_Ineighbor_allgatherv", request), sendbuf, sendcount, sendtype, &recv, comm);
}

MPI_ALIAS(Neighbor_allgatherv_init);
int PMPI_Neighbor_allgatherv_init(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf,
                                  const int recvcounts[], const int displs[], MPI_Datatype recvtype, MPI_Comm comm,
                                  MPI_Info info, MPI_Request *request)
{
    struct blocks recv = {&blocks_gathered, recvbuf, .counts = recvcounts, .displs = displs, .datatype = recvtype};
    return allgatherv(often("MPI_Neighbor_allgatherv_init", info, request), sendbuf, sendcount, sendtype, &recv, comm);
}

MPI_ALIAS(Neighbor_allgatherv_c);
int PMPI_Neighbor_allgatherv_c(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
                               const MPI_Count recvcounts[], const MPI_Aint displs[], MPI_Datatype recvtype, MPI_Comm comm)
{
    struct blocks recv = {&blocks_gathered, recvbuf, .wide_counts = recvcounts, .wide_displs = displs, .datatype = recvtype};
    return allgatherv(now("MPI_Neighbor_allgatherv_c"), sendbuf, sendcount, sendtype, &recv, comm);
}

MPI_ALIAS(Ineighbor_allgatherv_c);
int PMPI_Ineighbor_allgatherv_c(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
                                const MPI_Count recvcounts[], const MPI_Aint displs[], MPI_Datatype recvtype, MPI_Comm comm,
                                MPI_Request *request)
{
    struct blocks recv = {&blocks_gathered, recvbuf, .wide_counts = recvcounts, .wide_displs = displs, .datatype = recvtype};
    return allgatherv(later("MPI_Ineighbor_allgatherv_c", request), sendbuf, sendcount, sendtype, &recv, comm);
}

MPI_ALIAS(Neighbor_allgatherv_init_c);
int PMPI_Neighbor_allgatherv_init_c(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
                                    const MPI_Count recvcounts[], const MPI_Aint displs[], MPI_Datatype recvtype, MPI_Comm comm,
                                    MPI_Info info, MPI_Request *request)
{
    struct blocks recv = {&blocks_gathered, recvbuf, .wide_counts = recvcounts, .wide_displs = displs, .datatype = recvtype};
    return allgatherv(often("MPI_Neighbor_allgatherv_init_c", info, request), sendbuf, sendcount, sendtype, &recv, comm);
}

static int alltoall(struct use u, struct blocks *send, struct blocks *recv, MPI_Comm comm)
{
    struct coll_call a = {.kind = recv->each ? COLL_NEIGHBOR_ALLTOALLW : COLL_NEIGHBOR_ALLTOALLV};
    int rc;
    struct comm *c = neighborhood(u.call, comm, &a, &rc);
    return c ? carry_out_blocks(u, c, &a, send, a.out, recv, a.in) : rc;
}

MPI_ALIAS(Neighbor_alltoallv);
int PMPI_Neighbor_alltoallv(const void *sendbuf, const int sendcounts[], const int sdispls[], MPI_Datatype sendtype,
                            void *recvbuf, const int recvcounts[], const int rdispls[], MPI_Datatype recvtype, MPI_Comm comm)
{
    struct blocks send = {&blocks_sent, sendbuf, .counts = sendcounts, .displs = sdispls, .datatype = sendtype};
    struct blocks recv = {&blocks_received, recvbuf, .counts = recvcounts, .displs = rdispls, .datatype = recvtype};
    return alltoall(now("MPI_Neighbor_alltoallv"), &send, &recv, comm);
}

MPI_ALIAS(Ineighbor_alltoallv);
int PMPI_Ineighbor_alltoallv(const void *sendbuf, const int sendcounts[], const int sdispls[], MPI_Datatype sendtype,
                             void *recvbuf, const int recvcounts[], const int rdispls[], MPI_Datatype recvtype, MPI_Comm comm,
                             MPI_Request *request)
{
    struct blocks send = {&blocks_sent, sendbuf, .counts = sendcounts, .displs = sdispls, .datatype = sendtype};
    struct blocks recv = {&blocks_received, recvbuf, .counts = recvcounts, .displs = rdispls, .datatype = recvtype};
    return alltoall(later("MPI_Ineighbor_alltoallv", request), &send, &recv, comm);
}

MPI_ALIAS(Neighbor_alltoallv_init);
int PMPI_Neighbor_alltoallv_init(const void *sendbuf, const int sendcounts[], const int sdispls[], MPI_Datatype sendtype,
                                 void *recvbuf, const int recvcounts[], const int rdispls[], MPI_Datatype recvtype,
                                 MPI_Comm comm, MPI_Info info, MPI_Request *request)
{
    struct blocks send = {&blocks_sent, sendbuf, .counts = sendcounts, .displs = sdispls, .datatype = sendtype};
    struct blocks recv = {&blocks_received, recvbuf, .counts = recvcounts, .displs = rdispls, .datatype = recvtype};
    return alltoall(often("MPI_Neighbor_alltoallv_init", info, request), &send, &recv, comm);
}

MPI_ALIAS(Neighbor_alltoallv_c);
int PMPI_Neighbor_alltoallv_c(const void *sendbuf, const MPI_Count sendcounts[], const MPI_Aint sdispls[],
                              MPI_Datatype sendtype, void *recvbuf, const MPI_Count recvcounts[], const MPI_Aint rdispls[],
                              MPI_Datatype recvtype, MPI_Comm comm)
{
    struct blocks send = {&blocks_sent, sendbuf, .wide_counts = sendcounts, .wide_displs = sdispls, .datatype = sendtype};
    struct blocks recv = {&blocks_received, recvbuf, .wide_counts = recvcounts, .wide_displs = rdispls, .datatype = recvtype};
    return alltoall(now("MPI_Neighbor_alltoallv_c"), &send, &recv, comm);
}

MPI_ALIAS(Ineighbor_alltoallv_c);
int PMPI_Ineighbor_alltoallv_c(const void *sendbuf, const MPI_Count sendcounts[], const MPI_Aint sdispls[],
                               MPI_Datatype sendtype, void *recvbuf, const MPI_Count recvcounts[], const MPI_Aint rdispls[],
                               MPI_Datatype recvtype, MPI_Comm comm, MPI_Request *request)
{
    struct blocks send = {&blocks_sent, sendbuf, .wide_counts = sendcounts, .wide_displs = sdispls, .datatype = sendtype};
    struct blocks recv = {&blocks_received, recvbuf, .wide_counts = recvcounts, .wide_displs = rdispls, .datatype = recvtype};
    return alltoall(later("MPI_Ineighbor_alltoallv_c", request), &send, &recv, comm);
}

MPI_ALIAS(Neighbor_alltoallv_init_c);
int PMPI_Neighbor_alltoallv_init_c(const void *sendbuf, const MPI_Count sendcounts[], const MPI_Aint sdispls[],
                                   MPI_Datatype sendtype, void *recvbuf, const MPI_Count recvcounts[], const MPI_Aint rdispls[],
                                   MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info, MPI_Request *request)
{
    struct blocks send = {&blocks_sent, sendbuf, .wide_counts = sendcounts, .wide_displs = sdispls, .datatype = sendtype};
    struct blocks recv = {&blocks_received, recvbuf, .wide_counts = recvcounts, .wide_displs = rdispls, .datatype = recvtype};
    return alltoall(often("MPI_Neighbor_alltoallv_init_c", info, request), &send, &recv, comm);
}

MPI_ALIAS(Neighbor_alltoallw);
int PMPI_Neighbor_alltoallw(const void *sendbuf, const int sendcounts[], const MPI_Aint sdispls[],
                            const MPI_Datatype sendtypes[], void *recvbuf, const int recvcounts[], const MPI_Aint rdispls[],
                            const MPI_Datatype recvtypes[], MPI_Comm comm)
{
    struct blocks send = {&blocks_sent_each, sendbuf, .counts = sendcounts, .wide_displs = sdispls, .each = true, .datatypes = sendtypes};
    struct blocks recv = {&blocks_received_each, recvbuf, .counts = recvcounts, .wide_displs = rdispls, .each = true, .datatypes = recvtypes};
    return alltoall(now("MPI_Neighbor_alltoallw"), &send, &recv, comm);
}

MPI_ALIAS(Ineighbor_alltoallw);
int PMPI_Ineighbor_alltoallw(const void *sendbuf, const int sendcounts[], const MPI_Aint sdispls[],
                             const MPI_Datatype sendtypes[], void *recvbuf, const int recvcounts[], const MPI_Aint rdispls[],
                             const MPI_Datatype recvtypes[], MPI_Comm comm, MPI_Request *request)
{
    struct blocks send = {&blocks_sent_each, sendbuf, .counts = sendcounts, .wide_displs = sdispls, .each = true, .datatypes = sendtypes};
    struct blocks recv = {&blocks_received_each, recvbuf, .counts = recvcounts, .wide_displs = rdispls, .each = true, .datatypes = recvtypes};
    return alltoall(later("MPI_Ineighbor_alltoallw", request), &send, &recv, comm);
}

MPI_ALIAS(Neighbor_alltoallw_init);
int PMPI_Neighbor_alltoallw_init(const void *sendbuf, const int sendcounts[], const MPI_Aint sdispls[],
                                 const MPI_Datatype sendtypes[], void *recvbuf, const int recvcounts[],
                                 const MPI_Aint rdispls[], const MPI_Datatype recvtypes[], MPI_Comm comm, MPI_Info info,
                                 MPI_Request *request)
{
    struct blocks send = {&blocks_sent_each, sendbuf, .counts = sendcounts, .wide_displs = sdispls, .each = true, .datatypes = sendtypes};
    struct blocks recv = {&blocks_received_each, recvbuf, .counts = recvcounts, .wide_displs = rdispls, .each = true, .datatypes = recvtypes};
    return alltoall(often("MPI_Neighbor_alltoallw_init", info, request), &send, &recv, comm);
}

MPI_ALIAS(Neighbor_alltoallw_c);
int PMPI_Neighbor_alltoallw_c(const void *sendbuf, const MPI_Count sendcounts[], const MPI_Aint sdispls[],
                              const MPI_Datatype sendtypes[], void *recvbuf, const MPI_Count recvcounts[],
                              const MPI_Aint rdispls[], const MPI_Datatype recvtypes[], MPI_Comm comm)
{
    struct blocks send = {&blocks_sent_each, sendbuf, .wide_counts = sendcounts, .wide_displs = sdispls, .each = true, .datatypes = sendtypes};
    struct blocks recv = {&blocks_received_each, recvbuf, .wide_counts = recvcounts, .wide_displs = rdispls, .each = true, .datatypes = recvtypes};
    return alltoall(now("MPI_Neighbor_alltoallw_c"), &send, &recv, comm);
}

MPI_ALIAS(Ineighbor_alltoallw_c);
int PMPI_Ineighbor_alltoallw_c(const void *sendbuf, const MPI_Count sendcounts[], const MPI_Aint sdispls[],
                               const MPI_Datatype sendtypes[], void *recvbuf, const MPI_Count recvcounts[],
                               const MPI_Aint rdispls[], const MPI_Datatype recvtypes[], MPI_Comm comm, MPI_Request *request)
{
    struct blocks send = {&blocks_sent_each, sendbuf, .wide_counts = sendcounts, .wide_displs = sdispls, .each = true, .datatypes = sendtypes};
    struct blocks recv = {&blocks_received_each, recvbuf, .wide_counts = recvcounts, .wide_displs = rdispls, .each = true, .datatypes = recvtypes};
    return alltoall(later("MPI_Ineighbor_alltoallw_c", request), &send, &recv, comm);
}

MPI_ALIAS(Neighbor_alltoallw_init_c);
int PMPI_Neighbor_alltoallw_init_c(const void *sendbuf, const MPI_Count sendcounts[], const MPI_Aint sdispls[],
                                   const MPI_Datatype sendtypes[], void *recvbuf, const MPI_Count recvcounts[],
                                   const MPI_Aint rdispls[], const MPI_Datatype recvtypes[], MPI_Comm comm, MPI_Info info,
                                   MPI_Request *request)
{
    struct blocks send = {&blocks_sent_each, sendbuf, .wide_counts = sendcounts, .wide_displs = sdispls, .each = true, .datatypes = sendtypes};
    struct blocks recv = {&blocks_received_each, recvbuf, .wide_counts = recvcounts, .wide_displs = rdispls, .each = true, .datatypes = recvtypes};
    return alltoall(often("MPI_Neighbor_alltoallw_init_c", info, request), &send, &recv, comm);
}
