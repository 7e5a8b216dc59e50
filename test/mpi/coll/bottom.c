/*
 * bottom.c - every collective with MPI_BOTTOM for all its buffers, in all its forms: datatypes with absolute addresses, and,
 * where displacements are wide enough to be addresses, predefined datatypes (MPI-5.0 sections 5.1.5 and 6.2).
 */
#include "../check.h"

#include <stdbool.h>

enum { BLOCK = 3, RANKS = 8, ROOT = 0, UNTOUCHED = -1 };
enum kind { BCAST, GATHER, SCATTER, ALLGATHER, ALLTOALL, REDUCE, ALLREDUCE, SCAN, EXSCAN, REDUCE_SCATTER, NEIGHBOR_GATHER, NEIGHBOR_ALLTOALL };

static int data[2][RANKS * BLOCK];
static int *const sent = data[0], *const received = data[1]; /* the latter behind, so that its distance is positive */
static MPI_Datatype in, out; /* a block of `sent`, of `received`, by their addresses; the next block is an extent further */
static MPI_Op sum;
static MPI_Comm ring;
static MPI_Request request;

/* What rank `r` sends at place i. */
static int value(int r, int i) { return 1000 * r + i; }

static int sum_until(int last, int i)
{
    int s = 0;
    for (int r = 0; r <= last; r++) s += value(r, i);
    return s;
}

static int wanted(enum kind kind, int i)
{
    int me = check_rank, from = i / BLOCK, k = i % BLOCK, neighbor = (me + (from ? 1 : check_size - 1)) % check_size;
    switch (kind) {
    case BCAST: return from ? UNTOUCHED : value(ROOT, k);
    case GATHER: return me == ROOT ? value(from, k) : UNTOUCHED;
    case SCATTER: return from ? UNTOUCHED : value(ROOT, me * BLOCK + k);
    case ALLGATHER: return value(from, k);
    case ALLTOALL: return value(from, me * BLOCK + k);
    case REDUCE: return from || me != ROOT ? UNTOUCHED : sum_until(check_size - 1, k);
    case ALLREDUCE: return from ? UNTOUCHED : sum_until(check_size - 1, k);
    case SCAN: return from ? UNTOUCHED : sum_until(me, k);
    case EXSCAN: return from || !me ? UNTOUCHED : sum_until(me - 1, k);
    case REDUCE_SCATTER: return from ? UNTOUCHED : sum_until(check_size - 1, me * BLOCK + k);
    case NEIGHBOR_GATHER: return from > 1 ? UNTOUCHED : value(neighbor, k);
    case NEIGHBOR_ALLTOALL: return from > 1 ? UNTOUCHED : value(neighbor, (from ? 0 : BLOCK) + k);
    }
    return UNTOUCHED;
}

static void look(enum kind kind, const char *call)
{
    int bad = 0;
    bool two = kind == NEIGHBOR_GATHER || kind == NEIGHBOR_ALLTOALL;
    for (int i = 0; i < RANKS * BLOCK; i++)
        bad += received[i] != (i < BLOCK * (two ? 2 : check_size) ? wanted(kind, i) : UNTOUCHED);
    CHECK(!bad, "%s: %d places are wrong", call, bad);
    for (int i = 0; i < RANKS * BLOCK; i++) received[i] = UNTOUCHED;
    if (kind == BCAST && check_rank == ROOT) memcpy(received, sent, BLOCK * sizeof(int));
}

static void complete(int persistent)
{
    if (persistent) CHECK_OK(MPI_Start(&request));
    CHECK_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    if (persistent) CHECK_OK(MPI_Request_free(&request));
}

