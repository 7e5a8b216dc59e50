/* crowd.c - everybody sends one message to rank 0, and to nobody else. */
#include "../mpi/check.h"

int main(int argc, char **argv)
{
    int x;
    check_start(&argc, &argv);
    if (check_rank) CHECK_OK(MPI_Send(&check_rank, 1, MPI_INT, 0, 0, MPI_COMM_WORLD));
    for (int r = 1; r < check_size && !check_rank; r++) {
        CHECK_OK(MPI_Recv(&x, 1, MPI_INT, r, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        CHECK(x == r, "rank %d sent %d", r, x);
    }
    return check_done();
}
