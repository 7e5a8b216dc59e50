/*
 * jobs.h - random collectives of every kind, each of which can be done by its blocking, nonblocking or persistent form, with
 * plain and large counts. What is drawn from `common` is alike at all ranks.
 */
#ifndef TERN_TEST_JOBS_H
#define TERN_TEST_JOBS_H

#include "../check.h"

enum { KINDS = 17, MAXCOUNT = 2000, MAXRANKS = 16 };

static const char *const kind_name[KINDS] = {"barrier", "bcast", "reduce", "allreduce", "gather", "gatherv", "scatter", "scatterv",
                                             "allgather", "allgatherv", "alltoall", "alltoallv", "alltoallw", "reduce_scatter",
                                             "reduce_scatter_block", "scan", "exscan"};
enum { BARRIER, BCAST, REDUCE, ALLREDUCE, GATHER, GATHERV, SCATTER, SCATTERV, ALLGATHER, ALLGATHERV, ALLTOALL, ALLTOALLV, ALLTOALLW,
       REDUCE_SCATTER, REDUCE_SCATTER_BLOCK, SCAN, EXSCAN };
enum how { BLOCKING, START, START_LARGE, INIT, INIT_LARGE, HOWS };

static uint64_t common, own; /* drawn alike at all ranks, and by each for itself */
static MPI_Comm comms[2];

struct job {
    int kind, root, count, in_place, stride, user_op;
    MPI_Comm comm;
    MPI_Datatype type;
    MPI_Op op;
    unsigned *send, *recv, *want; /* room for blocks of all ranks */
    int n[MAXRANKS], at[MAXRANKS], bytes_at[MAXRANKS];
    MPI_Count wide_n[MAXRANKS];
    MPI_Aint wide_at[MAXRANKS], wide_bytes_at[MAXRANKS];
    MPI_Datatype types[MAXRANKS];
};

static int draw(int n) { return (int)(check_random(&common) % (unsigned)n); }

/* Composition of x -> a x + b: associative, not commutative. An element is a pair. */
static void compose(void *in, void *inout, int *len, MPI_Datatype *type)
{
    unsigned *f = in, *g = inout;
    int bytes;
    MPI_Type_size(*type, &bytes);
    for (int i = 0; i < *len * bytes / 8; i++, f += 2, g += 2) {
        unsigned a = g[0] * f[0], b = g[0] * f[1] + g[1];
        g[0] = a, g[1] = b;
    }
}

/* Words of a buffer with a block for every rank, holes included. */
static size_t room(const struct job *j) { return (size_t)(j->count + 1) * 2 * (size_t)j->stride * (size_t)check_size + 64; }

static int reduces(int kind) { return kind == REDUCE || kind == ALLREDUCE || kind >= REDUCE_SCATTER; }

static int may_be_in_place(const struct job *j)
{
    switch (j->kind) {
    case BARRIER: case BCAST: return 0;
    case REDUCE: case GATHER: case GATHERV: case SCATTER: case SCATTERV: return check_rank == j->root;
    default: return 1;
    }
}

static void make_type(struct job *j)
{
    MPI_Datatype vector;
    MPI_Type_vector(1, 2, 2, MPI_UNSIGNED, &vector);
    MPI_Type_create_resized(vector, 0, 8 * j->stride, &j->type);
    MPI_Type_commit(&j->type);
    MPI_Type_free(&vector);
}

static void fill_job(struct job *j)
{
    for (size_t i = 0; i < room(j); i++) {
        j->send[i] = (unsigned)check_random(&own);
        j->recv[i] = j->want[i] = (unsigned)check_random(&own);
    }
}

