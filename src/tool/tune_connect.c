/*
 * tune_connect.c - TERN_DPM_CONNECTED: up to which length two groups that connect should tell each other their tables by datagrams
 * (DPM-13).
 *
 * In each round of a length, two jobs of two processes are spawned: one that tells all tables by datagrams, one that connects for all of
 * them. Variables are read at the start of a process, hence two; and some jobs are slower than others of their kind for as long as they
 * live, hence new ones in each round. Each process is a group; one accepts, the other connects. Their tables are padded to that length
 * (TERN_DPM_PADDING). The two jobs take turns; a turn is several connections, of which the median counts.
 *
 * r is the median, over the rounds, of the logarithm of the time connected to the time by datagrams. The limit that is best by all
 * lengths is the one that leaves the smallest sum of r to the lengths above it. It is written as the better one if it is faster than the
 * limit in force with 95 %, by the lengths that the two treat differently.
 */
#include "base/err.h"
#include "base/var.h"
#include "tool/tune.h"

#include <math.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LENGTHS_MAX = 32, ROUNDS_MAX = 1000, BATCH = 5, BY_DATAGRAMS = 0, BY_CONNECTION = 1 };
#define LEAST_BYTES 1024
#define MOST_BYTES (8 << 20) /* longer tables always go over a connection */

struct length {
    int64_t bytes;
    double seconds[2][ROUNDS_MAX]; /* each way, by round */
    double ms[2];                  /* medians */
    double r;                      /* see above */
};

static struct connecting {
    const struct tune_options *o;
    struct length length[LENGTHS_MAX];
    int n;        /* lengths that were measured */
    int best;     /* so many lengths, the first ones, by datagrams */
    int in_force; /* the same by the limit in force */
    double start;
    uint64_t random;
    double room[ROUNDS_MAX]; /* for medians */
} self;

/* ---- the measuring job ---------------------------------------------------------------------------------------------- */

/* Makes one connection to the other process, and parts again; seconds, at the one that takes longer. */
static double connect_once(int rank, const char *port)
{
    MPI_Comm c;
    double took;
    MPI_Barrier(MPI_COMM_WORLD);
    double start = tune_now();
    if (rank == 0) MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &c);
    else MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &c);
    took = tune_now() - start;
    MPI_Comm_disconnect(&c);
    MPI_Allreduce(MPI_IN_PLACE, &took, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return took;
}

/* Answers each word of the parent by the median of a batch; 0 is the end. */
static void serve(int rank, const char *port, MPI_Comm parent)
{
    for (;;) {
        double v[BATCH], median;
        int go = 0;
        if (rank == 0) MPI_Recv(&go, 1, MPI_INT, 0, 0, parent, MPI_STATUS_IGNORE);
        MPI_Bcast(&go, 1, MPI_INT, 0, MPI_COMM_WORLD);
        if (!go) return;
        connect_once(rank, port);
        for (int i = 0; i < BATCH; i++) v[i] = connect_once(rank, port);
        median = tune_median(v, BATCH);
        if (rank == 0) MPI_Send(&median, 1, MPI_DOUBLE, 0, 0, parent);
    }
}

int tune_connecting(const struct tune_options *o)
{
    char port[MPI_MAX_PORT_NAME] = "";
    MPI_Comm parent;
    int rank, size;
    (void)o;
    MPI_Comm_get_parent(&parent);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (parent == MPI_COMM_NULL || size != 2) return 2;
    if (rank == 0) MPI_Open_port(MPI_INFO_NULL, port);
    MPI_Bcast(port, MPI_MAX_PORT_NAME, MPI_CHAR, 0, MPI_COMM_WORLD);
    serve(rank, port, parent);
    if (rank == 0) MPI_Close_port(port);
    MPI_Comm_disconnect(&parent);
    return 0;
}

/* ---- measuring a length --------------------------------------------------------------------------------------------- */

