/*
 * aliases.c - collectives whose buffers for what is sent and what is received overlap (MPI-5.0 section 6.2): an error in
 * words where the first bytes of blocks coincide, in all families; and the cases that look alike and are right.
 */
#include "../check.h"

enum { N = 2, RANKS = 8 };

static int b[4 * RANKS * N], other[4 * RANKS * N];
static int counts[RANKS], displs[RANKS], none[RANKS], bytes[RANKS];
static MPI_Datatype types[RANKS];
static MPI_Comm comm, ring;

#define OVERLAP(call) CHECK_WORDS(call, MPI_ERR_BUFFER, "sendbuf and recvbuf have data at the same address")

/* The place of this process's block is where MPI_IN_PLACE would have it. */
static void own_place(void)
{
    int *own = b + check_rank * N;
    OVERLAP(MPI_Gather(own, N, MPI_INT, b, N, MPI_INT, check_rank, comm));
    OVERLAP(MPI_Gatherv(own, N, MPI_INT, b, counts, displs, MPI_INT, check_rank, comm));
    OVERLAP(MPI_Scatter(b, N, MPI_INT, own, N, MPI_INT, check_rank, comm));
    OVERLAP(MPI_Scatterv(b, counts, displs, MPI_INT, own, N, MPI_INT, check_rank, comm));
    OVERLAP(MPI_Allgather(own, N, MPI_INT, b, N, MPI_INT, comm));
    OVERLAP(MPI_Allgatherv(own, N, MPI_INT, b, counts, displs, MPI_INT, comm));
}

static void same_buffer(void)
{
    MPI_Request r;
    OVERLAP(MPI_Gather(b, N, MPI_INT, b, N, MPI_INT, check_rank, comm));
    OVERLAP(MPI_Scatter(b, N, MPI_INT, b, N, MPI_INT, check_rank, comm));
    OVERLAP(MPI_Allgather(b, N, MPI_INT, b, N, MPI_INT, comm));
    OVERLAP(MPI_Alltoall(b, N, MPI_INT, b, N, MPI_INT, comm));
    OVERLAP(MPI_Alltoallv(b, counts, displs, MPI_INT, b, counts, displs, MPI_INT, comm));
    OVERLAP(MPI_Alltoallw(b, counts, bytes, types, b, counts, bytes, types, comm));
    OVERLAP(MPI_Reduce(b, b, N, MPI_INT, MPI_SUM, check_rank, comm));
    OVERLAP(MPI_Allreduce(b, b, N, MPI_INT, MPI_SUM, comm));
    OVERLAP(MPI_Scan(b, b, N, MPI_INT, MPI_SUM, comm));
    OVERLAP(MPI_Exscan(b, b, N, MPI_INT, MPI_SUM, comm));
    OVERLAP(MPI_Reduce_scatter(b, b, counts, MPI_INT, MPI_SUM, comm));
    OVERLAP(MPI_Reduce_scatter_block(b, b, N, MPI_INT, MPI_SUM, comm));
    OVERLAP(MPI_Neighbor_alltoall(b, N, MPI_INT, b, N, MPI_INT, ring));
    OVERLAP(MPI_Neighbor_allgather(b, N, MPI_INT, b, N, MPI_INT, ring));
    OVERLAP(MPI_Ialltoall(b, N, MPI_INT, b, N, MPI_INT, comm, &r));
    OVERLAP(MPI_Alltoall_init(b, N, MPI_INT, b, N, MPI_INT, comm, MPI_INFO_NULL, &r));
    CHECK_WORDS(MPI_Reduce_local(b, b, N, MPI_INT, MPI_SUM), MPI_ERR_BUFFER, "inbuf and inoutbuf have data at the same address");
}

/* No data, or a buffer that means nothing at this process. */
static void nothing_there(void)
{
    int root;
    CHECK_OK(MPI_Allgather(b, 0, MPI_INT, b, 0, MPI_INT, comm));
    CHECK_OK(MPI_Alltoall(b, 0, MPI_INT, b, 0, MPI_INT, comm));
    CHECK_OK(MPI_Alltoallv(b, none, displs, MPI_INT, b, none, displs, MPI_INT, comm));
    CHECK_OK(MPI_Allreduce(b, b, 0, MPI_INT, MPI_SUM, comm));
    CHECK_OK(MPI_Reduce_scatter(b, b, none, MPI_INT, MPI_SUM, comm));
    CHECK_OK(MPI_Reduce_local(b, b, 0, MPI_INT, MPI_SUM));
    for (root = 0; root < check_size; root++) {
        int *to = check_rank == root ? other : b;
        CHECK_OK(MPI_Gather(b, N, MPI_INT, to, N, MPI_INT, root, comm));
        CHECK_OK(MPI_Reduce(b, to, N, MPI_INT, MPI_SUM, root, comm));
        CHECK_OK(MPI_Scatter(to, N, MPI_INT, b, N, MPI_INT, root, comm));
    }
}

/* One array, of which even places are sent and odd ones received; by one address, and by MPI_BOTTOM. */
static void interleaved(void)
{
    MPI_Datatype even, odd, absolute[2];
    MPI_Aint at = sizeof(int), address[2];
    int one = 1, bad = 0;
    MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &even);
    MPI_Type_create_hindexed(1, &one, &at, even, &odd);
    MPI_Type_commit(&even);
    MPI_Type_commit(&odd);
    for (int i = 0; i < 2 * check_size; i++) b[i] = i % 2 ? -1 : 100 * check_rank + i / 2;
    CHECK_OK(MPI_Alltoall(b, 1, even, b, 1, odd, comm));
    for (int i = 0; i < check_size; i++) bad += b[2 * i + 1] != 100 * i + check_rank;
    CHECK(!bad, "%d elements are wrong", bad);
    MPI_Get_address(b, &address[0]);
    MPI_Get_address(other, &address[1]);
    for (int i = 0; i < 2; i++) {
        MPI_Type_create_hindexed(1, &one, &address[i], MPI_INT, &absolute[i]);
        MPI_Type_commit(&absolute[i]);
    }
    CHECK_OK(MPI_Allgather(MPI_BOTTOM, 1, absolute[0], MPI_BOTTOM, 1, absolute[1], comm));
    OVERLAP(MPI_Allgather(MPI_BOTTOM, 1, absolute[0], MPI_BOTTOM, 1, absolute[0], comm));
    for (int i = 0; i < 2; i++) MPI_Type_free(&absolute[i]);
    MPI_Type_free(&even);
    MPI_Type_free(&odd);
}

int main(int argc, char **argv)
{
    int periodic = 1;
    check_start(&argc, &argv);
    if (check_size > RANKS) return check_skip("more ranks than the buffers have room for");
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Cart_create(MPI_COMM_WORLD, 1, &check_size, &periodic, 0, &ring);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(ring, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    for (int i = 0; i < RANKS; i++) counts[i] = N, displs[i] = i * N, bytes[i] = i * N * (int)sizeof(int), types[i] = MPI_INT;
    own_place();
    same_buffer();
    nothing_there();
    interleaved();
    MPI_Comm_free(&ring);
    MPI_Comm_free(&comm);
    return check_done();
}
