/*
 * rma_victim - what a target's own loop loses by data that origins put into its window meanwhile: cores, caches, memory. The loop
 * follows pointers, which lead through all cache lines of an array in random order. Rank 0 is the origin, rank 1 the target, a core each.
 *
 *     rma_victim [MB/s]        the origin puts so much, at most; 200
 *
 *   loopA_alone_us       once through the array of A bytes, nobody puts
 *   loopA_putS_ratio     a pass while rank 0 does epochs of lock, put of S bytes, unlock, to one alone; blocks in turn, the lower
 *                        quartile of each: what else runs on the machine makes both slower
 *   loopA_putS_MBs       what it put in twice the time that the loop takes: the rate, if the target serves it
 * The window is made by MPI_Win_create.
 */
#include "rma_window.h"

enum { BLOCKS = 8, MOST = 4 << 20 };
static const size_t arrays[] = {32768, 262144, 1 << 20, MOST}, put_sizes[] = {32768, 262144, 1 << 20, MOST};
enum { ARRAYS = sizeof arrays / sizeof *arrays, PUTS = sizeof put_sizes / sizeof *put_sizes };
static const double BLOCK_S = 0.04;

static int rank;
static double rate; /* bytes a second */
static struct window w;
static char *here;
static struct line {
    struct line *next;
    char rest[56];
} *array;

/* One circle through n bytes of the array. */
static void make_circle(size_t n)
{
    size_t lines = n / sizeof *array, *order = malloc(lines * sizeof *order);
    uint64_t random = 12345;
    for (size_t i = 0; i < lines; i++) order[i] = i;
    for (size_t i = lines - 1; i > 0; i--) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        size_t k = (size_t)(random >> 33) % (i + 1), other = order[k];
        order[k] = order[i];
        order[i] = other;
    }
    for (size_t i = 0; i < lines; i++) array[order[i]].next = &array[order[(i + 1) % lines]];
    free(order);
}

static double passes(size_t n, int times)
{
    struct line *at = array;
    double from = now();
    for (size_t i = 0; i < (size_t)times * (n / sizeof *array); i++) at = at->next;
    __asm__ volatile("" ::"r"(at) : "memory");
    return (now() - from) / times;
}

/* Rank 0: epochs for `seconds`, no faster than the rate. The bytes a second that it had. */
static double put_on(size_t n, double seconds)
{
    double start = now();
    size_t bytes = 0;
    while (now() < start + seconds) {
        double next = now() + (double)n / rate; /* nothing is made up for */
        window_epoch(&w, PUT, here, n, 1);
        bytes += n;
        while (now() < next) continue;
    }
    return (double)bytes / (now() - start);
}

/* Both ranks: a pass beside puts in rank 1, and one alone; the bytes a second in rank 0. */
static double block(size_t loop, size_t n, int times, double *alone)
{
    int go = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1) *alone = passes(loop, times);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        MPI_Send(&go, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
        return put_on(n, 2 * BLOCK_S);
    }
    MPI_Recv(&go, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    passes(loop, times / 8 + 1); /* the origin is at it */
    return passes(loop, times);
}

static double lower_quartile(double *v)
{
    median(v, BLOCKS); /* sorts */
    return v[BLOCKS / 4];
}

static void measure(size_t loop, size_t n, int times)
{
    double values[BLOCKS], alone[BLOCKS], ratio;
    block(loop, n, times, alone);
    for (int b = 0; b < BLOCKS; b++) values[b] = block(loop, n, times, &alone[b]);
    ratio = rank ? lower_quartile(values) / lower_quartile(alone) : 0;
    MPI_Bcast(&ratio, 1, MPI_DOUBLE, 1, MPI_COMM_WORLD);
    if (rank) return;
    printf("loop%s_put%s_ratio %.3f\n", size_name(loop), size_name(n), ratio);
    printf("loop%s_put%s_MBs %.0f\n", size_name(loop), size_name(n), 1e-6 * median(values, BLOCKS));
    fflush(stdout);
}

int main(int argc, char **argv)
{
    int size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    need_ranks(size, 2);
    rate = 1e6 * (argc > 1 ? atof(argv[1]) : 200);
    here = xalloc(MOST);
    array = xalloc(MOST);
    window_open(&w, CREATE, MOST, MPI_INFO_NULL);
    for (int a = 0; a < ARRAYS; a++) {
        double alone = 0;
        make_circle(arrays[a]);
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 1) passes(arrays[a], 10), alone = passes(arrays[a], 30);
        MPI_Bcast(&alone, 1, MPI_DOUBLE, 1, MPI_COMM_WORLD);
        if (rank == 0) printf("loop%s_alone_us %.2f\n", size_name(arrays[a]), 1e6 * alone);
        for (int p = 0; p < PUTS; p++) measure(arrays[a], put_sizes[p], (int)(BLOCK_S / alone) + 1);
    }
    window_close(&w);
    MPI_Finalize();
    return 0;
}
