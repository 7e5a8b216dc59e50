/*
 * connect_choice - MPI_Comm_accept and MPI_Comm_connect, where the groups tell each other of their processes by datagrams, over a
 * connection made for that, and as the library chooses itself (Tern's TERN_DPM_CONNECTED). Run with 1 rank, by a launcher that lets the
 * machine be oversubscribed; the library has to know these variables, and to take them by info key "env" of MPI_Comm_spawn.
 *
 *     connect_choice [-s SECONDS]
 *
 * For 1 KB to 256 KB more than two processes have to tell, in each repetition three jobs of two processes are spawned and take turns, the
 * first one drawn:
 *   datagrams_SIZE_ms, connected_SIZE_ms, auto_SIZE_ms   the call, at the process where it takes longer
 *   auto_SIZE_to_better    the library's choice to the better one of the two ways
 *   other_SIZE_to_better   the other one to that
 * A turn is 5 calls behind one that does not count; their median counts. Medians of 15 to 61 repetitions, as many as SECONDS (3) allow
 * for a size; the ratios are medians of those in a repetition. Without SECONDS, the whole takes about 35 s.
 */
#include "bench.h"

enum { DATAGRAMS, CONNECTED, AUTO, WAYS };
enum { BATCH = 5, LEAST_REPS = 15, MOST_REPS = 61 };
static const char *const way_name[WAYS] = {"datagrams", "connected", "auto"};
static const char *const way_env[WAYS] = {"TERN_DPM_CONNECTED=16M\n", "TERN_DPM_CONNECTED=0\n", ""};
static const size_t sizes[] = {1024, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 65536, 262144};
enum { SIZES = sizeof sizes / sizeof *sizes };

static double took[WAYS][MOST_REPS];

/* ---- a job of two processes ---- */

static double connect_once(int rank, const char *port)
{
    MPI_Comm c;
    double t;
    MPI_Barrier(MPI_COMM_WORLD);
    double t0 = now();
    if (rank == 0) MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &c);
    else MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &c);
    t = now() - t0;
    MPI_Comm_disconnect(&c);
    MPI_Allreduce(MPI_IN_PLACE, &t, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return t;
}

/* A batch for each message of the parent that is not 0. */
static void serve(MPI_Comm parent)
{
    char port[MPI_MAX_PORT_NAME] = "";
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) MPI_Open_port(MPI_INFO_NULL, port);
    MPI_Bcast(port, MPI_MAX_PORT_NAME, MPI_CHAR, 0, MPI_COMM_WORLD);
    for (;;) {
        double v[BATCH], t;
        int go = 0;
        if (rank == 0) MPI_Recv(&go, 1, MPI_INT, 0, 1, parent, MPI_STATUS_IGNORE);
        MPI_Bcast(&go, 1, MPI_INT, 0, MPI_COMM_WORLD);
        if (!go) break;
        connect_once(rank, port);
        for (int i = 0; i < BATCH; i++) v[i] = connect_once(rank, port);
        t = median(v, BATCH);
        if (rank == 0) MPI_Send(&t, 1, MPI_DOUBLE, 0, 2, parent);
    }
    if (rank == 0) MPI_Close_port(port);
    MPI_Comm_disconnect(&parent);
}

/* ---- the parent ---- */

static MPI_Comm start(const char *self, int way, size_t size)
{
    char env[128], key[] = "env";
    MPI_Comm job;
    MPI_Info info;
    snprintf(env, sizeof env, "%sTERN_DPM_PADDING=%zu", way_env[way], size);
    MPI_Info_create(&info);
    MPI_Info_set(info, key, env);
    MPI_Comm_spawn(self, MPI_ARGV_NULL, 2, info, 0, MPI_COMM_SELF, &job, MPI_ERRCODES_IGNORE);
    MPI_Info_free(&info);
    return job;
}

static double batch(MPI_Comm job)
{
    double t;
    int go = 1;
    MPI_Send(&go, 1, MPI_INT, 0, 1, job);
    MPI_Recv(&t, 1, MPI_DOUBLE, 0, 2, job, MPI_STATUS_IGNORE);
    return t;
}

static void finish(MPI_Comm *job)
{
    int go = 0;
    MPI_Send(&go, 1, MPI_INT, 0, 1, *job);
    MPI_Comm_disconnect(job);
}

static double median_of(const double *v, int n)
{
    double copy[MOST_REPS];
    memcpy(copy, v, (size_t)n * sizeof *v);
    return median(copy, n);
}

static double median_ratio(int way, int to, int n)
{
    double v[MOST_REPS];
    for (int r = 0; r < n; r++) v[r] = took[way][r] / took[to][r];
    return median(v, n);
}

static void report(size_t size, int reps)
{
    const char *name = size_name(size);
    int better = median_of(took[CONNECTED], reps) < median_of(took[DATAGRAMS], reps) ? CONNECTED : DATAGRAMS;
    for (int way = 0; way < WAYS; way++) printf("%s_%s_ms %.3f\n", way_name[way], name, 1e3 * median_of(took[way], reps));
    printf("auto_%s_to_better %.3f\n", name, median_ratio(AUTO, better, reps));
    printf("other_%s_to_better %.3f\n", name, median_ratio(better == CONNECTED ? DATAGRAMS : CONNECTED, better, reps));
    fflush(stdout);
}

static void repeat(const char *self, size_t size, int r)
{
    MPI_Comm job[WAYS];
    for (int way = 0; way < WAYS; way++) job[way] = start(self, way, size);
    for (int i = 0, first = rand() % WAYS; i < WAYS; i++) {
        int way = (first + i) % WAYS;
        took[way][r] = batch(job[way]);
    }
    for (int way = 0; way < WAYS; way++) finish(&job[way]);
}

static void measure(const char *self, size_t size, double seconds)
{
    int reps = 0;
    for (double end = now() + seconds; reps < LEAST_REPS || (reps < MOST_REPS && now() < end); reps++) repeat(self, size, reps);
    report(size, reps);
}

int main(int argc, char **argv)
{
    MPI_Comm parent;
    double seconds = 3;
    MPI_Init(&argc, &argv);
    MPI_Comm_get_parent(&parent);
    if (argc == 3 && !strcmp(argv[1], "-s")) seconds = atof(argv[2]);
    if (parent != MPI_COMM_NULL) serve(parent);
    else
        for (int i = 0; i < SIZES; i++) measure(self_path(argv[0]), sizes[i], seconds);
    MPI_Finalize();
    return 0;
}
