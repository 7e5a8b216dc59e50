/*
 * scans.c - MPI_Scan and MPI_Exscan of few and of many elements in turn on one communicator, with ranks that come late: each has the sum of
 * the ranks below, and not what was there before. (A slot that had said in a short scan that all below had come said so still in a long
 * one, to ranks that have a core of their own.)
 */
#include "../rounds.h"

#include <unistd.h>

enum { MOST = 20000 };

static int64_t in[MOST], out[MOST];
static int turn; /* counted by all alike */

/* Of n elements; `late`: the rank that comes late. */
static void scan(int exclusive, int n, int late)
{
    int64_t below = 0, first = !exclusive;
    turn++;
    for (int r = 0; r < check_rank + first; r++) below += (int64_t)turn * (r + 1);
    for (int i = 0; i < n; i++) {
        in[i] = (int64_t)turn * (check_rank + 1) + i;
        out[i] = -1;
    }
    if (check_rank == late) usleep(200);
    if (exclusive) CHECK_OK(MPI_Exscan(in, out, n, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD));
    else CHECK_OK(MPI_Scan(in, out, n, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD));
    if (exclusive && check_rank == 0) return; /* its buffer means nothing */
    int wrong = 0;
    for (int i = 0; i < n; i++) wrong += out[i] != below + (int64_t)i * (check_rank + first);
    CHECK(!wrong, "%s of %d elements, rank %d late: %d are wrong", exclusive ? "exscan" : "scan", n, late, wrong);
}

int main(int argc, char **argv)
{
    static const int lengths[] = {1, 30, 60, 200, 1000, 2000, 5000, MOST};
    check_start(&argc, &argv);
    uint64_t seed = check_seed();
    double end = rounds_end(argc, argv);
    do
        for (int i = 0; i < 200; i++) {
            int kind = (int)(check_random(&seed) % 2), late = (int)(check_random(&seed) % (unsigned)check_size);
            scan(kind, lengths[check_random(&seed) % (i % 2 ? 8 : 2)], late);
        }
    while (rounds_more(end));
    return check_done();
}
