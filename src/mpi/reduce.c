/*
 * reduce.c - entry points: reductions over all processes (MPI-5.0 sections 6.9 to 6.12).
 */
#include "mpi/collargs.h"
#include "mpi/widen.h"

#include <stdio.h>

/* What all reductions share: the operator on count elements of a type. */
struct terms {
    struct comm *c;
    struct type *t;
    struct op *op;
};

static const struct data_names reduced = {"recvbuf", "count", "datatype"},
                               scattered = {"recvbuf", "recvcount", "datatype"};

static TERN_COLD int bad_terms(const char *call, MPI_Comm comm, const struct data_names *names, int64_t count,
                               int64_t n, MPI_Datatype datatype, MPI_Op op)
{
    struct comm *c = comm_of(comm);
    if (!c) return bad_comm(call, comm);
    int rc = bad_amount(c, call, names, count, n, datatype);
    return rc ? rc : bad_op(c, call, op, type_of(datatype));
}

/* On n blocks of count elements. */
static inline int check_terms(const char *call, MPI_Comm comm, const struct data_names *names, int64_t count, int64_t n,
                              MPI_Datatype datatype, MPI_Op op, struct terms *x)
{
    int64_t total;
    x->c = comm_of(comm);
    x->t = type_of(datatype);
    x->op = op_of(op);
    if (likely(x->c && x->t && !__builtin_mul_overflow(count, n, &total) && type_takes(x->t, total) &&
               op_usable(x->op, x->t)))
        return MPI_SUCCESS;
    return bad_terms(call, comm, names, count, n, datatype, op);
}

static bool send_buffer_ok(const struct terms *x, const void *sendbuf, int64_t count)
{
    return buffer_ok(sendbuf, count, x->t) || (sendbuf == MPI_IN_PLACE && !x->c->inter);
}

static TERN_COLD int bad_buffers(const struct terms *x, const char *call, const void *sendbuf, const void *recvbuf, int64_t count)
{
    if (!send_buffer_ok(x, sendbuf, count)) return bad_buffer(x->c, call, sendbuf, "sendbuf");
    if (!buffer_ok(recvbuf, count, x->t)) return bad_buffer(x->c, call, recvbuf, "recvbuf");
    return bad_aliases(x->c, call, "sendbuf", "recvbuf");
}

/* Both buffers where both matter. sendbuf may be MPI_IN_PLACE. */
static inline int check_buffers(const struct terms *x, const char *call, const void *sendbuf, const void *recvbuf, int64_t count)
{
    if (likely(send_buffer_ok(x, sendbuf, count) && buffer_ok(recvbuf, count, x->t) &&
               (sendbuf != recvbuf || !count || !x->t->size)))
        return MPI_SUCCESS;
    return bad_buffers(x, call, sendbuf, recvbuf, count);
}

/* Those buffers of a reduce to the root that matter here. */
static inline int check_sides(const struct terms *x, const char *call, const void *sendbuf, const void *recvbuf, int64_t count,
                              int root)
{
    bool gets = at_root(x->c, root);
    if (gets && is_served(x->c, root)) return check_buffers(x, call, sendbuf, recvbuf, count);
    const void *buf = gets ? recvbuf : sendbuf;
    return likely(buffer_ok(buf, count, x->t)) ? MPI_SUCCESS
                                               : bad_buffer(x->c, call, buf, gets ? "recvbuf" : "sendbuf");
}

static TERN_INLINED int reduce(struct use u, const void *sendbuf, void *recvbuf, int64_t count, MPI_Datatype datatype, MPI_Op op, int root,
                  MPI_Comm comm)
{
    struct terms x;
    struct comm *c = comm_of(comm);
    if (unlikely(c && c->inter && root == MPI_PROC_NULL)) /* beside the root: no other argument means anything */
        return carry_out(u, c, &(struct coll_call){.kind = COLL_REDUCE, .rtype = type_of(MPI_BYTE), .root = root});
    int rc = check_terms(u.call, comm, &reduced, count, 1, datatype, op, &x);
    if (unlikely(rc)) return rc;
    if (unlikely(!root_ok(x.c, root))) return bad_root(x.c, u.call, root);
    rc = check_sides(&x, u.call, sendbuf, recvbuf, count, root);
    if (unlikely(rc)) return rc;
    return carry_out(u, x.c, &(struct coll_call){.kind = COLL_REDUCE,
                                                .sendbuf = sendbuf,
                                                .recvbuf = recvbuf,
                                                .rcount = count,
                                                .rtype = x.t,
                                                .op = x.op,
                                                .root = root});
}

