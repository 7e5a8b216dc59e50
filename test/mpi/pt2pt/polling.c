/*
 * polling.c - programs that loop over MPI_Testall or MPI_Iprobe instead of waiting: with more ranks than cores they
 * must not keep the very ranks from running that they look for. Compared with waiting, in the same run.
 */
#include "../check.h"

enum { STEPS = 100, SLOWER = 100 }; /* a loop that never gives up its core is slower by the scheduler's slice: over 1,000 */

enum way { WAITING, TESTING, PROBING };

/* A step around the ring; completes both requests in one of the ways. */
static void step(enum way way, int i, int next, int before)
{
    MPI_Request q[2];
    int got = -1, done = 0;
    if (way == PROBING) {
        MPI_Isend(&i, 1, MPI_INT, next, 1, MPI_COMM_WORLD, &q[0]);
        while (!done) MPI_Iprobe(before, 1, MPI_COMM_WORLD, &done, MPI_STATUS_IGNORE);
        MPI_Recv(&got, 1, MPI_INT, before, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Wait(&q[0], MPI_STATUS_IGNORE);
    } else {
        MPI_Irecv(&got, 1, MPI_INT, before, 1, MPI_COMM_WORLD, &q[0]);
        MPI_Isend(&i, 1, MPI_INT, next, 1, MPI_COMM_WORLD, &q[1]);
        if (way == WAITING) MPI_Waitall(2, q, MPI_STATUSES_IGNORE);
        else
            while (!done) MPI_Testall(2, q, &done, MPI_STATUSES_IGNORE);
    }
    CHECK(got == i, "step %d brought %d", i, got);
}

static double time_of(enum way way)
{
    int next = (check_rank + 1) % check_size, before = (check_rank + check_size - 1) % check_size;
    MPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime();
    for (int i = 0; i < STEPS; i++) step(way, i, next, before);
    MPI_Barrier(MPI_COMM_WORLD);
    return MPI_Wtime() - start;
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    double waiting = time_of(WAITING) + 1e-3; /* a millisecond of grace */
    double testing = time_of(TESTING), probing = time_of(PROBING);
    CHECK(testing < SLOWER * waiting, "testing took %.3f s, waiting %.3f s", testing, waiting);
    CHECK(probing < SLOWER * waiting, "probing took %.3f s, waiting %.3f s", probing, waiting);
    return check_done();
}
