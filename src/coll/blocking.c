/* blocking.c - the blocking collectives by name: MPI's arguments put into a struct coll_call. */
#include "coll/coll.h"

int coll_barrier(struct comm *c) { return coll_run(c, &(struct coll_call){.kind = COLL_BARRIER}); }

int coll_bcast(struct comm *c, void *buf, int64_t count, struct type *t, int root)
{
    return coll_run(c, &(struct coll_call){.kind = COLL_BCAST, .recvbuf = buf, .rcount = count, .rtype = t, .root = root});
}

static int reduction(enum coll_kind kind, struct comm *c, const void *sendbuf, void *recvbuf, int64_t count,
                     struct type *t, const struct op *op, int root)
{
    return coll_run(c, &(struct coll_call){.kind = kind,
                                           .sendbuf = sendbuf,
                                           .recvbuf = recvbuf,
                                           .rcount = count,
                                           .rtype = t,
                                           .op = op,
                                           .root = root});
}

int coll_reduce(struct comm *c, const void *sendbuf, void *recvbuf, int64_t count, struct type *t, const struct op *op,
                int root)
{
    return reduction(COLL_REDUCE, c, sendbuf, recvbuf, count, t, op, root);
}

int coll_allreduce(struct comm *c, const void *sendbuf, void *recvbuf, int64_t count, struct type *t,
                   const struct op *op)
{
    return reduction(COLL_ALLREDUCE, c, sendbuf, recvbuf, count, t, op, 0);
}

int coll_reduce_scatter_block(struct comm *c, const void *sendbuf, void *recvbuf, int64_t rcount, struct type *t,
                              const struct op *op)
{
    return reduction(COLL_REDUCE_SCATTER_BLOCK, c, sendbuf, recvbuf, rcount, t, op, 0);
}

int coll_scan(struct comm *c, const void *sendbuf, void *recvbuf, int64_t count, struct type *t, const struct op *op)
{
    return reduction(COLL_SCAN, c, sendbuf, recvbuf, count, t, op, 0);
}

int coll_exscan(struct comm *c, const void *sendbuf, void *recvbuf, int64_t count, struct type *t, const struct op *op)
{
    return reduction(COLL_EXSCAN, c, sendbuf, recvbuf, count, t, op, 0);
}

int coll_reduce_scatter(struct comm *c, const void *sendbuf, void *recvbuf, const int64_t *rcounts, struct type *t,
                        const struct op *op)
{
    return coll_run(c, &(struct coll_call){.kind = COLL_REDUCE_SCATTER,
                                           .sendbuf = sendbuf,
                                           .recvbuf = recvbuf,
                                           .rcounts = rcounts,
                                           .rtype = t,
                                           .op = op});
}

static int regular(enum coll_kind kind, struct comm *c, const void *sendbuf, int64_t scount, struct type *stype,
                   void *recvbuf, int64_t rcount, struct type *rtype, int root)
{
    return coll_run(c, &(struct coll_call){.kind = kind,
                                           .sendbuf = sendbuf,
                                           .recvbuf = recvbuf,
                                           .scount = scount,
                                           .rcount = rcount,
                                           .stype = stype,
                                           .rtype = rtype,
                                           .root = root});
}

int coll_gather(struct comm *c, const void *sendbuf, int64_t scount, struct type *stype, void *recvbuf, int64_t rcount,
                struct type *rtype, int root)
{
    return regular(COLL_GATHER, c, sendbuf, scount, stype, recvbuf, rcount, rtype, root);
}

int coll_scatter(struct comm *c, const void *sendbuf, int64_t scount, struct type *stype, void *recvbuf, int64_t rcount,
                 struct type *rtype, int root)
{
    return regular(COLL_SCATTER, c, sendbuf, scount, stype, recvbuf, rcount, rtype, root);
}