MPI_ALIAS(Reduce);
int PMPI_Reduce(const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op, int root, MPI_Comm comm)
{
    return reduce(now("MPI_Reduce"), sendbuf, recvbuf, count, datatype, op, root, comm);
}

MPI_ALIAS(Ireduce);
int PMPI_Ireduce(const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op, int root, MPI_Comm comm,
                 MPI_Request *request)
{
    return reduce(later("MPI_Ireduce", request), sendbuf, recvbuf, count, datatype, op, root, comm);
}

MPI_ALIAS(Reduce_init);
int PMPI_Reduce_init(const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op, int root, MPI_Comm comm,
                     MPI_Info info, MPI_Request *request)
{
    return reduce(often("MPI_Reduce_init", info, request), sendbuf, recvbuf, count, datatype, op, root, comm);
}

MPI_ALIAS(Reduce_c);
int PMPI_Reduce_c(const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op, int root, MPI_Comm comm)
{
    return reduce(now("MPI_Reduce_c"), sendbuf, recvbuf, count, datatype, op, root, comm);
}

MPI_ALIAS(Ireduce_c);
int PMPI_Ireduce_c(const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op, int root, MPI_Comm comm,
                   MPI_Request *request)
{
    return reduce(later("MPI_Ireduce_c", request), sendbuf, recvbuf, count, datatype, op, root, comm);
}

MPI_ALIAS(Reduce_init_c);
int PMPI_Reduce_init_c(const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op, int root,
                       MPI_Comm comm, MPI_Info info, MPI_Request *request)
{
    return reduce(often("MPI_Reduce_init_c", info, request), sendbuf, recvbuf, count, datatype, op, root, comm);
}

/* ---- with a result at every rank ---- */

static TERN_INLINED int all(struct use u, enum coll_kind kind, const void *sendbuf, void *recvbuf, int64_t count, MPI_Datatype datatype,
                      MPI_Op op, MPI_Comm comm)
{
    struct terms x;
    bool blocks = kind == COLL_REDUCE_SCATTER_BLOCK;
    const struct comm *c = comm_of(comm);
    int rc =
        check_terms(u.call, comm, blocks ? &scattered : &reduced, count, blocks && c ? c->size : 1, datatype, op, &x);
    if (unlikely(rc)) return rc;
    rc = check_buffers(&x, u.call, sendbuf, recvbuf, count);
    if (unlikely(rc)) return rc;
    struct coll_call a = {.kind = kind, .sendbuf = sendbuf, .recvbuf = recvbuf, .rcount = count, .rtype = x.t, .op = x.op};
    return carry_out(u, x.c, &a);
}

MPI_ALIAS(Allreduce);
int PMPI_Allreduce(const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm)
{
    return all(now("MPI_Allreduce"), COLL_ALLREDUCE, sendbuf, recvbuf, count, datatype, op, comm);
}

MPI_ALIAS(Iallreduce);
int PMPI_Iallreduce(const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
                    MPI_Request *request)
{
    return all(later("MPI_Iallreduce", request), COLL_ALLREDUCE, sendbuf, recvbuf, count, datatype, op, comm);
}

MPI_ALIAS(Allreduce_init);
int PMPI_Allreduce_init(const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
                        MPI_Info info, MPI_Request *request)
{
    return all(often("MPI_Allreduce_init", info, request), COLL_ALLREDUCE, sendbuf, recvbuf, count, datatype, op, comm);
}

MPI_ALIAS(Allreduce_c);
int PMPI_Allreduce_c(const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm)
{
    return all(now("MPI_Allreduce_c"), COLL_ALLREDUCE, sendbuf, recvbuf, count, datatype, op, comm);
}