/* The three forms of one collective: blocking, nonblocking, persistent. */
#define FORMS(kind, call, icall, init, comm, ...)                                                                       \
    do {                                                                                                               \
        CHECK_OK(call(__VA_ARGS__, comm));                                                                             \
        look(kind, #call);                                                                                             \
        CHECK_OK(icall(__VA_ARGS__, comm, &request));                                                                  \
        complete(0);                                                                                                   \
        look(kind, #icall);                                                                                            \
        CHECK_OK(init(__VA_ARGS__, comm, MPI_INFO_NULL, &request));                                                    \
        complete(1);                                                                                                   \
        look(kind, #init);                                                                                             \
    } while (0)
#define SMALL(kind, name, iname, comm, ...) FORMS(kind, MPI_##name, MPI_I##iname, MPI_##name##_init, comm, __VA_ARGS__)
#define LARGE(kind, name, iname, comm, ...) FORMS(kind, MPI_##name##_c, MPI_I##iname##_c, MPI_##name##_init_c, comm, __VA_ARGS__)
#define BOTH(kind, name, iname, comm, ...)                                                                              \
    do {                                                                                                               \
        SMALL(kind, name, iname, comm, __VA_ARGS__);                                                                   \
        LARGE(kind, name, iname, comm, __VA_ARGS__);                                                                   \
    } while (0)

static void equal_blocks(void)
{
    if (check_rank == ROOT) memcpy(received, sent, BLOCK * sizeof(int));
    BOTH(BCAST, Bcast, bcast, MPI_COMM_WORLD, MPI_BOTTOM, 1, out, ROOT);
    for (int i = 0; i < BLOCK; i++) received[i] = UNTOUCHED;
    BOTH(GATHER, Gather, gather, MPI_COMM_WORLD, MPI_BOTTOM, 1, in, MPI_BOTTOM, 1, out, ROOT);
    BOTH(SCATTER, Scatter, scatter, MPI_COMM_WORLD, MPI_BOTTOM, 1, in, MPI_BOTTOM, 1, out, ROOT);
    BOTH(ALLGATHER, Allgather, allgather, MPI_COMM_WORLD, MPI_BOTTOM, 1, in, MPI_BOTTOM, 1, out);
    BOTH(ALLTOALL, Alltoall, alltoall, MPI_COMM_WORLD, MPI_BOTTOM, 1, in, MPI_BOTTOM, 1, out);
    BOTH(NEIGHBOR_GATHER, Neighbor_allgather, neighbor_allgather, ring, MPI_BOTTOM, 1, in, MPI_BOTTOM, 1, out);
    BOTH(NEIGHBOR_ALLTOALL, Neighbor_alltoall, neighbor_alltoall, ring, MPI_BOTTOM, 1, in, MPI_BOTTOM, 1, out);
}

/* Displacements count extents of datatypes that are absolute. */
static void blocks(void)
{
    int n[RANKS], at[RANKS];
    for (int i = 0; i < RANKS; i++) n[i] = 1, at[i] = i;
    SMALL(GATHER, Gatherv, gatherv, MPI_COMM_WORLD, MPI_BOTTOM, 1, in, MPI_BOTTOM, n, at, out, ROOT);
    SMALL(SCATTER, Scatterv, scatterv, MPI_COMM_WORLD, MPI_BOTTOM, n, at, in, MPI_BOTTOM, 1, out, ROOT);
    SMALL(ALLGATHER, Allgatherv, allgatherv, MPI_COMM_WORLD, MPI_BOTTOM, 1, in, MPI_BOTTOM, n, at, out);
    SMALL(ALLTOALL, Alltoallv, alltoallv, MPI_COMM_WORLD, MPI_BOTTOM, n, at, in, MPI_BOTTOM, n, at, out);
    SMALL(NEIGHBOR_GATHER, Neighbor_allgatherv, neighbor_allgatherv, ring, MPI_BOTTOM, 1, in, MPI_BOTTOM, n, at, out);
    SMALL(NEIGHBOR_ALLTOALL, Neighbor_alltoallv, neighbor_alltoallv, ring, MPI_BOTTOM, n, at, in, MPI_BOTTOM, n, at, out);
}

/* Displacements are addresses, in elements. */
static void blocks_by_address(void)
{
    MPI_Count n[RANKS];
    MPI_Aint from[RANKS], to[RANKS];
    for (int i = 0; i < RANKS; i++) {
        n[i] = BLOCK;
        from[i] = (MPI_Aint)(intptr_t)sent / (MPI_Aint)sizeof(int) + i * BLOCK;
        to[i] = (MPI_Aint)(intptr_t)received / (MPI_Aint)sizeof(int) + i * BLOCK;
    }
    LARGE(GATHER, Gatherv, gatherv, MPI_COMM_WORLD, MPI_BOTTOM, 1, in, MPI_BOTTOM, n, to, MPI_INT, ROOT);
    LARGE(SCATTER, Scatterv, scatterv, MPI_COMM_WORLD, MPI_BOTTOM, n, from, MPI_INT, MPI_BOTTOM, 1, out, ROOT);
    LARGE(ALLGATHER, Allgatherv, allgatherv, MPI_COMM_WORLD, MPI_BOTTOM, 1, in, MPI_BOTTOM, n, to, MPI_INT);
    LARGE(ALLTOALL, Alltoallv, alltoallv, MPI_COMM_WORLD, MPI_BOTTOM, n, from, MPI_INT, MPI_BOTTOM, n, to, MPI_INT);
    LARGE(NEIGHBOR_GATHER, Neighbor_allgatherv, neighbor_allgatherv, ring, MPI_BOTTOM, 1, in, MPI_BOTTOM, n, to, MPI_INT);
    LARGE(NEIGHBOR_ALLTOALL, Neighbor_alltoallv, neighbor_alltoallv, ring, MPI_BOTTOM, n, from, MPI_INT, MPI_BOTTOM, n, to, MPI_INT);
}

/* Each block with its datatype, and displacements in bytes: addresses where they are wide enough. */
static void blocks_with_types(void)
{
    int n[RANKS], few[RANKS], at[RANKS];
    MPI_Count large_n[RANKS];
    MPI_Aint from[RANKS], to[RANKS];
    MPI_Datatype ins[RANKS], outs[RANKS], ints[RANKS];
    for (int i = 0; i < RANKS; i++) {
        n[i] = 1, few[i] = BLOCK, large_n[i] = BLOCK, at[i] = i * BLOCK * (int)sizeof(int);
        ins[i] = in, outs[i] = out, ints[i] = MPI_INT;
        from[i] = (MPI_Aint)(intptr_t)&sent[i * BLOCK], to[i] = (MPI_Aint)(intptr_t)&received[i * BLOCK];
    }
    SMALL(ALLTOALL, Alltoallw, alltoallw, MPI_COMM_WORLD, MPI_BOTTOM, n, at, ins, MPI_BOTTOM, n, at, outs);
    LARGE(ALLTOALL, Alltoallw, alltoallw, MPI_COMM_WORLD, MPI_BOTTOM, large_n, from, ints, MPI_BOTTOM, large_n, to, ints);
    SMALL(NEIGHBOR_ALLTOALL, Neighbor_alltoallw, neighbor_alltoallw, ring, MPI_BOTTOM, few, from, ints, MPI_BOTTOM, few, to, ints);
    LARGE(NEIGHBOR_ALLTOALL, Neighbor_alltoallw, neighbor_alltoallw, ring, MPI_BOTTOM, large_n, from, ints, MPI_BOTTOM, large_n, to, ints);
}

/* The data of an absolute datatype lies at its true lower bound from where the function is pointed to. */
static void add(void *a, void *b, int *n, MPI_Datatype *type)
{
    MPI_Aint lb, extent;
    MPI_Type_get_true_extent(*type, &lb, &extent);
    const int *from = (const int *)((uintptr_t)a + (uintptr_t)lb);
    int *to = (int *)((uintptr_t)b + (uintptr_t)lb);
    for (int i = 0; i < *n * BLOCK; i++) to[i] += from[i];
}

/* Operands of one datatype: what is received lies behind what is sent, by whole extents, so both ends are absolute. */
static void reductions(void)
{
    int n[RANKS];
    for (int i = 0; i < RANKS; i++) n[i] = 1;
    void *to = (void *)((uintptr_t)received - (uintptr_t)sent); /* where `in` means `received` */
    BOTH(REDUCE, Reduce, reduce, MPI_COMM_WORLD, MPI_BOTTOM, to, 1, in, sum, ROOT);
    BOTH(ALLREDUCE, Allreduce, allreduce, MPI_COMM_WORLD, MPI_BOTTOM, to, 1, in, sum);
    BOTH(SCAN, Scan, scan, MPI_COMM_WORLD, MPI_BOTTOM, to, 1, in, sum);
    BOTH(EXSCAN, Exscan, exscan, MPI_COMM_WORLD, MPI_BOTTOM, to, 1, in, sum);
    BOTH(REDUCE_SCATTER, Reduce_scatter_block, reduce_scatter_block, MPI_COMM_WORLD, MPI_BOTTOM, to, 1, in, sum);
    SMALL(REDUCE_SCATTER, Reduce_scatter, reduce_scatter, MPI_COMM_WORLD, MPI_BOTTOM, to, n, in, sum);
    for (int i = 0; i < BLOCK; i++) received[i] = 0;
    CHECK_OK(MPI_Reduce_local(MPI_BOTTOM, to, 1, in, sum));
    CHECK(!memcmp(received, sent, BLOCK * sizeof(int)), "MPI_Reduce_local: %d, not %d", received[0], sent[0]);
}

/* NULL is no address: neither without displacements nor with some that lead nowhere. */
static void nowhere(void)
{
    MPI_Count n[RANKS], none[RANKS] = {0};
    MPI_Aint at[RANKS];
    for (int i = 0; i < RANKS; i++) n[i] = 1, at[i] = i;
    CHECK_WORDS(MPI_Allgather(sent, 1, MPI_INT, NULL, 1, MPI_INT, MPI_COMM_WORLD), MPI_ERR_BUFFER, "argument recvbuf is NULL");
    CHECK_WORDS(MPI_Allgatherv_c(sent, 1, MPI_INT, NULL, n, at, MPI_INT, MPI_COMM_WORLD), MPI_ERR_BUFFER, "argument recvbuf is NULL");
    CHECK_OK(MPI_Allgatherv_c(NULL, 0, MPI_INT, NULL, none, at, MPI_INT, MPI_COMM_WORLD));
}

static MPI_Datatype by_address(const int *block)
{
    MPI_Datatype type;
    MPI_Aint address;
    int n = BLOCK;
    MPI_Get_address(block, &address);
    MPI_Type_create_hindexed(1, &n, &address, MPI_INT, &type);
    MPI_Type_commit(&type);
    return type;
}

int main(int argc, char **argv)
{
    int periodic = 1;
    check_start(&argc, &argv);
    if (check_size > RANKS) return check_skip("more ranks than the buffers have room for");
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Cart_create(MPI_COMM_WORLD, 1, &check_size, &periodic, 0, &ring);
    for (int i = 0; i < RANKS * BLOCK; i++) sent[i] = value(check_rank, i), received[i] = UNTOUCHED;
    in = by_address(sent);
    out = by_address(received);
    MPI_Op_create(add, 1, &sum);
    equal_blocks();
    blocks();
    blocks_by_address();
    blocks_with_types();
    reductions();
    nowhere();
    MPI_Op_free(&sum);
    MPI_Type_free(&in);
    MPI_Type_free(&out);
    MPI_Comm_free(&ring);
    return check_done();
}
