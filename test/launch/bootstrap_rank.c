/*
 * bootstrap_rank.c - a program that says how it was started, and uses what the bootstrap is for:
 *   bootstrap_rank        a ring, a barrier and a sum over all ranks; then one line a rank
 *   bootstrap_rank late [N]  the same, but half of the ranks come N seconds late, or one
 *   bootstrap_rank absent the last rank ends after a second without MPI_Init, with exit code 0; rank 0 sends to it, and says
 *                         what error it gets
 *   bootstrap_rank abort  the last rank calls MPI_Abort with code 9, the others wait
 *   bootstrap_rank quit   the first, but rank 0 ends without a word right after MPI_Finalize, half a second before the others
 */
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int rank, size;

/* A whole number behind `name` in a file of /proc, -1 if it is not there. */
static long proc_number(const char *path, const char *name)
{
    char line[256];
    long n = -1;
    FILE *f = fopen(path, "r");
    while (f && n < 0 && fgets(line, sizeof line, f))
        if (!strncmp(line, name, strlen(name))) sscanf(line + strlen(name), "%ld", &n);
    if (f) fclose(f);
    return n;
}

static int mapped(const char *what)
{
    char line[4352];
    int found = 0;
    FILE *f = fopen("/proc/self/maps", "r");
    while (f && !found && fgets(line, sizeof line, f)) found = strstr(line, what) != NULL;
    if (f) fclose(f);
    return found;
}

static int communicate(void)
{
    int token = rank, from = (rank + size - 1) % size, got = -1, sum = 0;
    MPI_Request r;
    MPI_Irecv(&got, 1, MPI_INT, from, 1, MPI_COMM_WORLD, &r);
    MPI_Send(&token, 1, MPI_INT, (rank + 1) % size, 1, MPI_COMM_WORLD);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Allreduce(&token, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    return got == from && sum == size * (size - 1) / 2;
}

/* Ranks on this node. */
static int near(void)
{
    MPI_Comm node;
    int n = 0;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Comm_size(node, &n);
    MPI_Comm_free(&node);
    return n;
}

static int absent(int *argc, char ***argv, int own)
{
    char words[MPI_MAX_ERROR_STRING];
    int n;
    const char *all = getenv("ABSENT_OF");
    if (all && own == atoi(all) - 1) {
        sleep(1);
        return 0;
    }
    MPI_Init(argc, argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (own == 0) {
        MPI_Error_string(MPI_Send(&own, 1, MPI_INT, size - 1, 1, MPI_COMM_WORLD), words, &n);
        printf("rank 0: %s\n", words);
        fflush(stdout);
        _exit(0); /* which ends the job */
    }
    sleep(30);
    return 1;
}

int main(int argc, char **argv)
{
    int flag = 0, *appnum = NULL;
    const char *pmix_rank = getenv("PMIX_RANK");
    if (argc > 1 && !strcmp(argv[1], "late") && pmix_rank && atoi(pmix_rank) % 2) sleep(argc > 2 ? (unsigned)atoi(argv[2]) : 1);
    if (argc > 1 && !strcmp(argv[1], "absent")) return absent(&argc, &argv, atoi(pmix_rank ? pmix_rank : "0"));
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc > 1 && !strcmp(argv[1], "abort")) {
        if (rank == size - 1) MPI_Abort(MPI_COMM_WORLD, 9);
        sleep(30);
    }
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, &appnum, &flag);
    int good = communicate(), n = near();
    printf("rank %d of %d: %s, app %d, near %d, %s, %s, threads %ld, KB %ld\n", rank, size, good ? "good" : "BAD", flag ? *appnum : -1, n,
           mapped("/tern/pmix.so") || mapped("/pmix.so") ? "by PMIx" : "natively",
           dlsym(RTLD_DEFAULT, "tern_proc_pmix") ? "module in the open" : "module hidden",
           proc_number("/proc/self/status", "Threads:"), proc_number("/proc/self/status", "RssAnon:"));
    fflush(stdout);
    int failed = MPI_Finalize() || !good;
    if (argc > 1 && !strcmp(argv[1], "quit")) {
        if (rank == 0) _exit(failed);
        usleep(500000);
        printf("rank %d is still there\n", rank);
    }
    return failed;
}
