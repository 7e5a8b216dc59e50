/*
 * collv.c - entry points: collectives that move blocks of varying size (MPI-5.0
 * sections 6.5 to 6.8).
 *
 * Each call exists with int arrays and with wide ones. A struct blocks is one side of
 * either; opening it checks the arguments and gives wide arrays.
 */
#include "mpi/collargs.h"
#include "mpi/widen.h"

/* What the arguments of a side are called. */
struct names {
    const char *side, *buf, *counts, *displs, *type;
};
static const struct names gather_side = {"recv", "recvbuf", "recvcounts", "displs", "recvtype"};
static const struct names scatter_side = {"send", "sendbuf", "sendcounts", "displs", "sendtype"};
static const struct names send_side = {"send", "sendbuf", "sendcounts", "sdispls", "sendtype"};
static const struct names recv_side = {"recv", "recvbuf", "recvcounts", "rdispls", "recvtype"};
static const struct names send_w = {"send", "sendbuf", "sendcounts", "sdispls", "sendtypes"};
static const struct names recv_w = {"recv", "recvbuf", "recvcounts", "rdispls", "recvtypes"};

struct blocks {
    const struct names *names;
    const void *buf;
    const int *counts, *displs;                 /* the user's arrays: these ... */
    const int64_t *wide_counts, *wide_displs;   /* ... or these, which opening sets */
    MPI_Datatype datatype;                      /* of all blocks ... */
    bool each;
    const MPI_Datatype *datatypes;              /* ... or (each, for alltoallw) of every one */
    struct type *type, **types;                 /* set by opening */
    struct wide c, d;
};

static int widen_blocks(struct comm *c, const char *call, struct blocks *b)
{
    if (!b->counts && !b->wide_counts) return bad_null(c, call, b->names->counts);
    if (!b->displs && !b->wide_displs) return bad_null(c, call, b->names->displs);
    if (b->counts) b->wide_counts = wide_ints(&b->c, c->size, b->counts);
    if (b->displs) b->wide_displs = wide_ints(&b->d, c->size, b->displs);
    if (!b->wide_counts || !b->wide_displs)
        return report(c, call, MPI_ERR_NO_MEM, "no memory for arrays of %d entries", c->size);
    return MPI_SUCCESS;
}

static int open_types(struct comm *c, const char *call, struct blocks *b)
{
    if (!b->each) {
        b->type = type_of(b->datatype);
        return type_ready(b->type) ? MPI_SUCCESS : bad_type(c, call, b->datatype, b->names->type);
    }
    if (!b->datatypes) return bad_null(c, call, b->names->type);
    b->types = malloc((size_t)c->size * sizeof(struct type *));
    if (!b->types) return report(c, call, MPI_ERR_NO_MEM, "no memory for arrays of %d entries", c->size);
    for (int i = 0; i < c->size; i++) {
        b->types[i] = type_of(b->datatypes[i]);
        if (!type_ready(b->types[i])) return bad_type(c, call, b->datatypes[i], b->names->type);
    }
    return MPI_SUCCESS;
}

static int check_counts(struct comm *c, const char *call, const struct blocks *b)
{
    for (int i = 0; i < c->size; i++) {
        if (b->wide_counts[i] < 0)
            return report(c, call, MPI_ERR_COUNT, "argument %s[%d] is %lld, which is negative", b->names->counts, i,
                          (long long)b->wide_counts[i]);
        if (!buffer_ok(b->buf, b->wide_counts[i], b->types ? b->types[i] : b->type)) return bad_buffer(c, call, b->names->buf);
    }
    return MPI_SUCCESS;
}

/* To be closed whether it succeeded or not. */
static int blocks_open(struct comm *c, const char *call, struct blocks *b)
{
    if (b->buf == MPI_IN_PLACE) return bad_in_place(c, call, b->names->side);
    int rc = widen_blocks(c, call, b);
    if (!rc) rc = open_types(c, call, b);
    if (!rc) rc = check_counts(c, call, b);
    return rc;
}

static void blocks_close(struct blocks *b)
{
    free(b->types);
    wide_close(&b->c);
    wide_close(&b->d);
}

/* ---- gatherv, scatterv: the blocks matter at the root ---- */