static void make_job(struct job *j)
{
    *j = (struct job){.kind = draw(KINDS), .root = draw(check_size), .stride = draw(3) ? 1 : 2};
    j->count = draw(3) ? draw(20) : draw(MAXCOUNT);
    int place = draw(4) == 0;
    j->in_place = place && may_be_in_place(j);
    j->comm = comms[draw(2)];
    j->user_op = draw(2);
    if (reduces(j->kind)) j->stride = 1; /* gaps of reductions: reductions.c */
    make_type(j);
    int shift = draw(check_size), at = 0;
    for (int k = 0; k < check_size; k++) {
        int r = (k + shift) % check_size;
        j->n[r] = j->count ? (r * 7 + j->count) % (j->count + 1) : 0;
        j->at[r] = at;
        j->bytes_at[r] = at * 8 * j->stride;
        at += j->count;
        j->types[r] = j->type;
        j->wide_n[r] = j->n[r], j->wide_at[r] = j->at[r], j->wide_bytes_at[r] = j->bytes_at[r];
    }
    j->send = malloc(room(j) * 4);
    j->recv = malloc(room(j) * 4);
    j->want = malloc(room(j) * 4);
    fill_job(j);
}

/* What this rank receives of a v-collective with regular sends, and sends with regular receives. */
static int mine(const struct job *j) { return j->n[check_rank]; }

