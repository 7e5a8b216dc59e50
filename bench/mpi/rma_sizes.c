/*
 * rma_sizes - one-sided operations by size, as the OSU benchmarks measure them: rank 0 is the origin, rank 1 the target, which
 * waits in a barrier where the operation leaves it the choice.
 *
 *     rma_sizes [alloc|create|dynamic] [put|get|acc] [lock|flush|fence|pscw|bw|bibw] ...
 *
 * A word takes some of its group; no word of a group: all of it.
 *   W_OP_lock_SIZE_us    MPI_Win_lock (exclusive), the operation, MPI_Win_unlock
 *   W_OP_flush_SIZE_us   the operation and MPI_Win_flush, in an epoch of MPI_Win_lock_all
 *   W_OP_fence_SIZE_us   the operation and MPI_Win_fence
 *   W_OP_pscw_SIZE_us    MPI_Win_start, the operation, MPI_Win_complete beside MPI_Win_post, MPI_Win_wait
 *   W_OP_bw_SIZE_MBs     put and get: 64 operations (16 of 4 MB) and a flush
 *   W_put_bibw_SIZE_MBs  the same by both ranks at once, both directions together
 * W is the window: alloc (MPI_Win_allocate), create (MPI_Win_create), dynamic (attached memory). Medians of 7 blocks.
 */
#include "rma_window.h"

enum { BLOCKS = 7, MOST = 4 << 20 };
#define BLOCK_S 0.003

enum way { LOCK, FLUSH, FENCE, PSCW, BW, BIBW, WAYS };
static const char *const way_name[WAYS] = {"lock", "flush", "fence", "pscw", "bw", "bibw"};
static const size_t sizes[] = {8, 64, 512, 4096, 16384, 32768, 65536, 262144, 1 << 20, MOST};
enum { SIZES = sizeof sizes / sizeof *sizes };

static int rank;
static struct window w;
static char *here;
static MPI_Group other; /* the other rank */

/* By rank 0 as the origin; rank 1 takes part in what is of both. */
static void once(enum way way, enum op op, size_t n)
{
    if (way == LOCK) {
        window_epoch(&w, op, here, n, 1);
    } else if (way == FLUSH) {
        window_op(&w, op, here, n, 1);
        MPI_Win_flush(1, w.win);
    } else if (way == FENCE) {
        if (rank == 0) window_op(&w, op, here, n, 1);
        MPI_Win_fence(0, w.win);
    } else if (rank == 0) {
        MPI_Win_start(other, 0, w.win);
        window_op(&w, op, here, n, 1);
        MPI_Win_complete(w.win);
    } else {
        MPI_Win_post(other, 0, w.win);
        MPI_Win_wait(w.win);
    }
}

static double seconds_of(enum way way, enum op op, size_t n, int times)
{
    double from = now();
    for (int i = 0; i < times; i++) once(way, op, n);
    return now() - from;
}

/* How often an operation that takes `t` seconds goes into a block, and how many blocks there are: the same in both ranks. */
static void plan(double t, int *times, int *blocks)
{
    int both[2] = {(int)clamp(BLOCK_S / t, 1, 20000), t > 5 * BLOCK_S ? 3 : BLOCKS};
    MPI_Bcast(both, 2, MPI_INT, 0, MPI_COMM_WORLD);
    *times = both[0];
    *blocks = both[1];
}

static void say(enum way way, enum op op, size_t n, const char *unit, double value)
{
    if (rank == 0) printf("%s_%s_%s_%s_%s %.3f\n", kind_name[w.kind], op_name[op], way_name[way], size_name(n), unit, value);
}

static void latency(enum way way, enum op op, size_t n)
{
    double t[BLOCKS] = {0}, first = 0;
    int times, blocks, acts = rank == 0 || way == FENCE || way == PSCW;
    if (way == FENCE) MPI_Win_fence(0, w.win);
    if (way == FLUSH && rank == 0) MPI_Win_lock_all(0, w.win);
    if (acts) {
        seconds_of(way, op, n, 2);
        first = seconds_of(way, op, n, 3) / 3;
    }
    plan(first, &times, &blocks);
    for (int b = 0; b < blocks && acts; b++) t[b] = seconds_of(way, op, n, times) / times;
    if (way == FLUSH && rank == 0) MPI_Win_unlock_all(w.win);
    if (way == FENCE) MPI_Win_fence(MPI_MODE_NOSUCCEED, w.win);
    MPI_Barrier(MPI_COMM_WORLD);
    say(way, op, n, "us", 1e6 * median(t, blocks));
}

static double window_of(enum op op, size_t n, int many, int windows)
{
    double from = now();
    for (int k = 0; k < windows; k++) {
        for (int i = 0; i < many; i++) window_op(&w, op, here, n, !rank);
        MPI_Win_flush(!rank, w.win);
    }
    return (now() - from) / windows;
}

static void bandwidth(enum way way, enum op op, size_t n)
{
    double t[BLOCKS] = {0}, all[BLOCKS], first = 0;
    int many = n == MOST ? 16 : 64, windows, blocks, acts = rank == 0 || way == BIBW;
    MPI_Win_lock_all(0, w.win);
    if (acts) window_of(op, n, many, 1);
    if (acts) first = window_of(op, n, many, 1);
    plan(first, &windows, &blocks);
    for (int b = 0; b < blocks; b++) {
        if (way == BIBW) MPI_Barrier(MPI_COMM_WORLD);
        if (acts) t[b] = window_of(op, n, many, windows);
    }
    MPI_Win_unlock_all(w.win);
    MPI_Allreduce(t, all, BLOCKS, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    double bytes = (double)n * many * (way == BIBW ? 2 : 1);
    say(way, op, n, "MBs", 1e-6 * bytes / median(all, blocks));
}

static void measure(enum way way, enum op op)
{
    if (way == BIBW && op != PUT) return;
    if (way == BW && op == ACC) return;
    for (int k = 0; k < SIZES; k++) {
        if (way >= BW) bandwidth(way, op, sizes[k]);
        else latency(way, op, sizes[k]);
    }
    fflush(stdout);
}

int main(int argc, char **argv)
{
    int size, peer;
    MPI_Group world;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    need_ranks(size, 2);
    peer = !rank;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, 1, &peer, &other);
    here = xalloc(MOST);
    for (int kind = 0; kind < KINDS; kind++) {
        if (!wanted(kind_name[kind], kind_name, KINDS, argc, argv)) continue;
        window_open(&w, kind, MOST, MPI_INFO_NULL);
        for (int op = PUT; op <= ACC; op++)
            for (int way = 0; way < WAYS; way++)
                if (wanted(op_name[op], op_name, OPS, argc, argv) && wanted(way_name[way], way_name, WAYS, argc, argv))
                    measure(way, op);
        window_close(&w);
    }
    MPI_Group_free(&other);
    MPI_Group_free(&world);
    MPI_Finalize();
    return 0;
}
