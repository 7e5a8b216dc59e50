/*
 * threads.c - threads open and close sessions at the same time, beside a world model that was told of one thread only and
 * whose thread is inside the library meanwhile: the library begins to take locks under it (MPI-5.0 11.4.1, 11.6).
 */
#include "../check.h"
#include <pthread.h>

enum { THREADS = 4, ROUNDS = 25, MESSAGES = 4000 };

static void *sessions(void *arg)
{
    long *failed = arg;
    for (int i = 0; i < ROUNDS; i++) {
        MPI_Session s = MPI_SESSION_NULL;
        MPI_Group g;
        int n = 0, size = 0;
        if (MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &s) || s == MPI_SESSION_NULL) ++*failed;
        if (MPI_Session_get_num_psets(s, MPI_INFO_NULL, &n) || n < 2) ++*failed;
        if (MPI_Group_from_session_pset(s, "mpi://WORLD", &g) || MPI_Group_size(g, &size) || size != check_size) ++*failed;
        if (MPI_Group_free(&g) || MPI_Session_finalize(&s) || s != MPI_SESSION_NULL) ++*failed;
    }
    return NULL;
}

/* Small messages go round, also to oneself, while threads make the library take locks. */
static void traffic(int from, int to)
{
    long bad = 0;
    for (int i = 0; i < MESSAGES; i++) {
        int out = i, in = -1;
        MPI_Request r;
        MPI_Irecv(&in, 1, MPI_INT, from, 1, MPI_COMM_WORLD, &r);
        MPI_Send(&out, 1, MPI_INT, to, 1, MPI_COMM_WORLD);
        MPI_Wait(&r, MPI_STATUS_IGNORE);
        bad += in != i;
    }
    CHECK(!bad, "%ld of %d messages were wrong", bad, MESSAGES);
}

/* The main thread sleeps in a receive when the first session comes, from another thread, which sends the message after. */
static void *wakes(void *arg)
{
    MPI_Session s;
    struct timespec nap = {0, 20000000};
    nanosleep(&nap, NULL);
    *(int *)arg = MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &s);
    int word = 4711;
    MPI_Send(&word, 1, MPI_INT, check_rank, 2, MPI_COMM_SELF == MPI_COMM_NULL ? MPI_COMM_NULL : MPI_COMM_WORLD);
    if (!*(int *)arg) *(int *)arg = MPI_Session_finalize(&s);
    return NULL;
}

static void asleep(void)
{
    pthread_t t;
    int rc = -1, word = 0;
    pthread_create(&t, NULL, wakes, &rc);
    MPI_Recv(&word, 1, MPI_INT, check_rank, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    pthread_join(t, NULL);
    CHECK(!rc && word == 4711, "a session beside a sleeping thread: code %d, word %d", rc, word);
}

int main(int argc, char **argv)
{
    pthread_t t[THREADS];
    static long failed[THREADS];
    int first = argc > 1 && !strcmp(argv[1], "asleep");
    check_start_thread(&argc, &argv, MPI_THREAD_FUNNELED);
    if (first) asleep();
    for (int i = 0; i < THREADS; i++) pthread_create(&t[i], NULL, sessions, &failed[i]);
    traffic((check_rank + check_size - 1) % check_size, (check_rank + 1) % check_size);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(t[i], NULL);
        CHECK(!failed[i], "thread %d: %ld failures", i, failed[i]);
    }
    traffic((check_rank + check_size - 1) % check_size, (check_rank + 1) % check_size);
    if (!first) asleep();
    return check_done();
}
