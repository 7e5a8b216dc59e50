/*
 * short_rank.c - the shortest jobs, one of them by its argument; short.test runs many, and looks at how long each
 * takes. Says nothing, and ends with 0 if all is right.
 */
#include "../mpi/busy.h"

#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int rank, size;

static int barrier(void) { return MPI_Barrier(MPI_COMM_WORLD); }

static int message(void)
{
    int got = -1, before = (rank + size - 1) % size;
    MPI_Sendrecv(&rank, 1, MPI_INT, (rank + 1) % size, 0, &got, 1, MPI_INT, before, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    return got != before;
}

/* Each blocking collective once, with an integer for everybody. */
static int collectives(void)
{
    int a[16], b[16], counts[16], places[16], sum, expected = size * (size - 1) / 2;
    MPI_Comm w = MPI_COMM_WORLD;
    MPI_Datatype types[16];
    for (int i = 0; i < size; i++) a[i] = rank, counts[i] = 1, places[i] = i, types[i] = MPI_INT;
    MPI_Bcast(a, 1, MPI_INT, 0, w);
    a[0] = rank;
    MPI_Gather(a, 1, MPI_INT, b, 1, MPI_INT, 0, w);
    MPI_Gatherv(a, 1, MPI_INT, b, counts, places, MPI_INT, 0, w);
    MPI_Scatter(a, 1, MPI_INT, b, 1, MPI_INT, 0, w);
    MPI_Scatterv(a, counts, places, MPI_INT, b, 1, MPI_INT, 0, w);
    MPI_Allgather(&rank, 1, MPI_INT, b, 1, MPI_INT, w);
    MPI_Allgatherv(&rank, 1, MPI_INT, b, counts, places, MPI_INT, w);
    MPI_Alltoall(a, 1, MPI_INT, b, 1, MPI_INT, w);
    MPI_Alltoallv(a, counts, places, MPI_INT, b, counts, places, MPI_INT, w);
    for (int i = 0; i < size; i++) places[i] *= (int)sizeof(int);
    MPI_Alltoallw(a, counts, places, types, b, counts, places, types, w);
    MPI_Reduce(&rank, &sum, 1, MPI_INT, MPI_SUM, 0, w);
    MPI_Reduce_scatter(a, &sum, counts, MPI_INT, MPI_SUM, w);
    MPI_Reduce_scatter_block(a, &sum, 1, MPI_INT, MPI_SUM, w);
    MPI_Scan(&rank, &sum, 1, MPI_INT, MPI_SUM, w);
    MPI_Exscan(&rank, &sum, 1, MPI_INT, MPI_SUM, w);
    MPI_Barrier(w);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, w);
    for (int i = 0; i < size; i++)
        if (b[i] != i) return 1;
    return sum != expected;
}

/* The last rank ends its session and exits, while the others go on with a communicator of their own. */
static int one_ends_early(void)
{
    MPI_Session session;
    MPI_Group all, most;
    MPI_Comm comm;
    int sum = 0, one = 1, last;
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
    MPI_Group_from_session_pset(session, "mpi://WORLD", &all);
    MPI_Group_size(all, &size);
    MPI_Group_rank(all, &rank);
    last = size - 1;
    if (rank < last) {
        MPI_Group_excl(all, 1, &last, &most);
        MPI_Comm_create_from_group(most, "short", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
        for (int i = 0; i < 3; i++) MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
        MPI_Comm_free(&comm);
        MPI_Group_free(&most);
    }
    MPI_Group_free(&all);
    MPI_Session_finalize(&session);
    return rank < last && sum != size - 1;
}

/* The last rank exits without MPI_Finalize, which the launcher does not let pass. */
static int one_quits(void)
{
    if (rank == size - 1) {
        busy_say();
        _exit(0);
    }
    return MPI_Barrier(MPI_COMM_WORLD);
}

static int nothing(void) { return 0; }

static const struct kind {
    const char *name;
    int (*run)(void);
} kinds[] = {{"empty", nothing},           {"barrier", barrier},      {"message", message},
             {"collectives", collectives}, {"early", one_ends_early}, {"quits", one_quits}};

static int in_world(int (*run)(void))
{
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int rc = run();
    MPI_Finalize();
    return rc;
}

int main(int argc, char **argv)
{
    busy_open();
    for (size_t i = 0; argc == 2 && i < sizeof kinds / sizeof *kinds; i++)
        if (!strcmp(argv[1], kinds[i].name))
            return kinds[i].run == one_ends_early ? one_ends_early() : in_world(kinds[i].run);
    return 2;
}