int coll_allgather(struct comm *c, const void *sendbuf, int64_t scount, struct type *stype, void *recvbuf,
                   int64_t rcount, struct type *rtype)
{
    return regular(COLL_ALLGATHER, c, sendbuf, scount, stype, recvbuf, rcount, rtype, 0);
}

int coll_alltoall(struct comm *c, const void *sendbuf, int64_t scount, struct type *stype, void *recvbuf,
                  int64_t rcount, struct type *rtype)
{
    return regular(COLL_ALLTOALL, c, sendbuf, scount, stype, recvbuf, rcount, rtype, 0);
}

static int gather_v(enum coll_kind kind, struct comm *c, const void *sendbuf, int64_t scount, struct type *stype,
                    void *recvbuf, const int64_t *rcounts, const int64_t *rdispls, struct type *rtype, int root)
{
    return coll_run(c, &(struct coll_call){.kind = kind,
                                           .sendbuf = sendbuf,
                                           .recvbuf = recvbuf,
                                           .scount = scount,
                                           .stype = stype,
                                           .rcounts = rcounts,
                                           .rdispls = rdispls,
                                           .rtype = rtype,
                                           .root = root});
}

int coll_gatherv(struct comm *c, const void *sendbuf, int64_t scount, struct type *stype, void *recvbuf,
                 const int64_t *rcounts, const int64_t *rdispls, struct type *rtype, int root)
{
    if (c->rank != root) rcounts = rdispls = NULL, rtype = NULL;
    return gather_v(COLL_GATHERV, c, sendbuf, scount, stype, recvbuf, rcounts, rdispls, rtype, root);
}

int coll_allgatherv(struct comm *c, const void *sendbuf, int64_t scount, struct type *stype, void *recvbuf,
                    const int64_t *rcounts, const int64_t *rdispls, struct type *rtype)
{
    return gather_v(COLL_ALLGATHERV, c, sendbuf, scount, stype, recvbuf, rcounts, rdispls, rtype, 0);
}

int coll_scatterv(struct comm *c, const void *sendbuf, const int64_t *scounts, const int64_t *sdispls,
                  struct type *stype, void *recvbuf, int64_t rcount, struct type *rtype, int root)
{
    if (c->rank != root) scounts = sdispls = NULL, stype = NULL;
    return coll_run(c, &(struct coll_call){.kind = COLL_SCATTERV,
                                           .sendbuf = sendbuf,
                                           .recvbuf = recvbuf,
                                           .scounts = scounts,
                                           .sdispls = sdispls,
                                           .stype = stype,
                                           .rcount = rcount,
                                           .rtype = rtype,
                                           .root = root});
}

int coll_alltoallv(struct comm *c, const void *sendbuf, const int64_t *scounts, const int64_t *sdispls,
                   struct type *stype, void *recvbuf, const int64_t *rcounts, const int64_t *rdispls,
                   struct type *rtype)
{
    return coll_run(c, &(struct coll_call){.kind = COLL_ALLTOALLV,
                                           .sendbuf = sendbuf,
                                           .recvbuf = recvbuf,
                                           .scounts = scounts,
                                           .sdispls = sdispls,
                                           .stype = stype,
                                           .rcounts = rcounts,
                                           .rdispls = rdispls,
                                           .rtype = rtype});
}

int coll_alltoallw(struct comm *c, const void *sendbuf, const int64_t *scounts, const int64_t *sdispls,
                   struct type *const *stypes, void *recvbuf, const int64_t *rcounts, const int64_t *rdispls,
                   struct type *const *rtypes)
{
    return coll_run(c, &(struct coll_call){.kind = COLL_ALLTOALLW,
                                           .sendbuf = sendbuf,
                                           .recvbuf = recvbuf,
                                           .scounts = scounts,
                                           .sdispls = sdispls,
                                           .stypes = stypes,
                                           .rcounts = rcounts,
                                           .rdispls = rdispls,
                                           .rtypes = rtypes});
}