MPI_ALIAS(Iallreduce_c);
int PMPI_Iallreduce_c(const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
                      MPI_Request *request)
{
    return all(later("MPI_Iallreduce_c", request), COLL_ALLREDUCE, sendbuf, recvbuf, count, datatype, op, comm);
}

MPI_ALIAS(Allreduce_init_c);
int PMPI_Allreduce_init_c(const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
                          MPI_Info info, MPI_Request *request)
{
    return all(often("MPI_Allreduce_init_c", info, request), COLL_ALLREDUCE, sendbuf, recvbuf, count, datatype, op, comm);
}

MPI_ALIAS(Scan);
int PMPI_Scan(const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm)
{
    return all(now("MPI_Scan"), COLL_SCAN, sendbuf, recvbuf, count, datatype, op, comm);
}

MPI_ALIAS(Iscan);
int PMPI_Iscan(const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm, MPI_Request *request)
{
    return all(later("MPI_Iscan", request), COLL_SCAN, sendbuf, recvbuf, count, datatype, op, comm);
}

MPI_ALIAS(Scan_init);
int PMPI_Scan_init(const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
                   MPI_Info info, MPI_Request *request)
{
    return all(often("MPI_Scan_init", info, request), COLL_SCAN, sendbuf, recvbuf, count, datatype, op, comm);
}

MPI_ALIAS(Scan_c);
int PMPI_Scan_c(const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm)
{
    return all(now("MPI_Scan_c"), COLL_SCAN, sendbuf, recvbuf, count, datatype, op, comm);
}

MPI_ALIAS(Iscan_c);
int PMPI_Iscan_c(const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
                 MPI_Request *request)
{
    return all(later("MPI_Iscan_c", request), COLL_SCAN, sendbuf, recvbuf, count, datatype, op, comm);
}

MPI_ALIAS(Scan_init_c);
int PMPI_Scan_init_c(const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
                     MPI_Info info, MPI_Request *request)
{
    return all(often("MPI_Scan_init_c", info, request), COLL_SCAN, sendbuf, recvbuf, count, datatype, op, comm);
}

MPI_ALIAS(Exscan);
int PMPI_Exscan(const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm)
{
    return all(now("MPI_Exscan"), COLL_EXSCAN, sendbuf, recvbuf, count, datatype, op, comm);
}

MPI_ALIAS(Iexscan);
int PMPI_Iexscan(const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
                 MPI_Request *request)
{
    return all(later("MPI_Iexscan", request), COLL_EXSCAN, sendbuf, recvbuf, count, datatype, op, comm);
}

MPI_ALIAS(Exscan_init);
int PMPI_Exscan_init(const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
                     MPI_Info info, MPI_Request *request)
{
    return all(often("MPI_Exscan_init", info, request), COLL_EXSCAN, sendbuf, recvbuf, count, datatype, op, comm);
}

MPI_ALIAS(Exscan_c);
int PMPI_Exscan_c(const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm)
{
    return all(now("MPI_Exscan_c"), COLL_EXSCAN, sendbuf, recvbuf, count, datatype, op, comm);
}

MPI_ALIAS(Iexscan_c);
int PMPI_Iexscan_c(const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
                   MPI_Request *request)
{
    return all(later("MPI_Iexscan_c", request), COLL_EXSCAN, sendbuf, recvbuf, count, datatype, op, comm);
}

MPI_ALIAS(Exscan_init_c);
int PMPI_Exscan_init_c(const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
                       MPI_Info info, MPI_Request *request)
{
    return all(often("MPI_Exscan_init_c", info, request), COLL_EXSCAN, sendbuf, recvbuf, count, datatype, op, comm);
}

MPI_ALIAS(Reduce_scatter_block);
int PMPI_Reduce_scatter_block(const void *sendbuf, void *recvbuf, int recvcount, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm)
{
    return all(now("MPI_Reduce_scatter_block"), COLL_REDUCE_SCATTER_BLOCK, sendbuf, recvbuf, recvcount, datatype, op, comm);
}