static int gatherv(const char *call, const void *sendbuf, int64_t sendcount, MPI_Datatype sendtype, struct blocks *recv,
                   int root, MPI_Comm comm)
{
    struct type *st = NULL;
    int rc;
    struct comm *c = collective(call, comm, &rc);
    if (!c) return rc;
    if (!root_ok(c, root)) return bad_root(c, call, root);
    bool at_root = c->rank == root;
    if (!(at_root && sendbuf == MPI_IN_PLACE) && (rc = check_block(c, call, "send", sendbuf, sendcount, sendtype, &st))) return rc;
    if (at_root) rc = blocks_open(c, call, recv);
    else recv->wide_counts = recv->wide_displs = NULL;
    if (!rc)
        rc = report_if(c, call, coll_gatherv(c, sendbuf, sendcount, st, (void *)(uintptr_t)recv->buf, recv->wide_counts,
                                             recv->wide_displs, recv->type, root));
    blocks_close(recv);
    return rc;
}

MPI_ALIAS(Gatherv);
int PMPI_Gatherv(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, const int recvcounts[],
                 const int displs[], MPI_Datatype recvtype, int root, MPI_Comm comm)
{
    struct blocks recv = {&gather_side, recvbuf, .counts = recvcounts, .displs = displs, .datatype = recvtype};
    return gatherv("MPI_Gatherv", sendbuf, sendcount, sendtype, &recv, root, comm);
}

MPI_ALIAS(Gatherv_c);
int PMPI_Gatherv_c(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf, const MPI_Count recvcounts[],
                   const MPI_Aint displs[], MPI_Datatype recvtype, int root, MPI_Comm comm)
{
    struct blocks recv = {&gather_side, recvbuf, .wide_counts = recvcounts, .wide_displs = displs, .datatype = recvtype};
    return gatherv("MPI_Gatherv_c", sendbuf, sendcount, sendtype, &recv, root, comm);
}

static int scatterv(const char *call, struct blocks *send, void *recvbuf, int64_t recvcount, MPI_Datatype recvtype, int root,
                    MPI_Comm comm)
{
    struct type *rt = NULL;
    int rc;
    struct comm *c = collective(call, comm, &rc);
    if (!c) return rc;
    if (!root_ok(c, root)) return bad_root(c, call, root);
    bool at_root = c->rank == root;
    if (!(at_root && recvbuf == MPI_IN_PLACE) && (rc = check_block(c, call, "recv", recvbuf, recvcount, recvtype, &rt))) return rc;
    if (at_root) rc = blocks_open(c, call, send);
    else send->wide_counts = send->wide_displs = NULL;
    if (!rc)
        rc = report_if(c, call, coll_scatterv(c, send->buf, send->wide_counts, send->wide_displs, send->type, recvbuf, recvcount,
                                              rt, root));
    blocks_close(send);
    return rc;
}

MPI_ALIAS(Scatterv);
int PMPI_Scatterv(const void *sendbuf, const int sendcounts[], const int displs[], MPI_Datatype sendtype, void *recvbuf,
                  int recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm)
{
    struct blocks send = {&scatter_side, sendbuf, .counts = sendcounts, .displs = displs, .datatype = sendtype};
    return scatterv("MPI_Scatterv", &send, recvbuf, recvcount, recvtype, root, comm);
}

MPI_ALIAS(Scatterv_c);
int PMPI_Scatterv_c(const void *sendbuf, const MPI_Count sendcounts[], const MPI_Aint displs[], MPI_Datatype sendtype,
                    void *recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm)
{
    struct blocks send = {&scatter_side, sendbuf, .wide_counts = sendcounts, .wide_displs = displs, .datatype = sendtype};
    return scatterv("MPI_Scatterv_c", &send, recvbuf, recvcount, recvtype, root, comm);
}

/* ---- allgatherv ---- */