static MPI_Comm spawn_job(const char *program, int way, int64_t bytes)
{
    char env[128], *argv[] = {(char *)(uintptr_t) "--connecting", NULL};
    MPI_Comm job;
    MPI_Info info;
    snprintf(env, sizeof env, "TERN_DPM_CONNECTED=%lld\nTERN_DPM_PADDING=%lld", way == BY_CONNECTION ? 0LL : 1LL << 40, (long long)bytes);
    MPI_Info_create(&info);
    MPI_Info_set(info, "env", env);
    MPI_Comm_spawn(program, argv, 2, info, 0, MPI_COMM_SELF, &job, MPI_ERRCODES_IGNORE);
    MPI_Info_free(&info);
    return job;
}

static double batch(MPI_Comm job)
{
    double s;
    int go = 1;
    MPI_Send(&go, 1, MPI_INT, 0, 0, job);
    MPI_Recv(&s, 1, MPI_DOUBLE, 0, 0, job, MPI_STATUS_IGNORE);
    return s;
}

static void end_job(MPI_Comm *job)
{
    int go = 0;
    MPI_Send(&go, 1, MPI_INT, 0, 0, *job);
    MPI_Comm_disconnect(job);
}

/* One round: jobs of both ways, which take turns; the first is drawn. */
static void take_turns(struct length *l, int round, const char *program)
{
    int first = (int)(tune_random(&self.random) & 1);
    MPI_Comm job[2];
    for (int way = 0; way < 2; way++) job[way] = spawn_job(program, way, l->bytes);
    l->seconds[first][round] = batch(job[first]);
    l->seconds[!first][round] = batch(job[!first]);
    for (int way = 0; way < 2; way++) end_job(&job[way]);
}

/* In round k, the logarithm of the time connected to that by datagrams. */
static double ratio(const struct length *l, int k) { return log(l->seconds[BY_CONNECTION][k] / l->seconds[BY_DATAGRAMS][k]); }

static double median_ms(const double *seconds, int rounds)
{
    memcpy(self.room, seconds, (size_t)rounds * sizeof *seconds);
    return 1e3 * tune_median(self.room, rounds);
}

static double median_ratio(const struct length *l, int rounds)
{
    for (int k = 0; k < rounds; k++) self.room[k] = ratio(l, k);
    return tune_median(self.room, rounds);
}

/* False: the time is over before all rounds are done. */
static bool measure(struct length *l, const char *program)
{
    for (int k = 0; k < self.o->rounds; k++) {
        if (tune_now() - self.start > self.o->seconds) return false;
        take_turns(l, k, program);
    }
    for (int way = 0; way < 2; way++) l->ms[way] = median_ms(l->seconds[way], self.o->rounds);
    l->r = median_ratio(l, self.o->rounds);
    return true;
}

/* 1K, 1.5K, 2K, 3K, 4K ... */
static int64_t next_length(int64_t bytes)
{
    if (self.o->quick) return 2 * bytes;
    return bytes & (bytes - 1) ? bytes / 3 * 4 : bytes / 2 * 3;
}

/* All lengths, as far as there is time. */
static void measure_all(const char *program)
{
    int64_t most = min_int64(self.o->max_bytes, MOST_BYTES);
    for (int64_t bytes = LEAST_BYTES; bytes <= most && self.n < LENGTHS_MAX; bytes = next_length(bytes)) {
        struct length *l = &self.length[self.n];
        l->bytes = bytes;
        if (!measure(l, program)) return;
        self.n++;
        if (!self.o->quiet)
            fprintf(stderr, "tern_tune: %.0f s: %lld bytes: datagrams %.3f ms, connected %.3f ms\n", tune_now() - self.start, (long long)bytes,
                    l->ms[BY_DATAGRAMS], l->ms[BY_CONNECTION]);
    }
}

/* ---- the verdict ---------------------------------------------------------------------------------------------------- */

