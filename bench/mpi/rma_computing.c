/*
 * rma_computing - one-sided operations on a target that computes without any call of MPI, beside the same on one that waits in a
 * barrier: rank 0 is the origin, rank 1 the target, a core each.
 *
 *     rma_computing [seconds]      that the target computes for each operation; 1
 *
 *   W_OP_idle_us     MPI_Win_lock, an operation on 8 bytes, MPI_Win_unlock, each 5 ms behind the one before; the target waits in
 *                    a barrier: median
 *   W_OP_busy_us     the same, the target computes: median of those that began meanwhile
 *   W_OP_busy_to_allowed   busy_us to twice idle_us and 1 % of the computing time
 *   W_loss_pct       of the target's computing speed, by these operations; the median over them
 * W is the window: alloc (MPI_Win_allocate), create (MPI_Win_create), dynamic (attached memory). OP is put, get, acc, fop.
 */
#include "rma_window.h"

enum { SAMPLES = 40 };
static const double GAP_S = 0.005;

static int rank;
static struct window w;

static void pause_until(double t)
{
    while (now() < t) continue;
}

/* Rank 0: the time of an operation, begun again and again while `seconds` pass. */
static double operate(enum op op, double seconds)
{
    static int64_t here = 1;
    double t[SAMPLES], start = now();
    int n = 0;
    while (n < SAMPLES && (n == 0 || now() + GAP_S < start + seconds)) {
        pause_until(now() + GAP_S);
        double from = now();
        window_epoch(&w, op, &here, 8, 1);
        t[n++] = now() - from;
    }
    return median(t, n);
}

static double compute(uint64_t iterations)
{
    double from = now();
    work(iterations);
    return now() - from;
}

/* Both ranks; the part of its speed that the target loses is for both. */
static double measure(enum op op, double seconds)
{
    double idle = 0, busy = 0, alone = 0, beside = 0, loss;
    uint64_t iterations = work_iters(seconds);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) idle = operate(op, seconds / 2);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1) alone = compute(iterations / 2);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) busy = operate(op, seconds);
    else beside = compute(iterations);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1) alone += compute(iterations / 2);
    loss = rank == 1 ? 100 * (1 - alone / beside) : 0;
    MPI_Bcast(&loss, 1, MPI_DOUBLE, 1, MPI_COMM_WORLD);
    if (rank) return loss;
    const char *kind = kind_name[w.kind], *name = op_name[op];
    printf("%s_%s_idle_us %.2f\n%s_%s_busy_us %.2f\n", kind, name, 1e6 * idle, kind, name, 1e6 * busy);
    printf("%s_%s_busy_to_allowed %.4f\n", kind, name, busy / (2 * idle + 0.01 * seconds));
    fflush(stdout);
    return loss;
}

int main(int argc, char **argv)
{
    int size;
    double seconds = argc > 1 ? atof(argv[1]) : 1;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    need_ranks(size, 2);
    work_calibrate();
    for (int kind = 0; kind < KINDS; kind++) {
        double loss[OPS];
        window_open(&w, kind, 4096, MPI_INFO_NULL);
        for (int op = 0; op < OPS; op++) loss[op] = measure(op, seconds);
        if (rank == 0) printf("%s_loss_pct %.2f\n", kind_name[kind], median(loss, OPS));
        window_close(&w);
    }
    MPI_Finalize();
    return 0;
}
