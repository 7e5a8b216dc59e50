/*
 * comm_cost - what it costs to make and to free a communicator while others live.
 *
 * For each number N of communicators kept alive (1, 100, 10000, all duplicates of
 * MPI_COMM_WORLD):
 *   dup_liveN_us, split_liveN_us, create_liveN_us, group_liveN_us
 *       MPI_Comm_dup, MPI_Comm_split into two halves, MPI_Comm_create of all,
 *       MPI_Comm_create_group of all: the median over many
 *   free_liveN_us      MPI_Comm_free of the duplicates among these
 *   send_liveN_us      half a round trip of 8 bytes between ranks 0 and 1, each time
 *                      in the next of the communicators
 *   comm_bytes         memory of rank 0 for each of the last 9900, never used
 *   used_bytes         the same once a message and an allreduce have passed in each
 *   live               how many there were in the end
 * A library that cannot make so many says so in a line "# ...", and the figures for
 * that number are missing.
 */
#include "bench.h"

enum { LIVE_MAX = 10000, ROUNDS = 200 };

static MPI_Comm live[LIVE_MAX];
static MPI_Group everybody;
static int rank, size, made;

static double resident_bytes(void)
{
    long pages = 0, ignored = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (!f) return 0;
    if (fscanf(f, "%ld %ld", &ignored, &pages) != 2) pages = 0;
    fclose(f);
    return (double)pages * (double)sysconf(_SC_PAGESIZE);
}

/* All ranks have one more, or none has. */
static int grow(int n)
{
    while (made < n) {
        int code = MPI_Comm_dup(MPI_COMM_WORLD, &live[made]), ok = code == MPI_SUCCESS, all = 0;
        MPI_Allreduce(&ok, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
        if (!all) {
            if (rank == 0) printf("# no more than %d communicators\n", made);
            if (ok) MPI_Comm_free(&live[made]);
            return 0;
        }
        made++;
    }
    return 1;
}

static int one(int how, MPI_Comm *c)
{
    switch (how) {
    case 0: return MPI_Comm_dup(MPI_COMM_WORLD, c);
    case 1: return MPI_Comm_split(MPI_COMM_WORLD, rank % 2, 0, c);
    case 2: return MPI_Comm_create(MPI_COMM_WORLD, everybody, c);
    default: return MPI_Comm_create_group(MPI_COMM_WORLD, everybody, 3, c);
    }
}

static void making(int n)
{
    static const char *const names[] = {"dup", "split", "create", "group"};
    double t[ROUNDS], t_free[ROUNDS];
    for (int how = 0; how < 4; how++) {
        int ok = 1;
        for (int i = 0; i < ROUNDS && ok; i++) {
            MPI_Comm c;
            MPI_Barrier(MPI_COMM_WORLD);
            double begin = now();
            ok = one(how, &c) == MPI_SUCCESS;
            t[i] = now() - begin;
            if (!ok) break;
            begin = now();
            MPI_Comm_free(&c);
            if (how == 0) t_free[i] = now() - begin;
        }
        if (rank) continue;
        if (ok) printf("%s_live%d_us %.3f\n", names[how], n, 1e6 * median(t, ROUNDS));
        else printf("# %s fails with %d alive\n", names[how], n);
    }
    if (rank == 0) printf("free_live%d_us %.3f\n", n, 1e6 * median(t_free, ROUNDS));
}

static void talking(int n)
{
    double t[9];
    long at = 0;
    char buf[8] = {0};
    if (rank > 1) return;
    for (int rep = 0; rep < 9; rep++) {
        double begin = now();
        for (int i = 0; i < 1000; i++, at++) {
            MPI_Comm c = live[at % n];
            if (rank == 0) MPI_Send(buf, 8, MPI_BYTE, 1, 0, c);
            MPI_Recv(buf, 8, MPI_BYTE, 1 - rank, 0, c, MPI_STATUS_IGNORE);
            if (rank == 1) MPI_Send(buf, 8, MPI_BYTE, 0, 0, c);
        }
        t[rep] = (now() - begin) / 2000;
    }
    if (rank == 0) printf("send_live%d_us %.3f\n", n, 1e6 * median(t, 9));
}

static void use_all(void)
{
    for (int i = 0; i < made; i++) {
        int x = i, sum;
        MPI_Allreduce(&x, &sum, 1, MPI_INT, MPI_SUM, live[i]);
    }
}

int main(int argc, char **argv)
{
    static const int numbers[] = {1, 100, LIVE_MAX};
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    need_ranks(size, 2);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_group(MPI_COMM_WORLD, &everybody);
    for (int k = 0; k < 3; k++) {
        double before = resident_bytes();
        int from = made, enough = grow(numbers[k]);
        if (numbers[k] == LIVE_MAX && rank == 0 && made > from)
            printf("comm_bytes %.0f\n", (resident_bytes() - before) / (made - from));
        if (!enough) break;
        making(numbers[k]);
        talking(numbers[k]);
        MPI_Barrier(MPI_COMM_WORLD);
        fflush(stdout);
    }
    double before = resident_bytes();
    use_all();
    if (rank == 0) printf("used_bytes %.0f\nlive %d\n", (resident_bytes() - before) / made, made);
    for (int i = 0; i < made; i++) MPI_Comm_free(&live[i]);
    MPI_Group_free(&everybody);
    MPI_Finalize();
    return 0;
}
