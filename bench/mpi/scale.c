/*
 * scale - many ranks on few cores: start, barrier, alltoall and memory. Any number of ranks.
 *
 *   nN_first_barrier_ms    the first barrier after MPI_Init
 *   nN_barrier_ms          a later one, mean of 10
 *   nN_alltoall_first_ms   the first alltoall of BYTES (256) for each pair: connections are made
 *   nN_alltoall_ms         a later one, mean of 3
 *   nN_pss_init_kb         proportional set size of a rank (shared pages divided among their users) after the first
 *                          barrier, mean over the ranks
 *   nN_pss_kb              the same after the alltoalls, with the program's own 2 * N * BYTES
 *   nN_tables_kb           page tables of a rank, after the alltoalls
 *
 * The time of the whole job, from outside:  time mpiexec -n N ./scale
 */
#include "bench.h"

static int rank, size;

static void print_mean(const char *what, double own)
{
    double sum;
    MPI_Reduce(&own, &sum, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (!rank) printf("n%d_%s %.0f\n", size, what, sum / size);
}

static void print_max(const char *what, double own)
{
    double max;
    MPI_Reduce(&own, &max, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (!rank) printf("n%d_%s %.3f\n", size, what, max);
    if (!rank) fflush(stdout);
}

static double pss(void) { return proc_kb("/proc/self/smaps_rollup", "Pss:"); }

static double time_of_barriers(int n)
{
    double t = now();
    for (int i = 0; i < n; i++) MPI_Barrier(MPI_COMM_WORLD);
    return (now() - t) * 1e3 / n;
}

static double time_of_alltoalls(int n, const char *from, char *to, int bytes)
{
    double t = now();
    for (int i = 0; i < n; i++) MPI_Alltoall(from, bytes, MPI_CHAR, to, bytes, MPI_CHAR, MPI_COMM_WORLD);
    return (now() - t) * 1e3 / n;
}

int main(int argc, char **argv)
{
    int bytes = argc > 1 ? atoi(argv[1]) : 256;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    double first = time_of_barriers(1), memory = pss();
    print_max("first_barrier_ms", first);
    print_max("barrier_ms", time_of_barriers(10));
    print_mean("pss_init_kb", memory);
    char *from = xalloc((size_t)bytes * size), *to = xalloc((size_t)bytes * size);
    memset(from, rank, (size_t)bytes * size);
    MPI_Barrier(MPI_COMM_WORLD);
    print_max("alltoall_first_ms", time_of_alltoalls(1, from, to, bytes));
    for (int r = 0; r < size; r++)
        if (to[(size_t)r * bytes] != (char)r) MPI_Abort(MPI_COMM_WORLD, 1);
    MPI_Barrier(MPI_COMM_WORLD);
    print_max("alltoall_ms", time_of_alltoalls(3, from, to, bytes));
    print_mean("pss_kb", pss());
    print_mean("tables_kb", proc_kb("/proc/self/status", "VmPTE:"));
    MPI_Finalize();
    return 0;
}
