/*
 * rma_contention - many origins want one target's lock: ranks 1.. lock rank 0 exclusively, fetch and add to a counter there, and
 * unlock, for a second; rank 0 waits in a barrier. Any number of ranks from 4 on.
 *
 *   nN_hot_ops          such epochs a second, of all together
 *   nN_hot_fairness     those of the rank that had most to those of the rank that had fewest
 *   nN_hot_idle_cpu_pct the upper half of the ranks waits in a barrier while the lower half does so: the processor time that a
 *                       waiting one uses, in % of a core
 *   nN_hot_half_ops, nN_hot_half_fairness   of that half
 * The window is made by MPI_Win_allocate.
 */
#include "rma_window.h"

static const double LASTS_S = 1.0;
static int rank, size;
static struct window w;

/* Epochs of this rank in LASTS_S. */
static double fetch_on(void)
{
    int64_t was;
    double n = 0;
    for (double end = now() + LASTS_S; now() < end; n++) window_epoch(&w, FOP, &was, 8, 0);
    return n;
}

/* Ranks 1..last fetch, the others wait. Their epochs, as rank 0 learns them; the waiting ones' share of a core. */
static void phase(int last, double *counts, double *idle_share)
{
    double n = 0, used = 0, sum;
    int fetches = rank > 0 && rank <= last, idle = rank > last;
    MPI_Barrier(MPI_COMM_WORLD);
    double cpu = cpu_seconds(), from = now();
    if (fetches) n = fetch_on();
    MPI_Barrier(MPI_COMM_WORLD);
    if (idle) used = (cpu_seconds() - cpu) / (now() - from);
    MPI_Gather(&n, 1, MPI_DOUBLE, counts, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    MPI_Reduce(&used, &sum, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    *idle_share = last < size - 1 ? sum / (size - 1 - last) : 0;
}

/* Of ranks 1..last; sorts them. */
static void report(const char *of, double *counts, int last)
{
    double sum = 0;
    for (int r = 1; r <= last; r++) sum += counts[r];
    qsort(counts + 1, (size_t)last, sizeof *counts, bench_cmp);
    printf("n%d_hot_%sops %.0f\n", size, of, sum / LASTS_S);
    printf("n%d_hot_%sfairness %.3f\n", size, of, counts[last] / (counts[1] > 0 ? counts[1] : 1));
}

int main(int argc, char **argv)
{
    double counts[WINDOW_RANKS], share;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    need_ranks(size, 4);
    window_open(&w, ALLOC, 4096, MPI_INFO_NULL);
    phase(size - 1, counts, &share);
    if (rank == 0) report("", counts, size - 1);
    phase(size / 2 - 1, counts, &share);
    if (rank == 0) {
        report("half_", counts, size / 2 - 1);
        printf("n%d_hot_idle_cpu_pct %.2f\n", size, 100 * share);
    }
    window_close(&w);
    MPI_Finalize();
    return 0;
}
