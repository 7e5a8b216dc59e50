/*
 * coll.c - wrong arguments of the collectives. Every call here fails at all ranks, before anything is sent, so that
 * nobody waits for anybody.
 */
#include "wrong.h"

static int in[64], out[64], one[64], at[64];
static MPI_Count cone[64];
static MPI_Aint cat[64];
static MPI_Datatype ints[64];

#define W MPI_COMM_WORLD

static void roots(void)
{
    WRONG_COMMS(MPI_Barrier(comm));
#define ROOTED(F, counts)                                                                                              \
    WRONG_COMMS(F(out, 1, MPI_INT, in, 1, MPI_INT, 0, comm));                                                          \
    CHECK_CLASS(F(out, 1, MPI_INT, in, 1, MPI_INT, check_size, W), MPI_ERR_ROOT);                                      \
    CHECK_CLASS(F(out, 1, MPI_INT, in, 1, MPI_INT, -1, W), MPI_ERR_ROOT);                                              \
    CHECK_CLASS(F(out, 1, MPI_INT, in, 1, MPI_INT, MPI_PROC_NULL, W), MPI_ERR_ROOT)
    ROOTED(MPI_Gather, );
    ROOTED(MPI_Gather_c, );
    ROOTED(MPI_Scatter, );
    ROOTED(MPI_Scatter_c, );
    WRONG_TYPES(MPI_Gather(out, 1, type, in, 1, MPI_INT, 0, W));
    WRONG_TYPES(MPI_Scatter(out, 1, MPI_INT, in, 1, type, 1 % check_size, W));
    CHECK_CLASS(MPI_Gather(out, -1, MPI_INT, in, 1, MPI_INT, 0, W), MPI_ERR_COUNT);
    CHECK_CLASS(MPI_Scatter(out, 1, MPI_INT, in, -1, MPI_INT, 0, W), MPI_ERR_COUNT);
    CHECK_CLASS(MPI_Gather(NULL, 1, MPI_INT, in, 1, MPI_INT, 0, W), MPI_ERR_BUFFER);
    CHECK_CLASS(MPI_Scatter(out, 1, MPI_INT, NULL, 1, MPI_INT, 0, W), MPI_ERR_BUFFER);
    for (int large = 0; large < 2; large++) {
#define BCAST(b, n, t, r, c) (large ? MPI_Bcast_c(b, n, t, r, c) : MPI_Bcast(b, n, t, r, c))
        WRONG_COMMS(BCAST(out, 1, MPI_INT, 0, comm));
        WRONG_TYPES(BCAST(out, 1, type, 0, W));
        CHECK_CLASS(BCAST(out, 1, MPI_INT, check_size, W), MPI_ERR_ROOT);
        CHECK_CLASS(BCAST(out, -1, MPI_INT, 0, W), MPI_ERR_COUNT);
        CHECK_CLASS(BCAST(NULL, 1, MPI_INT, 0, W), MPI_ERR_BUFFER);
        CHECK_CLASS(BCAST(MPI_IN_PLACE, 1, MPI_INT, 0, W), MPI_ERR_BUFFER);
    }
}

#define ALL(F)                                                                                                         \
    WRONG_COMMS(F(out, 1, MPI_INT, in, 1, MPI_INT, comm));                                                             \
    WRONG_TYPES(F(out, 1, type, in, 1, MPI_INT, W));                                                                   \
    WRONG_TYPES(F(MPI_IN_PLACE, 1, MPI_INT, in, 1, type, W));                                                          \
    CHECK_CLASS(F(out, -1, MPI_INT, in, 1, MPI_INT, W), MPI_ERR_COUNT);                                                \
    CHECK_CLASS(F(out, 1, MPI_INT, in, -1, MPI_INT, W), MPI_ERR_COUNT);                                                \
    CHECK_CLASS(F(NULL, 1, MPI_INT, in, 1, MPI_INT, W), MPI_ERR_BUFFER);                                               \
    CHECK_CLASS(F(out, 1, MPI_INT, NULL, 1, MPI_INT, W), MPI_ERR_BUFFER);                                              \
    CHECK_CLASS(F(out, 1, MPI_INT, MPI_IN_PLACE, 1, MPI_INT, W), MPI_ERR_BUFFER)

static void everybody(void)
{
    ALL(MPI_Allgather);
    ALL(MPI_Allgather_c);
    ALL(MPI_Alltoall);
    ALL(MPI_Alltoall_c);
}

