/*
 * memory.c - ping-pong of large messages between memory of malloc and between memory of MPI_Alloc_mem, turn by turn in one
 * run, for any MPI with two ranks on a node: median (and tenth percentile) of the time of one way.
 *
 *     mpicc -O2 memory.c -o memory && mpiexec -n 2 ./memory [largest size in bytes]
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLES = 200, TRIPS = 4 };

static int rank;

static int compare(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static void trip(char *out, char *in, int n)
{
    int peer = 1 - rank;
    if (rank == 0) MPI_Send(out, n, MPI_CHAR, peer, 0, MPI_COMM_WORLD);
    MPI_Recv(in, n, MPI_CHAR, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 1) MPI_Send(out, n, MPI_CHAR, peer, 0, MPI_COMM_WORLD);
}

static double sample(char *out, char *in, int n)
{
    MPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime();
    for (int i = 0; i < TRIPS; i++) trip(out, in, n);
    return (MPI_Wtime() - start) / (2 * TRIPS) * 1e6;
}

int main(int argc, char **argv)
{
    static double us[2][SAMPLES];
    char *buf[2][2]; /* [of malloc, of MPI][out, in] */
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    int max = argc > 1 ? atoi(argv[1]) : 4 << 20;
    for (int i = 0; i < 2; i++) {
        buf[0][i] = malloc((size_t)max);
        MPI_Alloc_mem(max, MPI_INFO_NULL, &buf[1][i]);
        memset(buf[0][i], 1, (size_t)max);
        memset(buf[1][i], 1, (size_t)max);
    }
    for (int n = 64 << 10; n <= max; n *= 2) {
        for (int i = -5; i < SAMPLES; i++)
            for (int kind = 0; kind < 2; kind++) us[kind][i < 0 ? 0 : i] = sample(buf[kind][0], buf[kind][1], n);
        for (int kind = 0; kind < 2; kind++) qsort(us[kind], SAMPLES, sizeof(double), compare);
        if (rank == 0)
            printf("%9d bytes: malloc %8.1f (%.1f) us, MPI_Alloc_mem %8.1f (%.1f) us, ratio %.2f (%.2f)\n", n, us[0][SAMPLES / 2],
                   us[0][SAMPLES / 10], us[1][SAMPLES / 2], us[1][SAMPLES / 10], us[1][SAMPLES / 2] / us[0][SAMPLES / 2],
                   us[1][SAMPLES / 10] / us[0][SAMPLES / 10]);
    }
    for (int i = 0; i < 2; i++) {
        free(buf[0][i]);
        MPI_Free_mem(buf[1][i]);
    }
    MPI_Finalize();
    return 0;
}
