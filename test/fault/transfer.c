/*
 * transfer.c - large messages between all ranks of the job without end, for kill.test: neighbours in a ring exchange
 * 16 MB messages. Rank 0 prints "going" after the first.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { COUNT = 16 << 20 };

int main(int argc, char **argv)
{
    int rank, size;
    char *out = malloc(COUNT), *in = malloc(COUNT);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (!out || !in) MPI_Abort(MPI_COMM_WORLD, 1);
    for (int i = 0; i < COUNT; i++) out[i] = (char)i;
    for (long round = 0;; round++) {
        MPI_Sendrecv(out, COUNT, MPI_CHAR, (rank + 1) % size, 1, in, COUNT, MPI_CHAR, (rank + size - 1) % size, 1,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (round || rank) continue;
        puts("going");
        fflush(stdout);
    }
}