#define TOV(F, c, d)                                                                                                   \
    WRONG_COMMS(F(out, c, d, MPI_INT, in, c, d, MPI_INT, comm));                                                       \
    WRONG_TYPES(F(out, c, d, type, in, c, d, MPI_INT, W));                                                             \
    WRONG_TYPES(F(out, c, d, MPI_INT, in, c, d, type, W));                                                             \
    CHECK_CLASS(F(out, NULL, d, MPI_INT, in, c, d, MPI_INT, W), MPI_ERR_ARG);                                          \
    CHECK_CLASS(F(out, c, NULL, MPI_INT, in, c, d, MPI_INT, W), MPI_ERR_ARG);                                          \
    CHECK_CLASS(F(out, c, d, MPI_INT, in, NULL, d, MPI_INT, W), MPI_ERR_ARG);                                          \
    CHECK_CLASS(F(out, c, d, MPI_INT, in, c, NULL, MPI_INT, W), MPI_ERR_ARG);                                          \
    CHECK_CLASS(F(NULL, c, d, MPI_INT, in, c, d, MPI_INT, W), MPI_ERR_BUFFER);                                         \
    CHECK_CLASS(F(out, c, d, MPI_INT, MPI_IN_PLACE, c, d, MPI_INT, W), MPI_ERR_BUFFER);                                \
    c[check_size - 1] = -2;                                                                                            \
    CHECK_CLASS(F(out, c, d, MPI_INT, in, c, d, MPI_INT, W), MPI_ERR_COUNT);                                           \
    c[check_size - 1] = 1

static void vectors(void)
{
    TOV(MPI_Alltoallv, one, at);
    TOV(MPI_Alltoallv_c, cone, cat);
    WRONG_COMMS(MPI_Alltoallw(out, one, at, ints, in, one, at, ints, comm));
    CHECK_CLASS(MPI_Alltoallw(out, one, at, NULL, in, one, at, ints, W), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Alltoallw_c(out, cone, cat, ints, in, cone, NULL, ints, W), MPI_ERR_ARG);
    ints[0] = raw_type;
    CHECK_CLASS(MPI_Alltoallw(out, one, at, ints, in, one, at, ints, W), MPI_ERR_TYPE);
    ints[0] = MPI_INT;
    WRONG_COMMS(MPI_Allgatherv(out, 1, MPI_INT, in, one, at, MPI_INT, comm));
    WRONG_TYPES(MPI_Allgatherv(out, 1, type, in, one, at, MPI_INT, W));
    WRONG_TYPES(MPI_Allgatherv_c(out, 1, MPI_INT, in, cone, cat, type, W));
    CHECK_CLASS(MPI_Allgatherv(out, 1, MPI_INT, in, NULL, at, MPI_INT, W), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Allgatherv_c(out, 1, MPI_INT, in, cone, NULL, MPI_INT, W), MPI_ERR_ARG);
    WRONG_COMMS(MPI_Gatherv(out, 1, MPI_INT, in, one, at, MPI_INT, 0, comm));
    WRONG_COMMS(MPI_Scatterv(out, one, at, MPI_INT, in, 1, MPI_INT, 0, comm));
    CHECK_CLASS(MPI_Gatherv(out, 1, MPI_INT, in, one, at, MPI_INT, check_size, W), MPI_ERR_ROOT);
    CHECK_CLASS(MPI_Gatherv_c(out, 1, MPI_INT, in, cone, cat, MPI_INT, -1, W), MPI_ERR_ROOT);
    CHECK_CLASS(MPI_Scatterv(out, one, at, MPI_INT, in, 1, MPI_INT, check_size, W), MPI_ERR_ROOT);
    CHECK_CLASS(MPI_Scatterv_c(out, cone, cat, MPI_INT, in, -1, MPI_INT, 0, W), MPI_ERR_COUNT);
    WRONG_TYPES(MPI_Gatherv(out, 1, type, in, one, at, MPI_INT, 0, W));
    /* at the root only, on a communicator of one */
    CHECK_CLASS(MPI_Gatherv(out, 1, MPI_INT, in, NULL, at, MPI_INT, 0, MPI_COMM_SELF), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Scatterv(out, one, NULL, MPI_INT, in, 1, MPI_INT, 0, MPI_COMM_SELF), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Gather(out, 1, MPI_INT, in, -1, MPI_INT, 0, MPI_COMM_SELF), MPI_ERR_COUNT);
    CHECK_CLASS(MPI_Gather(MPI_IN_PLACE, 1, MPI_INT, MPI_IN_PLACE, 1, MPI_INT, 0, MPI_COMM_SELF), MPI_ERR_BUFFER);
    CHECK_CLASS(MPI_Scatter(MPI_IN_PLACE, 1, MPI_INT, in, 1, MPI_INT, 0, MPI_COMM_SELF), MPI_ERR_BUFFER);
    /* what a rank sends itself is not what it expects */
    CHECK_CLASS(MPI_Allgather(out, 2, MPI_INT, in, 1, MPI_INT, MPI_COMM_SELF), MPI_ERR_TRUNCATE);
}

