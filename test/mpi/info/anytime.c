/* anytime.c - info objects before MPI_Init, after MPI_Finalize, and by several threads (MPI-5.0 section 11.4.1). */
#include "../check.h"
#include <pthread.h>
#include <string.h>

static MPI_Info early;
static char text[MPI_MAX_INFO_VAL];
static int flag;

/* Ends the program if something is wrong: there may be no MPI to say so. */
static void must(int true, const char *what)
{
    if (true) return;
    fprintf(stderr, "not true: %s\n", what);
    exit(1);
}

static void before(int argc, char **argv)
{
    MPI_Info env;
    must(!MPI_Info_create(&early) && !MPI_Info_set(early, "k", "v"), "an object before MPI_Init");
    must(!MPI_Info_get(MPI_INFO_ENV, "command", 1000, text, &flag) && flag && !strcmp(text, argv[0]), "MPI_INFO_ENV before MPI_Init");
    must(!MPI_Info_get(MPI_INFO_ENV, "maxprocs", 1000, text, &flag) && flag && atoi(text) > 0, "the number of ranks");
    must(!MPI_Info_create_env(argc, argv, &env) && !MPI_Info_free(&env), "MPI_Info_create_env before MPI_Init");
}

static void *work(void *arg)
{
    char key[16], got[16];
    MPI_Info mine, copy;
    int found;
    for (int round = 0; round < 200; round++) {
        must(!MPI_Info_create(&mine), "create");
        for (int k = 0; k < 12; k++) {
            snprintf(key, sizeof key, "%d.%d", *(int *)arg, k);
            must(!MPI_Info_set(mine, key, key), "set");
        }
        must(!MPI_Info_dup(mine, &copy) && !MPI_Info_free(&mine), "dup");
        must(!MPI_Info_get(copy, key, 15, got, &found) && found && !strcmp(got, key), "get");
        must(!MPI_Info_get(MPI_INFO_ENV, "host", 15, got, &found) && found, "MPI_INFO_ENV");
        must(!MPI_Info_free(&copy), "free");
    }
    return NULL;
}

static void by_threads(void)
{
    pthread_t thread[4];
    int number[4];
    for (int t = 0; t < 4; t++) number[t] = t, must(!pthread_create(&thread[t], NULL, work, &number[t]), "a thread");
    for (int t = 0; t < 4; t++) pthread_join(thread[t], NULL);
}

int main(int argc, char **argv)
{
    before(argc, argv);
    by_threads();
    check_start(&argc, &argv);
    CHECK_OK(MPI_Info_get(early, "k", 10, text, &flag));
    CHECK(flag && !strcmp(text, "v"), "made before MPI_Init: %s", text);
    CHECK_OK(MPI_Info_get(MPI_INFO_ENV, "maxprocs", 10, text, &flag));
    CHECK(flag && atoi(text) == check_size, "maxprocs: %s", text);
    int rc = check_done();
    must(!MPI_Info_set(early, "late", "1") && !MPI_Info_get(early, "k", 10, text, &flag) && flag, "after MPI_Finalize");
    must(!MPI_Info_free(&early) && !MPI_Info_create(&early) && !MPI_Info_free(&early), "made after MPI_Finalize");
    must(!MPI_Info_get(MPI_INFO_ENV, "host", 1000, text, &flag) && flag, "MPI_INFO_ENV after MPI_Finalize");
    return rc;
}
