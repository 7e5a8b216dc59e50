/*
 * idle_helper - what calls cost while a helper thread of the library has nothing to do, or nothing that the caller would not do as
 * soon, in one launch: blocks of calls before there is one, and blocks after a communicator has asked for it (Tern's info key
 * tern_progress; with another library both are the same). Two ranks with a core each.
 *
 *   nN_idle_OP_ns     nanoseconds of a call without the helper; OP is barrier, bcast, allreduce (8 bytes), pingpong (8
 *                     bytes, both ways), pingpongSIZE; windowSIZE: WINDOW nonblocking messages of that size and a word back; or
 *                     behind: a pingpong of 8 bytes right behind windows
 *   nN_idle_OP_ratio  with the helper to without
 *
 * Blocking calls are measured by themselves, since a helper that has just met a window is not idle: Tern's naps for some ms and looks
 * whether another window follows.
 *
 * The machine changes its pace in between: take the median over many launches.
 */
#include "bench.h"

enum { BLOCKS = 41, WINDOW = 16, MOST = 4 << 20 };

enum what { BARRIER, BCAST, ALLREDUCE, PINGPONG, WINDOWS };
static const struct op {
    const char *name;
    enum what what;
    int bytes, calls; /* in a block */
} ops[] = {{"barrier", BARRIER, 0, 2000},         {"bcast", BCAST, 8, 2000},           {"allreduce", ALLREDUCE, 8, 2000},
           {"pingpong", PINGPONG, 8, 2000},       {"pingpong64K", PINGPONG, 65536, 50}, {"pingpong256K", PINGPONG, 262144, 20},
           {"pingpong1M", PINGPONG, 1 << 20, 8},  {"pingpong4M", PINGPONG, MOST, 3},    {"window64K", WINDOWS, 65536, 8},
           {"window256K", WINDOWS, 262144, 3},    {"window1M", WINDOWS, 1 << 20, 2},    {"window4M", WINDOWS, MOST, 1},
           {"behind", PINGPONG, 8, 2000}};
enum { OPS = sizeof ops / sizeof *ops, FIRST_WINDOW = 8 /* of ops */ };
static char *out, *in; /* MOST bytes */
static int rank, size;

static void window(int bytes)
{
    MPI_Request r[WINDOW];
    if (rank > 1) return;
    for (int i = 0; i < WINDOW; i++)
        if (rank) MPI_Irecv(in, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, &r[i]);
        else MPI_Isend(out, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &r[i]);
    MPI_Waitall(WINDOW, r, MPI_STATUSES_IGNORE);
    if (rank) MPI_Send(NULL, 0, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
    else MPI_Recv(NULL, 0, MPI_BYTE, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void call(const struct op *op, int i)
{
    double x = 1, y;
    switch (op->what) {
    case BARRIER:
        MPI_Barrier(MPI_COMM_WORLD);
        break;
    case BCAST:
        MPI_Bcast(&x, 1, MPI_DOUBLE, i % size, MPI_COMM_WORLD);
        break;
    case ALLREDUCE:
        MPI_Allreduce(&x, &y, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        break;
    case PINGPONG:
        if (rank == 0) MPI_Send(out, op->bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
        if (rank < 2) MPI_Recv(in, op->bytes, MPI_BYTE, !rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (rank == 1) MPI_Send(out, op->bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
        break;
    case WINDOWS:
        window(op->bytes);
    }
}

/* Seconds of a call. */
static double block(const struct op *op)
{
    MPI_Barrier(MPI_COMM_WORLD);
    double from = now();
    for (int i = 0; i < op->calls; i++) call(op, i);
    return (now() - from) / op->calls;
}

/* Of the operations from `first` to the one before `end`, a block of each in turn. */
static void blocks(int first, int end, double seconds[OPS])
{
    static double t[OPS][BLOCKS];
    for (int op = first; op < end; op++) block(&ops[op]);
    for (int b = 0; b < BLOCKS; b++)
        for (int op = first; op < end; op++) t[op][b] = block(&ops[op]);
    for (int op = first; op < end; op++) seconds[op] = median(t[op], BLOCKS);
}

static void all_blocks(double seconds[OPS])
{
    blocks(0, FIRST_WINDOW, seconds);
    blocks(FIRST_WINDOW, OPS, seconds);
}

int main(int argc, char **argv)
{
    double without[OPS], with[OPS];
    MPI_Info info;
    MPI_Comm helped;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    out = xalloc(MOST);
    in = xalloc(MOST);
    all_blocks(without);
    MPI_Info_create(&info);
    MPI_Info_set(info, "tern_progress", "helper");
    MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &helped);
    MPI_Info_free(&info);
    all_blocks(with);
    for (int op = 0; rank == 0 && op < OPS; op++) {
        printf("n%d_idle_%s_ns %.1f\n", size, ops[op].name, 1e9 * without[op]);
        printf("n%d_idle_%s_ratio %.3f\n", size, ops[op].name, with[op] / without[op]);
    }
    MPI_Comm_free(&helped);
    MPI_Finalize();
    return 0;
}