static void choose(void)
{
    double sum = 0, least = 0;
    self.best = self.n;
    for (int i = self.n - 1; i >= 0; i--) {
        sum += self.length[i].r;
        if (sum < least) {
            least = sum;
            self.best = i;
        }
    }
    while (self.in_force < self.n && self.length[self.in_force].bytes < var_int(VAR_DPM_CONNECTED)) self.in_force++;
}

/* Between the last length that goes by datagrams and the next one. */
static int64_t best_limit(void)
{
    if (!self.best) return 0;
    int64_t last = self.length[self.best - 1].bytes;
    return (last + next_length(last)) / 2;
}

/* In round k, the mean logarithm of the best limit's time to that of the one in force, over the lengths that they treat differently. */
static double gain(int k)
{
    bool lower = self.best < self.in_force; /* what is connected by the best one alone */
    int from = lower ? self.best : self.in_force, to = lower ? self.in_force : self.best;
    double sum = 0;
    for (int i = from; i < to; i++) sum += ratio(&self.length[i], k);
    return (lower ? sum : -sum) / (to - from);
}

/* How many of n values, at each end, lie outside of the 95 % interval of the median; -1: there are too few for one. */
static int outside(int n)
{
    double chance = pow(0.5, n), sum = 2 * chance;
    int k = -1;
    while (sum <= 0.05) {
        k++;
        chance *= (double)(n - k) / (k + 1);
        sum += 2 * chance;
    }
    return k;
}

static double percent(double logarithm) { return 100 * (exp(logarithm) - 1); }

/* True: the best limit, which is another one than that in force, is better. */
static bool is_better(FILE *f)
{
    double *v = self.room;
    int rounds = self.o->rounds, k = outside(rounds);
    for (int i = 0; i < rounds; i++) v[i] = gain(i);
    double median = tune_median(v, rounds);
    bool better = k >= 0 && v[rounds - 1 - k] < 0;
    fprintf(f, "# To the limit in force, %s, where they differ: %+.1f %%", var_text(VAR_DPM_CONNECTED), percent(median));
    if (k >= 0) fprintf(f, " (95 %%: %+.1f to %+.1f)", percent(v[k]), percent(v[rounds - 1 - k]));
    fprintf(f, ": %s.\n", better ? "better" : "no significant difference, so that one stays");
    return better;
}

static void report(FILE *f)
{
    fprintf(f, "# Written by tern_tune --connect, seed %u, %d rounds. Two processes connect; bytes that were added to their tables:\n",
            self.o->seed, self.o->rounds);
    for (int i = 0; i < self.n; i++)
        fprintf(f, "# %lld: datagrams %.3f ms, connected %.3f ms, %.5f times\n", (long long)self.length[i].bytes,
                self.length[i].ms[BY_DATAGRAMS], self.length[i].ms[BY_CONNECTION], exp(self.length[i].r));
    choose();
    if (!self.n) fprintf(f, "# The time (%.0f s) was over before anything was measured.\n", self.o->seconds);
    else if (self.best == self.in_force) fprintf(f, "# The limit in force, %s, is the best one for these.\n", var_text(VAR_DPM_CONNECTED));
    else fprintf(f, "%sTERN_DPM_CONNECTED=%lld\n", is_better(f) ? "" : "# not better: ", (long long)best_limit());
}

static int refuse(int rc, const char *why)
{
    fprintf(stderr, "tern_tune: %s\n", why);
    return rc;
}

int tune_connect(const struct tune_options *o)
{
    char program[4096];
    int size;
    ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size != 1) return refuse(2, "--connect is for one process, which starts others");
    if (n < 0) return refuse(1, "its own path cannot be read");
    if (var_open()) return refuse(1, err_words());
    program[n] = 0;
    FILE *f = tune_output(o);
    if (!f) return 1;
    self.o = o;
    self.start = tune_now();
    self.random = o->seed;
    measure_all(program);
    report(f);
    return tune_close(f) ? 0 : 1;
}