static int allgatherv(const char *call, const void *sendbuf, int64_t sendcount, MPI_Datatype sendtype, struct blocks *recv,
                      MPI_Comm comm)
{
    struct type *st = NULL;
    int rc;
    struct comm *c = collective(call, comm, &rc);
    if (!c) return rc;
    if (sendbuf != MPI_IN_PLACE && (rc = check_block(c, call, "send", sendbuf, sendcount, sendtype, &st))) return rc;
    rc = blocks_open(c, call, recv);
    if (!rc)
        rc = report_if(c, call, coll_allgatherv(c, sendbuf, sendcount, st, (void *)(uintptr_t)recv->buf, recv->wide_counts,
                                                recv->wide_displs, recv->type));
    blocks_close(recv);
    return rc;
}

MPI_ALIAS(Allgatherv);
int PMPI_Allgatherv(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, const int recvcounts[],
                    const int displs[], MPI_Datatype recvtype, MPI_Comm comm)
{
    struct blocks recv = {&gather_side, recvbuf, .counts = recvcounts, .displs = displs, .datatype = recvtype};
    return allgatherv("MPI_Allgatherv", sendbuf, sendcount, sendtype, &recv, comm);
}

MPI_ALIAS(Allgatherv_c);
int PMPI_Allgatherv_c(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
                      const MPI_Count recvcounts[], const MPI_Aint displs[], MPI_Datatype recvtype, MPI_Comm comm)
{
    struct blocks recv = {&gather_side, recvbuf, .wide_counts = recvcounts, .wide_displs = displs, .datatype = recvtype};
    return allgatherv("MPI_Allgatherv_c", sendbuf, sendcount, sendtype, &recv, comm);
}

/* ---- alltoallv, alltoallw: what is sent does not matter in place ---- */

static int alltoall(const char *call, struct blocks *send, struct blocks *recv, MPI_Comm comm)
{
    int rc;
    struct comm *c = collective(call, comm, &rc);
    if (!c) return rc;
    bool in_place = send->buf == MPI_IN_PLACE;
    rc = in_place ? MPI_SUCCESS : blocks_open(c, call, send);
    if (!rc) rc = blocks_open(c, call, recv);
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
        rc = report_if(c, call, coll_run(c, &a));
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
    return alltoall("MPI_Alltoallv", &send, &recv, comm);
}

MPI_ALIAS(Alltoallv_c);
int PMPI_Alltoallv_c(const void *sendbuf, const MPI_Count sendcounts[], const MPI_Aint sdispls[], MPI_Datatype sendtype,
                     void *recvbuf, const MPI_Count recvcounts[], const MPI_Aint rdispls[], MPI_Datatype recvtype, MPI_Comm comm)
{
    struct blocks send = {&send_side, sendbuf, .wide_counts = sendcounts, .wide_displs = sdispls, .datatype = sendtype};
    struct blocks recv = {&recv_side, recvbuf, .wide_counts = recvcounts, .wide_displs = rdispls, .datatype = recvtype};
    return alltoall("MPI_Alltoallv_c", &send, &recv, comm);
}

MPI_ALIAS(Alltoallw);
int PMPI_Alltoallw(const void *sendbuf, const int sendcounts[], const int sdispls[], const MPI_Datatype sendtypes[],
                   void *recvbuf, const int recvcounts[], const int rdispls[], const MPI_Datatype recvtypes[], MPI_Comm comm)
{
    struct blocks send = {&send_w, sendbuf, .counts = sendcounts, .displs = sdispls, .each = true, .datatypes = sendtypes};
    struct blocks recv = {&recv_w, recvbuf, .counts = recvcounts, .displs = rdispls, .each = true, .datatypes = recvtypes};
    return alltoall("MPI_Alltoallw", &send, &recv, comm);
}

MPI_ALIAS(Alltoallw_c);
int PMPI_Alltoallw_c(const void *sendbuf, const MPI_Count sendcounts[], const MPI_Aint sdispls[], const MPI_Datatype sendtypes[],
                     void *recvbuf, const MPI_Count recvcounts[], const MPI_Aint rdispls[], const MPI_Datatype recvtypes[],
                     MPI_Comm comm)
{
    struct blocks send = {&send_w, sendbuf, .wide_counts = sendcounts, .wide_displs = sdispls, .each = true, .datatypes = sendtypes};
    struct blocks recv = {&recv_w, recvbuf, .wide_counts = recvcounts, .wide_displs = rdispls, .each = true, .datatypes = recvtypes};
    return alltoall("MPI_Alltoallw_c", &send, &recv, comm);
}