static int moving(struct job *j, enum how how, unsigned *recv, MPI_Request *req)
{
    const void *send = j->in_place ? MPI_IN_PLACE : j->send;
    void *put = j->in_place ? MPI_IN_PLACE : recv; /* of scatters */
    int n = j->count, root = j->root;
    MPI_Datatype t = j->type;
    MPI_Comm c = j->comm;
    switch (j->kind * HOWS + (int)how) {
    case BARRIER * HOWS: return MPI_Barrier(c);
    case BARRIER * HOWS + START: case BARRIER * HOWS + START_LARGE: return MPI_Ibarrier(c, req);
    case BARRIER * HOWS + INIT: case BARRIER * HOWS + INIT_LARGE: return MPI_Barrier_init(c, MPI_INFO_NULL, req);
    case BCAST * HOWS: return MPI_Bcast(recv, n, t, root, c);
    case BCAST * HOWS + START: return MPI_Ibcast(recv, n, t, root, c, req);
    case BCAST * HOWS + INIT: return MPI_Bcast_init(recv, n, t, root, c, MPI_INFO_NULL, req);
    case BCAST * HOWS + START_LARGE: return MPI_Ibcast_c(recv, n, t, root, c, req);
    case BCAST * HOWS + INIT_LARGE: return MPI_Bcast_init_c(recv, n, t, root, c, MPI_INFO_NULL, req);
    case GATHER * HOWS: return MPI_Gather(send, n, t, recv, n, t, root, c);
    case GATHER * HOWS + START: return MPI_Igather(send, n, t, recv, n, t, root, c, req);
    case GATHER * HOWS + INIT: return MPI_Gather_init(send, n, t, recv, n, t, root, c, MPI_INFO_NULL, req);
    case GATHER * HOWS + START_LARGE: return MPI_Igather_c(send, n, t, recv, n, t, root, c, req);
    case GATHER * HOWS + INIT_LARGE: return MPI_Gather_init_c(send, n, t, recv, n, t, root, c, MPI_INFO_NULL, req);
    case SCATTER * HOWS: return MPI_Scatter(j->send, n, t, put, n, t, root, c);
    case SCATTER * HOWS + START: return MPI_Iscatter(j->send, n, t, put, n, t, root, c, req);
    case SCATTER * HOWS + INIT: return MPI_Scatter_init(j->send, n, t, put, n, t, root, c, MPI_INFO_NULL, req);
    case SCATTER * HOWS + START_LARGE: return MPI_Iscatter_c(j->send, n, t, put, n, t, root, c, req);
    case SCATTER * HOWS + INIT_LARGE: return MPI_Scatter_init_c(j->send, n, t, put, n, t, root, c, MPI_INFO_NULL, req);
    case ALLGATHER * HOWS: return MPI_Allgather(send, n, t, recv, n, t, c);
    case ALLGATHER * HOWS + START: return MPI_Iallgather(send, n, t, recv, n, t, c, req);
    case ALLGATHER * HOWS + INIT: return MPI_Allgather_init(send, n, t, recv, n, t, c, MPI_INFO_NULL, req);
    case ALLGATHER * HOWS + START_LARGE: return MPI_Iallgather_c(send, n, t, recv, n, t, c, req);
    case ALLGATHER * HOWS + INIT_LARGE: return MPI_Allgather_init_c(send, n, t, recv, n, t, c, MPI_INFO_NULL, req);
    case ALLTOALL * HOWS: return MPI_Alltoall(send, n, t, recv, n, t, c);
    case ALLTOALL * HOWS + START: return MPI_Ialltoall(send, n, t, recv, n, t, c, req);
    case ALLTOALL * HOWS + INIT: return MPI_Alltoall_init(send, n, t, recv, n, t, c, MPI_INFO_NULL, req);
    case ALLTOALL * HOWS + START_LARGE: return MPI_Ialltoall_c(send, n, t, recv, n, t, c, req);
    case ALLTOALL * HOWS + INIT_LARGE: return MPI_Alltoall_init_c(send, n, t, recv, n, t, c, MPI_INFO_NULL, req);
    case GATHERV * HOWS: return MPI_Gatherv(send, mine(j), t, recv, j->n, j->at, t, root, c);
    case GATHERV * HOWS + START: return MPI_Igatherv(send, mine(j), t, recv, j->n, j->at, t, root, c, req);
    case GATHERV * HOWS + INIT: return MPI_Gatherv_init(send, mine(j), t, recv, j->n, j->at, t, root, c, MPI_INFO_NULL, req);
    case GATHERV * HOWS + START_LARGE: return MPI_Igatherv_c(send, mine(j), t, recv, j->wide_n, j->wide_at, t, root, c, req);
    case GATHERV * HOWS + INIT_LARGE:
        return MPI_Gatherv_init_c(send, mine(j), t, recv, j->wide_n, j->wide_at, t, root, c, MPI_INFO_NULL, req);
    case SCATTERV * HOWS: return MPI_Scatterv(j->send, j->n, j->at, t, put, mine(j), t, root, c);
    case SCATTERV * HOWS + START: return MPI_Iscatterv(j->send, j->n, j->at, t, put, mine(j), t, root, c, req);
    case SCATTERV * HOWS + INIT:
        return MPI_Scatterv_init(j->send, j->n, j->at, t, put, mine(j), t, root, c, MPI_INFO_NULL, req);
    case SCATTERV * HOWS + START_LARGE: return MPI_Iscatterv_c(j->send, j->wide_n, j->wide_at, t, put, mine(j), t, root, c, req);
    case SCATTERV * HOWS + INIT_LARGE:
        return MPI_Scatterv_init_c(j->send, j->wide_n, j->wide_at, t, put, mine(j), t, root, c, MPI_INFO_NULL, req);
    case ALLGATHERV * HOWS: return MPI_Allgatherv(send, mine(j), t, recv, j->n, j->at, t, c);
    case ALLGATHERV * HOWS + START: return MPI_Iallgatherv(send, mine(j), t, recv, j->n, j->at, t, c, req);
    case ALLGATHERV * HOWS + INIT: return MPI_Allgatherv_init(send, mine(j), t, recv, j->n, j->at, t, c, MPI_INFO_NULL, req);
    case ALLGATHERV * HOWS + START_LARGE: return MPI_Iallgatherv_c(send, mine(j), t, recv, j->wide_n, j->wide_at, t, c, req);
    case ALLGATHERV * HOWS + INIT_LARGE:
        return MPI_Allgatherv_init_c(send, mine(j), t, recv, j->wide_n, j->wide_at, t, c, MPI_INFO_NULL, req);
    default: return -1;
    }
}

