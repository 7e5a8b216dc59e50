/* tune_calls.c - the calls that tern_tune measures, and their buffers. */
#include "tool/tune_bench.h"

#include <stdlib.h>

#define MEMORY_MAX (INT64_C(64) << 20) /* of a buffer */

const enum coll_kind tune_measured[] = {
    COLL_BARRIER, COLL_BCAST,  COLL_REDUCE,   COLL_ALLREDUCE,      COLL_GATHER,     COLL_SCATTER,
    COLL_ALLGATHER, COLL_ALLTOALL, COLL_REDUCE_SCATTER_BLOCK,      COLL_SCAN,       COLL_EXSCAN,
    COLL_GATHERV, COLL_SCATTERV, COLL_ALLGATHERV, COLL_ALLTOALLV,  COLL_ALLTOALLW,  COLL_REDUCE_SCATTER,
};
const size_t tune_measured_count = ARRAY_LEN(tune_measured);

static void call_v(const struct bench *b, MPI_Comm c, int n)
{
    switch (b->kind) {
    case COLL_GATHERV:
        MPI_Gatherv(b->send, n, MPI_BYTE, b->recv, b->counts, b->displs, MPI_BYTE, 0, c);
        break;
    case COLL_SCATTERV:
        MPI_Scatterv(b->send, b->counts, b->displs, MPI_BYTE, b->recv, n, MPI_BYTE, 0, c);
        break;
    case COLL_ALLGATHERV:
        MPI_Allgatherv(b->send, n, MPI_BYTE, b->recv, b->counts, b->displs, MPI_BYTE, c);
        break;
    case COLL_ALLTOALLV:
        MPI_Alltoallv(b->send, b->counts, b->displs, MPI_BYTE, b->recv, b->counts, b->displs, MPI_BYTE, c);
        break;
    case COLL_ALLTOALLW:
        MPI_Alltoallw(b->send, b->counts, b->displs, b->types, b->recv, b->counts, b->displs, b->types, c);
        break;
    default:
        MPI_Reduce_scatter(b->send, b->recv, b->counts, MPI_BYTE, MPI_BOR, c);
        break;
    }
}

void tune_call(const struct bench *b, MPI_Comm c, int n)
{
    int d = n / 8;
    switch (b->kind) {
    case COLL_BARRIER: MPI_Barrier(c); break;
    case COLL_BCAST: MPI_Bcast(b->send, n, MPI_BYTE, 0, c); break;
    case COLL_REDUCE: MPI_Reduce(b->send, b->recv, d, MPI_DOUBLE, MPI_SUM, 0, c); break;
    case COLL_ALLREDUCE: MPI_Allreduce(b->send, b->recv, d, MPI_DOUBLE, MPI_SUM, c); break;
    case COLL_GATHER: MPI_Gather(b->send, n, MPI_BYTE, b->recv, n, MPI_BYTE, 0, c); break;
    case COLL_SCATTER: MPI_Scatter(b->send, n, MPI_BYTE, b->recv, n, MPI_BYTE, 0, c); break;
    case COLL_ALLGATHER: MPI_Allgather(b->send, n, MPI_BYTE, b->recv, n, MPI_BYTE, c); break;
    case COLL_ALLTOALL: MPI_Alltoall(b->send, n, MPI_BYTE, b->recv, n, MPI_BYTE, c); break;
    case COLL_REDUCE_SCATTER_BLOCK: MPI_Reduce_scatter_block(b->send, b->recv, d, MPI_DOUBLE, MPI_SUM, c); break;
    case COLL_SCAN: MPI_Scan(b->send, b->recv, d, MPI_DOUBLE, MPI_SUM, c); break;
    case COLL_EXSCAN: MPI_Exscan(b->send, b->recv, d, MPI_DOUBLE, MPI_SUM, c); break;
    default: call_v(b, c, n); break;
    }
}

/* ---- buffers ---------------------------------------------------------------------- */

/* Has every rank, or the root, a block for each rank? */
static bool has_blocks(enum coll_kind k)
{
    return (k >= COLL_GATHER && k <= COLL_ALLTOALLW) || k == COLL_REDUCE_SCATTER_BLOCK;
}

int64_t tune_most(const struct bench *b)
{
    int64_t room = has_blocks(b->kind) ? MEMORY_MAX / b->size : MEMORY_MAX;
    return b->o->max_bytes < room ? b->o->max_bytes : room;
}

void tune_buffers_open(struct bench *b)
{
    int64_t most = b->o->max_bytes * b->size < MEMORY_MAX ? b->o->max_bytes * b->size : MEMORY_MAX;
    if (most < V_BYTES * (int64_t)b->size) most = V_BYTES * (int64_t)b->size;
    b->send = calloc(1, (size_t)most);
    b->recv = calloc(1, (size_t)most);
    b->counts = calloc(2 * (size_t)b->size, sizeof *b->counts);
    b->types = calloc((size_t)b->size, sizeof *b->types);
    b->c = calloc(CANDIDATES_MAX, sizeof *b->c);
    if (!b->send || !b->recv || !b->counts || !b->types || !b->c) MPI_Abort(MPI_COMM_WORLD, 1);
    b->displs = b->counts + b->size;
    for (int i = 0; i < b->size; i++) {
        b->counts[i] = V_BYTES;
        b->displs[i] = i * V_BYTES;
        b->types[i] = MPI_BYTE;
    }
}

void tune_buffers_close(struct bench *b)
{
    free(b->send);
    free(b->recv);
    free(b->counts);
    free(b->types);
    free(b->c);
}
