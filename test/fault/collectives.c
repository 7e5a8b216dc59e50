/*
 * collectives.c - collective operations without end, with the data checked, for kill_coll.test:
 *     collectives slots     small blocking ones
 *     collectives large     large blocking ones
 *     collectives pending   sixteen nonblocking ones, small and large, at a time
 *     collectives kept      persistent ones
 *     collectives made      a communicator for each few
 * Every rank prints "going RANK PID" after its first round. TEST_MEMORY_MB: each has so much memory besides. The system takes it back
 * first when a process dies: until then nobody reaches the process any more, and its launcher does not know.
 */
#include "../mpi/check.h"

#include <unistd.h>

enum { SMALL = 6, LARGE = 200000, PENDING = 16, RANKS = 16 /* at most */ };

struct vectors {
    int *in, *out, *all; /* `all` holds a vector of each rank */
};

static void vectors_new(struct vectors *v)
{
    v->in = malloc(sizeof(int[LARGE]));
    v->out = malloc(sizeof(int[LARGE]));
    v->all = malloc(sizeof(int[LARGE]) * (size_t)check_size);
    if (!v->in || !v->out || !v->all) MPI_Abort(MPI_COMM_WORLD, 1);
}

/* What rank r gives in a round. */
static int value(int r, int round, int i) { return r * 3 + round + i; }

static void fill(struct vectors *v, int n, int round)
{
    for (int i = 0; i < n; i++) v->in[i] = value(check_rank, round, i);
    v->out[n - 1] = v->all[(size_t)n * (size_t)check_size - 1] = -1;
}

/* The last element of each block tells. */
static void look(const struct vectors *v, int n, int round)
{
    int sum = 0;
    for (int r = 0; r < check_size; r++) {
        int want = value(r, round, n - 1), got = v->all[(size_t)n * (size_t)(r + 1) - 1];
        sum += want;
        CHECK(got == want, "round %d, %d elements: %d of rank %d", round, n, got, r);
    }
    CHECK(v->out[n - 1] == sum, "round %d, %d elements: the sum is %d", round, n, v->out[n - 1]);
    if (check_failures) MPI_Abort(MPI_COMM_WORLD, 2);
}

/* A block of each rank, each another length. */
static void lengths(int n, int *counts, int *at)
{
    for (int r = 0; r < check_size; r++) counts[r] = n / (r + 1), at[r] = r * n;
}

static void blocking(struct vectors *v, int n, int round, MPI_Comm comm)
{
    int root = round % check_size, counts[RANKS], at[RANKS];
    fill(v, n, round);
    MPI_Allreduce(v->in, v->out, n, MPI_INT, MPI_SUM, comm);
    MPI_Allgather(v->in, n, MPI_INT, v->all, n, MPI_INT, comm);
    look(v, n, round);
    MPI_Bcast(v->out, n, MPI_INT, root, comm);
    MPI_Gather(v->in, n, MPI_INT, v->all, n, MPI_INT, root, comm);
    MPI_Barrier(comm);
    MPI_Alltoall(v->all, n / check_size, MPI_INT, v->out, n / check_size, MPI_INT, comm);
    MPI_Scatter(v->all, n, MPI_INT, v->out, n, MPI_INT, root, comm);
    MPI_Reduce(v->in, v->out, n, MPI_INT, MPI_MAX, root, comm);
    MPI_Scan(v->in, v->out, n, MPI_INT, MPI_SUM, comm);
    lengths(n, counts, at);
    MPI_Gatherv(v->in, counts[check_rank], MPI_INT, v->all, counts, at, MPI_INT, root, comm);
    MPI_Scatterv(v->all, counts, at, MPI_INT, v->out, counts[check_rank], MPI_INT, root, comm);
    for (int r = 0; r < check_size; r++) counts[r] = n / check_size, at[r] = r * (n / check_size);
    MPI_Alltoallv(v->all, counts, at, MPI_INT, v->out, counts, at, MPI_INT, comm);
}

static void pending(struct vectors *v, int round)
{
    MPI_Request req[2 * PENDING];
    for (int i = 0; i < PENDING; i++) {
        int n = i % 4 ? SMALL : LARGE / 8;
        fill(&v[i], n, round + i);
        MPI_Iallreduce(v[i].in, v[i].out, n, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &req[2 * i]);
        MPI_Iallgather(v[i].in, n, MPI_INT, v[i].all, n, MPI_INT, MPI_COMM_WORLD, &req[2 * i + 1]);
    }
    MPI_Waitall(2 * PENDING, req, MPI_STATUSES_IGNORE);
    MPI_Ialltoall(v[0].in, LARGE / check_size, MPI_INT, v[1].in, LARGE / check_size, MPI_INT, MPI_COMM_WORLD, &req[0]);
    MPI_Ibcast(v[2].in, LARGE, MPI_INT, round % check_size, MPI_COMM_WORLD, &req[1]);
    MPI_Waitall(2, req, MPI_STATUSES_IGNORE);
    for (int i = 0; i < PENDING; i++) look(&v[i], i % 4 ? SMALL : LARGE / 8, round + i);
}

static void kept(struct vectors *v, int round)
{
    static MPI_Request req[2];
    int n = LARGE / 8;
    if (!req[0]) {
        MPI_Allreduce_init(v->in, v->out, n, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &req[0]);
        MPI_Allgather_init(v->in, n, MPI_INT, v->all, n, MPI_INT, MPI_COMM_WORLD, MPI_INFO_NULL, &req[1]);
    }
    fill(v, n, round);
    MPI_Startall(2, req);
    MPI_Waitall(2, req, MPI_STATUSES_IGNORE);
    look(v, n, round);
}

static void made(struct vectors *v, int round)
{
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    blocking(v, SMALL, round, comm);
    MPI_Comm_free(&comm);
}

static void have_memory(void)
{
    const char *given = getenv("TEST_MEMORY_MB");
    size_t bytes = given ? strtoul(given, NULL, 10) << 20 : 0;
    char *memory = bytes ? malloc(bytes) : NULL;
    for (size_t at = 0; memory && at < bytes; at += 4096) memory[at] = 1;
}

int main(int argc, char **argv)
{
    struct vectors v[PENDING];
    have_memory();
    check_start(&argc, &argv);
    if (check_size > RANKS) MPI_Abort(MPI_COMM_WORLD, 1);
    const char *kind = argc > 1 ? argv[1] : "slots";
    for (int i = 0; i < PENDING; i++) vectors_new(&v[i]);
    for (int round = 0;; round = (round + 1) % 1000000) {
        switch (kind[0]) {
        case 's': blocking(v, SMALL, round, MPI_COMM_WORLD); break;
        case 'l': blocking(v, LARGE, round, MPI_COMM_WORLD); break;
        case 'p': pending(v, round); break;
        case 'k': kept(v, round); break;
        default: made(v, round); break;
        }
        if (round) continue;
        printf("going %d %ld\n", check_rank, (long)getpid());
        fflush(stdout);
    }
}