/* alltoallv, alltoallw: every pair of ranks moves j->count elements, so that both sides agree. */
static int exchanging(struct job *j, enum how how, unsigned *recv, MPI_Request *req)
{
    const void *send = j->in_place ? MPI_IN_PLACE : j->send;
    MPI_Datatype t = j->type, *w = j->types;
    MPI_Comm c = j->comm;
    int *n = j->n, *at = j->at, *by = j->bytes_at;
    MPI_Count *N = j->wide_n;
    MPI_Aint *At = j->wide_at, *By = j->wide_bytes_at;
    for (int r = 0; r < check_size; r++) n[r] = j->count, N[r] = j->count;
    switch (j->kind * HOWS + (int)how) {
    case ALLTOALLV * HOWS: return MPI_Alltoallv(send, n, at, t, recv, n, at, t, c);
    case ALLTOALLV * HOWS + START: return MPI_Ialltoallv(send, n, at, t, recv, n, at, t, c, req);
    case ALLTOALLV * HOWS + INIT: return MPI_Alltoallv_init(send, n, at, t, recv, n, at, t, c, MPI_INFO_NULL, req);
    case ALLTOALLV * HOWS + START_LARGE: return MPI_Ialltoallv_c(send, N, At, t, recv, N, At, t, c, req);
    case ALLTOALLV * HOWS + INIT_LARGE: return MPI_Alltoallv_init_c(send, N, At, t, recv, N, At, t, c, MPI_INFO_NULL, req);
    case ALLTOALLW * HOWS: return MPI_Alltoallw(send, n, by, w, recv, n, by, w, c);
    case ALLTOALLW * HOWS + START: return MPI_Ialltoallw(send, n, by, w, recv, n, by, w, c, req);
    case ALLTOALLW * HOWS + INIT: return MPI_Alltoallw_init(send, n, by, w, recv, n, by, w, c, MPI_INFO_NULL, req);
    case ALLTOALLW * HOWS + START_LARGE: return MPI_Ialltoallw_c(send, N, By, w, recv, N, By, w, c, req);
    case ALLTOALLW * HOWS + INIT_LARGE: return MPI_Alltoallw_init_c(send, N, By, w, recv, N, By, w, c, MPI_INFO_NULL, req);
    default: return -1;
    }
}

