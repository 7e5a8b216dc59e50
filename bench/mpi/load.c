/*
 * load - two ranks on two cores that other programs use as well: busy loops run
 * beside them, anywhere. The scheduler may put both ranks on one core; a rank that
 * polls there for a whole slice keeps the other from running.
 *
 *   besideK_allreduce8_us   time of an operation beside K busy loops
 *   besideK_pingpong8_us    half round trip of 8 bytes
 *   besideK_bw_64K_MBs      16 messages of 64 KB on their way at a time
 *   besideK_bw_256K_MBs     the same with 256 KB
 *   besideK_test8_us        half round trip of 8 bytes, received by a loop of MPI_Test
 *
 * A round is 20 ms or 20 operations of one kind, whichever is longer, behind a short
 * sleep of both ranks, since the scheduler places threads anew when they wake. The
 * figures are medians over the rounds; those of the worst round begin with `worst`
 * instead of `beside`.
 */
#include "bench.h"
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>

enum { LOOPS_MAX = 4, ROUNDS = 12, KINDS = 5, WINDOW = 16, BLOCK = 20 };
static const int loads[] = {0, 1, 2, 4};

static int rank;
static char *buf;

/* ---- the busy loops: processes that exist before MPI does, so that no library has to bear a fork ---- */

static volatile int *busy; /* shared: so many loops run, the others sleep */

static void loop_process(int index)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setsid(); /* to the scheduler as much as a rank, whose session is its own, too */
    bench_prio();
    for (;;) {
        if (index < *busy)
            work(100000);
        else
            sleep_ms(1);
    }
}

static void make_loops(pid_t *loops, int n)
{
    busy = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (busy == MAP_FAILED) abort();
    for (int i = 0; i < n; i++) {
        loops[i] = fork();
        if (!loops[i]) loop_process(i);
    }
}

/* ---- what is measured ---- */

static void allreduce(void)
{
    double in = 1, out;
    MPI_Allreduce(&in, &out, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static void recv_plain(void) { MPI_Recv(buf, 8, MPI_CHAR, 1 - rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE); }

static void recv_tested(void)
{
    MPI_Request r;
    int done = 0;
    MPI_Irecv(buf, 8, MPI_CHAR, 1 - rank, 1, MPI_COMM_WORLD, &r);
    while (!done) MPI_Test(&r, &done, MPI_STATUS_IGNORE);
}

static void round_trip(void (*recv)(void))
{
    if (rank) recv();
    MPI_Send(buf, 8, MPI_CHAR, 1 - rank, 1, MPI_COMM_WORLD);
    if (!rank) recv();
}

static void window(size_t bytes)
{
    MPI_Request r[WINDOW];
    for (int i = 0; i < WINDOW; i++) {
        if (rank)
            MPI_Irecv(buf + (size_t)i * bytes, (int)bytes, MPI_CHAR, 0, 1, MPI_COMM_WORLD, &r[i]);
        else
            MPI_Isend(buf + (size_t)i * bytes, (int)bytes, MPI_CHAR, 1, 1, MPI_COMM_WORLD, &r[i]);
    }
    MPI_Waitall(WINDOW, r, MPI_STATUSES_IGNORE);
    round_trip(recv_plain);
}

static void once(int kind)
{
    switch (kind) {
    case 0:
        allreduce();
        break;
    case 1:
        round_trip(recv_plain);
        break;
    case 2:
        window(64 << 10);
        break;
    case 3:
        window(256 << 10);
        break;
    default:
        round_trip(recv_tested);
    }
}

/* Seconds of an operation. After each block rank 0 says whether to go on, by an operation that counts. */
static double one_round(int kind)
{
    double go = 1, more;
    long n = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    sleep_ms(3);
    MPI_Barrier(MPI_COMM_WORLD);
    double t0 = now();
    while (go != 0) {
        for (int i = 0; i < BLOCK; i++) once(kind);
        n += BLOCK;
        more = rank == 0 && now() - t0 < 0.02;
        MPI_Allreduce(&more, &go, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    }
    return (now() - t0) / (double)n;
}

static void print_time(const char *name, int load, double typical, double worst)
{
    printf("beside%d_%s_us %.2f\nworst%d_%s_us %.2f\n", load, name, 1e6 * typical, load, name, 1e6 * worst);
}

static void print_rate(size_t bytes, int load, double typical, double worst)
{
    double all = (double)(WINDOW * bytes) * 1e-6;
    printf("beside%d_bw_%s_MBs %.0f\nworst%d_bw_%s_MBs %.0f\n", load, size_name(bytes), all / typical, load,
           size_name(bytes), all / worst);
}

static void print_kind(int kind, int load, double typical, double worst)
{
    switch (kind) {
    case 0:
        print_time("allreduce8", load, typical, worst);
        break;
    case 1:
        print_time("pingpong8", load, typical / 2, worst / 2);
        break;
    case 2:
        print_rate(64 << 10, load, typical, worst);
        break;
    case 3:
        print_rate(256 << 10, load, typical, worst);
        break;
    default:
        print_time("test8", load, typical / 2, worst / 2);
    }
}

int main(int argc, char **argv)
{
    int size;
    pid_t loops[LOOPS_MAX];
    make_loops(loops, LOOPS_MAX); /* those of rank 0 will run */
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    need_ranks(size, 2);
    buf = xalloc((size_t)WINDOW * (256 << 10));
    for (size_t l = 0; l < sizeof loads / sizeof *loads && rank < 2; l++) {
        *busy = rank ? 0 : loads[l];
        for (int kind = 0; kind < KINDS; kind++) {
            double t[ROUNDS];
            for (int i = 0; i < ROUNDS; i++) t[i] = one_round(kind);
            double typical = median(t, ROUNDS);
            if (!rank) print_kind(kind, loads[l], typical, t[ROUNDS - 1]);
        }
    }
    for (int i = 0; i < LOOPS_MAX; i++) kill(loops[i], SIGKILL);
    MPI_Finalize();
    return 0;
}
