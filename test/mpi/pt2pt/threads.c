/*
 * threads.c - MPI_THREAD_MULTIPLE: several threads of each rank exchange messages at the same time, on communicators of
 * their own and all on one; collectives run beside them; one thread waits while another receives.
 */
#include "../check.h"

#include <pthread.h>

enum { THREADS = 4, ROUNDS = 300, MAX = 60000 };

struct worker {
    pthread_t id;
    MPI_Comm comm;
    int number, shared;
    long bad;
    long done;
};

static int right, left;

static int size_of(int i)
{
    static const int s[] = {0, 8, 100, 9000, 50000};
    return s[i % 5];
}

static void *work(void *arg)
{
    struct worker *w = arg;
    char *out = malloc(MAX), *in = malloc(MAX);
    int tag = w->number;
    for (int i = 0; i < ROUNDS; i++) {
        MPI_Request r[2];
        MPI_Status st;
        int n = size_of(i + w->number), got = -1;
        check_fill(out, (size_t)n, (unsigned long)(check_rank * 100 + w->number * 10 + i));
        MPI_Irecv(in, MAX, MPI_BYTE, left, tag, w->comm, &r[0]);
        MPI_Isend(out, n, MPI_BYTE, right, tag, w->comm, &r[1]);
        if (i % 3 == 0) {
            int flag = 0;
            while (!flag) MPI_Test(&r[0], &flag, &st);
        } else {
            MPI_Wait(&r[0], &st);
        }
        MPI_Wait(&r[1], MPI_STATUS_IGNORE);
        MPI_Get_count(&st, MPI_BYTE, &got);
        w->bad += got != n || check_differ(in, (size_t)n, (unsigned long)(left * 100 + w->number * 10 + i)) != 0;
        if (!w->shared && i % 10 == 0) {
            int sum = 0, one = 1;
            MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, w->comm);
            w->bad += sum != check_size;
        }
        w->done++;
    }
    free(in);
    free(out);
    return NULL;
}

static void round_of(int shared)
{
    struct worker w[THREADS];
    for (int t = 0; t < THREADS; t++) {
        w[t] = (struct worker){.number = t, .shared = shared, .comm = MPI_COMM_WORLD};
        if (!shared) MPI_Comm_dup(MPI_COMM_WORLD, &w[t].comm);
    }
    for (int t = 0; t < THREADS; t++) pthread_create(&w[t].id, NULL, work, &w[t]);
    for (int t = 0; t < THREADS; t++) {
        pthread_join(w[t].id, NULL);
        CHECK(w[t].bad == 0 && w[t].done == ROUNDS, "thread %d: %ld bad of %ld", t, w[t].bad, w[t].done);
        if (!shared) MPI_Comm_free(&w[t].comm);
    }
}

/* One thread sits in a receive; the message for it is sent by another thread of the same process, later. */
static void *waits(void *arg)
{
    MPI_Recv(arg, 1, MPI_INT, check_rank, 900, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return NULL;
}

static void woken_by_sibling(void)
{
    for (int i = 0; i < 20; i++) {
        pthread_t id;
        int got = -1;
        struct timespec nap = {0, 3000000};
        pthread_create(&id, NULL, waits, &got);
        nanosleep(&nap, NULL); /* so that it sleeps, most of the time */
        MPI_Send(&i, 1, MPI_INT, check_rank, 900, MPI_COMM_WORLD);
        pthread_join(id, NULL);
        CHECK(got == i, "got %d instead of %d", got, i);
    }
}

/* The last reference to a communicator goes with an operation, inside the library's lock. */
static void freed_under_way(void)
{
    static char big[400000], in[400000];
    for (int i = 0; i < 20; i++) {
        MPI_Comm dup;
        MPI_Request s, r;
        MPI_Comm_dup(MPI_COMM_WORLD, &dup);
        MPI_Isend(big, sizeof big, MPI_BYTE, right, 1, dup, &s);
        MPI_Irecv(in, sizeof in, MPI_BYTE, left, 1, dup, &r);
        CHECK_OK(MPI_Request_free(&s));
        MPI_Comm_free(&dup);
        CHECK_OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

int main(int argc, char **argv)
{
    int level = -1, is_main = -1;
    check_start_thread(&argc, &argv, MPI_THREAD_MULTIPLE);
    CHECK_OK(MPI_Query_thread(&level));
    CHECK(level == MPI_THREAD_MULTIPLE, "level %d", level);
    CHECK_OK(MPI_Is_thread_main(&is_main));
    CHECK(is_main == 1, "the main thread is not the main thread");
    right = (check_rank + 1) % check_size;
    left = (check_rank + check_size - 1) % check_size;
    round_of(0);
    round_of(1);
    woken_by_sibling();
    freed_under_way();
    return check_done();
}