static int reducing(struct job *j, enum how how, unsigned *recv, MPI_Request *req)
{
    const void *send = j->in_place ? MPI_IN_PLACE : j->send;
    MPI_Datatype t = j->user_op ? j->type : MPI_UNSIGNED;
    MPI_Op op = j->user_op ? j->op : MPI_SUM;
    MPI_Comm c = j->comm;
    int n = j->count, root = j->root;
    switch (j->kind * HOWS + (int)how) {
    case REDUCE * HOWS: return MPI_Reduce(send, recv, n, t, op, root, c);
    case REDUCE * HOWS + START: return MPI_Ireduce(send, recv, n, t, op, root, c, req);
    case REDUCE * HOWS + INIT: return MPI_Reduce_init(send, recv, n, t, op, root, c, MPI_INFO_NULL, req);
    case REDUCE * HOWS + START_LARGE: return MPI_Ireduce_c(send, recv, n, t, op, root, c, req);
    case REDUCE * HOWS + INIT_LARGE: return MPI_Reduce_init_c(send, recv, n, t, op, root, c, MPI_INFO_NULL, req);
    case ALLREDUCE * HOWS: return MPI_Allreduce(send, recv, n, t, op, c);
    case ALLREDUCE * HOWS + START: return MPI_Iallreduce(send, recv, n, t, op, c, req);
    case ALLREDUCE * HOWS + INIT: return MPI_Allreduce_init(send, recv, n, t, op, c, MPI_INFO_NULL, req);
    case ALLREDUCE * HOWS + START_LARGE: return MPI_Iallreduce_c(send, recv, n, t, op, c, req);
    case ALLREDUCE * HOWS + INIT_LARGE: return MPI_Allreduce_init_c(send, recv, n, t, op, c, MPI_INFO_NULL, req);
    case REDUCE_SCATTER * HOWS: return MPI_Reduce_scatter(send, recv, j->n, t, op, c);
    case REDUCE_SCATTER * HOWS + START: return MPI_Ireduce_scatter(send, recv, j->n, t, op, c, req);
    case REDUCE_SCATTER * HOWS + INIT: return MPI_Reduce_scatter_init(send, recv, j->n, t, op, c, MPI_INFO_NULL, req);
    case REDUCE_SCATTER * HOWS + START_LARGE: return MPI_Ireduce_scatter_c(send, recv, j->wide_n, t, op, c, req);
    case REDUCE_SCATTER * HOWS + INIT_LARGE:
        return MPI_Reduce_scatter_init_c(send, recv, j->wide_n, t, op, c, MPI_INFO_NULL, req);
    case REDUCE_SCATTER_BLOCK * HOWS: return MPI_Reduce_scatter_block(send, recv, n, t, op, c);
    case REDUCE_SCATTER_BLOCK * HOWS + START: return MPI_Ireduce_scatter_block(send, recv, n, t, op, c, req);
    case REDUCE_SCATTER_BLOCK * HOWS + INIT: return MPI_Reduce_scatter_block_init(send, recv, n, t, op, c, MPI_INFO_NULL, req);
    case REDUCE_SCATTER_BLOCK * HOWS + START_LARGE: return MPI_Ireduce_scatter_block_c(send, recv, n, t, op, c, req);
    case REDUCE_SCATTER_BLOCK * HOWS + INIT_LARGE:
        return MPI_Reduce_scatter_block_init_c(send, recv, n, t, op, c, MPI_INFO_NULL, req);
    case SCAN * HOWS: return MPI_Scan(send, recv, n, t, op, c);
    case SCAN * HOWS + START: return MPI_Iscan(send, recv, n, t, op, c, req);
    case SCAN * HOWS + INIT: return MPI_Scan_init(send, recv, n, t, op, c, MPI_INFO_NULL, req);
    case SCAN * HOWS + START_LARGE: return MPI_Iscan_c(send, recv, n, t, op, c, req);
    case SCAN * HOWS + INIT_LARGE: return MPI_Scan_init_c(send, recv, n, t, op, c, MPI_INFO_NULL, req);
    case EXSCAN * HOWS: return MPI_Exscan(send, recv, n, t, op, c);
    case EXSCAN * HOWS + START: return MPI_Iexscan(send, recv, n, t, op, c, req);
    case EXSCAN * HOWS + INIT: return MPI_Exscan_init(send, recv, n, t, op, c, MPI_INFO_NULL, req);
    case EXSCAN * HOWS + START_LARGE: return MPI_Iexscan_c(send, recv, n, t, op, c, req);
    case EXSCAN * HOWS + INIT_LARGE: return MPI_Exscan_init_c(send, recv, n, t, op, c, MPI_INFO_NULL, req);
    default: return -1;
    }
}

static void do_job(struct job *j, enum how how, unsigned *recv, MPI_Request *req)
{
    if (reduces(j->kind)) CHECK_OK(reducing(j, how, recv, req));
    else if (j->kind == ALLTOALLV || j->kind == ALLTOALLW) CHECK_OK(exchanging(j, how, recv, req));
    else CHECK_OK(moving(j, how, recv, req));
}

/* The significant result is compared with what the blocking form left. */
static void check_job(struct job *j)
{
    /* A scatter in place leaves the receive buffer alone, a reduction's operand buffers are scratch where they are not
     * the result: in place, a reduce_scatter leaves no meaning behind its block. */
    size_t words = room(j);
    if (j->kind == REDUCE && check_rank != j->root) words = 0;
    if (j->kind == EXSCAN && check_rank == 0) words = 0;
    if (j->kind == REDUCE_SCATTER && j->in_place) words = (size_t)mine(j) * (j->user_op ? 2 : 1);
    if (j->kind == REDUCE_SCATTER_BLOCK && j->in_place) words = (size_t)j->count * (j->user_op ? 2 : 1);
    size_t bad = 0;
    for (size_t i = 0; i < words; i++) bad += j->recv[i] != j->want[i];
    CHECK(bad == 0, "%s of %d, root %d, in place %d: %zu words differ from the blocking result", kind_name[j->kind], j->count, j->root,
          j->in_place, bad);
}

static void free_job(struct job *j)
{
    free(j->send);
    free(j->recv);
    free(j->want);
}

#endif
