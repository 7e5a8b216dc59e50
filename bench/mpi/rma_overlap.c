/*
 * rma_overlap - how much of a put goes on while its target computes: rank 0 locks, puts, unlocks, rank 1 computes four times as
 * long as that takes when it waits in a barrier. A core each.
 *
 *   W_SIZE_comm_us     lock, put, unlock, the target idle
 *   W_SIZE_overlap_pct 100 * (1 - (both - computing) / comm), within 0..100: `both` is the time until the put has ended and
 *                      the target has computed, from a common start; the computing alone is measured at the same moments
 * W is the window: alloc (MPI_Win_allocate), create (MPI_Win_create), which arguments may choose. Medians.
 */
#include "rma_window.h"

enum { REPS = 25, MOST = 16 << 20 };
static const size_t sizes[] = {32768, 65536, 131072, 262144, 1 << 20, 4 << 20, MOST};
enum { SIZES = sizeof sizes / sizeof *sizes };

static int rank;
static struct window w;
static char *here;

/* Seconds of an epoch of rank 0 beside the computing of rank 1, whichever ends later. `alone`: of the same computing by itself. */
static double together(size_t n, uint64_t iterations, double *alone)
{
    double t[REPS], longer[REPS], by_itself[REPS];
    int reps = n > (1 << 20) ? 9 : REPS;
    for (int r = -2; r < reps; r++) {
        MPI_Barrier(MPI_COMM_WORLD);
        double from = now();
        if (rank == 0) window_epoch(&w, PUT, here, n, 1);
        else if (iterations) work(iterations);
        double end = now();
        MPI_Barrier(MPI_COMM_WORLD);
        double again = now();
        if (rank == 1) work(iterations);
        if (r < 0) continue;
        t[r] = rank == 0 || iterations ? end - from : 0;
        by_itself[r] = now() - again;
    }
    MPI_Allreduce(t, longer, reps, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    *alone = median(by_itself, reps);
    MPI_Bcast(alone, 1, MPI_DOUBLE, 1, MPI_COMM_WORLD);
    return median(longer, reps);
}

static void measure(size_t n)
{
    double computing, comm = together(n, 0, &computing);
    double both = together(n, work_iters(4 * comm), &computing);
    if (rank) return;
    printf("%s_%s_comm_us %.2f\n", kind_name[w.kind], size_name(n), 1e6 * comm);
    printf("%s_%s_overlap_pct %.1f\n", kind_name[w.kind], size_name(n), clamp(100 * (1 - (both - computing) / comm), 0, 100));
    fflush(stdout);
}

int main(int argc, char **argv)
{
    int size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    need_ranks(size, 2);
    work_calibrate();
    here = xalloc(MOST);
    for (int kind = 0; kind <= CREATE; kind++) {
        if (!wanted(kind_name[kind], kind_name, KINDS, argc, argv)) continue;
        window_open(&w, kind, MOST, MPI_INFO_NULL);
        for (int k = 0; k < SIZES; k++) measure(sizes[k]);
        window_close(&w);
    }
    MPI_Finalize();
    return 0;
}
