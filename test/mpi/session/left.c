/*
 * left.c - the peer that is waited for has ended its last session and exited, in order: what only it could end ends
 * with an error in words, over every transport, whether there was a connection to it or not; the others go on.
 */
#include "alone.h"

#include <unistd.h>

enum { LARGE = 8 << 20 }; /* more than goes before it is asked for */
static MPI_Comm comm;
static char *large;

/* Over TCP a process that exited before there was a connection to it cannot be told from one that died. */
static void fails(int rc)
{
    int klass = MPI_SUCCESS;
    if (rc) MPI_Error_class(rc, &klass);
    CHECK_WORDS(rc, klass == MPI_ERR_PROC_ABORTED && check_rank != 1 ? klass : MPI_ERR_OTHER, "rank 0");
}

/* In an order of its own at each rank: any of them may be the first. */
static void one(int which)
{
    char byte = 0;
    int rc = MPI_SUCCESS;
    MPI_Request req = MPI_REQUEST_NULL;
    switch (which) {
    case 0:
        fails(MPI_Recv(&byte, 1, MPI_BYTE, 0, 1, comm, MPI_STATUS_IGNORE));
        return;
    case 1:
        fails(MPI_Ssend(&byte, 1, MPI_BYTE, 0, 2, comm));
        return;
    case 2:
        fails(MPI_Probe(0, 3, comm, MPI_STATUS_IGNORE));
        return;
    case 3:
        fails(MPI_Send(large, LARGE, MPI_BYTE, 0, 4, comm));
        return;
    default:
        rc = MPI_Isend(large, LARGE, MPI_BYTE, 0, 5, comm, &req);
        fails(rc ? rc : MPI_Wait(&req, MPI_STATUS_IGNORE)); /* one that nobody can match at its start is no request */
    }
}

/* Small messages to it until there is no room for more. */
static void flood(void)
{
    char bytes[512] = "";
    int rc = MPI_SUCCESS;
    for (int i = 0; i < 100000 && !rc; i++) rc = MPI_Send(bytes, sizeof bytes, MPI_BYTE, 0, 6, comm);
    fails(rc);
}

/* Rank 1 has heard from rank 0 before, the others have not. The last word of rank 0 still comes. */
static void stay(int size)
{
    int next = check_rank % (size - 1) + 1, previous = (check_rank + size - 3) % (size - 1) + 1, got = -1;
    if (check_rank == 1) CHECK_OK(MPI_Recv(&got, 1, MPI_INT, 0, 0, comm, MPI_STATUS_IGNORE));
    if (check_rank == 1) CHECK(got == 4711, "rank 0 said %d", got);
    for (int i = 0; i < 5; i++) one((i + check_rank) % 5);
    flood();
    CHECK_OK(MPI_Sendrecv(&check_rank, 1, MPI_INT, next, 7, &got, 1, MPI_INT, previous, 7, comm, MPI_STATUS_IGNORE));
    CHECK(got == previous, "from %d came %d", previous, got);
}

int main(void)
{
    MPI_Group group;
    int size, word = 4711;
    alone_start();
    large = calloc(1, LARGE);
    MPI_Session session = alone_session();
    CHECK_OK(MPI_Group_from_session_pset(session, "mpi://WORLD", &group));
    CHECK_OK(MPI_Comm_create_from_group(group, "left", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm));
    MPI_Group_free(&group);
    MPI_Comm_size(comm, &size);
    if (check_rank)
        stay(size);
    else if (size > 1)
        CHECK_OK(MPI_Send(&word, 1, MPI_INT, 1, 0, comm));
    MPI_Comm_free(&comm);
    CHECK_OK(MPI_Session_finalize(&session));
    free(large);
    return alone_done();
}
