/*
 * wake.c - waking connects nobody: ranks that sleep for an operation in the background are woken by a rank that has
 * never sent them a message, and still is not connected to them afterwards. The first collective makes the node's
 * block, whose place goes through a tree of messages; a rank has as many segments mapped as it has neighbours there,
 * and its own.
 */
#include "../check.h"
#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { ROUNDS = 50 };

static int mapped_segments(void)
{
    char line[512];
    int n = 0;
    FILE *f = fopen("/proc/self/maps", "r");
    while (f && fgets(line, sizeof line, f)) n += strstr(line, "tern-segment") != NULL;
    if (f) fclose(f);
    return n;
}

/* Gates wake by futex_waitv; where it is missing, and where a rank also waits for sockets, the waker rings a bell. */
static int have_gates(void)
{
    const char *wires = getenv("TERN_TRANSPORTS");
    return syscall(449, NULL, 0, 0, NULL, 0) < 0 && errno == EINVAL && !(wires && strstr(wires, "tcp"));
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    MPI_Barrier(MPI_COMM_WORLD);
    int before = mapped_segments();
    for (int i = 0; i < ROUNDS; i++) {
        int one = 1, sum = 0;
        MPI_Request q;
        if (check_rank == i % check_size) usleep(3000); /* the others sleep by then */
        MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &q);
        CHECK_OK(MPI_Wait(&q, MPI_STATUS_IGNORE));
        CHECK(sum == check_size, "the sum is %d", sum);
    }
    int after = mapped_segments();
    if (have_gates()) CHECK(before <= 5, "%d segments are mapped after the first barrier", before);
    if (have_gates()) CHECK(after == before, "%d segments are mapped, and %d after the rest", before, after);
    return check_done();
}