MPI_ALIAS(Ireduce_scatter_block);
int PMPI_Ireduce_scatter_block(const void *sendbuf, void *recvbuf, int recvcount, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
                               MPI_Request *request)
{
    return all(later("MPI_Ireduce_scatter_block", request), COLL_REDUCE_SCATTER_BLOCK, sendbuf, recvbuf, recvcount, datatype, op, comm);
}

MPI_ALIAS(Reduce_scatter_block_init);
int PMPI_Reduce_scatter_block_init(const void *sendbuf, void *recvbuf, int recvcount, MPI_Datatype datatype, MPI_Op op,
                                   MPI_Comm comm, MPI_Info info, MPI_Request *request)
{
    return all(often("MPI_Reduce_scatter_block_init", info, request), COLL_REDUCE_SCATTER_BLOCK, sendbuf, recvbuf, recvcount, datatype, op, comm);
}

MPI_ALIAS(Reduce_scatter_block_c);
int PMPI_Reduce_scatter_block_c(const void *sendbuf, void *recvbuf, MPI_Count recvcount, MPI_Datatype datatype, MPI_Op op,
                                MPI_Comm comm)
{
    return all(now("MPI_Reduce_scatter_block_c"), COLL_REDUCE_SCATTER_BLOCK, sendbuf, recvbuf, recvcount, datatype, op, comm);
}

MPI_ALIAS(Ireduce_scatter_block_c);
int PMPI_Ireduce_scatter_block_c(const void *sendbuf, void *recvbuf, MPI_Count recvcount, MPI_Datatype datatype, MPI_Op op,
                                 MPI_Comm comm, MPI_Request *request)
{
    return all(later("MPI_Ireduce_scatter_block_c", request), COLL_REDUCE_SCATTER_BLOCK, sendbuf, recvbuf, recvcount, datatype, op, comm);
}

MPI_ALIAS(Reduce_scatter_block_init_c);
int PMPI_Reduce_scatter_block_init_c(const void *sendbuf, void *recvbuf, MPI_Count recvcount, MPI_Datatype datatype, MPI_Op op,
                                     MPI_Comm comm, MPI_Info info, MPI_Request *request)
{
    return all(often("MPI_Reduce_scatter_block_init_c", info, request), COLL_REDUCE_SCATTER_BLOCK, sendbuf, recvbuf, recvcount, datatype, op, comm);
}

/* ---- a result in blocks of varying size ---- */

static TERN_COLD int bad_entry(const struct terms *x, const char *call, int i, int64_t count)
{
    char name[40];
    snprintf(name, sizeof name, "recvcounts[%d]", i);
    return count < 0 ? bad_count_named(x->c, call, count, name) : too_many(x->c, call, name, count, 1, x->t);
}

/* The elements of all blocks together. */
static int check_counts(const struct terms *x, const char *call, const int64_t *recvcounts, int64_t *total)
{
    *total = 0;
    for (int i = 0; i < x->c->size; i++)
        if (recvcounts[i] < 0 || __builtin_add_overflow(*total, recvcounts[i], total) || !type_takes(x->t, *total))
            return bad_entry(x, call, i, recvcounts[i]);
    return MPI_SUCCESS;
}

static int reduce_scatter(struct use u, const void *sendbuf, void *recvbuf, const int64_t *recvcounts, MPI_Datatype datatype,
                          MPI_Op op, MPI_Comm comm)
{
    struct terms x = {comm_of(comm), type_of(datatype), NULL};
    int64_t total = 0;
    int rc = type_ready(x.t) ? check_counts(&x, u.call, recvcounts, &total) : MPI_SUCCESS;
    if (!rc) rc = check_terms(u.call, comm, &reduced, 0, 1, datatype, op, &x);
    if (rc) return rc;
    int64_t received = sendbuf == MPI_IN_PLACE ? total : recvcounts[x.c->rank];
    if (!send_buffer_ok(&x, sendbuf, total)) return bad_buffer(x.c, u.call, sendbuf, "sendbuf");
    if (!buffer_ok(recvbuf, received, x.t)) return bad_buffer(x.c, u.call, recvbuf, "recvbuf");
    if (sendbuf == recvbuf && received && x.t->size) return bad_aliases(x.c, u.call, "sendbuf", "recvbuf");
    return carry_out(u, x.c, &(struct coll_call){.kind = COLL_REDUCE_SCATTER,
                                                .sendbuf = sendbuf,
                                                .recvbuf = recvbuf,
                                                .rcounts = recvcounts,
                                                .rtype = x.t,
                                                .op = x.op});
}

