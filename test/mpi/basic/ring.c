/* ring.c - a number goes around all ranks, each adds its own; then a large block does, and comes back whole. */
#include "../check.h"

enum { LARGE = 1 << 20 };

static void once_around(void *buf, int n, int next, int before)
{
    MPI_Status status;
    int count = -1;
    if (check_rank == 0) CHECK_OK(MPI_Send(buf, n, MPI_BYTE, next, 7, MPI_COMM_WORLD));
    CHECK_OK(MPI_Recv(buf, n, MPI_BYTE, before, 7, MPI_COMM_WORLD, &status));
    CHECK(status.MPI_SOURCE == before && status.MPI_TAG == 7, "from %d, tag %d", status.MPI_SOURCE, status.MPI_TAG);
    MPI_Get_count(&status, MPI_BYTE, &count);
    CHECK(count == n, "%d bytes instead of %d", count, n);
}

static void pass_on(const void *buf, int n, int next)
{
    if (check_rank != 0) CHECK_OK(MPI_Send(buf, n, MPI_BYTE, next, 7, MPI_COMM_WORLD));
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    int next = (check_rank + 1) % check_size, before = (check_rank + check_size - 1) % check_size;
    int sum = 0;

    if (check_size == 1) { /* a blocking send to oneself needs a receive first */
        int got = -1;
        CHECK_OK(MPI_Sendrecv(&next, 1, MPI_INT, 0, 7, &got, 1, MPI_INT, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        CHECK(got == next, "got %d", got);
        return check_done();
    }
    once_around(&sum, sizeof sum, next, before);
    CHECK(sum == check_rank * (check_rank - 1) / 2 || check_rank == 0, "sum of the ranks before is %d", sum);
    if (check_rank == 0) CHECK(sum == check_size * (check_size - 1) / 2, "sum of the ranks is %d", sum);
    sum += check_rank;
    pass_on(&sum, sizeof sum, next);

    char *block = malloc(LARGE);
    check_fill(block, check_rank == 0 ? LARGE : 0, 42);
    once_around(block, LARGE, next, before);
    size_t bad = check_differ(block, LARGE, 42);
    CHECK(bad == 0, "%zu bytes of %d differ", bad, LARGE);
    pass_on(block, LARGE, next);
    free(block);
    return check_done();
}
