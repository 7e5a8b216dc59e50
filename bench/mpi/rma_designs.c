/*
 * rma_designs - the three ways in which a target serves origins that use messages (Tern's info key tern_rma_passive), in turn in
 * one launch: rank 0 puts into a window of MPI_Win_create, rank 1 waits in a barrier. To be run where messages are used (TCP).
 * With another library the three are the same.
 *
 *   D_put_SIZE_us        MPI_Win_lock (exclusive), a put, MPI_Win_unlock
 *   D_bw_SIZE_MBs        64 puts (16 of 4 MB) between lock and unlock
 *   D_put_SIZE_to_basic  the time to that of "basic", round by round: the median
 *   D_bw_SIZE_to_basic   the same of the 64 puts: times, so less is better
 * D is basic, helper, copy. A round makes the three windows, one after the other, each in a different order. Medians of 15 rounds.
 */
#include "rma_window.h"

enum { ROUNDS = 15, MOST = 4 << 20, DESIGNS = 3 };
static const double BLOCK_S = 0.004;
static const char *const design_name[DESIGNS] = {"basic", "helper", "copy"};
static const size_t sizes[] = {8, 64, 512, 4096, 16384, 32768, 65536, 262144, 1 << 20, MOST};
enum { SIZES = sizeof sizes / sizeof *sizes };

static int rank;
static struct window w;
static char *here;
static double times[2][SIZES][DESIGNS][ROUNDS]; /* seconds: of one put, of many */

static double epochs(size_t n, int puts, int times_each)
{
    double from = now();
    for (int i = 0; i < times_each; i++) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, w.win);
        for (int k = 0; k < puts; k++) window_op(&w, PUT, here, n, 1);
        MPI_Win_unlock(1, w.win);
    }
    return (now() - from) / times_each;
}

static int puts_of(int many, size_t n) { return !many ? 1 : n == MOST ? 16 : 64; }

static double block(int many, size_t n)
{
    double t;
    epochs(n, puts_of(many, n), 1);
    t = epochs(n, puts_of(many, n), 1);
    return epochs(n, puts_of(many, n), (int)clamp(BLOCK_S / t, 1, 1000));
}

static void one_round(int r)
{
    for (int k = 0; k < DESIGNS; k++) {
        int d = (k + r) % DESIGNS;
        MPI_Info info;
        MPI_Info_create(&info);
        MPI_Info_set(info, "tern_rma_passive", design_name[d]);
        window_open(&w, CREATE, MOST, info);
        for (int s = 0; s < SIZES && rank == 0; s++)
            for (int many = 0; many < 2; many++) times[many][s][d][r] = block(many, sizes[s]);
        window_close(&w);
        MPI_Info_free(&info);
    }
}

static void print_size(int d, int s)
{
    const char *name = design_name[d], *size = size_name(sizes[s]);
    for (int many = 0; many < 2; many++) {
        double ratio[ROUNDS], t[ROUNDS];
        for (int r = 0; r < ROUNDS; r++) ratio[r] = (t[r] = times[many][s][d][r]) / times[many][s][0][r];
        double middle = median(t, ROUNDS);
        if (many) printf("%s_bw_%s_MBs %.1f\n", name, size, 1e-6 * (double)sizes[s] * puts_of(1, sizes[s]) / middle);
        else printf("%s_put_%s_us %.2f\n", name, size, 1e6 * middle);
        if (d) printf("%s_%s_%s_to_basic %.4f\n", name, many ? "bw" : "put", size, median(ratio, ROUNDS));
    }
}

int main(int argc, char **argv)
{
    int size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    need_ranks(size, 2);
    here = xalloc(MOST);
    one_round(ROUNDS - 1); /* its figures are overwritten */
    for (int r = 0; r < ROUNDS; r++) one_round(r);
    for (int d = 0; d < DESIGNS && rank == 0; d++)
        for (int s = 0; s < SIZES; s++) print_size(d, s);
    MPI_Finalize();
    return 0;
}
