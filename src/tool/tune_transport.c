/*
 * tune_transport.c - a genetic search for transport parameters, with a ping-pong as objective (GOAL-35).
 *
 * An individual is one value for each variable of a list. Variables are read at the start of a process, so an individual
 * is judged by a job of two ranks, which prints the half round trip for some sizes; its cost is the mean, over the sizes,
 * of the logarithm of the time relative to the default's: -0.1 is 10 % faster. Each generation, the default is measured
 * again beside the others, so that the machine's moods cancel.
 *
 * At the end the best one and the default run in turns, several launches each. Only where the 95 % intervals of their
 * costs do not touch is the best one called better.
 */
#include "tool/tune.h"

#include <math.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { GENES = 6, VALUES_MAX = 6, POPULATION = 10, SURVIVORS = 4, GENERATIONS_MAX = 40, LAUNCHES = 12 };

static const int sizes[] = {8, 1024, 8192, 32768, 131072, 1 << 20};
enum { SIZES = ARRAY_LEN(sizes) };

/* The first value is the default (a test compares with the table of variables). */
static const struct gene {
    const char *variable;
    const char *value[VALUES_MAX];
} genes[GENES] = {
    {"TERN_EAGER_SHM", {"32K", "4K", "8K", "16K", "64K"}},
    {"TERN_SHM_BOX", {"128K", "32K", "64K", "256K", "512K"}},
    {"TERN_CHUNK_CMA", {"256K", "64K", "128K", "512K", "1M"}},
    {"TERN_COPY_NT", {"0", "512K", "2M", "16M"}},
    {"TERN_EAGER_TCP", {"64K", "8K", "16K", "32K", "128K"}},
    {"TERN_CHUNK_STREAM", {"1M", "128K", "256K", "512K", "4M"}},
};

struct individual {
    uint8_t value[GENES];
    double cost;
};

struct search {
    const struct tune_options *o;
    char launcher[4096], self[4096];
    struct individual all[POPULATION];
    uint64_t random;
    double start, job; /* seconds; job: what one takes */
};

/* ---- judging ------------------------------------------------------------------------------- */

/* The half round trips of a job with these values; false if it failed. */
static bool run_job(const struct search *s, const struct individual *x, double us[SIZES])
{
    char command[3 * 4096], line[128];
    int n = snprintf(command, sizeof command, "'%s' --timeout 60 -n 2", s->launcher), got = 0;
    for (int g = 0; g < GENES; g++)
        n += snprintf(command + n, sizeof command - (size_t)n, " -x %s=%s", genes[g].variable, genes[g].value[x->value[g]]);
    snprintf(command + n, sizeof command - (size_t)n, " '%s' --pingpong", s->self);
    FILE *f = popen(command, "r");
    if (!f) return false;
    while (fgets(line, sizeof line, f)) got += got < SIZES && sscanf(line, "half_us %lf", &us[got]) == 1;
    return pclose(f) == 0 && got == SIZES;
}

static double cost(const double us[SIZES], const double base[SIZES])
{
    double sum = 0;
    for (int i = 0; i < SIZES; i++) sum += log(us[i] / base[i]);
    return sum / SIZES;
}

/* The better of two launches, size by size: what disturbs makes it slower only. */
static bool judge(const struct search *s, const struct individual *x, double us[SIZES])
{
    double again[SIZES];
    if (!run_job(s, x, us) || !run_job(s, x, again)) return false;
    for (int i = 0; i < SIZES; i++)
        if (again[i] < us[i]) us[i] = again[i];
    return true;
}

/* ---- breeding --------------------------------------------------------------------------------- */

static int values_of(int g)
{
    int n = 0;
    while (n < VALUES_MAX && genes[g].value[n]) n++;
    return n;
}

static uint8_t any_value(struct search *s, int g) { return (uint8_t)(tune_random(&s->random) % (unsigned)values_of(g)); }

static int by_cost(const void *a, const void *b)
{
    double x = ((const struct individual *)a)->cost, y = ((const struct individual *)b)->cost;
    return x < y ? -1 : x > y;
}

/* The worse part of the population makes room for children of the better one, with a mutation now and then. */
static void breed(struct search *s)
{
    qsort(s->all, POPULATION, sizeof *s->all, by_cost);
    for (int i = SURVIVORS; i < POPULATION; i++) {
        const struct individual *a = &s->all[tune_random(&s->random) % SURVIVORS];
        const struct individual *b = &s->all[tune_random(&s->random) % SURVIVORS];
        for (int g = 0; g < GENES; g++) {
            s->all[i].value[g] = (tune_random(&s->random) & 1 ? a : b)->value[g];
            if (tune_random(&s->random) % 6 == 0) s->all[i].value[g] = any_value(s, g);
        }
    }
}

/* Time is kept for the comparison at the end. */
static bool time_left(const struct search *s)
{
    return tune_now() - s->start + (2 * LAUNCHES + 3) * s->job < s->o->seconds;
}

/* Those for whom there is no time count as bad. */
static bool judge_all(struct search *s, const double base[SIZES])
{
    for (int i = 0; i < POPULATION; i++) {
        double us[SIZES];
        s->all[i].cost = HUGE_VAL;
        if (!time_left(s)) continue;
        if (!judge(s, &s->all[i], us)) return false;
        s->all[i].cost = cost(us, base);
    }
    return true;
}

