/*
 * beyond.c - ranks on two hosts, and no transport that goes from one to the other: whatever needs the others fails at once
 * and in words, at all ranks; what does not is done.
 *
 * Run by test/system/beyond.test: the first half of the ranks is on one host, the rest on another.
 */
#include "../check.h"

static int half, far_one, mate; /* ranks of a host; a rank that cannot be reached, one that can */

#define FAILS(call) CHECK_WORDS(call, MPI_ERR_OTHER, "no transport of TERN_TRANSPORTS=self,shm reaches rank")

static void messages(void)
{
    int byte = 0, flag;
    MPI_Request req;
    FAILS(MPI_Recv(&byte, 1, MPI_INT, far_one, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    FAILS(MPI_Probe(far_one, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    FAILS(MPI_Iprobe(far_one, 1, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE));
    FAILS(MPI_Send(&byte, 1, MPI_INT, far_one, 1, MPI_COMM_WORLD));
    FAILS(MPI_Ssend(&byte, 1, MPI_INT, far_one, 1, MPI_COMM_WORLD));
    CHECK_OK(MPI_Irecv(&byte, 1, MPI_INT, far_one, 1, MPI_COMM_WORLD, &req));
    FAILS(MPI_Wait(&req, MPI_STATUS_IGNORE));
}

/* Those of the same host are there, also for a receive from any source. */
static void the_near_are_there(void)
{
    int got = -1;
    MPI_Request req;
    CHECK_OK(MPI_Irecv(&got, 1, MPI_INT, MPI_ANY_SOURCE, 2, MPI_COMM_WORLD, &req));
    CHECK_OK(MPI_Send(&check_rank, 1, MPI_INT, mate, 2, MPI_COMM_WORLD));
    CHECK_OK(MPI_Wait(&req, MPI_STATUS_IGNORE));
    CHECK(got == mate, "from %d came %d", mate, got);
}

static void collectives(void)
{
    int one = 1, sum = 0;
    MPI_Request req;
    MPI_Comm dup;
    FAILS(MPI_Barrier(MPI_COMM_WORLD));
    FAILS(MPI_Bcast(&one, 1, MPI_INT, 0, MPI_COMM_WORLD));
    FAILS(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    FAILS(MPI_Ibarrier(MPI_COMM_WORLD, &req));
    FAILS(MPI_Comm_dup(MPI_COMM_WORLD, &dup));
}

/* A communicator of those that reach each other is like any other. */
static void of_one_host(void)
{
    MPI_Group world, near;
    MPI_Comm host;
    int range[1][3] = {{check_rank / half * half, check_rank / half * half + half - 1, 1}}, one = 1, sum = 0;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_range_incl(world, 1, range, &near);
    CHECK_OK(MPI_Comm_create_group(MPI_COMM_WORLD, near, 5, &host));
    MPI_Comm_set_errhandler(host, MPI_ERRORS_RETURN);
    CHECK_OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, host));
    CHECK(sum == half, "%d ranks instead of %d", sum, half);
    MPI_Comm_free(&host);
    MPI_Group_free(&near);
    MPI_Group_free(&world);
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    half = check_size / 2;
    far_one = (check_rank + half) % check_size;
    mate = check_rank ^ 1;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    messages();
    the_near_are_there();
    collectives();
    of_one_host();
    FAILS(MPI_Finalize());
    if (check_rank == 0) printf("checks: %ld, failed: %ld\n", check_cases, check_failures);
    return check_failures != 0;
}
