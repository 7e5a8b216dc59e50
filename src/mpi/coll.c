/*
 * coll.c - entry points: collectives that move blocks of one size (MPI-5.0 sections
 * 6.3 to 6.8). Blocks of varying size are in collv.c, reductions in reduce.c.
 */
#include "mpi/collargs.h"

#include <stdio.h>
#include <string.h>

int bad_root(struct comm *c, const char *call, int root)
{
    return report(c, call, MPI_ERR_ROOT, "argument root is %d, but the communicator has ranks 0 to %d", root, c->size - 1);
}

int bad_in_place(struct comm *c, const char *call, const char *side)
{
    return report(c, call, MPI_ERR_BUFFER, "argument %sbuf is MPI_IN_PLACE, which is not allowed here", side);
}

int bad_block(struct comm *c, const char *call, const char *side, const void *buf, int64_t count, MPI_Datatype h)
{
    struct type *t = type_of(h);
    char name[24];
    if (buf == MPI_IN_PLACE) return bad_in_place(c, call, side);
    if (count < 0) return report(c, call, MPI_ERR_COUNT, "argument %scount is %lld, which is negative", side, (long long)count);
    snprintf(name, sizeof name, "%s", side[0] ? side : "data");
    strcat(name, "type");
    if (!type_ready(t)) return bad_type(c, call, h, name);
    snprintf(name, sizeof name, side[0] ? "%sbuf" : "%sbuffer", side);
    return bad_buffer(c, call, name);
}

MPI_ALIAS(Barrier);
int PMPI_Barrier(MPI_Comm comm)
{
    int rc;
    struct comm *c = collective("MPI_Barrier", comm, &rc);
    return likely(c) ? report_if(c, "MPI_Barrier", coll_barrier(c)) : rc;
}

static int bcast(const char *call, void *buffer, int64_t count, MPI_Datatype datatype, int root, MPI_Comm comm)
{
    struct type *t;
    int rc;
    struct comm *c = collective(call, comm, &rc);
    if (unlikely(!c)) return rc;
    if ((rc = check_block(c, call, "", buffer, count, datatype, &t))) return rc;
    if (unlikely(!root_ok(c, root))) return bad_root(c, call, root);
    return report_if(c, call, coll_bcast(c, buffer, count, t, root));
}

MPI_ALIAS(Bcast);
int PMPI_Bcast(void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm)
{
    return bcast("MPI_Bcast", buffer, count, datatype, root, comm);
}

MPI_ALIAS(Bcast_c);
int PMPI_Bcast_c(void *buffer, MPI_Count count, MPI_Datatype datatype, int root, MPI_Comm comm)
{
    return bcast("MPI_Bcast_c", buffer, count, datatype, root, comm);
}

/* The receive side matters at the root only, and there the root may have its block in place. */
static int gather(const char *call, const void *sendbuf, int64_t sendcount, MPI_Datatype sendtype, void *recvbuf,
                  int64_t recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm)
{
    struct type *st = NULL, *rt = NULL;
    int rc;
    struct comm *c = collective(call, comm, &rc);
    if (unlikely(!c)) return rc;
    if (unlikely(!root_ok(c, root))) return bad_root(c, call, root);
    bool at_root = c->rank == root;
    if (!(at_root && sendbuf == MPI_IN_PLACE) && (rc = check_block(c, call, "send", sendbuf, sendcount, sendtype, &st))) return rc;
    if (at_root && (rc = check_block(c, call, "recv", recvbuf, recvcount, recvtype, &rt))) return rc;
    return report_if(c, call, coll_gather(c, sendbuf, sendcount, st, recvbuf, recvcount, rt, root));
}

MPI_ALIAS(Gather);
int PMPI_Gather(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int recvcount, MPI_Datatype recvtype,
                int root, MPI_Comm comm)
{
    return gather("MPI_Gather", sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm);
}

MPI_ALIAS(Gather_c);
int PMPI_Gather_c(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf, MPI_Count recvcount,
                  MPI_Datatype recvtype, int root, MPI_Comm comm)
{
    return gather("MPI_Gather_c", sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm);
}

static int scatter(const char *call, const void *sendbuf, int64_t sendcount, MPI_Datatype sendtype, void *recvbuf,
                   int64_t recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm)
{
    struct type *st = NULL, *rt = NULL;
    int rc;
    struct comm *c = collective(call, comm, &rc);
    if (unlikely(!c)) return rc;
    if (unlikely(!root_ok(c, root))) return bad_root(c, call, root);
    bool at_root = c->rank == root;
    if (at_root && (rc = check_block(c, call, "send", sendbuf, sendcount, sendtype, &st))) return rc;
    if (!(at_root && recvbuf == MPI_IN_PLACE) && (rc = check_block(c, call, "recv", recvbuf, recvcount, recvtype, &rt))) return rc;
    return report_if(c, call, coll_scatter(c, sendbuf, sendcount, st, recvbuf, recvcount, rt, root));
}

MPI_ALIAS(Scatter);
int PMPI_Scatter(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int recvcount, MPI_Datatype recvtype,
                 int root, MPI_Comm comm)
{
    return scatter("MPI_Scatter", sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm);
}

MPI_ALIAS(Scatter_c);
int PMPI_Scatter_c(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf, MPI_Count recvcount,
                   MPI_Datatype recvtype, int root, MPI_Comm comm)
{
    return scatter("MPI_Scatter_c", sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm);
}

/* ---- everybody to everybody: the send side may be MPI_IN_PLACE at all ranks ---- */

typedef int all_fn(struct comm *, const void *, int64_t, struct type *, void *, int64_t, struct type *);

static inline int all(const char *call, all_fn *fn, const void *sendbuf, int64_t sendcount, MPI_Datatype sendtype, void *recvbuf,
                      int64_t recvcount, MPI_Datatype recvtype, MPI_Comm comm)
{
    struct type *st = NULL, *rt;
    int rc;
    struct comm *c = collective(call, comm, &rc);
    if (unlikely(!c)) return rc;
    if (sendbuf != MPI_IN_PLACE && (rc = check_block(c, call, "send", sendbuf, sendcount, sendtype, &st))) return rc;
    if ((rc = check_block(c, call, "recv", recvbuf, recvcount, recvtype, &rt))) return rc;
    return report_if(c, call, fn(c, sendbuf, sendcount, st, recvbuf, recvcount, rt));
}

MPI_ALIAS(Allgather);
int PMPI_Allgather(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int recvcount,
                   MPI_Datatype recvtype, MPI_Comm comm)
{
    return all("MPI_Allgather", coll_allgather, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm);
}

MPI_ALIAS(Allgather_c);
int PMPI_Allgather_c(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf, MPI_Count recvcount,
                     MPI_Datatype recvtype, MPI_Comm comm)
{
    return all("MPI_Allgather_c", coll_allgather, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm);
}

MPI_ALIAS(Alltoall);
int PMPI_Alltoall(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int recvcount, MPI_Datatype recvtype,
                  MPI_Comm comm)
{
    return all("MPI_Alltoall", coll_alltoall, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm);
}

MPI_ALIAS(Alltoall_c);
int PMPI_Alltoall_c(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf, MPI_Count recvcount,
                    MPI_Datatype recvtype, MPI_Comm comm)
{
    return all("MPI_Alltoall_c", coll_alltoall, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm);
}
