/*
 * grequest_threads.c - generalized requests that another thread completes (MPI-5.0 section 13.2) while this one waits for
 * them: at once, or when the waiter sleeps in the kernel; alone, and among messages.
 */
#include "../check.h"

#include <pthread.h>

static int queried, freed;

static int query(void *extra, MPI_Status *status)
{
    MPI_Status_set_elements(status, MPI_BYTE, *(int *)extra);
    MPI_Status_set_cancelled(status, 0);
    queried++;
    return MPI_SUCCESS;
}

static int forget(void *extra)
{
    (void)extra;
    freed++;
    return MPI_SUCCESS;
}

static int cancel(void *extra, int complete)
{
    (void)extra, (void)complete;
    return MPI_SUCCESS;
}

struct work {
    MPI_Request request;
    long wait_ns; /* before it is completed */
};

static void *complete_later(void *arg)
{
    const struct work *w = arg;
    struct timespec nap = {0, w->wait_ns};
    if (w->wait_ns) nanosleep(&nap, NULL);
    MPI_Grequest_complete(w->request);
    return NULL;
}

/* 30 ms is far more than the time that waits poll before they sleep. */
static void waits(long wait_ns, int way)
{
    static int bytes = 21;
    pthread_t t;
    struct work w = {MPI_REQUEST_NULL, wait_ns};
    MPI_Status status[2];
    int n = -1, index = -1;
    queried = freed = 0;
    CHECK_OK(MPI_Grequest_start(query, forget, cancel, &bytes, &w.request));
    MPI_Request r[2] = {w.request, MPI_REQUEST_NULL};
    pthread_create(&t, NULL, complete_later, &w);
    switch (way) {
    case 0: CHECK_OK(MPI_Wait(r, status)); break;
    case 1: CHECK_OK(MPI_Waitall(2, r, status)); break;
    case 2: CHECK_OK(MPI_Waitany(2, r, &index, status)); break;
    case 3: CHECK_OK(MPI_Waitsome(2, r, &n, (int[2]){0}, status)); break;
    case 4:
        for (int flag = 0; !flag;) CHECK_OK(MPI_Test(r, &flag, status));
        break;
    }
    pthread_join(t, NULL);
    MPI_Get_count(status, MPI_BYTE, &n);
    CHECK(n == bytes && r[0] == MPI_REQUEST_NULL && queried == 1 && freed == 1, "way %d: %d bytes, %d queries, %d freed", way, n,
          queried, freed);
}

/* The neighbour's message comes first, or the completion does; both must wake. */
static void among_messages(int round)
{
    static int bytes = 21;
    struct timespec nap = {0, 15000000};
    int out = round, in = -1, right = (check_rank + 1) % check_size, left = (check_rank + check_size - 1) % check_size;
    struct work w = {MPI_REQUEST_NULL, round % 2 ? 0 : 30000000};
    pthread_t t;
    queried = freed = 0;
    MPI_Grequest_start(query, forget, cancel, &bytes, &w.request);
    MPI_Request r[2] = {w.request, MPI_REQUEST_NULL};
    MPI_Irecv(&in, 1, MPI_INT, left, 1, MPI_COMM_WORLD, &r[1]);
    pthread_create(&t, NULL, complete_later, &w);
    if (round % 2) nanosleep(&nap, NULL);
    MPI_Send(&out, 1, MPI_INT, right, 1, MPI_COMM_WORLD);
    CHECK_OK(MPI_Waitall(2, r, MPI_STATUSES_IGNORE));
    pthread_join(t, NULL);
    CHECK(in == round && freed == 1, "round %d: got %d, freed %d", round, in, freed);
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    check_start_thread(&argc, &argv, MPI_THREAD_MULTIPLE);
    for (int way = 0; way < 5; way++)
        for (int i = 0; i < 20; i++) waits(i < 17 ? 0 : i < 19 ? 200000 : 30000000, way);
    for (int round = 0; round < 6; round++) among_messages(round);
    return check_done();
}
