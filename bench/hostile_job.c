/*
 * hostile_job.c - what hostile.py measures: two ranks that exchange messages when they are told to.
 *
 * Rank 0 prints "pids A B" and then, for each line of its standard input, which is a number of bytes, the microseconds
 * of half a round trip: the median of several blocks.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { BLOCKS = 15, STOP = -1, BYTES_MAX = 1 << 20 };

static char buf[BYTES_MAX];

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void exchange(int rank, int bytes, int times)
{
    for (int i = 0; i < times; i++) {
        if (rank == 0) MPI_Send(buf, bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
        MPI_Recv(buf, bytes, MPI_BYTE, !rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (rank == 1) MPI_Send(buf, bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
    }
}

static double measure(int rank, int bytes)
{
    double v[BLOCKS];
    int times = bytes <= 4096 ? 1000 : 100;
    for (int b = 0; b < BLOCKS; b++) {
        double t = MPI_Wtime();
        exchange(rank, bytes, times);
        v[b] = (MPI_Wtime() - t) * 1e6 / times / 2;
    }
    qsort(v, BLOCKS, sizeof v[0], by_size);
    return v[BLOCKS / 2];
}

static int next_order(void)
{
    char line[64];
    int bytes = fgets(line, sizeof line, stdin) ? atoi(line) : STOP;
    return bytes > BYTES_MAX ? STOP : bytes;
}

int main(void)
{
    int rank, size, pids[2], pid = (int)getpid(), bytes = 0;
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size != 2) MPI_Abort(MPI_COMM_WORLD, 1);
    MPI_Gather(&pid, 1, MPI_INT, pids, 1, MPI_INT, 0, MPI_COMM_WORLD);
    exchange(rank, 8, 1000);
    if (rank == 0) printf("pids %d %d\n", pids[0], pids[1]);
    fflush(stdout);
    while (bytes != STOP) {
        if (rank == 0) bytes = next_order();
        MPI_Bcast(&bytes, 1, MPI_INT, 0, MPI_COMM_WORLD);
        if (bytes == STOP) break;
        double us = measure(rank, bytes);
        if (rank == 0) printf("%.3f\n", us);
        fflush(stdout);
    }
    return MPI_Finalize();
}
