/*
 * disagree.c - ranks disagree about the counts of a collective, with MPI_ERRORS_RETURN: nobody waits for ever, who gets
 * more than it has room for is told so (MPI_ERR_TRUNCATE), nothing is written behind a buffer, and the next operation on
 * the communicator is right. Lengths here go the same way at all ranks; clash.c has the others.
 */
#include "../check.h"

enum { ROOM = 4096, GUARD = 64 };
enum { BLOCKING, STARTED, KEPT, WAYS };
static const char *const ways[] = {"blocking", "nonblocking", "persistent"};
static int out[ROOM], in[ROOM + GUARD], counts[64], at[64];

/* The code of a call or, when that started something, of its end. */
static int end(int rc, MPI_Request *req, int way)
{
    if (rc || way == BLOCKING) return rc;
    if (way == KEPT) rc = MPI_Start(req);
    if (!rc) rc = MPI_Wait(req, MPI_STATUS_IGNORE);
    if (way == KEPT) MPI_Request_free(req);
    return rc;
}

#define CALL(now, later, ...)                                                                                          \
    end(way == BLOCKING  ? MPI_##now(__VA_ARGS__, comm)                                                                \
        : way == STARTED ? MPI_##later(__VA_ARGS__, comm, &req)                                                        \
                         : MPI_##now##_init(__VA_ARGS__, comm, MPI_INFO_NULL, &req),                                   \
        &req, way)

enum { BCAST, REDUCE, ALLREDUCE, GATHER, GATHERV, SCATTER, SCATTERV, ALLGATHER, ALLTOALL, BLOCKS, SCAN, EXSCAN, KINDS };
static const struct {
    const char *name;
    int too_much; /* who surely gets too much: those beside rank 0 when it has more (1), rank 0 when it has less (2) */
    int blocks;   /* of the receive buffer: 1, or one of each rank (0) */
} kinds[KINDS] = {
    [BCAST] = {"bcast", 1, 1},       [REDUCE] = {"reduce", 2, 1},       [ALLREDUCE] = {"allreduce", 3, 1},
    [GATHER] = {"gather", 2, 0},     [GATHERV] = {"gatherv", 2, 0},     [SCATTER] = {"scatter", 1, 1},
    [SCATTERV] = {"scatterv", 1, 1}, [ALLGATHER] = {"allgather", 3, 0}, [ALLTOALL] = {"alltoall", 3, 0},
    [BLOCKS] = {"blocks", 0, 1},     [SCAN] = {"scan", 1, 1},           [EXSCAN] = {"exscan", 0, 1},
};

/* This rank's part of an operation with its own idea of the count. */
static int call(int kind, int way, int n, MPI_Comm comm)
{
    MPI_Request req = MPI_REQUEST_NULL;
    for (int r = 0; r < check_size; r++) counts[r] = n, at[r] = r * n;
    switch (kind) {
    case BCAST: return CALL(Bcast, Ibcast, check_rank ? in : out, n, MPI_INT, 0);
    case REDUCE: return CALL(Reduce, Ireduce, out, in, n, MPI_INT, MPI_SUM, 0);
    case ALLREDUCE: return CALL(Allreduce, Iallreduce, out, in, n, MPI_INT, MPI_SUM);
    case GATHER: return CALL(Gather, Igather, out, n, MPI_INT, in, n, MPI_INT, 0);
    case GATHERV: return CALL(Gatherv, Igatherv, out, n, MPI_INT, in, counts, at, MPI_INT, 0);
    case SCATTER: return CALL(Scatter, Iscatter, out, n, MPI_INT, in, n, MPI_INT, 0);
    case SCATTERV: return CALL(Scatterv, Iscatterv, out, counts, at, MPI_INT, in, n, MPI_INT, 0);
    case ALLGATHER: return CALL(Allgather, Iallgather, out, n, MPI_INT, in, n, MPI_INT);
    case ALLTOALL: return CALL(Alltoall, Ialltoall, out, n, MPI_INT, in, n, MPI_INT);
    case BLOCKS: return CALL(Reduce_scatter_block, Ireduce_scatter_block, out, in, n, MPI_INT, MPI_SUM);
    case SCAN: return CALL(Scan, Iscan, out, in, n, MPI_INT, MPI_SUM);
    default: return CALL(Exscan, Iexscan, out, in, n, MPI_INT, MPI_SUM);
    }
}

static void behind_is_clean(int kind, int way, int n)
{
    int used = kinds[kind].blocks ? n : n * check_size;
    for (int i = used; i < used + GUARD; i++)
        if (in[i] != -7) {
            CHECK(0, "%s, %s: element %d behind a buffer of %d is %d", ways[way], kinds[kind].name, i, used, in[i]);
            return;
        }
    CHECK(1, "clean");
}

static void disagree(int kind, int way, int zeros, int others, MPI_Comm comm)
{
    int n = check_rank ? others : zeros, class = MPI_SUCCESS, failed, sum;
    for (int i = 0; i < ROOM + GUARD; i++) in[i] = -7;
    int rc = call(kind, way, n, comm);
    if (rc) MPI_Error_class(rc, &class);
    CHECK(!class || class == MPI_ERR_TRUNCATE, "%s, %s, %d and %d elements: class %d", ways[way], kinds[kind].name, zeros,
          others, class);
    behind_is_clean(kind, way, n);
    int bad = class == MPI_ERR_TRUNCATE;
    CHECK_OK(MPI_Allreduce(&bad, &failed, 1, MPI_INT, MPI_SUM, comm));
    CHECK_OK(MPI_Allreduce(&check_rank, &sum, 1, MPI_INT, MPI_SUM, comm));
    CHECK(sum == check_size * (check_size - 1) / 2, "after a %s the sum is %d", kinds[kind].name, sum);
    if (check_size > 1 && (kinds[kind].too_much & (zeros > others ? 1 : 2)))
        CHECK(failed > 0, "%s, %s, %d and %d elements: nobody was told", ways[way], kinds[kind].name, zeros, others);
}

int main(int argc, char **argv)
{
    static const int pairs[][2] = {{10, 5}, {5, 10}, {6, 50}, {50, 6}, {20, 19}, {19, 20}};
    MPI_Comm comm;
    check_start(&argc, &argv);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN); /* of requests */
    for (int i = 0; i < (int)(sizeof pairs / sizeof pairs[0]); i++)
        for (int way = 0; way < WAYS; way++)
            for (int kind = 0; kind < KINDS; kind++) disagree(kind, way, pairs[i][0], pairs[i][1], comm);
    MPI_Comm_free(&comm);
    return check_done();
}
