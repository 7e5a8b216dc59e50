/*
 * tern_tune.c - the program tern_tune: measures this machine and writes what it found in the
 * form that the library reads.
 *
 *     mpiexec -n 8 tern_tune -o my.table      algorithms of collectives (TERN_COLL_TABLE)
 *     tern_tune --transport -o my.env         transport parameters (environment variables)
 *     tern_tune --connect -o my.env           how two groups of processes should connect (the same)
 */
#include "tool/tune.h"

#include <getopt.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char usage[] =
    "usage: mpiexec -n RANKS tern_tune [OPTIONS]      which algorithms collectives should use here\n"
    "       tern_tune --transport [OPTIONS]           which transport parameters messages should use here\n"
    "       tern_tune --connect [OPTIONS]             up to which length connecting groups should use datagrams here\n"
    "  -o, --output FILE    the result; otherwise standard output\n"
    "  -t, --time SECONDS   stop then, with what there is so far (default 120)\n"
    "  -s, --seed N         order of measurements, and choices of the search (default 1)\n"
    "  -r, --rounds N       samples of each figure (default 7; 15 with --connect)\n"
    "      --ops LIST       these operations only, as in bcast,reduce\n"
    "      --ranks LIST     these numbers of ranks only (default 2,4,8 ... and all)\n"
    "      --max-bytes N    sizes up to this, with K or M (default 1M)\n"
    "      --quick          rough: 3 rounds, every second size, 30 seconds, unless said otherwise\n"
    "  -q, --quiet          no word about progress\n";

double tune_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

double tune_median(double *v, int n)
{
    qsort(v, (size_t)n, sizeof *v, ascending);
    return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

uint32_t tune_random(uint64_t *state)
{
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return (uint32_t)(z >> 32);
}

/* A number with K or M; -1 if it is none. */
static int64_t size_of(const char *s)
{
    char *end;
    long long v = strtoll(s, &end, 10);
    int shift = *end == 'K' ? 10 : *end == 'M' ? 20 : 0;
    return end == s || v < 1 || v > 1 << 30 || (*end && (!shift || end[1])) ? -1 : (int64_t)v << shift;
}

static bool number(const char *s, double least, double most, double *out)
{
    char *end;
    *out = strtod(s, &end);
    return end != s && !*end && *out >= least && *out <= most;
}

static bool take(struct tune_options *o, int c, const char *arg)
{
    double v = 0;
    switch (c) {
    case 'o': o->output = arg; return true;
    case 'O': o->operations = arg; return true;
    case 'R': o->ranks = arg; return true;
    case 'T': o->transport = true; return true;
    case 'P': o->pingpong = true; return true;
    case 'C': o->connect = true; return true;
    case 'c': o->connecting = true; return true;
    case 'q': o->quiet = true; return true;
    case 'Q': o->quick = true; return true;
    case 'M': return (o->max_bytes = size_of(arg)) > 0;
    case 't':
        if (!number(arg, 1, 1e6, &v)) return false;
        o->seconds = v;
        return true;
    case 's':
        if (!number(arg, 0, UINT32_MAX, &v)) return false;
        o->seed = (unsigned)v;
        return true;
    case 'r':
        if (!number(arg, 3, 1000, &v)) return false;
        o->rounds = (int)v;
        return true;
    default: return false;
    }
}

/* -1: go on; else the exit code. */
static int read_options(struct tune_options *o, int argc, char **argv)
{
    static const struct option known[] = {
        {"output", required_argument, NULL, 'o'},  {"time", required_argument, NULL, 't'},
        {"seed", required_argument, NULL, 's'},    {"rounds", required_argument, NULL, 'r'},
        {"ops", required_argument, NULL, 'O'},     {"ranks", required_argument, NULL, 'R'},
        {"transport", no_argument, NULL, 'T'},     {"pingpong", no_argument, NULL, 'P'},
        {"connect", no_argument, NULL, 'C'},       {"connecting", no_argument, NULL, 'c'},
        {"max-bytes", required_argument, NULL, 'M'}, {"quiet", no_argument, NULL, 'q'},
        {"quick", no_argument, NULL, 'Q'},
        {"help", no_argument, NULL, 'h'},          {NULL, 0, NULL, 0},
    };
    for (int c; (c = getopt_long(argc, argv, "o:t:s:r:qh", known, NULL)) != -1;) {
        if (c == 'h') return fputs(usage, stdout) < 0;
        if (take(o, c, optarg)) continue;
        if (c != '?') fprintf(stderr, "tern_tune: '%s' is no value for this option\n", optarg);
        fputs(usage, stderr);
        return 2;
    }
    if (optind == argc) return -1;
    fprintf(stderr, "tern_tune: what is '%s'?\n%s", argv[optind], usage);
    return 2;
}

/* One of the modes that are MPI programs. */
static int run(const struct tune_options *o)
{
    if (o->pingpong) return tune_pingpong(o);
    if (o->connecting) return tune_connecting(o);
    return o->connect ? tune_connect(o) : tune_coll(o);
}

int main(int argc, char **argv)
{
    struct tune_options o = {.max_bytes = 1 << 20, .seed = 1};
    int rc = read_options(&o, argc, argv);
    if (rc >= 0) return rc;
    if (!o.seconds) o.seconds = o.quick ? 30 : 120;
    if (!o.rounds) o.rounds = o.connect ? (o.quick ? 7 : 15) : o.quick ? 3 : 7;
    if (o.transport) return tune_transport(&o);
    MPI_Init(&argc, &argv);
    rc = run(&o);
    MPI_Finalize();
    return rc;
}
