/*
 * waitall.c - a thread that waits in MPI_Waitall while another one looks at the wires is woken at the end, not for each request.
 *
 * The messages come one by one, and the thread sleeps. Regression: it waited for one request after the other, and was woken for
 * each.
 */
#include "../check.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <unistd.h>

enum { MANY = 100, FIRST = 1, LAST = 2 };

static long times_asleep(void)
{
    struct rusage u;
    getrusage(RUSAGE_THREAD, &u);
    return u.ru_nvcsw;
}

static atomic_int others; /* threads besides the main one that have called MPI */

static void *wait_for_last(void *none)
{
    int in = 0, level;
    MPI_Query_thread(&level);
    atomic_fetch_add(&others, 1);
    MPI_Recv(&in, 1, MPI_INT, 1, LAST, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return in == MANY ? &check_rank : none;
}

static void receive(void)
{
    int in[MANY], ready = 1;
    MPI_Request r[MANY];
    pthread_t other;
    void *came;
    pthread_create(&other, NULL, wait_for_last, NULL);
    while (!atomic_load(&others)) usleep(1000);
    usleep(50000); /* it waits first, and looks for both */
    for (int i = 0; i < MANY; i++) MPI_Irecv(&in[i], 1, MPI_INT, 1, FIRST, MPI_COMM_WORLD, &r[i]);
    MPI_Send(&ready, 1, MPI_INT, 1, FIRST, MPI_COMM_WORLD);
    long asleep = times_asleep();
    MPI_Waitall(MANY, r, MPI_STATUSES_IGNORE);
    asleep = times_asleep() - asleep;
    for (int i = 0; i < MANY; i++) CHECK(in[i] == i, "message %d is %d", i, in[i]);
    CHECK(asleep <= MANY / 4, "the thread slept %ld times while %d messages came", asleep, MANY);
    printf("%ld times asleep for %d messages\n", asleep, MANY);
    pthread_join(other, &came);
    CHECK(came == &check_rank, "the last message is another one");
}

int main(int argc, char **argv)
{
    check_start_thread(&argc, &argv, MPI_THREAD_MULTIPLE);
    if (check_rank == 0) receive();
    for (int i = 0, ready; check_rank == 1 && i <= MANY; i++) {
        if (!i) MPI_Recv(&ready, 1, MPI_INT, 0, FIRST, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        usleep(500);
        MPI_Send(&i, 1, MPI_INT, 0, i < MANY ? FIRST : LAST, MPI_COMM_WORLD);
    }
    return check_done();
}