#define REDUCTION(F)                                                                                                   \
    WRONG_COMMS(F(out, in, 1, MPI_INT, MPI_SUM, comm));                                                                \
    WRONG_TYPES(F(out, in, 1, type, MPI_SUM, W));                                                                      \
    WRONG_OPS(F(out, in, 1, MPI_INT, op, W));                                                                          \
    CHECK_CLASS(F(out, in, -1, MPI_INT, MPI_SUM, W), MPI_ERR_COUNT);                                                   \
    CHECK_CLASS(F(NULL, in, 1, MPI_INT, MPI_SUM, W), MPI_ERR_BUFFER);                                                  \
    CHECK_CLASS(F(out, NULL, 1, MPI_INT, MPI_SUM, W), MPI_ERR_BUFFER);                                                 \
    CHECK_CLASS(F(out, MPI_IN_PLACE, 1, MPI_INT, MPI_SUM, W), MPI_ERR_BUFFER);                                         \
    CHECK_CLASS(F(out, out, 1, MPI_INT, MPI_SUM, W), MPI_ERR_BUFFER);                                                  \
    CHECK_CLASS(F(out, in, 1, MPI_DOUBLE, MPI_BAND, W), MPI_ERR_OP)

static void reductions(void)
{
    REDUCTION(MPI_Allreduce);
    REDUCTION(MPI_Allreduce_c);
    REDUCTION(MPI_Scan);
    REDUCTION(MPI_Scan_c);
    REDUCTION(MPI_Exscan);
    REDUCTION(MPI_Exscan_c);
    REDUCTION(MPI_Reduce_scatter_block);
    REDUCTION(MPI_Reduce_scatter_block_c);
    for (int large = 0; large < 2; large++) {
#define REDUCE(s, r, n, t, o, root, c) (large ? MPI_Reduce_c(s, r, n, t, o, root, c) : MPI_Reduce(s, r, n, t, o, root, c))
        WRONG_COMMS(REDUCE(out, in, 1, MPI_INT, MPI_SUM, 0, comm));
        WRONG_TYPES(REDUCE(out, in, 1, type, MPI_SUM, 0, W));
        WRONG_OPS(REDUCE(out, in, 1, MPI_INT, op, 0, W));
        CHECK_CLASS(REDUCE(out, in, 1, MPI_INT, MPI_SUM, check_size, W), MPI_ERR_ROOT);
        CHECK_CLASS(REDUCE(out, in, -1, MPI_INT, MPI_SUM, 0, W), MPI_ERR_COUNT);
        CHECK_CLASS(REDUCE(NULL, in, 1, MPI_INT, MPI_SUM, 0, W), MPI_ERR_BUFFER);
        CHECK_CLASS(REDUCE(out, NULL, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_SELF), MPI_ERR_BUFFER);
        CHECK_CLASS(REDUCE(out, out, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_SELF), MPI_ERR_BUFFER);
        WRONG_TYPES((large ? MPI_Reduce_local_c(in, out, 1, type, MPI_SUM) : MPI_Reduce_local(in, out, 1, type, MPI_SUM)));
    }
    int other = (check_rank + 1) % check_size; /* in place at a rank that is not the root; each rank fails by itself */
    if (other != check_rank) CHECK_CLASS(MPI_Reduce(MPI_IN_PLACE, in, 1, MPI_INT, MPI_SUM, other, W), MPI_ERR_BUFFER);
    WRONG_COMMS(MPI_Reduce_scatter(out, in, one, MPI_INT, MPI_SUM, comm));
    WRONG_TYPES(MPI_Reduce_scatter_c(out, in, cone, type, MPI_SUM, W));
    WRONG_OPS(MPI_Reduce_scatter(out, in, one, MPI_INT, op, W));
    CHECK_CLASS(MPI_Reduce_scatter(out, in, NULL, MPI_INT, MPI_SUM, W), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Reduce_scatter_c(out, in, NULL, MPI_INT, MPI_SUM, W), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Reduce_local(in, out, -1, MPI_INT, MPI_SUM), MPI_ERR_COUNT);
    CHECK_CLASS(MPI_Reduce_local(NULL, out, 1, MPI_INT, MPI_SUM), MPI_ERR_BUFFER);
    CHECK_CLASS(MPI_Reduce_local(in, in, 1, MPI_INT, MPI_SUM), MPI_ERR_BUFFER);
    WRONG_OPS(MPI_Reduce_local(in, out, 1, MPI_INT, op));
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    wrong_open();
    for (int i = 0; i < 64; i++) one[i] = 1, cone[i] = 1, at[i] = i, cat[i] = i, ints[i] = MPI_INT;
    roots();
    everybody();
    vectors();
    reductions();
    MPI_Barrier(W); /* still in step */
    wrong_close();
    return check_done();
}
