/*
 * threads - 2 ranks with several threads each under MPI_THREAD_MULTIPLE; thread i of one rank talks to thread i of the other.
 *
 *   t1_Mmsgs                 messages of 8 bytes, both ways, in windows of 64: one thread
 *   tN_own_Mmsgs             N threads, each on a communicator of its own: the messages of all
 *   tN_shared_Mmsgs          N threads on one communicator, told apart by tags
 *   tN_own_to_one, tN_shared_to_one    these to t1_Mmsgs
 *   tN_bare_to_one           the same without any MPI: if a window of N threads took the time that it takes one thread, and that of
 *                            one bare handover of the core from thread to thread, by a futex
 *   tN_own_slowest, tN_shared_slowest  the messages of the slowest thread to the mean of all
 *   tN_own_lat_us            half a round trip of 8 bytes, the median thread, while N threads do the same
 *   tN_mixed_Mmsgs           half of N threads send as above, the others call MPI_Allreduce of 8 bytes, all on their own
 *   tN_mixed_allreduces_k    communicators; thousands of these calls a second, of all
 */
#include "bench.h"
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

#define WIN 64
#define MOST 8
#define REPS 3
#define REP_S 0.3
#define ROUNDS 10 /* between two looks at the clock */
#define HANDOVERS 20000 /* of each thread */

static int rank;
static MPI_Comm own[MOST];

enum work { RATE, LATENCY, ALLREDUCE };

static struct job {
    enum work work;
    MPI_Comm comm;
    int tag;
    double count, seconds;
} jobs[MOST];

static void windows(const struct job *j)
{
    char out[8] = {0}, in[WIN][8];
    MPI_Request q[2 * WIN];
    for (int i = 0; i < WIN; i++) MPI_Irecv(in[i], 8, MPI_CHAR, 1 - rank, j->tag, j->comm, &q[i]);
    for (int i = 0; i < WIN; i++) MPI_Isend(out, 8, MPI_CHAR, 1 - rank, j->tag, j->comm, &q[WIN + i]);
    MPI_Waitall(2 * WIN, q, MPI_STATUSES_IGNORE);
}

static void round_trip(const struct job *j)
{
    char b[8] = {0};
    if (rank == 0) MPI_Send(b, 8, MPI_CHAR, 1, j->tag, j->comm);
    MPI_Recv(b, 8, MPI_CHAR, 1 - rank, j->tag, j->comm, MPI_STATUS_IGNORE);
    if (rank == 1) MPI_Send(b, 8, MPI_CHAR, 0, j->tag, j->comm);
}

static void allreduce(const struct job *j)
{
    double one = 1, sum;
    MPI_Allreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, j->comm);
}

/* Until rank 0's thread says that the time is over. */
static void *thread(void *arg)
{
    struct job *j = arg;
    double t0 = now();
    int go = 1;
    for (j->count = 0; go; j->count += ROUNDS) {
        for (int i = 0; i < ROUNDS; i++) {
            if (j->work == RATE) windows(j);
            else if (j->work == LATENCY) round_trip(j);
            else allreduce(j);
        }
        go = now() - t0 < REP_S;
        if (rank == 0) MPI_Send(&go, 1, MPI_INT, 1, j->tag + 1, j->comm);
        else MPI_Recv(&go, 1, MPI_INT, 0, j->tag + 1, j->comm, MPI_STATUS_IGNORE);
    }
    j->seconds = now() - t0;
    return NULL;
}

/* All jobs at once. */
static void run(int n)
{
    pthread_t th[MOST];
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < n; i++) pthread_create(&th[i], NULL, thread, &jobs[i]);
    for (int i = 0; i < n; i++) pthread_join(th[i], NULL);
}

/* Rounds a second of all jobs of the kind; *slowest: of the slowest one to their mean. */
static double rounds(int n, enum work work, double *slowest)
{
    double sum = 0, least = 1e300;
    int of = 0;
    for (int i = 0; i < n; i++) {
        if (jobs[i].work != work) continue;
        double r = jobs[i].count / jobs[i].seconds;
        sum += r;
        if (r < least) least = r;
        of++;
    }
    *slowest = least * of / sum;
    return sum;
}

static double seconds_a_round(int n)
{
    double s[MOST];
    for (int i = 0; i < n; i++) s[i] = jobs[i].seconds / jobs[i].count;
    return median(s, n);
}