/* Arrays of int, and wide ones. */
static int reduce_scatter_ints(struct use u, const void *sendbuf, void *recvbuf, const int *recvcounts, MPI_Datatype datatype,
                               MPI_Op op, MPI_Comm comm)
{
    struct comm *c = comm_of(comm);
    struct wide w;
    if (!c) return bad_comm(u.call, comm);
    if (!recvcounts) return bad_null(c, u.call, "recvcounts");
    const int64_t *counts = wide_ints(&w, c->size, recvcounts);
    int rc = counts ? reduce_scatter(u, sendbuf, recvbuf, counts, datatype, op, comm)
                    : report(c, u.call, MPI_ERR_NO_MEM, "no memory for an array of %d entries", c->size);
    wide_close(&w);
    return rc;
}

static int reduce_scatter_wide(struct use u, const void *sendbuf, void *recvbuf, const MPI_Count *recvcounts,
                               MPI_Datatype datatype, MPI_Op op, MPI_Comm comm)
{
    struct comm *c = comm_of(comm);
    if (!c) return bad_comm(u.call, comm);
    if (!recvcounts) return bad_null(c, u.call, "recvcounts");
    return reduce_scatter(u, sendbuf, recvbuf, recvcounts, datatype, op, comm);
}

MPI_ALIAS(Reduce_scatter);
int PMPI_Reduce_scatter(const void *sendbuf, void *recvbuf, const int recvcounts[], MPI_Datatype datatype, MPI_Op op, MPI_Comm comm)
{
    return reduce_scatter_ints(now("MPI_Reduce_scatter"), sendbuf, recvbuf, recvcounts, datatype, op, comm);
}

MPI_ALIAS(Ireduce_scatter);
int PMPI_Ireduce_scatter(const void *sendbuf, void *recvbuf, const int recvcounts[], MPI_Datatype datatype, MPI_Op op,
                         MPI_Comm comm, MPI_Request *request)
{
    return reduce_scatter_ints(later("MPI_Ireduce_scatter", request), sendbuf, recvbuf, recvcounts, datatype, op, comm);
}

MPI_ALIAS(Reduce_scatter_init);
int PMPI_Reduce_scatter_init(const void *sendbuf, void *recvbuf, const int recvcounts[], MPI_Datatype datatype, MPI_Op op,
                             MPI_Comm comm, MPI_Info info, MPI_Request *request)
{
    return reduce_scatter_ints(often("MPI_Reduce_scatter_init", info, request), sendbuf, recvbuf, recvcounts, datatype, op, comm);
}

MPI_ALIAS(Reduce_scatter_c);
int PMPI_Reduce_scatter_c(const void *sendbuf, void *recvbuf, const MPI_Count recvcounts[], MPI_Datatype datatype, MPI_Op op,
                          MPI_Comm comm)
{
    return reduce_scatter_wide(now("MPI_Reduce_scatter_c"), sendbuf, recvbuf, recvcounts, datatype, op, comm);
}

MPI_ALIAS(Ireduce_scatter_c);
int PMPI_Ireduce_scatter_c(const void *sendbuf, void *recvbuf, const MPI_Count recvcounts[], MPI_Datatype datatype, MPI_Op op,
                           MPI_Comm comm, MPI_Request *request)
{
    return reduce_scatter_wide(later("MPI_Ireduce_scatter_c", request), sendbuf, recvbuf, recvcounts, datatype, op, comm);
}

MPI_ALIAS(Reduce_scatter_init_c);
int PMPI_Reduce_scatter_init_c(const void *sendbuf, void *recvbuf, const MPI_Count recvcounts[], MPI_Datatype datatype,
                               MPI_Op op, MPI_Comm comm, MPI_Info info, MPI_Request *request)
{
    return reduce_scatter_wide(often("MPI_Reduce_scatter_init_c", info, request), sendbuf, recvbuf, recvcounts, datatype, op, comm);
}
