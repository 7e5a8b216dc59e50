/*
 * any_settings.c - a short job of any number of ranks that uses a little of everything: messages and collectives of
 * several sizes, blocking and not, on two communicators. For tests of settings: whatever they are, the data is right.
 */
#include "../check.h"

enum { LARGE = 100000 };
static const int sizes[] = {1, 100, 9000, LARGE};
static int *in, *out;

static int value(int rank, int i) { return rank * 1000003 + i; }

static void fill(int n)
{
    for (int i = 0; i < n; i++) out[i] = value(check_rank, i), in[i] = -1;
}

static void messages(int n, MPI_Comm comm)
{
    int to = (check_rank + 1) % check_size, from = (check_rank + check_size - 1) % check_size, wrong = 0;
    MPI_Request req[2];
    fill(n);
    CHECK_OK(MPI_Irecv(in, n, MPI_INT, from, n % 1000, comm, &req[0]));
    CHECK_OK(MPI_Isend(out, n, MPI_INT, to, n % 1000, comm, &req[1]));
    CHECK_OK(MPI_Waitall(2, req, MPI_STATUSES_IGNORE));
    for (int i = 0; i < n; i++) wrong += in[i] != value(from, i);
    CHECK(!wrong, "%d of %d elements of a message are wrong", wrong, n);
}

static void collectives(int n, MPI_Comm comm)
{
    int last = check_size - 1, wrong = 0, block = n / check_size + 1;
    MPI_Request req;
    fill(n);
    CHECK_OK(MPI_Allreduce(out, in, n, MPI_INT, MPI_MAX, comm));
    for (int i = 0; i < n; i++) wrong += in[i] != value(last, i);
    CHECK_OK(MPI_Ibcast(check_rank == last ? out : in, n, MPI_INT, last, comm, &req));
    CHECK_OK(MPI_Wait(&req, MPI_STATUS_IGNORE));
    for (int i = 0; i < n && check_rank != last; i++) wrong += in[i] != value(last, i);
    CHECK(!wrong, "%d of %d elements of an allreduce and a bcast are wrong", wrong, n);
    fill(n + check_size);
    CHECK_OK(MPI_Allgather(out, block, MPI_INT, in, block, MPI_INT, comm));
    for (int r = 0; r < check_size; r++)
        for (int i = 0; i < block; i++) wrong += in[r * block + i] != value(r, i);
    CHECK(!wrong, "%d elements of an allgather of %d are wrong", wrong, block);
    CHECK_OK(MPI_Barrier(comm));
}

int main(int argc, char **argv)
{
    MPI_Comm comm;
    check_start(&argc, &argv);
    in = malloc((LARGE + 2 * (size_t)check_size) * sizeof *in);
    out = malloc((LARGE + 2 * (size_t)check_size) * sizeof *out);
    CHECK_OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    for (int s = 0; s < (int)(sizeof sizes / sizeof *sizes); s++) {
        messages(sizes[s], MPI_COMM_WORLD);
        collectives(sizes[s], s % 2 ? comm : MPI_COMM_WORLD);
    }
    MPI_Comm_free(&comm);
    free(in);
    free(out);
    return check_done();
}
