/*
 * ahead.c - a rank that is done with all collectives may be in MPI_Finalize while others still wait for a slow one: that is
 * legal, and a rank that waits is not told that the one which has finalised is missing. TEST_REDUCE=1: the rank waits for
 * slots to be free, otherwise for a long block to be taken.
 */
#include "../check.h"
#include <unistd.h>

enum { ROOT, WAITS, AHEAD, MS = 1000, SLOW_US = 1800 * MS, REDUCTIONS = 37, EARLY = 5, BYTES = 1 << 20 };

static char in[BYTES + 8], out[BYTES];

static void gather(void)
{
    static const int counts[] = {0, BYTES, 8}, places[] = {0, 0, BYTES};
    memset(in, 0, sizeof in);
    CHECK_OK(MPI_Gatherv(out, counts[check_rank], MPI_BYTE, in, counts, places, MPI_BYTE, ROOT, MPI_COMM_WORLD));
    if (check_rank == ROOT) CHECK(in[0] == 11 && in[BYTES - 1] == 11 && in[BYTES + 7] == 12, "a block is missing");
}

/* The long block of one rank waits for the root; the short one of the other does not. */
static void gather_twice(void)
{
    if (check_rank == ROOT) usleep(SLOW_US);
    gather();
    gather();
}

static void reduce(int i)
{
    int sum;
    CHECK_OK(MPI_Reduce(&i, &sum, 1, MPI_INT, MPI_SUM, ROOT, MPI_COMM_WORLD));
    if (check_rank == ROOT) CHECK(sum == 3 * i, "the sum is %d", sum);
}

/* The first rank runs out of slots before the root comes, and waits until half of them are free. The other comes when some
 * are, needs no more than those, and finalises. */
static void reduce_often(void)
{
    if (check_rank == ROOT) usleep(200 * MS);
    for (int i = 0; i < EARLY; i++) reduce(i);
    if (check_rank == AHEAD) usleep(400 * MS);
    if (check_rank == ROOT) usleep(SLOW_US);
    for (int i = EARLY; i < REDUCTIONS; i++) reduce(i);
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    memset(out, 10 + check_rank, sizeof out);
    gather(); /* what the ranks agree on at the first call is done */
    reduce(1);
    MPI_Barrier(MPI_COMM_WORLD);
    if (getenv("TEST_REDUCE")) reduce_often();
    else gather_twice();
    return check_done();
}
