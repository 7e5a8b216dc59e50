/*
 * over.c - a program that sends less than it receives, or receives less than it is sent: rank 0 is in MPI_Finalize, the
 * others wait for it. With MPI_ERRORS_RETURN each of these calls fails, in words that name rank 0 and what it does,
 * what can still be cancelled is left alone, and so is the end of the program.
 *
 * Rank 0 has nobody's checks but its own; the others say by their exit code.
 */
#include "../check.h"

#include <unistd.h>

enum { LARGE = 8 << 20, /* does not go before it is asked for */ CONTROL = 77, SERVED = 78 };
static char *large;
static MPI_Comm comm, others;
static MPI_Request control; /* a receive that is there to be cancelled */

#define FAILS(call) CHECK_WORDS(call, MPI_ERR_OTHER, "rank 0 of the job is in MPI_Finalize")
/* Another one may have failed before, and ended. */
#define FAILS_BY_ANYBODY(call) CHECK_WORDS(call, MPI_ERR_OTHER, "of the job is in MPI_Finalize")

static void receives(void)
{
    MPI_Status status[2];
    MPI_Request req[2];
    int byte, index;
    FAILS(MPI_Recv(&byte, 1, MPI_INT, 0, 1, comm, MPI_STATUS_IGNORE));
    FAILS(MPI_Probe(0, 2, comm, MPI_STATUS_IGNORE));
    MPI_Irecv(&byte, 1, MPI_INT, 0, MPI_ANY_TAG, comm, &req[0]);
    FAILS(MPI_Wait(&req[0], MPI_STATUS_IGNORE));
    MPI_Irecv(&byte, 1, MPI_INT, 0, 3, comm, &req[0]);
    MPI_Irecv(large, LARGE, MPI_BYTE, 0, 4, comm, &req[1]);
    CHECK_CLASS(MPI_Waitall(2, req, status), MPI_ERR_IN_STATUS);
    for (int i = 0; i < 2; i++) CHECK(status[i].MPI_ERROR != MPI_SUCCESS, "receive %d of two", i);
    MPI_Irecv(&byte, 1, MPI_INT, 0, 3, comm, &req[0]);
    FAILS(MPI_Waitany(1, req, &index, MPI_STATUS_IGNORE));
}

static void sends(void)
{
    MPI_Request req;
    int byte = 0;
    CHECK_OK(MPI_Send(&byte, 1, MPI_INT, 0, 5, comm)); /* goes without an answer */
    FAILS(MPI_Ssend(&byte, 1, MPI_INT, 0, 6, comm));
    FAILS(MPI_Send(large, LARGE, MPI_BYTE, 0, 7, comm));
    MPI_Isend(large, LARGE, MPI_BYTE, 0, 8, comm, &req);
    FAILS(MPI_Wait(&req, MPI_STATUS_IGNORE));
}

/* Of two that are waited for until one is complete, one may still end. */
static void one_of_two(void)
{
    int rank, size, mine, index = -1, got = -1;
    MPI_Comm_rank(others, &rank);
    MPI_Comm_size(others, &size);
    MPI_Request req[2] = {control, MPI_REQUEST_NULL};
    if (size < 2) return;
    mine = rank;
    MPI_Irecv(&got, 1, MPI_INT, (rank + 1) % size, SERVED, others, &req[1]);
    if (rank % 2) CHECK_OK(MPI_Ssend(&mine, 1, MPI_INT, (rank + size - 1) % size, SERVED, others));
    if (rank % 2 == 0) usleep(1500000); /* the others wait for long below */
    if (rank % 2 == 0) CHECK_OK(MPI_Ssend(&mine, 1, MPI_INT, (rank + size - 1) % size, SERVED, others));
    CHECK_OK(MPI_Waitany(2, req, &index, MPI_STATUS_IGNORE));
    CHECK(index == 1 && got == (rank + 1) % size, "request %d, from %d", index, got);
}

static void collectives(void)
{
    char byte = 0;
    MPI_Request req;
    FAILS_BY_ANYBODY(MPI_Bcast(&byte, 1, MPI_BYTE, 0, comm));
    int rc = MPI_Ibcast(large, LARGE, MPI_BYTE, 0, comm, &req);
    FAILS_BY_ANYBODY(rc ? rc : MPI_Wait(&req, MPI_STATUS_IGNORE));
}

static void the_others_wait(void)
{
    int flag = 0, byte;
    MPI_Status status;
    MPI_Irecv(&byte, 1, MPI_INT, 0, CONTROL, comm, &control);
    receives();
    sends();
    one_of_two();
    collectives();
    MPI_Cancel(&control);
    CHECK_OK(MPI_Wait(&control, &status));
    MPI_Test_cancelled(&status, &flag);
    CHECK(flag, "a receive that was to be cancelled has ended otherwise");
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    large = calloc(1, LARGE);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_split(MPI_COMM_WORLD, check_rank > 0, 0, &others);
    if (check_rank > 0) the_others_wait();
    CHECK_OK(MPI_Finalize());
    if (check_rank == 0) printf("checks: %ld, failed: %ld\n", check_cases, check_failures);
    free(large);
    return check_failures != 0;
}
