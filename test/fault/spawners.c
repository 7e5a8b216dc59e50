/*
 * spawners.c - a job that spawns all the time, for kill_spawn.test, which kills parts of it.
 *
 *     spawners SECONDS    two processes are spawned, talk with the root, and leave, again and again. When something fails, it says so, three
 *                         more cycles have to be good, and it ends with "recovered"; else after so many seconds with "undisturbed"
 */
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define CHILDREN 2
#define WORDS 3

static int rank;

static int child(MPI_Comm parent)
{
    int word = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < WORDS; i++) {
        usleep(1000);
        MPI_Send(&word, 1, MPI_INT, 0, 1, parent);
        MPI_Recv(&word, 1, MPI_INT, 0, 2, parent, MPI_STATUS_IGNORE);
    }
    MPI_Comm_disconnect(&parent);
    MPI_Finalize();
    return 0;
}

/* The root talks with each child in turn. */
static int talk(MPI_Comm inter)
{
    int rc = MPI_SUCCESS, word;
    for (int i = 0; i < WORDS * CHILDREN && !rc; i++) {
        rc = MPI_Recv(&word, 1, MPI_INT, i % CHILDREN, 1, inter, MPI_STATUS_IGNORE);
        if (!rc) rc = MPI_Send(&word, 1, MPI_INT, i % CHILDREN, 2, inter);
    }
    return rc;
}

static void say(const char *what, int rc)
{
    char words[MPI_MAX_ERROR_STRING];
    int n;
    MPI_Error_string(rc, words, &n);
    printf("%s: rank %d: %s\n", what, rank, words);
    fflush(stdout);
}

/* Good at all ranks, or at none. */
static bool cycle(char *own)
{
    MPI_Comm inter;
    int rc = MPI_Comm_spawn(own, MPI_ARGV_NULL, CHILDREN, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE);
    if (rc) {
        say("spawn", rc);
        return false;
    }
    MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN);
    if (rank == 0 && (rc = talk(inter))) say("talk", rc);
    MPI_Bcast(&rc, 1, MPI_INT, 0, MPI_COMM_WORLD);
    int end = MPI_Comm_disconnect(&inter);
    if (end) say("disconnect", end);
    end = rc || end;
    MPI_Allreduce(MPI_IN_PLACE, &end, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    return !end;
}

int main(int argc, char **argv)
{
    MPI_Comm parent;
    char *own = realpath(argv[0], NULL);
    int after = 0, more = 1;
    bool disturbed = false;
    MPI_Init(&argc, &argv);
    MPI_Comm_get_parent(&parent);
    if (parent != MPI_COMM_NULL) return child(parent);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    double end = MPI_Wtime() + (argc > 1 ? atof(argv[1]) : 1);
    if (rank == 0) printf("up\n");
    fflush(stdout);
    while (more) {
        bool good = cycle(own);
        disturbed |= !good;
        after = disturbed && good ? after + 1 : 0;
        more = disturbed ? after < 3 : MPI_Wtime() < end;
        MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
    if (rank == 0) printf(disturbed ? "recovered\n" : "undisturbed\n");
    free(own);
    MPI_Finalize();
    return 0;
}