static void show(const char *key, double value)
{
    if (rank == 0) printf("%s %.3f\n", key, value), fflush(stdout);
}

static double rate(int n, int shared, const char *name, double one)
{
    double r[REPS], slow[REPS], m;
    char key[64];
    for (int k = 0; k < REPS; k++) {
        for (int i = 0; i < n; i++) jobs[i] = (struct job){RATE, own[shared ? 0 : i], 10 * (i + 1), 0, 0};
        run(n);
        r[k] = 1e-6 * 2 * WIN * rounds(n, RATE, &slow[k]);
    }
    m = median(r, REPS);
    snprintf(key, sizeof key, "t%d%s_Mmsgs", n, name);
    show(key, m);
    if (one <= 0) return m;
    snprintf(key, sizeof key, "t%d%s_to_one", n, name);
    show(key, m / one);
    snprintf(key, sizeof key, "t%d%s_slowest", n, name);
    show(key, median(slow, REPS));
    return m;
}

static void latency(int n)
{
    double s[REPS];
    char key[64];
    for (int k = 0; k < REPS; k++) {
        for (int i = 0; i < n; i++) jobs[i] = (struct job){LATENCY, own[i], 10, 0, 0};
        run(n);
        s[k] = 0.5e6 * seconds_a_round(n);
    }
    snprintf(key, sizeof key, "t%d_own_lat_us", n);
    show(key, median(s, REPS));
}

static void mixed(int n)
{
    double r[REPS], c[REPS], slow;
    char key[64];
    for (int k = 0; k < REPS; k++) {
        for (int i = 0; i < n; i++) jobs[i] = (struct job){i % 2 ? ALLREDUCE : RATE, own[i], 10, 0, 0};
        run(n);
        r[k] = 1e-6 * 2 * WIN * rounds(n, RATE, &slow);
        c[k] = 1e-3 * rounds(n, ALLREDUCE, &slow);
    }
    snprintf(key, sizeof key, "t%d_mixed_Mmsgs", n);
    show(key, median(r, REPS));
    snprintf(key, sizeof key, "t%d_mixed_allreduces_k", n);
    show(key, median(c, REPS));
}

/* ---- what a handover of the core costs ---- */

static _Atomic int turn[MOST];
static int turns_of;

static void *pass_on(void *arg)
{
    int me = (int)(intptr_t)arg, next = (me + 1) % turns_of;
    for (int i = 0; i < HANDOVERS; i++) {
        while (!atomic_load(&turn[me])) syscall(SYS_futex, &turn[me], FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
        atomic_store(&turn[me], 0);
        atomic_store(&turn[next], 1);
        syscall(SYS_futex, &turn[next], FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    }
    return NULL;
}

/* Seconds of one, from thread to thread in a ring, while the other rank does the same. */
static double handover(int n)
{
    pthread_t th[MOST];
    MPI_Barrier(MPI_COMM_WORLD);
    double t0 = now();
    turns_of = n;
    atomic_store(&turn[0], 1);
    for (int i = 0; i < n; i++) pthread_create(&th[i], NULL, pass_on, (void *)(intptr_t)i);
    for (int i = 0; i < n; i++) pthread_join(th[i], NULL);
    atomic_store(&turn[0], 0);
    return (now() - t0) / n / HANDOVERS;
}

static void bare(int n, double one)
{
    char key[64];
    double window = 1e-6 * 2 * WIN / one;
    snprintf(key, sizeof key, "t%d_bare_to_one", n);
    show(key, window / (window + handover(n)));
}

int main(int argc, char **argv)
{
    int size, got = 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &got);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    need_ranks(size, 2);
    if (got < MPI_THREAD_MULTIPLE) {
        show("thread_multiple", 0);
        MPI_Finalize();
        return 0;
    }
    for (int i = 0; i < MOST; i++) MPI_Comm_dup(MPI_COMM_WORLD, &own[i]);
    double one = rate(1, 0, "", 0);
    latency(1);
    for (int n = 2; n <= MOST; n *= n == 2 ? 4 : 2) {
        bare(n, one);
        rate(n, 0, "_own", one);
        rate(n, 1, "_shared", one);
        latency(n);
        mixed(n);
    }
    for (int i = 0; i < MOST; i++) MPI_Comm_free(&own[i]);
    MPI_Finalize();
    return 0;
}