static bool evolve(struct search *s)
{
    static const struct individual standard;
    double base[SIZES];
    double began = tune_now();
    if (!run_job(s, &standard, base)) return false;
    s->job = tune_now() - began;
    for (int i = 1; i < POPULATION; i++)
        for (int g = 0; g < GENES; g++) s->all[i].value[g] = any_value(s, g);
    for (int n = 0; n < GENERATIONS_MAX && (!n || time_left(s)); n++) {
        if (n) breed(s);
        if (!judge(s, &standard, base) || !judge_all(s, base)) return false;
        qsort(s->all, POPULATION, sizeof *s->all, by_cost);
        if (!s->o->quiet && isfinite(s->all[0].cost))
            fprintf(stderr, "tern_tune: %.0f s: generation %d, best %+.1f %%\n", tune_now() - s->start, n + 1,
                    100 * (exp(s->all[0].cost) - 1));
    }
    return true;
}

/* ---- the verdict ------------------------------------------------------------------------------- */

struct interval {
    double median, low, high;
};

/* Median and 95 % interval of it, from the order statistics. */
static struct interval interval_of(double v[LAUNCHES])
{
    static_assert(LAUNCHES == 12, "the third and the tenth of twelve bound the median with 96 %");
    double m = tune_median(v, LAUNCHES);
    return (struct interval){m, v[2], v[9]};
}

static bool compare(const struct search *s, struct interval *best, struct interval *standard)
{
    static const struct individual def;
    double base[SIZES], us[SIZES], a[LAUNCHES], b[LAUNCHES];
    if (!run_job(s, &def, base)) return false;
    for (int i = 0; i < LAUNCHES; i++) {
        if (!run_job(s, &s->all[0], us)) return false;
        a[i] = cost(us, base);
        if (!run_job(s, &def, us)) return false;
        b[i] = cost(us, base);
    }
    *best = interval_of(a);
    *standard = interval_of(b);
    return true;
}

static double percent(double c, const struct interval *standard) { return 100 * (exp(c - standard->median) - 1); }

static int report(const struct search *s, const struct interval *best, const struct interval *standard)
{
    FILE *f = tune_output(s->o);
    if (!f) return 1;
    bool better = best->high < standard->low;
    fprintf(f, "# Written by tern_tune --transport, seed %u. Half round trip relative to the default, mean over 8 bytes to 1 MB:\n"
               "# %+.1f %% (95 %%: %+.1f to %+.1f), the default itself %+.1f to %+.1f: %s.\n", s->o->seed,
            percent(best->median, standard), percent(best->low, standard), percent(best->high, standard),
            percent(standard->low, standard), percent(standard->high, standard),
            better ? "better" : "no significant difference, so the default stays");
    for (int g = 0; g < GENES; g++) {
        int v = s->all[0].value[g];
        if (v) fprintf(f, "%s%s=%s\n", better ? "" : "# not better: ", genes[g].variable, genes[g].value[v]);
    }
    return tune_close(f) ? 0 : 1;
}

/* The launcher that lies beside this program. */
static bool find_launcher(struct search *s)
{
    ssize_t n = readlink("/proc/self/exe", s->self, sizeof s->self - 1);
    char *slash = n > 0 ? memrchr(s->self, '/', (size_t)n) : NULL;
    if (!slash || strchr(s->self, '\'')) return false;
    snprintf(s->launcher, sizeof s->launcher, "%.*s/mpiexec", (int)(slash - s->self), s->self);
    return access(s->launcher, X_OK) == 0;
}

int tune_transport(const struct tune_options *o)
{
    struct search s = {.o = o, .random = o->seed, .start = tune_now()};
    struct interval best, standard;
    if (!find_launcher(&s)) {
        fprintf(stderr, "tern_tune: there is no mpiexec beside this program\n");
        return 1;
    }
    if (!evolve(&s) || !compare(&s, &best, &standard)) {
        fprintf(stderr, "tern_tune: a measuring job failed (%s -n 2 %s --pingpong)\n", s.launcher, s.self);
        return 1;
    }
    return report(&s, &best, &standard);
}

/* ---- the measuring job ---------------------------------------------------------------------------- */

/* Half a round trip of n bytes in seconds, over `reps` of them. */
static double half(int rank, char *buf, int n, int reps)
{
    double start = tune_now();
    for (int i = 0; i < reps; i++) {
        if (!rank) MPI_Send(buf, n, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
        MPI_Recv(buf, n, MPI_BYTE, !rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (rank) MPI_Send(buf, n, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
    }
    return (tune_now() - start) / reps / 2;
}

/* The same in microseconds, the median of blocks of about 2 ms. */
static double half_us(int rank, char *buf, int n)
{
    enum { BLOCKS = 7 };
    double v[BLOCKS], first;
    half(rank, buf, n, 2);
    first = half(rank, buf, n, 3);
    MPI_Bcast(&first, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    int reps = first > 0.001 ? 1 : first < 1e-6 ? 1000 : (int)(0.001 / first);
    for (int b = 0; b < BLOCKS; b++) v[b] = 1e6 * half(rank, buf, n, reps);
    return tune_median(v, BLOCKS);
}

int tune_pingpong(const struct tune_options *o)
{
    (void)o;
    int rank, size;
    char *buf = calloc(1, (size_t)sizes[SIZES - 1]);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size != 2 || !buf) return 2;
    for (int i = 0; i < SIZES; i++) {
        double us = half_us(rank, buf, sizes[i]);
        if (!rank) printf("half_us %.4f\n", us);
    }
    free(buf);
    return 0;
}
