/*
 * traffic.c - some of everything between all ranks, with the data checked, for the tests of this folder:
 *     traffic [LARGEST]    messages of 0, 1, 9 ... LARGEST bytes (default 100000)
 */
#include "../mpi/check.h"

static unsigned char *out, *in;

/* To the right and from the left, each size in each mode, by a contiguous type and by one with gaps. */
static void ring(int n, MPI_Datatype type, int bytes_of, uint64_t seed)
{
    int right = (check_rank + 1) % check_size, left = (check_rank + check_size - 1) % check_size;
    MPI_Request r[2];
    MPI_Status s[2];
    int count = -1;
    size_t bytes = (size_t)n * (size_t)bytes_of;
    check_fill(out, bytes, seed + (uint64_t)check_rank);
    memset(in, 0, bytes);
    CHECK_OK(MPI_Irecv(in, n, type, left, 3, MPI_COMM_WORLD, &r[0]));
    CHECK_OK(MPI_Issend(out, n, type, right, 3, MPI_COMM_WORLD, &r[1]));
    CHECK_OK(MPI_Waitall(2, r, s));
    CHECK_OK(MPI_Get_count(&s[0], type, &count));
    CHECK(count == n, "count %d", count);
    if (bytes_of == 1) CHECK(check_differ(in, bytes, seed + (uint64_t)left) == 0, "%d bytes", n);
    else
        for (size_t i = 0; i < bytes; i += 4)
            if (in[i] != check_byte(seed + (uint64_t)left, i) || in[i + 1] || in[i + 2]) {
                CHECK(0, "byte %zu with gaps", i);
                break;
            }
    CHECK_OK(MPI_Irecv(in, n, type, left, 4, MPI_COMM_WORLD, &r[0]));
    CHECK_OK(MPI_Send(out, n, type, right, 4, MPI_COMM_WORLD));
    CHECK_OK(MPI_Wait(&r[0], &s[0]));
    if (bytes_of == 1) CHECK(check_differ(in, bytes, seed + (uint64_t)left) == 0, "%d bytes", n);
}

static void collectives(void)
{
    int sum[100], mine[100];
    for (int i = 0; i < 100; i++) mine[i] = check_rank + i;
    CHECK_OK(MPI_Allreduce(mine, sum, 100, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    for (int i = 0; i < 100; i++) CHECK(sum[i] == check_size * i + check_size * (check_size - 1) / 2, "sum %d", i);
    CHECK_OK(MPI_Bcast(sum, 100, MPI_INT, check_size - 1, MPI_COMM_WORLD));
    CHECK_OK(MPI_Barrier(MPI_COMM_WORLD));
}

int main(int argc, char **argv)
{
    MPI_Datatype one_of_four, spaced;
    check_start(&argc, &argv);
    int largest = argc > 1 ? atoi(argv[1]) : 100000;
    out = malloc((size_t)largest + 4);
    in = malloc((size_t)largest + 4);
    if (!out || !in) MPI_Abort(MPI_COMM_WORLD, 1);
    CHECK_OK(MPI_Type_contiguous(1, MPI_BYTE, &one_of_four));
    CHECK_OK(MPI_Type_create_resized(one_of_four, 0, 4, &spaced));
    CHECK_OK(MPI_Type_commit(&spaced));
    for (int n = 0; n < largest; n = n * 8 + 1) ring(n, MPI_BYTE, 1, (uint64_t)n);
    ring(largest, MPI_BYTE, 1, 5);
    ring(largest / 4, spaced, 4, 6);
    collectives();
    CHECK_OK(MPI_Type_free(&spaced));
    CHECK_OK(MPI_Type_free(&one_of_four));
    free(out);
    free(in);
    return check_done();
}
