/*
 * idle_helper - what blocking calls cost while a helper thread of the library has nothing to do, in one launch: blocks of
 * calls before there is one, and blocks after a communicator has asked for it (Tern's info key tern_progress; with another
 * library both are the same). Two ranks with a core each.
 *
 *   nN_idle_OP_ns     nanoseconds of a call without the helper; OP is barrier, bcast, allreduce (8 bytes) or pingpong (8
 *                     bytes, both ways)
 *   nN_idle_OP_ratio  with the helper to without
 *
 * The machine changes its pace in between: take the median over many launches.
 */
#include "bench.h"

enum { BLOCKS = 41, CALLS = 2000, OPS = 4 };

static const char *const names[OPS] = {"barrier", "bcast", "allreduce", "pingpong"};
static int rank, size;

static void call(int op, int i)
{
    double x = 1, y;
    switch (op) {
    case 0:
        MPI_Barrier(MPI_COMM_WORLD);
        break;
    case 1:
        MPI_Bcast(&x, 1, MPI_DOUBLE, i % size, MPI_COMM_WORLD);
        break;
    case 2:
        MPI_Allreduce(&x, &y, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        break;
    default:
        if (rank == 0) MPI_Send(&x, 1, MPI_DOUBLE, 1, 0, MPI_COMM_WORLD);
        if (rank < 2) MPI_Recv(&y, 1, MPI_DOUBLE, !rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (rank == 1) MPI_Send(&x, 1, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD);
    }
}

/* Seconds of a call. */
static double block(int op)
{
    MPI_Barrier(MPI_COMM_WORLD);
    double from = now();
    for (int i = 0; i < CALLS; i++) call(op, i);
    return (now() - from) / CALLS;
}

static void blocks(double seconds[OPS])
{
    static double t[OPS][BLOCKS];
    for (int op = 0; op < OPS; op++) block(op);
    for (int b = 0; b < BLOCKS; b++)
        for (int op = 0; op < OPS; op++) t[op][b] = block(op);
    for (int op = 0; op < OPS; op++) seconds[op] = median(t[op], BLOCKS);
}

int main(int argc, char **argv)
{
    double without[OPS], with[OPS];
    MPI_Info info;
    MPI_Comm helped;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    blocks(without);
    MPI_Info_create(&info);
    MPI_Info_set(info, "tern_progress", "helper");
    MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &helped);
    MPI_Info_free(&info);
    blocks(with);
    for (int op = 0; rank == 0 && op < OPS; op++) {
        printf("n%d_idle_%s_ns %.1f\n", size, names[op], 1e9 * without[op]);
        printf("n%d_idle_%s_ratio %.3f\n", size, names[op], with[op] / without[op]);
    }
    MPI_Comm_free(&helped);
    MPI_Finalize();
    return 0;
}
